"""Training problems by rule, and a training on them that is interrupted."""

from pathlib import Path

import pytest
import yaml

pytest.importorskip("torch")

from opgym import datasets
from opgym.agents.regal import trials
from opgym.errors import InvalidProblemError, UnknownIdError
from opgym.problems import Objective, SchedulingProblem
from opgym.runs.references import regal_suites
from opgym.runs.train.config import ProblemConfig
from opgym.runs.train.generated_problems import pose_generated, pose_validation
from opgym.runs.train.training import TrainResult

from .conftest import metrics

MEMORY = ["regal-memory-1", "regal-memory-2"]
SMALL = (
    "agent=regal", "problem=regal", f"problem.suites=[{','.join(MEMORY)}]", "problem.rows=2", "problem.validation=1",
    "agent.options.evaluations_per_run=40", "agent.options.graphs=2", "agent.options.samples=2",
    "agent.options.width=8", "agent.options.validate_every=2", "trainer.evaluations=60", "trainer.steps=16",
    "trainer.checkpoint_steps=8", "logger=jsonl",
)  # fmt: skip


def test_every_graph_is_a_problem_of_every_suite():
    found = pose_generated(ProblemConfig(suites=MEMORY, rows=2))
    graphs = [datasets.suite("regal-memory-1").generated[0][i] for i in range(2)]
    assert [named.name for named in found] == [
        regal_suites.row_of(suite, graph, "train").name for graph in graphs for suite in MEMORY
    ]
    assert isinstance(found[0].problem, SchedulingProblem)
    assert found[1].problem.objective is Objective.PEAK_MEMORY
    assert len(found[1].problem.cluster) == 2
    assert found[0].problem.graph.fingerprint == found[1].problem.graph.fingerprint


def test_a_graph_is_there_once_however_often_it_is_asked_for():
    found = pose_generated(ProblemConfig(suites=MEMORY[0], rows=[3, 0, 3]))
    rule = datasets.suite(MEMORY[0]).generated[0]
    assert [named.name.partition(" on")[0] for named in found] == [rule[3], rule[0]]


def test_memory_is_limited_as_the_suite_says():
    (named,) = pose_generated(ProblemConfig(suites="regal-time", rows=[1]))
    row = regal_suites.row_of("regal-time", datasets.suite("regal-time").generated[0][1], "train")
    assert set(named.problem.cluster.capacity_bytes.tolist()) == {row.capacity_bytes}


def test_graphs_for_validation_are_others():
    config = ProblemConfig(suites=MEMORY, rows=[0], validation=[3])
    training, validation = pose_generated(config), pose_validation(config)
    assert [named.name.partition(" on")[0] for named in validation] == [
        regal_suites.generated("validation")[3]
    ] * 2
    assert not {n.problem.graph.fingerprint for n in training} & {
        n.problem.graph.fingerprint for n in validation
    }
    assert pose_validation(ProblemConfig(suites=MEMORY, rows=1)) == []


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"rows": None}, "problem.rows = None; expected how many random graphs"),
        ({"rows": 0}, "problem.rows = 0"),
        ({"rows": True}, "problem.rows = True"),
        ({"rows": [-1]}, r"problem.rows = \[-1\]"),
        ({"rows": 10**9}, "problem.rows = 1000000000; .* 1 .. 4000000"),
        ({"suites": []}, r"problem.suites = \[\]; expected a list"),
        ({"suites": ["regal-time", "regal-time"]}, "names a suite twice"),
        ({"cluster": "2xP100"}, "problem.suites and problem.cluster are both given"),
        ({"suite": "gdp"}, "problem.suite and problem.suites are both given"),
    ],
)
def test_what_cannot_be_posed_is_refused(settings, message):
    with pytest.raises(InvalidProblemError, match=message):
        pose_generated(ProblemConfig(**{"suites": MEMORY, "rows": 1, **settings}))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"suites": ["regal-memory-3"]}, r"did you mean regal-memory-[12]"),
        ({"suites": ["gdp"]}, "unknown suite with random graphs by rule 'gdp'"),
        ({"part": "test"}, "unknown part with random graphs by rule 'test'"),
    ],
)
def test_unknown_names_get_the_nearest(settings, message):
    with pytest.raises(UnknownIdError, match=message):
        pose_generated(ProblemConfig(**{"suites": MEMORY, "rows": 1, **settings}))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"suites": None}, "takes random graphs of problem.suites"),
        ({"part": "validation"}, "takes random graphs of problem.suites"),
        ({"validation": 0}, "problem.validation = 0; expected how many random graphs"),
    ],
)
def test_validation_that_cannot_be_is_refused(settings, message):
    with pytest.raises(InvalidProblemError, match=message):
        pose_validation(ProblemConfig(**{"suites": MEMORY, "rows": 1, "validation": 1, **settings}))


def test_a_learner_that_does_not_choose_takes_no_validation_graphs(train):
    done = train(
        "agent=ppo",
        "problem=regal",
        "problem.suites=[regal-memory-2]",
        "problem.rows=1",
        "problem.validation=1",
    )
    assert done.exit_code == 2
    assert "agent 'ppo' does not choose among its weights" in " ".join(done.stderr.split())


def test_a_training_ends_with_the_weights_that_gain_most_tried_on_validation_graphs(train, tmp_path):
    done = train(*SMALL, "name=run")
    assert done.exit_code == 0, done.stderr
    result = TrainResult.load(tmp_path / "runs" / "run")
    graph = regal_suites.generated("validation")[0]
    assert [row["problem"] for row in result.problems] == [
        regal_suites.row_of(suite, graph, "validation").name for suite in MEMORY
    ]
    assert [row["evaluations"] for row in result.problems] == [60, 60]
    lines = metrics(tmp_path / "runs")["run"]
    assert [line["steps"] for line in lines] == [4, 8, 12, 16]
    assert [line["steps"] for line in lines if "charts/validation_gain" in line] == [8, 16]


def test_an_interrupted_training_ends_as_if_it_had_not_been(train, tmp_path, monkeypatch):
    """The same bytes of weights and settings, the same lines of the log."""
    assert train(*SMALL, "name=whole").exit_code == 0
    run, calls = trials.Trials.run, []

    def interrupted(self, wanted):
        calls.append(1)
        if (
            len(calls) == 5
        ):  # two updates, the plain runs and those with proposals of validation graphs, and one more
            raise KeyboardInterrupt
        return run(self, wanted)

    with monkeypatch.context() as patch:
        patch.setattr(trials.Trials, "run", interrupted)
        assert train(*SMALL, "name=parts").exit_code != 0
    parts = tmp_path / "runs" / "parts"
    assert [path.name for path in (parts / "checkpoints").iterdir()] == ["000000000008"]
    assert not (parts / "result.json").exists()
    done = train(*SMALL, "name=parts", "resume=true")
    assert done.exit_code == 0, done.stderr
    for file in ("agent.json", "weights.safetensors"):
        assert (parts / "agent" / file).read_bytes() == (
            tmp_path / "runs" / "whole" / "agent" / file
        ).read_bytes()
    logs = metrics(tmp_path / "runs")
    assert logs["parts"] == logs["whole"]


def test_the_stored_presets_fit_together():
    root = Path(datasets.__file__).parents[1] / "conf"
    problem = yaml.safe_load((root / "problem" / "regal.yaml").read_text())
    assert set(problem["suites"]) == set(regal_suites.SETTINGS)
    experiment = yaml.safe_load((root / "train" / "experiment" / "regal.yaml").read_text())
    assert {"override /agent": "regal"} in experiment["defaults"]
    assert {"override /problem": "regal"} in experiment["defaults"]
