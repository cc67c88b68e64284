"""Of every learned placer: it learns, keeps the rules and the budget, and the same seed gives the same bytes."""

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("safetensors")

from opgym import agents
from opgym.errors import InvalidProblemError
from opgym.graphs import Cluster, GraphBuilder, TableCost
from opgym.outcome import Verdict
from opgym.problems import Budget, PlacementProblem

from ...problems.instances import BYTE_PER_NS, accelerator, cpu
from ..edge_cases import training_graph
from ..sb3.monitors import Recorder, Stopped
from ..sb3.problems import placement

#: Learners, with options with which they learn in no time.
QUICK = {
    "gdp": {
        "width": 8, "heads": 2, "segment": 4, "layers": 1, "rounds": 1, "samples": 4, "learning_rate": 1e-2,
        "entropy": 0.03,
    },
    "hdp": {
        "width": 8, "grouper_width": 8, "kind_width": 4, "groups": 4, "samples": 4, "learning_rate": 1e-2,
        "noise_updates": 0,
    },
    "placeto": {"groups": "op", "rounds": 1, "samples": 2, "learning_rate": 3e-3, "discount": 0.8},
    "gdp-plus": {"width": 16, "rounds": 1, "heads": 2, "samples": 8, "epochs": 4, "learning_rate": 1e-2},
}  # fmt: skip
every_placer = pytest.mark.parametrize("name", QUICK)


def make(name, **options):
    return agents.make(name, **{"weights": "none", "validate_every": 2, **QUICK[name], **options})


def weights(learner):
    return {name: array.tobytes() for name, array in learner.learned.weights.items()}


def independent(ops=8, devices=2, seconds=None):
    """Ops that have nothing to do with each other: the best placement shares them out."""
    b = GraphBuilder("independent")
    for _ in range(ops):
        b.op("MatMul", outputs=[b.tensor(bytes=1)])
    cluster = Cluster.uniform((accelerator(),) * devices, BYTE_PER_NS)
    return PlacementProblem(b.build(), cluster, costs=TableCost({"accelerator": np.full(ops, 10)}))


def chains(length=6):
    """Two chains of ops of two kinds: one chain on each device is best."""
    b = GraphBuilder("chains")
    for kind in ("Left", "Right"):
        x = b.tensor(bytes=1)
        b.op(kind, outputs=[x])
        for _ in range(length - 1):
            y = b.tensor(bytes=5)
            b.op(f"{kind}Next", inputs=[x], outputs=[y])
            x = y
    cluster = Cluster.uniform((accelerator(),) * 2, BYTE_PER_NS)
    return PlacementProblem(b.build(), cluster, costs=TableCost({"accelerator": np.full(2 * length, 10)}))


def colocated():
    """A training graph of which one kind of op runs on one device alone."""
    graph = training_graph()
    cluster = Cluster.uniform((accelerator(), accelerator(), cpu()), BYTE_PER_NS)
    costs = TableCost({name: np.where(graph.is_variable, 0, 10) for name in ("accelerator", "cpu")})
    return PlacementProblem(graph, cluster, costs=costs)


@pytest.mark.parametrize("name", [name for name in QUICK if name != "gdp-plus"])  # which has its own test
def test_learns_what_is_best(name):
    problem = chains()
    found = make(name).solve(problem, Budget(evaluations=400), np.random.default_rng(0))
    assert found.outcome.value == 60
    trained = make(name).fit([problem], steps=400, seed=0)
    shown = trained.solve(problem, Budget(evaluations=2))
    assert shown.outcome.value == 60  # of its most likely placement
    assert shown.note == "zero-shot"


@every_placer
def test_every_placement_is_legal(name):
    problem, seen = colocated(), []
    make(name).solve(
        problem, Budget(evaluations=50), np.random.default_rng(1), lambda progress: seen.append(progress.best)
    )
    assert len(seen) == 50
    assert all(outcome.verdict in (Verdict.OK, Verdict.OUT_OF_MEMORY) for outcome in seen)


@every_placer
@pytest.mark.parametrize("evaluations", [1, 2, 7, 30])
def test_spends_the_budget_and_no_more(name, evaluations):
    found = make(name).solve(placement(), Budget(evaluations=evaluations), np.random.default_rng(0))
    assert found.evaluations == evaluations


