"""OpScheduling-v0 plays what SchedulingProblem judges: peaks, slots, figures, and policies that are known."""

import time
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from opgym import agents, datasets
from opgym.envs import OpSchedulingEnv
from opgym.envs.scheduling.features import CHANGING_FIELDS, FIXED_FIELDS
from opgym.graphs import Graph, GraphBuilder
from opgym.problems import Budget, Order, SchedulingProblem

from ..reference.strategies import graphs
from .instances import play, random_graph
from .naive_order import NaiveOrder, greedy_order

FIELDS = [field.name for field in (*FIXED_FIELDS, *CHANGING_FIELDS)]
quick = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def shown(env: OpSchedulingEnv, observation: np.ndarray) -> dict[str, np.ndarray]:
    """Each field of the occupied slots, ``[slots]``."""
    rows = observation[: env.num_slots * len(FIELDS)].reshape(env.num_slots, -1)
    assert rows[:, 0].tolist() == [1.0] * len(env.slot_ops) + [0.0] * (env.num_slots - len(env.slot_ops))
    assert not rows[len(env.slot_ops) :].any()
    return dict(zip(FIELDS, rows[: len(env.slot_ops)].T, strict=True))


@quick
@given(st.data())
def test_peak_is_that_of_the_problem(data: st.DataObject) -> None:
    graph = data.draw(graphs())
    slots = data.draw(st.sampled_from([1, 2, 3, 16, None]))
    action = "slot" if slots else "op"
    env = OpSchedulingEnv(graph, action=action, slots=slots, observation="dict")
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    peaks = []

    def choose(observation: object, info: dict[str, np.ndarray]) -> int:
        peaks.append(env.peak_bytes)
        return int(rng.choice(np.flatnonzero(info["action_mask"])))

    rewards, info = play(env, choose)
    problem = SchedulingProblem(graph)
    outcome = problem.evaluate(Order(np.array(info["order"])))
    assert outcome.ok
    assert info["outcome"] == outcome
    assert info["peak_bytes"] == outcome.value == env.peak_bytes
    assert info["resident_bytes"] == problem.resident_bytes
    assert info["illegal_actions"] == 0
    assert env.live_bytes == NaiveOrder(graph).live(list(info["order"]))
    assert env.reference == max(problem.reference_bytes, 1)
    # every reward is the rise of the peak: in whole bytes, nothing is lost or invented
    rises = np.diff([*peaks, env.peak_bytes])
    assert np.rint(-np.array(rewards) * env.reference).astype(np.int64).tolist() == rises.tolist()
    assert sum(rewards) == pytest.approx(-outcome.value / env.reference, rel=1e-12)


@quick
@given(st.data())
def test_slots_and_figures_by_brute_force(data: st.DataObject) -> None:
    graph = data.draw(graphs())
    slots = data.draw(st.sampled_from([1, 2, 3, 4, 16]))
    env, naive = OpSchedulingEnv(graph, slots=slots), NaiveOrder(graph)
    most_reads = max(held_inputs(naive, op) for op in env.problem.ops)
    readers = {op: sum(op in naive.producers(other) for other in env.problem.ops) for op in env.problem.ops}
    observation, _ = env.reset()
    over, peak = False, 0
    while not over:
        ops = naive.slots(slots)
        assert env.slot_ops.tolist() == ops
        assert env.ready_ops.tolist() == naive.ranked()
        fields, per_byte = shown(env, observation), 1 / env.reference
        live, largest = naive.live(naive.done), max(abs(naive.net(op)) for op in ops)
        expected = {
            "allocated": [naive.allocated(op) * per_byte for op in ops],
            "workspace": [graph.op_workspace_bytes[op] * per_byte for op in ops],
            "net": [naive.net(op) * per_byte for op in ops],
            "net_relative": [naive.net(op) / (largest or 1) for op in ops],
            "freed": [(naive.net(op) + naive.allocated(op)) * per_byte for op in ops],
            "needed": [naive.needed(op) * per_byte for op in ops],
            "rise": [max(0, live + naive.needed(op) - peak) * per_byte for op in ops],
            "last_uses": [naive.last_uses(op) / max(most_reads, 1) for op in ops],
            "unlocks": [naive.unlocks(op) / max(1, *readers.values()) for op in ops],
            "waited": [naive.waited(op) / env.num_ops for op in ops],
        }
        for name, values in expected.items():
            assert fields[name].tolist() == pytest.approx(values, rel=1e-6), name
        assert (env.live_bytes, env.peak_bytes) == (live, peak)
        assert env.observation_space.contains(observation)
        choice = data.draw(st.integers(0, len(ops) - 1))
        peak = max(peak, live + naive.needed(ops[choice]))
        naive.run(ops[choice])
        observation, _, over, _, _ = env.step(choice)
    assert env.order.tolist() == naive.done
    assert not observation[:-6].any()


