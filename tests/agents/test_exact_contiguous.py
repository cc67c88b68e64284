"""The contiguous program finds what trying everything finds, and says when it cannot."""

from __future__ import annotations

import numpy as np
import pytest

from opgym import _core, agents
from opgym.agents.exact.blocks import contract, device_classes
from opgym.agents.exact.split_program import SplitProgram
from opgym.errors import InvalidProblemError
from opgym.graphs import Cluster, Link
from opgym.outcome import Verdict
from opgym.problems import Budget, Objective, Pipeline, Placement, PlacementProblem

from ..problems.instances import accelerator, cpu, dag, problem
from ..problems.random_problems import random_problem
from .exhaustive_split import best_contiguous_value, is_contiguous

NS_PER_MS = 1e6


def solved(problem: PlacementProblem, **options):
    return agents.make("dp", **options).solve(problem)


@pytest.mark.parametrize("idle", [0.0, 0.7])
@pytest.mark.parametrize("seed", range(60))
def test_equals_the_best_of_all_contiguous_splits(seed, idle):
    """With colocation, backward ops, orphans, updates, variables, CPUs, tight memory and unsupported classes."""
    rng = np.random.default_rng([seed, 3])
    try:
        p = random_problem(rng, Objective.MAX_LOAD, max_ops=5, idle=idle)
    except InvalidProblemError:
        return  # too small a cluster: nothing to split
    if len(p.cluster) ** p.graph.num_ops > 1000:
        p = PlacementProblem(p.graph, two_devices_of(p), p.objective, p.costs)
    best = best_contiguous_value(p)
    result = solved(p)
    if np.isinf(best):
        assert result.outcome.verdict is Verdict.OUT_OF_MEMORY
        assert not result.proven_optimal
        assert result.note == "no contiguous split fits the devices"
    else:
        assert result.outcome.verdict is Verdict.OK
        assert result.outcome.value == best
        assert result.proven_optimal
        assert is_contiguous(p, tuple(result.solution.device.tolist()))
    assert result.evaluations == 1


def two_devices_of(p: PlacementProblem) -> Cluster:
    """A device that may run everything, twice, as large as the largest."""
    first = p.cluster.devices[0]
    roomy = accelerator(int(p.cluster.capacity_bytes.max()))
    device = type(first)(first.name, first.kind, {}, 0, roomy.capacity_bytes)
    return Cluster.uniform([device, device], Link("x", 10**9, 2), p.cluster.channel)


def test_a_chain_is_cut_where_it_is_cheapest():
    graph = dag({v: [v - 1] if v else [] for v in range(6)}, sizes=[9, 1, 9, 1, 9, 9])
    p = problem(graph, [accelerator()] * 3, "max_load", [10] * 6)
    result = solved(p)
    assert result.solution.device.tolist() == [0, 0, 1, 1, 2, 2]
    assert result.outcome.value == (1 + 20 + 1) / NS_PER_MS
    assert result.note == "among contiguous splits (7 down-sets)"


def test_cpus_take_part():
    graph = dag({v: [v - 1] if v else [] for v in range(4)}, sizes=[0] * 4)
    p = problem(graph, [accelerator(), cpu()], "max_load", [10, 10, 10, 1], [100, 100, 100, 10])
    result = solved(p)
    assert result.solution.device.tolist() == [0, 0, 0, 1]
    assert result.outcome.value == 30 / NS_PER_MS


def test_equal_devices_are_taken_in_order_whatever_lies_between():
    graph = dag({v: [v - 1] if v else [] for v in range(3)}, sizes=[0] * 3)
    p = problem(graph, [accelerator(), cpu(), accelerator()], "max_load", [10, 10, 1], [99, 99, 2])
    assert device_classes(p) == [(0, 2), (1,)]
    assert solved(p).solution.device.tolist() == [0, 2, 1]


def test_devices_with_other_links_are_other_devices():
    graph = dag({0: [], 1: [0]}, sizes=[100, 1])
    rate = np.array([[1, 1, 1], [2, 1, 2], [1, 2, 1]]) * 10**9
    cluster = Cluster((cpu(), accelerator(), accelerator()), np.zeros((3, 3), int), rate)
    costs = problem(graph, [cpu(), accelerator()], "max_load", [50, 50]).costs
    p = PlacementProblem(graph, cluster, "max_load", costs)
    assert device_classes(p) == [(0,), (1,), (2,)]
    # Out of the fast device 1 (100 bytes in 50 ns), into the slow device 2 (100 ns); the other way is worse.
    assert p.evaluate(Placement(np.array([1, 2]))).details["load_ms"] == [0, 100e-6, 150e-6]
    assert solved(p).outcome.value == best_contiguous_value(p)


