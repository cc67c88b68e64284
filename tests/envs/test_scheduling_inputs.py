"""Odd graphs are ordered, bad arguments are refused at once with what was expected (CASES 16)."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from opgym import datasets
from opgym.envs import OpSchedulingEnv
from opgym.errors import InvalidProblemError, UnknownIdError
from opgym.graphs import GraphBuilder, save
from opgym.problems import Order, SchedulingProblem

from .instances import SHAPES, play, random_graph


@pytest.mark.parametrize(("action", "slots"), [("slot", 1), ("slot", None), ("op", None)])
@pytest.mark.parametrize("shape", SHAPES)
def test_odd_graphs_end_with_an_outcome(shape: str, action: str, slots: int | None) -> None:
    env = OpSchedulingEnv(SHAPES[shape](), action=action, slots=slots)
    rewards, info = play(env, lambda observation, info: int(np.argmax(info["action_mask"])))
    assert len(rewards) == env.num_ops == env.problem.graph.num_ops
    assert info["outcome"] == env.problem.evaluate(Order(np.array(info["order"])))
    assert sum(rewards) == pytest.approx(-info["peak_bytes"] / env.reference)


def test_nothing_takes_memory() -> None:
    env = OpSchedulingEnv(SHAPES["zero_bytes"]())
    assert env.reference == 1
    observation, _ = env.reset()
    assert np.isfinite(observation).all()
    rewards, info = play(env, lambda observation, info: 0)
    assert rewards == [0.0, 0.0]
    assert info["peak_bytes"] == 0


def test_variables_alone_are_refused() -> None:
    b = GraphBuilder("test", "variables")
    b.op("variable", outputs=[b.tensor(bytes=1, role="parameter")])
    with pytest.raises(InvalidProblemError, match="only variables; there is nothing to order"):
        OpSchedulingEnv(b.build())


def test_long_chain() -> None:
    b = GraphBuilder("test", "chain")
    x = b.tensor(bytes=1)
    b.op("Op", outputs=[x])
    for _ in range(30_000):
        y = b.tensor(bytes=1)
        b.op("Op", inputs=[x], outputs=[y])
        x = y
    env = OpSchedulingEnv(b.build())
    env.reset()
    for _ in range(100):
        env.step(0)
    assert (env.live_bytes, env.peak_bytes) == (1, 2)


def test_problem_or_graph() -> None:
    problem = SchedulingProblem(random_graph(0))
    assert OpSchedulingEnv(problem=problem).problem is problem
    with pytest.raises(InvalidProblemError, match="graph= are both given; a problem brings its own graph"):
        OpSchedulingEnv(random_graph(0), problem=problem)


def test_graph_by_id_and_by_path(tmp_path: Path) -> None:
    assert OpSchedulingEnv("example/two-branch").problem.graph == datasets.load("example/two-branch")
    assert OpSchedulingEnv().problem.graph == datasets.load("synthetic/ws?n=100&seed=0")
    save(datasets.load("example/two-branch"), tmp_path / "mine.npz")
    for path in (tmp_path / "mine.npz", str(tmp_path / "mine.npz")):
        assert OpSchedulingEnv(path).problem.graph == datasets.load("example/two-branch")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"action": "slots"}, "unknown action 'slots'; did you mean slot"),
        ({"observation": "nodes"}, "unknown observation 'nodes'; did you mean node"),
        ({"reward": "sparse"}, "unknown reward 'sparse'; known: dense, terminal"),
        ({"render_mode": "rgb"}, "unknown render mode 'rgb'; did you mean rgb_array"),
        ({"graph": "synthetic/wss"}, "did you mean synthetic/ws"),
    ],
)
def test_unknown_names_suggest_the_nearest(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UnknownIdError, match=message):
        OpSchedulingEnv(**options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"action": "op", "observation": "node"}, "chooses among all ops; use 'dict' or 'graph'"),
        ({"action": "op", "slots": 4}, "slots=4 belongs to action='slot'"),
        ({"slots": 0}, "slots=0; expected a positive integer, the ops to choose from"),
        ({"slots": 2.0}, "slots=2.0; expected a positive integer"),
        ({"slots": True}, "slots=True; expected a positive integer"),
        ({"slots": 10**7}, "slots=10000000; expected at most 4,096, the ops to choose from"),
        ({"slots": 2**31}, "slots=2147483648; expected at most 4,096"),
        ({"pad_to": (100, 100)}, "needs observation='dict'"),
        ({"pad_to": (100, 100, 100), "observation": "dict"}, r"expected \(nodes, edges\)"),
        ({"graph": 3}, "graph=3; expected a Graph, an id of opgym.datasets, or the path of a model"),
        ({"problem": 3}, "problem=3; expected a SchedulingProblem"),
    ],
)
def test_arguments_that_do_not_fit_together(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidProblemError, match=message):
        OpSchedulingEnv(**options)
