"""``opgym reproduce ranking-robustness``: changes do what they say, and the comparison counts rightly."""

import json
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

from opgym.cli.app import app
from opgym.datasets import load
from opgym.datasets.suites import Row, Suite
from opgym.graphs import Cluster
from opgym.graphs.costs import RooflineCost
from opgym.problems import PlacementProblem
from opgym.runs.reproduce import robustness
from opgym.runs.reproduce.robustness import CHANGES, Change, KindEfficiency

GRAPH = "synthetic/layered?n=40&seed=2000000"
CLUSTER = "2xP100"


@pytest.fixture(scope="module")
def problem():
    return PlacementProblem(load(GRAPH), Cluster.parse(CLUSTER))


@pytest.fixture(scope="module")
def measured(problem):
    return robustness.measure(tiny_row(problem))


def tiny_row(problem):
    return Row(GRAPH, problem.graph.fingerprint, CLUSTER, "step_time", None, "test", "unscreened")


def test_the_changes_of_the_issue_are_there():
    assert {"launch 2 us", "launch 20 us", "bandwidth x 2", "bandwidth / 2"} <= CHANGES.keys()
    assert {c.channel for c in CHANGES.values() if c.channel} == {"port", "send", "link", "free"}
    assert len({c.efficiency_seed for c in CHANGES.values()} - {None}) == 5


def test_a_launch_is_added_to_every_op(problem):
    changed = Change(launch_ns=20_000).of(problem)
    difference = changed.class_cost_ns - problem.class_cost_ns
    assert set(difference[~problem.graph.is_variable].ravel()) == {15_000}
    assert changed.cluster == replace(problem.cluster, devices=changed.cluster.devices)


def test_bandwidth_and_channels(problem):
    halved = Change(bandwidth=0.5).of(problem)
    assert 2 * halved.cluster.bytes_per_second[0, 1] == problem.cluster.bytes_per_second[0, 1]
    assert np.array_equal(halved.class_cost_ns, problem.class_cost_ns)
    assert Change(channel="send").of(problem).cluster == replace(problem.cluster, channel="send")


def test_kinds_share_an_efficiency_and_launches_stay(problem):
    graph, cluster = problem.graph, problem.cluster
    ideal = RooflineCost().cost_ns(graph, cluster)[:, 0] - 5_000
    slower = KindEfficiency(0).cost_ns(graph, cluster)[:, 0] - 5_000
    works = ~graph.is_variable & (ideal > 10_000)  # rounding does not count
    assert works.any()
    share = ideal[works] / slower[works]
    assert (share > 0.499).all()
    assert (share <= 1).all()
    for kind in set(graph.op_kind[works]):
        assert np.ptp(share[graph.op_kind[works] == kind]) < 1e-3
    assert not np.array_equal(slower, KindEfficiency(1).cost_ns(graph, cluster)[:, 0] - 5_000)
    assert (KindEfficiency(0).cost_ns(graph, cluster)[graph.is_variable] == 0).all()


def test_a_row(problem, measured):
    assert set(measured["values"]) >= {"single", "metis", "m-etf", "heft"}
    same = measured["changes"]["channel port"]  # the default model
    assert same["solved"] == same["kept"] == measured["values"]
    free = measured["changes"]["channel free"]["kept"]
    assert all(free[solver] <= value for solver, value in measured["values"].items())
    slow = measured["changes"]["launch 20 us"]["kept"]
    assert slow["single"] - measured["values"]["single"] == 15_000 * (~problem.graph.is_variable).sum()


def row(values, changed):
    changes = {name: {"solved": values, "kept": values} for name in CHANGES}
    changes["bandwidth x 2"] = {"solved": changed, "kept": values}
    return {"row": str(values), "values": values, "changes": changes}


def test_the_summary():
    rows = [
        row({"a": 100.0, "b": 101.0, "c": 200.0}, {"a": 101.0, "b": 100.0, "c": 150.0}),
        row({"a": 100.0, "b": 200.0, "d": 1.0}, {"a": 300.0, "b": 200.0}),
    ]
    lines = {line["change"]: line for line in robustness.summary(rows)}
    found = lines["bandwidth x 2"]["solved"]
    assert found["mean_tau"] == pytest.approx((1 / 3 - 1) / 2)
    assert found["least_tau"] == -1.0
    assert found["where"] == rows[1]["row"]
    assert found["mean_tau_apart"] == pytest.approx((1 - 1) / 2)
    assert found["same_winner"] == 0
    assert found["largest_loss"] == pytest.approx(0.5)
    assert found["mean_loss"] == pytest.approx((0.01 + 0.5) / 2)
    kept = lines["bandwidth x 2"]["kept"]
    assert (kept["mean_tau"], kept["same_winner"], kept["largest_loss"]) == (1.0, 1.0, 0.0)


def test_the_command(problem, monkeypatch):
    tiny = Suite("gdp", 1, "", "", (tiny_row(problem),))
    monkeypatch.setattr(robustness, "suite", lambda name: tiny)
    result = CliRunner().invoke(app, ["reproduce", "ranking-robustness", "--quick", "--workers", "1"])
    assert result.exit_code == 0, result.output
    assert "placements of the default model" in result.stdout
    line = next(text for text in result.stdout.splitlines() if "channel port" in text)
    assert line.split()[2:] == ["1.000", "1.000", "1.000", "100", "%", "0.0", "%", "0.0", "%"]
    result = CliRunner().invoke(app, ["reproduce", "ranking-robustness", "--workers", "1", "--json"])
    assert [r["ops"] for r in json.loads(result.stdout)["rows"]] == [problem.graph.num_ops]
