"""HLO text becomes the graph that XLA runs: names of storage are no ops, its order is the program order."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from opgym.errors import ImportFailedError, UnknownIdError
from opgym.graphs import ROLES, Graph, peak_of_order
from opgym.graphs.readers import read
from opgym.graphs.readers.hlo import read_hlo, read_hlo_text

from .hlo_texts import ADD, DATA, imported, module, op, reads, writes

SCHEDULED = ", is_scheduled=true"


def peak(graph: Graph) -> int:
    """Peak of the program order, without what is resident."""
    return int(peak_of_order(graph, np.arange(graph.num_ops)))


# --- Values, aliases, tuples


def test_names_of_storage_are_no_ops() -> None:
    result = imported("""
        %x = f32[4,6] parameter(0)
        %flat = f32[24] bitcast(%x)
        %a = f32[24] negate(%flat)
        %b = f32[4,6] reshape(%a)
        %t = (f32[24], (f32[4,6], f32[24])) tuple(%a, %u)
        %u = (f32[4,6], f32[24]) tuple(%b, %flat)
        %inner = (f32[4,6], f32[24]) get-tuple-element(%t), index=1
        %c = f32[4,6] get-tuple-element(%inner), index=0
        %d = f32[24] get-tuple-element(%inner), index=1
        %e = f32[4,6] tanh(%c)
        ROOT %r = (f32[4,6], f32[24]) tuple(%e, %d)
    """)
    graph = result.graph
    assert graph.op_names == ("a", "e")
    assert reads(graph, "a") == ["x"]
    assert reads(graph, "e") == ["a"]
    assert result.report.folded == {
        "bitcast": 1, "get-tuple-element": 3, "parameter": 1, "reshape": 1, "tuple": 3
    }  # fmt: skip
    kept = [graph.tensor_names[t] for t in np.flatnonzero(graph.tensor_is_output)]
    assert kept == ["x", "e"]


@pytest.mark.parametrize(
    ("before", "after", "is_alias"),
    [
        ("f32[4,6]", "f32[24]", True),
        ("f32[4,6]{1,0}", "f32[2,12]{1,0}", True),
        ("f32[4,6]{0,1}", "f32[24]{0}", False),  # the elements must move
        ("f32[4,6]{0,1}", "f32[4,1,6]{0,2,1}", True),  # only an axis of size 1 is new
        ("f32[4,6]{0,1}", "f32[4,1,6]{2,1,0}", False),
        ("f32[1,6]{0,1}", "f32[6]{0}", True),
    ],
)
def test_a_reshape_is_an_alias_where_no_element_moves(before: str, after: str, is_alias: bool) -> None:
    graph = imported(f"""
        %x = {before} parameter(0)
        %y = {after} reshape(%x)
        ROOT %z = {after} negate(%y)
    """).graph
    assert graph.op_names == (("z",) if is_alias else ("y", "z"))


def test_an_op_with_several_results_has_several_tensors() -> None:
    graph = imported("""
        %x = f32[8,8] parameter(0)
        %s = f32[8] parameter(1)
        %n = (f32[8,8], f32[8], f32[8]) batch-norm-training(%x, %s, %s), epsilon=0.001, feature_index=1
        %y = f32[8,8] get-tuple-element(%n), index=0
        %m = f32[8] get-tuple-element(%n), index=1
        %a = f32[8,8] negate(%y)
        ROOT %r = (f32[8,8], f32[8]) tuple(%a, %m)
    """).graph
    assert writes(graph, "n") == ["n:0", "n:1", "n:2"]
    assert reads(graph, "a") == ["n:0"]
    assert reads(graph, "n") == ["x", "s"]
    assert [bool(graph.tensor_is_output[t]) for t in graph.outputs(op(graph, "n"))] == [False, True, False]
    assert graph.op_flops[op(graph, "n")] == 7 * 64


@pytest.mark.parametrize(
    ("shape", "size", "dtype"),
    [
        ("pred[9]", 9, "bool"),
        ("bf16[3,5]{1,0}", 30, "bfloat16"),
        ("f8e4m3b11fnuz[7]", 7, "float8e4m3b11fnuz"),
        ("f8e5m2[7]", 7, "float8e5m2"),
        ("s4[5]", 3, "int4"),
        ("s4[5]{0:E(4)}", 3, "int4"),
        ("u4[5]{0:E(8)}", 5, "uint4"),
        ("c128[2]", 32, "complex128"),
        ("f32[]", 4, "float32"),
        ("f32[0,5]", 0, "float32"),
        ("f32[<=10,3]", 120, "float32"),
        # the two fastest axes are rounded up to the tile: 3 x 8 x 256 elements
        ("f32[3,5,200]{2,1,0:T(8,128)}", 3 * 8 * 256 * 4, "float32"),
        ("bf16[5,3,200]{2,0,1:T(8,128)(2,1)S(1)}", 3 * 8 * 256 * 2, "bfloat16"),
        ("f32[100]{0:T(256)}", 1024, "float32"),
    ],
)
def test_sizes_of_shapes(shape: str, size: int, dtype: str) -> None:
    result = imported(f"%x = {shape} parameter(0)\nROOT %y = {shape} copy(%x)")
    graph = result.graph
    assert graph.tensor_bytes.tolist() == [size, size]
    assert graph.dtype(0) == dtype
    assert any("dynamic" in note for note in result.report.notes) == ("<=" in shape)


def test_tokens_order_and_hold_nothing() -> None:
    graph = imported("""
        %x = f32[4] parameter(0)
        %start = token[] after-all()
        %in = (f32[4], token[]) infeed(%start)
        %value = f32[4] get-tuple-element(%in), index=0
        %after = token[] get-tuple-element(%in), index=1
        %out = token[] outfeed(%x, %after), outfeed_shape=f32[4]
        %both = token[] after-all(%after, %out)
        %held = f32[4] add-dependency(%value, %both)
        ROOT %r = f32[4] negate(%held)
    """).graph
    assert graph.op_names == ("in", "out", "r")
    assert reads(graph, "out") == ["x", "in:1"]
    assert reads(graph, "r") == ["in:0", "in:1", "out"]
    assert graph.tensor_bytes[[graph.tensor_names.index(name) for name in ("in:1", "out")]].tolist() == [0, 0]


def test_control_predecessors_are_edges_without_bytes() -> None:
    graph = imported("""
        %x = f32[4] parameter(0)
        %a = f32[4] negate(%x), control-predecessors={%b}
        %b = f32[4] tanh(%x)
        ROOT %r = f32[4] add(%a, %b)
    """).graph
    assert graph.op_names == ("b", "a", "r")
    assert reads(graph, "a") == ["x", "b:end"]
    assert graph.tensor_bytes[graph.tensor_names.index("b:end")] == 0


def test_asynchronous_pairs_are_one_op() -> None:
    graph = imported(
        """
        %x = f32[4] parameter(0)
        %s = (f32[4], f32[4], u32[]) copy-start(%x)
        %c = f32[4] copy-done(%s)
        %g = (f32[4], f32[8]) all-gather-start(%c), dimensions={0}, replica_groups=[1,2]<=[2]
        %h = f32[8] all-gather-done(%g)
        %i = f32[4] all-reduce-start(%c), to_apply=%add, replica_groups={{0,1}}
        %j = f32[4] all-reduce-done(%i)
        %k = ((f32[4]), f32[4], s32[]) async-start(%j), calls=%double
        %l = ((f32[4]), f32[4], s32[]) async-update(%k)
        %m = f32[4] async-done(%l)
        ROOT %r = (f32[8], f32[4], f32[4]) tuple(%h, %m, %j)
        """,
        ADD
        + "%double (a: f32[4]) -> f32[4] {\n %a = f32[4] parameter(0)\n ROOT %b = f32[4] add(%a, %a)\n}\n",
    ).graph
    assert graph.op_names == ("s", "g", "i", "k")
    assert reads(graph, "g") == ["s:0"]
    assert reads(graph, "k") == ["i"]
    assert graph.op_flops.tolist() == [0, 0, 4, 4]
    kept = [graph.tensor_names[t] for t in np.flatnonzero(graph.tensor_is_output)]
    assert kept == ["g:1", "i", "k:1"]


# --- Order and memory


def test_the_schedule_is_the_program_order_and_has_its_peak() -> None:
    """Two branches of 400 bytes from 4,000: finishing one before the other begins halves the peak."""
    lines = {
        "a": "%a = f32[1000] negate(%x)",
        "b": "%b = f32[100] slice(%a), slice={[0:100]}",
        "c": "%c = f32[1000] tanh(%x)",
        "d": "%d = f32[100] slice(%c), slice={[0:100]}",
    }
    start, end = "%x = f32[1000] parameter(0)\n", "\nROOT %r = f32[100] add(%b, %d)"

    def ordered(order: str) -> Graph:
        return imported(start + "\n".join(lines[k] for k in order) + end, attributes=SCHEDULED).graph

    depth, breadth = ordered("abcd"), ordered("acbd")
    assert depth.op_names == ("a", "b", "c", "d", "r")
    assert breadth.op_names == ("a", "c", "b", "d", "r")
    assert peak(depth) == 400 + 4000 + 400  # b, and c while d is made from it
    assert peak(breadth) == 4000 + 4000 + 400


def test_an_alias_keeps_its_storage_alive() -> None:
    graph = imported(
        """
        %x = f32[1000] parameter(0)
        %a = f32[1000] negate(%x)
        %v = f32[10,100] bitcast(%a)
        %b = f32[500] slice(%a), slice={[0:500]}
        %c = f32[500] tanh(%b)
        %d = f32[10,100] exponential(%v)
        ROOT %r = (f32[500], f32[10,100]) tuple(%c, %d)
        """,
        attributes=SCHEDULED,
    ).graph
    assert peak(graph) == 4000 + 2000 + 4000  # a through its view, c, and d


def test_lines_may_stand_in_any_order_unless_they_are_a_schedule() -> None:
    entry = """
        ROOT %r = f32[4] add(%a, %b)
        %b = f32[4] tanh(%a)
        %a = f32[4] negate(%x)
        %x = f32[4] parameter(0)
    """
    result = imported(entry)
    assert result.graph.op_names == ("a", "b", "r")
    assert "not a schedule" in result.report.notes[0]
    with pytest.raises(ImportFailedError, match=r"line 5: %r reads what a later line defines"):
        imported(entry, attributes=SCHEDULED)


def test_a_cycle_is_shown() -> None:
    with pytest.raises(ImportFailedError, match="%main has a cycle: %b -> %c -> %a -> %b"):
        imported("""
            %x = f32[4] parameter(0)
            %a = f32[4] add(%x, %c)
            %b = f32[4] negate(%a)
            ROOT %c = f32[4] tanh(%b)
        """)


# --- Calls, loops, branches


def test_calls_are_inlined_wherever_they_stand() -> None:
    result = imported(
        """
        %x = f32[8] parameter(0)
        %p = f32[8] call(%x), to_apply=%outer
        ROOT %r = f32[8] call(%p), to_apply=%outer
        """,
        """%inner (a: f32[8]) -> f32[8] {
          %a = f32[8] parameter(0)
          ROOT %b = f32[8] negate(%a)
        }
        %outer (c: f32[8]) -> f32[8] {
          %c = f32[8] parameter(0)
          %d = f32[8] call(%c), to_apply=%inner
          ROOT %e = f32[8] tanh(%d)
        }
        """,
    )
    assert result.graph.op_names == ("b", "e", "b", "e")
    assert result.report.folded["call"] == 4
    assert [len(result.graph.inputs(o)) for o in range(4)] == [1] * 4


LOOP = """%condition (s: (s32[], f32[100], f32[100], f32[50])) -> pred[] {
  %s = (s32[], f32[100], f32[100], f32[50]) parameter(0)
  %i = s32[] get-tuple-element(%s), index=0
  %n = s32[] constant(7)
  ROOT %go = pred[] compare(%i, %n), direction=LT
}
%body (t: (s32[], f32[100], f32[100], f32[50])) -> (s32[], f32[100], f32[100], f32[50]) {
  %t = (s32[], f32[100], f32[100], f32[50]) parameter(0)
  %j = s32[] get-tuple-element(%t), index=0
  %one = s32[] constant(STEP)
  %next = s32[] add(%j, %one)
  %h = f32[100] get-tuple-element(%t), index=1
  %w = f32[100] get-tuple-element(%t), index=2
  %k = f32[50] get-tuple-element(%t), index=3
  %wide = f32[400] broadcast(%h), dimensions={0}
  %g = f32[100] slice(%wide), slice={[0:100]}
  %m = f32[100] multiply(%g, %w)
  ROOT %u = (s32[], f32[100], f32[100], f32[50]) tuple(%next, %m, %w, %k)
}
""".replace("broadcast(%h), dimensions={0}", "concatenate(%h, %h, %h, %h), dimensions={0}")
RUN = """
    %zero = s32[] constant(0)
    %x = f32[100] parameter(0)
    %v = f32[100] parameter(1)
    %q = f32[50] parameter(2)
    %h0 = f32[100] negate(%x)
    %state = (s32[], f32[100], f32[100], f32[50]) tuple(%zero, %h0, %v, %q)
    %loop = (s32[], f32[100], f32[100], f32[50]) while(%state), condition=%condition, body=%bodyCONFIG
    %y = f32[100] get-tuple-element(%loop), index=1
    %same = f32[100] get-tuple-element(%loop), index=2
    ROOT %r = f32[100] add(%y, %same)