def test_backward_ops_follow_their_group_and_orphans_are_mirrored():
    # Forward 0 -> 1; backward 2 (orphan) -> 3 (with 1) -> 4 (with 0): reversed, 0 before 1 before 2's mirror.
    graph = dag(
        {0: [], 1: [0], 2: [1], 3: [2], 4: [3]},
        directions={2: "backward", 3: "backward", 4: "backward"},
        groups={0: "a", 4: "a", 1: "b", 3: "b"},
    )
    blocks = contract(graph)
    assert blocks.block.tolist() == [0, 1, 2, 1, 0]
    edges = [
        (u, int(v)) for u in range(3) for v in blocks.child[blocks.child_ptr[u] : blocks.child_ptr[u + 1]]
    ]
    assert edges == [(0, 1), (1, 2)]


def test_groups_that_wait_for_each_other_are_one_block():
    graph = dag({0: [], 1: [0], 2: [1], 3: [2]}, groups={0: "a", 2: "a", 1: "b", 3: "b"})
    assert contract(graph).block.tolist() == [0, 0, 0, 0]


# --- reductions


def hub(spare: int = 20, size: int = 0) -> PlacementProblem:
    """A chain of three with many idle readers at each op: 2^(3 * spare) down-sets before the reductions."""
    edges = {0: [], 1: [0], 2: [1]} | {3 + i: [i % 3] for i in range(3 * spare)}
    ops = len(edges)
    graph = dag(edges, sizes=[5] * ops, parameters=dict.fromkeys(range(3, ops), size) if size else None)
    return problem(graph, [accelerator(1000)] * 2, "max_load", [10, 10, 10] + [0] * (ops - 3))


def test_blocks_that_cost_nothing_are_not_decided():
    p = hub()
    program = SplitProgram(p, 50_000)
    assert program.complete
    assert program.down_sets == 4
    assert not SplitProgram(p, 50_000, reduce=False).complete
    result = solved(p)
    assert result.outcome.value == 25 / NS_PER_MS
    assert result.proven_optimal


def test_joined_memory_does_not_spoil_the_proof():
    roomy = hub(size=1)
    assert SplitProgram(roomy, 50_000).joined.any()
    assert solved(roomy).outcome.value == 25 / NS_PER_MS
    assert solved(roomy).proven_optimal
    # Where the reductions put them, the readers of two ops do not fit a device; undecided, they are too many.
    result = solved(hub(size=26))
    assert not result.proven_optimal
    assert result.note == "found no split that fits"
    assert result.outcome.verdict is Verdict.OUT_OF_MEMORY


def test_tight_memory_is_solved_without_reductions_where_that_is_possible():
    # Op 1 costs nothing and could join op 0, which has no room for its 60 bytes.
    graph = dag({0: [], 1: [0], 2: [0]}, sizes=[5, 5, 5], parameters={0: 60, 1: 60})
    p = problem(graph, [accelerator(100)] * 2, "max_load", [10, 0, 10])
    program = SplitProgram(p, 50_000)
    assert program.joined.tolist() == [False, True, False]
    result = solved(p)
    assert result.outcome.verdict is Verdict.OK
    assert result.proven_optimal
    assert result.outcome.value == best_contiguous_value(p) == 15 / NS_PER_MS


def test_free_blocks_are_placed_after_their_parents():
    # Op 2 neither takes time nor moves anything; it reads op 1 and is read by op 3.
    graph = dag({0: [], 1: [0], 2: [1], 3: [2], 4: [3]}, sizes=[5, 0, 0, 5, 5])
    p = problem(graph, [accelerator()] * 2, "max_load", [10, 10, 0, 10, 10])
    result = solved(p)
    assert is_contiguous(p, tuple(result.solution.device.tolist()))
    assert result.outcome.value == 20 / NS_PER_MS
    assert SplitProgram(p, 50_000).down_sets == 5


# --- limits


def wide(ops: int) -> PlacementProblem:
    graph = dag({v: [] for v in range(ops)}, sizes=[1] * ops)
    return problem(graph, [accelerator()] * 2, "max_load", list(range(1, ops + 1)))


def test_too_many_down_sets_are_refused_at_once_with_their_number():
    solver = agents.make("dp", max_down_sets=1000)
    reason = solver.skip_reason(wide(60))
    assert reason == "more than 1000 down-sets; up to 1000 are tried"
    with pytest.raises(InvalidProblemError, match="solver 'dp': more than 1000 down-sets"):
        solver.solve(wide(60))
    assert solver.skip_reason(wide(9)) is None
    assert agents.make("dp", max_down_sets=511).skip_reason(wide(9)) is not None
    assert agents.make("dp", max_down_sets=512).skip_reason(wide(9)) is None


