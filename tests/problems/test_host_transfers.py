"""Times between accelerators and the host."""

from __future__ import annotations

from fractions import Fraction
from math import ceil

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from opgym.graphs import Cluster, Link
from opgym.problems.host_transfers import host_transfer_ns, transfer_ns

from .instances import accelerator, cpu, dag


@given(st.lists(st.integers(0, 2**62), min_size=1, max_size=5), st.integers(0, 10**9), st.integers(1, 10**13))
@example([576_460_752_304], 0, 125)  # just above the most, and 64 bits still hold the product
@example([2**63 // 10**9], 10**9, 1)  # the product is within 64 bits, and the sum is not
def test_transfer_time_is_exact(sizes, latency, rate):
    times = transfer_ns(np.array(sizes, np.int64), latency, rate)
    for size, time in zip(sizes, times.tolist(), strict=True):
        assert time == min(2**62, latency + ceil(Fraction(size * 10**9, rate)))


def test_the_first_cpu_is_the_host():
    graph = dag({0: [], 1: [0]}, sizes=[100, 7])
    link = np.array([[1, 2, 3], [4, 1, 5], [6, 7, 1]])
    cluster = Cluster((accelerator(), cpu(), cpu()), link, np.full((3, 3), 10**9))
    to_device, from_device = host_transfer_ns(graph, cluster)
    assert to_device.tolist() == [[104, 0, 0], [11, 0, 0]]  # over the link from device 1
    assert from_device.tolist() == [[102, 0, 0], [9, 0, 0]]  # over the link to device 1


def test_without_a_cpu_the_host_is_as_far_as_the_slowest_peer():
    graph = dag({0: [], 1: [0]}, sizes=[100, 0])
    latency = np.array([[0, 1, 5], [2, 0, 2], [3, 4, 0]])
    rate = np.array([[1, 10**9, 10**9], [10**9, 1, 10**8], [10**9, 10**9, 1]])
    to_device, from_device = host_transfer_ns(graph, Cluster((accelerator(),) * 3, latency, rate))
    assert to_device.tolist() == [[103, 104, 1005], [3, 4, 5]]
    assert from_device.tolist() == [[105, 1002, 104], [5, 2, 4]]


@pytest.mark.parametrize("devices", [[accelerator()], [cpu(), cpu()]])
def test_one_accelerator_or_cpus_alone_move_nothing(devices):
    graph = dag({0: []}, sizes=[100])
    to_device, from_device = host_transfer_ns(graph, Cluster.uniform(devices, Link("x", 10**9, 3)))
    assert not to_device.any()
    assert not from_device.any()


def test_free_transfers_cost_nothing():
    cluster = Cluster((accelerator(), cpu()), np.zeros((2, 2), int), np.zeros((2, 2), int), "free")
    assert not np.any(host_transfer_ns(dag({0: []}, sizes=[100]), cluster))
