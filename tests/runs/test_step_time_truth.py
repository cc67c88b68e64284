"""``opgym reproduce step-time-truth``: placements differ and are legal, figures are what they say, bars are bars."""

import json
import os
import subprocess
import sys
from functools import partial

import numpy as np
import pytest
from typer.testing import CliRunner

from opgym.cli.app import app
from opgym.cli.truth_report import step_time_conclusions
from opgym.datasets.zoo.models.rnnlm import LSTMLanguageModel
from opgym.datasets.zoo.models.workload import Workload, ids
from opgym.errors import ExecutionFailedError
from opgym.graphs import PROFILES, Cluster, Link, TableCost
from opgym.problems import PlacementProblem
from opgym.runs.reproduce import step_time_nets, step_time_truth, two_processes
from opgym.runs.reproduce.step_time_placements import COUNT, ONE_DEVICE, placements
from opgym.runs.reproduce.two_processes import Task

TINY = Workload("rnnlm", partial(LSTMLanguageModel, 2, 32, 50), (ids(50, 8, 4),), (ids(50, 8, 4),), "sgd")


@pytest.fixture(scope="module")
def problem():
    graph = Task(TINY).graph
    cost_ns = np.random.default_rng(0).integers(10_000, 200_000, graph.num_ops)
    cluster = Cluster.uniform([PROFILES["CPU"]] * 2, Link("test", 10**10, 5_000))
    return PlacementProblem(graph, cluster, costs=TableCost({"cpu": cost_ns}))


def test_placements_are_twenty_legal_and_different(problem):
    found = placements(problem)
    assert len(found) == COUNT
    works = ~problem.graph.is_variable
    split = {tuple((p.device[works] != p.device[works][0]).tolist()) for p in found.values()}
    assert len(split) == COUNT
    outcomes = {name: problem.evaluate(placement) for name, placement in found.items()}
    assert all(outcome.ok for outcome in outcomes.values())
    assert outcomes[ONE_DEVICE].value == problem.cost_ns[works, 0].sum()
    values = [outcome.value for outcome in outcomes.values()]
    assert max(values) > 1.3 * min(values)
    assert {"metis", "m-etf", "layers cut at 0.50"} <= found.keys()
    again = placements(problem)
    assert all(np.array_equal(found[name].device, again[name].device) for name in found)
    other = placements(problem, seed=1)
    assert any(not np.array_equal(found[n].device, other[n].device) for n in found.keys() & other.keys())


@pytest.fixture(scope="module")
def measured():
    """Without a second core both processes share one, which is slow, but no figure below is a time."""
    cores = (sorted(os.sched_getaffinity(0)) * 2)[:2]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(step_time_nets, "workloads", lambda: {"rnnlm": TINY})
        patch.setattr(two_processes, "usable_cores", lambda: cores)
        patch.setattr(step_time_truth, "REPETITIONS", 2)
        return step_time_truth.measure("rnnlm", rounds=1)


def test_a_network_is_measured(measured):
    graph = Task(TINY).graph
    assert measured["ops"] == int((~graph.is_variable).sum())
    assert measured["largest_difference"] <= step_time_truth.TOLERANCE
    lines = {line["placement"]: line for line in measured["placements"]}
    assert len(lines) == COUNT
    alone = lines.pop(ONE_DEVICE)
    assert alone["own_ns"] == alone["default_ns"] == measured["profiled_ns"]
    assert (alone["sends"], alone["sent_bytes"]) == (0, 0)
    assert all(line["sends"] > 0 and line["sent_bytes"] > 0 for line in lines.values())
    for line in measured["placements"]:
        assert line["free_ns"] <= line["own_ns"]
        assert 0 < line["fastest_ns"] <= line["measured_ns"]
        assert line["ops_ns"] > 0
    json.dumps(measured)


def test_a_wrong_result_is_found_out(monkeypatch):
    task = Task(TINY)
    expected = {tensor: value.detach().numpy() for tensor, value in task.results().items()}

    class Off:
        def __init__(self, change):
            self.change = change

        def results(self, plan):
            return self.change(dict(expected))

    runs = [step_time_truth._Measured("some", None, None, 1, 1, ())]
    assert step_time_truth._largest_difference(Off(lambda found: found), task, runs) == 0
    wrong = max(expected)
    with pytest.raises(ExecutionFailedError, match="placement 'some'"):
        step_time_truth._largest_difference(
            Off(lambda found: found | {wrong: expected[wrong] + 0.01 * np.abs(expected[wrong]).max()}),
            task,
            runs,
        )
    with pytest.raises(ExecutionFailedError, match="away from what one process computes"):
        step_time_truth._largest_difference(
            Off(lambda found: found | {wrong: np.full_like(expected[wrong], np.nan)}), task, runs
        )
    with pytest.raises(ExecutionFailedError, match="gives other results"):
        step_time_truth._largest_difference(
            Off(lambda found: {t: v for t, v in found.items() if t != wrong}), task, runs
        )


