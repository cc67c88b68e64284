"""REINFORCE on proposals: it learns, the same seed gives the same weights, and an interruption changes nothing."""

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("safetensors")

import torch

from opgym import agents
from opgym.agents.networks.isolation import isolated
from opgym.agents.regal.published.instance import Instance, proposal_of
from opgym.agents.regal.published.reinforce import Recipe, Reinforce, new_policy
from opgym.agents.regal.published.shape import Shape
from opgym.agents.regal.trials import End, Trial
from opgym.errors import InvalidProblemError, OpgymError
from opgym.graphs import Cluster
from opgym.problems import Objective, PlacementProblem

from ..sb3.monitors import Recorder, Stopped
from .problems import QUICK, capped, order, placement, tasks

#: Two proposals for each of three graphs are a step each: an update takes six of them.
STEPS = 36


def make(name="regal", **options):
    return agents.make(name, **{**QUICK, **options})


def weights(learner):
    return {name: array.tobytes() for name, array in learner.learned.weights.items()}


class Simple:
    """Trials in a world that rewards early priorities of what writes much, and late ones of what writes little."""

    def run(self, trials):
        return [self.end(trial) for trial in trials]

    def end(self, trial):
        if trial.proposal is None:
            return End(1_000, 0.0)
        large = trial.instance.features.nodes[:, 1] > 1
        mean = trial.proposal.mutants[:, 0] / trial.proposal.mutants.sum(axis=1)
        return End(int(1_000 - 213 * (mean[large].mean() - mean[~large].mean())), 0.0)


@pytest.mark.parametrize("value_head", [False, True])
def test_learns_what_is_rewarded(value_head):
    network = Shape("messages", 16, 1, True, True, value_head)
    recipe = Recipe(network, False, 2, 16, 1e-2, False, 0.0, 20, None, True)
    problems = [order(seed) for seed in range(8)]
    with isolated(1, "cpu"):
        policy = new_policy(network, 0)
        training = Reinforce(recipe, policy, problems, [order(100)], Simple(), 2 * 16 * 60, 0)
        recorder = Recorder()
        training.run({}, recorder)
    gains = [line["charts/validation_gain"] for _, line in recorder.lines if "charts/validation_gain" in line]
    assert len(gains) == 3
    assert gains[-1] > 0.05  # of at most 0.2
    instance = Instance.of(order(200))  # unseen
    assert (
        Simple().end(Trial(instance, 0, proposal_of(instance, policy.propose(instance), False))).value < 950
    )
    assert training.result[1] == max(gains)


@pytest.mark.parametrize("name", ["regal", "gas"])
def test_the_same_seed_gives_the_same_weights_whatever_the_threads(name):
    found = [
        weights(make(name, threads=threads).fit(tasks(), steps=12, seed=seed))
        for seed, threads in ((0, 1), (0, 2), (1, 1))
    ]
    assert found[0] == found[1]
    assert found[0] != found[2]


TRAININGS = {
    "regal": ("regal", {}),
    "value head": ("regal", {"baseline": "value", "initial": True}),
    "gas": ("gas", {"anneal": False}),
}


@pytest.mark.parametrize("training", TRAININGS)
def test_goes_on_exactly(training, tmp_path):
    name, options = TRAININGS[training]
    learner, problems, validation = make(name, **options), tasks(), [order(50), placement(seed=51)]
    whole = Recorder()
    expected = learner.fit(problems, steps=STEPS, seed=3, monitor=whole, validation=validation)
    assert whole.ended
    assert [steps for steps, _ in whole.lines] == list(range(6, STEPS + 1, 6))

    latest, curve = None, []
    for part in range(3):  # interrupted twice
        folder = tmp_path / str(part)
        folder.mkdir()
        first = 12 * (part + 1)
        monitor = Recorder(folder, latest=latest, stop_after=1 if part < 2 else None, first=first)
        try:
            trained = learner.fit(problems, steps=STEPS, seed=3, monitor=monitor, validation=validation)
        except Stopped:
            assert part < 2
        curve += monitor.curve
        latest = monitor.checkpoints[-1]
    assert curve == whole.curve
    assert weights(trained) == weights(expected)
    assert trained.learned.trainings == expected.learned.trainings

    again = Recorder(latest=latest)  # there is nothing left to do
    last = learner.fit(problems, steps=STEPS, seed=3, monitor=again, validation=validation)
    assert weights(last) == weights(expected)
    assert again.lines == []


def test_weights_are_those_that_gain_most_on_validation_problems():
    recorder = Recorder()
    validation = [order(50), placement(seed=51), capped(52)]
    trained = make(learning_rate=0.1).fit(tasks(), steps=STEPS, monitor=recorder, validation=validation)
    gains = [line["charts/validation_gain"] for _, line in recorder.lines if "charts/validation_gain" in line]
    assert len(gains) == 3
    assert trained.learned.trainings[0].validation_gain == max(gains)
    assert [
        line["charts/best_validation_gain"] for _, line in recorder.lines if "charts/validation_gain" in line
    ] == [max(gains[: i + 1]) for i in range(3)]
    last = make(learning_rate=0.1).fit(tasks(), steps=STEPS)
    assert last.learned.trainings[0].validation_gain is None
    assert (weights(last) == weights(trained)) == (gains[-1] > max(gains[:-1]))


