"""Best-known values: each is what its solution gives, and none ever gets worse."""

import json

import numpy as np
import pytest

from opgym.datasets import load, read
from opgym.datasets.reference import BestKnown, Known, packaged_best_known
from opgym.errors import InvalidSolutionError
from opgym.graphs import Cluster
from opgym.problems import Objective, Order, Placement, PlacementProblem, SchedulingProblem

GRAPH = "synthetic/er?n=20&seed=3"


@pytest.fixture
def scheduling():
    return SchedulingProblem(load(GRAPH))


@pytest.fixture
def placing():
    imported = read(GRAPH)
    return PlacementProblem(imported.graph, Cluster.parse("2xREGAL"), Objective.PEAK_MEMORY, imported.costs)


def _random_placement(problem, seed):
    rng = np.random.default_rng(seed)
    return Placement(rng.integers(0, 2, problem.graph.num_ops), rng.random(problem.graph.num_ops))


def test_an_order_keeps_its_value_through_a_file(scheduling, tmp_path):
    best = BestKnown()
    assert best.offer(Known.of(scheduling, Order(scheduling.ops), "program-order"))
    best.save(tmp_path / "best.json")
    again = BestKnown.load(tmp_path / "best.json").get(scheduling)
    assert again.value == scheduling.evaluate(again.solution).value == scheduling.reference_bytes
    assert again.found_by == "program-order"


def test_a_placement_keeps_its_value_although_only_ranks_are_stored(placing, tmp_path):
    best = BestKnown()
    for seed in range(10):
        solution = _random_placement(placing, seed)
        known = Known.of(placing, solution, "random")
        assert known.value == placing.evaluate(solution).value
        best.offer(known)
    best.save(tmp_path / "best.json")
    again = BestKnown.load(tmp_path / "best.json").get(placing)
    assert again.value == placing.evaluate(again.solution).value
    assert again.value == min(placing.evaluate(_random_placement(placing, s)).value for s in range(10))


def test_priorities_left_out_and_equal_ones_are_kept_too(placing):
    device = np.arange(placing.graph.num_ops) % 2
    for priority in (None, np.zeros(placing.graph.num_ops), np.arange(placing.graph.num_ops) // 4):
        solution = Placement(device, priority)
        assert Known.of(placing, solution, "hand").value == placing.evaluate(solution).value


def test_only_what_is_better_replaces(scheduling):
    best = BestKnown()
    first = Known.of(scheduling, Order(scheduling.ops), "first")
    worse = Known(first.graph, first.fingerprint, "", first.value + 1, "worse", first.order, first.device)
    better = Known(first.graph, first.fingerprint, "", first.value - 1, "better", first.order, first.device)
    assert best.offer(first)
    assert not best.offer(worse)
    assert not best.offer(first)
    assert best.get(scheduling) is first
    assert best.offer(better)
    assert best.get(scheduling) is better
    assert len(best) == 1


def test_another_graph_of_the_same_name_and_another_cluster_are_unknown(scheduling, placing):
    best = BestKnown()
    known = Known.of(scheduling, Order(scheduling.ops), "program-order")
    best.offer(Known(known.graph, "0" * 64, "", 1, "forged", known.order, known.device))
    assert best.get(scheduling) is None
    best.offer(known)
    assert best.get(scheduling) is known
    assert best.get(placing) is None


def test_what_is_illegal_has_no_value(scheduling, placing):
    with pytest.raises(InvalidSolutionError, match="illegal_order"):
        Known.of(scheduling, Order(scheduling.ops[::-1].copy()), "hand")
    with pytest.raises(InvalidSolutionError, match="op 0 is on device 2"):
        Known.of(placing, Placement(np.full(placing.graph.num_ops, 2)), "hand")


def test_other_objectives_are_refused(placing):
    problem = PlacementProblem(placing.graph, placing.cluster, Objective.STEP_TIME, placing.costs)
    with pytest.raises(InvalidSolutionError, match="peak_memory"):
        Known.of(problem, Placement(np.zeros(placing.graph.num_ops, int)), "hand")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": 2}, "version 2"),
        ({"format": "other"}, "format 'other'"),
        ({"entries": [{}]}, "entry 0 lacks"),
        ({"entries": {}}, "expected a list"),
        ({"extra": 1}, "unknown keys 'extra'"),
    ],
)
def test_other_files_are_refused(tmp_path, change, message):
    document = {"format": "opgym.best_known_peak_memory", "version": 1, "entries": []} | change
    path = tmp_path / "best.json"
    path.write_text(json.dumps(document))
    with pytest.raises(InvalidSolutionError, match=message):
        BestKnown.load(path)


def test_what_comes_with_opgym_is_what_its_solutions_give():
    entries = list(packaged_best_known())
    for known in entries:
        imported = read(known.graph)
        assert imported.graph.fingerprint == known.fingerprint
        problem = (
            PlacementProblem(
                imported.graph, Cluster.parse(known.cluster), Objective.PEAK_MEMORY, imported.costs
            )
            if known.cluster
            else SchedulingProblem(imported.graph)
        )
        assert problem.evaluate(known.solution).value == known.value
        assert known.value >= problem.lower_bound().value
