"""What evaluations compare: agents, rows and limits that are asked for, and learners."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from opgym import datasets
from opgym.agents import make
from opgym.conf import make_agent
from opgym.errors import InvalidProblemError, OpgymError, UnknownIdError
from opgym.problems import Budget, Placement
from opgym.runs.evaluate.cases import cases_of_graphs, cases_of_suite
from opgym.runs.evaluate.contestants import Contestant, contestants, digest_of
from opgym.runs.evaluate.evaluation import Comparison, evaluate
from opgym.runs.evaluate.result_tables import RESULTS, read_table

from .test_evaluation import GRAPHS, ORDERS, small

# --- What is asked for --------------------------------------------------------------------------------------


def test_contestants_are_names_settings_and_options() -> None:
    tuned = Contestant.of_solver("brkga-tuned", make_agent("brkga-tuned"))
    own = {"solver": "brkga", "options": {"mutant_beta": [0.5, 0.5]}, "name": "arcsine"}
    found = contestants(["bfs", tuned, own])
    assert [contestant.name for contestant in found] == ["bfs", "brkga-tuned", "arcsine"]
    assert [contestant.make().name for contestant in found] == ["bfs", "brkga", "brkga"]
    assert found[2].make().mutant_beta == (0.5, 0.5)  # type: ignore[attr-defined]
    assert len({contestant.digest for contestant in found}) == 3


def test_a_digest_is_of_all_options_and_says_nothing_of_how_they_were_given() -> None:
    assert digest_of(make("brkga")) == digest_of(make("brkga", bias=make("brkga").bias))  # type: ignore[attr-defined]
    assert digest_of(make("brkga")) != digest_of(make("brkga", bias=0.71))
    start = Placement(np.arange(3))
    assert digest_of(make("pair-annealing", start=start)) != digest_of(make("pair-annealing"))
    settings = Contestant.of_solver("mine", make("brkga", threads=1))
    assert settings.digest == Contestant.of("brkga").digest


def test_an_agent_that_changes_during_a_run_is_found_out() -> None:
    asked = replace(Contestant.of("brkga"), digest="0" * 12)
    with pytest.raises(InvalidProblemError, match="has changed since this run began"):
        asked.make()


def test_a_name_goes_before_a_folder_of_that_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bfs").mkdir()
    monkeypatch.chdir(tmp_path)
    assert Contestant.of("bfs").make().name == "bfs"
    with pytest.raises(InvalidProblemError, match=r"a folder without agent\.json"):
        Contestant.of("./bfs")


@pytest.mark.parametrize(
    ("agents", "error", "message"),
    [
        ([], InvalidProblemError, "no agents"),
        (["bsf"], UnknownIdError, "did you mean bfs"),
        (["bfs", "bfs"], InvalidProblemError, "share a name"),
        (["brkga", {"solver": "brkga", "name": "other"}], InvalidProblemError, "are the same"),
        ([{"solver": "brkga", "options": {"bais": 1}}], UnknownIdError, "did you mean bias"),
        ([{"solver": "brkga", "option": {}}], InvalidProblemError, "expected a name, a path"),
        ([{"_target_": "os.system"}], InvalidProblemError, "expected a name, a path"),
        ([{"solver": "bfs", "options": {"x": object()}}], InvalidProblemError, "no plain data"),
        (["runs/ppo"], InvalidProblemError, "a folder without agent.json"),
    ],
)  # fmt: skip
def test_agents_that_cannot_be(agents: list[Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        contestants(agents)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"budget": 0}, "a budget of 0"),
        ({"seeds": ()}, "different whole numbers"),
        ({"seeds": (1, 1)}, "different whole numbers"),
        ({"seeds": (-1,)}, "different whole numbers"),
        ({"seconds": 0.0}, "more than 0"),
        ({"seconds": math.inf}, "more than 0"),
        ({"seconds": math.nan}, "more than 0"),
        ({"seconds": 10**400}, "more than 0"),
        ({"budget": 10**26}, "a budget of 10{26} evaluations; expected 1 .. 9223372036854775807"),
        ({"seeds": (0, 2**63)}, "seed 9223372036854775808; expected at most 9223372036854775807"),
        ({"seeds": tuple(range(101))}, "101 seeds; at most 100 are compared"),
        (
            {"contestants": [replace(Contestant.of("bfs"), name=f"{i}") for i in range(41)]},
            "41 agents; at most 40",
        ),
        (
            {"contestants": [replace(Contestant.of("bfs"), name="x" * 1001)]},
            "of 1001 characters; at most 1000",
        ),
        ({"cases": ORDERS[:1] * 10_001}, "10001 problems; at most 10000"),
        ({"cases": []}, "nothing to compare"),
    ],
)
def test_comparisons_that_cannot_be(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidProblemError, match=message):
        replace(small(), **changes)


def test_the_largest_numbers_can_be_stored_and_read(tmp_path: Path) -> None:
    most = 2**63 - 1
    comparison = replace(small(["random-order"]), budget=most, seeds=[most], seconds=0.01)
    evaluate(comparison, tmp_path)
    table = read_table(tmp_path, RESULTS)
    assert (set(table["budget"]), set(table["seed"]), set(table["verdict"])) == ({most}, {most}, {"ok"})


def test_rows_of_a_suite_are_chosen_by_part_role_and_position() -> None:
    suite = datasets.suite("memory-order")
    tested = [row for row in suite.rows if row.part == "test" and row.role == "task"]
    cases = cases_of_suite("memory-order", part="test", roles=["task"], rows=[2, 0])
    assert [case.row for case in cases] == [tested[2], tested[0]]
    assert len(cases_of_suite("memory-order")) == len(suite.rows)
    assert [
        case.row for case in cases_of_suite("memory-order", part="test", roles=["task"], rows=2)
    ] == tested[:2]
    both = cases_of_suite("gdp", rows=["zoo/rnnlm-2l-train", 0])
    assert [case.row.cluster for case in both] == ["2xP100", "2xP100@nvlink"]
    held_out = cases_of_suite("gdp", protocol="unseen-size")
    assert {case.row.graph for case in held_out} == set(datasets.protocol("unseen-size").test)
    assert {case.row.graph for case in cases_of_suite("gdp", protocol="unseen-size", part="train")} <= set(
        datasets.protocol("unseen-size").train
    )


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"suite": "gpd"}, UnknownIdError, "did you mean gdp"),
        ({"suite": "gdp", "part": "tset"}, UnknownIdError, "did you mean test"),
        ({"suite": "gdp", "roles": ["tsak"]}, UnknownIdError, "did you mean task"),
        ({"suite": "gdp", "rows": [28]}, InvalidProblemError, "expected 0 .. 27"),
        ({"suite": "gdp", "rows": 29}, InvalidProblemError, "expected 1 .. 28"),
        ({"suite": "gdp", "rows": []}, InvalidProblemError, "rows = \\[\\]"),
        ({"suite": "gdp", "rows": ["zoo/rnnlm-2l"]}, UnknownIdError, "did you mean zoo/rnnlm-2l-train"),
        ({"suite": "gdp", "part": "train"}, InvalidProblemError, "no row of gdp is left"),
        ({"suite": "gdp", "protocol": "unseen"}, UnknownIdError, "did you mean unseen-size"),
        ({"suite": "gdp", "protocol": "unseen-size", "part": "validation"}, UnknownIdError, "part"),
    ],
)
def test_rows_that_are_not_there(arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        cases_of_suite(**arguments)


def test_orders_have_no_other_objective() -> None:
    with pytest.raises(InvalidProblemError, match="has peak_memory as its objective"):
        cases_of_graphs(GRAPHS, objective="step_time")
    with pytest.raises(UnknownIdError, match="did you mean step_time"):
        cases_of_graphs(GRAPHS, "2xREGAL", "steptime")
    assert [case.row.objective for case in cases_of_graphs(["example/rnn-train"], "2xP100")] == ["step_time"]


# --- Learners -----------------------------------------------------------------------------------------------

QUICK = {"n_steps": 8, "batch_size": 16, "n_epochs": 1, "num_envs": 2, "net_arch": [8]}


def test_saved_learners_are_compared_too_in_other_processes_as_well(tmp_path: Path) -> None:
    pytest.importorskip("stable_baselines3")
    problem = ORDERS[0].row.problem()
    trained = make("ppo", **QUICK).fit([problem], steps=64)  # type: ignore[attr-defined]
    trained.save(tmp_path / "run" / "agent")
    folder = str(tmp_path / "run")
    # Folder of a training, that of its agent, and the same options without what was learned.
    asked = [Contestant.of(folder), Contestant.of({"solver": "ppo", "options": QUICK})]
    assert Contestant.of(folder + "/agent").digest == asked[0].digest != asked[1].digest
    comparison = Comparison([ORDERS[0]], asked, 6, [0])
    out = [tmp_path / "one", tmp_path / "two"]
    for path, workers in zip(out, (1, 2), strict=True):
        path.mkdir()
        assert not evaluate(comparison, path, workers).failed
    one, two = (pq.read_table(path / RESULTS).drop(["seconds"]) for path in out)
    assert one.equals(two)
    rows = one.to_pylist()
    assert [row["agent"] for row in rows] == [folder, "ppo"]
    assert all(row["verdict"] == "ok" and row["evaluations"] == 6 for row in rows)
    expected = trained.solve(problem, Budget(6), np.random.default_rng(0))
    assert rows[0]["value"] == expected.outcome.value
    assert [row["trained_on"] for row in rows] == ["this_graph", "nothing"]
    elsewhere = Comparison([ORDERS[1]], asked[:1], 2, [0])
    assert [row["trained_on"] for row in evaluate(elsewhere).results] == ["other_graphs"]


@pytest.mark.usefixtures("guess")
def test_a_learner_that_does_not_say_what_it_learned_on_is_marked_as_one(tmp_path: Path) -> None:
    trained = make("guess").fit([ORDERS[0].row.problem()], steps=10)  # type: ignore[attr-defined]
    assert (make("guess").trained_on, trained.trained_on) == (frozenset(), None)  # type: ignore[attr-defined]
    (tmp_path / "agent").mkdir()
    trained.save(tmp_path / "agent")
    found = evaluate(Comparison([ORDERS[0]], contestants([str(tmp_path / "agent"), "guess", "bfs"]), 2, [0]))
    assert [row["trained_on"] for row in found.results] == ["unknown_graphs", "nothing", "nothing"]


def test_a_learner_that_is_trained_on_is_another_one(tmp_path: Path) -> None:
    (tmp_path / "agent.json").write_text("{}")
    (tmp_path / "weights.safetensors").write_bytes(b"0")
    from opgym.runs.evaluate import contestants as module

    first = module._digest_of_files(tmp_path)
    (tmp_path / "weights.safetensors").write_bytes(b"1")
    assert module._digest_of_files(tmp_path) != first
    with pytest.raises(OpgymError, match="names no agent"):
        Contestant.of(str(tmp_path))