def held_inputs(naive: NaiveOrder, op: int) -> int:
    """Tensors that an op reads and whose memory its reading may free."""
    graph = naive.graph
    return sum(
        naive.takes_memory(t) and not graph.tensor_is_output[t] and graph.tensor_bytes[t] > 0
        for t in graph.inputs(op).tolist()
    )


def linear_policy(env: OpSchedulingEnv, field: str, weight: float) -> list[int]:
    """Plays an episode: the slot with the largest weight * field, the first of several; empty ones count -2."""
    weights = np.zeros(len(FIELDS))
    weights[FIELDS.index(field)], weights[FIELDS.index("occupied")] = weight, 2.0

    def choose(observation: np.ndarray, info: dict[str, np.ndarray]) -> int:
        return int(np.argmax(observation[: env.num_slots * len(FIELDS)].reshape(env.num_slots, -1) @ weights))

    _, info = play(env, choose)
    assert info["illegal_actions"] == 0
    return list(info["order"])


def equal_sizes(seed: int) -> Graph:
    """A wide random graph where nearly every choice is a tie."""
    rng, b, made = np.random.default_rng(seed), GraphBuilder("test", f"ties-{seed}"), []
    for _ in range(60):
        count = min(len(made), int(rng.integers(0, 3)))
        reads = rng.choice(made, count, replace=False).tolist() if count else []
        made.append(b.tensor(bytes=int(rng.integers(1, 3))))
        b.op("Op", inputs=reads, outputs=[made[-1]])
    return b.build()


GRAPHS: dict[str, Callable[[], Graph]] = {
    **{f"ties-{seed}": partial(equal_sizes, seed) for seed in range(4)},
    **{f"random-{seed}": partial(random_graph, seed) for seed in range(3)},
    **{
        name: partial(datasets.load, name)
        for name in ("synthetic/er?n=60&seed=1", "synthetic/ba?n=60&seed=1", "example/rnn-train")
    },
}


@pytest.mark.parametrize("name", GRAPHS)
def test_hand_set_linear_policy_is_greedy_by_freed_bytes(name: str) -> None:
    graph = GRAPHS[name]()
    expected = greedy_order(graph)
    for slots in (1, 5, 16):
        assert linear_policy(OpSchedulingEnv(graph, slots=slots), "net", 1.0) == expected
    assert linear_policy(OpSchedulingEnv(graph), "net_relative", 1.0) == expected


@pytest.mark.parametrize(
    "name", ["synthetic/ws?n=300&seed=4", "synthetic/layered?n=500", "example/rnn-train"]
)
def test_slot_0_is_the_greedy_solver(name: str) -> None:
    env = OpSchedulingEnv(name)
    _, info = play(env, lambda observation, info: 0)
    result = agents.make("greedy-freed-bytes").solve(env.problem, Budget(1), np.random.default_rng(0))
    assert info["order"] == tuple(result.solution.op.tolist())
    assert info["outcome"] == result.outcome


