"""No feasible placement is below its bound; bounds are what they say."""

from __future__ import annotations

import numpy as np
import pytest

from opgym.errors import InvalidProblemError
from opgym.graphs import VARIABLE, Cluster, GraphBuilder
from opgym.outcome import Verdict
from opgym.problems import Objective, Pipeline, Placement, PlacementProblem

from .instances import accelerator, cpu, dag, problem
from .random_problems import random_placement, random_problem

NS_PER_MS = 1e6


@pytest.mark.parametrize("objective", list(Objective))
@pytest.mark.parametrize("seed", range(60))
def test_no_feasible_placement_is_below_the_bound(objective, seed):
    rng = np.random.default_rng([seed, 1])
    pipeline = Pipeline(int(rng.integers(1, 5))) if seed % 2 else Pipeline()
    try:
        p = random_problem(rng, objective, pipeline=pipeline)
    except InvalidProblemError:
        return  # too small a cluster: nothing to bound
    bound = p.lower_bound()
    assert bound.unit == objective.unit
    for crowded in (True, False, False):
        outcome = p.evaluate(random_placement(rng, p, crowded=crowded))
        if outcome.verdict is Verdict.OK:
            assert outcome.value >= bound.value * (1 - 1e-9)


def bound_of(*arguments, **options) -> tuple[float, str]:
    bound = problem(*arguments, **options).lower_bound()
    return bound.value, bound.name


def test_step_time_is_bounded_by_the_critical_path_or_by_work():
    chain = dag({0: [], 1: [0], 2: [1]})
    assert bound_of(chain, [accelerator()] * 4, "step_time", [3, 4, 5]) == (12, "critical path")
    wide = dag({v: [] for v in range(8)})
    assert bound_of(wide, [accelerator()] * 3, "step_time", [5] * 8) == (14, "all work over all devices")


def test_each_op_counts_on_its_fastest_allowed_device():
    chain = dag({0: [], 1: [0], 2: [1]}, unsupported={1: "accelerator"})
    p = (chain, [accelerator(), cpu()], "step_time", [3, 4, 5], [30, 40, 2])
    assert bound_of(*p) == (3 + 40 + 2, "critical path")


def test_a_colocation_group_runs_on_one_device():
    wide = dag({v: [] for v in range(8)}, groups=dict.fromkeys(range(5), "g"))
    assert bound_of(wide, [accelerator()] * 8, "step_time", [5] * 8) == (25, "largest colocation group")
    value, name = bound_of(wide, [accelerator()] * 8, "max_load", [5] * 8)
    assert (value, name) == (25 / NS_PER_MS, "largest colocation group")


def test_latency_is_bounded_by_the_critical_path():
    diamond = dag({0: [], 1: [0], 2: [0], 3: [1, 2]})
    assert bound_of(diamond, [accelerator()], "latency", [1, 20, 3, 4]) == (25 / NS_PER_MS, "critical path")


def test_devices_of_different_speed_share_the_work_at_best_prices():
    # 40 ops, one accelerator, one CPU ten times slower: at best the accelerator does 10/11 of the work.
    wide = dag({v: [] for v in range(40)})
    value, name = bound_of(wide, [accelerator(), cpu()], "max_load", [100] * 40)
    assert name == "all work over all devices"
    assert value == pytest.approx(4000 * 10 / 11 / NS_PER_MS, rel=1e-4)
    assert value <= 4000 * 10 / 11 / NS_PER_MS


def test_updates_count_once_per_step():
    graph = dag({0: [], 1: [0]}, directions={1: "update"})
    value, _ = bound_of(graph, [accelerator()], "max_load", [10, 100], pipeline=Pipeline(50))
    assert value == pytest.approx((10 + 100 / 50) / NS_PER_MS)


def test_peak_memory_is_bounded_by_the_largest_op_or_by_residents():
    graph = dag({0: [], 1: [0]}, sizes=[10, 20], parameters={0: 5, 1: 70})
    assert bound_of(graph, [accelerator()] * 2, "peak_memory", [1, 1]) == (100, "largest op footprint")
    many = dag({v: [] for v in range(6)}, sizes=[1] * 6, parameters=dict.fromkeys(range(6), 50))
    assert bound_of(many, [accelerator()] * 2, "peak_memory", [1] * 6) == (
        150,
        "resident bytes over all devices",
    )
    assert bound_of(many, [accelerator()], "peak_memory", [1] * 6) == (
        301,
        "resident bytes and the largest op footprint",
    )


def test_footprints_do_not_count_a_buffer_twice():
    b = GraphBuilder("test", in_place=True)
    weight, x, new = b.tensor(bytes=100), b.tensor(bytes=100), b.tensor(bytes=100)
    home = b.op(VARIABLE, outputs=[weight], workspace_bytes=77)
    b.op("relu", inputs=[weight], outputs=[x], elementwise=True)
    b.op("update", inputs=[weight, x], outputs=[new], update_of=home, direction="update")
    b.op("read", inputs=[new], outputs=[])
    p = problem(b.build(), [accelerator()], "peak_memory", [0, 1, 1, 1])
    assert p.footprint_bytes.tolist() == [100, 100, 200, 0]
    outcome = p.evaluate(Placement(np.zeros(4, int)))
    assert outcome.value == 200 >= p.lower_bound().value


def test_bounds_of_large_graphs_exceed_the_largest_op():
    b = GraphBuilder("test")
    rng = np.random.default_rng(0)
    outputs: list[int] = []
    for v in range(50_000):
        reads = [outputs[i] for i in {int(i) for i in rng.integers(max(0, v - 9), v, 2)}] if v else []
        outputs.append(b.tensor(bytes=1000))
        b.op("op", inputs=reads, outputs=outputs[-1:], flops=10**8)
    graph = b.build()
    for objective in Objective:
        p = PlacementProblem(graph, Cluster.parse("1xCPU+8xP100"), objective)
        assert p.cost_ns.shape == (50_000, 9)
        assert p.footprint_bytes.min() >= 1000
        fastest_ms = p.cost_ns.min(axis=1).max() / 1e6
        largest = {"step_time": fastest_ms * 1e6, "peak_memory": int(p.footprint_bytes.max())}
        assert p.lower_bound().value >= largest.get(objective.value, fastest_ms)
