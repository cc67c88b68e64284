"""GraphPlacement-v0's native batch equals single environments, step by step, in everything it returns."""

import hashlib
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode
from hypothesis import given, settings

from opgym import datasets
from opgym.envs import GraphPlacementEnv, GraphPlacementVectorEnv
from opgym.errors import InvalidProblemError, InvalidSolutionError, UnknownIdError
from opgym.graphs import Cluster
from opgym.problems import PlacementProblem

from .instances import MEGABYTE, SHAPES, mixed_support, play_devices, random_graph
from .placement_games import games
from .vector_twins import STATIC, Twins, expect_equal, expect_same_steps


@settings(max_examples=60, deadline=None)
@given(games())
def test_batch_equals_single_environments(
    game: tuple[GraphPlacementVectorEnv, list[GraphPlacementEnv], int],
) -> None:
    native, singles, seed = game
    twins, rng = Twins(native, singles), np.random.default_rng(seed)
    devices = native.single_action_space.n
    twins.reset(seed=seed)
    for _ in range(2 * max(env.num_groups for env in singles) + 2):
        twins.step(rng.integers(-1, devices + 1, native.num_envs))
    assert twins.ends >= native.num_envs


CLUSTER = "1xCPU+2xP100@nvlink"


@pytest.mark.parametrize("mode", AutoresetMode)
@pytest.mark.parametrize("observation", ["node", "dict"])
def test_masks_colocation_and_little_memory(mode: AutoresetMode, observation: str) -> None:
    """Graphs with variables, updates and ops that rule out devices, on unequal devices that are too small."""
    loaded = [random_graph(1), random_graph(2, ops=12), mixed_support()]
    cluster = Cluster.parse(CLUSTER).with_capacity(40 * MEGABYTE)
    options: dict[str, Any] = {"cluster": cluster, "observation": observation, "reward": "dense"}
    native = GraphPlacementVectorEnv(5, loaded, autoreset_mode=mode, **options)
    if observation == "dict":
        options["pad_to"] = (native.static["nodes"].shape[1], native.static["edges"].shape[2])
    singles = [GraphPlacementEnv(loaded[slot % 3], **options) for slot in range(5)]
    twins, rng = Twins(native, singles), np.random.default_rng(0)
    twins.reset(seed=[3, 1, 4, 1, None])
    for _ in range(100):
        twins.step(rng.integers(-1, 4, 5))
    assert {outcome.verdict for outcome in twins.outcomes} == {"ok", "out_of_memory"}
    assert twins.illegal > 0
    assert twins.ends > 15


def test_a_graph_of_a_thousand_ops() -> None:
    graph = datasets.load("synthetic/layered?n=1000&seed=1")
    native = GraphPlacementVectorEnv(2, graph, "4xP100", autoreset_mode="SameStep")
    twins, rng = (
        Twins(native, [GraphPlacementEnv(graph, "4xP100") for _ in range(2)]),
        np.random.default_rng(0),
    )
    twins.reset(seed=0)
    for _ in range(1100):
        twins.step(rng.integers(4, size=2))
    assert twins.ends == 2


def test_gymnasium_makes_it() -> None:
    for mode in ({"vectorization_mode": "vector_entry_point"}, {}):
        envs = gymnasium.make_vec(
            "GraphPlacement-v0", num_envs=3, graph=random_graph(0), cluster=CLUSTER, **mode
        )
        assert isinstance(envs, GraphPlacementVectorEnv)
        assert envs.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
        assert envs.observation_space.shape == (3, 3 * 15 + 22 + 1)
        assert envs.action_space.nvec.tolist() == [3, 3, 3]
    sync = gymnasium.make_vec("GraphPlacement-v0", num_envs=3, vectorization_mode="sync", mode="refine")
    assert isinstance(sync, gymnasium.vector.SyncVectorEnv)


@pytest.mark.parametrize("observation", ["node", "dict"])
def test_gymnasiums_wrappers_take_it(observation: str) -> None:
    wrappers = gymnasium.wrappers.vector
    envs = GraphPlacementVectorEnv(2, random_graph(0), autoreset_mode="SameStep", observation=observation)
    listed = wrappers.DictInfoToList(wrappers.RecordEpisodeStatistics(envs))
    _, infos = listed.reset(seed=0)
    assert [info["action_mask"].tolist() for info in infos] == [[1, 1], [1, 1]]
    single = GraphPlacementEnv(random_graph(0))
    for _ in range(single.num_groups):
        _, reward, terminated, _, infos = listed.step(np.zeros(2, np.int64))
    assert terminated.all()
    for slot in range(2):
        outcome = infos[slot]["final_info"]["outcome"]
        assert reward[slot] == -outcome.value / single.reference
        assert infos[slot]["episode"]["r"] == pytest.approx(reward[slot])
        assert infos[slot]["episode"]["l"] == single.num_groups


