"""fork() and restore() of OpScheduling-v0: independent copies of the state, for tree search."""

import copy
import pickle
import time

import numpy as np
import pytest
from gymnasium.utils.env_checker import data_equivalence

from opgym.envs import OpSchedulingEnv
from opgym.errors import InvalidSolutionError
from opgym.graphs import Graph, GraphBuilder
from opgym.problems import Order

from .instances import random_graph

KINDS = [("slot", "node"), ("slot", "dict"), ("op", "dict"), ("op", "graph")]


@pytest.mark.parametrize("reward", ["dense", "terminal"])
@pytest.mark.parametrize(("action", "observation"), KINDS)
def test_restored_state_replays(action: str, observation: str, reward: str) -> None:
    def make() -> OpSchedulingEnv:
        slots = 4 if action == "slot" else None
        return OpSchedulingEnv(
            random_graph(0), action=action, slots=slots, observation=observation, reward=reward
        )

    env = make()
    env.action_space.seed(0)
    env.reset()
    past = [env.action_space.sample() for _ in range(12)]
    for choice in past:
        seen, _, _, _, info = env.step(choice)
    state, orders = env.fork(), set()
    for _ in range(3):
        future = [env.action_space.sample() for _ in range(env.num_ops - len(past))]
        assert data_equivalence(env.restore(state), (seen, info), exact=True)
        steps = [env.step(choice) for choice in future]
        fresh = make()
        fresh.reset()
        expected = [fresh.step(choice) for choice in (*past, *future)][len(past) :]
        assert steps[-1][2]
        assert data_equivalence(steps, expected, exact=True)
        assert np.array_equal(env._current().partial.figures, fresh._current().partial.figures)
        orders.add(steps[-1][4]["order"])
    assert len(orders) > 1


def test_depth_first_search_over_forks_finds_the_best_order() -> None:
    """Exhaustive search over a small graph, once with forks and once by trying all orders."""
    graph = random_graph(0, ops=7, training=False)
    env = OpSchedulingEnv(graph)
    env.reset()
    peaks: list[int] = []

    def search() -> None:
        state = env.fork()
        for slot in np.flatnonzero(env.action_masks()):
            _, _, over, _, info = env.step(int(slot))
            if over:
                peaks.append(info["peak_bytes"])
            else:
                search()
            env.restore(state)

    search()
    assert sorted(peaks) == sorted(peaks_of_all_orders(env))
    assert min(peaks) < max(peaks)


def peaks_of_all_orders(env: OpSchedulingEnv) -> list[float]:
    """Peak of every topological order, each judged as a whole."""
    graph, found = env.problem.graph, []

    def extend(order: list[int]) -> None:
        if len(order) == graph.num_ops:
            found.append(env.problem.evaluate(Order(np.array(order))).value)
        for op in set(range(graph.num_ops)) - set(order):
            if all(graph.tensor_producer[t] in (*order, -1) for t in graph.inputs(op)):
                extend([*order, op])

    extend([])
    return found


def test_pickled_and_copied_states_and_environments_continue_alike() -> None:
    env = OpSchedulingEnv(random_graph(1), slots=4)
    env.reset()
    for choice in (0, 1, 2, 3):
        env.step(choice)
    twins = [pickle.loads(pickle.dumps(env)), copy.deepcopy(env), OpSchedulingEnv(random_graph(1), slots=4)]
    twins[2].restore(pickle.loads(pickle.dumps(env.fork())))
    while not env._current().over:
        step = env.step(1)
        for twin in twins:
            assert data_equivalence(step, twin.step(1), exact=True)


def test_copies_are_independent() -> None:
    env = OpSchedulingEnv(random_graph(0))
    env.reset()
    state = env.fork()
    before = pickle.dumps(state)
    for _ in range(10):
        env.step(0)
    assert pickle.dumps(state) == before
    env.restore(state)
    assert len(env.order) == 0
    env.step(0)
    assert pickle.dumps(state) == before


def test_states_of_others_are_refused() -> None:
    env = OpSchedulingEnv(random_graph(0), slots=4)
    env.reset()
    while len(env.slot_ops) < 2:
        env.step(0)
    for other in (
        OpSchedulingEnv(random_graph(0, ops=12), slots=4),
        OpSchedulingEnv(random_graph(0), slots=1),
    ):
        with pytest.raises(InvalidSolutionError, match=r"about 3\d ops to order, \d of them in slots; this"):
            other.restore(env.fork())


def test_state_at_the_start_is_of_its_own_graph_alone() -> None:
    """Before anything has run, when the numbers of ops and slots alone tell nothing apart."""

    def graph(bytes: int) -> Graph:
        b = GraphBuilder("test", "pair")
        x = b.tensor(bytes=bytes)
        b.op("Op", outputs=[x])
        b.op("Op", inputs=[x], outputs=[b.tensor(bytes=1)])
        return b.build()

    for options in ({}, {"action": "op"}):
        env = OpSchedulingEnv(graph(5), **options)
        env.reset()
        state = env.fork()
        with pytest.raises(InvalidSolutionError, match="about other ops, tensors between them or slots"):
            OpSchedulingEnv(graph(6), **options).restore(state)
        OpSchedulingEnv(graph(5), **options).restore(pickle.loads(pickle.dumps(state)))


@pytest.mark.parametrize("state", [None, 3, {"slots": []}])
def test_what_is_no_state(state: object) -> None:
    with pytest.raises(InvalidSolutionError, match=r"the state is .*; expected what fork\(\) gives"):
        OpSchedulingEnv(random_graph(0)).restore(state)  # type: ignore[arg-type]


def test_fork_is_far_cheaper_than_replaying() -> None:
    env = OpSchedulingEnv("synthetic/layered?n=2000")
    env.reset()
    started = time.process_time()
    for _ in range(1_900):
        env.step(0)
    replay = time.process_time() - started
    state = env.fork()
    started = time.process_time()
    for _ in range(20):
        env.restore(state)
    assert (time.process_time() - started) / 20 < replay / 50
