"""``opgym evaluate`` and ``opgym report`` from end to end, on problems of thirty ops."""

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from opgym.cli.evaluate import _show
from opgym.runs.report.sections import read_sections
from opgym.runs.run_folder import write_config, write_result
from opgym.runs.train.config import AgentConfig, EnvConfig, TrainConfig

from ..runs.made_tables import result, write

SMALL = ("problem.graph=synthetic/er?n=30&seed=3", "workers=1", "seeds=2", "budget=20")
AGENTS = "agents=[bfs,random-order]"


@pytest.fixture
def runs(tmp_path: Path) -> str:
    return f"runs={tmp_path / 'runs'}"


def test_a_table_and_a_folder(opgym, runs):
    result = opgym("evaluate", *SMALL, AGENTS, runs)
    assert result.exit_code == 0, result.output
    lines = [line.split() for line in result.stdout.splitlines()]
    assert next(line for line in lines if line[:1] == ["bfs"])[1:3] == ["draws", "none"]
    assert next(line for line in lines if line[:1] == ["random-order"])[1] == "2"
    [folder] = Path(runs.removeprefix("runs=")).iterdir()
    assert folder.name.startswith("evaluate_problems-bfs-random-order_")
    assert {path.name for path in folder.iterdir()} >= {
        "config.yaml", "rows.jsonl", "results.parquet", "curves.parquet", "result.json",
    }  # fmt: skip


def test_json_and_what_is_finished_is_left_alone(rows, refused, runs):
    first = rows("evaluate", *SMALL, AGENTS, runs)
    assert [(row["agent"], row["seed"]) for row in first["results"]] == [
        ("bfs", 0), ("random-order", 0), ("random-order", 1),
    ]  # fmt: skip
    stored = Path(first["folder"], "rows.jsonl").read_bytes()
    assert "resume=true" in refused("evaluate", *SMALL, AGENTS, runs)
    assert rows("evaluate", *SMALL, AGENTS, runs, "resume=true") == first
    assert Path(first["folder"], "rows.jsonl").read_bytes() == stored


@pytest.mark.parametrize("finished", [True, False])
def test_a_run_of_other_settings_is_not_gone_on_with(rows, refused, runs, finished):
    arguments = ("evaluate", AGENTS, "name=mine", runs)
    folder = Path(rows(*arguments, *SMALL)["folder"])
    if not finished:
        (folder / "result.json").unlink()
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    message = refused(*arguments, *SMALL, "resume=true", "budget=21", "seconds=9")
    assert "holds a run of other settings (budget was 20, is 21; seconds was null, is 9.0)" in message
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    # Where it lies and on how many cores it runs are no other settings.
    assert rows(*arguments, *SMALL, "resume=true", "workers=2")["folder"] == str(folder)
    assert (folder / "config.yaml").read_bytes() == before["config.yaml"]


def test_the_folder_of_a_training_is_no_evaluation(refused, runs):
    folder = Path(runs.removeprefix("runs="), "mine")
    folder.mkdir(parents=True)
    training = TrainConfig(AgentConfig("ppo-scheduling"), EnvConfig("OpScheduling-v0"))
    write_config(folder, asdict(training))
    write_result(folder, {"format": "opgym.run", "version": 1})
    message = refused("evaluate", *SMALL, AGENTS, "name=mine", runs, "resume=true")
    assert "holds no settings that this command of this version writes; choose another name=..." in message


def test_a_folder_of_something_else_is_left_alone(refused, runs):
    folder = Path(runs.removeprefix("runs="), "mine")
    folder.mkdir(parents=True)
    (folder / "mine.txt").write_text("mine")
    message = refused("evaluate", *SMALL, AGENTS, "name=mine", runs, "resume=true")
    assert "is no run, and is not empty (mine.txt)" in message
    assert [path.name for path in folder.iterdir()] == ["mine.txt"]


def test_a_run_that_failed_before_it_began_is_begun(rows, runs):
    folder = Path(runs.removeprefix("runs="), "mine")
    folder.mkdir(parents=True)
    (folder / "error.txt").write_text("Traceback ...")
    assert rows("evaluate", *SMALL, AGENTS, "name=mine", runs)["folder"] == str(folder)


def test_settings_of_agents_files_of_them_and_options(rows, runs, tmp_path):
    mine = tmp_path / "mine.yaml"
    mine.write_text("solver: brkga\noptions: {population: 12, elites: 4, mutants: 2}\n")
    own = "{solver:brkga,options:{bias:0.9},name:biased}"
    found = rows("evaluate", *SMALL, f"agents=[brkga-tuned,{mine},{own}]", "seeds=[7]", runs)
    assert [(row["agent"], row["seed"]) for row in found["results"]] == [
        ("brkga-tuned", 7), (str(mine), 7), ("biased", 7),
    ]  # fmt: skip
    assert len({row["options"] for row in found["results"]}) == 3


