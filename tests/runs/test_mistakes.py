"""Mistakes on the command line of ``opgym train`` that Hydra has no words for: each is a sentence and exit code 2."""

import json
import sys

import pytest
import yaml

from opgym.errors import InvalidProblemError

#: A run that ends at once, if it is not refused before.
QUICK = ("agent=guess", "problem=tiny", "trainer.steps=10", "logger=jsonl")
OPTUNA = ("-m", "hydra/sweeper=optuna", "hydra/launcher=basic", "hydra.sweeper.trials=1")


@pytest.fixture
def mistaken(train, tmp_path):
    """Runs what must be refused before anything is made; returns what was said."""

    def run(*arguments: str) -> str:
        refused = train(*QUICK, *arguments)
        assert refused.exit_code == 2, refused.output
        assert refused.stdout == ""
        assert "Traceback" not in refused.stderr
        assert not (tmp_path / "runs").exists()
        return " ".join(refused.stderr.split())

    return run


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["logger=null"], "'logger=null': expected a name; logger=[] chooses none"),
        (["agent=null"], "'agent=null': expected a name"),
        (["problem=3"], "'problem=3': expected a name"),
        (["trainer=1.5"], "'trainer=1.5': expected a name"),
        (["env=true"], "'env=true': expected a name"),
        (["logger=[jsonl,3]"], "'logger=[jsonl,3]': expected a name"),
        (["experiment=3"], "'experiment=3': expected a name"),
        (["experiment=null"], "leave it out"),
        (["hydra=null"], "'hydra=null': expected a name"),
        (["hydra/launcher=3"], "'hydra/launcher=3': expected a name"),
        (["-m", "logger=null,jsonl"], "'logger=null,jsonl': expected a name"),
        (["-m", "problem=range(1,3)"], "'problem=range(1,3)': expected a name"),
        (["hydra.sweeper=3"], "hydra.sweeper = 3"),
        (["-m", "hydra.launcher=null"], "hydra.launcher = None"),
        (["agent=ppo", "agent.options.environment=3"], "environment = 3; expected options"),
        (["agent=ppo", "agent.options.environment=[1]"], "environment = [1]; expected options"),
        (["agent=ppo", "agent.options.environment={3:4}"], "environment = 3; expected options"),
        (["problem.capacity_bytes=99999999999999999999"], "capacity 99999999999999999999 bytes"),
        (["agent.options.pause_s=nan"], "agent.options.pause_s = nan; expected a finite number"),
        (["trainer.checkpoint_minutes=inf"], "trainer.checkpoint_minutes = inf; expected a finite number"),
        (["hydra.run.dir="], "hydra.run.dir = ''; expected a folder"),
        (["-m", "hydra.sweep.dir="], "hydra.sweep.dir = ''; expected a folder"),
        (["trainer.steps=${trainer.device}"], "trainer.steps"),
        (["name=${name}"], "name"),
        (["name=${seed}"], "name = 0; expected a name"),
        (["runs=${seed}"], "runs = 0; expected the folder"),
        (["logger=wandb", "logger.wandb.nope=3"], "unknown option of wandb 'nope'"),
        (["logger=wandb", "logger.wandb.mode=onlin"], "did you mean online"),
        (["logger=wandb", "logger.wandb.mode=3"], "logger.wandb.mode = 3; expected text"),
        (["problem.graph="], "problem.graph = ''"),
        (["problem.graph=[null]"], "problem.graph = [None]"),
        (["problem.cluster="], "problem.cluster = ''"),
        (["--shell-completion"], "--install-completion"),
        (["--shell-completion", "query=bash"], "--install-completion"),
        (["--experimental-rerun", "x"], "--experimental-rerun"),
        (["--version"], "opgym --version"),
        (["--resolve"], "--resolve needs --cfg"),
        (["--package", "trainer"], "--package needs --cfg"),
        (["--cfg", "job", "--package", "nothing"], "'nothing'"),
        (["--run", "-m"], "--run"),
        (["--multi"], "unrecognized arguments: --multi"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_is_no_setting(mistaken, arguments, message):
    assert message in mistaken(*arguments)


@pytest.mark.parametrize("rows", ["1.5", "[1.5]", "[null]", "{a:1}", "true", "[[1]]"])
def test_rows_of_no_suite(mistaken, rows):
    arguments = ("env=scheduling", "problem=default", "problem.suite=memory-order", f"problem.rows={rows}")
    assert "; expected" in mistaken(*arguments)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("trainer: [steps", "mine.yaml"),
        ("\ttrainer:", "mine.yaml"),
        ("- trainer", "mine"),
        ("7", "mine"),
        ("trainer: 3", "TrainerConfig"),
        ("trainer: null", "trainer"),
        ("agent: null", "agent"),
        ("logger: 3", "logger"),
        ("logger:\n  jsonl: 3", "logger"),
        ("trainer:\n  evaluations: ${nothing}", "nothing"),
        ("seed: ${opgym.nothing:}", "opgym.nothing"),
        ("seed: ${", "seed"),
        ("defaults:\n  - override /trainer: defalt", "did you mean default?"),
        ("defaults: 3", "mine"),
        ("defaults:\n  - mine", "refer to each other"),
        ("a: &a [*a]", "mine"),
        ("[" * 5000, "nested too deeply"),
        (b"\xff\xfe\x00", "mine"),
        ("seed: 1\nseed: 2", "seed"),
        ("seed: !!python/name:os.system x", "mine"),
    ],
    ids=lambda value: str(value[:20]),
)
def test_files_of_ones_own_that_are_broken(mistaken, tmp_path, text, message):
    (tmp_path / "own" / "experiment").mkdir(parents=True)
    path = tmp_path / "own" / "experiment" / "mine.yaml"
    content = text if isinstance(text, bytes) else f"# @package _global_\n{text}\n".encode()
    path.write_bytes(content)
    assert message in mistaken("--config-dir", str(tmp_path / "own"), "experiment=mine")
    two = mistaken(
        "--config-dir", str(tmp_path / "own"), "-m", "experiment=memory-order,mine", "hydra/launcher=basic"
    )
    assert message in two


