"""Settings of ``opgym train``: what is composed, what is refused and with which words, and what can never be named."""

import re
import sys
from pathlib import Path

import pytest
import yaml

from opgym.agents import make
from opgym.agents.learner import is_learner
from opgym.agents.registry import names, solver_class
from opgym.problems import PlacementProblem, SchedulingProblem
from opgym.runs.hydra_app.arguments import readable

ROOT = Path(__file__).parents[2]
CONF = ROOT / "conf"
FOLDER = CONF / "train" / "experiment"
EXPERIMENTS = sorted(path.relative_to(FOLDER).with_suffix("").as_posix() for path in FOLDER.rglob("*.yaml"))
#: A run that ends at once, if it is not refused before.
QUICK = ("agent=guess", "problem=tiny", "trainer.steps=10", "logger=jsonl")


def _settings(train, *arguments):
    shown = train(*arguments, "--cfg", "job", "--resolve")
    assert shown.exit_code == 0, shown.output
    return yaml.safe_load(shown.stdout)


# --- what is composed


def test_overrides_go_before_presets_and_presets_before_groups(train):
    plain = _settings(train)
    assert plain["trainer"]["steps"] > 1000
    tiny = _settings(train, "debug=tiny")
    assert tiny["trainer"]["steps"] < 1000
    assert tiny["problem"]["graph"].startswith("synthetic/")
    mine = _settings(train, "debug=tiny", "trainer.steps=123", "problem.graph=example/two-branch")
    assert (mine["trainer"]["steps"], mine["problem"]["graph"]) == (123, "example/two-branch")


def test_every_registered_agent_is_a_member_of_its_group(train):
    from hydra.core.config_store import ConfigStore

    assert _settings(train, "agent=m-etf")["agent"] == {"solver": "m-etf", "options": {}}
    members = {name.removesuffix(".yaml") for name in ConfigStore.instance().repo["agent"]}
    members |= {path.stem for path in CONF.glob("agent/*.yaml")}
    assert {*names(PlacementProblem), *names(SchedulingProblem)} <= members


@pytest.mark.parametrize("path", sorted(CONF.glob("agent/*.yaml")), ids=lambda path: path.stem)
def test_stored_settings_of_agents_are_members_too(train, path):
    stored = yaml.safe_load(path.read_text())
    assert _settings(train, f"agent={path.stem}")["agent"] == {"options": {}, **stored}


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_experiments_are_short_and_can_be_trained(train, name, tmp_path):
    from opgym.runs.run_folder import Progress
    from opgym.runs.train.app import TrainApplication

    lines = (FOLDER / f"{name}.yaml").read_text().splitlines()
    assert (8 if name.startswith("ablation/") else 10) <= len(lines) <= 45  # an ablation is one option
    assert lines[1].startswith("# ")  # says what it is for
    chosen = [f"experiment={name}"]
    stored = _settings(train, *chosen)
    if stored["problem"]["suites"]:  # one graph is as good as thousands
        chosen += ["problem.rows=1", "problem.validation=1"]
    settings = TrainApplication().read(_settings(train, *chosen))
    assert TrainApplication().prepare(settings, tmp_path / "run") is Progress.ABSENT


@pytest.mark.parametrize("name", [name for name in EXPERIMENTS if name.startswith("ablation/")])
def test_an_ablation_differs_from_its_base_in_one_option(train, name):
    base = "regal-plus" if name.startswith("ablation/regal-plus") else "regal"
    one, other = (_settings(train, f"experiment={each}") for each in (name, f"ablation/{base}"))
    differences = [
        key
        for key, value in one["agent"]["options"].items()
        if value != other["agent"]["options"].get(key, getattr(make(base, weights="none"), key))
    ]
    assert len(differences) == (name != f"ablation/{base}")
    assert {**one, "agent": None} == {**other, "agent": None}
    assert one["problem"]["suites"] == ["regal-memory-1"]


def test_presets_of_ones_own(train, tmp_path):
    (tmp_path / "own" / "experiment").mkdir(parents=True)
    preset = tmp_path / "own" / "experiment" / "mine.yaml"
    preset.write_text("# @package _global_\ntrainer:\n  steps: 77\n")
    assert (
        _settings(train, "--config-dir", str(tmp_path / "own"), "experiment=mine")["trainer"]["steps"] == 77
    )
    preset.write_text("# @package _global_\ntrainer:\n  stps: 77\n")
    refused = train("--config-dir", str(tmp_path / "own"), "experiment=mine")
    assert refused.exit_code == 2
    assert "stps" in refused.stderr


