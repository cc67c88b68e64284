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
