"""``opgym reproduce optima``: what it proves, what it counts, and what it does when a proof is contradicted."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from opgym import agents
from opgym.agents.registry import EXACT, family
from opgym.cli.app import app
from opgym.cli.optima_report import conclusions
from opgym.datasets import load
from opgym.datasets.reference import load_proven_peaks
from opgym.datasets.synthetic import FAMILIES, SEEDS
from opgym.problems import Order, SchedulingProblem
from opgym.runs.reproduce import optima

SMALL = "synthetic/layered?n=20&seed=2000000"


def row(graph, ops, best, proven_by, **values):
    """A row; solvers that are not named have the program order's value."""
    given = {name: values.get("program", best) for name in optima.COLUMNS}
    given |= {name.replace("_", "-"): value for name, value in values.items() if name != "program"}
    return {
        "graph": graph,
        "fingerprint": "0f",
        "ops": ops,
        "best_bytes": best,
        "bound_bytes": best if proven_by else 1,
        "proven_by": list(proven_by),
        "seconds": 1.0,
        "values": given,
        "order": [0],
        "contradictions": [],
    }


def test_graphs_are_large_enough_and_synthetic_ones_come_from_the_test_seeds():
    ids = optima.instances()
    assert len(ids) == len(set(ids))
    for id in ids:
        assert len(SchedulingProblem(load(id)).ops) >= 50
    synthetic = [id for id in ids if id.startswith("synthetic/")]
    assert {id.partition("?")[0].removeprefix("synthetic/") for id in synthetic} == set(FAMILIES)
    assert all(int(id.rpartition("seed=")[2]) in SEEDS["test"] for id in synthetic)
    assert {id for id in ids if id.startswith("onnx-light/")} == {
        f"onnx-light/{name}"
        for name in ("densenet121", "inception_v1", "inception_v2", "resnet50", "shufflenet", "squeezenet")
    }
    assert set(optima.instances(quick=True)) <= set(ids)


def test_every_scheduler_of_ours_is_compared_or_a_prover():
    compared = {column.solver for column in optima.COLUMNS.values()}
    exact = {name for name in agents.names(SchedulingProblem) if family(name) == EXACT}
    assert compared <= set(agents.names(SchedulingProblem)) - exact
    assert {
        "program-order",
        "bfs",
        "dfs",
        "post-order",
        "greedy-freed-bytes",
        "sethi-ullman",
        "best-of-three",
    } <= compared
    assert {"beam", "order-search", "order-annealing", "key-search", "brkga"} <= compared


def test_a_row_is_what_the_solvers_say():
    found = optima.measure(SMALL)
    problem = SchedulingProblem(load(SMALL))
    assert found["fingerprint"] == problem.graph.fingerprint
    assert found["best_bytes"] == found["bound_bytes"] == agents.make("dp-order").solve(problem).outcome.value
    assert found["proven_by"] == ["dp-order", "cp-sat"]
    assert problem.evaluate(Order(np.array(found["order"]))).value == found["best_bytes"]
    assert found["values"]["program-order"] == problem.reference_bytes
    assert min(found["values"].values()) >= found["best_bytes"]
    assert found["contradictions"] == []
    again = optima.measure(SMALL)
    assert {**found, "seconds": 0} == {**again, "seconds": 0}


def test_the_summary_counts():
    rows = [
        row("onnx-light/a", 100, 10, ["bound: largest op footprint"]),  # the program order is optimal
        row("synthetic/b", 60, 10, ["dp-order", "cp-sat"], program=20, beam=10, order_search=11),
        row("synthetic/c", 60, 10, ["dp-order"], program=20, beam=12, order_search=15, order_search_200k=10),
        row("onnx-light/d", 120, 10, [], program=30),
    ]
    summary = optima.summary(rows)
    assert (summary["graphs"], summary["proven"], summary["trivial"]) == (4, 3, 1)
    assert (summary["confirmed"], summary["by_graph_bound"]) == (1, 1)
    assert summary["open"] == [{"graph": "onnx-light/d", "bound_ratio": 0.1}]
    assert summary["real_from_100_ops"] == {"graphs": 2, "proven": 1}
    reached = summary["beam_or_order_search"]
    assert reached["short"] == {"reached": 2 / 3, "reached_where_not_trivial": 1 / 2}
    assert reached["long"] == {"reached": 1.0, "reached_where_not_trivial": 1.0}
    lines = {line["solver"]: line for line in summary["solvers"]}
    assert lines["program-order"]["reached"] == 1 / 3
    assert lines["program-order"]["mean_ratio"] == pytest.approx(2.0)
    assert lines["order-search"]["worst_ratio"] == 1.5
    assert lines["order-search"]["mean_ratio"] == pytest.approx((1.1 * 1.5) ** 0.5)
    assert (
        "3 of 4 optima are proven, 1 of them by a bound of the graph and 1 by two solvers; 1 are trivial."
        in (conclusions(summary))
    )


def test_nothing_proven_is_no_error():
    summary = optima.summary([row("a", 60, 10, [], program=20)])
    assert summary["beam_or_order_search"]["short"]["reached"] is None
    assert conclusions(summary)


@pytest.fixture
def one_small_graph(monkeypatch):
    monkeypatch.setattr(optima, "instances", lambda *, quick: [SMALL])


def invoke(*args):
    return CliRunner().invoke(app, ["reproduce", "optima", "--workers", "1", *map(str, args)])


def test_the_command_prints_tables_and_writes_the_optima(one_small_graph, tmp_path):
    result = invoke("--out", tmp_path / "peaks.json")
    assert result.exit_code == 0, result.output
    assert "dp-order, cp-sat" in result.stdout
    assert "1 of 1 optima are proven, 0 of them by a bound of the graph and 1 by two solvers" in result.stdout
    (peak,) = load_proven_peaks(tmp_path / "peaks.json")
    assert peak.graph == SMALL
    assert SchedulingProblem(load(SMALL)).evaluate(Order(peak.order)).value == peak.optimum_bytes


def test_json_is_a_document(one_small_graph):
    result = invoke("--json", "--quick")
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    assert document["summary"]["proven"] == 1
    assert [r["graph"] for r in document["rows"]] == [SMALL]


def test_a_value_below_a_proof_is_an_error(one_small_graph, monkeypatch):
    class Wrong(agents.registry.solver_class("dp-order")):
        def solve(self, *args, **options):
            from dataclasses import replace

            found = super().solve(*args, **options)
            return replace(found, bound=found.bound + 1)

    monkeypatch.setitem(agents.registry._registry, "dp-order", Wrong)
    result = invoke("--json")
    assert result.exit_code == 1
    assert "below" in result.stderr
    assert "by dp-order" in result.stderr
    document = json.loads(result.stdout)
    assert document["contradictions"]
    assert "dp-order" not in document["rows"][0]["proven_by"]
