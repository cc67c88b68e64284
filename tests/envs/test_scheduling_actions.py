"""What OpScheduling-v0 takes for an action, and what becomes of another one (CASES 14 and 15)."""

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from gymnasium.utils.env_checker import data_equivalence

from opgym.envs import OpSchedulingEnv
from opgym.graphs import Graph, GraphBuilder

from .instances import play, random_graph


def fork() -> Graph:
    """0 -> 1 -> 3, 0 -> 2 -> 3, beside a variable that 2 reads: graph indices 0 to 4."""
    b = GraphBuilder("test", "fork")
    w = b.tensor(bytes=7, role="parameter")
    b.op("variable", outputs=[w])
    x, y, z = (b.tensor(bytes=size) for size in (10, 20, 30))
    b.op("A", outputs=[x])
    b.op("B", inputs=[x], outputs=[y])
    b.op("C", inputs=[x, w], outputs=[z])
    b.op("D", inputs=[y, z], outputs=[b.tensor(bytes=1)])
    return b.build()


@pytest.mark.parametrize("slots", [1, 3, 16])
def test_slots_are_the_actions(slots: int) -> None:
    env = OpSchedulingEnv(fork(), slots=slots)
    assert env.action_space.n == slots
    _, info = env.reset()
    assert env.slot_ops.tolist() == [1]  # the variable, op 0, does not run
    assert info["action_mask"].tolist() == [1] + [0] * (slots - 1)
    _, _, _, _, info = env.step(0)
    assert env.ready_ops.tolist() == [2, 3]  # both free nothing yet: by bytes allocated
    assert info["action_mask"].sum() == min(2, slots)


def test_nodes_are_the_actions() -> None:
    env = OpSchedulingEnv(fork(), action="op")
    assert env.action_space.n == env.num_ops == 4
    _, info = env.reset()
    first = info["action_mask"].tolist()
    masks = [first, *(env.step(node)[4]["action_mask"].tolist() for node in (0, 2, 1))]
    assert masks == [[1, 0, 0, 0], [0, 1, 1, 0], [0, 1, 0, 0], [0, 0, 0, 1]]
    info = env.step(3)[4]
    assert info["order"] == (1, 3, 2, 4)
    assert info["action_mask"].tolist() == [1, 1, 1, 1]
    assert info["peak_bytes"] == 60  # 10 + 30 + 20, before x is freed
    assert info["resident_bytes"] == 7
    assert info["illegal_actions"] == 0


ILLEGAL: list[Any] = [-1, 4, 16, 2.0, None, np.array([3]), True, "0", 2**70]


@pytest.mark.parametrize("action", ILLEGAL, ids=repr)
@pytest.mark.parametrize("kind", ["slot", "op"])
def test_the_first_legal_action_is_taken(kind: str, action: Any) -> None:
    env, twin = (OpSchedulingEnv(fork(), action=kind) for _ in range(2))
    env.reset(), twin.reset()
    env.step(0), twin.step(0)
    # two ops are ready: slots 0 and 1, nodes 1 and 2
    got, expected = env.step(action), twin.step(0 if kind == "slot" else 1)
    assert (got[4].pop("illegal_actions"), expected[4].pop("illegal_actions")) == (1, 0)
    assert data_equivalence(got, expected, exact=True)
    assert env.order.tolist() == [1, 2]


@pytest.mark.parametrize("integer", [int, np.int64, np.uint8, np.array, lambda i: np.array([[i]])])
@pytest.mark.parametrize(("kind", "action", "chosen"), [("slot", 1, 3), ("op", 2, 3), ("op", 1, 2)])
def test_an_integer_of_any_kind_chooses_what_it_names(
    kind: str, action: int, chosen: int, integer: Callable[[int], Any]
) -> None:
    env = OpSchedulingEnv(fork(), action=kind)
    env.reset()
    env.step(0)
    assert env.step(integer(action))[4]["illegal_actions"] == 0
    assert env.order.tolist() == [1, chosen]


@pytest.mark.parametrize("action", [0, 1, *ILLEGAL], ids=repr)
@pytest.mark.parametrize("kind", ["slot", "op"])
def test_a_step_after_the_end_leaves_the_order_alone(kind: str, action: Any) -> None:
    env = OpSchedulingEnv(fork(), action=kind)
    play(env, lambda observation, info: int(np.argmax(info["action_mask"])))
    before, info = pickle.dumps(env.fork()), env.restore(env.fork())[1]
    for _ in range(2):
        with pytest.warns(UserWarning, match="after the end"):
            _, reward, terminated, truncated, after = env.step(action)
        assert (reward, terminated, truncated) == (0.0, True, False)
        assert data_equivalence(after, info, exact=True)
        assert pickle.dumps(env.fork()) == before
    assert (env.order.tolist(), env.peak_bytes, env.live_bytes) == ([1, 2, 3, 4], 60, 0)


def test_ops_that_have_run_or_wait_are_illegal() -> None:
    env = OpSchedulingEnv(fork(), action="op")
    _, info = play(env, lambda observation, info: 3)  # the last op, whatever happens
    assert info["order"] == (1, 2, 3, 4)
    assert info["illegal_actions"] == 3


def test_padding_is_no_action() -> None:
    env = OpSchedulingEnv(fork(), action="op", pad_to=(9, 20))
    assert env.action_space.n == 9
    _, info = env.reset()
    assert info["action_mask"].tolist() == [1, 0, 0, 0, 0, 0, 0, 0, 0]
    assert env.step(8)[4]["illegal_actions"] == 1
    over = False
    while not over:
        _, _, over, _, info = env.step(8)
    assert info["action_mask"].tolist() == [1] * 9


@pytest.mark.parametrize("kind", ["slot", "op"])
def test_the_mask_names_the_legal_actions_and_no_other(kind: str) -> None:
    env = OpSchedulingEnv(random_graph(3), action=kind, slots=4 if kind == "slot" else None)
    rng, (_, info), over = np.random.default_rng(0), env.reset(), False
    while not over:
        mask, count = info["action_mask"], info["illegal_actions"]
        state = env.fork()
        for action in range(env.action_space.n):
            assert env.step(action)[4]["illegal_actions"] == count + (not mask[action])
            env.restore(state)
        _, _, over, _, info = env.step(int(rng.choice(np.flatnonzero(mask))))
