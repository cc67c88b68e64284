"""Stored optima: every order has its peak, every graph is the one that was meant, and proofs can be made again."""

import json

import numpy as np
import pytest

from opgym import agents
from opgym.datasets import load, onnx_light
from opgym.datasets.reference import ProvenPeak, load_proven_peaks, save_proven_peaks
from opgym.errors import InvalidSolutionError
from opgym.problems import Order, SchedulingProblem

PEAKS = load_proven_peaks()
PROVERS = ("dp-order", "cp-sat")
ENTRY = ProvenPeak("synthetic/er?n=20&seed=3", "0f", 7, ("dp-order",), np.arange(3))


def ids(peaks):
    return [peak.graph for peak in peaks]


@pytest.mark.parametrize("peak", PEAKS, ids=ids(PEAKS))
def test_every_stored_order_has_its_peak_on_the_graph_that_was_meant(peak):
    problem = SchedulingProblem(load(peak.graph))
    assert problem.graph.fingerprint == peak.fingerprint
    outcome = problem.evaluate(Order(peak.order))
    assert outcome.ok
    assert outcome.value == peak.optimum_bytes
    assert problem.lower_bound().value <= peak.optimum_bytes


def test_there_are_enough_and_all_large_models_of_onnx_are_among_them():
    assert len(PEAKS) >= 60
    assert all(len(peak.order) >= 50 for peak in PEAKS)
    large = [id for id in onnx_light.ids() if len(SchedulingProblem(load(id)).ops) >= 100]
    assert len(large) >= 5
    assert set(large) <= set(ids(PEAKS))


QUICK = [peak for peak in PEAKS if len(peak.order) <= 50 or not peak.graph.startswith("synthetic/")]


@pytest.mark.parametrize("peak", QUICK, ids=ids(QUICK))
def test_small_ones_and_real_ones_are_proven_again(peak):
    """By dp-order, whoever proved it first."""
    result = agents.make("dp-order").solve(SchedulingProblem(load(peak.graph)))
    assert result.proven_optimal
    assert result.outcome.value == peak.optimum_bytes


@pytest.mark.slow
@pytest.mark.parametrize("name", PROVERS)
@pytest.mark.parametrize("peak", PEAKS, ids=ids(PEAKS))
def test_nothing_that_a_solver_proves_contradicts_an_entry(peak, name):
    options = {"max_bytes": 2**27} if name == "dp-order" else {"effort": 2.0}
    solver, problem = agents.make(name, **options), SchedulingProblem(load(peak.graph))
    if (reason := solver.skip_reason(problem)) is not None:
        pytest.skip(reason)
    result = solver.solve(problem)
    assert result.bound <= peak.optimum_bytes <= result.outcome.value
    if name in peak.proven_by:
        assert result.bound == peak.optimum_bytes


def test_entries_come_back_from_a_file_by_name(tmp_path):
    other = ProvenPeak("example/a", "0a", 0, ("bound: largest op footprint", "cp-sat"), np.array([1, 0]))
    save_proven_peaks(tmp_path / "peaks.json", [ENTRY, other])
    again = load_proven_peaks(tmp_path / "peaks.json")
    assert [peak.row() for peak in again] == [other.row(), ENTRY.row()]
    assert json.loads((tmp_path / "peaks.json").read_text())["semantics_version"] == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "opgym.solution"}, "expected 'opgym.proven_peak_memory'"),
        ({"version": 2}, "has version 2"),
        ({"semantics_version": 2}, "has semantics_version 2"),
        ({"more": 1}, "unknown keys 'more'"),
        ({"entries": [ENTRY.row(), ENTRY.row()]}, "a graph twice"),
        ({"entries": [ENTRY.row() | {"optimum_bytes": -1}]}, "entry 0 has optimum_bytes = -1"),
        ({"entries": [ENTRY.row() | {"proven_by": []}]}, "names nothing"),
        ({"entries": [ENTRY.row() | {"order": [0.5]}]}, "no op"),
        ({"entries": [{"graph": "a"}]}, "entry 0 lacks"),
    ],
)
def test_another_file_is_refused(tmp_path, change, message):
    path = tmp_path / "peaks.json"
    save_proven_peaks(path, [ENTRY])
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(InvalidSolutionError, match=message):
        load_proven_peaks(path)