def test_too_many_combinations_of_devices_are_refused():
    devices = [accelerator(1000 + i % 6) for i in range(60)]
    p = problem(dag({0: [], 1: [0]}), devices, "max_load", [1, 1])
    assert solved(problem(dag({0: [], 1: [0]}), devices[:12], "max_load", [1, 1])).proven_optimal
    graph = dag({v: [] for v in range(4)})
    reason = agents.make("dp").skip_reason(problem(graph, devices, "max_load", [1] * 4))
    assert "states (16 down-sets)" in reason
    assert agents.make("dp").skip_reason(p) is None


def test_a_chain_of_many_ops_is_no_problem():
    ops = 2_000
    graph = dag({v: [v - 1] if v else [] for v in range(ops)}, sizes=[0] * ops)
    p = problem(graph, [accelerator()] * 4, "max_load", [7] * ops)
    result = solved(p)
    assert result.outcome.value == 500 * 7 / NS_PER_MS == p.lower_bound().value


@pytest.mark.parametrize("objective", ["step_time", "peak_memory", "latency"])
def test_other_objectives_are_skipped(objective):
    p = problem(dag({0: []}), [accelerator()], objective, [1])
    assert agents.make("dp").skip_reason(p) == f"does not optimise {objective}"


def test_micro_batches_are_skipped():
    p = problem(dag({0: []}), [accelerator()], "max_load", [1], pipeline=Pipeline(4))
    assert "not the step of 4 micro-batches" in agents.make("dp").skip_reason(p)


def test_time_ends_the_search_with_what_was_found():
    layers = 9
    edges = {0: []} | {v: [v - 1, v - 2] if v > 1 else [0] for v in range(1, layers)}
    branches = {layers + i: [i % layers] for i in range(10)}
    ops = layers + 10
    graph = dag(edges | branches, sizes=[3] * ops)
    p = problem(graph, [accelerator()] * 3, "max_load", [10 + v % 7 for v in range(ops)])
    full = solved(p)
    assert full.proven_optimal
    cut = agents.make("dp").solve(p, Budget(seconds=0.0))
    assert cut.outcome.ok
    assert cut.outcome.value >= full.outcome.value
    assert cut.evaluations == 1


def test_the_same_problem_gives_the_same_split():
    p = random_problem(np.random.default_rng(12), Objective.MAX_LOAD, max_ops=10)
    assert solved(p).solution.device.tolist() == solved(p).solution.device.tolist()


def test_a_real_model_on_four_devices():
    from opgym import datasets

    p = PlacementProblem(datasets.load("onnx-light/squeezenet"), Cluster.parse("4xP100"), "max_load")
    result = solved(p)
    assert result.proven_optimal
    assert p.lower_bound().value <= result.outcome.value
    single = agents.make("single").solve(p)
    assert result.outcome.value < single.outcome.value / 2


# --- the core


def down_sets(edges: dict[int, list[int]], limit: int = 10**6):
    child_ptr = np.cumsum([0, *(len(children) for children in edges.values())]).astype(np.int32)
    child = np.array([c for children in edges.values() for c in children], np.int32)
    return _core.DownSets(child_ptr, child, limit, 10**7)


@pytest.mark.parametrize("seed", range(20))
def test_down_sets_are_counted_right(seed):
    rng = np.random.default_rng(seed)
    count = int(rng.integers(1, 9))
    edges = {u: [v for v in range(u + 1, count) if rng.random() < 0.3] for u in range(count)}
    closed = sum(
        all(not (chosen >> v & 1) or chosen >> u & 1 for u in edges for v in edges[u])
        for chosen in range(1 << count)
    )
    sets = down_sets(edges)
    assert sets.complete
    assert sets.count == closed
    assert down_sets(edges, closed).complete
    assert not down_sets(edges, closed - 1).complete


def test_more_than_64_blocks():
    assert down_sets({v: [v + 1] if v < 199 else [] for v in range(200)}).count == 201
    assert not down_sets({v: [] for v in range(200)}, limit=1000).complete


@pytest.mark.parametrize(
    ("edges", "message"), [({0: [1], 1: [0]}, "cycle"), ({0: [0]}, "cycle"), ({0: [5]}, "no block")]
)
def test_impossible_block_graphs_are_refused(edges, message):
    with pytest.raises(ValueError, match=message):
        down_sets(edges)
