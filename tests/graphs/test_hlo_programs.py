"""What frameworks leave in HLO text, and programs that jax compiled."""

from __future__ import annotations

from pathlib import Path

import pytest

from opgym.errors import ImportFailedError
from opgym.graphs import ROLES
from opgym.graphs.readers import read
from opgym.graphs.readers.hlo import read_hlo, read_hlo_text

from .hlo_texts import DATA, imported, module, peak, reads

# --- What frameworks leave in the text

STEP = """
    %w = f32[8,8] parameter(0), metadata={op_name="params['w']"}
    %m = f32[8] parameter(1)
    %x = f32[8] parameter(2), metadata={op_name="x"}
    %y = f32[8] dot(%w, %x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    %both = (f32[8], f32[8]) fusion(%m, %y), kind=kLoop, calls=%two
    %m2 = f32[8] get-tuple-element(%both), index=0
    %w2 = f32[8,8] copy(%w)
    %v = f32[64] bitcast(%w2)
    %loss = f32[8] get-tuple-element(%both), index=1
    ROOT %r = (f32[8], f32[64], f32[8], f32[8]) tuple(%loss, %v, %m2, %x)
"""
TWO = """%two (a: f32[8], b: f32[8]) -> (f32[8], f32[8]) {
  %a = f32[8] parameter(0)
  %b = f32[8] parameter(1)
  %c = f32[8] add(%a, %b)
  ROOT %t = (f32[8], f32[8]) tuple(%c, %b)
}
"""
DONATED = (
    ", input_output_alias={ {1}: (0, {}, may-alias), {2}: (1, {}, must-alias), {3}: (2, {}, may-alias) }"
)


def test_a_donated_parameter_is_a_variable_and_what_writes_over_it_its_update() -> None:
    plain, donated = imported(STEP, TWO), imported(STEP, TWO, DONATED)
    assert plain.graph.op_names == ("y", "both", "w2")
    graph = donated.graph
    assert graph.op_names == ("w", "y", "both", "w2")
    assert graph.is_variable.tolist() == [True, False, False, False]
    assert graph.op_update_of.tolist() == [-1, -1, -1, 0]
    assert graph.op_group.tolist() == [0, -1, -1, 0]
    assert graph.op_direction.tolist() == [0, 0, 0, 2]
    roles = {name: ROLES[code] for name, code in zip(graph.tensor_names, graph.tensor_role, strict=True)}
    assert roles["w"] == "parameter"
    assert roles["m"] == roles["x"] == "input"
    # m comes out of an op with two results and x is returned as it is: neither is an update
    assert [n for n in donated.report.notes if "1 parameters are updated" in n]
    assert [n for n in donated.report.notes if "1 results that reuse" in n]
    assert peak(plain.graph) == 2 * 32 + 8 * 8 * 4  # both results of the fusion, and the new w
    assert peak(graph) == 32 + 2 * 32  # y, and what is made of it: the new w needs no storage


@pytest.mark.parametrize(
    ("alias", "message"),
    [
        ("{ {9}: (0, {}, may-alias) }", r"output \(9,\) and parameter 0"),
        ("{ {1}: (7, {}, may-alias) }", r"output \(1,\) and parameter 7"),
        ("{ {1}: (0, {3}, may-alias) }", r"\(3,\) of parameter 0"),
        pytest.param(
            "{ {" + "9" * 6000 + "}: (0, {}, may-alias) }",
            r"output \(-1,\) and parameter 0",
            id="long number",
        ),
    ],
)
def test_a_donation_that_cannot_be(alias: str, message: str) -> None:
    with pytest.raises(ImportFailedError, match=message):
        imported(STEP, TWO, f", input_output_alias={alias}")


