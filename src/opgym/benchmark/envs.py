"""How fast environments step: the native batch, Gymnasium's SyncVectorEnv, and the single environment.

All play the same episodes: actions are drawn once, uniformly among the legal ones, while the native batch plays; as
nothing in an episode is random, the others repeat them, and what is measured is steps and nothing else. Ends of
episodes, where the core's result is judged anew, and the resets after them are part of it.

Times are CPU times of the one thread that steps. Contestants take turns at the same episodes, and of every part of an
episode the best turn counts, so that what else a machine does decides little.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from .. import envs as _environments
from ..datasets import load

#: Wide, so that many ops are ready at once: an easier graph is faster.
GRAPH = "synthetic/ws?n={ops}&seed=0"
OPTIONS: dict[str, dict[str, Any]] = {"GraphPlacement-v0": {"cluster": "4xP100"}, "OpScheduling-v0": {}}
OPS, NUM_ENVS, TURNS = 1_000, 64, 6
#: Steps of a part of an episode.
PART = 100
#: Episodes that the single environment plays in a turn.
SINGLE_EPISODES = 8
#: SyncVectorEnv copies whole graphs where observations are dicts: it plays the beginning of each episode, in few turns.
DICT_STEPS, DICT_TURNS = 200, 3

BAR_SINGLE, BAR_RATIO = 30_000, 10
#: Of the faster environment, and of the others.
BARS_NATIVE = (1_000_000, 500_000)

_Player = Callable[[], list[float]]  # plays once, and returns the seconds of each part


@dataclass(frozen=True)
class Row:
    """One measured environment.

    Attributes:
        env: Its id.
        observation: ``"node"`` or ``"dict"``.
        num_envs: Slots of the native batch; 1: the single environment, through ``gymnasium.make`` without the passive
            checker.
        ops: Ops of the graph, and steps of an episode.
        steps_per_second: Decisions per second of CPU time, of all slots together; a reset is none.
        ratio_to_sync: That / the same of a SyncVectorEnv of as many single environments; ``None`` for the single one.
        sync_steps_per_second: Decisions per second of that SyncVectorEnv.
        bar_steps_per_second: The least that is asked for: of native batches, one must reach the first of
            ``BARS_NATIVE``, the other the second.
        bar_ratio: The least ratio that is asked for.
        within_bar: Whether the bars hold; ``None`` where there is none.
    """

    env: str
    observation: str
    num_envs: int
    ops: int
    steps_per_second: float
    ratio_to_sync: float | None = None
    sync_steps_per_second: float | None = None
    bar_steps_per_second: float | None = None
    bar_ratio: float | None = None
    within_bar: bool | None = None


def run(progress: Callable[[str], None] | None = None) -> list[dict[str, Any]]:
    """Measures every environment.

    Args:
        progress: Told the name of each case before it is measured.

    Returns:
        One dictionary per measured environment, with the fields of :class:`Row`.
    """
    _environments.register_environments()
    rows: list[Row] = []
    for env in OPTIONS:
        for observation, measure in (("node", _measure_node), ("dict", _measure_dict)):
            if progress is not None:
                progress(f"{env}, {observation}")
            rows += measure(env)
    return [asdict(row) for row in _with_bars(rows)]


def _measure_node(env: str) -> Iterator[Row]:
    native = _make_vec(env, "node", "vector_entry_point")
    actions = _draw_actions(native)
    single = gymnasium.make(env, disable_env_checker=True, **_options(env, "node"))
    sync = _make_vec(env, "node", "sync")
    players = [partial(_play_single, single, actions)]
    players += [partial(_play, envs, actions, len(actions)) for envs in (native, sync)]
    seconds = _best_of(TURNS, players)
    native_rate, sync_rate = (actions.size / seconds[i] for i in (1, 2))
    yield Row(env, "node", 1, OPS, actions[:, :SINGLE_EPISODES].size / seconds[0])
    yield Row(env, "node", NUM_ENVS, OPS, native_rate, native_rate / sync_rate, sync_rate)


def _measure_dict(env: str) -> Iterator[Row]:
    native, sync = (_make_vec(env, "dict", mode) for mode in ("vector_entry_point", "sync"))
    actions = _draw_actions(native)
    players = [partial(_play, native, actions, len(actions)), partial(_play, sync, actions, DICT_STEPS)]
    seconds = _best_of(DICT_TURNS, players)
    native_rate, sync_rate = actions.size / seconds[0], actions[:DICT_STEPS].size / seconds[1]
    yield Row(env, "dict", NUM_ENVS, OPS, native_rate, native_rate / sync_rate, sync_rate)


def _with_bars(rows: list[Row]) -> list[Row]:
    """The rows, with what is asked of them, and whether they do it."""
    native = [row for row in rows if row.observation == "node" and row.num_envs > 1]
    fastest = max(native, key=lambda row: row.steps_per_second)
    judged = []
    for row in rows:
        if row.observation == "node" and row.ratio_to_sync is not None:
            bar = BARS_NATIVE[0] if row is fastest else BARS_NATIVE[1]
            within = row.steps_per_second >= bar and row.ratio_to_sync >= BAR_RATIO
            row = replace(row, bar_steps_per_second=bar, bar_ratio=BAR_RATIO, within_bar=within)
        elif row.num_envs == 1:
            within = row.steps_per_second >= BAR_SINGLE
            row = replace(row, bar_steps_per_second=BAR_SINGLE, within_bar=within)
        judged.append(row)
    return judged


def _options(env: str, observation: str) -> dict[str, Any]:
    return OPTIONS[env] | {"graph": load(GRAPH.format(ops=OPS)), "observation": observation}


def _make_vec(env: str, observation: str, mode: str) -> gymnasium.vector.VectorEnv[Any, Any, Any]:
    return gymnasium.make_vec(env, NUM_ENVS, vectorization_mode=mode, **_options(env, observation))


def _draw_actions(envs: gymnasium.vector.VectorEnv[Any, Any, Any]) -> NDArray[np.int64]:
    """Legal actions of an episode in each slot, ``[steps, slots]``."""
    rng, actions = np.random.default_rng(0), []
    _, infos = envs.reset(seed=0)
    terminated = np.zeros(envs.num_envs, np.bool_)
    while not terminated.any():
        mask = infos["action_mask"]
        actions.append(np.argmax(rng.random(mask.shape) * mask, axis=1))
        _, _, terminated, _, infos = envs.step(actions[-1])
    assert terminated.all()
    assert not infos["illegal_actions"].any()
    return np.array(actions)


def _play(
    envs: gymnasium.vector.VectorEnv[Any, Any, Any], actions: NDArray[np.int64], steps: int
) -> list[float]:
    """Plays the beginning of an episode in each slot; a whole one with the step that begins the next."""
    envs.reset(seed=0)
    seconds = []
    for first in range(0, min(steps, len(actions)), PART):
        part = actions[first : first + PART]
        begin = time.thread_time()
        for of_all in part:
            _, _, terminated, _, _ = envs.step(of_all)
        if first + PART >= len(actions):
            assert terminated.all()
            envs.step(of_all)
        seconds.append(time.thread_time() - begin)
    return seconds


def _play_single(env: gymnasium.Env[Any, Any], actions: NDArray[np.int64]) -> list[float]:
    """Plays whole episodes, those of some slots."""
    seconds = []
    for episode in actions[:, :SINGLE_EPISODES].T.tolist():
        begin = time.thread_time()
        env.reset(seed=0)
        for action in episode:
            _, _, terminated, _, _ = env.step(action)
        seconds.append(time.thread_time() - begin)
        assert terminated
    return seconds


def _best_of(turns: int, players: Sequence[_Player]) -> list[float]:
    """The seconds of each player: of each part the least of several turns."""
    seconds = [[play() for play in players] for _ in range(turns)]
    return [float(np.min(of_one, axis=0).sum()) for of_one in zip(*seconds, strict=True)]
