"""Stored settings of agents: what a file may say, and what it can never do."""

from dataclasses import fields
from pathlib import Path

import pytest
import yaml

from opgym import conf
from opgym.agents import make, names
from opgym.errors import InvalidProblemError, UnknownIdError
from opgym.problems import PlacementProblem, SchedulingProblem

CONF = Path(conf.__file__).parent


def _file(tmp_path, text):
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    return path


@pytest.mark.parametrize("name", conf.agent_names())
def test_every_stored_file_makes_a_solver(name):
    solver = conf.agent(name).name
    assert name == solver or name.startswith(f"{solver}-")


def test_settings_of_the_name_of_a_solver_are_its_defaults():
    solvers = {*names(PlacementProblem), *names(SchedulingProblem)}
    both = [name for name in conf.agent_names() if name in solvers]
    assert "brkga" in both  # the untuned baseline
    for name in both:
        assert conf.agent(name) == conf.make_agent(name) == make(name)


def test_regal_as_published_is_the_learner_with_its_defaults():
    assert conf.agent("regal") == make("regal")


def test_a_file_names_a_solver_and_its_options(tmp_path):
    path = _file(
        tmp_path, "# note\nsolver: order-annealing\noptions:\n  evaluations: 7\n  temperature: 0.5\n"
    )
    assert conf.agent(path) == make("order-annealing", evaluations=7, temperature=0.5)
    assert conf.make_agent(str(path)) == conf.agent(path)


def test_options_may_be_left_out(tmp_path):
    assert conf.agent(_file(tmp_path, "solver: beam\n")) == make("beam")


def test_a_solver_goes_by_its_own_name_first():
    assert conf.make_agent("beam") == make("beam")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected `solver: NAME`"),
        ("- beam", "expected `solver: NAME`"),
        ("options: {}", "expected `solver: NAME`"),
        ("solver: beam\n_target_: os.system", "nothing else"),
        ("solver: [beam]", "the solver is a name"),
        ("solver: beam\noptions: [1]", "mapping from names"),
        ("solver: beam\noptions: {1: 2}", "mapping from names"),
        ("solver: beam\noptions: {width: none}", "width = 'none'"),
        (
            "solver: beam\noptions: {width: 99999999999999999999}",
            "width = 9+; expected a whole number, at most",
        ),
        ("solver: dp-order\noptions: {max_bytes: 99999999999999999999}", "max_bytes = 9+; .* at most"),
        ("solver: cp-sat\noptions: {workers: 1000000}", "workers = 1000000; .* at most 1024"),
        ("solver: brkga\noptions: {starts: dfs}", "starts = 'dfs'; expected a list"),
        ("solver: brkga\noptions: {mutant_beta: [0, 1]}", "mutant_beta holds a Beta parameter"),
        ("solver: !!python/object/apply:os.getcwd []", "not valid YAML"),
        ("solver: {", "not valid YAML"),
        ("solver: " + "[" * 100_000, "nested too deeply"),
    ],
)
def test_anything_else_is_refused(tmp_path, text, message):
    with pytest.raises(InvalidProblemError, match=message) as error:
        conf.agent(_file(tmp_path, text))
    assert "mine.yaml" in str(error.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("solver: bean", "did you mean beam"),
        ("solver: beam\noptions: {widht: 3}", "did you mean width"),
        ("solver: brkga\noptions: {starts: [post-orde]}", "did you mean post-order"),
    ],
)
def test_unknown_names_get_the_nearest_ones(tmp_path, text, message):
    with pytest.raises(UnknownIdError, match=message):
        conf.agent(_file(tmp_path, text))


def test_unknown_agents_and_files(tmp_path):
    with pytest.raises(UnknownIdError, match="order-annealing"):
        conf.make_agent("order-annealin")
    with pytest.raises(InvalidProblemError, match="no such file"):
        conf.agent(tmp_path / "absent.yaml")
    with pytest.raises(InvalidProblemError, match="cannot be read"):
        conf.agent(_bytes(tmp_path))


def _bytes(tmp_path):
    path = tmp_path / "bytes.yaml"
    path.write_bytes(b"\xff\xfe\x00")
    return path


def _options(name):
    """Options by name, as the file says them."""
    pytest.importorskip("stable_baselines3")
    agent = conf.agent(name)
    return {field.name: getattr(agent, field.name) for field in fields(agent) if field.init}


@pytest.mark.parametrize("environment", ["placement", "scheduling"])
def test_ppo_has_the_settings_that_were_tuned_for_it_with_masks(environment):
    assert _options(f"ppo-{environment}") == _options(f"maskable-ppo-{environment}")


def test_the_learner_of_whole_graphs_has_the_tuned_settings(tmp_path):
    agents = yaml.safe_load((CONF / "evaluate/experiment/learners-graph.yaml").read_text())["agents"]
    (own,) = (given for given in agents if isinstance(given, dict))
    given = _file(tmp_path, yaml.safe_dump({key: own[key] for key in ("solver", "options")}))
    assert _options(given) == _options("maskable-ppo-placement") | {"policy": "dict"}


@pytest.mark.parametrize("name", [name for name in conf.agent_names() if "ppo" in name])
def test_few_graphs_have_no_interval(name):
    """Tuned settings were checked on four graphs: their files say the mean and the gains, and no interval."""
    header = [line for line in (CONF / f"agent/{name}.yaml").read_text().splitlines() if line[0] == "#"]
    assert not any("[" in line for line in header), header
