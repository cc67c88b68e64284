"""What holds for every registered environment, whatever it decides."""

import inspect
import pickle
import subprocess
import sys
import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env, data_equivalence

import opgym.envs

IDS = sorted(opgym.envs.ENTRY_POINTS)

#: The headings of Gymnasium's own environments, in their order.
OUTLINE = (
    "Description",
    "Action Space",
    "Observation Space",
    "Rewards",
    "Starting State",
    "Episode End",
    "Information",
    "Arguments",
    "References",
    "Version History",
)


@pytest.fixture(params=IDS)
def environment_id(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_make_without_arguments_passes_the_checker(environment_id: str) -> None:
    env = gymnasium.make(environment_id)
    assert env.spec is not None
    assert env.spec.nondeterministic is False
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(env.unwrapped)


def test_docstring_has_the_outline(environment_id: str) -> None:
    doc = inspect.getdoc(type(gymnasium.make(environment_id).unwrapped)) or ""
    headings = [line[3:] for line in doc.splitlines() if line.startswith("## ")]
    assert headings == list(OUTLINE)
    assert f"* {environment_id.split('-')[-1]}:" in doc  # the version history knows the current version


def test_docstring_names_every_argument(environment_id: str) -> None:
    env_class = type(gymnasium.make(environment_id).unwrapped)
    doc = inspect.getdoc(env_class) or ""
    for name in list(inspect.signature(env_class).parameters):
        assert f"| `{name}` |" in doc


def test_make_by_module_prefix(environment_id: str) -> None:
    code = f"import gymnasium; gymnasium.make('opgym:{environment_id}').reset(seed=0)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_import_registers_and_loads_nothing_heavy(environment_id: str) -> None:
    code = (
        "import sys, gymnasium, opgym\n"
        f"assert {environment_id!r} in gymnasium.registry\n"
        "heavy = {'torch', 'tvm', 'wandb', 'onnx', 'matplotlib', 'scipy', 'pymetis'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_registering_twice_changes_nothing() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        opgym.envs.register_environments()


def test_two_environments_with_one_seed_are_equal(environment_id: str) -> None:
    one, two = gymnasium.make(environment_id), gymnasium.make(environment_id)
    one.action_space.seed(5)
    assert data_equivalence(one.reset(seed=3), two.reset(seed=3), exact=True)
    for _ in range(300):
        action = one.action_space.sample()
        step = one.step(action)
        assert data_equivalence(step, two.step(action), exact=True)
        if step[2]:
            assert data_equivalence(one.reset(), two.reset(), exact=True)


def test_pickled_environment_continues_alike(environment_id: str) -> None:
    env = gymnasium.make(environment_id).unwrapped
    env.reset(seed=3)
    env.step(1)
    twin = pickle.loads(pickle.dumps(env))
    for action in (0, 1, 1, 0):
        assert data_equivalence(env.step(action), twin.step(action), exact=True)


#: What no environment takes for an action, whatever it decides.
NO_ACTIONS = [
    -1,
    10**6,
    2.0,
    np.float32(0),
    None,
    "0",
    True,
    [0],
    2**70,
    float("nan"),
    np.array([]),
    np.array([0, 1]),
]


@pytest.mark.parametrize("action", NO_ACTIONS, ids=repr)
def test_illegal_actions_count_and_take_the_first_legal_one(environment_id: str, action: object) -> None:
    env, twin = (gymnasium.make(environment_id).unwrapped for _ in range(2))
    env.reset(seed=0), twin.reset(seed=0)
    first = int(np.flatnonzero(twin.action_masks())[0])
    got, expected = env.step(action), twin.step(first)
    assert (got[4].pop("illegal_actions"), expected[4].pop("illegal_actions")) == (1, 0)
    assert data_equivalence(got, expected, exact=True)


@pytest.mark.parametrize(
    "action", [0, np.int64(0), np.uint8(0), np.array(0), np.array([0]), np.array([[0]])], ids=repr
)
def test_integers_of_any_kind_are_actions(environment_id: str, action: object) -> None:
    env = gymnasium.make(environment_id).unwrapped
    env.reset(seed=0)
    assert env.action_masks()[0]
    assert env.step(action)[4]["illegal_actions"] == 0


@pytest.mark.parametrize("action", [-1, 2, 2.0, np.int64(0), np.array([3]), None, [0, 1]], ids=repr)
def test_step_after_the_end_changes_nothing(environment_id: str, action: object) -> None:
    env = gymnasium.make(environment_id).unwrapped
    env.reset(seed=0)
    terminated = False
    while not terminated:
        last, _, terminated, _, info = env.step(0)
    with pytest.warns(UserWarning, match="after the end"):
        observation, reward, terminated, truncated, again = env.step(action)
    assert (reward, terminated, truncated) == (0.0, True, False)
    assert data_equivalence((observation, again), (last, info), exact=True)
    assert info["action_mask"].all()
    assert env.reset(seed=0)[1]["illegal_actions"] == 0


def test_masks_are_of_the_current_state(environment_id: str) -> None:
    env = gymnasium.make(environment_id).unwrapped
    env.action_space.seed(1)
    _, info = env.reset(seed=0)
    terminated = False
    while not terminated:
        mask = info["action_mask"]
        assert mask.dtype == np.int8
        assert mask.shape == (env.action_space.n,)
        assert mask.any()
        assert env.action_masks().dtype == np.bool_
        assert np.array_equal(env.action_masks(), mask)
        before = info["illegal_actions"]
        action = int(env.action_space.sample(mask))
        mask[:] = 0  # the caller's copy
        _, _, terminated, _, info = env.step(action)
        assert info["illegal_actions"] == before


def test_nothing_before_reset(environment_id: str) -> None:
    env = gymnasium.make(environment_id, render_mode="ansi").unwrapped
    for call in (lambda: env.step(0), env.render, env.fork, env.action_masks):
        with pytest.raises(gymnasium.error.ResetNeeded, match="reset"):
            call()


def test_restored_states_replay(environment_id: str) -> None:
    env = gymnasium.make(environment_id).unwrapped
    env.action_space.seed(0)
    env.reset(seed=0)
    for _ in range(5):
        seen = env.step(env.action_space.sample())
    state, values = env.fork(), set()
    for _ in range(3):  # each time another future, then back
        assert data_equivalence(env.restore(state), (seen[0], seen[4]), exact=True)
        terminated = False
        while not terminated:
            _, _, terminated, _, info = env.step(env.action_space.sample())
        values.add(info["outcome"].value)
    assert len(values) > 1


def test_dense_and_terminal_rewards_have_one_return(environment_id: str) -> None:
    returns = {}
    for reward in ("dense", "terminal"):
        env = gymnasium.make(environment_id, reward=reward).unwrapped
        env.action_space.seed(3)
        env.reset(seed=0)
        rewards, terminated = [], False
        while not terminated:
            _, received, terminated, _, info = env.step(env.action_space.sample())
            rewards.append(received)
        returns[reward] = sum(rewards)
        assert np.count_nonzero(rewards) > 1 if reward == "dense" else not any(rewards[:-1])
        assert sum(rewards) == pytest.approx(-info["outcome"].value / env.reference, rel=1e-12)
    assert returns["dense"] == pytest.approx(returns["terminal"], rel=1e-12)


def test_without_a_render_mode_render_warns(environment_id: str) -> None:
    env = gymnasium.make(environment_id).unwrapped
    env.reset()
    with pytest.warns(UserWarning, match="render_mode"):
        assert env.render() is None


def test_every_render_mode(environment_id: str) -> None:
    for mode in gymnasium.make(environment_id).unwrapped.metadata["render_modes"]:
        env = gymnasium.make(environment_id, render_mode=mode)
        env.reset(seed=0)
        frame = env.render()
        if mode == "rgb_array":
            assert isinstance(frame, np.ndarray)
            assert frame.dtype == np.uint8
            assert frame.ndim == 3
        else:
            assert isinstance(frame, str)