def test_what_failed_is_tried_again(rows, runs):
    arguments = ("evaluate", *SMALL, AGENTS, runs, "name=mine")
    first = rows(*arguments)
    folder = Path(first["folder"])
    lines = (folder / "rows.jsonl").read_text().splitlines(keepends=True)
    broken = json.loads(lines[0])
    broken["result"] |= {"verdict": "failed", "error": "lost"}
    (folder / "rows.jsonl").write_text(json.dumps(broken) + "\n" + "".join(lines[1:]))
    (folder / "result.json").unlink()
    again = rows(*arguments, "resume=true")
    assert [row["value"] for row in again["results"]] == [row["value"] for row in first["results"]]
    assert len((folder / "rows.jsonl").read_text().splitlines()) == len(lines) + 1


@pytest.mark.parametrize(
    ("name", "damage"),
    [("results.parquet", None), ("curves.parquet", 100), ("result.json", 20), ("rows.jsonl", None)],
)
def test_what_was_lost_of_a_finished_run_is_made_again(rows, runs, name, damage):
    arguments = ("evaluate", *SMALL, AGENTS, runs)
    first = rows(*arguments)
    file = Path(first["folder"], name)
    whole = file.read_bytes()
    if damage is None:
        file.unlink()
    else:
        file.write_bytes(whole[:damage])
    again = rows(*arguments, "resume=true")
    assert [row["value"] for row in again["results"]] == [row["value"] for row in first["results"]]
    if name == "rows.jsonl":  # all that the other files are made of
        assert len(file.read_bytes().splitlines()) == len(whole.splitlines())
    else:
        assert file.read_bytes() == whole


def test_where_nothing_applies_there_is_no_result(opgym, refused, runs):
    message = refused("evaluate", *SMALL, "agents=[m-etf,heft]", runs)
    assert "none of the agents m-etf, heft solves any of the problems" in message
    assert not Path(runs.removeprefix("runs=")).exists()
    # Agents say more only once they have the problem.
    placement = ("problem.graph=example/rnn-train", "problem.cluster=2xP100", "problem.objective=max_load")
    for resume in ("resume=false", "resume=true"):
        shown = opgym("evaluate", *placement, "agents=[m-sct]", "workers=1", runs, resume)
        assert shown.exit_code == 1, shown.output
        assert "no agent applies to any of the problems: does not optimise max_load" in shown.stderr
    [folder] = Path(runs.removeprefix("runs=")).iterdir()
    assert not (folder / "result.json").exists()


def test_failures_end_with_exit_code_1_and_the_table_of_the_others(opgym, runs, monkeypatch):
    from opgym.agents.registry import solver_class

    def break_down(*_):
        raise RuntimeError("no <way>")

    monkeypatch.setattr(solver_class("random-order"), "_search", break_down)
    result = opgym("evaluate", *SMALL, AGENTS, runs)
    assert result.exit_code == 1
    assert "bfs" in result.stdout
    assert result.stderr.count("RuntimeError: no <way>") == 2
    assert "2 of 3 runs failed; resume=true tries those again" in result.stderr
    [folder] = Path(runs.removeprefix("runs=")).iterdir()
    assert not (folder / "result.json").exists()
    monkeypatch.undo()
    assert opgym("evaluate", *SMALL, AGENTS, runs, "resume=true").exit_code == 0


def test_a_sweep(rows, opgym, runs):
    document = rows("evaluate", "-m", *SMALL[:3], "budget=5,10", AGENTS, "hydra/launcher=basic", runs)
    assert [job["state"] for job in document["jobs"]] == ["finished", "finished"]


