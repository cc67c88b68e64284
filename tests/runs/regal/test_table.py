"""What is reported of REGAL and its baselines: figures by hand from made-up values."""

import math
from typing import Any

import numpy as np
import pytest

from opgym.runs.reproduce.regal.table import PAPER, Table, lines_of
from opgym.statistics import clustered_mean, clustered_ratio


def _method(name: str, kind: str = "baseline", **other: Any) -> dict[str, Any]:
    return {
        "name": name, "solver": "brkga", "evaluations": 5_000, "kind": kind, "published": False, "random": True,
        "long": False, "training_of": "", "training": "", "digest": name, **other,
    }  # fmt: skip


METHODS = [
    _method("brkga-5k", published=True),
    _method("tuned", published=True),
    _method("rule", random=False, published=True),
    _method("dear", long=True, published=True),
    _method("regal", "agent", solver="regal", training_of="regal", training="b"),
    _method("regal-seed0", "agent", solver="regal", training_of="regal", training="a"),
    _method("regal-seed1", "agent", solver="regal", training_of="regal", training="b"),
    _method("gas", "agent", solver="gas", training_of="gas", training="c"),
    _method("regal seeded", "seeded agent", solver="regal"),
]


def _graph(
    name: str, best: float | None = 50, population: str = "synthetic", **columns: Any
) -> dict[str, Any]:
    filled = {
        column: {"values": values, "evaluations": 10.0 * i, "seconds": 0.5 * i}
        for i, (column, values) in enumerate(columns.items(), 1)
    }
    return {
        "graph": name, "population": population, "twins": name.partition("#")[0], "ops": 60, "best_known": best,
        "columns": filled,
    }  # fmt: skip


def _document(*graphs: dict[str, Any], methods: Any = METHODS, task: str = "memory-1") -> dict[str, Any]:
    return {
        "task": task, "part": "test", "suite_version": 1, "reference_version": 1, "seeds": [0, 2],
        "methods": methods, "graphs": list(graphs),
    }  # fmt: skip


def _found(
    document: dict[str, Any], task: str = "memory-1/synthetic"
) -> dict[tuple[str, str], dict[str, Any]]:
    lines = [line for line in lines_of(document) if line["task"] == task]
    found = {(line["method"], line["metric"]): line for line in lines}
    assert len(found) == len(lines)
    return found


BASE = "brkga-5k"
ROWS = [
    _graph("a", 80, **{BASE: [100, 100], "tuned": [90, 100], "rule": [120], "dear": [80], "regal": [80, 90]}),
    _graph(
        "b", 150, **{BASE: [200, 250], "tuned": [200, 260], "rule": [220], "dear": [190], "regal": [150, 200]}
    ),
]


def test_improvements_are_paired_by_seed() -> None:
    found = _found(_document(*ROWS))
    gains = [0.1, 0.0, 0.0, 1 - 260 / 250]
    line = found["tuned", "improvement"]
    assert line["value"] == pytest.approx(np.mean(gains))
    assert line["n"] == 4
    assert (found["tuned", "wins"]["value"], found["tuned", "ties"]["value"]) == (1, 2)
    assert found["tuned", "losses"]["value"] == 1
    assert (BASE, "improvement") not in found


def test_what_draws_no_random_number_is_compared_with_every_seed() -> None:
    line = _found(_document(*ROWS))["rule", "improvement"]
    assert line["value"] == pytest.approx(np.mean([1 - 1.2, 1 - 1.2, 1 - 220 / 200, 1 - 220 / 250]))
    assert line["n"] == 4


def test_a_dear_column_is_compared_on_the_seeds_that_it_has() -> None:
    line = _found(_document(*ROWS))["dear", "improvement"]
    assert line["value"] == pytest.approx(np.mean([0.2, 0.05]))
    assert line["n"] == 2


def test_headroom_and_what_is_captured_of_it() -> None:
    found = _found(_document(*ROWS))
    room = [0.2, 0.2, 0.25, 0.4]
    assert found[BASE, "headroom"]["value"] == pytest.approx(np.mean(room))
    gains = [0.2, 0.1, 0.25, 0.2]
    assert found["regal", "headroom_captured"]["value"] == pytest.approx(sum(gains) / sum(room))


def test_without_a_best_known_value_there_is_no_headroom() -> None:
    found = _found(_document(_graph("a", None, **{BASE: [100, 100], "tuned": [90, 100]})))
    assert ("tuned", "improvement") in found
    assert not [key for key in found if "headroom" in key[1]]


def test_few_graphs_have_no_interval_and_many_that_of_whole_graphs() -> None:
    assert _found(_document(*ROWS))["tuned", "improvement"]["low"] is None
    rng = np.random.default_rng(0)
    values = rng.integers(50, 100, (8, 2, 2))
    graphs = [
        _graph(f"g{i // 2}#{i}", 40, **{BASE: base.tolist(), "tuned": tuned.tolist()})
        for i, (base, tuned) in enumerate(values)
    ]
    assert _found(_document(*graphs))["tuned", "improvement"]["low"] is None  # twins: four are independent
    graphs += [_graph(f"h{i}", 40, **{BASE: [80, 90], "tuned": [70, 88 + i]}) for i in range(3)]
    found = _found(_document(*graphs))
    base, tuned = (
        np.array([graph["columns"][name]["values"] for graph in graphs]) for name in (BASE, "tuned")
    )
    twins = np.repeat([graph["twins"] for graph in graphs], 2)
    expected = clustered_mean((1 - tuned / base).ravel(), twins)
    line = found["tuned", "improvement"]
    assert (line["value"], line["low"], line["high"]) == (expected.estimate, expected.low, expected.high)
    share = clustered_ratio((1 - tuned / base).ravel(), (1 - 40 / base).ravel(), twins)
    line = found["tuned", "headroom_captured"]
    assert (line["value"], line["low"], line["high"]) == (share.estimate, share.low, share.high)