@every_placer
def test_without_a_budget_it_has_its_own(name):
    assert make(name, evaluations=20).solve(placement()).evaluations == 20


@every_placer
def test_the_same_seed_finds_the_same(name):
    found = [
        make(name).solve(placement(), Budget(evaluations=40), np.random.default_rng(seed))
        for seed in (0, 0, 1)
    ]
    curves = [[(point.evaluations, point.value) for point in result.curve] for result in found]
    assert curves[0] == curves[1] != curves[2]
    assert np.array_equal(found[0].solution.device, found[1].solution.device)
    trained = [weights(make(name).fit([placement(), chains()], steps=16, seed=seed)) for seed in (0, 0, 1)]
    assert trained[0] == trained[1] != trained[2]


@every_placer
def test_goes_on_exactly(name, tmp_path):
    learner, problems, validation = make(name), [placement(), chains(), independent()], [chains(4)]
    whole = Recorder()
    expected = learner.fit(problems, steps=200, seed=3, monitor=whole, validation=validation)
    assert whole.ended
    offers = whole.offered
    middle = offers[len(offers) // 2]

    (tmp_path / "checkpoints").mkdir()
    monitor = Recorder(tmp_path / "checkpoints", stop_after=1, first=middle)
    with pytest.raises(Stopped):
        learner.fit(problems, steps=200, seed=3, monitor=monitor, validation=validation)
    rest = Recorder(latest=monitor.checkpoints[-1])
    trained = learner.fit(problems, steps=200, seed=3, monitor=rest, validation=validation)
    assert monitor.curve + rest.curve == whole.curve
    assert weights(trained) == weights(expected)
    assert trained.learned.trainings == expected.learned.trainings
    gains = [line["charts/validation_gain"] for _, line in whole.lines if "charts/validation_gain" in line]
    assert trained.learned.trainings[-1].validation_gain == max(gains)


@every_placer
def test_what_is_saved_places_alike(name, tmp_path):
    trained = make(name).fit([placement()], steps=40, seed=0)
    trained.save(tmp_path / "agent")
    loaded = agents.load(tmp_path / "agent")
    assert weights(loaded) == weights(trained)
    assert loaded.trained_on == {placement().graph.fingerprint}
    for problem in (placement(), chains(9)):  # with kinds that it has never seen
        results = [
            learner.solve(problem, Budget(evaluations=30), np.random.default_rng(0))
            for learner in (trained, loaded)
        ]
        assert results[0].outcome.value == results[1].outcome.value
        assert results[0].evaluations == results[1].evaluations == 2  # in both orders


@every_placer
def test_goes_on_learning_if_it_is_told_to(name):
    # Trained for nothing but this graph's twin, whose best placement is another.
    trained = make(name, finetune=30).fit([independent(devices=1)], steps=8, seed=0)
    found = trained.solve(chains(), Budget(evaluations=600), np.random.default_rng(0))
    assert found.note == "zero-shot, then 30 updates" or found.evaluations == 600
    alone = make(name).fit([independent(devices=1)], steps=8, seed=0).solve(chains())
    assert found.outcome.value < alone.outcome.value


@every_placer
def test_memory_counts(name):
    problem = chains()
    cluster = problem.cluster.with_capacity(12)  # a single device needs 15
    tight = PlacementProblem(problem.graph, cluster, costs=problem.costs)
    found = make(name).solve(tight, Budget(evaluations=300), np.random.default_rng(0))
    assert found.outcome.verdict is Verdict.OK


@every_placer
def test_more_devices_than_it_can_choose_among_are_refused(name):
    problem = independent(devices=9)
    assert "at most 8 devices, and this cluster has 9" in make(name, devices=8).skip_reason(problem)
    with pytest.raises(InvalidProblemError, match="at most 8 devices"):
        make(name, devices=8).fit([problem], steps=4)
    assert make(name, devices=9).skip_reason(problem) is None


@every_placer
@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("samples", 0), ("finetune", -1), ("learning_rate", 0.0), ("entropy", -1.0), ("anneal", 1), ("device", 3),
        ("evaluations", 0), ("width", 0), ("devices", 0), ("validate_every", 0),
    ],
)  # fmt: skip
def test_options_that_cannot_be_are_refused(name, option, value):
    with pytest.raises(InvalidProblemError, match=option):
        make(name, **{option: value})