@pytest.mark.parametrize(
    "option", [["--info"], ["--info", "searchpath"], ["--hydra-help"], ["--cfg", "hydra"]], ids=" ".join
)
def test_options_of_hydra_show_and_run_nothing(train, option, tmp_path):
    shown = train(*option)
    assert shown.exit_code == 0, shown.output
    assert re.search("hydra", shown.stdout, re.IGNORECASE)
    assert list(tmp_path.iterdir()) == []


# --- what is refused


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["sed=1"], "unknown setting 'sed'; did you mean seed?"),
        (["trainer.stps=1"], "unknown setting 'trainer.stps'; did you mean steps?"),
        (["+trainer.stps=1"], "unknown setting 'trainer.stps'; did you mean steps?"),
        (["agnt=ppo"], "unknown setting 'agnt'; did you mean agent?"),
        (["experimnt=x"], "did you mean experiment?"),
        (["agent=pppo"], "unknown agent 'pppo'; did you mean ppo?"),
        (["env=placment"], "unknown env 'placment'; did you mean placement?"),
        (["logger=wandbb"], "unknown logger 'wandbb'; did you mean wandb?"),
        (["logger=[jsonl,tensorbord]"], "unknown logger 'tensorbord'; did you mean tensorboard?"),
        (["debug=tny"], "unknown debug 'tny'; did you mean tiny?"),
        (["hydra/launcher=rey", "-m"], "unknown hydra/launcher 'rey'; did you mean ray?"),
        (["hydra.launcher.n_job=1", "-m"], "unknown setting 'hydra.launcher.n_job'; did you mean n_jobs?"),
        (["agent=[ppo,a2c]"], "-m agent=ppo,a2c"),
        (["~seed"], "cannot be removed"),
        (["trainer.steps=many"], "trainer.steps: Value 'many'"),
        (["trainer.steps=0"], "trainer.steps = 0; expected at least 1"),
        (["seed=-1"], "seed = -1"),
        (["seed=1,2"], "--multirun"),
        (["-m", "seed=one,2"], "seed: Value 'one'"),
        (["-m", "trainer.steps=interval(1, 9)"], "hydra/sweeper=optuna"),
        (["trainer.checkpoint_minutes=0"], "trainer.checkpoint_minutes = 0.0"),
        (["name=../elsewhere"], "name = '../elsewhere'"),
        (["agent.options.pause=1"], "unknown option of solver 'guess' 'pause'; did you mean pause_s?"),
        (["agent=m-etf"], "agent 'm-etf' does not learn"),
        (
            ["agent=m-etf"],
            "learners: a2c, dqn, gas, gdp, gdp-plus, gdp-plus-100, gdp-plus-anneal, gdp-plus-finetune, guess, hdp, "
            "maskable-ppo, placeto, ppo, regal",
        ),
        (["env.options.groups=op"], "takes no options of its environment"),
        (["agent=ppo", "env.options.grops=op"], "did you mean groups?"),
        (["agent=ppo", "agent.options.learning_rate=-1"], "learning_rate"),
        (["problem.graph=zoo/rnnlm-2l-trian"], "did you mean zoo/rnnlm-2l-train"),
        (["problem.graph=[]"], "problem.graph = []"),
        (["problem.graph=3"], "problem.graph = 3"),
        (["problem.cluster=4xP10O"], "P10O"),
        (["problem.objective=step_tme"], "did you mean step_time?"),
        (["problem=default", "problem.rows=2"], "needs problem.suite"),
        (["problem=default", "problem.suite=gpd"], "unknown suite 'gpd'; did you mean gdp?"),
        (["problem=default", "problem.suite=gdp"], "no rows in part 'train'; it has some in test"),
        (["problem=default", "problem.suite=gdp", "problem.part=tset"], "did you mean test?"),
        (["problem.suite=gdp"], "a suite brings its own graph"),
        (["problem=default", "problem.suite=memory-order", "problem.rows=0"], "problem.rows = 0"),
        (["problem=default", "problem.suite=memory-order", "problem.rows=[9999]"], "problem.rows holds 9999"),
        (
            ["problem=default", "problem.suite=memory-order", "problem.rows=[nt]"],
            "unknown graph of the suite 'nt'",
        ),
        (["problem=default", "problem.suite=memory-order", "problem.rows=1"], "use env=scheduling"),
        (["env=scheduling", "problem.cluster=4xP100"], "use env=placement"),
        (["logger=jsonl", "logger.jsonl.mode=x"], "logger.jsonl has no options"),
        (["steps"], "'steps' is no setting; expected KEY=VALUE"),
        (["--frobnicate"], "unrecognized arguments: --frobnicate"),
        (["--config-name", "other"], "--config-name would replace"),
        (["--config-dir", "absent"], "there is no such folder"),
        (['problem.graph="a'], "cannot be read"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_wrong_settings_are_refused_with_what_was_meant(train, tmp_path, arguments, message):
    refused = train(*QUICK, *arguments)
    assert refused.exit_code == 2, refused.output
    assert message in " ".join(refused.stderr.split())
    assert "Traceback" not in refused.stderr
    assert refused.stdout == ""
    assert not list(tmp_path.rglob("config.yaml"))


@pytest.mark.parametrize(
    "override",
    [
        "+x._target_=os.system",
        "agent._target_=os.system",
        "agent.options={_target_: os.system}",
        "hydra.launcher._target_=os.system",
        "++hydra.callbacks.mine.command=true",
        "+hydra/callbacks=mine",
    ],
)
def test_settings_never_name_code(train, override):
    refused = train(*QUICK, override)
    assert refused.exit_code == 2
    assert "never name code" in refused.stderr


@pytest.mark.parametrize(
    "where", ["agent:\n  options:", "hydra:\n  callbacks:"], ids=["options", "callbacks"]
)
def test_nor_do_files_of_settings(train, tmp_path, where):
    (tmp_path / "own" / "experiment").mkdir(parents=True)
    (tmp_path / "own" / "experiment" / "evil.yaml").write_text(
        f"# @package _global_\n{where}\n    x:\n      _target_: pathlib.Path.touch\n      self: {tmp_path}/touched\n"
    )
    refused = train(*QUICK, "--config-dir", str(tmp_path / "own"), "experiment=evil")
    assert refused.exit_code == 2
    assert "never name code" in refused.stderr
    assert not (tmp_path / "touched").exists()
    refused = train(*QUICK, "--config-dir", str(tmp_path / "own"), "-m", "experiment=memory-order,evil")
    assert refused.exit_code == 2
    assert "never name code" in refused.stderr
    assert not (tmp_path / "touched").exists()


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ("seed=1", "seed=1"),
        ("problem.graph=zoo/x", "problem.graph=zoo/x"),
        ("problem.graph=synthetic/ws?n=2&seed=0", 'problem.graph="synthetic/ws?n=2&seed=0"'),
        ("problem.graph=a,b#augment=1", 'problem.graph=a,"b#augment=1"'),
        ("problem.graph=[a,b?n=1]", 'problem.graph=[a,"b?n=1"]'),
        ("problem.graph='a&b'", "problem.graph='a&b'"),
        ("x={a: 1}", "x={a: 1}"),
    ],
)
def test_ids_need_no_quotes(given, read):
    assert readable(given) == read


