"""The C++ core equals the plain Python reference in every figure, on random instances.

``OPGYM_EXAMPLES=20000 pytest tests/core/test_equals_reference.py`` looks longer.
"""

import os

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from opgym import _core
from opgym.benchmark import reference_simulator as reference
from opgym.graphs import Simulator
from opgym.graphs.core_graph import core_graph
from opgym.graphs.order_peak import peak_of_order, peak_of_orders

from ..reference.case import cluster, play_core, play_reference
from ..reference.strategies import Instance, graphs, instances, orders, placements, priorities

EXAMPLES = int(os.environ.get("OPGYM_EXAMPLES", 300))


def examples(share: float):
    """Settings for a share of the examples; the same ones in every run, unless their number is given."""
    return settings(
        max_examples=max(1, int(EXAMPLES * share)),
        deadline=None,
        derandomize="OPGYM_EXAMPLES" not in os.environ,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )


def simulator_of(instance: Instance) -> Simulator:
    return Simulator(instance.graph, instance.cluster, instance.cost_ns)


@examples(1.0)
@given(instances())
def test_every_figure_and_the_whole_timeline(instance):
    assert play_core(*instance.arguments) == play_reference(*instance.arguments)


@examples(0.15)
@given(instances(max_ops=60, max_devices=5))
def test_larger_instances(instance):
    assert play_core(*instance.arguments) == play_reference(*instance.arguments)


@examples(0.3)
@given(instances())
def test_without_a_timeline_the_figures_are_the_same(instance):
    expected = play_reference(*instance.arguments)
    run = simulator_of(instance).run(
        instance.device, instance.priority, transfer_priority=instance.transfer_priority
    )
    assert run.timeline is None
    assert run.makespan_ns == expected.makespan_ns
    assert run.dynamic_peak_bytes.tolist() == expected.dynamic_peak_bytes
    assert run.resident_bytes.tolist() == expected.resident_bytes
    assert run.busy_ns.tolist() == expected.busy_ns
    assert run.transfer_ns.tolist() == expected.transfer_ns


@examples(0.3)
@given(instances())
def test_upward_rank(instance):
    expected = reference.upward_rank(instance.graph, instance.cluster, instance.cost_ns, instance.device)
    assert simulator_of(instance).upward_rank(instance.device).tolist() == expected


@st.composite
def batches(draw):
    instance = draw(instances())
    graph, devices = instance.graph, len(instance.cluster)
    placed = [draw(placements(graph, devices)) for _ in range(draw(st.integers(1, 7)))]
    rows = [draw(priorities(graph.num_ops)) for _ in placed]
    per_candidate = [row for row in rows if row is not None]
    return instance, np.stack(placed), per_candidate


@examples(0.3)
@given(batches())
def test_a_batch_equals_single_runs_on_any_number_of_threads(batch):
    instance, placed, per_candidate = batch
    simulator = simulator_of(instance)
    choices = [None, instance.priority]
    if len(per_candidate) == len(placed):
        choices.append(np.stack([row.astype(np.float64) for row in per_candidate]))
    for priority in choices:
        for threads in (1, 4):
            results = simulator.run_batch(placed, priority, threads=threads)
            for i, device in enumerate(placed):
                own = priority[i] if priority is not None and priority.ndim == 2 else priority
                expected = play_reference(instance.graph, instance.cluster, instance.cost_ns, device, own)
                assert results.makespan_ns[i] == expected.makespan_ns
                assert results.dynamic_peak_bytes[i].tolist() == expected.dynamic_peak_bytes
                assert results.resident_bytes[i].tolist() == expected.resident_bytes
            for i, run in enumerate(simulator.run_each(placed, priority, threads=threads)):
                own = priority[i] if priority is not None and priority.ndim == 2 else priority
                one = simulator.run(placed[i], own)
                assert run.makespan_ns == one.makespan_ns == results.makespan_ns[i]
                for name in ("dynamic_peak_bytes", "resident_bytes", "busy_ns", "transfer_ns"):
                    assert getattr(run, name).tolist() == getattr(one, name).tolist(), name


@examples(0.2)
@given(batches())
def test_bound_buffers_give_what_is_in_them_now(batch):
    instance, placed, per_candidate = batch
    device = placed[0].copy()
    priority = per_candidate[0].copy() if per_candidate else None
    bound = simulator_of(instance).bind(device, priority)
    for i, row in enumerate(placed):
        device[:] = row
        if priority is not None:
            priority[:] = per_candidate[i % len(per_candidate)]
        expected = play_reference(instance.graph, instance.cluster, instance.cost_ns, device, priority)
        assert bound.run() == expected.makespan_ns
        assert bound.dynamic_peak_bytes.tolist() == expected.dynamic_peak_bytes
        assert bound.resident_bytes.tolist() == expected.resident_bytes


@st.composite
def graphs_with_orders(draw, max_ops=20):
    graph = draw(graphs(max_ops))
    return graph, draw(orders(graph))


@examples(0.5)
@given(graphs_with_orders())
def test_peak_of_an_order(instance):
    graph, order = instance
    expected = reference.peak_of_order(graph, order)
    assert peak_of_order(graph, order) == expected


@examples(0.2)
@given(graphs_with_orders(), st.sampled_from([1, 4]))
def test_peaks_of_many_orders(instance, threads):
    graph, order = instance
    stacked = np.stack([order] * 5)
    assert peak_of_orders(graph, stacked, threads=threads).tolist() == [peak_of_order(graph, order)] * 5


@examples(0.3)
@given(graphs_with_orders())
def test_one_device_in_the_order_of_the_priorities_has_the_peak_of_the_order(instance):
    graph, order = instance
    priority = np.zeros(graph.num_ops)
    priority[order] = -np.arange(len(order))
    case = Instance(
        graph,
        cluster(1),
        np.ones((graph.num_ops, 1), np.int64),
        np.zeros(graph.num_ops, np.uint8),
        priority,
        None,
    )
    assert play_core(*case.arguments).dynamic_peak_bytes == [peak_of_order(graph, order)]


@examples(0.4)
@given(graphs_with_orders(), st.randoms(use_true_random=False))
def test_incremental_peak_equals_the_full_one_after_any_moves(instance, random):
    graph, order = instance
    incremental = _core.IncrementalPeak(core_graph(graph), order)
    current = order.tolist()
    assert incremental.peak == reference.peak_of_order(graph, order)
    for _ in range(12):
        i, j = random.randrange(len(current)), random.randrange(len(current))
        moved = current.copy()
        moved.insert(j, moved.pop(i))
        if incremental.move(i, j):
            current = moved
        else:
            with pytest.raises(ValueError, match="before"):
                reference.peak_of_order(graph, moved)
        assert incremental.order.tolist() == current
        assert incremental.peak == reference.peak_of_order(graph, current)
