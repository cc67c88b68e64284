"""The state of a batch, read back: arrays that fit together, and to the environments that go on from them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidSolutionError
from .arguments import shortened
from .generators import GENERATOR_WORDS


def read_state(
    state: Mapping[str, NDArray[Any]],
    fingerprint: NDArray[np.uint8],
    episode_steps: NDArray[np.int64],
    slots: int,
) -> dict[str, NDArray[Any]]:
    """Copies of the arrays of a state.

    Args:
        state: What :meth:`~opgym.envs.vector.NativeVectorEnv.state` gave, by key.
        fingerprint: Of these environments, ``[32] uint8``.
        episode_steps: Decisions of an episode, for each graph, ``[graphs] int64``.
        slots: Of these environments.

    Raises:
        InvalidSolutionError: It is no state, or one of other environments.
    """
    if not isinstance(state, Mapping):
        raise InvalidSolutionError(
            f"the state is {shortened(state)}; expected arrays by key, as state() gives them"
        )
    graph = state.get("graph")
    if isinstance(graph, np.ndarray) and graph.shape != (slots,):
        raise InvalidSolutionError(
            f"the state has {graph.size} slots; these environments have {slots}, in one row"
        )
    layout: dict[str, tuple[tuple[int | None, ...], Any]] = {
        "graph": ((slots,), np.int64),
        "decisions": ((None,), np.int64),
        "decision_ptr": ((slots + 1,), np.int64),
        "illegal_actions": ((slots,), np.int64),
        "over": ((slots,), np.bool_),
        "generators": ((slots, GENERATOR_WORDS), np.uint64),
        "fingerprint": (fingerprint.shape, np.uint8),
    }
    given = {key: _array(state, key, shape, dtype, slots) for key, (shape, dtype) in layout.items()}
    if not np.array_equal(given["fingerprint"], fingerprint):
        raise InvalidSolutionError(
            "the state is of environments about something else: of other graphs, clusters, costs or groups, or in "
            "another order"
        )
    graphs, taken = len(episode_steps), np.diff(given["decision_ptr"])
    if (given["graph"] < 0).any() or (given["graph"] >= graphs).any():
        raise InvalidSolutionError(
            f"the state is about graphs {given['graph'].tolist()}; these environments have 0 to {graphs - 1}"
        )
    if (given["illegal_actions"] < 0).any():
        raise InvalidSolutionError(
            f"the state has {given['illegal_actions'].tolist()} illegal actions; expected no negative number"
        )
    steps = episode_steps[given["graph"]]
    if (
        given["decision_ptr"][0] != 0
        or given["decision_ptr"][-1] != given["decisions"].size
        or ((taken < 0) | (taken > steps) | (given["over"] != (taken == steps))).any()
    ):
        raise InvalidSolutionError(
            f"the state has {taken.tolist()} decisions of episodes; those of these environments have {steps.tolist()}"
        )
    return given


def _array(
    state: Mapping[str, NDArray[Any]], key: str, shape: tuple[int | None, ...], dtype: Any, slots: int
) -> NDArray[Any]:
    """A copy of one array; ``None`` in its shape: any length."""
    found = "missing"
    if key in state:
        array = state[key]
        found = type(array).__name__
        if isinstance(array, np.ndarray):
            right = len(shape) == array.ndim and all(
                expected in (None, length) for expected, length in zip(shape, array.shape, strict=True)
            )
            if right and array.dtype == dtype:
                return np.array(array, order="C")
            found = f"{array.dtype} {array.shape}"
    expected = ", ".join("any number" if length is None else str(length) for length in shape)
    raise InvalidSolutionError(
        f"{key!r} of the state is {found}; these {slots} environments need {np.dtype(dtype)} ({expected})"
    )
