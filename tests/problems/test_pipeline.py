"""Max-load: loads, steps of micro-batches, memory of stages."""

from __future__ import annotations

import numpy as np
import pytest

from opgym.graphs import VARIABLE, GraphBuilder
from opgym.outcome import Verdict
from opgym.problems import Pipeline, Placement

from .instances import accelerator, cpu, dag, problem

NS_PER_MS = 1e6


def loads_ns(p, device) -> list[int]:
    return [round(load * NS_PER_MS) for load in p.evaluate(Placement(np.array(device))).details["load_ms"]]


def test_each_tensor_is_brought_in_and_written_out_once():
    #   0 -> 1, 2, 3, 4 with 0 alone: one way out, one way in on each other device.
    graph = dag({0: [], 1: [0], 2: [0], 3: [0], 4: [0]}, sizes=[100, 1, 1, 1, 1])
    p = problem(graph, [accelerator()] * 3, "max_load", [7, 1, 2, 3, 4])
    assert loads_ns(p, [0, 1, 1, 2, 2]) == [107, 103, 107]
    assert loads_ns(p, [0, 0, 0, 0, 0]) == [17, 0, 0]
    assert p.evaluate(Placement(np.array([0, 1, 1, 2, 2]))).value == 107 / NS_PER_MS


def test_cpus_pay_no_transfers_and_accelerators_pay_theirs():
    graph = dag({0: [], 1: [0], 2: [1]}, sizes=[100, 10, 1])
    p = problem(graph, [accelerator(), cpu(), cpu()], "max_load", [1, 2, 3], [10, 20, 30])
    assert loads_ns(p, [0, 1, 0]) == [1 + 100 + 10 + 3, 20, 0]
    assert loads_ns(p, [1, 2, 1]) == [0, 40, 20]


def test_a_device_may_be_left_and_entered_again():
    graph = dag({0: [], 1: [0], 2: [1], 3: [2]}, sizes=[10, 20, 30, 40])
    p = problem(graph, [accelerator()] * 2, "max_load", [1, 1, 1, 1])
    assert loads_ns(p, [0, 1, 0, 1]) == [2 + 10 + 20 + 30, 2 + 10 + 20 + 30]


def test_memory_of_a_stream_is_what_stays():
    graph = dag({0: [], 1: [0], 2: [1]}, sizes=[900, 900, 900], parameters={0: 10, 1: 20, 2: 30})
    p = problem(graph, [accelerator(40), accelerator(30)], "max_load", [1, 1, 1])
    fits = p.evaluate(Placement(np.array([0, 0, 1])))
    assert (fits.verdict, fits.details["peak_bytes"]) == (Verdict.OK, [30, 30])
    full = p.evaluate(Placement(np.array([0, 1, 1])))
    assert (full.verdict, full.details["peak_bytes"]) == (Verdict.OUT_OF_MEMORY, [10, 50])
    assert full.details["over_capacity_bytes"] == 20
    assert full.overflow_share == 20 / 30


# --- micro-batches: a chain of forward ops 0, 1, 2 and backward ops 3, 4, 5 of the same layers

TRAINING = dag(
    {0: [], 1: [0], 2: [1], 3: [2], 4: [3, 1], 5: [4, 0]},
    sizes=[8, 8, 8, 4, 4, 4],
    directions={3: "backward", 4: "backward", 5: "backward"},
    parameters={0: 100, 1: 100, 2: 100},
)
STAGES = [0, 1, 2, 2, 1, 0]


def training(pipeline: Pipeline | None, cost=(10, 20, 30, 60, 40, 20)):
    return problem(TRAINING, [accelerator()] * 3, "max_load", list(cost), channel="free", pipeline=pipeline)


def test_gpipe_is_a_flow_shop_forward_and_one_backward():
    outcome = training(Pipeline(4, "gpipe")).evaluate(Placement(np.array(STAGES)))
    step = (10 + 20 + 30) + 3 * 30 + (60 + 40 + 20) + 3 * 60
    assert outcome.details["step_time_ms"] == step / NS_PER_MS
    assert outcome.value == step / NS_PER_MS / 4


def test_one_forward_one_backward_has_one_bottleneck():
    outcome = training(Pipeline(4, "1f1b")).evaluate(Placement(np.array(STAGES)))
    step = (30 + 60 + 90) + 3 * 90
    assert outcome.details["step_time_ms"] == step / NS_PER_MS
    assert outcome.value == step / NS_PER_MS / 4


def flow_shop_ns(times: list[list[int]], jobs: int) -> int:
    """Makespan of equal jobs that pass the stages in order, by simulation."""
    free = [0] * len(times[0])
    for _ in range(jobs):
        ready = 0
        for stage, time in enumerate(times[0]):
            ready = free[stage] = max(free[stage], ready) + time
    return free[-1]


