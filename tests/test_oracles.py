"""The published graphs and values of Tarnawski et al. 2020: every number that their programs printed.

The folder is found by the environment variable OPGYM_ORACLES (default: ``../shared/oracles`` beside the repository).
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest

from opgym import agents
from opgym.graphs.readers.dnn_partitioning import read_dnn_partitioning
from opgym.outcome import Verdict
from opgym.problems import Placement, PlacementProblem
from opgym.problems.checker import check
from opgym.problems.solution_file import load_with_problem

ROOT = Path(__file__).parent.parent
FOLDER = Path(os.environ.get("OPGYM_ORACLES", ROOT.parent / "shared" / "oracles")) / "dnn-partitioning"
EXPECTED_FILE = FOLDER / "expected.json"
EXPECTED = json.loads(EXPECTED_FILE.read_text()) if EXPECTED_FILE.is_file() else {}
TOLERANCE_MS = 1e-3  # the programs print 4 to 6 digits

pytestmark = pytest.mark.skipif(
    not EXPECTED, reason=f"no oracle at {EXPECTED_FILE}; set OPGYM_ORACLES to the folder that holds it"
)


def rows(objective: str, key: str) -> list:
    """``(file, row)`` of every graph of an objective for which a figure is known."""
    return [
        pytest.param(file, row, id=file.removesuffix(".json"))
        for file, row in EXPECTED.get(objective, {}).items()
        if key in row
    ]


def pose(file: str, objective: str) -> PlacementProblem:
    """The problem that a graph file describes."""
    imported = read_dnn_partitioning(FOLDER / file)
    return PlacementProblem(imported.graph, imported.cluster, objective, imported.costs)


def expert(file: str, objective: str) -> tuple[PlacementProblem, Placement]:
    """The expert split of a graph, with the problem as the split sees it."""
    path = FOLDER / "experts" / f"{Path(file).stem}_expert.json"
    return load_with_problem(path, pose(file, objective))


def almost(value: float) -> object:
    """Equal as far as the published digits go."""
    return pytest.approx(value, rel=0, abs=TOLERANCE_MS)


def test_all_expected_values_are_here():
    assert len(EXPECTED["max_load"]) == 7
    assert len(EXPECTED["latency"]) == 2


@pytest.mark.parametrize(("file", "row"), rows("max_load", "expert"))
def test_expert_max_load(file, row):
    problem, placement = expert(file, "max_load")
    outcome = check(problem, placement)
    assert outcome.verdict is Verdict.OK
    assert outcome.value == almost(row["expert"])
    assert problem.evaluate(placement).value == outcome.value


@pytest.mark.parametrize(("file", "row"), rows("max_load", "expert_loads"))
def test_expert_loads(file, row):
    problem, placement = expert(file, "max_load")
    loads = check(problem, placement).details["load_ms"]
    assert loads[: row["k"]] == [almost(load) for load in row["expert_loads"]]
    assert loads[row["k"] :] == [0.0]


@pytest.mark.parametrize(("file", "row"), rows("max_load", "one_accelerator"))
def test_one_accelerator(file, row):
    result = agents.make("single").solve(pose(file, "max_load"))
    assert result.outcome.value == almost(row["one_accelerator"])
    full = row.get("one_accelerator_out_of_memory", False)
    assert result.outcome.verdict is (Verdict.OUT_OF_MEMORY if full else Verdict.OK)


@pytest.mark.parametrize(("file", "row"), rows("max_load", "optimal_contiguous"))
def test_optimal_contiguous(file, row):
    problem = pose(file, "max_load")
    result = agents.make("dp").solve(problem)
    assert result.outcome.value == almost(row["optimal_contiguous"])
    assert result.outcome.verdict is Verdict.OK
    assert result.proven_optimal
    assert result.evaluations == 1
    assert check(problem, result.solution).value == result.outcome.value
    assert problem.lower_bound().value <= result.outcome.value


@pytest.mark.parametrize(("file", "row"), rows("max_load", "optimal_loads"))
def test_optimal_loads(file, row):
    # Several splits are optimal; what they have in common is the busiest device and the number of devices.
    result = agents.make("dp").solve(pose(file, "max_load"))
    loads = result.outcome.details["load_ms"]
    assert max(loads) == almost(max(row["optimal_loads"]))
    assert len(loads) == row["k"] + 1


@pytest.mark.parametrize(("file", "row"), rows("latency", "expert"))
def test_expert_latency(file, row):
    problem, placement = expert(file, "latency")
    outcome = check(problem, placement)
    assert outcome.verdict is Verdict.OK  # memory only warns
    assert outcome.value == almost(row["expert"])
    assert problem.evaluate(placement).value == outcome.value
    if "expert_memory_over_capacity" in row:
        assert outcome.details["over_capacity"] == pytest.approx(row["expert_memory_over_capacity"], abs=1e-3)


@pytest.mark.parametrize(("file", "row"), rows("latency", "cpu_only_critical_path"))
def test_latency_on_cpus(file, row):
    problem = pose(file, "latency")
    cpu = [device.kind for device in problem.cluster.devices].index("cpu")
    outcome = check(problem, Placement(np.full(problem.graph.num_ops, cpu)))
    assert outcome.value == almost(row["cpu_only_critical_path"])


def test_a_split_for_more_accelerators_brings_them_along():
    file = "latency/layer/bert24_inference.json"
    given = pose(file, "latency")
    problem, placement = expert(file, "latency")
    assert [d.kind for d in given.cluster.devices].count("accelerator") == 5
    assert [d.kind for d in problem.cluster.devices].count("accelerator") == 6
    assert set(placement.device.tolist()) == {0, 1, 2, 3, 4, len(given.cluster)}