def test_a_broken_file_that_nobody_chose_is_not_what_is_wrong(train, mistaken, tmp_path):
    (tmp_path / "own" / "experiment").mkdir(parents=True)
    (tmp_path / "own" / "experiment" / "mine.yaml").write_text("[")
    own = ("--config-dir", str(tmp_path / "own"))
    assert "seed: Value 'x'" in mistaken(*own, "seed=x")
    assert "did you mean trainer" in mistaken(*own, "trainr.steps=3")
    assert train(*QUICK, *own).exit_code == 0


def test_files_of_ones_own_go_before_what_is_usual_even_for_the_seed(train, tmp_path):
    (tmp_path / "own" / "experiment").mkdir(parents=True)
    (tmp_path / "own" / "experiment" / "mine.yaml").write_text("# @package _global_\nseed: 5\nruns: mine\n")
    own = ("--config-dir", str(tmp_path / "own"), "experiment=mine")
    shown = yaml.safe_load(train(*QUICK, *own, "--cfg", "job").stdout)
    assert (shown["seed"], shown["runs"]) == (5, "mine")
    assert yaml.safe_load(train(*QUICK, *own, "seed=6", "--cfg", "job").stdout)["seed"] == 6


@pytest.mark.parametrize(
    ("sweep", "message"),
    [
        ("trainer.steps=interval(0.9,0.1)", "from 0.9 to 0.1"),
        ("trainer.steps=interval(1,inf)", "inf"),
        ("trainer.steps=interval(1,nan)", "nan"),
        ("trainer.steps=range(9,1)", "no values"),
        ("agent=glob(zz*)", "no values"),
        ("agent=glob(*)", "does not learn"),
        ("problem.graph=example/two-branch,nothing", "'nothing'"),
        ("trainer.steps=interval(10,20)", "could not be converted to Integer"),
    ],
)
def test_searches_of_nothing(mistaken, sweep, message):
    assert message in mistaken(*OPTUNA, sweep)


@pytest.mark.parametrize("seed", [-1, 2**32])
def test_a_search_has_a_seed_that_its_sampler_takes(mistaken, seed):
    assert "hydra.sweeper.sampler_seed" in mistaken(
        *OPTUNA, "trainer.steps=10,20", f"hydra.sweeper.sampler_seed={seed}"
    )


@pytest.mark.parametrize("sweep", [(), ("-m", "seed=0,1", "hydra/launcher=basic")], ids=["run", "sweep"])
@pytest.mark.parametrize(
    ("folder", "message"),
    [
        ("runs=", "runs = ''; expected the folder"),
        ("runs=' '", "runs = ' '; expected the folder"),
        ("name=", "name = ''; expected a name"),
        ("name=.", "name = '.'; expected a name"),
        ("name=..", "name = '..'; expected a name"),
        ("name='. .'", "name = '. .'; expected a name"),
        ("name=a/b", "name = 'a/b'; expected a name"),
        (f"name={'a' * 256}", "at most 255 bytes"),
    ],
)
def test_runs_have_folders_of_their_own(mistaken, tmp_path, monkeypatch, sweep, folder, message):
    monkeypatch.setattr("pathlib.Path.mkdir", lambda *_, **__: pytest.fail("a folder is made"))
    assert message in mistaken(*sweep, folder)


@pytest.mark.parametrize(
    ("sweep", "message"),
    [
        ("agent=guess,nope", "unknown agent 'nope'"),
        ("logger=jsonl,nope", "unknown logger 'nope'"),
        ("logger=[jsonl],[nope]", "unknown logger 'nope'"),
        ("experiment=memory-order,placement-gpd", "did you mean placement-gdp?"),
        ("seed=range(0,0)", "a sweep over no values"),
        ("agent=glob(zz*)", "a sweep over no values"),
        ("seed=glob(*)", "a sweep over no values"),
    ],
)
def test_sweeps_over_what_does_not_exist(mistaken, sweep, message):
    assert message in mistaken("-m", "hydra/launcher=basic", sweep)


