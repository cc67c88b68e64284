"""The native batch of OpScheduling-v0: everything that it returns is what Gymnasium makes of single environments."""

import pickle
import subprocess
import sys
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils import seeding
from gymnasium.vector import AutoresetMode
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from opgym import datasets
from opgym.envs import OpSchedulingEnv, OpSchedulingVectorEnv
from opgym.errors import InvalidProblemError, InvalidSolutionError, UnknownIdError
from opgym.graphs import Graph
from opgym.problems import SchedulingProblem

from ..reference.strategies import graphs
from .instances import SHAPES, random_graph
from .vector_twins import STATIC, Twins, expect_equal, expect_same_steps

quick = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
MODES = list(AutoresetMode)


def make_twins(
    loaded: list[Graph], num_envs: int, mode: AutoresetMode, *, pad: bool = False, **options: Any
) -> Twins:
    """A native batch, and single environments equal to its slots."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of large rollouts
        native = OpSchedulingVectorEnv(num_envs, loaded, autoreset_mode=mode, **options)
        if pad:
            exact = [OpSchedulingEnv(graph, **options).reset()[0] for graph in loaded]
            options["pad_to"] = tuple(max(o[key].shape[-1] for o in exact) for key in ("status", "edge_mask"))
        singles = [OpSchedulingEnv(loaded[slot % len(loaded)], **options) for slot in range(num_envs)]
    assert native.single_action_space == singles[0].action_space
    if not pad:
        assert native.single_observation_space == singles[0].observation_space
    return Twins(native, singles)


@quick
@given(st.data())
def test_steps_are_those_of_single_environments(data: st.DataObject) -> None:
    loaded = data.draw(st.lists(graphs(max_ops=10), min_size=1, max_size=3))
    action, slots, observation = data.draw(
        st.sampled_from(
            [("slot", 16, "node"), ("slot", 3, "node"), ("slot", 1, "dict"), ("slot", 4, "dict"),
             ("op", None, "dict")]
        )
    )  # fmt: skip
    twins = make_twins(
        loaded,
        data.draw(st.integers(1, 5)),
        data.draw(st.sampled_from(MODES)),
        pad=observation == "dict",
        action=action,
        slots=slots,
        observation=observation,
        reward=data.draw(st.sampled_from(["dense", "terminal"])),
    )
    twins.reset(seed=data.draw(st.integers(0, 9)))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    for _ in range(3 * max(graph.num_ops for graph in loaded)):
        masks = twins.native.action_masks()
        actions = np.array([rng.choice(np.flatnonzero(mask)) for mask in masks])
        illegal = rng.random(len(actions)) < 0.2
        actions[illegal] = rng.integers(-2, masks.shape[1] + 2, illegal.sum())
        twins.step(actions)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ["synthetic/ws?n=300&seed=2", "example/rnn-train"])
def test_longer_games_on_larger_graphs(name: str, mode: AutoresetMode) -> None:
    twins = make_twins([datasets.load(name)], 4, mode)
    twins.reset(seed=0)
    rng = np.random.default_rng(0)
    for _ in range(2 * twins.sync.envs[0].num_ops):
        twins.step(rng.integers(0, 20, 4))  # 16 to 19 are illegal
    assert twins.ends >= 4
    assert twins.illegal > 0


def test_gymnasium_makes_it() -> None:
    for mode in ({"vectorization_mode": "vector_entry_point"}, {}):
        envs = gymnasium.make_vec("OpScheduling-v0", num_envs=3, graph=random_graph(0), slots=5, **mode)
        assert isinstance(envs, OpSchedulingVectorEnv)
        assert envs.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
        assert envs.observation_space.shape == (3, 5 * 17 + 6)
        assert envs.action_space.nvec.tolist() == [5, 5, 5]


def test_defaults_are_those_of_the_single_environment() -> None:
    native, single = OpSchedulingVectorEnv(2), OpSchedulingEnv()
    assert native.single_observation_space == single.observation_space
    assert native.single_action_space == single.action_space
    assert np.array_equal(native.reset(seed=0)[0][1], single.reset(seed=0)[0])


@pytest.mark.parametrize("actions", [
    [0, 1, -1], [0.0, 1, None], np.array([1, 1, 0], np.uint8), np.array([0, 1, 2.0]), [np.int64(1), True, "0"],
    np.array([2**63, 1, 2**64 - 1], np.uint64), [2**70, np.array(1), np.array([1])],
])  # fmt: skip
@pytest.mark.parametrize("action", ["slot", "op"])
def test_actions_of_any_kind_are_read_as_by_the_single_environment(action: str, actions: Any) -> None:
    native = OpSchedulingVectorEnv(3, random_graph(2), action=action, observation="dict")
    singles = [OpSchedulingEnv(random_graph(2), action=action, observation="dict") for _ in range(3)]
    native.reset()
    for env in singles:
        env.reset()
    for _ in range(5):
        observation, reward, _, _, infos = native.step(actions)
        steps = [env.step(a) for env, a in zip(singles, actions, strict=True)]
        assert observation["status"].tolist() == [step[0]["status"].tolist() for step in steps]
        assert infos["illegal_actions"].tolist() == [step[4]["illegal_actions"] for step in steps]
        assert reward.tolist() == [step[1] for step in steps]


def test_episodes_draw_their_graphs() -> None:
    loaded, count = [random_graph(seed, ops=5 + seed, training=False) for seed in range(4)], 3
    native = OpSchedulingVectorEnv(count, loaded, draw="episode", autoreset_mode="SameStep", slots=4)
    generators = [seeding.np_random(7 + slot)[0] for slot in range(count)]
    singles = [OpSchedulingEnv(graph, slots=4) for graph in loaded]
    playing = [singles[generator.integers(4)] for generator in generators]
    states = []
    observation, _ = native.reset(seed=7)
    seen: set[int] = set()
    for slot, env in enumerate(playing):
        assert np.array_equal(env.reset()[0], observation[slot])
        states.append(env.fork())
    for _ in range(60):
        observation, _, terminated, _, infos = native.step(np.zeros(count, np.int64))
        for slot in range(count):
            playing[slot].restore(states[slot])
            expected, _, over, _, info = playing[slot].step(0)
            assert over == terminated[slot]
            if over:
                assert infos["final_info"]["order"][slot] == info["order"]
                assert np.array_equal(infos["final_obs"][slot], expected)
                playing[slot] = singles[generators[slot].integers(4)]
                expected, _ = playing[slot].reset()
            assert np.array_equal(expected, observation[slot])
            states[slot] = playing[slot].fork()
            seen.add(int(native.graph[slot]))
    assert seen == {0, 1, 2, 3}


@pytest.mark.parametrize(("action", "observation"), [("slot", "node"), ("slot", "dict"), ("op", "dict")])
def test_threads_change_nothing(action: str, observation: str) -> None:
    loaded = [random_graph(seed, ops=10 + 7 * seed) for seed in range(3)]
    one, two = (
        OpSchedulingVectorEnv(7, loaded, action=action, observation=observation, threads=threads)
        for threads in (1, 2)
    )
    expect_same_steps([one.reset(seed=0)], [two.reset(seed=0)])
    rng = np.random.default_rng(0)
    for _ in range(80):
        actions = rng.integers(0, 20, 7)
        expect_same_steps([one.step(actions)], [two.step(actions)])


CONTINUE = """
import pickle, sys
from opgym.envs import OpSchedulingVectorEnv
sys.path.insert(0, {root!r})
from tests.envs.test_scheduling_vector import OPTIONS, game
with open(sys.argv[1], "rb") as file:
    state = pickle.load(file)
