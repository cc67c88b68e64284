"""The adapter does what Stable-Baselines3's own DummyVecEnv does with the same environments."""

from typing import Any

import gymnasium
import numpy as np
import pytest

pytest.importorskip("stable_baselines3")

from gymnasium.vector import AutoresetMode, SyncVectorEnv
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv

import opgym  # noqa: F401, registers the environments
from opgym.agents.sb3 import vec_env
from opgym.agents.sb3.environments import make_vector
from opgym.agents.sb3.replay import Replayable
from opgym.agents.sb3.vec_env import GymnasiumVecEnv
from opgym.errors import InvalidProblemError, InvalidSolutionError

from .problems import placement, scheduling

SLOTS = 3
#: Environment, problem, observation, options; the first four are native batches, the others single environments.
GAMES = {
    "placement": ("GraphPlacement-v0", placement, "node", {}),
    "dense placement": ("GraphPlacement-v0", placement, "node", {"reward": "dense", "groups": "metis:5"}),
    "scheduling": ("OpScheduling-v0", scheduling, "node", {"slots": 4}),
    "all ops": ("OpScheduling-v0", scheduling, "dict", {"action": "op"}),
    "refine": ("GraphPlacement-v0", placement, "node", {"mode": "refine", "initial": "random", "steps": 5}),
    "refine, whole": ("GraphPlacement-v0", placement, "dict", {"mode": "refine", "initial": "random"}),
    "one shot": ("GraphPlacement-v0", placement, "dict", {"mode": "one_shot"}),
}
NATIVE = list(GAMES)[:4]


def adapter(game: str, slots: int = SLOTS) -> GymnasiumVecEnv:
    _, problem, observation, options = GAMES[game]
    return GymnasiumVecEnv(make_vector([problem()], observation, options, slots))


def dummy(game: str) -> DummyVecEnv:
    name, problem, observation, options = GAMES[game]
    return DummyVecEnv(
        [
            lambda: Monitor(gymnasium.make(name, problem=problem(), observation=observation, **options))
            for _ in range(SLOTS)
        ]
    )


def equal(ours: Any, theirs: Any) -> bool:
    if isinstance(theirs, dict):  # a native batch gives what never changes once, not in every observation
        return set(ours) - {"graph"} <= set(theirs) and all(
            equal(ours[key], theirs[key]) for key in ours if key != "graph"
        )
    return type(ours) is type(theirs) and ours.dtype == theirs.dtype and np.array_equal(ours, theirs)


def random_actions(env: GymnasiumVecEnv) -> np.ndarray:
    return np.array([env.action_space.sample() for _ in range(env.num_envs)])


@pytest.mark.parametrize("game", GAMES)
def test_steps_like_dummy_vec_env(game):
    ours, theirs = adapter(game), dummy(game)
    assert isinstance(ours.vector, SyncVectorEnv) == (game not in NATIVE)
    assert ours.action_space == theirs.action_space
    ours.seed(5)
    theirs.seed(5)
    ours.action_space.seed(1)
    assert equal(ours.reset(), theirs.reset())
    ended = 0
    for _ in range(45):
        assert np.array_equal(ours.env_method("action_masks"), theirs.env_method("action_masks"))
        actions = random_actions(ours)
        observation, reward, done, infos = ours.step(actions)
        expected_observation, expected_reward, expected_done, expected_infos = theirs.step(actions)
        assert equal(observation, expected_observation)
        assert reward.dtype == np.float32
        assert np.array_equal(reward, expected_reward)
        assert done.dtype == bool
        assert np.array_equal(done, expected_done)
        assert ours.ended == [(slot, infos[slot]) for slot in range(SLOTS) if done[slot]]
        for slot in range(SLOTS):
            if not done[slot]:
                assert infos[slot] == {}
                continue
            ended += 1
            info, expected = infos[slot], expected_infos[slot]
            assert equal(info["terminal_observation"], expected["terminal_observation"])
            assert info["TimeLimit.truncated"] is False
            assert info["episode"]["l"] == expected["episode"]["l"]
            assert info["episode"]["r"] == pytest.approx(expected["episode"]["r"], abs=1e-6)  # rounded there
            assert info["episode"]["t"] >= 0
            assert info["outcome"] == expected["outcome"]
            assert info["illegal_actions"] == expected["illegal_actions"]
            assert np.array_equal(
                ours.reset_infos[slot]["action_mask"], theirs.reset_infos[slot]["action_mask"]
            )
    assert ended >= 2 * SLOTS
    assert ours.seconds > 0
    ours.close()


@pytest.mark.parametrize("game", GAMES)
def test_goes_on_from_its_state_in_another_adapter(game):
    ours, other = adapter(game), adapter(game)
    ours.seed(3)
    ours.action_space.seed(2)
    ours.reset()
    for _ in range(23):
        observation, *_ = ours.step(random_actions(ours))
    state = ours.state()
    restored = other.restore(state)
    assert (
        all(np.array_equal(restored[k], observation[k]) for k in restored)
        if isinstance(restored, dict)
        else np.array_equal(restored, observation)
    )
    for _ in range(30):
        assert np.array_equal(ours.action_masks(), other.action_masks())
        actions = random_actions(ours)
        a, b = ours.step(actions), other.step(actions)
        assert equal(a[0], b[0])
        assert np.array_equal(a[1], b[1])
        assert np.array_equal(a[2], b[2])
        assert [(i, e["episode"]["r"], e["episode"]["l"], e["outcome"]) for i, e in ours.ended] == [
            (i, e["episode"]["r"], e["episode"]["l"], e["outcome"]) for i, e in other.ended
        ]


