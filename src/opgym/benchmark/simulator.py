"""How fast the simulator is: ratios to a topological sort of the same graph, measured in the same moments.

Machines are shared and differ, so nanoseconds are for orientation and ratios are what is held to bars. The bars are
those that the simulator was designed to; ``docs/simulator.md`` says what is simulated.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np

from .. import _core
from ..datasets import load
from ..graphs import CHANNELS, Cluster, RooflineCost, Simulator
from .reference_simulator import simulate as reference_simulate

#: Time spent on one case; the whole takes under a minute.
SECONDS_PER_CASE = 1.0
SEND, PORT = CHANNELS.index("send"), CHANNELS.index("port")


@dataclass(frozen=True)
class Row:
    """One measured case.

    Attributes:
        case: What was measured.
        ops: Ops of the graph.
        devices: Devices of the cluster; 0 where none take part.
        ns_per_op: Thread CPU time per op, the 20th percentile of many short units (of calls: per call).
        ratio_to_topological_sort: ``ns_per_op`` / that of a first-in-first-out topological sort of the same graph.
        ratio_to_reference: Time of the plain Python reference / ours, for list scheduling with random placement.
        bar: The largest ratio to the sort (for the reference: the smallest ratio; for the large evaluation: the most
            milliseconds) that the design allows.
        within_bar: Whether it holds; ``None`` where there is no bar.
    """

    case: str
    ops: int
    devices: int
    ns_per_op: float
    ratio_to_topological_sort: float | None = None
    ratio_to_reference: float | None = None
    bar: float | None = None
    within_bar: bool | None = None


def run(progress: Callable[[str], None] | None = None) -> list[dict[str, Any]]:
    """Measures every case.

    Args:
        progress: Told the name of each case before it is measured.

    Returns:
        One dictionary per case, with the fields of :class:`Row`.
    """
    rows = []
    for name, measure in _cases():
        if progress is not None:
            progress(name)
        rows.append(asdict(measure(name)))
    return rows


def _cases() -> Iterator[tuple[str, Callable[[str], Row]]]:
    for ops in (1_000, 10_000):
        case = _Sized(ops)
        yield f"stream the graph once, {ops:,} ops", case.stream
        yield f"rank float32 priorities, {ops:,} ops", partial(case.timed, "rank", 0, 2.0)
        yield f"peak of an order, {ops:,} ops", partial(case.timed, "peak_of_orders", 1, 1.5, batch=False)
        yield f"peak of orders, batch, {ops:,} ops", partial(case.timed, "peak_of_orders", 1, 1.0, batch=True)
        yield f"list schedule and peak, 1 device, {ops:,} ops", case.simulation(1, SEND, False, 14.0)
        yield f"list schedule, 2 devices, clustered, {ops:,} ops", case.simulation(2, SEND, True, 25.0)
        yield f"list schedule, 4 devices, clustered, {ops:,} ops", case.simulation(4, SEND, True, 30.0)
        yield f"list schedule, 4 devices, random, {ops:,} ops", case.simulation(4, SEND, False, 50.0)
        yield f"list schedule, 8 devices, random, {ops:,} ops", case.simulation(8, SEND, False, 65.0)
        yield f"list schedule, 4 devices, random, port, {ops:,} ops", case.simulation(4, PORT, False, 65.0)
        yield f"list schedule, 8 devices, random, port, {ops:,} ops", case.simulation(8, PORT, False, 84.5)
    large = _Sized(100_000)
    yield "stream the graph once, 100,000 ops", large.stream
    yield "list schedule, 4 devices, clustered, 100,000 ops", large.simulation(4, SEND, True, 10.0)
    yield "list schedule, 4 devices, random, 100,000 ops", large.simulation(4, SEND, False, 17.0)
    yield "one evaluation, 8 devices, random, port, 50,000 ops", _one_large_evaluation
    yield "call from Python, two arrays", partial(_call, bound=False)
    yield "call from Python, bound buffers", partial(_call, bound=True)
    for devices in (4, 8):
        yield f"against the Python reference, {devices} devices, random", partial(_reference, devices)


class _Sized:
    """Cases on a generated graph of one size, made when the first of them is measured."""

    def __init__(self, ops: int) -> None:
        self.ops = ops
        self._benchmark: _core.Benchmark | None = None

    @property
    def benchmark(self) -> _core.Benchmark:
        if self._benchmark is None:
            self._benchmark = _core.Benchmark(self.ops, SECONDS_PER_CASE)
        return self._benchmark

    def stream(self, name: str) -> Row:
        """The check of the yardstick: the sort must be within 2.5 times of reading the graph once."""
        stream_ns, sort_ns = self.benchmark.stream()
        return Row(
            name, self.ops, 0, stream_ns, stream_ns / sort_ns, bar=2.5, within_bar=sort_ns <= 2.5 * stream_ns
        )

    def timed(self, method: str, devices: int, bar: float, name: str, **arguments: Any) -> Row:
        return self._row(name, devices, bar, getattr(self.benchmark, method)(**arguments))

    def simulation(self, devices: int, channel: int, clustered: bool, bar: float) -> Callable[[str], Row]:
        return lambda name: self._row(
            name, devices, bar, self.benchmark.simulate(devices, channel, clustered)
        )

    def _row(self, name: str, devices: int, bar: float, ns_per_op: tuple[float, float]) -> Row:
        ns, sort_ns = ns_per_op
        return Row(name, self.ops, devices, ns, ns / sort_ns, bar=bar, within_bar=ns <= bar * sort_ns)


def _one_large_evaluation(name: str) -> Row:
    ns, sort_ns = _core.Benchmark(50_000, SECONDS_PER_CASE).simulate(8, PORT, clustered=False)
    return Row(name, 50_000, 8, ns, ns / sort_ns, bar=20.0, within_bar=ns * 50_000 <= 20e6)


def _call(name: str, *, bound: bool) -> Row:
    """What a call costs beside the run, on a graph with a single op."""
    simulator = Simulator(load("synthetic/layered?n=1&seed=0"), Cluster.parse("2xP100"))
    device, priority = np.zeros(1, np.uint8), np.zeros(1, np.float32)
    call = (
        simulator.bind(device, priority).run
        if bound
        else partial(simulator.core.run, device, priority, None, False)
    )
    return Row(name, 1, 2, _quantile_ns(call, repeats=2_000))


def _reference(devices: int, name: str) -> Row:
    graph = load("synthetic/layered?n=1000&seed=0")
    cluster = Cluster.parse(f"{devices}xP100@pcie3:send")
    cost_ns = RooflineCost().cost_ns(graph, cluster)
    simulator = Simulator(graph, cluster, cost_ns)
    rng = np.random.default_rng(0)
    device = rng.integers(0, devices, (200, graph.num_ops)).astype(np.uint8)
    priority = rng.random((200, graph.num_ops)).astype(np.float32)
    ours_ns = _quantile_ns(lambda: simulator.run_batch(device, priority)) / len(device)
    candidates = iter(range(len(device)))

    def reference() -> object:
        i = next(candidates)
        return reference_simulate(graph, cluster, cost_ns, device[i], priority[i])

    ratio = _quantile_ns(reference, units=20) / ours_ns
    return Row(
        name, graph.num_ops, devices, ours_ns / graph.num_ops, None, ratio, bar=30.0, within_bar=ratio >= 30.0
    )


def _quantile_ns(call: Callable[[], object], *, repeats: int = 1, units: int = 40) -> float:
    """The 20th percentile of the thread CPU time of a call, in ns."""
    call()
    times = []
    for _ in range(units):
        begin = time.thread_time_ns()
        for _ in range(repeats):
            call()
        times.append((time.thread_time_ns() - begin) / repeats)
    return float(np.percentile(times, 20))