def test_defaults_are_those_of_the_single_environment() -> None:
    native, single = GraphPlacementVectorEnv(2), GraphPlacementEnv()
    assert native.single_observation_space == single.observation_space
    assert native.single_action_space == single.action_space
    assert np.array_equal(native.reset(seed=0)[0][1], single.reset(seed=0)[0])


@pytest.mark.parametrize("actions", [
    [0, 1, -1], [0.0, 1, None], np.array([1, 1, 0], np.uint8), np.array([0, 1, 2.0]), [np.int64(1), True, "0"],
    np.array([2**63, 1, 2**64 - 1], np.uint64), [2**70, np.array(1), np.array([1])], np.array([[0], [1], [2]]),
    [[1, 2], [1], 0], np.array([0, 1, 0, 2, 1, 0])[::2],
])  # fmt: skip
def test_actions_of_any_kind_are_read_as_by_the_single_environment(actions: Any) -> None:
    native = GraphPlacementVectorEnv(3, mixed_support(), CLUSTER, observation="dict")
    singles = [GraphPlacementEnv(mixed_support(), CLUSTER, observation="dict") for _ in range(3)]
    native.reset()
    for env in singles:
        env.reset()
    for _ in range(4):
        observation, reward, _, _, infos = native.step(actions)
        steps = [env.step(a) for env, a in zip(singles, actions, strict=True)]
        assert observation["placement"].tolist() == [step[0]["placement"].tolist() for step in steps]
        assert infos["illegal_actions"].tolist() == [step[4]["illegal_actions"] for step in steps]
        assert reward.tolist() == [step[1] for step in steps]


def test_seeds_are_those_of_sync_vector_env() -> None:
    envs, twin = (GraphPlacementVectorEnv(3, random_graph(0)) for _ in range(2))
    sync = gymnasium.vector.SyncVectorEnv([lambda: GraphPlacementEnv(random_graph(0))] * 3)
    for seed in (5, [7, 8, 9], [1, None, 2**70]):
        for vector in (envs, twin, sync):
            vector.reset(seed=seed)
        assert envs.np_random_seed == sync.np_random_seed
        draws = [[generator.random() for generator in vector.np_random] for vector in (envs, twin, sync)]
        assert draws[0] == draws[1] == draws[2]
        envs.reset(), sync.reset()
        assert [g.random() for g in envs.np_random] == [g.random() for g in sync.np_random]
        twin.restore(envs.state())
        assert twin.np_random_seed == (-1, -1, -1)


def test_episodes_draw_their_graphs() -> None:
    loaded = [random_graph(seed, ops=5 + seed, training=False) for seed in range(4)]
    one, two, other = (
        GraphPlacementVectorEnv(3, loaded, draw="episode", autoreset_mode="SameStep", observation="dict")
        for _ in range(3)
    )
    one.reset(seed=7), two.reset(seed=7), other.reset(seed=8)
    singles = [GraphPlacementEnv(graph) for graph in loaded]
    played: list[list[int]] = [[], []]
    for _ in range(90):
        graph = one.graph.copy()
        step, twin, _ = one.step([0, 1, 0]), two.step([0, 1, 0]), other.step([0, 1, 0])
        expect_same_steps([step], [twin])
        assert step[0]["graph"].ravel().tolist() == one.graph.tolist()
        for slot in np.flatnonzero(step[2]):
            played[0].append(int(graph[slot]))
            _, info = play_devices(singles[graph[slot]], [slot % 2] * singles[graph[slot]].num_groups)
            assert step[4]["final_info"]["outcome"][slot] == info["outcome"]
        played[1] += [int(g) for g in other.graph]
    assert set(played[0]) == set(played[1]) == {0, 1, 2, 3}


@pytest.mark.parametrize("observation", ["node", "dict"])
def test_threads_change_nothing(observation: str) -> None:
    loaded = [random_graph(seed, ops=10 + 7 * seed) for seed in range(3)]
    options: dict[str, Any] = {"observation": observation, "reward": "dense"}
    several = [GraphPlacementVectorEnv(7, loaded, threads=threads, **options) for threads in (1, 2, 9)]
    resets = [[envs.reset(seed=0)] for envs in several]
    rng = np.random.default_rng(0)
    steps = [rng.integers(-1, 3, 7) for _ in range(80)]
    games = [resets[i] + [envs.step(actions) for actions in steps] for i, envs in enumerate(several)]
    for game in games[1:]:
        expect_same_steps(game, games[0])


