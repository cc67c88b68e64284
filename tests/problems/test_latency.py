"""Single-sample latency: pieces, their transfers, their order."""

from __future__ import annotations

import numpy as np

from opgym.problems import Placement
from opgym.problems.checker import check

from .instances import accelerator, cpu, dag, problem

NS_PER_MS = 1e6


def latency(p, device):
    """The outcome of a placement, which the checker must share."""
    placement = Placement(np.array(device))
    outcome = p.evaluate(placement)
    assert check(p, placement).value == outcome.value
    return outcome


def test_one_accelerator_is_one_piece():
    p = problem(dag({0: [], 1: [0], 2: [0]}), [accelerator()], "latency", [1, 2, 3])
    outcome = latency(p, [0, 0, 0])
    assert outcome.value == 6 / NS_PER_MS  # an accelerator runs its ops one after the other
    assert outcome.details["pieces"] == 1


def test_cpus_run_ops_side_by_side_and_pay_no_transfers():
    p = problem(dag({0: [], 1: [0], 2: [0]}), [cpu()], "latency", [1, 2, 3])
    assert latency(p, [0, 0, 0]).value == (10 + 30) / NS_PER_MS


def test_a_piece_brings_in_computes_writes_out():
    graph = dag({0: [], 1: [0], 2: [1]}, sizes=[100, 10, 1])
    p = problem(graph, [accelerator(), cpu()], "latency", [1, 2, 3])
    assert latency(p, [1, 0, 1]).value == (10 + (100 + 2 + 10) + 30) / NS_PER_MS
    assert latency(p, [0, 0, 0]).value == 6 / NS_PER_MS


def test_a_tensor_for_several_pieces_is_written_out_once_and_brought_in_by_each():
    graph = dag({0: [], 1: [0], 2: [0], 3: [0]}, sizes=[100, 1, 1, 1])
    p = problem(graph, [accelerator()] * 3, "latency", [1, 2, 3, 4])
    # Device 0: 1 + 100 out. Device 1: 100 in + 2 + 3. Device 2: 100 in + 4.
    assert latency(p, [0, 1, 1, 2]).value == (101 + 105) / NS_PER_MS


def test_leaving_and_coming_back_starts_a_new_piece():
    graph = dag({0: [], 1: [0], 2: [1], 3: [2]}, sizes=[10, 20, 30, 40])
    p = problem(graph, [accelerator()] * 2, "latency", [1, 1, 1, 1])
    outcome = latency(p, [0, 1, 0, 1])
    assert outcome.details["pieces"] == 4
    assert outcome.value == ((1 + 10) + (10 + 1 + 20) + (20 + 1 + 30) + (30 + 1)) / NS_PER_MS


def test_the_longest_detour_decides_the_piece():
    # Op 3 reads op 0 directly and by way of device 1: it belongs to the second piece, and fetches op 0's output anew.
    graph = dag({0: [], 1: [0], 2: [0], 3: [0, 1]}, sizes=[10, 20, 30, 40])
    p = problem(graph, [accelerator()] * 2, "latency", [1, 1, 1, 1])
    outcome = latency(p, [0, 1, 0, 0])
    assert outcome.details["pieces"] == 3
    first = 1 + 1 + 10  # ops 0 and 2, and the way out of op 0's output
    detour = 10 + 1 + 20
    assert outcome.value == (first + detour + (10 + 20 + 1)) / NS_PER_MS


def test_pieces_that_wait_for_each_other_are_cut():
    # 0 on A -> 1 on B and 2 on B -> 3 on A: whole pieces would wait in a circle.
    graph = dag({0: [], 1: [0], 2: [], 3: [2]}, sizes=[10, 10, 20, 20])
    p = problem(graph, [accelerator()] * 2, "latency", [1, 2, 3, 4])
    outcome = latency(p, [0, 1, 1, 0])
    assert outcome.details["pieces"] == 4
    # A runs op 0 (1 + 10 out), then op 3 (20 in + 4) when op 2 is there; B runs op 2 (3 + 20 out) and op 1
    # (10 in + 2) in the order of the pieces: 0, 1, 2, 3.
    a0, b1 = 11, 11 + 12
    b2 = b1 + 23
    assert outcome.value == (b2 + 24) / NS_PER_MS
    assert a0 < b1


def test_pieces_of_an_accelerator_do_not_overlap_after_a_cut():
    rng = np.random.default_rng(5)
    graph = dag({v: sorted({int(rng.integers(0, v))} if v else set()) for v in range(30)}, sizes=[1] * 30)
    p = problem(graph, [accelerator()] * 2, "latency", [10] * 30)
    for _ in range(50):
        device = rng.integers(0, 2, 30)
        busiest = max(np.bincount(device, minlength=2)) * 10
        assert latency(p, device).value >= busiest / NS_PER_MS


def test_deep_graphs_need_no_recursion():
    ops = 5_000
    graph = dag({v: [v - 1] if v else [] for v in range(ops)}, sizes=[0] * ops)
    p = problem(graph, [accelerator(), cpu()], "latency", [1] * ops)
    assert p.evaluate(Placement(np.zeros(ops, int))).value == ops / NS_PER_MS
    assert p.evaluate(Placement(np.arange(ops) % 2)).value == (ops // 2 + 10 * (ops // 2)) / NS_PER_MS
