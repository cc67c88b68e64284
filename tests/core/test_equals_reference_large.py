"""The C++ core equals the reference where only size leads: many ops, devices, consumers of one tensor.

Nothing is shrunk here, so examples are cheap: ``OPGYM_EXAMPLES=20000 pytest -k many_small`` takes minutes.
"""

import os
from dataclasses import replace

import numpy as np
import pytest

from opgym import _core
from opgym.benchmark import reference_simulator as reference
from opgym.graphs import Simulator
from opgym.graphs.core_graph import core_graph
from opgym.graphs.order_peak import peak_of_order, peak_of_orders

from ..reference.case import cluster, play_core, play_reference
from ..reference.large import large_graph, large_instance
from ..reference.strategies import Instance

CHANNELS = ("port", "send", "link", "free")


def assert_equal(instance: Instance) -> None:
    """Every figure, with and without a timeline, in a batch and by bound buffers."""
    expected = play_reference(*instance.arguments)
    assert play_core(*instance.arguments) == expected
    simulator = Simulator(instance.graph, instance.cluster, instance.cost_ns)
    plain = simulator.run(instance.device, instance.priority, transfer_priority=instance.transfer_priority)
    assert (plain.makespan_ns, plain.dynamic_peak_bytes.tolist(), plain.busy_ns.tolist()) == (
        expected.makespan_ns,
        expected.dynamic_peak_bytes,
        expected.busy_ns,
    )
    if instance.transfer_priority is None:
        # Candidates differ, so that what one leaves behind would show in the next.
        other = replace(instance, device=np.roll(instance.device, 1))
        runs = [expected, play_reference(*other.arguments), expected]
        placed = np.stack([instance.device, other.device, instance.device])
        for threads in (1, 2):
            batch = simulator.run_batch(placed, instance.priority, threads=threads)
            assert batch.makespan_ns.tolist() == [run.makespan_ns for run in runs]
            assert batch.dynamic_peak_bytes.tolist() == [run.dynamic_peak_bytes for run in runs]
            assert batch.resident_bytes.tolist() == [run.resident_bytes for run in runs]
        bound = simulator.bind(instance.device, instance.priority)
        assert bound.run() == expected.makespan_ns
        assert bound.dynamic_peak_bytes.tolist() == expected.dynamic_peak_bytes
        assert bound.resident_bytes.tolist() == expected.resident_bytes


def test_many_small_instances():
    for seed in range(int(os.environ.get("OPGYM_EXAMPLES", 300))):
        rng = np.random.default_rng(seed)
        instance = large_instance(
            rng,
            int(rng.integers(1, 45)),
            int(rng.integers(1, 6)),
            str(rng.choice(CHANNELS)),
            placement=str(rng.choice(["random", "blocks"])),
            priority=str(rng.choice(["none", "float32", "float64", "ties"])),
            fan_out=int(rng.choice([0, 0, 10])),
        )
        try:
            assert_equal(instance)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {instance}") from error


@pytest.mark.parametrize("channel", CHANNELS)
@pytest.mark.parametrize("devices", [1, 2, 3, 4, 6, 7, 8, 9, 12, 16, 17, 33, 64])
def test_any_number_of_devices(devices, channel):
    rng = np.random.default_rng(devices)
    assert_equal(large_instance(rng, 250, devices, channel, priority="ties"))


@pytest.mark.parametrize("priority", ["none", "float32", "float64", "ties"])
@pytest.mark.parametrize("channel", CHANNELS)
@pytest.mark.parametrize(("placement", "devices"), [("random", 4), ("blocks", 4), ("random", 1)])
def test_a_thousand_ops(placement, devices, channel, priority):
    rng = np.random.default_rng(len(priority))
    assert_equal(large_instance(rng, 1100, devices, channel, placement=placement, priority=priority))


@pytest.mark.parametrize("channel", CHANNELS)
def test_a_tensor_with_hundreds_of_consumers(channel):
    rng = np.random.default_rng(3)
    assert_equal(large_instance(rng, 900, 5, channel, fan_out=700))


@pytest.mark.parametrize(("ops", "devices", "channel"), [(6000, 8, "port"), (6000, 2, "send")])
def test_more_than_4096_ops(ops, devices, channel):
    assert_equal(large_instance(np.random.default_rng(ops), ops, devices, channel))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ops", "devices", "channel", "placement", "fan_out"),
    [
        (40_000, 4, "port", "random", 0),
        (40_000, 4, "link", "random", 0),
        (70_000, 4, "send", "blocks", 0),
        (70_000, 8, "port", "random", 69_000),
        (70_000, 1, "port", "random", 69_000),
        (70_000, 3, "free", "random", 0),
        (300_000, 2, "port", "blocks", 0),
    ],
)
def test_very_many_ops_and_consumers(ops, devices, channel, placement, fan_out):
    rng = np.random.default_rng(ops)
    assert_equal(large_instance(rng, ops, devices, channel, placement=placement, fan_out=fan_out))


@pytest.mark.parametrize("scale", [2**31 - 1, 2**31, 2**32 + 1, 2**40])
@pytest.mark.parametrize("channel", CHANNELS)
def test_times_and_sizes_beyond_32_bits(scale, channel):
    rng = np.random.default_rng(7)
    small = large_instance(rng, 300, 4, channel)
    assert_equal(replace(small, cost_ns=small.cost_ns * np.int64(scale)))


@pytest.mark.parametrize("ops", [64, 65, 4097, 12_000])
def test_peaks_of_orders(ops):
    rng = np.random.default_rng(ops)
    graph = large_graph(rng, ops)
    orders = []
    for _ in range(3):
        # A legal order other than the index: the run of one device under random priorities.
        instance = Instance(graph, cluster(1), np.ones((ops, 1), np.int64), np.zeros(ops, np.uint8),
                            rng.random(ops), None)  # fmt: skip
        run = play_core(*instance.arguments)
        start = np.array(run.op_start_ns)
        orders.append(np.argsort(start, kind="stable")[np.count_nonzero(start < 0) :])
    expected = [reference.peak_of_order(graph, order) for order in orders]
    assert [peak_of_order(graph, order) for order in orders] == expected
    assert peak_of_orders(graph, np.stack(orders), threads=2).tolist() == expected


@pytest.mark.parametrize("ops", [300, 5000])
def test_incremental_peak_after_many_moves(ops):
    rng = np.random.default_rng(ops)
    graph = large_graph(rng, ops)
    order = np.flatnonzero(~graph.is_variable).astype(np.int32)
    incremental = _core.IncrementalPeak(core_graph(graph), order)
    current = order.tolist()
    moves = legal = 0
    while legal < 150:
        moves += 1
        i = int(rng.integers(len(current)))
        j = int(np.clip(i + rng.integers(-40, 41), 0, len(current) - 1))
        if incremental.move(i, j):
            current.insert(j, current.pop(i))
            legal += 1
            if legal % 10 == 0:
                assert incremental.order.tolist() == current
                assert incremental.peak == reference.peak_of_order(graph, current)
    assert legal < moves  # illegal ones were refused on the way