def test_without_hydra_the_message_names_the_extra(train, monkeypatch):
    monkeypatch.setitem(sys.modules, "hydra", None)
    refused = train(*QUICK)
    assert refused.exit_code == 2
    assert "opgym[train]" in refused.stderr


@pytest.mark.parametrize(("launcher", "extra"), [("joblib", "train"), ("ray", "ray"), ("submitit", "train")])
def test_without_its_package_a_launcher_names_the_extra(train, monkeypatch, launcher, extra):
    monkeypatch.setitem(sys.modules, launcher, None)  # each has the name of its package
    refused = train(*QUICK, "-m", "seed=0,1", f"hydra/launcher={launcher}")
    assert refused.exit_code == 2
    assert f"opgym[{extra}]" in refused.stderr


# --- the help and the package say what there is


def test_the_help_names_every_member_of_every_group(train):
    shown = " ".join(train("--help").stdout.replace("│", " ").split())
    for group in ("env", "problem", "trainer", "logger", "hydra/launcher", "hydra/sweeper"):
        assert group in shown
        members = [path.stem for path in (CONF / group).glob("*.yaml")]
        assert all(member in shown for member in members), members
    learners = {
        n for t in (PlacementProblem, SchedulingProblem) for n in names(t) if is_learner(solver_class(n))
    }
    assert all(learner in shown for learner in learners - {"guess"})
    for member in ("joblib", "ray", "submitit", "basic", "optuna", "resume=true", "--cfg", "-m"):
        assert member in shown


def test_settings_are_data_of_the_package():
    """Read as Hydra reads them, from the package and not from the folder of the repository."""
    from importlib.resources import files

    package = files("opgym.conf")
    stored = {str(path.relative_to(CONF)) for path in CONF.rglob("*.yaml")}
    assert {"train.yaml", "train/debug/tiny.yaml", "hydra/default.yaml", "env/placement.yaml"} <= stored
    for name in stored:
        assert package.joinpath(*name.split("/")).is_file()
