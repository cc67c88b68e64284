"""Expert iteration: it learns, an interruption changes nothing, and what is saved solves the same."""

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("safetensors")

from torch.optim import Adam

from opgym import agents
from opgym.agents.regal.plus.expert_iteration import new_policy
from opgym.agents.regal.plus.instance import Instance
from opgym.agents.regal.plus.policy import Policy, policy_loss_of
from opgym.errors import InvalidProblemError, OpgymError
from opgym.graphs import GraphBuilder
from opgym.problems import Budget, SchedulingProblem

from ...sb3.monitors import Recorder, Stopped
from ..problems import capped, order, placement, tasks
from .test_improvement import IMPROVER

#: Options with which it learns in no time.
QUICK = {
    "graphs": 2, "samples": 3, "evaluations_per_run": 30, "width": 8, "layers": 1, "population": 10, "elites": 2,
    "mutants": 3, "validate_every": 2, "moves": 50, "search_evaluations": 30, "weights": "none",
}  # fmt: skip
STEPS = 12


def make(**options):
    return agents.make("regal-plus", **{**QUICK, **options})


def weights(learner):
    return {name: array.tobytes() for name, array in learner.learned.weights.items()}


def test_it_comes_to_expect_what_the_search_finds():
    recorder = Recorder()
    make(width=16, learning_rate=3e-3, moves=500).fit(
        [order(seed) for seed in range(4)], steps=400, seed=1, monitor=recorder
    )
    first, last = (
        np.mean([line["charts/position_error"] for _, line in part])
        for part in (recorder.lines[:10], recorder.lines[-10:])
    )
    assert last < 0.6 * first
    drawn = [line["charts/drawn_over_found"] for _, line in recorder.lines]
    assert np.mean(drawn[-10:]) < np.mean(drawn[:10])


def test_the_same_seed_gives_the_same_weights_whatever_the_threads():
    found = [
        weights(make(threads=threads).fit(tasks(), steps=6, seed=seed))
        for seed, threads in ((0, 1), (0, 2), (1, 1))
    ]
    assert found[0] == found[1]
    assert found[0] != found[2]


@pytest.mark.parametrize(
    "options",
    [{}, {"distilled": 0.5, "lessons": 60}, {"policy_gradient": 0.5}],
    ids=["iterated", "distilled", "with-policy-gradient"],
)
def test_goes_on_exactly(options, tmp_path):
    learner, problems, validation = make(**options), tasks(), [order(50), placement(seed=51)]
    whole = Recorder()
    expected = learner.fit(problems, steps=STEPS, seed=3, monitor=whole, validation=validation)
    assert whole.ended
    latest, curve = None, []
    for part in range(3):  # interrupted twice
        folder = tmp_path / str(part)
        folder.mkdir()
        monitor = Recorder(folder, latest=latest, stop_after=1 if part < 2 else None, first=4 * (part + 1))
        try:
            trained = learner.fit(problems, steps=STEPS, seed=3, monitor=monitor, validation=validation)
        except Stopped:
            assert part < 2
        curve += monitor.curve
        latest = monitor.checkpoints[-1]
    assert curve == whole.curve
    assert weights(trained) == weights(expected)
    with pytest.raises(OpgymError, match="another training: seed is 3 there"):
        learner.fit(problems, steps=STEPS, seed=4, monitor=Recorder(latest=latest), validation=validation)


def test_distilled_it_learns_what_the_teacher_found_once():
    recorder, problems = Recorder(), [order(seed) for seed in range(3)]
    learner = make(distilled=1.0, lessons=400, width=16, learning_rate=3e-3)
    learner.fit(problems, steps=300, seed=1, monitor=recorder)
    errors = [line["charts/position_error"] for _, line in recorder.lines]
    assert np.mean(errors[-10:]) < 0.5 * np.mean(errors[:10])  # of targets that stay where they are
    assert not any("charts/drawn_over_found" in line for _, line in recorder.lines)