@pytest.mark.parametrize("micro_batches", [1, 2, 7])
def test_gpipe_equals_a_simulated_flow_shop(micro_batches):
    rng = np.random.default_rng(micro_batches)
    cost = rng.integers(1, 50, 6).tolist()
    outcome = training(Pipeline(micro_batches), cost).evaluate(Placement(np.array(STAGES)))
    forward = flow_shop_ns([[cost[0], cost[1], cost[2]]], micro_batches)
    backward = flow_shop_ns([[cost[3], cost[4], cost[5]]], micro_batches)
    assert outcome.details["step_time_ms"] == pytest.approx((forward + backward) / NS_PER_MS, rel=1e-12)


@pytest.mark.parametrize("schedule", ["gpipe", "1f1b"])
def test_many_micro_batches_tend_to_the_stream(schedule):
    placement = Placement(np.array(STAGES))
    stream = training(None).evaluate(placement).value
    values = [training(Pipeline(m, schedule)).evaluate(placement).value for m in (1, 10, 1000)]
    assert values == sorted(values, reverse=True)
    assert values[-1] == pytest.approx(stream, rel=0.01)
    assert stream <= values[-1]


def test_in_flight_activations_of_gpipe_and_1f1b():
    def held(pipeline):
        outcome = training(pipeline).evaluate(Placement(np.array(STAGES)))
        return [peak - 100 for peak in outcome.details["peak_bytes"]]

    # Stage 0 keeps output 0 (8 bytes) until op 5, which reads and writes 4 bytes beside it. Stage 1 keeps output 1
    # until op 4, likewise. Stage 2 keeps output 2 until op 3; its peak is op 2, with input and output.
    one = held(Pipeline(1))
    assert one == [8 + 4 + 4, 8 + 8, 8 + 8]
    assert [b - a for a, b in zip(one, held(Pipeline(5, "gpipe")), strict=True)] == [4 * 8, 4 * 8, 4 * 8]
    assert [b - a for a, b in zip(one, held(Pipeline(5, "1f1b")), strict=True)] == [2 * 8, 1 * 8, 0]
    assert held(Pipeline(2, "1f1b")) == [one[0] + 8, one[1] + 8, one[2]]


def test_stages_count_from_the_last_used_device():
    # Device 1 is not used: stage 0 is the first of two.
    def peak(micro_batches):
        outcome = training(Pipeline(micro_batches, "1f1b")).evaluate(Placement(np.array([0, 0, 2, 2, 0, 0])))
        return outcome.details["peak_bytes"]

    one, many = peak(1), peak(9)
    assert many[0] - one[0] == 8 + 8  # one more micro-batch: outputs 0 and 1
    assert many[1] == 0
    assert many[2] == one[2]


def update_step():
    """A weight on device 0, used by a forward and a backward op, and its update."""
    b = GraphBuilder("training")
    weight = b.tensor(bytes=50, role="parameter")
    home = b.op(VARIABLE, outputs=[weight], group="w")
    x, g, new = b.tensor(bytes=10), b.tensor(bytes=50), b.tensor(bytes=50)
    b.op("forward", inputs=[weight], outputs=[x])
    b.op("backward", inputs=[x], outputs=[g], direction="backward")
    b.op("update", inputs=[g, weight], outputs=[new], direction="update", update_of=home, group="w")
    return b.build()


def test_updates_and_what_only_they_read_happen_once_per_step():
    graph = update_step()
    assert [graph.kind(op) for op in range(4)] == [VARIABLE, "forward", "backward", "update"]
    pipeline = Pipeline(10, "gpipe")
    p = problem(graph, [accelerator()] * 2, "max_load", [0, 100, 200, 40], pipeline=pipeline)
    outcome = p.evaluate(Placement(np.array([0, 1, 1, 0])))
    # Once: device 0 sends the weight (50), receives the gradient (50), updates (40); device 1 the other ends.
    step = 100 + 9 * 100 + 200 + 9 * 200 + (50 + 50 + 40)
    assert outcome.details["step_time_ms"] == pytest.approx(step / NS_PER_MS, rel=1e-12)
    assert [round(load * NS_PER_MS) for load in outcome.details["load_ms"]] == [140, 400]
    # Device 0: the weight; the gradient's copy; nothing for the update's output. Device 1: the weight's copy to the
    # end, x until the backward op, the gradient to the end.
    assert outcome.details["peak_bytes"] == [50 + 50, 50 + 10 + 50 + 9 * 10]


def test_a_gradient_is_not_freed_before_the_update():
    graph = update_step()
    p = problem(graph, [accelerator()], "max_load", [0, 1, 1, 1], pipeline=Pipeline(1))
    assert p.evaluate(Placement(np.zeros(4, int))).details["peak_bytes"] == [50 + 10 + 50]
