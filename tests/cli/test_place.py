"""``opgym place``: rows, files, refusals, determinism."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from opgym import agents
from opgym.cli.report import tightest_bound
from opgym.cli.solving import DEFAULT_SECONDS, FEWEST_EVALUATIONS, MOST_EVALUATIONS, budget_of
from opgym.datasets import load
from opgym.graphs import Cluster
from opgym.problems import Budget, Objective, PlacementProblem

from .conftest import Run

KEYS = {
    "solver", "value", "unit", "verdict", "ratio_to_bound", "bound", "peak_bytes", "seconds",
    "evaluations", "proven_optimal", "note",
}  # fmt: skip
FEW = ("--evaluations", 60)


def test_every_applicable_solver_is_a_row_and_the_best_comes_first(
    model: Path, rows: Callable[..., Any]
) -> None:
    found = rows("place", model, "--dim", "batch=64", *FEW)
    problem = PlacementProblem(load(str(model), dims={"batch": 64}), Cluster.parse("4xP100"))
    tried = [agents.make(name) for name in agents.names()]
    asked_for = [s for s in tried if s.control or s.proves or agents.is_learner(s)]
    applicable = {s.name for s in tried if s.skip_reason(problem) is None and s not in asked_for}
    assert {row["solver"] for row in found} == applicable
    assert {"single", "m-etf", "annealing"} <= applicable
    values = [row["value"] for row in found]
    assert values == sorted(values)
    bound = problem.lower_bound()
    for row in found:
        assert set(row) == KEYS
        assert row["verdict"] == "ok"
        assert row["unit"] == "ns"
        assert isinstance(row["value"], int)
        assert row["bound"] == bound.value
        assert row["ratio_to_bound"] == pytest.approx(row["value"] / bound.value)
        assert row["ratio_to_bound"] >= 1
        assert len(row["peak_bytes"]) == 4
        assert 1 <= row["evaluations"] <= 60
        assert row["seconds"] >= 0


def test_a_row_is_what_the_solver_finds(model: Path, rows: Callable[..., Any]) -> None:
    [row] = rows("place", model, "--dim", "batch=64", "--solver", "m-etf")
    problem = PlacementProblem(load(str(model), dims={"batch": 64}), Cluster.parse("4xP100"))
    result = agents.make("m-etf").solve(problem)
    assert row["value"] == result.outcome.value
    assert row["peak_bytes"] == result.outcome.details["peak_bytes"]


@pytest.mark.parametrize("objective", ["step_time", "peak_memory", "max_load", "latency"])
def test_every_objective(objective: str, rows: Callable[..., Any]) -> None:
    found = rows(
        "place",
        "example/rnn-train",
        "--objective",
        objective,
        "--solver",
        "single",
        "--solver",
        "random",
        *FEW,
    )
    assert {row["solver"] for row in found} == {"single", "random"}
    assert {row["unit"] for row in found} == {
        {"step_time": "ns", "peak_memory": "bytes"}.get(objective, "ms")
    }


def test_same_seed_same_json(model: Path, rows: Callable[..., Any]) -> None:
    command = ("place", model, "--dim", "batch=64", "--seed", 7, *FEW)
    first, second = rows(*command), rows(*command)
    for row in (*first, *second):
        del row["seconds"]
    assert first == second


def test_a_result_does_not_depend_on_the_other_solvers(model: Path, rows: Callable[..., Any]) -> None:
    command = ("place", model, "--dim", "batch=64", *FEW)
    alone = rows(*command, "--solver", "annealing")[0]
    among = next(row for row in rows(*command) if row["solver"] == "annealing")
    assert alone["value"] == among["value"]


def test_published_graphs_bring_cluster_and_objective(published: Path, rows: Callable[..., Any]) -> None:
    """Six nodes of 2 to 7 ms in a chain: {0 .. 3} | {4, 5} is best: 14 + 0.5 against 13 + 0.5."""
    [row] = rows("place", published, "--solver", "dp")
    assert (row["value"], row["unit"], row["verdict"]) == (pytest.approx(14.5), "ms", "ok")
    assert len(row["peak_bytes"]) == 3
    [row] = rows("place", published, "--solver", "single", "--objective", "latency")
    assert row["value"] == pytest.approx(27.0)


def test_published_graphs_refuse_another_cluster(published: Path, refused: Callable[..., str]) -> None:
    assert "brings its own cluster" in refused("place", published, "--cluster", "4xP100")


def test_out_of_memory_is_a_verdict_and_exit_0(tmp_path: Path, opgym: Run) -> None:
    nodes = [
        {
            "id": i,
            "supportedOnFpga": 1,
            "cpuLatency": 9.0,
            "fpgaLatency": 1.0,
            "isBackwardNode": 0,
            "size": 700,
        }
        for i in range(2)
    ]
    edges = [{"sourceId": 0, "destId": 1, "cost": 1.0}]
    top = {"maxSizePerFPGA": 1000, "maxFPGAs": 1, "maxCPUs": 0, "nodes": nodes, "edges": edges}
    (tmp_path / "tight.json").write_text(json.dumps(top))
    result = opgym("place", tmp_path / "tight.json", "--solver", "single", "--json")
    assert result.exit_code == 0, result.output
    [row] = json.loads(result.stdout)
    assert row["verdict"] == "out_of_memory"
    assert row["value"] == pytest.approx(2.0)
    text = opgym("place", tmp_path / "tight.json", "--solver", "single").stdout
    assert "Nothing found fits into memory: the closest, single, is 400 B over" in text


def test_the_table_says_what_matters(model: Path, opgym: Run) -> None:
    result = opgym("place", model, "--dim", "batch=64", *FEW)
    assert result.exit_code == 0, result.output
    for word in (
        "branches",
        "4xP100",
        "step_time",
        "x bound",
        "peak memory per device",
        "verdict",
        "m-etf",
        "annealing",
    ):
        assert word in result.stdout
    assert "times the lower bound (critical path" in result.stdout
    assert "skipped dp: does not optimise step_time" in result.stderr


def test_settings_that_do_not_apply_are_bad_input(tmp_path: Path, refused: Callable[..., str]) -> None:
    settings = tmp_path / "mine.yaml"
    settings.write_text("solver: brkga\noptions: {groups: layers}\n")
    message = refused("place", "example/rnn-train", "--solver", str(settings))
    assert "mine.yaml: unknown grouping 'layers'; did you mean layer?" in " ".join(message.split())


def test_a_solver_that_does_not_apply_is_named(opgym: Run, refused: Callable[..., str]) -> None:
    both = opgym("place", "example/rnn-train", "--solver", "dp", "--solver", "single", "--json")
    assert [row["solver"] for row in json.loads(both.stdout)] == ["single"]
    assert "skipped dp" in both.stderr
    assert "no solver applies" in refused("place", "example/rnn-train", "--solver", "dp")


def test_a_broken_solver_does_not_take_the_others_down(monkeypatch: pytest.MonkeyPatch, opgym: Run) -> None:
    def crash(*_: object) -> None:
        raise ZeroDivisionError("oops")

    monkeypatch.setattr(type(agents.make("m-topo")), "_search", crash)
    result = opgym("place", "example/rnn-train", "--solver", "m-topo", "--solver", "single", "--json")
    assert result.exit_code == 1
    assert [row["solver"] for row in json.loads(result.stdout)] == ["single"]
    assert "solver m-topo failed: ZeroDivisionError: oops" in result.stderr


def test_all_files(model: Path, tmp_path: Path, rows: Callable[..., Any]) -> None:
    pytest.importorskip("matplotlib", reason="the extra opgym[plot] is not installed")
    files = {name: tmp_path / "out" / name for name in ("s.json", "t.json", "p.svg", "m.svg", "made/here")}
    (tmp_path / "out").mkdir()
    best = rows(
        "place", model, "--dim", "batch=64", "--cluster", "2xP100@nvlink",
        "--solver", "m-etf", "--solver", "metis", "--out", files["s.json"], "--trace", files["t.json"],
        "--plot", files["p.svg"], "--map", files["m.svg"], "--export", files["made/here"],
    )[0]  # fmt: skip
    checked = rows("check", model, files["s.json"], "--dim", "batch=64", "--cluster", "2xP100@nvlink")
    assert (checked["value"], checked["verdict"]) == (best["value"], "ok")
    trace = json.loads(files["t.json"].read_text())
    end = max(event["ts"] + event["dur"] for event in trace["traceEvents"] if event["ph"] == "X")
    assert round(end * 1000) == best["value"]
    assert "P100" not in files["p.svg"].read_text()[:20]
    for picture in ("p.svg", "m.svg"):
        assert files[picture].read_bytes().startswith(b"<?xml")
    assert len(re.findall('id="axes_', files["m.svg"].read_text())) == 2  # a panel for each solver
    device_map = json.loads((files["made/here"] / "branches.device_map.json").read_text())
    assert len(device_map["ops"]) == 25
    placed = onnx.load(files["made/here"] / "branches.placed.onnx")
    onnx.checker.check_model(placed)
    assert len(placed.graph.node) == 25
    assert all(node.metadata_props for node in placed.graph.node)
    assert sorted(path.name for path in files["made/here"].iterdir()) == [
        "branches.device_map.json",
        "branches.placed.onnx",
    ]


def test_a_graph_file_exports_its_device_map_alone(
    tmp_path: Path, rows: Callable[..., Any], opgym: Run
) -> None:
    assert opgym("import", "example/rnn-train", "--save", tmp_path / "g.npz").exit_code == 0
    rows("place", tmp_path / "g.npz", "--solver", "single", "--export", tmp_path / "made")
    assert [path.name for path in (tmp_path / "made").iterdir()] == ["g.device_map.json"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--cluster", "4xP10"), "did you mean P100"),
        (("--cluster", "4xP100@nvlinc"), "did you mean nvlink"),
        (("--cluster", "four"), "four"),
        (("--cluster", "99xP100"), "expected 1 to 64"),
        (("--cluster", "2xREGAL"), "no compute rates"),
        (("--objective", "step-time"), "did you mean step_time"),
        (("--solver", "m-eft"), "did you mean m-etf"),
        (("--dim", "batch"), "expected NAME=N"),
        (("--dim", "batch=big"), "expected NAME=N"),
        (("--dim", "batch=-1"), "expected NAME=N"),
        (("--dim", "=8"), "expected NAME=N"),
        (("--dim", "batch=8", "--dim", "batch=9"), "'batch' is given twice: 8 and 9"),
        (("--micro-batches", "4"), "belongs to --objective max_load"),
        (("--objective", "max_load", "--schedule", "1f1b"), "give --micro-batches too"),
        (("--objective", "max_load", "--micro-batches", "0"), "expected at least 1"),
        (
            ("--objective", "max_load", "--micro-batches", "2", "--schedule", "2f2b"),
            "expected one of gpipe, 1f1b",
        ),
        (("--subgraphs", "flatten"), "flatten"),
    ],
)
def test_bad_options(
    arguments: tuple[str, ...], message: str, model: Path, refused: Callable[..., str], tmp_path: Path
) -> None:
    dims = () if "--dim" in arguments else ("--dim", "batch=8")
    assert message in refused("place", model, *dims, *arguments, "--json")


@pytest.mark.parametrize("option", ["--out", "--trace", "--plot", "--map", "--export"])
def test_unwritable_places_are_refused_before_any_work(
    option: str, tmp_path: Path, refused: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agents.PlacementSolver, "solve", lambda *_: pytest.fail("a solver ran"))
    (tmp_path / "file").write_text("")
    suffix = {"--plot": "p.svg", "--map": "m.svg", "--export": ""}.get(option, "f.json")
    for target in (tmp_path / "file" / suffix, Path("/proc/nowhere") / suffix):
        message = refused("place", "example/rnn-train", option, target)
        assert option in message
        assert str(target.parent if suffix else target) in message


def test_a_folder_a_device_and_one_name_twice_are_no_files(
    tmp_path: Path, refused: Callable[..., str]
) -> None:
    assert "is a folder" in refused("place", "example/rnn-train", "--out", tmp_path)
    assert "not a regular file" in refused("place", "example/rnn-train", "--out", "/dev/null")
    same = tmp_path / "a.json"
    assert "already the file of --out" in refused(
        "place", "example/rnn-train", "--out", same, "--trace", same
    )
    for option in ("--plot", "--map"):
        assert ".svg, .png, .pdf" in refused("place", "example/rnn-train", option, tmp_path / "p.jpeg")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("content", [b"", b"not a model", b"\x08\x07\x12\x04", b"{}", b"PK\x03\x04"])
def test_files_that_are_no_models(content: bytes, tmp_path: Path, refused: Callable[..., str]) -> None:
    for suffix in ("onnx", "json", "npz"):
        path = tmp_path / f"broken.{suffix}"
        path.write_bytes(content)
        assert f"broken.{suffix}" in refused("place", path, "--json")


def test_missing_and_misspelt_models(tmp_path: Path, refused: Callable[..., str]) -> None:
    assert "absent.onnx" in refused("place", tmp_path / "absent.onnx")
    assert str(tmp_path) in refused("place", tmp_path)
    assert "onnx-light/inception_v2" in refused("place", "onnx-light/inceptoin_v2")


def test_a_dynamic_dimension_must_be_bound(model: Path, refused: Callable[..., str]) -> None:
    message = refused("place", model)
    assert "batch" in message
    assert "--dim" in message


def test_no_device_is_large_enough(tmp_path: Path, refused: Callable[..., str]) -> None:
    nodes = [
        {
            "id": 0,
            "supportedOnFpga": 1,
            "cpuLatency": 9.0,
            "fpgaLatency": 1.0,
            "isBackwardNode": 0,
            "size": 5000,
        }
    ]
    top = {"maxSizePerFPGA": 1000, "maxFPGAs": 1, "maxCPUs": 0, "nodes": nodes, "edges": []}
    (tmp_path / "large.json").write_text(json.dumps(top))
    message = refused("place", tmp_path / "large.json")
    assert "5000" in message
    assert "1000" in message


def test_default_budgets_are_by_size_and_the_users_go_first() -> None:
    problem = PlacementProblem(load("example/rnn-train"), Cluster.parse("2xP100"))
    annealing, single = agents.make("annealing"), agents.make("single")
    assert budget_of(annealing, problem, None, None) == Budget(MOST_EVALUATIONS, DEFAULT_SECONDS)
    assert budget_of(single, problem, None, None) == Budget()
    assert budget_of(annealing, problem, 3.0, None) == Budget(None, 3.0)
    assert budget_of(annealing, problem, None, 7) == Budget(7, None)

    class Large:
        class graph:
            num_ops = 10**6

    assert budget_of(annealing, Large, None, None).evaluations == FEWEST_EVALUATIONS  # type: ignore[arg-type]


def test_placements_differ_from_one_device_where_it_pays(rows: Callable[..., Any]) -> None:
    """The example graph is made so that two devices beat one."""
    found = {
        row["solver"]: row["value"] for row in rows("place", "example/rnn-train", "--cluster", "2xP100", *FEW)
    }
    assert min(found.values()) < 0.95 * found["single"]
    assert np.isfinite(list(found.values())).all()


def test_exact_solvers_run_when_asked_for_and_tighten_the_bound(rows: Callable[..., Any]) -> None:
    arguments = ("place", "example/two-branch", "--cluster", "2xP100", "--evaluations", 2_000)
    plain, exact = rows(*arguments), rows(*arguments, "--exact")
    assert {row["solver"] for row in exact} - {row["solver"] for row in plain} == {"cp-sat"}
    assert not any(row["proven_optimal"] for row in plain)
    [proof] = [row for row in exact if row["solver"] == "cp-sat"]
    assert proof["proven_optimal"]
    assert proof["bound"] == proof["value"] == exact[0]["value"] > plain[0]["bound"]


def test_what_a_solver_proves_of_its_own_placements_bounds_no_others() -> None:
    problem = PlacementProblem(load("example/two-branch"), Cluster.parse("2xP100"), Objective.MAX_LOAD)
    best_split = agents.make("dp").solve(problem)
    assert best_split.proven_optimal
    assert best_split.bound == best_split.outcome.value > problem.lower_bound().value
    assert tightest_bound(problem, [best_split]) == problem.lower_bound()
