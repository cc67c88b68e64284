"""``opgym reproduce memory-truth``: simulated peaks are what torch allocates, and a wrong simulation is found out."""

import json
import subprocess
import sys
from functools import partial

import numpy as np
import pytest
from torch import nn
from typer.testing import CliRunner

from opgym.cli.app import app
from opgym.cli.truth_report import conclusions
from opgym.datasets.zoo.models.random_wiring import RandWire, watts_strogatz
from opgym.datasets.zoo.models.rnnlm import LSTMLanguageModel
from opgym.datasets.zoo.models.workload import Workload, ids, reals
from opgym.problems import Order, SchedulingProblem
from opgym.runs.reproduce import memory_truth, truth_nets

TINY = {
    "rnnlm": Workload(
        "rnnlm", partial(LSTMLanguageModel, 1, 16, 50), (ids(50, 4, 5),), (ids(50, 4, 5),), "sgd"
    ),
    "randwire": Workload(
        "randwire",
        partial(RandWire, [watts_strogatz(5, 2, 0.25, 9)], 8, 10),
        (reals(2, 3, 32, 32),),
        (ids(10, 2),),
        "adam",
    ),
}


@pytest.fixture
def tiny(monkeypatch):
    monkeypatch.setattr(truth_nets, "workloads", lambda: TINY)
    monkeypatch.setattr(memory_truth, "QUICK_NETWORKS", ("rnnlm",))


@pytest.fixture(scope="module")
def rnnlm():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(truth_nets, "workloads", lambda: TINY)
        return memory_truth.measure("rnnlm", evaluations=100)


def test_simulated_peaks_are_what_is_allocated(rnnlm):
    lines = {line["order"]: line for line in rnnlm["orders"]}
    assert rnnlm["measured_resident_bytes"] == rnnlm["resident_bytes"]
    for line in lines.values():
        assert line["without_workspaces_bytes"] == line["simulated_bytes"]
        assert line["simulated_bytes"] <= line["measured_bytes"] <= 1.05 * line["simulated_bytes"]
    good, program, bad = (
        lines[name]["measured_bytes"] for name in ("order-search", "program-order", "worst random")
    )
    assert good < program < bad
    assert rnnlm["ranked_pairs"] >= 5
    assert rnnlm["tau"] == 1.0
    assert rnnlm["by_torch"]["ratio"] == pytest.approx(1, abs=0.05)


def test_convolutions_and_moments(tiny):
    found = memory_truth.measure("randwire", evaluations=50)
    assert found["measured_resident_bytes"] == found["resident_bytes"]
    activation = 4 * 2 * 1280 * 4 * 4  # the largest; a kernel for normalisation keeps another one meanwhile
    for line in found["orders"]:
        assert line["without_workspaces_bytes"] == line["simulated_bytes"]
        assert line["simulated_bytes"] <= line["measured_bytes"] <= line["simulated_bytes"] + activation


def test_a_simulation_that_forgets_memory_is_found_out(tiny, monkeypatch):
    """Every order's simulated peak a tenth too low, and one order far too low."""
    evaluate = SchedulingProblem.evaluate

    def forgetful(self, order):
        from dataclasses import replace

        outcome = evaluate(self, order)
        lucky = np.array_equal(order.op, self.ops)
        return replace(outcome, value=float(int(outcome.value * (0.1 if lucky else 0.8))))

    monkeypatch.setattr(SchedulingProblem, "evaluate", forgetful)
    row = memory_truth.measure("rnnlm", evaluations=50)
    summary = memory_truth.summary([row])
    assert not summary["peaks_met"]
    assert summary["ranking_missed_by"] == ["rnnlm"]
    assert summary["peaks"]["where"] == "rnnlm, program-order"
    assert summary["peaks"]["largest_error"] > 0.05
    assert summary["exact"] == 0
    assert summary["least_tau"] < 0.9


def test_random_orders_are_legal_and_differ(tiny):
    from opgym.datasets import load

    problem = SchedulingProblem(load("synthetic/layered?n=50&seed=2000000"))
    rng = np.random.default_rng(0)
    orders = [memory_truth.random_order(problem.graph, rng) for _ in range(5)]
    assert all(problem.evaluate(Order(order)).ok for order in orders)
    assert len({order.tobytes() for order in orders}) == 5


def row(network, ratios, tau=1.0, by_torch=1.0):
    lines = [
        {
            "order": str(i),
            "simulated_bytes": 1000,
            "measured_bytes": round(1000 * ratio),
            "ratio": ratio,
            "step_ratio": ratio,
            "without_workspaces_bytes": 1000,
            "peak_kind": "mm",
        }
        for i, ratio in enumerate(ratios)
    ]
    own = {"measured_bytes": 1, "ratio": by_torch, "step_ratio": by_torch}
    return {"network": network, "ops": 3, "orders": lines, "tau": tau, "tau_without_workspaces": 1.0,
            "ranked_pairs": 2, "by_torch": own}  # fmt: skip


def test_the_summary_and_its_bars():
    good = memory_truth.summary([row("a", [1.0, 1.04]), row("b", [0.96], None, 1.2)])
    assert (good["networks"], good["runs"], good["exact"], good["exact_without_workspaces"]) == (2, 3, 1, 3)
    assert good["peaks"]["largest_error"] == pytest.approx(0.04)
    assert good["by_torch"] == {"largest_error": pytest.approx(0.2), "where": "b"}
    assert good["without_workspaces"]["largest_error"] == 0
    assert good["peaks_met"]
    assert (good["least_tau"], good["ranked_networks"], good["ranking_missed_by"]) == (1.0, 1, [])
    assert not memory_truth.summary([row("a", [1.0, 0.94])])["peaks_met"]
    bad = memory_truth.summary([row("a", [1.0], 0.8), row("b", [1.0])])
    assert (bad["least_tau"], bad["ranking_missed_by"]) == (0.8, ["a"])
    assert (
        "the least tau is 0.800, without workspaces 1.000: the bar of 0.9 is missed by a."
        in conclusions(bad)[2]
    )
    assert "1 of 3 peaks are right to the byte, 3 without the workspaces of kernels." in conclusions(good)


def test_the_networks_of_the_run():
    found = truth_nets.workloads()
    assert len(found) >= 8
    assert {"rnnlm-2l", "randwire"} <= found.keys()
    assert set(memory_truth.QUICK_NETWORKS) <= found.keys()
    assert all(
        workload.optimizer in ("sgd", "adam") and isinstance(workload.targets, tuple)
        for workload in found.values()
    )
    assert isinstance(found["randwire"].network(), nn.Module)


def invoke(*args):
    return CliRunner().invoke(app, ["reproduce", "memory-truth", "--quick", "--workers", "1", *args])


def test_the_command_prints_tables(tiny):
    result = invoke()
    assert result.exit_code == 0, result.output
    assert "worst random" in result.stdout
    assert "of 7 peaks are right to the byte, 7 without the workspaces of kernels" in result.stdout


def test_a_missed_bar_is_an_error(tiny, monkeypatch):
    monkeypatch.setattr(memory_truth, "TOLERANCE", -1.0)
    result = invoke("--json")
    assert result.exit_code == 1
    assert "further from the measured one" in result.stderr
    document = json.loads(result.stdout)
    assert [r["network"] for r in document["rows"]] == ["rnnlm"]


def test_without_torch_it_says_what_to_install():
    program = "from opgym.runs.reproduce.memory_truth import run; run(quick=True)"
    script = f"import sys; sys.modules['torch'] = None; {program}"
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert found.returncode == 1
    assert "MissingExtraError: memory-truth runs networks with the package torch" in found.stderr