def test_every_experiment_and_preset_composes(opgym):
    conf = Path(__file__).parents[2] / "conf" / "evaluate"
    presets = [path for group in ("experiment", "debug") for path in sorted((conf / group).glob("*.yaml"))]
    assert presets
    for path in presets:
        shown = opgym("evaluate", f"{path.parent.name}={path.stem}", "--cfg", "job")
        assert shown.exit_code == 0, shown.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((*SMALL, "agents=[bsf]"), "unknown solver 'bsf'; did you mean bfs"),
        ((*SMALL,), "no agents"),
        ((*SMALL, AGENTS, "sede=3"), "unknown setting 'sede'; did you mean seeds"),
        ((*SMALL, AGENTS, "suite=gpd"), "did you mean gdp"),
        ((*SMALL, AGENTS, "suite=gdp"), "suite and problem.graph are both given"),
        ((*SMALL, AGENTS, "part=test"), "part = 'test' needs a suite"),
        ((AGENTS,), "expected suite=NAME or problem.graph=ID"),
        ((*SMALL, AGENTS, "budget=0"), "a budget of 0 evaluations"),
        ((*SMALL, AGENTS, "budget=many"), "budget"),
        ((*SMALL, AGENTS, "seeds=0"), "seeds = 0"),
        ((*SMALL, AGENTS, "seeds=[1,1]"), "different whole numbers"),
        ((*SMALL, AGENTS, "seeds=101"), "expected 1 .. 100 of them"),
        ((*SMALL, AGENTS, f"seeds=[{10**23}]"), f"seed {10**23}; expected at most"),
        ((*SMALL, AGENTS, f"budget={10**26}"), f"a budget of {10**26} evaluations; expected 1 .."),
        ((*SMALL, AGENTS, "seconds=inf"), "more than 0"),
        ((*SMALL, AGENTS, "seconds=0"), "more than 0"),
        ((*SMALL, AGENTS, "workers=0"), "workers = 0"),
        ((*SMALL, AGENTS, "name=../up"), "expected a name of a folder"),
        ((*SMALL, "agents=[{_target_:os.system}]"), "settings never name code"),
        (("suite=gdp", AGENTS, "rows=99"), "expected 1 .. 28"),
        (("suite=gdp", AGENTS, "rows=1.5"), "rows = 1.5; expected a number"),
        (("suite=gdp", AGENTS, "protocol=unseen-siz"), "did you mean unseen-size"),
    ],
)
def test_wrong_settings(refused, runs, arguments, message):
    assert message in refused("evaluate", *arguments, runs)
    assert not Path(runs.removeprefix("runs=")).exists()


def test_who_was_trained_before_is_marked(capsys, tmp_path):
    rows = [result("p", "a", 100.0), result("p", "b", 90.0, trained_on="this_graph")]
    rows += [result("q", "a", 100.0), result("q", "b", 90.0, trained_on="other_graphs")]
    [section] = read_sections([write(tmp_path / "made", rows)])
    _show(section)
    out = [line.split("  ")[0].strip() for line in capsys.readouterr().out.splitlines()]
    assert "b †" in out
    assert "a" in out
    assert out[-1] == "† trained before, outside of this budget; b on 1 of these graphs"


def test_where_nobody_has_a_mean_nobody_is_best(opgym, tmp_path):
    nothing = [result("p", name, 100.0, verdict="out_of_memory") for name in ("a", "b")]
    equal = [result("p", name, 100.0, budget=20, deterministic=True) for name in ("c", "d")]
    one = [result("p", "e", 100.0, budget=30)]
    folder = write(tmp_path / "made", [*nothing, *equal, *one])
    shown = opgym("report", folder, "--out", tmp_path / "out")
    assert shown.exit_code == 0, shown.output
    kind = "made, peak_memory, real graphs"
    assert shown.stdout.splitlines() == [
        f"{kind}, 10 evaluations: none of 2 is best on average, as too many runs of each found no feasible solution",
        f"{kind}, 20 evaluations: c, d are equally good on average and the best of 2, IQM 1.0000",
        f"{kind}, 30 evaluations: e is best of 1 on average, IQM 1.0000; it wins 1 of 1 problems and ties on 0",
    ]


def test_a_report_of_an_evaluation(opgym, rows, refused, runs, tmp_path):
    folder = rows("evaluate", *SMALL, AGENTS, runs)["folder"]
    result = opgym("report", folder, "--out", tmp_path / "out")
    assert result.exit_code == 0, result.output
    assert "random-order is best of 2 on average, IQM 1.0" in result.stdout
    page = (tmp_path / "out" / "report.md").read_text()
    assert "## Own problems: peak\\_memory, synthetic graphs, 20 evaluations" in page
    document = rows("report", folder, folder, "--out", tmp_path / "again")
    assert document["files"] == ["report.md", "means-1.svg", "profile-1.svg", "anytime-1.svg"]
    assert [agent["agent"] for agent in document["sections"][0]["agents"]] == ["bfs", "random-order"]
    for name in document["files"]:
        assert (tmp_path / "out" / name).exists()
    assert "expected a folder that `opgym evaluate` has written" in refused(
        "report", tmp_path, "--out", tmp_path / "x"
    )
