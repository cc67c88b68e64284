"""Keys as solutions: what they stand for, what they are worth, and how they are drawn."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from scipy import stats

from opgym import _core
from opgym.agents.search.keys import KeyEncoding, Proposal, betas
from opgym.agents.search.keys.proposal import distribution, inheritance
from opgym.errors import InvalidProblemError
from opgym.graphs import Cluster, GraphBuilder
from opgym.problems import Objective, Order, Placement, PlacementProblem, SchedulingProblem
from opgym.problems.grouping import assign

from ..problems.random_problems import random_placement, random_problem
from ..reference.strategies import graphs
from .edge_cases import EDGE_CASES

SIMULATED = [Objective.STEP_TIME, Objective.PEAK_MEMORY]


def random_keys(rng: np.random.Generator, encoding: KeyEncoding) -> np.ndarray:
    """Keys with many ties."""
    return (rng.integers(0, 5, encoding.genes) / 4).astype(np.float32)


def draw_problem(rng: np.random.Generator, objective: Objective) -> PlacementProblem:
    """A random problem; about every fifth draw has an op that fits nowhere, and is drawn again."""
    while True:
        try:
            return random_problem(rng, objective)
        except InvalidProblemError:
            continue


@pytest.mark.parametrize("objective", SIMULATED)
@pytest.mark.parametrize("seed", range(60))
def test_keys_are_worth_what_their_placement_is_worth(objective, seed):
    rng = np.random.default_rng(seed)
    problem = draw_problem(rng, objective)
    encoding = KeyEncoding(problem, transfer_keys=bool(seed % 2))
    for _ in range(5):
        keys = random_keys(rng, encoding)
        outcome = problem.evaluate(encoding.decode(keys))
        assert np.isfinite(outcome.value)  # legal: no group is split, no device unsupported
        assert encoding.decoder.evaluate(keys) == (outcome.overflow_share, outcome.value)


def test_many_chromosomes_are_worth_what_each_is_worth():
    rng = np.random.default_rng(0)
    decoder = KeyEncoding(draw_problem(rng, Objective.PEAK_MEMORY)).decoder
    keys = rng.random((7, decoder.num_genes), np.float32)
    overflow_share, value = decoder.evaluate_all(keys)
    assert (overflow_share.dtype, value.dtype) == (np.float64, np.int64)
    assert list(zip(overflow_share.tolist(), value.tolist(), strict=True)) == [
        decoder.evaluate(row) for row in keys
    ]
    assert [len(part) for part in decoder.evaluate_all(keys[:0])] == [0, 0]
    with pytest.raises(ValueError, match="keys has the wrong shape"):
        decoder.evaluate_all(keys[:, 1:].copy())


@pytest.mark.parametrize("objective", SIMULATED)
@pytest.mark.parametrize("seed", range(20))
def test_reconciled_keys_are_no_worse_and_nearer_to_the_preferred_ones(objective, seed):
    rng = np.random.default_rng(seed)
    encoding = KeyEncoding(draw_problem(rng, objective), transfer_keys=bool(seed % 2))
    keys, preferred = (random_keys(rng, encoding) for _ in range(2))
    found, fitness, evaluations = encoding.decoder.reconcile(keys, preferred, seed)
    assert fitness == encoding.decoder.evaluate(found) <= encoding.decoder.evaluate(keys)
    assert ((found == keys) | (found == preferred)).all()
    assert 1 <= evaluations <= 1 + encoding.genes
    again = encoding.decoder.reconcile(keys, preferred, seed)
    assert np.array_equal(again[0], found)
    assert again[1:] == (fitness, evaluations)
    # What is left differs for a reason: once more changes hardly anything, and never for the worse.
    assert encoding.decoder.reconcile(found, preferred, seed + 1)[1] <= fitness
    same, _, spent = encoding.decoder.reconcile(keys, keys, seed)
    assert np.array_equal(same, keys)
    assert spent == 1


def test_what_does_not_count_becomes_the_preferred():
    builder, read = GraphBuilder("chain"), []
    for _ in range(6):  # it has one order, whatever the keys
        written = builder.tensor(bytes=1)
        builder.op("op", inputs=read, outputs=[written])
        read = [written]
    encoding = KeyEncoding(SchedulingProblem(builder.build()))
    keys, preferred = np.zeros(6, np.float32), np.linspace(0, 1, 6, dtype=np.float32)
    found, _, evaluations = encoding.decoder.reconcile(keys, preferred, 0)
    assert np.array_equal(found, preferred)
    assert evaluations == 6  # the keys themselves, and each of the five that differ


@pytest.mark.parametrize("seed", range(40))
def test_the_keys_of_a_placement_stand_for_it(seed):
    rng = np.random.default_rng(seed)
    problem = draw_problem(rng, Objective.STEP_TIME)
    encoding = KeyEncoding(problem)
    for _ in range(5):
        placement = random_placement(rng, problem)
        again = encoding.decode(encoding.encode(placement))
        assert np.array_equal(again.device, placement.device)
        if (
            problem.cluster.channel == "free" or len(problem.cluster) == 1
        ):  # else transfers may queue otherwise
            assert problem.evaluate(again) == problem.evaluate(
                Placement(placement.device, placement.priority)
            )


@settings(max_examples=80, deadline=None)
@given(graphs(max_ops=10).filter(lambda graph: not graph.is_variable.all()))
def test_the_keys_of_an_order_stand_for_it(graph):
    problem = SchedulingProblem(graph)
    encoding = KeyEncoding(problem)
    rng = np.random.default_rng(graph.num_ops)
    for _ in range(5):
        order = encoding.decode(random_keys(rng, encoding))
        assert np.array_equal(encoding.decode(encoding.encode(order)).op, order.op)
        assert encoding.decoder.evaluate(encoding.encode(order)) == (0.0, problem.evaluate(order).value)


def test_each_part_of_a_chromosome_says_what_it_should():
    problem = EDGE_CASES["training"]("step_time")  # two devices, two variables colocated with their updates
    encoding = KeyEncoding(problem)
    keys = np.zeros(encoding.genes, np.float32)
    affinities = keys[encoding.affinities].reshape(-1, 2)
    affinities[:, 0] = 0.5
    affinities[1, 1] = 0.7
    keys[encoding.affinities] = affinities.ravel()
    keys[encoding.priorities] = np.linspace(1, 0, len(encoding.ops))
    keys[encoding.transfers] = np.linspace(0, 1, 2 * len(encoding.transfer_tensors))
    placement = encoding.decode(keys)
    assert isinstance(placement, Placement)
    assert (placement.device == (encoding.group == 1)).all()
    assert np.array_equal(
        placement.priority[encoding.ops], np.linspace(1, 0, len(encoding.ops), dtype=np.float32)
    )
    assert placement.transfer_priority is not None
    assert placement.transfer_priority[encoding.transfer_tensors].ravel() == pytest.approx(
        np.linspace(0, 1, 2 * len(encoding.transfer_tensors))
    )
    producer, consumer, tensor = problem.graph.edges
    apart = encoding.group[producer] != encoding.group[consumer]
    assert set(encoding.transfer_tensors.tolist()) == set(tensor[apart].tolist())


def test_equal_affinities_name_the_first_device_that_is_allowed():
    problem = EDGE_CASES["colocated_and_unsupported"]("step_time")
    encoding = KeyEncoding(problem)
    placement = encoding.decode(np.full(encoding.genes, 0.5, np.float32))
    assert np.array_equal(placement.device, np.argmax(problem.allowed, axis=1))


def test_groups_share_a_device():
    problem = EDGE_CASES["no_edges"]("step_time")
    encoding = KeyEncoding(problem, "metis:2")
    assert encoding.affinities.stop == 2 * len(problem.cluster)
    rng = np.random.default_rng(0)
    for _ in range(20):
        device = encoding.decode(rng.random(encoding.genes).astype(np.float32)).device
        group = assign(problem, "metis:2")
        assert all(len(set(device[group == g].tolist())) == 1 for g in range(2))


def test_many_units_are_grouped_unless_asked_for():
    b = GraphBuilder("test")
    for _ in range(2_100):
        b.op("op", outputs=[b.tensor(bytes=1)])
    problem = PlacementProblem(b.build(), Cluster.parse("2xP100"))
    assert KeyEncoding(problem).affinities.stop == 2 * 256
    assert KeyEncoding(problem, "op").affinities.stop == 2 * 2_100


def test_a_group_that_no_device_can_run_is_refused():
    b = GraphBuilder("test")
    for banned in ("P100", "V100"):
        b.op("op", outputs=[b.tensor(bytes=1)], unsupported=(banned,), layer="same")
    problem = PlacementProblem(b.build(), Cluster.parse("1xP100+1xV100"))
    assert KeyEncoding(problem, "op").genes == 6
    with pytest.raises(InvalidProblemError, match="no device runs all ops of the group of op 0"):
        KeyEncoding(problem, "layer")


def test_transfers_have_keys_only_where_they_wait_for_each_other():
    graph = EDGE_CASES["training"]("step_time").graph
    for cluster, expected in (("2xP100", True), ("2xP100@pcie3:free", False), ("1xP100", False)):
        encoding = KeyEncoding(PlacementProblem(graph, Cluster.parse(cluster)))
        assert (len(encoding.transfer_tensors) > 0) == expected


def test_analytic_objectives_are_refused():
    with pytest.raises(InvalidProblemError, match="keys do not stand for solutions of max_load"):
        KeyEncoding(EDGE_CASES["training"]("max_load"))


# --- distributions


def test_keys_are_drawn_from_their_beta_distributions():
    pairs = [(2.0, 5.0), (0.5, 0.5), (30.0, 10.0), (1.0, 1.0)]
    drawn = distribution(pairs, 4, 0.0, "mutants")
    assert drawn is not None
    keys = _core.draw_keys(drawn, 4_000, 1).reshape(4_000, 4)
    assert (keys >= 0).all()
    assert (keys <= 1).all()
    for gene, (a, b) in enumerate(pairs):
        # 128 steps of probability approximate the distribution to within one of them.
        assert (
            stats.kstest(keys[:, gene], stats.beta(a, b).cdf).statistic < 1 / 128 + 0.0226
        )  # 1.43 / sqrt(4000)
        assert keys[:, gene].mean() == pytest.approx(a / (a + b), abs=0.02)
    assert abs(np.corrcoef(keys.T) - np.eye(4)).max() < 0.08


def test_a_uniform_share_of_the_chromosomes_is_uniform():
    drawn = distribution((1_000.0, 1_000.0), 50, 0.25, "mutants")
    assert drawn is not None
    keys = _core.draw_keys(drawn, 2_000, 3).reshape(2_000, 50)
    spread = keys.std(axis=1)
    assert ((spread < 0.05) | (spread > 0.15)).all()  # near 1/2, or all over the place
    assert (spread > 0.15).mean() == pytest.approx(0.25, abs=0.04)


def test_betas_have_the_mean_and_variance_asked_for():
    pair = betas([0.3, 0.5], [0.1, 1 / 3])
    assert stats.beta(*pair[0]).mean() == pytest.approx(0.3)
    assert stats.beta(*pair[0]).var() == pytest.approx(0.1 * 0.3 * 0.7)
    assert pair[1] == pytest.approx([1, 1])
    for mean, share in ((0.0, 0.5), (0.5, 1.0), (np.nan, 0.5)):
        with pytest.raises(InvalidProblemError, match="strictly between 0 and 1"):
            betas(mean, share)


def test_uniform_distributions_are_drawn_as_such():
    assert distribution(None, 3, 0.0, "mutants") is None
    assert distribution((1.0, 1.0), 3, 0.0, "mutants") is None


@pytest.mark.parametrize(
    ("beta", "message"),
    [
        ([(1.0, 2.0)] * 2, r"mutants has shape \(2, 2\); expected \(3, 2\)"),
        ((0.0, 1.0), "not positive and finite"),
        ((np.nan, 1.0), "not positive and finite"),
        ((np.inf, 1.0), "not positive and finite"),
        (("a", "b"), "mutants has dtype"),
        ((1.7e308, 1.7e308), "too large or too small"),
    ],
)
def test_bad_distributions_are_refused(beta, message):
    with pytest.raises(InvalidProblemError, match=message):
        distribution(beta, 3, 0.0, "mutants")


def test_bad_shares_are_refused():
    with pytest.raises(InvalidProblemError, match="uniform_share"):
        distribution((1.0, 2.0), 3, 1.5, "mutants")
    with pytest.raises(InvalidProblemError, match=r"inherit has shape \(2,\)"):
        inheritance(Proposal(inherit=[0.5, 0.5]), 3)
    with pytest.raises(InvalidProblemError, match="inherit"):
        inheritance(Proposal(inherit=[0.5, 0.5, 1.5]), 3)


def test_an_order_is_no_placement():
    encoding = KeyEncoding(SchedulingProblem(EDGE_CASES["training"]("peak_memory").graph))
    assert encoding.genes == len(encoding.ops) == 6
    assert isinstance(encoding.decode(np.zeros(6, np.float32)), Order)
