"""MaskablePPO trains on OpScheduling-v0, for long on a large graph, and learns."""

from typing import Any

import gymnasium
import numpy as np
import pytest

import opgym  # noqa: F401, registers the environments


class Counted(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Notes how many actions were replaced and how each episode ended."""

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        super().__init__(env)
        self.steps = self.replaced = 0
        self.peaks: list[int] = []

    def action_masks(self) -> np.ndarray:
        return np.asarray(self.env.get_wrapper_attr("action_masks")())

    def step(self, action: Any) -> Any:
        result = self.env.step(action)
        self.steps += 1
        self.replaced = max(self.replaced, result[4]["illegal_actions"])
        if result[2]:
            self.peaks.append(result[4]["peak_bytes"])
        return result


def train(envs: list[Counted], steps: int, policy: str = "MlpPolicy", **options: Any) -> Any:
    """Trains on several environments side by side, so that the network is asked about all at once."""
    ppo = pytest.importorskip("sb3_contrib").MaskablePPO
    vector = pytest.importorskip("stable_baselines3.common.vec_env").DummyVecEnv(
        [lambda e=env: e for env in envs]
    )
    pytest.importorskip("torch").set_num_threads(
        1
    )  # the same sums in the same order; such small networks gain
    return ppo(policy, vector, gamma=1.0, seed=0, device="cpu", **options).learn(steps)


def make(count: int, **options: Any) -> list[Counted]:
    return [Counted(gymnasium.make("OpScheduling-v0", **options)) for _ in range(count)]


@pytest.mark.slow
def test_maskable_ppo_trains_for_100_000_steps_on_2_000_ops() -> None:
    envs = make(10, graph="synthetic/layered?n=2000")
    model = train(
        envs, 100_000, n_steps=1_000, batch_size=1_000, n_epochs=2, policy_kwargs={"net_arch": [32, 32]}
    )
    assert model.num_timesteps == sum(env.steps for env in envs) == 100_000
    for env in envs:
        assert env.replaced == 0
        assert len(env.peaks) == 5
    assert all(np.isfinite(parameters.detach().numpy()).all() for parameters in model.policy.parameters())


@pytest.mark.parametrize(("action", "observation"), [("slot", "node"), ("slot", "dict"), ("op", "dict")])
def test_maskable_ppo_never_acts_illegally(action: str, observation: str) -> None:
    ops, policy = (500, "MlpPolicy") if observation == "node" else (50, "MultiInputPolicy")
    envs = make(4, graph=f"synthetic/layered?n={ops}", action=action, observation=observation)
    train(envs, 4 * ops, policy, n_steps=ops, batch_size=ops, n_epochs=1)
    for env in envs:
        assert (env.steps, env.replaced, len(env.peaks)) == (ops, 0, 1)


@pytest.mark.slow
def test_maskable_ppo_learns_to_do_better_than_random() -> None:
    envs = make(10, graph="synthetic/ws?n=60&seed=1")
    model = train(envs, 24_000, n_steps=120, batch_size=200, n_epochs=5, learning_rate=1e-3)
    untrained = np.mean([env.peaks[:2] for env in envs])
    env = envs[0]
    observation, info, over = *env.reset(seed=0), False
    while not over:
        action, _ = model.predict(
            observation, action_masks=info["action_mask"].astype(bool), deterministic=True
        )
        observation, _, over, _, info = env.step(action)
    assert info["peak_bytes"] < 0.9 * untrained