"""
BODY_FLOPS, CONDITION_FLOPS = 100 + 1, 1
BODY_BYTES = (4 + 4 + 4) + (4 * 400 + 1600) + 2 * 400 + 3 * 400
CONDITION_BYTES = 4 + 4 + 1


@pytest.mark.parametrize(
    ("step", "configuration", "turns"),
    [
        ("1", "", 7),
        ("2", "", 4),
        ("1", ', backend_config={"known_trip_count":{"n":"5"}}', 5),
        ("0", "", None),
    ],
)
def test_a_loop_is_one_op_of_all_its_turns(step: str, configuration: str, turns: int | None) -> None:
    result = imported(RUN.replace("CONFIG", configuration), LOOP.replace("STEP", step))
    graph = result.graph
    times = 1 if turns is None else turns
    loop = op(graph, "loop")
    assert graph.op_flops[loop] == times * (BODY_FLOPS + CONDITION_FLOPS)
    assert graph.op_accessed_bytes[loop] == times * (BODY_BYTES + CONDITION_BYTES)
    said = f"{turns} turns" if turns is not None else "an unknown number of turns, counted as one"
    assert f"one op of {said} of {BODY_FLOPS} flops" in result.report.subgraphs[0]
    # what the body leaves alone keeps its tensor
    assert reads(graph, "r") == ["loop:1", "v"]
    assert writes(graph, "loop") == ["loop:0", "loop:1"]
    # the wide tensor with its part; what comes out of the body is the loop's own result
    assert graph.op_workspace_bytes[loop] == 1600 + 400


def test_a_scheduled_loop_works_in_the_storage_of_its_state() -> None:
    graph = imported(RUN.replace("CONFIG", ""), LOOP.replace("STEP", "1"), SCHEDULED).graph
    assert reads(graph, "r") == ["h0", "loop:end", "v"]
    assert graph.tensor_bytes[graph.tensor_names.index("loop:end")] == 0
    assert writes(graph, "loop") == ["loop:0", "loop:end"]  # the counter began in a constant
    assert peak(graph) == 400 + 4 + 2000  # h0, the counter, the workspace of a turn


def test_loops_within_loops_multiply_and_work_in_the_same_storage() -> None:
    state = "(s32[], f32[100])"

    def loop(level: int, turns: int, work: str) -> str:
        return f"""%c{level} (p: {state}) -> pred[] {{
          %p = {state} parameter(0)
          %i = s32[] get-tuple-element(%p), index=0
          %n = s32[] constant({turns})
          ROOT %go = pred[] compare(%i, %n), direction=LT
        }}
        %b{level} (q: {state}) -> {state} {{
          %q = {state} parameter(0)
          %j = s32[] get-tuple-element(%q), index=0
          %one = s32[] constant(1)
          %next = s32[] add(%j, %one)
          %h = f32[100] get-tuple-element(%q), index=1
          {work}
          ROOT %r = {state} tuple(%next, %m)
        }}
        """

    inner = loop(0, 5, "%m = f32[100] negate(%h)")
    nest = f"""%zero = s32[] constant(0)
          %start = {state} tuple(%zero, %h)
          %w = {state} while(%start), condition=%c0, body=%b0
          %m = f32[100] get-tuple-element(%w), index=1"""
    entry = f"""
        %x = f32[100] parameter(0)
        %zero = s32[] constant(0)
        %h = f32[100] tanh(%x)
        %start = {state} tuple(%zero, %h)
        %w = {state} while(%start), condition=%c1, body=%b1
        ROOT %m = f32[100] get-tuple-element(%w), index=1
    """
    functions = inner + loop(1, 3, nest)
    for attributes, peak_bytes in ((SCHEDULED, 400 + 4 + 4), ("", 2 * 400 + 4 + 4)):
        result = imported(entry, functions, attributes)
        graph = result.graph
        assert graph.op_flops.tolist() == [100, 3 * (1 + 1 + 5 * (100 + 1 + 1))]
        assert [text.split(" of")[0] for text in result.report.subgraphs] == ["while w: one op"] * 2
        assert peak(graph) == peak_bytes  # the state, the counters of both loops; a copy without a schedule


def test_branches_are_one_op_of_the_larger() -> None:
    text = """
        %p = pred[] parameter(0)
        %x = f32[64,64] parameter(1)
        ROOT %r = f32[64,64] conditional(%p, %x, %x), true_computation=%square, false_computation=%wave
    """
    functions = """%square (a: f32[64,64]) -> f32[64,64] {
      %a = f32[64,64] parameter(0)
      %b = f32[64,64] negate(%a)
      ROOT %c = f32[64,64] dot(%b, %a), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    }
    %wave (d: f32[64,64]) -> f32[64,64] {
      %d = f32[64,64] parameter(0)
      ROOT %e = f32[64,64] sine(%d)
    }
    """
    result = imported(text, functions)
    assert result.graph.op_flops.tolist() == [2 * 64**3 + 64**2]
    assert result.graph.op_workspace_bytes.tolist() == [64 * 64 * 4]
    assert result.report.subgraph_policy == "opaque"
    assert result.report.subgraphs == (
        "conditional r: one op of 528,384 flops, those of the larger of 2 branches",
    )
    by_index = text.replace(
        "true_computation=%square, false_computation=%wave", "branch_computations={%square, %wave}"
    ).replace("pred[]", "s32[]")
    assert imported(by_index, functions).graph.op_flops.tolist() == [2 * 64**3 + 64**2]
    with pytest.raises(ImportFailedError, match="loops or branches: conditional r"):
        imported(text, functions, subgraphs="reject")
    with pytest.raises(UnknownIdError, match="did you mean inline"):
        imported(text, functions, subgraphs="inlin")


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
