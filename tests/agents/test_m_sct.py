"""Favourite children, and devices that wait for them."""

from __future__ import annotations

import numpy as np
import pytest

from opgym import _core, agents
from opgym.agents.heuristics.favourite_children import favourite_children, only_children, op_edges
from opgym.agents.heuristics.list_planning import mean_cost_ns, mean_transfer_ns, mean_upward_rank
from opgym.datasets import example
from opgym.errors import InvalidProblemError
from opgym.graphs import Cluster, GraphBuilder
from opgym.problems import PlacementProblem
from opgym.problems.grouping import colocation_units

from ..problems.instances import accelerator, dag, problem

TWO = (accelerator(), accelerator())


def favourites(p: PlacementProblem) -> list[int]:
    return favourite_children(p.graph, mean_cost_ns(p), mean_transfer_ns(p)).tolist()


def test_the_child_on_the_critical_path_is_the_favourite():
    # a transfer of 50 before op 2 (which takes 100) would delay the end, one before op 1 (10) would not
    p = problem(dag({0: [], 1: [0], 2: [0]}, sizes=[50, 1, 1]), TWO, "step_time", [10, 10, 100])
    assert favourites(p) == [2, -1, -1]


def test_a_child_has_one_favourite_parent():
    # the output of op 1 comes later, so that one must not wait for a transfer
    p = problem(dag({0: [], 1: [], 2: [0, 1]}, sizes=[50, 50, 1]), TWO, "step_time", [10, 90, 10])
    assert favourites(p) == [-1, 2, -1]


def test_a_chain_consists_of_favourites():
    p = problem(dag({v: [v - 1] if v else [] for v in range(6)}), TWO, "step_time", [1] * 6)
    assert favourites(p) == [1, 2, 3, 4, 5, -1]


def test_only_children_of_only_parents_are_contracted():
    graph = dag({0: [], 1: [0], 2: [1], 3: [1], 4: [2, 3], 5: [4]})
    edges = op_edges(graph, np.zeros(graph.num_tensors, np.int64))
    joined = only_children(graph, edges)
    assert edges.producer[joined].tolist() == [0, 4]
    assert edges.consumer[joined].tolist() == [1, 5]


def test_several_tensors_between_two_ops_are_one_edge_with_the_longest_transfer():
    b = GraphBuilder("test")
    x, y = b.tensor(bytes=3), b.tensor(bytes=9)
    b.op("Split", outputs=[x, y])
    b.op("Add", inputs=[x, y], outputs=[b.tensor(bytes=1)])
    graph = b.build()
    edges = op_edges(graph, graph.tensor_bytes)
    assert (edges.producer.tolist(), edges.consumer.tolist(), edges.transfer_ns.tolist()) == ([0], [1], [9])


def test_variables_have_no_favourites():
    p = PlacementProblem(example.rnn_train(layers=1, steps=2), Cluster.parse("2xP100"))
    favourite = np.array(favourites(p))
    assert (favourite[p.graph.is_variable] == -1).all()


@pytest.mark.parametrize("seed", range(5))
def test_each_op_has_at_most_one_favourite_child_and_parent(seed):
    rng = np.random.default_rng(seed)
    edges = {v: sorted({int(u) for u in rng.integers(0, v, 3)}) if v else [] for v in range(60)}
    p = problem(
        dag(edges, sizes=rng.integers(0, 40, 60).tolist()), TWO, "step_time", rng.integers(1, 20, 60).tolist()
    )
    chosen = [(u, f) for u, f in enumerate(favourites(p)) if f >= 0]
    assert len({f for _, f in chosen}) == len(chosen) > 10
    assert all(u in edges[f] for u, f in chosen)


# --- waiting


def planning(p: PlacementProblem) -> tuple:
    """What the core's list schedulers take."""
    unit = colocation_units(p.graph)
    return p.simulator.core, p.allowed, unit, p.cluster.capacity_bytes, mean_upward_rank(p)


def test_a_device_waits_for_the_favourite_of_its_last_op():
    """The favourite of op 0 waits for a tensor until 15; the other op would fill the gap and delay it by 5."""
    # 0 on device 0 until 10. 1 on device 1 until 10, its tensor of 5 is on device 0 at 15. 3 reads both.
    # 2 is ready at 10 and takes 10; it is not urgent, as its input of 100 is on device 0 alone.
    graph = dag({0: [], 1: [], 2: [0], 3: [0, 1]}, sizes=[100, 5, 1, 1])
    p = problem(graph, TWO, "step_time", [10, 10, 10, 50])
    greedy = _core.earliest_task_first(*planning(p))
    patient = _core.earliest_task_first(*planning(p), np.array([3, -1, -1, -1], np.int32))
    assert greedy.device.tolist() == patient.device.tolist() == [0, 1, 0, 0]
    assert greedy.position.tolist() == [0, 1, 2, 3]
    assert greedy.makespan_ns == 10 + 10 + 50
    assert patient.position.tolist() == [0, 1, 3, 2]
    assert patient.makespan_ns == 15 + 50 + 10


def test_an_urgent_op_may_use_the_gap():
    """As above, but op 2 can run on no other device, so that there is nothing to wait for."""
    graph = dag({0: [], 1: [], 2: [0], 3: [0, 1]}, sizes=[100, 5, 1, 1], groups={0: "a", 2: "a"})
    p = problem(graph, TWO, "step_time", [10, 10, 10, 50])
    plan = _core.earliest_task_first(*planning(p), np.array([3, -1, -1, -1], np.int32))
    assert plan.position.tolist() == [0, 1, 2, 3]


def test_a_device_does_not_wait_for_what_starts_sooner_elsewhere():
    """Op 3, the favourite of 0, reads a large tensor of op 1 and so starts sooner beside it."""
    graph = dag({0: [], 1: [], 2: [0], 3: [0, 1]}, sizes=[5, 100, 1, 1])
    p = problem(graph, TWO, "step_time", [10, 10, 10, 50])
    plan = _core.earliest_task_first(*planning(p), np.array([3, -1, -1, -1], np.int32))
    assert plan.position.tolist() == [1, 0, 2, 3]  # op 1 has the longer path to the end
    assert plan.device.tolist() == [1, 0, 1, 0]


def test_without_favourites_it_is_m_etf():
    p = PlacementProblem(example.rnn_train(layers=2, steps=6), Cluster.parse("3xP100"))
    nobody = np.full(p.graph.num_ops, -1, np.int32)
    one, other = _core.earliest_task_first(*planning(p)), _core.earliest_task_first(*planning(p), nobody)
    assert one.position.tolist() == other.position.tolist()
    assert one.device.tolist() == other.device.tolist()


def test_too_large_a_program_is_refused_with_its_size():
    p = PlacementProblem(example.rnn_train(layers=2, steps=16), Cluster.parse("2xP100"))
    reason = agents.make("m-sct", largest_program=100).skip_reason(p)
    assert reason is not None
    assert reason.startswith("its linear program has 284 edges; above 100 it may take minutes")
    with pytest.raises(InvalidProblemError, match="largest_program"):
        agents.make("m-sct", largest_program=100).solve(p)
    assert agents.make("m-sct").skip_reason(p) is None
