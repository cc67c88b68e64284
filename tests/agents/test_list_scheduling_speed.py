"""m-ETF takes seconds, not hours, on graphs of 50,000 ops."""

from __future__ import annotations

import time

import numpy as np
import pytest

from opgym import agents
from opgym.graphs import Cluster, Graph, GraphBuilder
from opgym.problems import PlacementProblem

OPS = 50_000
LIMIT_SECONDS = 10.0


def layers(width: int, seed: int = 0) -> Graph:
    """Ops that read up to three of those made recently, so that about ``width`` of them are ready at a time."""
    rng = np.random.default_rng(seed)
    b = GraphBuilder("test")
    made: list[int] = []
    sizes, flops = rng.integers(10**3, 10**6, OPS).tolist(), rng.integers(10**6, 10**9, OPS).tolist()
    back = rng.integers(1, 2 * width, (OPS, 3)).tolist()
    for v in range(OPS):
        output = b.tensor(bytes=sizes[v])
        b.op("op", inputs={made[v - k] for k in back[v] if k <= v}, outputs=[output], flops=flops[v])
        made.append(output)
    return b.build()


def fan(branches: int) -> Graph:
    """One op that feeds every other one its own tensor: all wait for one port."""
    rng = np.random.default_rng(0)
    b = GraphBuilder("test")
    parts = [b.tensor(bytes=size) for size in rng.integers(10**3, 10**5, branches).tolist()]
    b.op("Split", outputs=parts, flops=10**6)
    for part, flops in zip(parts, rng.integers(10**6, 10**9, branches).tolist(), strict=True):
        b.op("op", inputs=[part], outputs=[b.tensor(bytes=10)], flops=flops)
    return b.build()


@pytest.mark.parametrize("width", [20, 3_000])
def test_m_etf_places_50_000_ops_on_8_devices_within_seconds(width):
    problem = PlacementProblem(layers(width), Cluster.parse("8xP100"))
    begin = time.process_time()
    result = agents.make("m-etf").solve(problem)
    assert time.process_time() - begin < LIMIT_SECONDS
    assert result.outcome.ok
    assert len(set(result.solution.device.tolist())) == 8


def test_a_plan_for_20_000_ops_behind_one_port_takes_seconds():
    from opgym import _core
    from opgym.agents.heuristics.list_planning import mean_upward_rank
    from opgym.problems.grouping import colocation_units

    problem = PlacementProblem(fan(20_000), Cluster.parse("8xP100"))
    unit, rank = colocation_units(problem.graph), mean_upward_rank(problem)
    begin = time.process_time()
    for plan in (_core.earliest_task_first, _core.highest_level_first, _core.earliest_finish_with_insertion):
        plan(problem.simulator.core, problem.allowed, unit, problem.cluster.capacity_bytes, rank)
    assert time.process_time() - begin < LIMIT_SECONDS