# --- what only a learner, its environment or torch can refuse


@pytest.mark.parametrize(
    "sweep", [(), ("-m", "trainer.evaluations=1,2", "hydra/launcher=basic")], ids=["run", "sweep"]
)
@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("env.options.mode=foo", "unknown mode 'foo'"),
        ("env.options.groups=xx", "unknown grouping 'xx'"),
        ("env.options.observation=3", "observation"),
        ("env.options.steps=0", "steps= belongs to mode='refine'"),
        ("problem.cluster=[]", "problem.cluster"),
        ("trainer.device=tpu", "device = 'tpu': torch cannot use it here"),
        ("trainer.device=cuda:99", "device = 'cuda:99': torch cannot use it here"),
        ("agent.options.device=meta", "device = 'meta': torch cannot use it here"),
        ("seed=9999999999", "seed = 9999999999; expected at most 2147483647"),
        ("trainer.threads=100000", "trainer.threads = 100000; expected at most 1024"),
        ("agent.options.threads=100000", "threads = 100000; expected a whole number, at most 1024"),
        ("env.num_envs=1000000", "num_envs = 1000000; expected a whole number, at most 16384"),
        ("agent.options.num_envs=1000000", "num_envs = 1000000; expected a whole number, at most 16384"),
        ("trainer.steps=99999999999999999999", "trainer.steps = 99999999999999999999; expected at most"),
        ("trainer.evaluations=99999999999999999999", "expected at most"),
    ],
)  # fmt: skip
def test_settings_are_refused_before_there_is_a_folder(mistaken, sweep, setting, message):
    assert message in mistaken(*sweep, "agent=ppo", setting)


def test_what_is_refused_later_is_not_in_the_way_of_the_right_settings(train, tmp_path, monkeypatch):
    import opgym_guess

    def refuse(*_, **__):
        raise InvalidProblemError("not with me")

    command = (*QUICK, "name=mine", "trainer.checkpoint_steps=10")
    monkeypatch.setattr(opgym_guess.Guess, "fit", refuse)
    refused = train(*command)
    assert refused.exit_code == 2
    assert "not with me" in refused.stderr
    assert [path.name for path in (tmp_path / "runs" / "mine").iterdir()] == [".lock"]
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    assert train(*command).exit_code == 0


def test_nor_does_it_cost_what_was_learned_before(train, tmp_path, monkeypatch):
    import opgym_guess

    command = (*QUICK, "name=mine", "trainer.checkpoint_steps=10", "trainer.steps=30")
    monkeypatch.setattr(
        opgym_guess.Guess, "save", lambda *_: (_ for _ in ()).throw(InvalidProblemError("no"))
    )
    assert train(*command).exit_code == 2
    checkpoints = sorted(path.name for path in (tmp_path / "runs" / "mine" / "checkpoints").iterdir())
    assert checkpoints == ["000000000020", "000000000030"]
    assert (tmp_path / "runs" / "mine" / "config.yaml").exists()


# --- --json


@pytest.mark.parametrize("more", [(), ("--resolve",), ("-m", "seed=0,1")], ids=" ".join)
def test_settings_as_json(train, more):
    shown = train(*QUICK, "--cfg", "job", "--json", *more)
    assert shown.exit_code == 0, shown.output
    assert json.loads(shown.stdout) == yaml.safe_load(train(*QUICK, "--cfg", "job", *more).stdout)


@pytest.mark.parametrize("what", ["job", "hydra", "all"])
def test_references_are_resolved_whatever_is_shown(train, what):
    shown = json.loads(
        train(*QUICK, "name=${agent.solver}-${seed}", "--cfg", what, "--resolve", "--json").stdout
    )
    if what != "hydra":
        assert shown["name"] == "guess-0"
    if what != "job":
        assert shown["hydra"]["run"]["dir"] == "runs/guess-0"


@pytest.mark.parametrize(("logger", "extra"), [("tensorboard", "train"), ("wandb", "wandb")])
def test_the_extra_of_a_logger_is_missed_before_there_is_a_folder(mistaken, monkeypatch, logger, extra):
    monkeypatch.setitem(sys.modules, logger, None)
    assert f"opgym[{extra}]" in mistaken(f"logger=[jsonl,{logger}]")


@pytest.mark.parametrize(
    ("package", "expected"), [("trainer.steps", 10), ("agent", {"solver": "guess", "options": {}})]
)
def test_a_part_of_the_settings_as_json(train, package, expected):
    shown = train(*QUICK, "--cfg", "job", "--json", "-p", package)
    assert json.loads(shown.stdout) == expected
    assert yaml.safe_load(train(*QUICK, "--cfg", "job", "-p", package).stdout) == expected


@pytest.mark.parametrize("option", ["--info", "--hydra-help", "--version"])
def test_what_is_text_alone_is_no_json(mistaken, option):
    assert "error" in mistaken("--json", option)