def test_the_policy_gradient_makes_better_draws_more_likely():
    instance = Instance.of(order())
    policy = new_policy(make().network(), seed=0)
    found = IMPROVER.improved(instance, policy.expects(instance), np.random.default_rng(0))
    optimizer = Adam(policy.parameters(), lr=0.01)

    losses = []
    for _ in range(10):
        loss = policy_loss_of(policy.says([instance]), [instance], [found])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    assert losses[-1] < losses[0]
    drawn = 1 - found.drawn[:, instance.encoding.priorities]
    best, worst = drawn[found.advantage.argmax()], drawn[found.advantage.argmin()]
    position = policy.expects(instance).position[instance.encoding.ops]
    assert np.abs(position - best).mean() < np.abs(position - worst).mean()


@pytest.mark.parametrize("messages", [True, False])
def test_edges_are_heard_only_with_messages(messages):
    policy = new_policy(make(messages=messages).network(), seed=0)
    instance = Instance.of(order())
    louder = replace(instance.structure, to_reader=2 * instance.structure.to_reader)
    one, other = (policy.expects(replace(instance, structure=each)) for each in (instance.structure, louder))
    assert (one.position.tolist() == other.position.tolist()) is not messages


def test_saved_it_solves_the_same(tmp_path):
    trained = make(spread=1.5, uniform_share=0.25).fit(tasks(), steps=STEPS, validation=[order(9)])
    trained.save(tmp_path / "agent")
    loaded = agents.load(tmp_path / "agent")
    assert loaded.learned.network == trained.learned.network
    assert loaded.learned.trainings == trained.learned.trainings
    for problem in tasks():
        one, other = (
            learner.solve(problem, Budget(evaluations=40), np.random.default_rng(2))
            for learner in (trained, loaded)
        )
        assert [point.value for point in one.curve] == [point.value for point in other.curve]
        assert one.evaluations <= 40
    (tmp_path / "agent" / "weights.safetensors").write_bytes(b"")
    with pytest.raises(OpgymError, match="damaged"):
        agents.load(tmp_path / "agent")


@pytest.mark.parametrize("problem", [order, placement, capped])
def test_trained_it_runs_brkga_with_its_proposal(problem):
    trained, problem = make().fit(tasks(), steps=STEPS), problem(seed=7)
    instance = Instance.of(problem)
    policy = Policy.of(trained.learned.network, trained.learned.weights)
    proposal = trained.placing().proposal(instance.encoding, policy.expects(instance))
    brkga = agents.make("brkga", population=10, elites=2, mutants=3, proposal=proposal)
    expected = brkga.solve(problem, Budget(evaluations=60), np.random.default_rng(4))
    found = trained.solve(problem, Budget(evaluations=60), np.random.default_rng(4))
    assert found.outcome == expected.outcome
    assert [point.value for point in found.curve] == [point.value for point in expected.curve]


def test_untrained_it_proposes_nothing():
    brkga = agents.make("brkga", population=10, elites=2, mutants=3)
    expected = brkga.solve(order(), Budget(evaluations=60), np.random.default_rng(4))
    found = make().solve(order(), Budget(evaluations=60), np.random.default_rng(4))
    assert found.outcome == expected.outcome
    assert found.note == f"untrained, so no proposals: {expected.note}"


def test_graphs_that_are_too_large_are_left_alone():
    builder = GraphBuilder("wide")
    for _ in range(5_001):
        builder.op("op", outputs=[builder.tensor(bytes=1)])
    reason = make().skip_reason(SchedulingProblem(builder.build()))
    assert reason == "looks at graphs of at most 5,000 ops, and this one has 5,001"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"width": 6}, "width = 6; expected a multiple of 4"),
        ({"layers": 0}, "layers = 0"),
        ({"reconcile": 1}, "reconcile = 1; expected true or false"),
        ({"uniform_share": -0.1}, "uniform_share = -0.1"),
        ({"moves": 0}, "moves = 0"),
        ({"spread": float("nan")}, "spread = nan"),
        ({"distilled": -1}, "distilled = -1"),
        ({"lessons": 0}, "lessons = 0"),
        ({"policy_gradient": float("inf")}, "policy_gradient = inf"),
        ({"messages": "no"}, "messages = 'no'; expected true or false"),
    ],
)
def test_wrong_options_are_refused(options, message):
    with pytest.raises(InvalidProblemError, match=message):
        make(**options)