envs = OpSchedulingVectorEnv(**OPTIONS[sys.argv[2]]())
restored = envs.restore(state)
with open(sys.argv[1], "wb") as file:
    pickle.dump([restored, *game(envs, 100)], file)
"""


def options(mode: AutoresetMode, **others: Any) -> dict[str, Any]:
    loaded = [random_graph(seed, ops=8 + 3 * seed) for seed in range(3)]
    return {"num_envs": 4, "graph": loaded, "autoreset_mode": mode, "draw": "episode", **others}


OPTIONS = {
    "next-step": partial(options, AutoresetMode.NEXT_STEP, slots=3),
    "same-step": partial(options, AutoresetMode.SAME_STEP, observation="dict"),
    "disabled": partial(options, AutoresetMode.DISABLED, action="op", draw="slot"),
}


def game(envs: OpSchedulingVectorEnv, steps: int) -> list[Any]:
    """What some steps with fixed actions return."""
    rng = np.random.default_rng(1)
    return [envs.step(rng.integers(0, 9, envs.num_envs)) for _ in range(steps)]


@pytest.mark.parametrize("name", OPTIONS)
def test_a_state_goes_on_in_another_process(name: str, tmp_path: Path) -> None:
    envs = OpSchedulingVectorEnv(**OPTIONS[name]())
    envs.reset(seed=3)
    # Stop where some episodes are over and others are not.
    for _ in range(13 if name != "next-step" else 14):
        envs.step(np.zeros(4, np.int64))
    state = envs.state()
    assert all(isinstance(array, np.ndarray) and array.dtype != object for array in state.values())
    file = tmp_path / "state"
    file.write_bytes(pickle.dumps(state))
    root = str(Path(__file__).parents[2])
    subprocess.run(
        [sys.executable, "-c", CONTINUE.format(root=root), str(file), name], check=True, cwd=tmp_path
    )
    restored, *steps = pickle.loads(file.read_bytes())
    expect_same_steps(game(envs, 100), steps)
    again = envs.restore(state)
    expect_same_steps([again], [restored])
    expect_same_steps(game(envs, 100), steps)


def test_states_of_others_are_refused() -> None:
    envs = OpSchedulingVectorEnv(2, random_graph(0))
    envs.reset(seed=0)
    for _ in range(20):
        envs.step([0, 1])
    state = envs.state()
    with pytest.raises(InvalidSolutionError, match=r"decision \d+ is op \d+, which is not ready then"):
        envs.restore(state | {"decisions": state["decisions"][::-1].copy()})
    with pytest.raises(gymnasium.error.ResetNeeded):
        envs.step([0, 1])


def test_what_never_changes_is_given_once() -> None:
    loaded = [make() for make in SHAPES.values()]
    envs = OpSchedulingVectorEnv(6, loaded, observation="dict", pad_to=(9, 11))
    observation, _ = envs.reset()
    assert set(observation) == {"status", "figures", "globals", "slots", "graph"}
    assert observation["graph"].ravel().tolist() == [0, 1, 2, 3, 4, 0]
    for i, graph in enumerate(loaded):
        single, _ = OpSchedulingEnv(graph, observation="dict", pad_to=(9, 11)).reset()
        for key in STATIC:
            expect_equal(envs.static[key][i], single[key], key)
    with pytest.raises(ValueError, match="read-only"):
        envs.static["nodes"][...] = 0


@pytest.mark.parametrize(("given", "error", "message"), [
    ({"observation": "graph"}, InvalidProblemError, "observation='graph' is not for native batches; use .*'sync'"),
    ({"render_mode": "ansi"}, InvalidProblemError, "render_mode='ansi' is not for native batches; use .*'sync'"),
    ({"observation": "nod"}, UnknownIdError, "did you mean node"),
    ({"reward": "sparse"}, UnknownIdError, "terminal"),
    ({"draw": "random"}, UnknownIdError, "episode"),
    ({"autoreset_mode": "same"}, UnknownIdError, "SameStep"),
    ({"graph": []}, InvalidProblemError, "an empty sequence"),
    ({"num_envs": 0}, InvalidProblemError, "num_envs=0; expected a positive integer"),
    ({"threads": 0}, InvalidProblemError, "threads=0; expected a positive integer"),
    ({"pad_to": (3, 3), "observation": "dict"}, InvalidProblemError, "too small for this graph"),
    ({"pad_to": (300, 300)}, InvalidProblemError, "needs observation='dict'"),
    ({"action": "op", "observation": "node"}, InvalidProblemError, "is about slots"),
    ({"problem": SchedulingProblem(random_graph(0)), "graph": random_graph(1)}, InvalidProblemError, "both given"),
])  # fmt: skip
def test_wrong_arguments_are_refused(given: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        OpSchedulingVectorEnv(**{"num_envs": 2, **given})


def test_problems_are_taken_as_they_are() -> None:
    problems = [SchedulingProblem(random_graph(seed)) for seed in range(2)]
    envs = OpSchedulingVectorEnv(4, problem=problems)
    given = OpSchedulingVectorEnv(4, [problem.graph for problem in problems])
    expect_same_steps([envs.reset(seed=0)], [given.reset(seed=0)])


def test_large_observations_are_announced() -> None:
    with pytest.warns(UserWarning, match="rollout buffer"):
        OpSchedulingVectorEnv(2, "synthetic/layered?n=30000", action="op")
