"""HLO text becomes the graph that XLA runs: names of storage are no ops, its order is the program order."""

from __future__ import annotations

import numpy as np
import pytest

from opgym.errors import ImportFailedError
from opgym.graphs import Graph

from .hlo_texts import ADD, SCHEDULED, imported, op, peak, reads, writes

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
