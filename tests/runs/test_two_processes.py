"""Two processes run a step in the order that the simulator gives, and compute what one process computes."""

import os
import signal
from dataclasses import replace
from functools import partial
from multiprocessing.shared_memory import SharedMemory

import numpy as np
import pytest

from opgym.datasets.zoo.models.random_wiring import RandWire, watts_strogatz
from opgym.datasets.zoo.models.rnnlm import LSTMLanguageModel
from opgym.datasets.zoo.models.workload import Workload, ids, reals
from opgym.errors import ExecutionFailedError
from opgym.graphs import PROFILES, Cluster, GraphBuilder, TableCost
from opgym.problems import Placement, PlacementProblem, program_order
from opgym.problems.grouping import colocation_units
from opgym.runs.reproduce.two_processes import LinkTimes, Pair, Task, pair, plan_step, usable_cores

LINK = LinkTimes(copy_ns=1_000, bytes_per_second=10**9, signal_ns=500)
RNNLM = Task(
    Workload("rnnlm", partial(LSTMLanguageModel, 1, 16, 50), (ids(50, 4, 5),), (ids(50, 4, 5),), "adam")
)
RANDWIRE = Task(
    Workload(
        "randwire",
        partial(RandWire, [watts_strogatz(5, 2, 0.25, 9)], 8, 10),
        (reals(2, 3, 32, 32),),
        (ids(10, 2),),
        "sgd",
    )
)


def cores():
    found = sorted(os.sched_getaffinity(0))
    return (found * 2)[:2]  # one core does, slowly, where no times are asked for


def problem_of(graph, cost_ns=10_000):
    cluster = Cluster.uniform([PROFILES["CPU"]] * 2, LINK.link)
    return PlacementProblem(graph, cluster, costs=TableCost({"cpu": np.full(graph.num_ops, cost_ns)}))


def random_placement(graph, seed):
    unit = colocation_units(graph)
    return Placement(np.random.default_rng(seed).integers(0, 2, int(unit.max()) + 1)[unit])


def names(problem, plan, device):
    graph = problem.graph
    return [
        graph.op_names[action.op] if action.op >= 0 else f"send {graph.tensor_names[action.tensor]}"
        for action in plan.actions[device]
    ]


def test_a_send_keeps_its_sender_busy():
    b = GraphBuilder(level="example")
    x, y, z = b.tensor(bytes=4_000, name="x"), b.tensor(bytes=8), b.tensor(bytes=8)
    b.op("MatMul", outputs=[x], name="a")
    b.op("Relu", inputs=[x], outputs=[y], name="b")
    b.op("Relu", inputs=[x], outputs=[z], name="c")
    problem = problem_of(b.build())
    plan = plan_step(problem, Placement(np.array([0, 0, 1])), LINK)
    assert names(problem, plan, 0) == ["a", "send x", "b"]
    assert names(problem, plan, 1) == ["c"]
    # a until 10,000; copied by 10,000 + 1,000 + 4,000; c from 500 later, b at once.
    assert plan.simulated_ns == 10_000 + 5_000 + 500 + 10_000
    assert problem.simulate(Placement(np.array([0, 0, 1]))).makespan_ns == 10_000 + 5_500 + 10_000
    assert [action.arrivals for action in plan.actions[1]] == [1]
    assert (plan.sends, plan.sent_bytes) == (1, 4_000)
    assert [action.frees for action in plan.actions[0]] == [(), (), (0, 1)]
    assert [action.frees for action in plan.actions[1]] == [(2,)]