def test_layers_and_directions_come_from_the_names_that_jax_leaves() -> None:
    names = {
        "a": "jit(step)/jvp(Net)/Embed_0/take",
        "b": "jit(step)/jvp(Net)/Encoder_0/Block_0/Dense_0/dot_general",
        "c": "jit(step)/jvp(Net)/Encoder_0/Block_1/jit(relu)/max",
        "d": "jit(step)/transpose(jvp(Net))/Encoder_0/Block_1/Dense_0/transpose",
        "e": "jit(step)/transpose(jvp(Net))/Encoder_0/Block_0/while/body/closed_call/Dense_1/mul",
        "f": "jit(step)/sub",
        "g": "",
    }
    lines = ["%x = f32[4] parameter(0)"]
    previous = "x"
    for name, scope in names.items():
        metadata = f', metadata={{op_name="{scope}" source_line=3}}' if scope else ""
        lines.append(f"%{name} = f32[4] negate(%{previous}){metadata}")
        previous = name
    graph = imported("\n".join(lines)).graph
    layers = [graph.layers[code] if code >= 0 else None for code in graph.op_layer]
    assert layers == [
        "Embed_0", "Encoder_0/Block_0", "Encoder_0/Block_1", "Encoder_0/Block_1", "Encoder_0/Block_0",
        None, None,
    ]  # fmt: skip
    assert graph.op_direction.tolist() == [0, 0, 0, 1, 1, 0, 0]


def test_the_text_may_be_written_in_many_ways() -> None:
    """Types before operands, no percent signs, comments, tables of source lines, instructions on two lines."""
    text = """// a comment
HloModule jit_f, entry_computation_layout={(f32[4]{0}, /*index=1*/(s32[], f32[4]{0}))->f32[4]{0}}, num_partitions=1

FileNames
1 "program.py"

FileLocations
1 {file_name_id=1 function_name_id=1 line=10 end_line=10 column=4 end_column=9}

StackFrames
1 {file_location_id=1 parent_frame_id=1}

region_0.1 {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] maximum(a, b)
}, execution_thread="host"

ENTRY main.9 (x.1: f32[4], p.1: (s32[], f32[4])) -> f32[4] {
  x.1 = f32[4]{0} parameter(0), sharding={devices=[2]<=[2]}, frontend_attributes={note="a \\"quoted\\" }{"}
  p.1 = (s32[], f32[4]{0}) parameter(1)
  k = f32[2,2] constant({ { 1, -inf }, { nan, 4e-3 } }), metadata={op_name="jit(f)/it\\'s // no comment"}
  e.1 = f32[4]{0} get-tuple-element((s32[], f32[4]{0}) p.1), index=1
  i = f32[] constant(-inf)
  /* the
     maximum */ m = f32[] reduce(f32[2,2] k, f32[] i),
    dimensions={0,1}, to_apply=region_0.1
  n = f32[4]{0} broadcast(f32[] m), dimensions={}
  ROOT r = f32[4]{0} add(f32[4]{0} e.1, /*index=1*/f32[4]{0} n), backend_config={"a":{"b":["1"]},"c":"}"}
}
"""
    graph = read_hlo_text(text, name="f").graph
    assert graph.op_names == ("m", "n", "r")
    assert reads(graph, "r") == ["p.1:1", "n"]
    assert graph.op_flops.tolist() == [4, 0, 4]
    windows = read_hlo_text(text.replace("\n", "\r\n"), name="f").graph
    assert windows.fingerprint == graph.fingerprint


