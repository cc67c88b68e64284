"""The built-in example graphs: what they are, and that there is something to decide on them."""

import numpy as np
import pytest

from opgym.datasets import example
from opgym.errors import UnknownIdError
from opgym.graphs import Cluster, Graph
from opgym.problems import Placement, PlacementProblem


@pytest.mark.parametrize("name", example.ids())
def test_ids_load_with_and_without_prefix(name: str) -> None:
    assert name.startswith("example/")
    assert example.load(name) == example.load(name.removeprefix("example/"))
    assert example.load(name).name == name.removeprefix("example/")


def test_unknown_example() -> None:
    with pytest.raises(UnknownIdError, match="did you mean example/rnn-train"):
        example.load("rnn-tain")


def by_layer(graph: Graph, second_device: set[str]) -> Placement:
    """Some layers on device 1, the others on device 0."""
    return Placement(np.array([int(graph.layers[layer] in second_device) for layer in graph.op_layer]))


def test_recurrent_training_step() -> None:
    graph = example.load("rnn-train")
    assert graph.num_ops == 76
    assert graph.num_groups == 3  # each weight with its update
    kinds = {kind: int((graph.op_kind == i).sum()) for i, kind in enumerate(graph.kinds)}
    assert kinds == {
        "variable": 3, "SGD": 3, "MatMul": 13, "Tanh": 12, "TanhGrad": 12, "MatMulGradWeight": 13,
        "MatMulGrad": 12, "Add": 5, "AddN": 2, "SoftmaxCrossEntropy": 1,
    }  # fmt: skip
    assert graph.layers == ("rnn/layer0", "rnn/layer1", "output")
    cells = 2 * 6 * (2 * 64 * 4096 * 2048)
    forward = int(graph.op_flops[graph.op_direction == 0].sum())
    assert forward == cells + 2 * 64 * 2048 * 8192 + 12 * 64 * 2048 + 8 * 64 * 8192
    updates = np.flatnonzero(graph.op_update_of >= 0)
    assert len(updates) == 3
    assert all(graph.kind(int(graph.op_update_of[op])) == "variable" for op in updates)
    assert all(graph.op_group[op] == graph.op_group[graph.op_update_of[op]] for op in updates)


def test_gradients_reach_every_weight_and_every_step() -> None:
    """Every forward op that depends on a weight has a path from the loss back into that weight's update."""
    graph = example.load("rnn-train")
    reaches_update = np.zeros(graph.num_ops, bool)
    reaches_update[graph.op_update_of >= 0] = True
    producer, consumer, _ = graph.edges
    for u, v in zip(producer[::-1], consumer[::-1], strict=True):  # descending by consumer
        reaches_update[u] |= reaches_update[v]
    loss = int(np.flatnonzero(graph.op_kind == graph.kinds.index("SoftmaxCrossEntropy"))[0])
    assert reaches_update[loss]
    dead = [graph.op_names[op] for op in np.flatnonzero(~reaches_update)]
    assert dead == []


def test_smaller_and_larger_recurrent_steps() -> None:
    assert example.rnn_train(steps=5).num_ops == 65
    assert example.rnn_train(layers=3, steps=10).num_ops > 150


@pytest.mark.parametrize(
    ("name", "second_device"),
    [("rnn-train", {"rnn/layer1", "output"}), ("two-branch", {f"right/layer{i}" for i in range(3)})],
)
@pytest.mark.parametrize("cluster", ["2xP100", "2xP100@nvlink"])
def test_two_devices_beat_one(name: str, second_device: set[str], cluster: str) -> None:
    graph = example.load(name)
    problem = PlacementProblem(graph, Cluster.parse(cluster))
    alone = problem.evaluate(by_layer(graph, set()))
    together = problem.evaluate(by_layer(graph, second_device))
    assert alone.ok
    assert together.ok
    assert alone.value == problem.cost_ns[:, 0].sum()
    assert together.value < 0.85 * alone.value


def test_two_branches() -> None:
    graph = example.load("two-branch")
    assert graph.num_ops == 16
    assert graph.layers == (
        "stem", *(f"left/layer{i}" for i in range(3)), *(f"right/layer{i}" for i in range(3)), "head",
    )  # fmt: skip
    assert int(graph.tensor_is_output.sum()) == 1