def line(name, own, default, measured, fastest):
    return {"placement": name, "own_ns": own, "default_ns": default, "free_ns": 1, "measured_ns": measured,
            "fastest_ns": fastest, "sends": 1, "sent_bytes": 10**6, "ops_ns": 1, "sends_ns": 1,
            "waiting_ns": 1}  # fmt: skip


LINES = [
    line(ONE_DEVICE, 100_000, 100_000, 110_000, 100_000),
    line("good", 50_000, 45_000, 60_000, 55_000),
    line("near", 50_500, 60_000, 59_000, 56_000),
    line("half", 80_000, 80_000, 80_000, 80_000),
]


def row(network, lines=LINES):
    return {
        "network": network, "ops": 3, "profiled_ns": 100_000, "median_op_ns": 30_000, "share_of_long_ops": 0.5,
        "contention": 0.034, "link": {"copy_ns": 4_000, "bytes_per_second": 10**10, "signal_ns": 200},
        "placements": lines, "largest_difference": 0.0, "own": step_time_truth._nearness(lines, "own_ns"),
        "default": step_time_truth._nearness(lines, "default_ns"),
        "free": step_time_truth._nearness(lines, "free_ns"), "best": step_time_truth._best(lines),
    }  # fmt: skip


def test_figures_of_a_network():
    found = row("a")
    own = found["own"]
    assert own["tau"] == pytest.approx(4 / 6)  # of six pairs one is the other way round
    assert (own["tau_apart"], own["pairs_apart"]) == (1.0, 5)
    assert own["tau_fastest"] == 1.0
    assert own["largest_error"] == pytest.approx(1 / 6)
    assert own["where"] == "good"
    assert own["median_error"] == pytest.approx((1 / 11 + 8.5 / 59) / 2)
    assert found["best"] == {
        "placement": "good",
        "simulated_speedup": 2.0,
        "measured_speedup": pytest.approx(11 / 6),
        "loss": pytest.approx(1 / 59),
    }
    summary = step_time_truth.summary([found, row("b", LINES[::3])])
    assert (summary["networks"], summary["runs"]) == (2, 6)
    assert summary["least_tau"] == pytest.approx(4 / 6)
    assert summary["ranking_missed_by"] == ["a"]
    assert summary["where"] == "a, good"
    document = {"rows": [found], "summary": summary, "machine": {"processor": "P", "torch": "2"}}
    text = " ".join(step_time_conclusions(document))
    assert "the bar of 0.8 is missed by a." in text
    assert "bit by bit" in text
    assert "Sending costs up to 4.0 us and 10.0 GB/s" in text


def invoke(*args):
    return CliRunner().invoke(app, ["reproduce", "step-time-truth", "--quick", *args])


def test_the_command_prints_tables(monkeypatch):
    monkeypatch.setattr(step_time_truth, "measure", lambda name, rounds: row(name, LINES[::3]))
    result = invoke()
    assert result.exit_code == 0, result.output
    assert "the bar of 0.8 is met" in result.stdout
    assert "randwire" in result.stdout
    document = json.loads(invoke("--json").stdout)
    assert document["machine"].keys() == {"processor", "torch"}


def test_a_missed_bar_is_an_error(monkeypatch):
    monkeypatch.setattr(step_time_truth, "measure", lambda name, rounds: row(name))
    result = invoke()
    assert result.exit_code == 1
    assert "ranked less alike than tau = 0.8: randwire" in result.stderr


def test_one_core_is_an_error(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0})
    result = invoke()
    assert result.exit_code == 1
    assert "two processes need two" in result.stderr


def test_the_networks_of_the_run():
    found = step_time_nets.workloads()
    assert len(found) == 4
    assert set(step_time_truth.QUICK_NETWORKS) <= found.keys()
    assert all(workload.name == name and workload.optimizer for name, workload in found.items())


def test_without_torch_it_says_what_to_install():
    program = "from opgym.runs.reproduce.step_time_truth import run; run(quick=True)"
    script = f"import sys; sys.modules['torch'] = None; {program}"
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert found.returncode == 1
    assert "MissingExtraError: step-time-truth runs networks with the package torch" in found.stderr