@pytest.mark.parametrize("seed", range(3))
def test_program_order_can_be_played_through_any_slots(seed: int) -> None:
    for graph in (equal_sizes(seed), random_graph(seed)):
        for slots in (2, 5, 16):
            env = OpSchedulingEnv(graph, slots=slots)
            assert linear_policy(env, "position", -1.0) == env.problem.ops.tolist()
            assert env.peak_bytes == env.reference


@pytest.mark.parametrize("readers_first", [True, False])
def test_one_buffer_is_taken_over_where_two_might_be(readers_first: bool) -> None:
    b = GraphBuilder("test", "in-place", in_place=True)
    x, y = b.tensor(bytes=4), b.tensor(bytes=4)
    b.op("A", outputs=[x])
    b.op("B", outputs=[y])
    for tensor in (x, y):
        b.op("Look", inputs=[tensor], outputs=[])
    b.op("Add", inputs=[x, y], outputs=[b.tensor(bytes=4)], workspace_bytes=1, elementwise=True)
    env = OpSchedulingEnv(b.build(), action="op")
    order = [0, 1, 2, 3, 4] if readers_first else [0, 1, 4, 2, 3]
    _, info = play(env, lambda observation, info: order[len(env.order)])
    assert info["outcome"] == env.problem.evaluate(Order(np.array(order)))
    assert info["peak_bytes"] == (9 if readers_first else 13)


def test_large_graphs_are_played() -> None:
    seconds = {}
    for ops in (2_000, 20_000):
        env = OpSchedulingEnv(f"synthetic/layered?n={ops}")
        assert env.num_ops == ops
        choices = np.random.default_rng(0).integers(3, size=ops).tolist()
        env.reset()
        started = time.process_time()
        for choice in choices:
            _, _, over, _, info = env.step(choice)
        seconds[ops] = time.process_time() - started
        assert over
        assert info["outcome"] == env.problem.evaluate(Order(np.array(info["order"])))
    # Ten times as many steps, of the same cost each; 40 leaves room for a busy machine.
    assert seconds[20_000] < 40 * seconds[2_000]


def test_large_graphs_are_played_op_by_op() -> None:
    with pytest.warns(UserWarning, match="rollout buffer"):
        env = OpSchedulingEnv("synthetic/layered?n=20000", action="op", observation="graph")
    _, info = env.reset()
    rng = np.random.default_rng(0)
    for _ in range(20):  # an observation of so large a graph is large, too
        node = int(rng.choice(np.flatnonzero(info["action_mask"])))
        _, _, _, _, info = env.step(node)
        assert env.order[-1] == node
        assert np.flatnonzero(info["action_mask"]).tolist() == sorted(env.ready_ops.tolist())


def test_op_with_very_many_readers() -> None:
    b = GraphBuilder("test", "star")
    x = b.tensor(bytes=100)
    b.op("Source", outputs=[x])
    for _ in range(5_000):
        b.op("Reader", inputs=[x], outputs=[b.tensor(bytes=1, is_output=True)])
    env = OpSchedulingEnv(b.build())
    env.reset()
    for _ in range(env.num_ops):
        _, _, over, _, info = env.step(0)
    assert over
    assert info["peak_bytes"] == 100 + 5_000
    assert env.live_bytes == 5_000


def test_sizes_near_the_largest() -> None:
    b = GraphBuilder("test", "huge")
    huge = 2**60
    x, y = b.tensor(bytes=huge), b.tensor(bytes=huge - 1)
    b.op("A", outputs=[x])
    b.op("B", outputs=[y])
    b.op("C", inputs=[x], outputs=[b.tensor(bytes=1)])
    b.op("D", inputs=[y], outputs=[b.tensor(bytes=1)])
    env = OpSchedulingEnv(b.build())
    _, info = play(env, lambda observation, info: 0)
    # B needs a byte less than A, then freeing comes before allocating
    assert info["order"] == (1, 3, 0, 2)
    assert info["peak_bytes"] == huge + 1
