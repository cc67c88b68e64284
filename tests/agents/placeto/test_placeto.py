"""Placeto as a learner: it learns, goes on where it was, places what it may, and refuses what cannot be."""

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("safetensors")

from opgym.agents.placeto import Placeto
from opgym.agents.placeto.coarse import MOST_GROUPS
from opgym.datasets import load
from opgym.errors import InvalidProblemError, UnknownIdError
from opgym.graphs import Cluster, GraphBuilder, TableCost
from opgym.problems import Budget, Placement, PlacementProblem

from ...problems.instances import BYTE_PER_NS, accelerator
from ..edge_cases import EDGE_CASES
from ..sb3.monitors import Recorder, Stopped
from ..sb3.problems import placement

#: Options with which it learns in no time.
QUICK = {
    "groups": "op", "rounds": 1, "samples": 2, "learning_rate": 3e-3, "discount": 0.8, "validate_every": 2,
}  # fmt: skip


def make(**options):
    return Placeto(weights="none", **{**QUICK, **options})


def weights(learner):
    return {name: array.tobytes() for name, array in learner.learned.weights.items()}


def pair_of_chains(length=5):
    """One chain on each device is best: twice as fast as a single device."""
    b = GraphBuilder("chains")
    for kind in ("Left", "Right"):
        x = b.tensor(bytes=1)
        b.op(kind, outputs=[x])
        for _ in range(length - 1):
            y = b.tensor(bytes=5)
            b.op(kind, inputs=[x], outputs=[y])
            x = y
    cluster = Cluster.uniform((accelerator(),) * 2, BYTE_PER_NS)
    return PlacementProblem(b.build(), cluster, costs=TableCost({"accelerator": np.full(2 * length, 10)}))


@pytest.mark.parametrize(
    "options",
    [{}, {"reward": "final", "discount": 1.0, "samples": 8}],
)
def test_learns_what_is_best(options):
    problem = pair_of_chains()
    trained = make(**options).fit([problem], steps=400, seed=0)
    shown = trained.solve(problem, Budget(evaluations=2))
    assert shown.outcome.value == 50  # of its most likely placement
    assert shown.note == "zero-shot"


def test_learns_to_fit_into_memory():
    """Where episodes begin, nothing fits."""
    problem = pair_of_chains()
    tight = PlacementProblem(problem.graph, problem.cluster.with_capacity(12), costs=problem.costs)
    assert not tight.evaluate(Placement(np.zeros(10, np.uint8))).ok
    trained = make().fit([tight], steps=400, seed=0)
    assert trained.solve(tight, Budget(evaluations=2)).outcome.ok


@pytest.mark.parametrize(
    "options", [{}, {"start": "random", "reward": "final", "samples": 8, "entropy_updates": 4}]
)
def test_goes_on_exactly(options, tmp_path):
    learner, problems, validation = make(**options), [placement(), pair_of_chains()], [pair_of_chains(3)]
    whole = Recorder()
    expected = learner.fit(problems, steps=80, seed=3, monitor=whole, validation=validation)
    middle = whole.offered[len(whole.offered) // 2]
    monitor = Recorder(tmp_path, stop_after=1, first=middle)
    with pytest.raises(Stopped):
        learner.fit(problems, steps=80, seed=3, monitor=monitor, validation=validation)
    rest = Recorder(latest=monitor.checkpoints[-1])
    trained = learner.fit(problems, steps=80, seed=3, monitor=rest, validation=validation)
    assert monitor.curve + rest.curve == whole.curve
    assert weights(trained) == weights(expected)
    assert weights(trained) != weights(learner.fit(problems, steps=80, seed=4, validation=validation))


def test_what_is_saved_places_alike(tmp_path):
    trained = make(start="random").fit([placement()], steps=60, seed=0)
    trained.save(tmp_path / "agent")
    loaded = Placeto.load(tmp_path / "agent")
    assert weights(loaded) == weights(trained)
    for problem in (placement(), pair_of_chains(9)):
        found = [learner.solve(problem, Budget(evaluations=1)) for learner in (trained, loaded)]
        assert np.array_equal(found[0].solution.device, found[1].solution.device)


@pytest.mark.parametrize("case", EDGE_CASES)
def test_every_placement_is_legal(case):
    problem, seen = EDGE_CASES[case]("step_time"), []
    found = make().solve(
        problem, Budget(evaluations=30), np.random.default_rng(0), lambda progress: seen.append(progress.best)
    )
    assert found.evaluations == len(seen) == 30
    assert all(np.isfinite(outcome.value) for outcome in seen)


@pytest.mark.parametrize("objective", ["peak_memory", "max_load", "latency"])
def test_places_for_every_objective(objective):
    found = make().solve(EDGE_CASES["training"](objective), Budget(evaluations=30))
    assert np.isfinite(found.outcome.value)
    assert found.evaluations == 30


def test_the_same_seed_finds_the_same():
    found = [
        make().solve(placement(), Budget(evaluations=60), np.random.default_rng(seed)) for seed in (0, 0, 1)
    ]
    curves = [[(point.evaluations, point.value) for point in result.curve] for result in found]
    assert curves[0] == curves[1] != curves[2]


def test_graphs_with_too_many_groups_or_without_layers_are_skipped():
    b = GraphBuilder("many")
    for _ in range(MOST_GROUPS + 1):
        b.op("Add", outputs=[b.tensor(bytes=1)])
    many = PlacementProblem(b.build(), Cluster.parse("2xP100"))
    assert f"{MOST_GROUPS} groups, and there are {MOST_GROUPS + 1} by 'op'" in make().skip_reason(many)
    assert "names no layers" in make(groups="layer").skip_reason(many)
    assert make(groups="metis:64").skip_reason(many) is None
    assert make(groups="layer").skip_reason(placement("example/rnn-train")) is None
    with pytest.raises(InvalidProblemError, match="at most"):
        make().fit([many], steps=1)


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("groups", "metis:0", "parts of METIS = 0"),
        ("groups", "metis:100000", "parts of METIS = 100000"),
        ("groups", 64, "groups = 64"),
        ("discount", 1.1, "discount"),
        ("baseline_window", 0, "baseline_window"),
        ("standardise", 1, "standardise"),
        ("entropy_updates", -1, "entropy_updates"),
        ("width", 0, "width"),
        ("rounds", 0, "rounds"),
    ],
)
def test_options_that_cannot_be_are_refused(option, value, message):
    with pytest.raises(InvalidProblemError, match=message):
        make(**{option: value})


@pytest.mark.parametrize(
    ("option", "value", "nearest"),
    [
        ("groups", "metis", "metis:64"),
        ("groups", "layers", "layer"),
        ("start", "singel", "single"),
        ("reward", "improvements", "improvement"),
        ("aggregate", "summ", "sum"),
    ],
)
def test_unknown_choices_are_refused_with_the_nearest(option, value, nearest):
    with pytest.raises(UnknownIdError, match=f"did you mean {nearest}"):
        make(**{option: value})


def test_the_largest_graphs_are_placed_in_a_moment():
    problem = PlacementProblem(load("zoo/gnmt-4l-train"), Cluster.parse("4xP100"))
    found = Placeto(weights="none", evaluations=1).solve(problem)
    assert found.evaluations == 1
