"""A model written in another order of its nodes: legal, the order wanted, and the same results when it runs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto

from opgym import agents, datasets
from opgym.errors import ImportFailedError, InvalidSolutionError
from opgym.graphs.readers import Imported, read
from opgym.graphs.readers.onnx import read_onnx
from opgym.graphs.writers.onnx import write_onnx, write_reordered_onnx
from opgym.problems import Budget, Order, SchedulingProblem

from . import onnx_files
from .onnx_files import BOOL, FLOAT, INT64, array, body, model, node, small_net
from .test_onnx_writer import metadata, random_schedule


def weights(seed: int, **shapes: Sequence[int]) -> list[TensorProto]:
    rng = np.random.default_rng(seed)
    return [array(name, rng.normal(size=shape) / 4) for name, shape in shapes.items()]


def residual_branches() -> ModelProto:
    """Blocks of two branches beside a skip connection; views and constants among them."""
    nodes, source = [], "x"
    for i in range(3):
        nodes += [
            node("Conv", [source, f"a{i}"], [f"left{i}"], pads=[1, 1, 1, 1]),
            node("Conv", [source, f"b{i}"], [f"wide{i}"]),
            node("Relu", [f"wide{i}"], [f"right{i}"]),
            node("Conv", [f"right{i}", f"c{i}"], [f"narrow{i}"]),
            node("Add", [f"left{i}", f"narrow{i}"], [f"sum{i}"]),
            node("Constant", [], [f"half{i}"], value_float=0.5),
            node("Mul", [f"sum{i}", f"half{i}"], [f"scaled{i}"]),
            node("Add", [source, f"scaled{i}"], [f"out{i}"]),
        ]
        source = f"out{i}"
    nodes += [
        node("Constant", [], ["flat"], value_ints=[1, -1]),
        node("Reshape", [source, "flat"], ["v"]),
        node("Gemm", ["v", "w", "bias"], ["y"]),
    ]
    filters = {f"{n}{i}": s for i in range(3) for n, s in
               (("a", (4, 4, 3, 3)), ("b", (16, 4, 1, 1)), ("c", (4, 16, 1, 1)))}  # fmt: skip
    return model(
        nodes, [("x", FLOAT, [1, 4, 6, 6])], [("y", FLOAT, [1, 10])],
        weights(1, **filters, w=(144, 10), bias=(10,)),
    )  # fmt: skip


def branches_by_condition() -> ModelProto:
    """An If whose branches take tensors and weights from around them, and whose condition is an input."""
    then = body(
        [node("MatMul", ["h", "w"], ["p"]), node("Tanh", ["p"], ["t"])], [], [("t", FLOAT, [4, 4])],
        weights(2, unused=(1,)),
    )  # fmt: skip
    other = body([node("Sub", ["h", "k"], ["n"])], [], [("n", FLOAT, [4, 4])])
    return model(
        [
            node("Abs", ["x"], ["k"]),
            node("Relu", ["x"], ["h"]),
            node("Exp", ["k"], ["e"]),
            node("If", ["flag"], ["chosen"], then_branch=then, else_branch=other),
            node("Neg", ["h"], ["m"]),
            node("Sum", ["chosen", "e", "m"], ["y"]),
        ],
        [("x", FLOAT, [4, 4]), ("flag", BOOL, [])],
        [("y", FLOAT, [4, 4])],
        weights(3, w=(4, 4)),
    )


def several_outputs() -> ModelProto:
    """Split, TopK and an LSTM: outputs that are read late, never, or left out."""
    return model(
        [
            node("Split", ["x", "sizes"], ["a", "b", "c"], axis=2),
            node("LSTM", ["a", "W", "R"], ["", "last", "cell"], hidden_size=3),
            node("TopK", ["b", "two"], ["best", "where"], axis=2),
            node("Cast", ["where"], ["place"], to=FLOAT),
            node("ReduceMean", ["c"], ["mean"], keepdims=1),
            node("Add", ["best", "place"], ["d"]),
            node("ReduceMax", ["cell"], ["largest"], keepdims=1),
            node("Mul", ["d", "mean"], ["y"]),
            node("Add", ["largest", "mean"], ["z"]),
        ],
        [("x", FLOAT, [5, 2, 12])],
        [("y", FLOAT, [5, 2, 2]), ("z", FLOAT, [1, 1, 1]), ("last", FLOAT, [1, 2, 3])],
        [*weights(4, W=(1, 12, 4), R=(1, 12, 3)), array("sizes", [4, 4, 4], np.int64),
         array("two", [2], np.int64)],
    )  # fmt: skip


def shapes_on_the_way() -> ModelProto:
    """A reshape to a shape that is computed from a tensor which is not on the way to its result otherwise."""
    return model(
        [
            node("Exp", ["x"], ["gives"]),
            node("Shape", ["gives"], ["s"]),
            node("Gather", ["s", "first"], ["rows"]),
            node("Concat", ["rows", "rest"], ["target"], axis=0),
            node("Neg", ["u"], ["n"]),
            node("Reshape", ["n", "target"], ["v"]),
            node("MatMul", ["v", "w"], ["y"]),
            node("Dropout", ["gives"], ["same"]),
            node("Abs", ["same"], ["z"]),
        ],
        [("x", FLOAT, [3, 2]), ("u", FLOAT, [12])],
        [("y", FLOAT, [3, 5]), ("z", FLOAT, [3, 2])],
        [*weights(5, w=(4, 5)), array("first", [0], np.int64), array("rest", [4], np.int64)],
    )


MODELS = {
    f.__name__: f for f in (residual_branches, branches_by_condition, several_outputs, shapes_on_the_way)
}


def example_inputs(proto: ModelProto, seed: int = 0) -> dict[str, np.ndarray]:
    given = {tensor.name for tensor in proto.graph.initializer}
    rng, feeds = np.random.default_rng(seed), {}
    for info in proto.graph.input:
        if info.name in given:
            continue
        kind = info.type.tensor_type
        shape = [d.dim_value for d in kind.shape.dim]
        dtype = {FLOAT: np.float32, BOOL: bool, INT64: np.int64}[kind.elem_type]
        feeds[info.name] = np.asarray(rng.normal(size=shape) > 0 if dtype is bool else rng.normal(size=shape))
        feeds[info.name] = feeds[info.name].astype(dtype)
    return feeds


def results(proto: ModelProto, feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
    """What ONNX Runtime computes, without optimizations that would depend on the order of nodes."""
    runtime = pytest.importorskip("onnxruntime", reason="the extra opgym[dev] is not installed")
    options = runtime.SessionOptions()
    options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    session = runtime.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return list(session.run(None, feeds))


def reordered(imported: Imported, order: np.ndarray, tmp_path: Path) -> tuple[ModelProto, np.ndarray]:
    path = tmp_path / "reordered.onnx"
    stored = write_reordered_onnx(path, imported, order)
    onnx.checker.check_model(str(path), full_check=True)
    return onnx.load(str(path)), stored


def differs(a: ModelProto, b: ModelProto) -> bool:
    """Whether two models differ in more than the order of their nodes."""
    rest = []
    for proto in (a, b):
        copy = ModelProto()
        copy.CopyFrom(proto)
        nodes = sorted(n.SerializeToString(deterministic=True) for n in copy.graph.node)
        del copy.graph.node[:]
        rest.append((nodes, copy.SerializeToString(deterministic=True)))
    return rest[0] != rest[1]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", MODELS)
def test_any_order_gives_the_same_outputs_and_the_peak_that_was_promised(
    name: str, seed: int, tmp_path: Path
) -> None:
    proto = MODELS[name]()
    imported = read(onnx_files.save(proto, tmp_path))
    order = random_schedule(imported.graph, seed)
    written, stored = reordered(imported, order, tmp_path)
    assert not differs(written, proto)
    problem = SchedulingProblem(imported.graph)
    again = SchedulingProblem(read(tmp_path / "reordered.onnx").graph)
    assert [again.graph.op_names[op] or again.graph.kind(op) for op in again.ops] == [
        imported.graph.op_names[op] or imported.graph.kind(op) for op in stored
    ]
    assert again.reference_bytes == problem.evaluate(Order(stored)).value
    if name != "shapes_on_the_way":
        assert stored.tolist() == order.tolist()
    feeds = example_inputs(proto, seed)
    for old, new in zip(results(proto, feeds), results(written, feeds), strict=True):
        assert np.array_equal(old, new)
        assert old.any()


def test_the_example_with_shapes_has_ops_that_the_file_needs_earlier(tmp_path: Path) -> None:
    imported = read_onnx(shapes_on_the_way())
    assert [imported.graph.kind(op) for op in range(4)] == ["Exp", "Neg", "MatMul", "Abs"]
    _, stored = reordered(imported, np.array([1, 2, 0, 3]), tmp_path)
    assert stored.tolist() == [1, 0, 2, 3]  # the product's operand is reshaped as the exponential says


@pytest.mark.parametrize("name", ["shufflenet", "squeezenet", "inception_v1"])
def test_real_models(name: str, tmp_path: Path) -> None:
    imported = datasets.read(f"onnx-light/{name}")
    problem = SchedulingProblem(imported.graph)
    result = agents.make("random-order").solve(problem, Budget(20), np.random.default_rng(1))
    written, stored = reordered(imported, result.solution.op, tmp_path)
    assert stored.tolist() == result.solution.op.tolist() != problem.ops.tolist()
    assert SchedulingProblem(read(tmp_path / "reordered.onnx").graph).reference_bytes == result.outcome.value
    original = onnx.load(str(imported.origin.source))  # type: ignore[union-attr]
    assert not differs(written, original)
    feeds = example_inputs(original)
    for old, new in zip(results(original, feeds), results(written, feeds), strict=True):
        assert np.array_equal(old, new)
        assert np.isfinite(old).all()


def nodes_that_ran(
    proto: ModelProto, feeds: dict[str, np.ndarray], order: str, level: str, folder: Path
) -> list[str]:
    """Names of nodes in the order in which ONNX Runtime ran them, by its profile."""
    runtime = pytest.importorskip("onnxruntime", reason="the extra opgym[dev] is not installed")
    options = runtime.SessionOptions()
    options.execution_order = getattr(runtime.ExecutionOrder, order)
    options.graph_optimization_level = getattr(runtime.GraphOptimizationLevel, level)
    options.enable_profiling = True
    options.profile_file_prefix = str(folder / "profile")
    session = runtime.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
    session.run(None, feeds)
    events: list[dict[str, Any]] = json.loads(Path(session.end_profiling()).read_text())
    kernels = [event for event in events if event["name"].endswith("_kernel_time")]
    return [event["name"].removesuffix("_kernel_time") for event in sorted(kernels, key=lambda e: e["ts"])]


@pytest.mark.parametrize("seed", range(3))
def test_onnx_runtime_follows_the_file_if_it_is_told_to(seed: int, tmp_path: Path) -> None:
    """What docs/cli.md says of execution_order and of optimizations."""
    proto = residual_branches()
    for i, n in enumerate(proto.graph.node):
        n.name = f"node{i}"
    imported = read_onnx(proto)
    written, _ = reordered(imported, random_schedule(imported.graph, seed), tmp_path)
    expected, feeds = [n.name for n in written.graph.node if n.op_type != "Constant"], example_inputs(proto)
    assert nodes_that_ran(written, feeds, "PRIORITY_BASED", "ORT_DISABLE_ALL", tmp_path) == expected
    ran = nodes_that_ran(written, feeds, "PRIORITY_BASED", "ORT_ENABLE_BASIC", tmp_path)
    left = [name for name in expected if name in ran]
    assert [name for name in ran if name in expected] == left
    assert len(left) > 15
    other = nodes_that_ran(written, feeds, "DEFAULT", "ORT_DISABLE_ALL", tmp_path)
    assert sorted(other) == sorted(expected)
    assert other != expected


def test_numbers_of_an_earlier_export_are_dropped(tmp_path: Path) -> None:
    """A placed model keeps its devices; numbers of ops would make a reader undo the order."""
    source = read_onnx(residual_branches())
    write_onnx(tmp_path / "placed.onnx", source, np.zeros(source.graph.num_ops, int))
    imported = read(tmp_path / "placed.onnx")
    order = random_schedule(imported.graph, 5)
    written, _ = reordered(imported, order, tmp_path)
    assert metadata(written, "opgym.op") == metadata(written, "opgym.order") == []
    assert metadata(written, "opgym.device") == ["0"] * len(written.graph.node)
    problem = SchedulingProblem(imported.graph)
    assert SchedulingProblem(read_onnx(written).graph).reference_bytes == problem.evaluate(Order(order)).value


def test_functions_and_external_weights(tmp_path: Path) -> None:
    weight = TensorProto(name="w", data_type=FLOAT, dims=[4, 4], data_location=TensorProto.EXTERNAL)
    weight.external_data.add(key="location", value="w.bin")
    proto = model(
        [node("Twice", ["x"], ["h"], domain="local"), node("Neg", ["x"], ["n"]),
         node("MatMul", ["h", "w"], ["m"]), node("Add", ["m", "n"], ["y"])],
        [("x", FLOAT, [4, 4])], [("y", FLOAT, [4, 4])], [weight], domains={"local": 1},
    )  # fmt: skip
    opsets = [onnx.helper.make_opsetid("", 18)]
    function = [node("Relu", ["a"], ["r"]), node("Add", ["r", "r"], ["b"])]
    proto.functions.append(onnx.helper.make_function("local", "Twice", ["a"], ["b"], function, opsets))
    home, target = tmp_path / "home", tmp_path / "target"
    home.mkdir(), target.mkdir()
    (home / "w.bin").write_bytes(np.arange(16, dtype=np.float32).tobytes())
    imported = read(onnx_files.save(proto, home))
    order = np.array([2, 0, 1, 3, 4])
    with pytest.raises(InvalidSolutionError, match=r"w.bin holds weights of the model"):
        write_reordered_onnx(home / "w.bin", imported, order)
    written, stored = reordered(imported, order, target)
    assert stored.tolist() == order.tolist()
    assert [n.op_type for n in written.graph.node] == ["Neg", "Relu", "Add", "MatMul", "Add"]
    assert (target / "w.bin").read_bytes() == (home / "w.bin").read_bytes()
    feeds = example_inputs(proto)
    old = results(onnx.load(str(home / "model.onnx")), feeds)
    assert np.array_equal(old[0], results(written, feeds)[0])


def test_inlined_branches(tmp_path: Path) -> None:
    """The condition is a weight: the branch that is taken is ordered op by op."""
    proto = branches_by_condition()
    del proto.graph.input[1]
    proto.graph.initializer.append(array("flag", True, bool))
    imported = read(onnx_files.save(proto, tmp_path), subgraphs="inline")
    order = random_schedule(imported.graph, 0)
    written, stored = reordered(imported, order, tmp_path)
    kinds = [n.op_type for n in written.graph.node]
    assert {"MatMul", "Tanh"} < set(kinds)
    assert "If" not in kinds
    assert stored.tolist() == order.tolist()
    [old], [new] = results(proto, example_inputs(proto)), results(written, example_inputs(proto))
    assert np.array_equal(old, new)


def test_what_does_not_fit_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    imported = read(onnx_files.save(small_net(), tmp_path))
    path = tmp_path / "out.onnx"
    for order, message in (
        (np.array([0, 1]), r"order is int64\(2,\); expected \(3,\)"),
        (np.array([0, 0, 1]), "every op once"),
        (np.array([1, 0, 2]), "before op 0"),
        (np.array([0.0, 1.0, 2.0]), "order is float64"),
    ):
        with pytest.raises(InvalidSolutionError, match=message):
            write_reordered_onnx(path, imported, order)
    with pytest.raises(InvalidSolutionError, match="is the model that was read"):
        write_reordered_onnx(tmp_path / "model.onnx", imported, np.arange(3))
    with pytest.raises(ImportFailedError, match="was read from synthetic"):
        write_reordered_onnx(path, datasets.read("synthetic/er?n=50"), np.arange(50))
    assert [p.name for p in tmp_path.iterdir()] == ["model.onnx"]
