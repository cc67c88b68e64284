"""Options of learners: impossible ones are refused where they are given, with what is possible."""

import dataclasses
import re
import warnings

import numpy as np
import pytest

pytest.importorskip("stable_baselines3")

from opgym import agents
from opgym.agents.registry import solver_class
from opgym.agents.sb3 import environments
from opgym.agents.sb3.base import SB3Learner
from opgym.agents.sb3.building import make_algorithm, make_environment
from opgym.agents.sb3.horizon import Horizon
from opgym.agents.sb3.on_policy import rollout_steps
from opgym.errors import InvalidProblemError, UnknownIdError
from opgym.problems import Budget

from .problems import placement, scheduling
from .test_solving import NAMES, QUICK


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("ppo", {"learning_rates": 1}, "did you mean learning_rate"),
        ("ppo", {"learned": 1}, "unknown option"),
        ("ppo", {"policy": "graph"}, "unknown policy 'graph'"),
        ("ppo", {"learning_rate": 0}, "learning_rate = 0; expected more than 0"),
        ("ppo", {"learning_rate": float("nan")}, "learning_rate = nan"),
        ("ppo", {"gamma": 1.01}, "gamma = 1.01; expected 0 to 1"),
        ("ppo", {"num_envs": 2.0}, "num_envs = 2.0; expected a whole number"),
        ("ppo", {"net_arch": "64"}, "net_arch = '64'; expected a whole number"),
        ("ppo", {"net_arch": (64, 0)}, "net_arch = 0"),
        ("ppo", {"batch_size": 1}, "batch_size = 1; expected a whole number, 2 or more"),
        ("ppo", {"n_epochs": 0}, "n_epochs = 0"),
        ("ppo", {"clip_range": 0.0}, "clip_range = 0.0; expected more than 0"),
        ("ppo", {"target_kl": -1}, "target_kl = -1"),
        ("ppo", {"anneal": 1}, "anneal = 1; expected true or false"),
        ("ppo", {"device": 0}, "device = 0"),
        ("ppo", {"n_steps": 1, "num_envs": 1}, "expected 2 or more"),
        ("a2c", {"gae_lambda": 2}, "gae_lambda = 2"),
        ("a2c", {"ent_coef": -0.1}, "ent_coef = -0.1"),
        ("a2c", {"use_rms_prop": "yes"}, "use_rms_prop = 'yes'"),
        ("dqn", {"buffer_size": 0}, "buffer_size = 0"),
        ("dqn", {"exploration_fraction": 0.0}, "exploration_fraction = 0.0"),
        ("dqn", {"exploration_final_eps": 1.5}, "exploration_final_eps = 1.5"),
        ("dqn", {"environment": {"mode": "one_shot"}}, "takes one choice per step.*use 'maskable-ppo'"),
        ("ppo", {"environment": "metis:64"}, "environment = 'metis:64'; expected options"),
        ("ppo", {"environment": {"group": "op"}}, "did you mean groups"),
        ("ppo", {"environment": {"observation": "dict"}}, "unknown option of environments 'observation'"),
        ("ppo", {"environment": {"graph": "example/two-branch"}}, "unknown option of environments 'graph'"),
        ("ppo", {"environment": {"initial": object()}}, "expected text, numbers or lists"),
    ],
)
def test_an_impossible_option_is_refused(name, options, message):
    with pytest.raises((InvalidProblemError, UnknownIdError), match=message):
        agents.make(name, **options)


def test_an_option_of_the_other_environment_is_refused_for_this_one():
    learner = agents.make("ppo", environment={"slots": 8})
    with pytest.raises(UnknownIdError, match="unknown option of GraphPlacement-v0 'slots'"):
        learner.solve(placement(), Budget(evaluations=1))


def test_a_value_that_the_environment_refuses():
    learner = agents.make("ppo", environment={"mode": "one_shot"})
    with pytest.raises(InvalidProblemError, match="use 'dict'"):
        learner.solve(placement(), Budget(evaluations=1))
    learner = agents.make("maskable-ppo", policy="dict", environment={"action": "op"})
    with pytest.raises(InvalidProblemError, match='the graph policy needs observation="dict"'):
        learner.solve(scheduling(), Budget(evaluations=1))


def test_options_never_change():
    environment = {"groups": np.zeros(16, np.int64)}
    learner = agents.make("ppo", environment=environment, net_arch=[8, 8])
    environment["groups"][0] = 1
    assert learner.environment == {"groups": (0,) * 16}
    assert learner.net_arch == (8, 8)
    assert hash(learner) == hash(agents.make("ppo", environment={"groups": [0] * 16}, net_arch=(8, 8)))
    assert learner.solve(placement(), Budget(evaluations=2)).evaluations == 2