CONTINUE = """
import sys
import numpy as np
sys.path.insert(0, {root!r})
from tests.envs.test_placement_vector import OPTIONS, digest
from opgym.envs import GraphPlacementVectorEnv
envs = GraphPlacementVectorEnv(**OPTIONS[sys.argv[2]]())
with np.load(sys.argv[1]) as state:
    restored = envs.restore(state)
print(digest(envs, restored))
"""


def options(mode: AutoresetMode, **others: Any) -> dict[str, Any]:
    loaded = [random_graph(seed, ops=8 + 3 * seed, training=seed > 0) for seed in range(3)]
    return {"num_envs": 4, "graph": loaded, "autoreset_mode": mode, "draw": "episode", **others}


OPTIONS = {
    "next-step": partial(options, AutoresetMode.NEXT_STEP, reward="dense"),
    "same-step": partial(options, AutoresetMode.SAME_STEP, observation="dict"),
    "disabled": partial(options, AutoresetMode.DISABLED, cluster="3xP100:send", draw="slot"),
}


def digest(envs: GraphPlacementVectorEnv, restored: tuple[Any, Any], steps: int = 100) -> str:
    """Of everything that some steps with fixed actions return."""
    rng = np.random.default_rng(1)
    hashed = hashlib.sha256(repr(plain(restored)).encode())
    for _ in range(steps):
        hashed.update(repr(plain(envs.step(rng.integers(-1, 3, envs.num_envs)))).encode())
    return hashed.hexdigest()


def plain(value: Any) -> Any:
    """Arrays as bytes, all the way down."""
    if isinstance(value, dict):
        return {key: plain(value[key]) for key in sorted(value)}
    if isinstance(value, tuple):
        return tuple(map(plain, value))
    if isinstance(value, np.ndarray):
        return plain(tuple(value)) if value.dtype == object else (value.dtype, value.shape, value.tobytes())
    return value


