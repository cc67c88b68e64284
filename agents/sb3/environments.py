"""The environment in which a learner meets a problem."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv

from ...envs import (
    ENTRY_POINTS,
    PLACEMENT,
    SCHEDULING,
    GraphPlacementEnv,
    GraphPlacementVectorEnv,
    OpSchedulingEnv,
    OpSchedulingVectorEnv,
    register_environments,
)
from ...errors import InvalidProblemError, unknown_id
from ...problems import AnyProblem, PlacementProblem, SchedulingProblem

#: Arguments of environments that follow from the problem, or from other options of a learner.
_NOT_OPTIONS = ("graph", "cluster", "objective", "costs", "problem", "observation", "render_mode")
#: A buffer of this many bytes is worth a warning before it is filled.
LARGE_BUFFER_BYTES = 2_000_000_000


def environment_id(problem: AnyProblem) -> str:
    """Id of the environment that poses a problem.

    Raises:
        InvalidProblemError: There is none.
    """
    for problem_type, name in ((PlacementProblem, PLACEMENT), (SchedulingProblem, SCHEDULING)):
        if isinstance(problem, problem_type):
            return name
    raise InvalidProblemError(f"no environment poses a {type(problem).__name__}")


def check_options(options: Mapping[str, Any], name: str | None = None) -> None:
    """Refuses options that no environment has.

    Args:
        options: By name.
        name: Id of the environment; ``None``: one of them has each.

    Raises:
        UnknownIdError: With the nearest ones.
    """
    known = _options_of(name) if name else sorted({o for each in ENTRY_POINTS for o in _options_of(each)})
    for option in options:
        if option not in known:
            raise unknown_id(f"option of {name or 'environments'}", option, known)


def _options_of(name: str) -> list[str]:
    env: Any = {PLACEMENT: GraphPlacementEnv, SCHEDULING: OpSchedulingEnv}[name]
    return [option for option in inspect.signature(env).parameters if option not in _NOT_OPTIONS]


def make_vector(
    problems: Sequence[AnyProblem], observation: str, options: Mapping[str, Any], num_envs: int
) -> VectorEnv[Any, Any, Any]:
    """Episodes about problems, side by side: a native batch, or single environments where there is none.

    Slot i is about problem i mod n; where there are more problems than slots, every episode draws one.

    Args:
        problems: All of one type.
        observation: ``"node"`` or ``"dict"``.
        options: Of the environment.
        num_envs: Slots.

    Raises:
        InvalidProblemError: Problems of several types or spaces, or more of them than slots where these are single
            environments.
        UnknownIdError: An unknown option.
    """
    register_environments()
    name = environment_id(problems[0])
    for problem in problems:
        if environment_id(problem) != name:
            raise InvalidProblemError(
                f"one training is about problems of one type; got {type(problems[0]).__name__} and "
                f"{type(problem).__name__}"
            )
    check_options(options, name)
    if _has_batch(name, options):
        return gymnasium.make_vec(
            name, num_envs=num_envs, vectorization_mode="vector_entry_point",
            problem=problems[0] if len(problems) == 1 else list(problems), observation=observation,
            autoreset_mode=AutoresetMode.SAME_STEP, draw="slot" if len(problems) <= num_envs else "episode",
            **options,
        )  # fmt: skip
    if len(problems) > num_envs:
        raise InvalidProblemError(
            f"{len(problems)} problems need as many environments here; set num_envs to {len(problems)} or more"
        )
    return _single_environments(name, problems, observation, options, num_envs)


def _has_batch(name: str, options: Mapping[str, Any]) -> bool:
    """Whether the core steps many episodes of this game at once; not that of options which only others have."""
    batch: Any = {PLACEMENT: GraphPlacementVectorEnv, SCHEDULING: OpSchedulingVectorEnv}[name]
    if not options.keys() <= inspect.signature(batch).parameters.keys():
        return False
    return name == SCHEDULING or options.get("mode", "sequential") == "sequential"


def _single_environments(
    name: str, problems: Sequence[AnyProblem], observation: str, options: Mapping[str, Any], num_envs: int
) -> VectorEnv[Any, Any, Any]:
    from .replay import Replayable

    def make(problem: AnyProblem) -> gymnasium.Env[Any, Any]:
        return Replayable(
            gymnasium.make(
                name, problem=problem, observation=observation, disable_env_checker=True, **options
            )
        )

    makers = [lambda slot=slot: make(problems[slot % len(problems)]) for slot in range(num_envs)]
    try:
        return SyncVectorEnv(makers, autoreset_mode=AutoresetMode.SAME_STEP)
    except RuntimeError as error:
        raise InvalidProblemError(
            "the problems do not share observations and actions; train on graphs for as many devices (or slots), "
            f"and for observation='dict' give environment={{'pad_to': (nodes, edges)}} ({error})"
        ) from None


def warn_of_large_buffer(space: spaces.Space[Any], steps: int, copies: int, advice: str) -> None:
    """Warns, before training, of a buffer that takes gigabytes.

    Args:
        space: Of the observations.
        steps: Observations that the buffer holds.
        copies: How often it holds each.
        advice: What to do instead.
    """
    parts = list(space.values()) if isinstance(space, spaces.Dict) else [space]
    each = sum(
        spaces.flatdim(part) * (part.dtype.itemsize if part.dtype is not None else 8) for part in parts
    )
    total = each * steps * copies
    if total > LARGE_BUFFER_BYTES:
        warnings.warn(
            f"one observation has {each:,} bytes: the buffer of {steps:,} steps takes {total:,} bytes "
            f"({total / 1e9:.1f} GB); {advice}",
            stacklevel=3,
        )
