"""A short PPO run learns: better than the best of as many random placements."""

from typing import Any

import gymnasium
import numpy as np
import pytest

from opgym.datasets import example
from opgym.envs import GraphPlacementEnv
from opgym.problems import Placement

from .instances import mixed_support


@pytest.mark.slow
@pytest.mark.parametrize(("reward", "steps"), [("terminal", 16_384), ("dense", 8_192)])
def test_ppo_beats_random_at_equal_evaluations(reward: str, steps: int) -> None:
    ppo = pytest.importorskip("stable_baselines3").PPO
    torch = pytest.importorskip("torch")
    torch.set_num_threads(1)  # the same sums in the same order, and faster for such a small network

    values: list[float] = []

    class Recorded(GraphPlacementEnv):
        def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
            result = super().step(action)
            if result[2]:
                values.append(result[4]["outcome"].value)
            return result

    env = Recorded(example.rnn_train(steps=5), cluster="2xP100", reward=reward)
    assert 60 <= env.num_groups <= env.problem.graph.num_ops <= 65
    model = ppo(
        "MlpPolicy", env, n_steps=1024, batch_size=256, learning_rate=1e-3, gamma=1.0, seed=0, device="cpu"
    )
    model.learn(steps)
    evaluations, best_learned = len(values), min(values)
    assert evaluations == steps // env.num_groups

    rng = np.random.default_rng(0)
    random_values = [
        env.problem.evaluate(Placement(rng.integers(2, size=env.num_groups)[env.groups])).value
        for _ in range(evaluations)
    ]
    assert best_learned < 0.9 * min(random_values)

    observation, _ = env.reset(seed=0)
    over = False
    while not over:
        action, _ = model.predict(observation, deterministic=True)
        observation, _, over, _, info = env.step(action)
    assert info["outcome"].ok
    assert info["outcome"].value < 0.9 * min(random_values)  # one more evaluation: the policy itself


GAMES = [("sequential", "node"), ("sequential", "dict"), ("refine", "node"), ("one_shot", "dict")]


@pytest.mark.parametrize(("mode", "observation"), GAMES)
def test_stable_baselines3_trains_on_every_game(mode: str, observation: str) -> None:
    ppo = pytest.importorskip("stable_baselines3").PPO
    env = GraphPlacementEnv(example.load("two-branch"), mode=mode, observation=observation)
    policy = "MultiInputPolicy" if observation == "dict" else "MlpPolicy"
    model = ppo(policy, env, n_steps=32, batch_size=32, n_epochs=1, seed=0, device="cpu")
    model.learn(64)
    action, _ = model.predict(env.reset(seed=0)[0], deterministic=True)
    assert env.step(action)[4]["illegal_actions"] == 0


@pytest.mark.parametrize("mode", ["sequential", "one_shot"])
def test_maskable_ppo_never_acts_illegally(mode: str) -> None:
    ppo = pytest.importorskip("sb3_contrib").MaskablePPO
    env = gymnasium.make("GraphPlacement-v0", graph=mixed_support(), cluster="1xCPU+1xP100", mode=mode)
    replaced: list[int] = []

    class Counted(gymnasium.Wrapper[Any, Any, Any, Any]):
        def action_masks(self) -> np.ndarray:
            return np.asarray(self.env.get_wrapper_attr("action_masks")())

        def step(self, action: Any) -> Any:
            result = self.env.step(action)
            replaced.append(result[4]["illegal_actions"])
            return result

    policy = "MlpPolicy" if mode == "sequential" else "MultiInputPolicy"
    ppo(policy, Counted(env), n_steps=64, batch_size=64, n_epochs=1, seed=0, device="cpu").learn(128)
    assert len(replaced) == 128
    assert sum(replaced) == 0