@pytest.mark.parametrize("name", OPTIONS)
def test_a_state_goes_on_in_another_process(name: str, tmp_path: Path) -> None:
    envs, actions = GraphPlacementVectorEnv(**OPTIONS[name]()), np.array([0, 1, -1, 1])
    envs.reset(seed=3)
    for _ in range(40):
        observation, _, terminated, _, _ = envs.step(actions)
        if terminated.any() and not terminated.all():  # some are over, some are not
            break
    assert terminated.any()
    state = envs.state()
    np.savez(tmp_path / "state.npz", **state)
    expect_equal(envs.restore(state)[0], observation, "observation")
    expected = digest(envs, envs.restore(state))
    assert digest(envs, envs.restore(state)) == expected
    root = str(Path(__file__).parents[2])
    there = subprocess.run(
        [sys.executable, "-c", CONTINUE.format(root=root), str(tmp_path / "state.npz"), name],
        check=True,
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert there.stdout.strip() == expected


def test_states_of_others_are_refused() -> None:
    envs = GraphPlacementVectorEnv(2, mixed_support(), CLUSTER)
    envs.reset(seed=0)
    envs.step([0, 0]), envs.step([1, 2])
    state = envs.state()
    for change, message in (
        ({"decisions": np.array([0, 0, 0, 2])}, "group 1 may not be on device 0"),
        ({"decisions": np.array([0, 1, 0, 7])}, "group 1 may not be on device 7"),
        ({"over": np.array([True, False])}, r"has \[2, 2\] decisions of episodes; those .* have \[5, 5\]"),
        ({"decision_ptr": np.array([0, 6, 4])}, r"has \[6, -2\] decisions"),
        ({"graph": np.array([0, 1])}, r"about graphs \[0, 1\]; these environments have 0 to 0"),
        ({"generators": np.zeros((2, 5), np.uint64)}, r"'generators' of the state is uint64 \(2, 5\)"),
        ({"illegal_actions": np.zeros(2)}, "'illegal_actions' of the state is float64"),
        ({"decisions": np.zeros((1, 4), np.int64)}, r"'decisions' of the state is int64 \(1, 4\)"),
    ):
        with pytest.raises(InvalidSolutionError, match=message):
            envs.restore(state | change)
    with pytest.raises(InvalidSolutionError, match="'over' of the state is missing"):
        envs.restore({key: array for key, array in state.items() if key != "over"})
    envs.restore(state)  # after all that
    expect_equal(envs.state(), state, "state")


def test_a_state_goes_on_under_another_mode() -> None:
    """One that stopped at ends begins anew at the next step, whatever the mode."""
    envs = GraphPlacementVectorEnv(2, mixed_support(), CLUSTER)
    envs.reset(seed=0)
    for _ in range(5):
        terminated = envs.step([1, 1])[2]
    assert terminated.all()
    twin = GraphPlacementVectorEnv(2, mixed_support(), CLUSTER, autoreset_mode="SameStep")
    twin.restore(envs.state())
    expect_same_steps([envs.step([0, 0])], [twin.step([0, 0])])
    expect_same_steps([envs.step([0, 0])], [twin.step([0, 0])])


def test_disabled_episodes_stay_over_until_they_are_reset() -> None:
    envs = GraphPlacementVectorEnv(2, [mixed_support(), random_graph(0)], CLUSTER, autoreset_mode="Disabled")
    envs.reset(seed=0)
    for _ in range(5):
        last = envs.step([1, 1])
    again = envs.step([0, 1])
    assert last[2].tolist() == again[2].tolist() == [True, False]
    assert (last[1][0], again[1][0]) == (-last[4]["outcome"][0].value / GraphPlacementEnv(
        mixed_support(), CLUSTER).reference, 0.0)  # fmt: skip
    assert again[4]["outcome"].tolist() == [last[4]["outcome"][0], None]
    expect_equal(again[0][0], last[0][0], "observation")
    observation, infos = envs.reset(options={"reset_mask": np.array([True, False])})
    assert infos["_action_mask"].tolist() == [True, False]
    expect_equal(observation[1], again[0][1], "observation")
    assert not envs.step([1, 1])[2].any()


def test_what_never_changes_is_given_once() -> None:
    loaded = [make() for make in SHAPES.values()]
    envs = GraphPlacementVectorEnv(6, loaded, observation="dict", pad_to=(9, 11))
    observation, _ = envs.reset()
    assert set(observation) == {"placement", "devices", "current", "progress", "graph"}
    assert observation["graph"].ravel().tolist() == [0, 1, 2, 3, 4, 0]
    for i, graph in enumerate(loaded):
        single, _ = GraphPlacementEnv(graph, observation="dict", pad_to=(9, 11)).reset()
        for key in STATIC:
            expect_equal(envs.static[key][i], single[key], key)
    with pytest.raises(ValueError, match="read-only"):
        envs.static["nodes"][...] = 0


@pytest.mark.parametrize(("given", "error", "message"), [
    ({"mode": "refine"}, InvalidProblemError, "mode='refine' is not for native batches; use .*'sync'"),
    ({"mode": "one_shot"}, InvalidProblemError, "mode='one_shot' is not for native batches; use .*'sync'"),
    ({"mode": "sequentially"}, UnknownIdError, "did you mean sequential"),
    ({"observation": "graph"}, InvalidProblemError, "observation='graph' is not for native batches; use .*'sync'"),
    ({"render_mode": "ansi"}, InvalidProblemError, "render_mode='ansi' is not for native batches; use .*'sync'"),
    ({"observation": "nod"}, UnknownIdError, "did you mean node"),
    ({"reward": "sparse"}, UnknownIdError, "terminal"),
    ({"order": "random"}, UnknownIdError, "critical_path"),
    ({"draw": "random"}, UnknownIdError, "episode"),
    ({"autoreset_mode": "same"}, UnknownIdError, "SameStep"),
    ({"graph": []}, InvalidProblemError, "an empty sequence"),
    ({"num_envs": 0}, InvalidProblemError, "num_envs=0; expected a positive integer"),
    ({"threads": 0}, InvalidProblemError, "threads=0; expected a positive integer"),
    ({"pad_to": (3, 3), "observation": "dict"}, InvalidProblemError, "too small for this graph"),
    ({"pad_to": (300, 300)}, InvalidProblemError, "needs observation='dict'"),
    ({"groups": ["op", "op"]}, InvalidProblemError, "groups= for 2 graphs; there are 1"),
    ({"graph": [random_graph(0), random_graph(1)], "groups": [0] * 33}, InvalidProblemError, "there are 2"),
    ({"problem": PlacementProblem(random_graph(0), Cluster.parse("2xP100")), "graph": random_graph(1)},
     InvalidProblemError, "both given"),
    ({"problem": [PlacementProblem(random_graph(0), Cluster.parse(f"{n}xP100")) for n in (2, 3)]},
     InvalidProblemError, "clusters of 2 to 3 devices"),
])  # fmt: skip
def test_wrong_arguments_are_refused(given: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        GraphPlacementVectorEnv(**{"num_envs": 2, **given})