@pytest.mark.parametrize(
    ("n_steps", "batch_size", "num_envs", "steps", "expected"),
    [
        (128, 256, 8, None, (128, 256)),
        (128, 256, 8, 512, (64, 256)),
        (128, 256, 8, 500, (64, 256)),  # full minibatches
        (128, 256, 8, 100, (13, 104)),  # one minibatch
        (128, 256, 3, None, (256, 256)),  # 3 * 128 is no multiple of 256
        (100, 64, 6, None, (128, 64)),
        (128, 256, 1, 1, (2, 2)),
        (1, 256, 4, 1, (1, 4)),
    ],
)
def test_a_rollout_is_made_of_full_minibatches_and_no_longer_than_the_training(
    n_steps, batch_size, num_envs, steps, expected
):
    found = rollout_steps(n_steps, batch_size, num_envs, steps)
    assert found == expected
    assert found[0] * num_envs % found[1] == 0


def algorithm_of(learner: SB3Learner, horizon: Horizon):
    vector = make_environment(learner, [placement()], learner.num_envs)
    return make_algorithm(learner, vector, horizon, 0, None)


def test_options_reach_the_algorithm():
    left = 1.0
    horizon = Horizon(lambda: left)
    ppo = algorithm_of(
        agents.make("ppo", anneal=True, learning_rate=0.01, clip_range=0.4, gamma=0.9, gae_lambda=0.8, n_epochs=3,
                    batch_size=32, n_steps=16, ent_coef=0.02, vf_coef=0.3, max_grad_norm=0.7, target_kl=0.05,
                    normalize_advantage=False, net_arch=(5,), num_envs=4), horizon,
    )  # fmt: skip
    assert (ppo.gamma, ppo.gae_lambda, ppo.n_epochs, ppo.batch_size, ppo.n_steps) == (0.9, 0.8, 3, 32, 16)
    assert (ppo.ent_coef, ppo.vf_coef, ppo.max_grad_norm, ppo.target_kl) == (0.02, 0.3, 0.7, 0.05)
    assert (ppo.normalize_advantage, ppo.n_envs, ppo.policy.net_arch) == (False, 4, [5])
    assert (ppo.lr_schedule(1.0), ppo.clip_range(1.0)) == (0.01, 0.4)
    left = 0.25
    assert (ppo.lr_schedule(1.0), ppo.clip_range(1.0)) == (0.0025, 0.1)
    constant = algorithm_of(agents.make("maskable-ppo", learning_rate=0.01, clip_range=0.4), horizon)
    assert (constant.lr_schedule(1.0), constant.clip_range(1.0)) == (0.01, 0.4)
    assert constant.gamma == 1.0


def test_exploration_falls_over_its_share_of_the_training():
    left = 1.0
    dqn = algorithm_of(
        agents.make("dqn", exploration_initial_eps=0.9, exploration_final_eps=0.1, exploration_fraction=0.5),
        Horizon(lambda: left),
    )
    for share_left, rate in ((1.0, 0.9), (0.75, 0.5), (0.5, 0.1), (0.1, 0.1)):
        left = share_left
        assert dqn.exploration_schedule(1.0) == pytest.approx(rate)


def test_a_buffer_of_gigabytes_is_announced_with_its_bytes(monkeypatch):
    monkeypatch.setattr(environments, "LARGE_BUFFER_BYTES", 6_000)
    learner = agents.make("ppo", **QUICK["ppo"])
    with pytest.warns(
        UserWarning, match=r"has 212 bytes: the buffer of 32 steps takes 6,784 bytes .*metis:64"
    ):
        learner.fit([placement()], steps=32)
    with warnings.catch_warnings(action="error"):
        learner.fit([placement()], steps=24)  # no rollout is longer than the training
    dqn = agents.make("dqn", **QUICK["dqn"])
    with pytest.warns(
        UserWarning, match="the buffer of 200 steps takes 84,800 bytes"
    ):  # before and after each step
        dqn.fit([placement()], steps=400)


@pytest.mark.parametrize("name", NAMES)
def test_the_docstring_lists_every_option_once(name):
    learner = solver_class(name)
    listed = re.findall(r"^    (\w+): ", learner.__doc__.partition("Attributes:\n")[2], re.MULTILINE)
    assert sorted(listed) == sorted(f.name for f in dataclasses.fields(learner) if f.init)
    assert "every episode is one evaluation" in learner.__doc__
