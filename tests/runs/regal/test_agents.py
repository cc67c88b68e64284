"""Learned agents of the reproduction of REGAL: names, folders, trainings."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from opgym.agents import make, registry
from opgym.agents.regal.base import SHELF
from opgym.errors import InvalidProblemError, OpgymError, UnknownIdError
from opgym.problems import Budget
from opgym.runs.references.regal_suites import row_of
from opgym.runs.reproduce.regal.agents import learned_methods, seeded
from opgym.runs.reproduce.regal.methods import AGENT, SEEDED_AGENT, starts_of
from opgym.runs.reproduce.regal.reproduction import Settings, run

pytestmark = pytest.mark.usefixtures("guess")
GRAPH = "synthetic/er?costs=bytes&seed=1000005"


@pytest.fixture
def trained(tmp_path: Path):
    """Folders of saved learners, by what they have learned."""

    def save(guess: int, name: str = "") -> Path:
        folder = tmp_path / (name or f"guess-{guess}")
        folder.mkdir(parents=True)
        (folder / "agent.json").write_text(f'{{"agent": "guess", "guess": {guess}}}')
        return folder

    return save


@pytest.fixture(scope="module")
def tiny(tmp_path_factory) -> Path:
    """A saved learner of proposals that has seen one graph."""
    pytest.importorskip("torch")
    folder = tmp_path_factory.mktemp("tiny") / "tiny"
    learner = make(
        "regal",
        width=4,
        rounds=1,
        graphs=1,
        samples=2,
        evaluations_per_run=200,
        population=20,
        elites=4,
        mutants=4,
    )
    learner.fit([row_of("regal-memory-1", GRAPH, "validation").problem()], steps=2).save(folder)  # type: ignore[attr-defined]
    return folder


def test_a_folder_is_a_column_under_its_own_or_a_given_name(trained) -> None:
    first, second = trained(1), trained(2)
    methods = learned_methods([str(first), f"other-seed2={second}"])
    assert [method.name for method in methods] == [str(first), "other-seed2"]
    assert [method.training_of for method in methods] == [str(first), "other"]
    assert {method.kind for method in methods} == {AGENT}
    assert methods[0].key != methods[1].key
    assert methods[0].training != methods[1].training
    problem = row_of("regal-memory-2", GRAPH, "validation").problem()
    [found] = methods[1].run(problem, 0)
    assert (
        found.solution.device.tolist()
        == np.random.default_rng(2).integers(2, size=problem.graph.num_ops).tolist()
    )


def test_a_folder_of_a_training_and_one_with_an_equals_sign(trained) -> None:
    trained(3, "run/agent")
    whole = trained(4, "seed=4")
    folder = whole.parent / "run"
    first, second = learned_methods([str(folder), str(whole)])
    assert first.solvers[0].make().guess == 3  # type: ignore[attr-defined]
    assert second.name == str(whole)


def test_what_cannot_be_a_column_is_refused(trained, tmp_path: Path) -> None:
    first, same = trained(1), tmp_path / "copy"
    shutil.copytree(first, same)
    for given, error, message in (
        ([str(first), f"x={same}"], InvalidProblemError, "are the same"),
        ([f"x={first}", f"x={trained(2)}"], InvalidProblemError, "share a name"),
        (["m-etf"], InvalidProblemError, "learns nothing"),
        (["brkga-tuned"], InvalidProblemError, "learns nothing"),
        (["guess"], InvalidProblemError, "has learned nothing; train it"),
        (["gues"], UnknownIdError, "did you mean guess"),
        ([str(tmp_path)], InvalidProblemError, "no folder with agent.json"),
        ([str(tmp_path / "nowhere")], InvalidProblemError, "no folder with agent.json"),
    ):
        with pytest.raises(error, match=message):
            learned_methods(given)


def test_a_damaged_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "agent.json").write_text("{")
    with pytest.raises(OpgymError, match=r"agent\.json"):
        learned_methods([str(tmp_path)])


def test_an_agent_without_starts_is_not_seeded(trained) -> None:
    [method] = learned_methods([str(trained(1))])
    assert seeded(method, 1) is None


def test_an_agent_with_starts_is_seeded_and_keeps_what_it_has_learned(trained, monkeypatch) -> None:
    guess = registry.solver_class("guess")
    seen = []

    def search(self, problem, evaluator, rng):
        seen.append((self.starts, self.guess))
        evaluator.evaluate(self._solution(problem, self.guess))

    monkeypatch.setattr(guess, "starts", (), raising=False)
    monkeypatch.setattr(guess, "_search", search)
    [method] = learned_methods([f"g={trained(5)}"])
    for devices in (1, 2):
        other = seeded(method, devices)
        assert other is not None
        assert (other.name, other.kind, other.starts) == ("g seeded", SEEDED_AGENT, starts_of(devices))
        assert other.key != method.key
        other.run(row_of(f"regal-memory-{devices}", GRAPH, "validation").problem(), 0)
        assert seen[-1] == (starts_of(devices), 5)
    method.run(row_of("regal-memory-1", GRAPH, "validation").problem(), 0)
    assert seen[-1] == ((), 5)


def test_a_learner_of_proposals_solves_within_the_budget(tiny: Path) -> None:
    [method] = learned_methods([f"regal-seed1={tiny}"])
    assert (method.training_of, method.solvers[0].make().name) == ("regal", "regal")
    problem = row_of("regal-memory-1", GRAPH, "validation").problem()
    [found] = method.run(problem, 0)
    direct = method.solvers[0].make().solve(problem, Budget(evaluations=5_000), np.random.default_rng(0))
    assert (found.outcome, found.evaluations) == (direct.outcome, 5_000)


def test_further_trainings_are_not_seeded(tiny: Path) -> None:
    [method] = learned_methods([f"regal-seed1={tiny}"])
    assert seeded(method, 1) is None


def test_agents_are_not_seeded_where_nobody_wants_it(tiny: Path) -> None:
    for wanted in (True, False):
        settings = Settings(agents=(f"tiny={tiny}",), columns=(), seeded=wanted)
        names = [method.name for method in settings.methods("memory-1")]
        assert names == ["brkga-5k", "tiny", *["tiny seeded"] * wanted]


def test_a_learner_of_proposals_is_seeded(tiny: Path) -> None:
    [method] = learned_methods([f"regal={tiny}"])
    problem = row_of("regal-memory-1", GRAPH, "validation").problem()
    other = seeded(method, 1)
    assert other is not None
    [found] = other.run(problem, 0)
    heuristics = [make(name).solve(problem).outcome.value for name in starts_of(1)]
    assert found.outcome.value <= min(heuristics)
    assert found.evaluations == 5_000
    assert "started from" in found.note
    assert "started from" not in method.run(problem, 0)[0].note


def test_settings_that_name_a_folder_change_with_what_is_in_it(tiny: Path, tmp_path: Path) -> None:
    settings = tmp_path / "mine.yaml"
    settings.write_text(f"solver: regal\noptions:\n  weights: {tiny}\n")
    [method] = learned_methods([str(settings)])
    assert method.key["weights"] == learned_methods([str(tiny)])[0].training


def test_shipped_weights_have_names_and_are_part_of_the_column(
    tiny: Path, tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.setattr(SHELF, "folder", tmp_path)
    with pytest.raises(InvalidProblemError, match="'regal' has learned nothing"):
        learned_methods(["regal"])
    for name in ("regal", "regal-seed7"):
        shutil.copytree(tiny, tmp_path / name)
    named, weights = learned_methods(["regal", "regal-seed7"])
    assert named.training == weights.training  # the default is one of the trainings
    assert (named.training_of, weights.training_of) == ("regal", "regal")
    assert named.key["weights"] == named.training  # the name alone does not say what was learned
    assert learned_methods([str(tmp_path / "regal-seed7")])[0].training == named.training


def test_no_agent_is_called_what_another_column_is_called(trained) -> None:
    folder = trained(1)
    for name in ("brkga-5k", "best-heuristic", "brkga-50k"):
        with pytest.raises(InvalidProblemError, match=f"agent '{name}' is called what another column"):
            Settings(agents=(f"{name}={folder}",), columns=()).methods("memory-1")
    with pytest.raises(InvalidProblemError, match="agent 'brkga-50' is called what"):
        Settings(agents=(f"brkga-50={folder}",), evaluations=50).methods("time")
    assert Settings(agents=(f"mine={folder}",)).methods("time")[-1].name == "mine"


def test_of_an_agent_that_no_graph_is_for_it_is_said_why(tiny: Path) -> None:
    settings = Settings(("memory-1", "memory-2"), "validation", 1, 1, (f"tiny={tiny}",), (), evaluations=50)
    one, two = run(settings)
    assert one["skipped"] == {}
    assert set(two["skipped"]) == {"tiny", "tiny seeded"}
    assert "was trained for" in two["skipped"]["tiny"]
    assert all(set(graph["columns"]) == {"brkga-50"} for graph in two["graphs"])