def test_an_update_waits_for_those_who_need_the_old_value():
    """By rank the update would go first: what is read by `late` hangs on a long op."""
    b = GraphBuilder(level="example")
    w, g, h, out = (b.tensor(bytes=1_000, name=name) for name in ("w", "g", "h", "out"))
    new, far = b.tensor(bytes=1_000, name="new"), b.tensor(bytes=8)
    variable = b.op("variable", outputs=[w], group="w", name="variable")
    b.op("Grad", outputs=[g], name="gradient")
    b.op("Long", outputs=[h], name="long")
    b.op("Late", inputs=[w, h], outputs=[out], name="late")
    b.op("Far", inputs=[w], outputs=[far], name="far")
    b.op("SGD", inputs=[w, g], outputs=[new], group="w", update_of=variable, name="update")
    problem = problem_of(b.build())
    graph = problem.graph
    device = np.array([0 if name != "far" else 1 for name in graph.op_names])
    eager = np.array([1.0 if name in ("gradient", "update") else 0.0 for name in graph.op_names])
    plan = plan_step(problem, Placement(device, eager), LINK)
    assert names(problem, plan, 0) == ["send w", "gradient", "long", "late", "update"]
    assert names(problem, plan, 1) == ["far"]


def test_tensors_go_out_in_the_order_of_their_readers():
    b = GraphBuilder(level="example")
    x, y = b.tensor(bytes=8, name="x"), b.tensor(bytes=8, name="y")
    b.op("Split", outputs=[x, y], name="a")
    b.op("Relu", inputs=[x], outputs=[b.tensor(bytes=8)], name="second")
    b.op("Relu", inputs=[y], outputs=[b.tensor(bytes=8)], name="first")
    problem = problem_of(b.build())
    plan = plan_step(problem, Placement(np.array([0, 1, 1]), np.array([0.0, 1.0, 2.0])), LINK)
    assert names(problem, plan, 0) == ["a", "send y", "send x"]
    assert names(problem, plan, 1) == ["first", "second"]
    assert [action.arrivals for action in plan.actions[1]] == [1, 2]


@pytest.mark.parametrize("task", [RNNLM, RANDWIRE], ids=["rnnlm", "randwire"])
def test_plans_run_every_op_once_and_end_as_simulated(task):
    graph = task.graph
    problem = problem_of(graph)
    for seed in range(5):
        placement = random_placement(graph, seed)
        plan = plan_step(problem, placement, LINK)
        ops = [action.op for actions in plan.actions for action in actions if action.op >= 0]
        assert sorted(ops) == np.flatnonzero(~graph.is_variable).tolist()
        sent = [a.tensor for actions in plan.actions for a in actions if a.tensor >= 0]
        assert len(sent) == len(set(sent)) == plan.sends > 0
        busy = max(
            sum(10_000 if a.op >= 0 else LINK.send_ns(int(graph.tensor_bytes[a.tensor])) for a in actions)
            for actions in plan.actions
        )
        assert busy <= plan.simulated_ns


@pytest.fixture(scope="module")
def rnnlm():
    with Pair(RNNLM, cores(), patience_s=60) as found:
        yield found


def test_three_placements_compute_what_one_process_computes(rnnlm):
    expected = {tensor: value.detach().numpy() for tensor, value in RNNLM.results().items()}
    given = RNNLM.given()
    losses = [t for t in expected if RNNLM.graph.tensor_is_output[t] and RNNLM.graph.shape(t) == ()]
    assert len(losses) == 1
    assert np.isclose(expected[losses[0]], np.log(50), rtol=0.1)  # of 50 words that are drawn at random
    moved = [t for t in RNNLM.changed if not np.array_equal(expected[t], given[t].numpy())]
    assert len(moved) > len(RNNLM.changed) / 2
    problem = problem_of(RNNLM.graph)
    for seed in range(3):
        plan = plan_step(problem, random_placement(RNNLM.graph, seed), LINK)
        found = rnnlm.results(plan)
        assert found.keys() == expected.keys()
        for tensor, value in expected.items():
            np.testing.assert_allclose(found[tensor], value, rtol=1e-5, atol=1e-7)


def test_times_add_up(rnnlm):
    plan = plan_step(problem_of(RNNLM.graph), random_placement(RNNLM.graph, 0), LINK)
    times = rnnlm.steps(plan, 3)
    assert times.makespan_ns.shape == (3,)
    assert times.ops_ns.shape == times.sends_ns.shape == times.waiting_ns.shape == (3, 2)
    whole = times.ops_ns + times.sends_ns + times.waiting_ns
    assert (whole > 0).all()
    assert (whole <= times.makespan_ns[:, None]).all()


