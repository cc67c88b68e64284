"""What a caller gives to batches of environments, read and refused with what was expected."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray

from ..errors import InvalidProblemError, InvalidSolutionError
from .actions import read_choice
from .arguments import one_of, positive_integer, shortened

#: Slots of a batch, and threads that step them: more do not pay on any machine, and would take all of its memory.
MOST_ENVS, MOST_THREADS = 2**16, 1024

DRAWS = ("slot", "episode")
AUTORESET_MODES = tuple(mode.value for mode in AutoresetMode)


def read_autoreset_mode(given: str | AutoresetMode) -> AutoresetMode:
    """Gymnasium's mode of that name.

    Raises:
        UnknownIdError: There is none.
    """
    if isinstance(given, AutoresetMode):
        return given
    return AutoresetMode(one_of("autoreset mode", given, AUTORESET_MODES))


def read_num_envs(given: object) -> int:
    """The number of slots.

    Raises:
        InvalidProblemError: It is no positive integer, or too many.
    """
    return positive_integer("num_envs", given, "the number of slots", MOST_ENVS)


def read_threads(given: object) -> int:
    """How many threads step.

    Raises:
        InvalidProblemError: It is no positive integer, or too many.
    """
    return positive_integer("threads", given, "how many step", MOST_THREADS)


def refuse_what_is_not_native(name: str, given: str | None, *only_single: str | None) -> None:
    """Refuses a choice that only single environments have.

    Raises:
        InvalidProblemError: It is one of those.
    """
    if given is not None and given in only_single:
        raise InvalidProblemError(
            f"{name}={given!r} is not for native batches; use gymnasium.make_vec(..., "
            "vectorization_mode='sync')"
        )


def each(given: Any) -> list[Any]:
    """The members of a list or tuple; anything else, ``None`` too, counts as the only one.

    Raises:
        InvalidProblemError: The sequence is empty.
    """
    if not isinstance(given, (list, tuple)):
        return [given]
    if not given:
        raise InvalidProblemError("an empty sequence of graphs or problems; give at least one")
    return list(given)


def read_actions(actions: Any, count: int) -> NDArray[np.int64]:
    """One action of any kind for each slot as an integer, ``[count]``; -1, which is illegal, for what is none.

    Raises:
        InvalidSolutionError: Another number of them.
    """
    given = actions if isinstance(actions, (list, tuple, np.ndarray)) else np.asarray(actions)
    if isinstance(given, np.ndarray) and given.ndim == 0:
        raise InvalidSolutionError(f"the action {actions!r} given; expected one for each of {count} slots")
    if len(given) != count:
        raise InvalidSolutionError(f"{len(given)} actions given; expected one for each of {count} slots")
    if isinstance(given, np.ndarray) and given.dtype.kind in "iu" and given.size == count:
        # What passes 2^63 - 1 becomes negative, which is illegal as well.
        return np.ascontiguousarray(given.reshape(-1).astype(np.int64))
    choices = [read_choice(action) for action in given]
    return np.array([-1 if c is None or not 0 <= c < 2**63 else c for c in choices], np.int64)


def read_seeds(seed: int | Sequence[int | None] | None, count: int) -> list[int | None]:
    """The seed of each slot as Gymnasium gives it; ``None``: the slot's generator goes on.

    Raises:
        InvalidSolutionError: Another number of them, or something that is no seed.
    """
    if seed is None:
        return [None] * count
    if isinstance(seed, (int, np.integer)):
        return [_seed(int(seed) + slot) for slot in range(count)]
    if not isinstance(seed, (list, tuple)) and not (isinstance(seed, np.ndarray) and seed.ndim == 1):
        raise InvalidSolutionError(
            f"seed={shortened(seed)}; expected an integer, or one for each of {count} slots"
        )
    if len(seed) != count:
        raise InvalidSolutionError(f"{len(seed)} seeds given; expected one for each of {count} slots")
    return [None if one is None else _seed(one) for one in seed]


def _seed(given: object) -> int:
    if not isinstance(given, (int, np.integer)) or given < 0:
        raise InvalidSolutionError(f"seed {shortened(given)}; expected an integer of at least 0")
    return int(given)


def read_reset_mask(options: dict[str, Any] | None, count: int) -> NDArray[np.bool_]:
    """Which slots begin anew, ``[count] bool``: those of ``options["reset_mask"]``, else all.

    Raises:
        InvalidSolutionError: It is no such mask, or empty.
    """
    if options is None or "reset_mask" not in options:
        return np.ones(count, np.bool_)
    mask = options["reset_mask"]
    if not isinstance(mask, np.ndarray) or mask.dtype != np.bool_ or mask.shape != (count,):
        raise InvalidSolutionError(f"options['reset_mask'] is {mask!r}; expected a bool array of {count}")
    if not mask.any():
        raise InvalidSolutionError("options['reset_mask'] names no slot; set at least one")
    return mask
