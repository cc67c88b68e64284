"""If, Loop, Scan and other ops with bodies, under each policy."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from opgym.errors import ImportFailedError, UnknownIdError
from opgym.graphs import Graph
from opgym.graphs.readers import Imported
from opgym.graphs.readers.onnx import read_onnx

from .onnx_files import BOOL, FLOAT, INT64, array, body, model, node


def reads(graph: Graph, op: int) -> list[str]:
    return [graph.tensor_names[t] for t in graph.inputs(op)]


def op_of(imported: Imported, kind: str) -> int:
    return next(op for op in range(imported.graph.num_ops) if imported.graph.kind(op) == kind)


def branching(*, constant: bool = False) -> onnx.ModelProto:
    """y = relu(x) @ w if flag else -relu(x), then abs(y); w belongs to the branch."""
    large = body(
        [node("MatMul", ["h", "w"], ["p"], name="product"), node("Tanh", ["p"], ["t"])],
        [],
        [("t", FLOAT, [4, 4])],
        [array("w", np.ones((4, 4)))],
    )
    small = body([node("Neg", ["h"], ["n"])], [], [("n", FLOAT, [4, 4])])
    nodes = [
        node("Relu", ["x"], ["h"]),
        node("If", ["flag"], ["y"], name="choice", then_branch=large, else_branch=small),
        node("Abs", ["y"], ["z"]),
    ]
    inputs: list[tuple[str, int, list[int | str | None] | None]] = [("x", FLOAT, [4, 4])]
    weights = []
    if constant:
        weights.append(array("flag", True, bool))
    else:
        inputs.append(("flag", BOOL, []))
    return model(nodes, inputs, [("z", FLOAT, [4, 4])], weights)


def test_an_opaque_if_counts_its_larger_branch_and_reads_what_the_branches_take() -> None:
    imported = read_onnx(branching())
    graph, op = imported.graph, op_of(imported, "If")
    assert graph.num_ops == 3
    assert graph.op_flops[op] == 2 * 16 * 4 + 16
    assert reads(graph, op) == ["flag", "h", "w"]
    assert graph.op_workspace_bytes[op] == 64  # p; t is the result
    assert graph.op_accessed_bytes[op] == 3 * 64 + 2 * 64
    assert imported.report.subgraph_policy == "opaque"
    (line,) = imported.report.subgraphs
    assert "If 'choice'" in line
    assert "then_branch" in line
    assert imported.report.ops + sum(imported.report.folded.values()) == 3


def test_inline_takes_the_branch_of_a_constant_condition_only() -> None:
    imported = read_onnx(branching(constant=True), subgraphs="inline")
    graph = imported.graph
    assert [graph.kind(op) for op in range(graph.num_ops)] == ["Relu", "MatMul", "Tanh", "Abs"]
    assert graph.op_flops.tolist() == [16, 2 * 16 * 4, 16, 16]
    assert any("replaced by their branch" in note for note in imported.report.notes)
    assert read_onnx(branching(), subgraphs="inline").graph == read_onnx(branching()).graph
    opaque = read_onnx(branching(constant=True))
    assert opaque.graph.num_ops == 3
    assert "then_branch is taken" in opaque.report.subgraphs[0]


def test_reject_names_the_ops() -> None:
    with pytest.raises(ImportFailedError, match=r"1 ops have subgraphs.*If 'choice'"):
        read_onnx(branching(), subgraphs="reject")
    with pytest.raises(UnknownIdError, match="did you mean inline"):
        read_onnx(branching(), subgraphs="inlin")


def test_nested_and_sibling_ifs_are_inlined_without_name_clashes() -> None:
    """Both branches of both Ifs use the same inner names, which ONNX allows; one If nests another."""

    def inner(kind: str, source: str) -> onnx.GraphProto:
        return body([node(kind, [source], ["t"]), node("Relu", ["t"], ["r"])], [], [("r", FLOAT, [2])])

    nested = body(
        [node("If", ["yes"], ["q"], then_branch=inner("Exp", "a"), else_branch=inner("Log", "a"))],
        [],
        [("q", FLOAT, [2])],
    )
    nodes = [
        node("If", ["yes"], ["a"], then_branch=inner("Neg", "x"), else_branch=inner("Abs", "x")),
        node("If", ["no"], ["b"], then_branch=inner("Sin", "a"), else_branch=nested),
        node("Add", ["a", "b"], ["z"]),
    ]
    proto = model(
        nodes,
        [("x", FLOAT, [2])],
        [("z", FLOAT, [2])],
        [array("yes", True, bool), array("no", [False], bool)],
    )
    imported = read_onnx(proto, subgraphs="inline")
    graph = imported.graph
    assert [graph.kind(op) for op in range(graph.num_ops)] == ["Neg", "Relu", "Exp", "Relu", "Add"]
    assert [len(graph.consumers(t)) for t in range(graph.num_tensors)] == [1, 1, 2, 1, 1, 0]
    assert imported.origin is not None
    assert [dict(r) for r in imported.origin.spliced] == [
        {0: "then_branch", 1: "else_branch"},
        {3: "then_branch"},
    ]


def test_a_condition_from_a_shape_is_constant() -> None:
    """torch exports squeeze(dim) as an If on the dimension; the branch not taken need not fit."""
    squeeze = body(
        [node("Squeeze", ["x", "axis"], ["s"])], [], [("s", FLOAT, None)], [array("axis", [1], np.int64)]
    )
    keep = body([node("Identity", ["x"], ["i"])], [], [("i", FLOAT, None)])
    nodes = [
        node("Shape", ["x"], ["shape"], start=1, end=2),
        node("Equal", ["shape", "one"], ["is_one"]),
        node("If", ["is_one"], ["y"], then_branch=squeeze, else_branch=keep),
        node("Relu", ["y"], ["z"]),
    ]
    proto = model(nodes, [("x", FLOAT, [4, "n"])], [("z", FLOAT, None)], [array("one", [1], np.int64)])
    for n, shape in ((1, (4,)), (3, (4, 3))):
        inlined = read_onnx(proto, dims={"n": n}, subgraphs="inline", strict=True)
        assert inlined.graph.num_ops == 1
        assert inlined.graph.shape(1) == shape
        opaque = read_onnx(proto, dims={"n": n}, strict=True).graph
        assert [opaque.kind(op) for op in range(2)] == ["If", "Relu"]
        assert opaque.shape(opaque.num_tensors - 1) == shape
    assert "then_branch is left out" in read_onnx(proto, dims={"n": 3}).report.subgraphs[0]


def test_branches_of_different_shapes_give_the_larger_with_a_remark() -> None:
    then = body([node("Concat", ["x", "x"], ["c"], axis=0)], [], [("c", FLOAT, None)])
    other = body([node("Neg", ["x"], ["n"])], [], [("n", FLOAT, None)])
    proto = model(
        [node("If", ["flag"], ["y"], then_branch=then, else_branch=other), node("Relu", ["y"], ["z"])],
        [("x", FLOAT, [3]), ("flag", BOOL, [])],
        [("z", FLOAT, None)],
    )
    imported = read_onnx(proto, strict=True)
    assert imported.graph.tensor_bytes[-2:].tolist() == [24, 24]
    assert "largest possible shape taken for y" in imported.report.subgraphs[0]


def looping(trips: int | None, *, stays: bool = True) -> onnx.ModelProto:
    """A loop that multiplies its state by an outer weight and collects it."""
    inner = body(
        [
            node("MatMul", ["s", "w"], ["m"]),
            node("Tanh", ["m"], ["next"]),
            node("Identity", ["going" if stays else "flip"], ["on"]),
        ]
        + (
            []
            if stays
            else [node("ReduceMax", ["next"], ["big"], keepdims=0), node("Less", ["big", "limit"], ["flip"])]
        ),
        [("i", INT64, []), ("going", BOOL, []), ("s", FLOAT, None)],
        [("on", BOOL, []), ("next", FLOAT, None), ("next", FLOAT, None)],
    )
    nodes = [
        node("Loop", ["trips", "", "x"], ["last", "all"], name="loop", body=inner),
        node("Relu", ["all"], ["z"]),
    ]
    inputs: list[tuple[str, int, list[int | str | None] | None]] = [("x", FLOAT, [2, 4])]
    weights = [array("w", np.ones((4, 4))), array("limit", 9.0)]
    if trips is None:
        inputs.append(("trips", INT64, []))
    else:
        weights.append(array("trips", trips, np.int64))
    return model(nodes, inputs, [("z", FLOAT, None), ("last", FLOAT, None)], weights)


def test_a_loop_with_known_trips_is_counted_so_often() -> None:
    imported = read_onnx(looping(7), strict=True)
    graph, op = imported.graph, op_of(imported, "Loop")
    assert graph.op_flops[op] == 7 * (2 * 8 * 4 + 8)
    assert reads(graph, op) == ["trips", "x", "w"]
    assert [graph.shape(t) for t in graph.outputs(op)] == [(2, 4), (7, 2, 4)]
    assert "counted 7 times" in imported.report.subgraphs[0]


def test_a_loop_that_may_end_early_is_counted_at_its_most() -> None:
    imported = read_onnx(looping(7, stays=False), strict=True)
    op = op_of(imported, "Loop")
    assert imported.graph.op_flops[op] == 7 * (2 * 8 * 4 + 8 + 8 + 1)
    assert "the most it may run" in imported.report.subgraphs[0]
    assert "limit" in reads(imported.graph, op)


@pytest.mark.parametrize("trips", [None, 2**63 - 1])
def test_a_loop_with_unknown_trips_says_so(trips: int | None) -> None:
    imported = read_onnx(looping(trips))
    assert imported.graph.op_flops[op_of(imported, "Loop")] == 2 * 8 * 4 + 8
    assert "how often it runs is unknown" in imported.report.subgraphs[0]
    assert imported.report.missing_shape == ("all", "z")


def test_a_scan_runs_over_its_sequence() -> None:
    inner = body(
        [node("Add", ["s", "e"], ["next"]), node("Neg", ["next"], ["out"])],
        [("s", FLOAT, None), ("e", FLOAT, None)],
        [("next", FLOAT, None), ("out", FLOAT, None)],
    )
    proto = model(
        [
            node(
                "Scan",
                ["start", "xs"],
                ["end", "outs"],
                body=inner,
                num_scan_inputs=1,
                scan_input_axes=[1],
                scan_output_axes=[-1],
            )
        ],
        [("start", FLOAT, [3]), ("xs", FLOAT, [3, 5])],
        [("end", FLOAT, None), ("outs", FLOAT, None)],
    )
    imported = read_onnx(proto, strict=True)
    graph = imported.graph
    assert graph.op_flops.tolist() == [5 * 6]
    assert [graph.shape(t) for t in graph.outputs(0)] == [(3,), (3, 5)]
    bad = model(
        [node("Scan", ["start", "xs"], ["end", "outs"], body=inner, num_scan_inputs=1, scan_input_axes=[4])],
        [("start", FLOAT, [3]), ("xs", FLOAT, [3, 5])],
        [("end", FLOAT, None)],
    )
    with pytest.raises(ImportFailedError, match="scans axis 4 of an input of rank 2"):
        read_onnx(bad)


def test_a_body_of_unknown_use_is_counted_once_and_listed() -> None:
    inner = body([node("Exp", ["e"], ["r"])], [("e", FLOAT, [2])], [("r", FLOAT, [2])])
    proto = model(
        [node("Custom", ["x"], ["y"], domain="acme", body=inner)],
        [("x", FLOAT, [2])],
        [("y", FLOAT, [2])],
        domains={"acme": 1},
    )
    imported = read_onnx(proto)
    assert imported.graph.op_flops.tolist() == [2]
    assert imported.report.missing_cost == {"acme.Custom": 1}
    assert "counted once" in imported.report.subgraphs[0]
    assert read_onnx(proto, costs={"acme.Custom": 50}, strict=True).graph.op_flops.tolist() == [50]


def test_a_view_of_something_outside_as_a_branch_is_an_input_of_the_op() -> None:
    keep = body([node("Identity", ["h"], ["k"])], [], [("k", FLOAT, [4])])
    proto = model(
        [node("Relu", ["x"], ["h"]), node("If", ["flag"], ["y"], then_branch=keep, else_branch=keep)],
        [("x", FLOAT, [4]), ("flag", BOOL, [])],
        [("y", FLOAT, [4])],
    )
    imported = read_onnx(proto)
    op = op_of(imported, "If")
    assert reads(imported.graph, op) == ["flag", "h"]
    assert imported.graph.op_flops[op] == 0


def test_what_a_body_computes_only_for_a_shape_costs_nothing() -> None:
    inner = body(
        [
            node("Exp", ["h"], ["e"]),
            node("Shape", ["e"], ["s"]),
            node("Neg", ["h"], ["n"]),
            node("Reshape", ["n", "s"], ["r"]),
        ],
        [],
        [("r", FLOAT, [4])],
    )
    proto = model(
        [node("If", ["flag"], ["y"], then_branch=inner, else_branch=inner)],
        [("h", FLOAT, [4]), ("flag", BOOL, [])],
        [("y", FLOAT, [4])],
    )
    assert read_onnx(proto).graph.op_flops.tolist() == [4]


def test_damaged_bodies_are_refused() -> None:
    proto = branching()
    del proto.graph.node[1].attribute[0]
    with pytest.raises(
        ImportFailedError, match="If 'choice' needs a condition, a then_branch and an else_branch"
    ):
        read_onnx(proto)
    proto = looping(3)
    del proto.graph.node[0].attribute[0].g.input[2]
    with pytest.raises(ImportFailedError, match="hands 3 inputs to a body that has 2"):
        read_onnx(proto)


# --- local functions


def with_functions(*functions: onnx.FunctionProto, call: str) -> onnx.ModelProto:
    proto = model(
        [node(call, ["x"], ["y"], domain="local", name="call")],
        [("x", FLOAT, [2, 2])],
        [("y", FLOAT, [2, 2])],
        domains={"local": 1},
    )
    proto.functions.extend(functions)
    return proto


def function(name: str, nodes: list[onnx.NodeProto]) -> onnx.FunctionProto:
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("local", 1)]
    return helper.make_function("local", name, ["a"], ["b"], nodes, opsets)


def test_local_functions_are_inlined() -> None:
    twice = function(
        "Twice", [node("Once", ["a"], ["t"], domain="local"), node("Once", ["t"], ["b"], domain="local")]
    )
    once = function("Once", [node("Relu", ["a"], ["r"]), node("Neg", ["r"], ["b"])])
    imported = read_onnx(with_functions(twice, once, call="Twice"), strict=True)
    graph = imported.graph
    assert [graph.kind(op) for op in range(graph.num_ops)] == ["Relu", "Neg", "Relu", "Neg"]
    assert "2 local functions were inlined" in imported.report.notes


def test_a_function_of_another_opset_stays_an_op() -> None:
    other = helper.make_function(
        "local", "Old", ["a"], ["b"], [node("Relu", ["a"], ["b"])], [helper.make_opsetid("", 15)]
    )
    imported = read_onnx(with_functions(other, call="Old"))
    assert [imported.graph.kind(op) for op in range(imported.graph.num_ops)] == ["local.Old"]
    assert imported.report.missing_cost == {"local.Old": 1}
    assert "1 local functions of other opsets stay ops" in imported.report.notes


def test_functions_in_a_circle_or_without_measure_are_refused() -> None:
    there = function("There", [node("Back", ["a"], ["b"], domain="local")])
    back = function("Back", [node("There", ["a"], ["b"], domain="local")])
    with pytest.raises(ImportFailedError, match="call each other in a circle: Back, There"):
        read_onnx(with_functions(there, back, call="There"))
    bomb = [function("F0", [node("Relu", ["a"], ["b"])])]
    for i in range(1, 10):
        calls = [
            node(f"F{i - 1}", ["a" if k == 0 else f"t{k}"], ["b" if k == 9 else f"t{k + 1}"], domain="local")
            for k in range(10)
        ]
        bomb.append(function(f"F{i}", calls))
    with pytest.raises(ImportFailedError, match=r"expand to .* nodes; at most"):
        read_onnx(with_functions(*bomb, call="F9"))


def test_sequences_are_listed_as_of_unknown_size() -> None:
    nodes = [
        node("SplitToSequence", ["x"], ["parts"], axis=0),
        node("ConcatFromSequence", ["parts"], ["y"], axis=0),
    ]
    proto = model(nodes, [("x", FLOAT, [4, 2])], [("y", FLOAT, [4, 2])])
    imported = read_onnx(proto)
    assert imported.report.missing_shape == ("parts",)
    assert imported.graph.num_ops == 2
    assert imported.graph.tensor_bytes.tolist() == [32, 0, 32]


def test_a_sequence_as_an_input_is_accepted() -> None:
    proto = model(
        [node("SequenceAt", ["s", "i"], ["y"]), node("Relu", ["y"], ["z"])],
        [],
        [("z", FLOAT, [3])],
        [array("i", 0, np.int64)],
        value_info=[("y", FLOAT, [3])],
    )
    proto.graph.input.append(helper.make_tensor_sequence_value_info("s", TensorProto.FLOAT, [3]))
    imported = read_onnx(proto)
    assert imported.report.missing_shape == ("s",)
    assert imported.graph.shape(imported.graph.num_tensors - 1) == (3,)