def test_a_round_draws_every_problem_once():
    network = Shape("messages", 8, 1, True, True, False)
    recipe = Recipe(network, False, 2, 2, 1e-3, False, 0.0, 10, None, True)
    training = Reinforce(recipe, new_policy(network, 0), tasks() * 2, [], Simple(), 100, 0)
    drawn = []
    for update in range(6):
        training._updates = update
        drawn += training._drawn(6, 2, 1)
    assert sorted(drawn[:6]) == sorted(drawn[6:]) == list(range(6))
    assert drawn[:6] != drawn[6:]


def test_says_what_it_was_trained_for():
    problems = [order(), placement(), order(1)]
    learner = make().fit(problems, steps=6, seed=9)
    learned = learner.learned
    assert learner.trained_on == {p.graph.fingerprint for p in problems}
    assert make().trained_on == set()
    assert [str(task) for task in learned.tasks] == ["peak_memory on one device", "peak_memory on 2 devices"]
    (training,) = learned.trainings
    assert learned.trainings[0].graphs == tuple(sorted({p.graph.fingerprint for p in problems}))
    assert training.tasks == {"peak_memory on one device": 2, "peak_memory on 2 devices": 1}
    assert (training.steps, training.seed) == (6, 9)


def test_a_trained_learner_goes_on_from_its_weights():
    first = make().fit([order()], steps=6, seed=1)
    second = first.fit([placement()], steps=6, seed=2)
    assert weights(second) != weights(first)
    assert weights(second) != weights(make().fit([placement()], steps=6, seed=2))
    assert [training.seed for training in second.learned.trainings] == [1, 2]
    assert len(second.learned.tasks) == 2


@pytest.fixture
def checkpoint(tmp_path):
    monitor = Recorder(tmp_path, stop_after=1)
    with pytest.raises(Stopped):
        make().fit([order()], steps=STEPS, monitor=monitor)
    return monitor.checkpoints[0]


@pytest.mark.parametrize(
    ("message", "options", "fit"),
    [
        ("steps is 36 there and 37 here", {}, {"steps": STEPS + 1}),
        ("seed is 0 there and 1 here", {}, {"seed": 1}),
        ("options is .*'samples': 3.* there and .*'samples': 4.* here", {"samples": 4}, {}),
        ("validation is", {}, {"validation": [order(7)]}),
    ],
)
def test_a_checkpoint_of_another_training_is_refused(message, options, fit, checkpoint):
    with pytest.raises(OpgymError, match=f"another training: {message}"):
        make(**options).fit([order()], **{"steps": STEPS, "monitor": Recorder(latest=checkpoint), **fit})


def test_a_checkpoint_of_another_agent_or_graph_is_refused(checkpoint):
    monitor = Recorder(latest=checkpoint)
    with pytest.raises(OpgymError, match="another training: agent is 'regal' there and 'gas' here"):
        make("gas").fit([order()], steps=STEPS, monitor=monitor)
    with pytest.raises(OpgymError, match="another training: problems is"):
        make().fit([order(1)], steps=STEPS, monitor=monitor)
    trained = make().fit([order()], steps=6)
    with pytest.raises(OpgymError, match="another training: started_from is None there"):
        trained.fit([order()], steps=STEPS, monitor=monitor)


def test_more_threads_may_go_on(checkpoint):
    expected = weights(make().fit([order()], steps=STEPS))
    learner = make(threads=2)
    assert weights(learner.fit([order()], steps=STEPS, monitor=Recorder(latest=checkpoint))) == expected


def test_what_it_cannot_learn_from_is_refused():
    with pytest.raises(InvalidProblemError, match="needs at least one problem"):
        make().fit([], steps=1)
    with pytest.raises(InvalidProblemError, match="steps = 0"):
        make().fit([order()], steps=0)
    p = placement()
    load = PlacementProblem(p.graph, p.cluster, Objective.MAX_LOAD, p.costs)
    with pytest.raises(InvalidProblemError, match="does not optimise max_load"):
        make().fit([load], steps=1)
    three = PlacementProblem(p.graph, Cluster.parse("3xREGAL"), p.objective, p.costs)
    with pytest.raises(InvalidProblemError, match="at most 2, and this cluster has 3"):
        make().fit([p], steps=1, validation=[three])


def test_training_leaves_the_generators_of_the_process_alone():
    torch.manual_seed(5)
    np.random.seed(5)  # noqa: NPY002 that it is not touched is the point
    expected = torch.rand(1), np.random.rand()  # noqa: NPY002
    torch.manual_seed(5)
    np.random.seed(5)  # noqa: NPY002
    make().fit([order()], steps=6)
    assert (torch.rand(1), np.random.rand()) == expected  # noqa: NPY002


def test_large_steps_leave_the_weights_finite():
    trained = make(learning_rate=10.0).fit(tasks(), steps=STEPS)
    assert all(np.isfinite(array).all() for array in trained.learned.weights.values())
    assert replace(trained).learned is None  # a copy of the options is untrained