def test_a_profile_tells_the_time_of_every_op(rnnlm):
    graph = RNNLM.graph
    alone = plan_step(problem_of(graph), Placement(np.zeros(graph.num_ops, int), program_order(graph)), LINK)
    assert [a.op for a in alone.actions[0]] == np.flatnonzero(~graph.is_variable).tolist()
    times = rnnlm.alone(alone, 0, 2)
    assert times.shape == (2, len(alone.actions[0]))
    assert (times > 0).all()


def test_the_link_is_measured(rnnlm):
    link = rnnlm.link()
    assert link.bytes_per_second > 10**7
    assert link.send_ns(10**6) > link.send_ns(0) >= 0
    assert link.link.latency_ns == link.copy_ns + link.signal_ns


def test_no_memory_is_left_behind(rnnlm):
    """It has no name any more as soon as both processes have it."""
    with pytest.raises(FileNotFoundError):
        SharedMemory(rnnlm._memory.name)


def test_convolutions_and_buffers_that_a_step_changes_and_a_child_that_fails():
    expected = {tensor: value.detach().numpy() for tensor, value in RANDWIRE.results().items()}
    assert any("running_mean" in RANDWIRE.graph.tensor_names[t] for t in RANDWIRE.changed)
    plan = plan_step(problem_of(RANDWIRE.graph), random_placement(RANDWIRE.graph, 0), LINK)
    first, second = plan.actions
    wrong = replace(plan, actions=(first, (replace(second[0], op=10**6), *second[1:])))
    with Pair(RANDWIRE, cores(), patience_s=60) as two:
        found = two.results(plan)
        with pytest.raises(ExecutionFailedError) as caught:
            two.steps(wrong, 1)
    assert found.keys() == expected.keys()
    for tensor, value in expected.items():
        np.testing.assert_allclose(found[tensor], value, rtol=1e-4, atol=1e-6)
    assert "the process of device 1 failed" in str(caught.value)
    assert "IndexError" in str(caught.value)
    assert not any(process.is_alive() for process in two._processes)


def test_a_child_that_is_killed_is_named_and_an_interrupt_ends_the_other():
    two = Pair(RNNLM, cores(), patience_s=60)

    def interrupted():
        with two:
            os.kill(two._processes[0].pid, signal.SIGKILL)
            with pytest.raises(ExecutionFailedError, match="device 0 ended with exit code -9"):
                two.link()
            assert two._processes[1].is_alive()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert not any(process.is_alive() for process in two._processes)


@pytest.mark.slow
def test_waiting_for_what_nobody_sends_ends():
    plan = plan_step(problem_of(RNNLM.graph), random_placement(RNNLM.graph, 0), LINK)
    first, second = plan.actions
    deaf = replace(first[0], arrivals=10**6)
    with (
        Pair(RNNLM, cores(), patience_s=1) as two,
        pytest.raises(ExecutionFailedError, match="waited 1 s for the other process"),
    ):
        two.steps(replace(plan, actions=((deaf, *first[1:]), second)), 1)
    assert not any(process.is_alive() for process in two._processes)


@pytest.mark.slow
def test_a_start_that_fails_leaves_nothing(monkeypatch):
    made = []

    class Watched(SharedMemory):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            made.append(self.name)

    monkeypatch.setattr(pair, "SharedMemory", Watched)
    with pytest.raises(ExecutionFailedError, match=r"the process of device \d failed"):
        Pair(RNNLM, (10**4, 10**4), patience_s=60)
    assert len(made) == 1
    with pytest.raises(FileNotFoundError):
        SharedMemory(made[0])


def test_one_core_is_too_few(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3})
    with pytest.raises(ExecutionFailedError, match="1 core may be used; two processes need two"):
        usable_cores()
    monkeypatch.delattr(os, "sched_getaffinity")
    with pytest.raises(ExecutionFailedError, match="cannot be bound to cores"):
        usable_cores()
