"""``opgym schedule``: rows, bounds, files, refusals, determinism."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.helper as oh
import pytest

from opgym import agents
from opgym.agents.registry import EXACT, LEARNED, family
from opgym.cli.solving import DEFAULT_SECONDS, EXACT_SECONDS, budget_of
from opgym.datasets import load
from opgym.graphs import GraphBuilder, save
from opgym.graphs.readers import read
from opgym.problems import Budget, Order, SchedulingProblem

from .conftest import Run
from .test_place import KEYS

GRAPH = "synthetic/ws?n=60&seed=1"
FEW = ("--evaluations", 60)
QUICK = ("--solver", "program-order", "--solver", "greedy-freed-bytes")


@pytest.fixture
def wide(tmp_path: Path) -> Path:
    """Two sources of 16 KiB before the ops of 64 bytes that consume one each: best in turn."""
    float_ = onnx.TensorProto.FLOAT
    nodes = [
        *(oh.make_node("Expand", [f"x{i}", "large"], [f"l{i}"], name=f"expand{i}") for i in range(2)),
        *(
            oh.make_node("ReduceSum", [f"l{i}", "axes"], [f"s{i}"], name=f"reduce{i}", keepdims=1)
            for i in range(2)
        ),
        oh.make_node("Add", ["s0", "s1"], ["y"], name="add"),
    ]
    graph = oh.make_graph(
        nodes, "wide",
        [oh.make_tensor_value_info(f"x{i}", float_, [1, 16]) for i in range(2)],
        [oh.make_tensor_value_info("y", float_, [1, 16])],
        [oh.make_tensor("large", onnx.TensorProto.INT64, [2], [256, 16]),
         oh.make_tensor("axes", onnx.TensorProto.INT64, [1], [0])],
    )  # fmt: skip
    path = tmp_path / "wide.onnx"
    onnx.save(oh.make_model(graph, opset_imports=[oh.make_opsetid("", 18)], ir_version=8), path)
    return path


def test_every_solver_but_exact_and_learned_ones_is_a_row_and_the_best_comes_first(
    rows: Callable[..., Any],
) -> None:
    found = rows("schedule", GRAPH, *FEW)
    problem = SchedulingProblem(load(GRAPH))
    expected = {
        name
        for name in agents.names(SchedulingProblem)
        if family(name) not in (EXACT, LEARNED)
        and not agents.make(name).control
        and agents.make(name).skip_reason(problem) is None
    }
    assert {row["solver"] for row in found} == expected
    assert {"program-order", "best-of-three", "beam", "order-search", "order-annealing"} <= expected
    values = [row["value"] for row in found]
    assert values == sorted(values)
    for row in found:
        assert set(row) == KEYS
        assert (row["verdict"], row["unit"]) == ("ok", "bytes")
        assert isinstance(row["value"], int)
        assert row["bound"] >= problem.lower_bound().value
        assert row["ratio_to_bound"] == pytest.approx(row["value"] / row["bound"])
        assert row["ratio_to_bound"] >= 1
        assert row["peak_bytes"] == [row["value"] + problem.resident_bytes]
        assert 1 <= row["evaluations"] <= 60
    by_name = {row["solver"]: row["value"] for row in found}
    assert by_name["program-order"] == problem.reference_bytes
    assert by_name["order-search"] < by_name["program-order"]


def test_exact_solvers_are_asked_for(rows: Callable[..., Any]) -> None:
    exact = [name for name in agents.names(SchedulingProblem) if family(name) == EXACT]
    found = rows("schedule", "example/rnn-train", *QUICK, "--exact", "--seconds", 5)
    problem = SchedulingProblem(load("example/rnn-train"))
    applicable = {name for name in exact if agents.make(name).skip_reason(problem) is None}
    assert {row["solver"] for row in found} == {"program-order", "greedy-freed-bytes"} | applicable


def test_the_order_that_is_best_by_hand(wide: Path, rows: Callable[..., Any]) -> None:
    """Program order: both large tensors live, 2 x 16 KiB + 64; in turn: one, the sum of the other, its own."""
    found = {row["solver"]: row for row in rows("schedule", wide)}
    assert found["program-order"]["value"] == 2 * 16_384 + 64
    best = next(iter(found.values()))
    assert best["value"] == 16_384 + 2 * 64
    assert found["beam"]["proven_optimal"] is True
    assert best["bound"] == best["value"]
    # resident: the inputs of 64 bytes, the shape of 16 and the axis of 8
    assert best["peak_bytes"] == [best["value"] + 2 * 64 + 16 + 8]


def test_a_bound_that_a_solver_proves_replaces_that_of_the_problem(rows: Callable[..., Any]) -> None:
    problem = SchedulingProblem(load("onnx-light/shufflenet"))
    found = rows("schedule", "onnx-light/shufflenet", "--solver", "program-order", "--solver", "beam")
    assert [row["solver"] for row in found] == ["beam", "program-order"]
    assert found[0]["proven_optimal"] is True
    assert found[0]["bound"] == found[1]["bound"] == found[0]["value"] > problem.lower_bound().value
    [alone] = rows("schedule", "onnx-light/shufflenet", "--solver", "program-order")
    assert alone["bound"] == problem.lower_bound().value


def test_same_seed_same_json_and_rows_do_not_depend_on_each_other(rows: Callable[..., Any]) -> None:
    command = ("schedule", GRAPH, "--seed", 7, "--evaluations", 500)
    first, second = rows(*command), rows(*command)
    for row in (*first, *second):
        del row["seconds"]
    assert first == second
    alone = rows(*command, "--solver", "order-annealing")[0]
    among = next(row for row in first if row["solver"] == "order-annealing")
    assert alone["value"] == among["value"]


def test_the_table_says_what_matters(opgym: Run) -> None:
    result = opgym("schedule", "onnx-light/shufflenet")
    assert result.exit_code == 0, result.output
    for words in (
        "light_shufflenet (170 ops) on one device",
        "at least 2.75 MiB (proven by beam); 5.99 MiB are resident beside it",
        "x bound   x program order   verdict",
        "bfs needs 7.3 % less than the order of the program, 2.97 MiB.",
        "Nothing can be better: proven by beam.",
    ):
        assert words in " ".join(result.stdout.split(" ")), words
    [beam] = [line for line in result.stdout.splitlines() if line.strip().startswith("beam ")]
    assert beam.split()[:7] == ["beam", "2.751", "MiB", "1.000", "0.927", "ok,", "optimal"]


def test_where_no_order_matters(opgym: Run) -> None:
    text = opgym("schedule", "onnx-light/squeezenet", *QUICK).stdout
    assert "The order of the program is as good as any that was found." in text
    assert "Nothing can be better: the peak is the lower bound (largest op footprint)." in text


def test_all_files(wide: Path, tmp_path: Path, rows: Callable[..., Any]) -> None:
    pytest.importorskip("matplotlib", reason="the extra opgym[plot] is not installed")
    made = tmp_path / "made"
    made.mkdir()
    order, model, picture = made / "order.json", made / "reordered.onnx", made / "memory.svg"
    best = rows("schedule", wide, "--out", order, "--export", model, "--plot", picture)[0]
    checked = rows("check", wide, order)
    assert (checked["value"], checked["verdict"], checked["unit"]) == (best["value"], "ok", "bytes")
    assert checked["details"]["peak_bytes"] == best["peak_bytes"]
    assert checked["objective"] == "dynamic_peak"
    onnx.checker.check_model(str(model), full_check=True)
    names = [node.name for node in onnx.load(str(model)).graph.node]
    assert sorted(names[:2]) in (["expand0", "reduce0"], ["expand1", "reduce1"])
    [again] = rows("schedule", model, "--solver", "program-order")
    assert again["value"] == best["value"]
    assert picture.read_bytes().startswith(b"<?xml")
    assert sorted(path.name for path in made.iterdir()) == ["memory.svg", "order.json", "reordered.onnx"]


def test_the_exported_model_gives_the_same_outputs(wide: Path, tmp_path: Path, opgym: Run) -> None:
    runtime = pytest.importorskip("onnxruntime", reason="the extra opgym[dev] is not installed")
    target = tmp_path / "reordered.onnx"
    result = opgym("schedule", wide, "--export", target)
    assert result.exit_code == 0
    assert f"wrote {target}" in " ".join(result.stderr.split())
    rng = np.random.default_rng(0)
    feeds = {f"x{i}": rng.normal(size=(1, 16)).astype(np.float32) for i in range(2)}
    [old], [new] = (
        runtime.InferenceSession(str(path), providers=["CPUExecutionProvider"]).run(None, feeds)
        for path in (wide, target)
    )
    assert np.array_equal(old, new)
    assert old == pytest.approx(256 * (feeds["x0"] + feeds["x1"]), abs=1e-3)


def test_an_op_that_gives_a_shape_is_stored_earlier_and_that_is_said(
    tmp_path: Path, opgym: Run, rows: Callable[..., Any]
) -> None:
    """The graph may sum the large tensor last; the file needs its shape before."""
    float_ = onnx.TensorProto.FLOAT
    nodes = [
        oh.make_node("Tile", ["x", "times"], ["huge"], name="huge"),
        oh.make_node("Shape", ["huge"], ["s"], name="shape"),
        oh.make_node("Exp", ["u"], ["e"], name="exp"),
        oh.make_node("Reshape", ["e", "s"], ["r"], name="view"),
        oh.make_node("Neg", ["r"], ["n"], name="neg"),
        oh.make_node("ReduceMax", ["n"], ["m"], name="max"),
        oh.make_node("ReduceSum", ["huge"], ["h"], name="sum"),
        oh.make_node("Mul", ["m", "h"], ["y"], name="mul"),
    ]
    graph = oh.make_graph(
        nodes, "shaped",
        [oh.make_tensor_value_info("x", float_, [1, 8]), oh.make_tensor_value_info("u", float_, [4096])],
        [oh.make_tensor_value_info("y", float_, [1, 1])],
        [oh.make_tensor("times", onnx.TensorProto.INT64, [2], [512, 1])],
    )  # fmt: skip
    source, target = tmp_path / "shaped.onnx", tmp_path / "reordered.onnx"
    onnx.save(oh.make_model(graph, opset_imports=[oh.make_opsetid("", 18)], ir_version=8), source)
    result = opgym("schedule", source, "--solver", "beam", "--export", target, "--json")
    assert result.exit_code == 0
    [best] = json.loads(result.stdout)
    [again] = rows("schedule", target, "--solver", "program-order")
    onnx.checker.check_model(str(target), full_check=True)
    if again["value"] == best["value"]:
        pytest.fail("the example is one where the file needs more than the graph")
    said = " ".join(result.stderr.split())
    assert "some ops are stored earlier than scheduled, as the model computes a shape from them" in said
    assert again["value"] > best["value"]


def test_a_solver_that_does_not_apply_is_named(opgym: Run, refused: Callable[..., str]) -> None:
    both = opgym("schedule", GRAPH, "--solver", "m-etf", "--solver", "dfs", "--json")
    assert [row["solver"] for row in json.loads(both.stdout)] == ["dfs"]
    assert "skipped m-etf: does not solve a SchedulingProblem" in both.stderr
    message = refused("schedule", GRAPH, "--solver", "m-etf")
    assert "no solver applies: tried m-etf for orders" in message


def test_a_broken_solver_does_not_take_the_others_down(monkeypatch: pytest.MonkeyPatch, opgym: Run) -> None:
    def crash(*_: object) -> None:
        raise ZeroDivisionError("oops")

    monkeypatch.setattr(type(agents.make("bfs")), "_search", crash)
    result = opgym("schedule", GRAPH, "--solver", "bfs", "--solver", "dfs", "--json")
    assert result.exit_code == 1
    assert [row["solver"] for row in json.loads(result.stdout)] == ["dfs"]
    assert "solver bfs failed: ZeroDivisionError: oops" in result.stderr
    assert opgym("schedule", GRAPH, "--solver", "bfs").exit_code == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--solver", "order-serach"), "did you mean order-search"),
        (("--dim", "batch"), "expected NAME=N"),
        (("--subgraphs", "flatten"), "flatten"),
        (("--plot", "memory.jpeg"), ".svg, .png, .pdf"),
        (("--out", "absent/order.json"), "no folder absent"),
        (("--export", "absent/m.onnx"), "no folder absent"),
        (("--out", "same", "--export", "same"), "already the file of --out"),
    ],
)
def test_bad_options_are_refused_before_any_work(
    arguments: tuple[str, ...], message: str, wide: Path, refused: Callable[..., str],
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path,
) -> None:  # fmt: skip
    monkeypatch.setattr(agents.SchedulingSolver, "solve", lambda *_: pytest.fail("a solver ran"))
    monkeypatch.chdir(tmp_path)
    assert message in refused("schedule", wide, *arguments, "--json")
    assert [path.name for path in tmp_path.iterdir()] == ["wide.onnx"]


def test_the_model_is_not_overwritten(wide: Path, refused: Callable[..., str]) -> None:
    before = wide.read_bytes()
    for option in ("--out", "--export"):
        assert "is the model itself" in refused("schedule", wide, option, wide)
    assert "is the model itself" in refused("place", wide, "--out", wide)
    assert wide.read_bytes() == before


def test_only_models_from_onnx_are_exported(
    tmp_path: Path, refused: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agents.SchedulingSolver, "solve", lambda *_: pytest.fail("a solver ran"))
    message = refused("schedule", GRAPH, "--export", tmp_path / "m.onnx")
    assert "is synthetic; only a model that is read from ONNX can be exported" in message
    assert list(tmp_path.iterdir()) == []


def test_a_graph_of_variables_is_refused(tmp_path: Path, refused: Callable[..., str]) -> None:
    b = GraphBuilder("example", "variables")
    b.op("variable", outputs=[b.tensor(bytes=4, role="parameter")])
    save(b.build(), tmp_path / "v.npz")
    assert "only variables" in refused("schedule", tmp_path / "v.npz")


def test_default_budgets_and_the_users_go_first() -> None:
    problem = SchedulingProblem(load(GRAPH))
    search, rule = agents.make("order-search"), agents.make("dfs")
    assert budget_of(search, problem, None, None) == Budget(200_000, DEFAULT_SECONDS)
    assert budget_of(agents.make("key-search"), problem, None, None) == Budget(5_000, DEFAULT_SECONDS)
    assert budget_of(agents.make("beam"), problem, None, None) == Budget(100_000, DEFAULT_SECONDS)
    assert budget_of(rule, problem, None, None) == Budget()
    assert budget_of(search, problem, 3.0, None) == Budget(None, 3.0)
    assert budget_of(search, problem, None, 7) == Budget(7, None)
    assert budget_of(agents.make("dp-order"), problem, None, None) == Budget(None, EXACT_SECONDS)


# --- opgym check with an order


@pytest.fixture
def order(tmp_path: Path, opgym: Run) -> Path:
    path = tmp_path / "order.json"
    assert opgym("schedule", "example/rnn-train", "--solver", "dfs", "--out", path).exit_code == 0
    return path


def test_claims_are_not_believed(order: Path, rows: Callable[..., Any]) -> None:
    true = rows("check", "example/rnn-train", order)
    graph = load("example/rnn-train")
    result = agents.make("dfs").solve(SchedulingProblem(graph))
    assert true["value"] == result.outcome.value
    document = json.loads(order.read_text())
    document["claim"]["value"] = 1
    order.write_text(json.dumps(document))
    assert rows("check", "example/rnn-train", order) == true


def test_the_text_of_an_order(order: Path, opgym: Run) -> None:
    text = opgym("check", "example/rnn-train", order).stdout
    assert text.startswith("ok  dynamic_peak 235 MiB, 1.049 times the lower bound (bytes live around an op)")
    assert "\npeak memory: 367 MiB\n" in text
    assert "\nresident: 132.000 MiB\n" in text


def test_bad_orders_are_verdicts(order: Path, rows: Callable[..., Any]) -> None:
    document = json.loads(order.read_text())
    good = document["order"]
    for wrong, verdict in (
        (good[::-1], "illegal_order"),
        (good[:-1], "wrong_length"),
        ([good[0]] * len(good), "illegal_order"),
        ([10**12, *good[1:]], "illegal_order"),
    ):
        order.write_text(json.dumps(document | {"order": wrong}))
        found = rows("check", "example/rnn-train", order)
        assert (found["verdict"], found["value"], found["ratio_to_bound"]) == (verdict, None, None)
        assert found["details"]["reason"]


def test_an_order_of_another_graph_or_with_options_of_placements(
    order: Path, refused: Callable[..., str]
) -> None:
    assert "fingerprint" in refused("check", GRAPH, order)
    for option, value in (("--cluster", "2xP100"), ("--objective", "step_time"), ("--micro-batches", 2)):
        message = refused("check", "example/rnn-train", order, option, value)
        assert option in message
        assert "holds an order for one device" in message
    document = json.loads(order.read_text())
    order.write_text(json.dumps(document | {"order": "abc"}))
    assert "order.json" in refused("check", "example/rnn-train", order)


def test_an_exported_order_is_that_of_the_file(tmp_path: Path, rows: Callable[..., Any]) -> None:
    """Export, out and the simulator agree on a real model."""
    out, export = tmp_path / "o.json", tmp_path / "m.onnx"
    [row] = rows(
        "schedule", "onnx-light/shufflenet", "--solver", "order-annealing", "--out", out, "--export", export
    )
    problem = SchedulingProblem(load("onnx-light/shufflenet"))
    order = np.array(json.loads(out.read_text())["order"])
    assert problem.evaluate(Order(order)).value == row["value"] < problem.reference_bytes
    again = SchedulingProblem(read(export).graph)
    assert again.reference_bytes == row["value"]
    assert [again.graph.kind(op) for op in again.ops] == [problem.graph.kind(op) for op in order]


def test_no_command_writes_over_the_model_or_its_weights(
    model: Path, tmp_path: Path, refused: Callable[..., str]
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    stored, weights = home / "branches.onnx", home / "w.bin"
    onnx.save(onnx.load(model), stored, save_as_external_data=True, location="w.bin", size_threshold=0)
    before = {file: file.read_bytes() for file in (stored, weights)}
    options = [("schedule", "--out"), ("schedule", "--export"), ("place", "--out"), ("place", "--trace")]
    for command, option in [*options, ("import", "--save")]:
        said = refused(command, stored, "--dim", "batch=8", option, weights)
        assert f"Invalid value for {option}" in said
        assert "holds weights of the model" in said
    assert "is the model itself" in refused("import", stored, "--dim", "batch=8", "--save", stored)
    assert {file: file.read_bytes() for file in before} == before