@pytest.mark.parametrize("game", ["placement", "refine"])
def test_a_state_of_other_slots_is_refused(game):
    ours, other = adapter(game), adapter(game, slots=2)
    ours.reset()
    with pytest.raises(InvalidSolutionError, match="3 slots; these environments have 2"):
        other.restore(ours.state())


def test_a_state_of_too_many_actions_is_refused():
    ours, other = adapter("refine"), adapter("refine, whole")
    other.reset()
    for _ in range(7):
        other.step(np.zeros(SLOTS, np.int64))
    with pytest.raises(InvalidSolutionError, match="more actions than the episode has steps"):
        ours.restore(other.state())


def test_another_time_of_resetting_is_refused():
    for mode in (AutoresetMode.NEXT_STEP, AutoresetMode.DISABLED):
        vector = gymnasium.make_vec(
            "OpScheduling-v0", num_envs=2, vectorization_mode="vector_entry_point", autoreset_mode=mode
        )
        with pytest.raises(InvalidProblemError, match="needs autoreset_mode='SameStep'"):
            GymnasiumVecEnv(vector)


def test_all_of_the_time_spent_here_is_counted(monkeypatch):
    """By a clock that goes on only where it is told to: in the environment, and in what is made of its infos."""
    now = [0.0]
    monkeypatch.setattr(vec_env.time, "perf_counter", lambda: now[0])

    def slow(call, seconds):
        def called(*given, **named):
            now[0] += seconds
            return call(*given, **named)

        return called

    env = adapter("refine", slots=2)
    env.vector.step, env.vector.reset = slow(env.vector.step, 1.0), slow(env.vector.reset, 10.0)
    monkeypatch.setattr(vec_env, "_of_slot", slow(vec_env._of_slot, 100.0))
    env.reset()
    assert env.seconds == now[0] == 210.0  # infos of both slots
    for _ in range(5):  # an episode of both: at its end, infos of its last step and of the first of the next
        now[0] += 0.5  # elsewhere
        env.step(np.zeros(2, np.int64))
    assert env.seconds == now[0] - 2.5 == 615.0
    env.last_infos = Slow(env.last_infos, slow(lambda: None, 1000.0))
    env.env_method("action_masks")
    assert env.seconds == 1615.0


class Slow(dict[str, Any]):
    """Infos that take their time."""

    def __init__(self, infos, wait):
        super().__init__(infos)
        self.wait = wait

    def __getitem__(self, key):
        self.wait()
        return super().__getitem__(key)


class Truncated(gymnasium.Env[Any, Any]):
    """Ends after two steps: the first episode because time is up."""

    observation_space = gymnasium.spaces.Box(-9, 9, (1,))
    action_space = gymnasium.spaces.Discrete(2)
    episodes = time = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.time, self.episodes = 0, self.episodes + 1
        return np.zeros(1, np.float32), {"action_mask": np.ones(2, np.int8)}

    def step(self, action):
        self.time += 1
        over, first = self.time == 2, self.episodes == 1
        info = {"action_mask": np.ones(2, np.int8)}
        return np.full(1, self.time, np.float32), 1.0, over and not first, over and first, info


def test_an_end_by_time_is_told_from_a_real_one():
    env = GymnasiumVecEnv(SyncVectorEnv([Truncated], autoreset_mode=AutoresetMode.SAME_STEP))
    env.reset()
    infos = [env.step(np.zeros(1, int))[3][0] for _ in range(4)]
    assert [info.get("TimeLimit.truncated") for info in infos] == [None, True, None, False]
    assert infos[1]["terminal_observation"].tolist() == [2.0]
    with pytest.raises(InvalidProblemError, match="no state\\(\\) that a checkpoint could hold"):
        env.state()


def test_attributes_and_methods_of_single_environments():
    env = adapter("refine")
    env.reset()
    assert env.get_attr("num_groups") == [16] * SLOTS
    assert env.get_attr("mode", 1) == ["refine"]
    assert [len(device) for device in env.get_attr("device", [0, 2])] == [16, 16]
    assert [mask.tolist() for mask in env.env_method("action_masks", indices=[1])] == [[True, True]]
    assert len(env.env_method("fork")) == SLOTS
    env.set_attr("note", 7, indices=1)
    assert env.get_attr("note", 1) == [7]
    assert env.env_is_wrapped(Replayable) == [True] * SLOTS
    assert env.has_attr("action_masks")
    assert not env.has_attr("no_such_thing")
    assert env.render_mode is None


def test_a_batch_says_that_it_has_no_environments():
    env = adapter("placement")
    env.reset()
    assert env.get_attr("num_envs", [0, 1]) == [SLOTS, SLOTS]
    assert env.env_is_wrapped(Replayable) == [False] * SLOTS
    with pytest.raises(InvalidProblemError, match="no attribute 'note' to set"):
        env.set_attr("note", 7)
    with pytest.raises(InvalidProblemError, match="no method 'fork' to call"):
        env.env_method("fork")
    with pytest.raises(AttributeError):
        env.get_attr("no_such_thing")


def test_episodes_say_which_graph_they_are_about():
    graphs = [scheduling(n) for n in (8, 11, 14)]
    env = GymnasiumVecEnv(
        make_vector(graphs, "node", {}, 2)
    )  # more graphs than slots: each episode draws one
    env.seed(0)
    env.reset()
    seen = set()
    for _ in range(120):
        env.step(np.zeros(2, np.int64))
        for _, info in env.ended:
            assert info["episode"]["l"] == len(info["order"]) == len(graphs[info["graph"]].ops)
            seen.add(info["graph"])
    assert seen == {0, 1, 2}
