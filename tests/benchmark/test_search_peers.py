"""The packages of ``opgym benchmark search``, around our evaluation."""

import numpy as np
import pytest

from opgym.benchmark.search_peers import (
    KeyDecoder,
    brkga_mp_ipr,
    pymoo_brkga,
    simanneal_orders,
    simanneal_pairs,
)
from opgym.datasets import read
from opgym.graphs import Cluster
from opgym.problems import Objective, Order, Placement, PlacementProblem, SchedulingProblem

GRAPH = "synthetic/ws?n=30&seed=5"


def _problem(devices):
    imported = read(GRAPH)
    return PlacementProblem(
        imported.graph, Cluster.parse(f"{devices}xREGAL"), Objective.PEAK_MEMORY, imported.costs
    )


@pytest.mark.parametrize("devices", [1, 2, 3])
def test_the_decoder_is_the_evaluation_of_the_problem(devices):
    problem = _problem(devices)
    decode = KeyDecoder(problem)
    rng = np.random.default_rng(0)
    values = set()
    for _ in range(20):
        keys = rng.random(decode.keys)
        affinity = keys[: decode.affinities].reshape(30, -1)
        device = affinity.argmax(axis=1) if devices > 1 else np.zeros(30, int)
        value = problem.evaluate(Placement(device, keys[decode.affinities :].astype(np.float32))).value
        assert decode(keys) == value
        values.add(value)
    assert len(values) > 10
    assert decode.keys == (30 if devices == 1 else 30 * (devices + 1))


def test_one_device_is_the_scheduling_problem():
    problem = SchedulingProblem(read(GRAPH).graph)
    order = np.arange(30)
    assert KeyDecoder(_problem(1))(1 - order / 30) == problem.evaluate(Order(order)).value


@pytest.mark.parametrize(("peer", "package"), [(brkga_mp_ipr, "brkga_mp_ipr"), (pymoo_brkga, "pymoo")])
def test_a_peer_spends_what_it_says_and_finds_more_than_chance(peer, package):
    pytest.importorskip(package)
    problem = _problem(2)
    calls = []

    class Counted(KeyDecoder):
        def __call__(self, keys):
            calls.append(super().__call__(keys))
            return calls[-1]

    evaluations, value = peer(Counted(problem), 500, 0)
    assert evaluations == len(calls) == 500
    assert value == min(calls) < min(calls[:100])
    assert value >= problem.lower_bound().value


def test_simanneal_improves_a_legal_order_and_spends_what_it_says():
    pytest.importorskip("simanneal")
    problem = SchedulingProblem(read(GRAPH).graph)
    start = problem.ops
    spent, value = simanneal_orders(problem.graph, start, 3_000, 0.02, 0)
    assert spent == 3_001
    assert problem.lower_bound().value <= value < problem.evaluate(Order(start)).value
    np.testing.assert_array_equal(start, np.arange(30))  # the caller's order is untouched


def test_simanneal_improves_pairs_and_spends_what_it_says():
    pytest.importorskip("simanneal")
    decode = KeyDecoder(_problem(2))
    start = decode(np.random.default_rng(0).random(decode.keys))
    spent, value = simanneal_pairs(decode, 2_000, 0.02, 0)
    assert spent == 2_001
    assert _problem(2).lower_bound().value <= value < start