def test_what_does_not_fit_counts_in_no_mean_and_loses() -> None:
    graph = _graph("a", 80, **{BASE: [100, None], "tuned": [None, 90], "rule": [None], "regal": [90, 95]})
    found = _found(_document(graph, task="time"), "time/synthetic")
    assert found["tuned", "feasible"]["value"] == 0.5
    assert found["tuned", "feasible"]["n"] == 2
    assert ("tuned", "improvement") not in found  # no seed on which both fit
    assert (found["tuned", "wins"]["value"], found["tuned", "losses"]["value"]) == (1, 1)
    assert found["rule", "ties"]["value"] == 1  # nothing fits in either
    assert found["regal", "improvement"]["value"] == pytest.approx(0.1)
    assert found["regal", "improvement"]["n"] == 1
    assert found[BASE, "headroom"]["n"] == 1


def test_an_agent_stands_beside_every_other_column_and_the_next_best() -> None:
    found = _found(_document(*ROWS))
    over = [1 - 80 / 90, 1 - 90 / 100, 1 - 150 / 200, 1 - 200 / 260]
    assert found["regal", "improvement_over:tuned"]["value"] == pytest.approx(np.mean(over))
    assert ("regal", f"improvement_over:{BASE}") not in found
    assert ("tuned", "improvement_over:rule") not in found
    next_best = found["tuned", "improvement"]["value"]  # the rule is worse, the dear one has another budget
    assert found["regal", "times_next_best"]["value"] == pytest.approx(
        found["regal", "improvement"]["value"] / next_best
    )


def test_without_a_gain_there_is_no_multiple_of_one() -> None:
    rows = [
        _graph("a", 80, **{BASE: [100, 100], "tuned": [95, 95], "regal": [110, 110], "regal-seed0": [90, 90]})
    ]
    found = _found(_document(*rows))
    assert ("regal", "times_next_best") not in found
    assert found["regal-seed0", "times_next_best"]["value"] == pytest.approx(2.0)


def test_the_sequence_is_one_of_the_rivals() -> None:
    rows = [_graph("a", 80, **{BASE: [100, 100], "tuned": [99, 99], "gas": [95, 95], "regal": [90, 90]})]
    assert _found(_document(*rows))["regal", "times_next_best"]["value"] == pytest.approx(2.0)


def test_figures_of_the_paper_stand_beside_agents_on_peak_memory_only() -> None:
    columns = {
        BASE: [100, 100],
        "tuned": [95, 95],
        "regal": [90, 90],
        "gas": [96, 96],
        "regal seeded": [80, 80],
    }
    for task, is_memory in (("memory-1", True), ("memory-2", True), ("time", False)):
        lines = lines_of(_document(_graph("a", 80, **columns), task=task))
        said = {
            (line["method"], line["metric"]): line["paper"] for line in lines if line["paper"] is not None
        }
        assert said == ({("regal", metric): value for metric, value in PAPER.items()} if is_memory else {})
    fewer = [{**method, "evaluations": 1_000} for method in METHODS]
    lines = lines_of(_document(_graph("a", 80, **columns), methods=fewer))
    assert all(line["paper"] is None for line in lines)  # it says nothing of other budgets
    assert PAPER == {"improvement": 0.0356, "headroom_captured": 0.54, "times_next_best": 4.4}


def test_trainings_of_one_agent_are_spread_and_none_counts_twice() -> None:
    columns = {BASE: [100, 100], "regal": [90, 90], "regal-seed0": [80, 80], "regal-seed1": [90, 90]}
    found = _found(_document(_graph("a", 80, **columns)))
    line = found["regal (2 trainings)", "improvement_of_trainings"]
    assert (line["low"], line["high"], line["n"]) == (pytest.approx(0.1), pytest.approx(0.2), 2)
    assert line["value"] == pytest.approx(0.15)
    only = _found(_document(_graph("a", 80, **{BASE: [100, 100], "regal": [90, 90]})))
    assert not [key for key in only if "trainings" in key[1]]


def test_populations_are_apart_and_costs_are_means_over_graphs() -> None:
    document = _document(ROWS[0], _graph("r", 10, "real", **{BASE: [10, 10], "tuned": [10, 10]}))
    lines = lines_of(document)
    assert {line["task"] for line in lines} == {"memory-1/synthetic", "memory-1/real"}
    real = _found(document, "memory-1/real")
    assert real["tuned", "seconds"]["value"] == 1.0
    assert real["tuned", "evaluations"]["value"] == 20.0
    assert real["tuned", "ties"]["value"] == 2
    assert ("tuned", "headroom_captured") not in real  # nothing is left
    assert ("regal", "feasible") not in real  # it did not run
    assert {tuple(line) for line in lines} == {
        ("task", "method", "metric", "value", "low", "high", "n", "paper")
    }
    assert all(math.isfinite(line["value"]) for line in lines)


def test_without_graphs_of_a_population_there_is_no_table() -> None:
    assert Table.of(_document(ROWS[0]), "real") is None