def test_what_other_backends_and_versions_write() -> None:
    graph = imported(
        """
        %x = bf16[16,256]{1,0:T(8,128)(2,1)} parameter(0)
        %s = (bf16[16,256]{1,0:T(8,128)(2,1)}, u32[]{:S(2)}) custom-call(%x), custom_call_target="foo\\"bar",
            literal=s32[2]{0} {1, 2}, output_to_operand_aliasing={{0}: (0, {})}
        %a = bf16[16,256]{1,0:T(8,128)(2,1)} get-tuple-element(%s), index=0, origin={({"v1"}, {"v2"})}
        %b = bf16[16,256] custom-call(%a), custom_call_target="scale", literal=f32[] -0.1
        %c = c64[2] constant({(1, 2), (-inf, nan)}), statistics={visualizing_index=1,stat-1=33}
        %d = ((bf16[16,256]), bf16[16,256], s32[]) custom-call-start(%b), custom_call_target="f",
            async_execution_thread="parallel_thread", literal=( s32[1]{0} {4}, pred[2]{0} {1, 0} )
        %e = ((bf16[16,256]), bf16[16,256], s32[]) custom-call-update(%d)
        %f = bf16[16,256] custom-call-done(%e)
        ROOT %r = bf16[16,256] call(%f), to_apply=%twice, is_composite=true,
            frontend_attributes={composite.attributes={n = 1 : i32, t = dense<1> : tensor<i32>},composite.name="a.b"}
        """,
        """%twice (a: bf16[16,256]) -> bf16[16,256] {
          %a = bf16[16,256] parameter(0)
          ROOT %b = bf16[16,256] add(%a, %a)
        }, execution_thread="main"
        """,
        ', origin_recovery_table={\n {"a"} : {"b"},\n "\n HloModule m\n ENTRY %e { }\n "\n}',
    ).graph
    assert graph.op_names == ("s", "b", "d", "b")
    assert graph.kinds == ("add", "custom-call-start", 'custom-call:foo\\"bar', "custom-call:scale")
    assert reads(graph, "d") == ["b"]


# --- Real programs


@pytest.mark.parametrize(
    ("name", "ops", "xla_flops", "tolerance"),
    [
        # XLA's own count leaves padding out, which is here an eighth of the places of the first two layers.
        ("grouped_convolution", 10, 96686, 0.12),
        ("mlp_step", 29, 78500, 0.01),
        ("mlp_step_unoptimised", 68, 78500, 0.01),
        ("rnn", 4, 12 * 3138, 0.03),  # XLA counts a turn of the loop once
        ("rnn_unoptimised", 3, 12 * 3138, 0.03),
        ("cond", 2, 524290, 0.001),
    ],
)
def test_programs_that_jax_compiled(name: str, ops: int, xla_flops: int, tolerance: float) -> None:
    result = read(DATA / f"{name}.hlo.txt", strict=True)
    graph = result.graph
    assert (result.report.format, graph.level, graph.num_ops) == ("hlo", "hlo", ops)
    assert abs(int(graph.op_flops.sum()) / xla_flops - 1) < tolerance
    assert not result.report.missing_cost
    entry = (DATA / f"{name}.hlo.txt").read_text().split("ENTRY ")[1]
    places = [
        entry.find(f"{name} = ")
        for name, home in zip(graph.op_names, graph.is_variable, strict=True)
        if not home
    ]
    assert min(places) > 0
    assert places == sorted(places)  # the order of the file


def test_the_peak_of_a_recurrent_program_is_near_xlas() -> None:
    """XLA states 516 bytes of temporaries and 3,344 of results for this program."""
    graph = read(DATA / "rnn.hlo.txt").graph
    assert abs(peak(graph) / (516 + 3344) - 1) < 0.05


def test_the_products_of_a_step_are_those_of_its_layers() -> None:
    """Forward, and the gradients of weights and (but for the first layer) of inputs."""
    graph = read(DATA / "mlp_step_unoptimised.hlo.txt").graph
    dots = [int(graph.op_flops[o]) for o in range(graph.num_ops) if graph.kind(o) == "dot"]
    a, b, c = (2 * 8 * m * n for m, n in ((16, 32), (32, 32), (32, 4)))
    assert sorted(dots) == sorted([a, a, b, b, b, c, c, c])
    assert int(graph.is_variable.sum()) == 6


def test_read_hlo_names_the_graph_after_the_file(tmp_path: Path) -> None:
    path = tmp_path / "model.txt"
    path.write_text(module("%x = f32[4] parameter(0)\nROOT %y = f32[4] negate(%x)"))
    assert read_hlo(path).graph.name == "model"
    assert read(path, costs={"negate": 9}).graph.op_flops.tolist() == [9]
    with pytest.raises(ImportFailedError, match=r"dims is given .* no ONNX model"):
        read(path, dims={"n": 1})
