"""A training leaves the process as it found it: generators, threads and switches of torch are put back."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from ...errors import InvalidProblemError


def require_device(device: str) -> None:
    """Refuses a device that torch does not know, or cannot use on this machine.

    Raises:
        InvalidProblemError: With what torch says.
    """
    if device == "auto":
        return
    try:
        torch.zeros(1, device=device).cpu()
    except Exception as error:  # of several classes, by the device
        said = (str(error).splitlines() or [type(error).__name__])[0]
        raise InvalidProblemError(
            f"device = {device!r}: torch cannot use it here ({said:.200}); expected 'cpu', 'cuda', 'cuda:1', 'auto'"
        ) from None


@contextmanager
def isolated(threads: int, device: str) -> Iterator[None]:
    """Runs torch with so many threads and deterministic algorithms, and puts everything back after it.

    Args:
        threads: Of torch. One is the same everywhere; more may sum in another order.
        device: Of torch; on one that is no CPU an algorithm that is not deterministic only warns.

    Raises:
        InvalidProblemError: torch cannot use the device here.
    """
    require_device(device)
    generators, before = random_state(device), torch.get_num_threads()
    deterministic = torch.are_deterministic_algorithms_enabled()
    warn_only = torch.is_deterministic_algorithms_warn_only_enabled()
    torch.set_num_threads(threads)
    torch.use_deterministic_algorithms(True, warn_only=not device.startswith("cpu"))
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(deterministic, warn_only=warn_only)
        torch.set_num_threads(before)
        set_random_state(generators, device)


def random_state(device: str) -> dict[str, Any]:
    """The generators of Python, numpy and torch, as plain data and arrays."""
    version, words, gauss = random.getstate()
    name, keys, position, has_gauss, cached = np.random.get_state()  # noqa: NPY002 draws from it
    state: dict[str, Any] = {
        "python": {"version": version, "words": np.array(words, np.int64), "gauss": gauss},
        "numpy": {
            "name": name, "keys": keys, "position": int(position), "has_gauss": int(has_gauss),
            "cached": float(cached),
        },
        "torch": torch.get_rng_state(),
    }  # fmt: skip
    if device.startswith("cuda"):
        state["cuda"] = torch.cuda.get_rng_state(device)
    return state


def set_random_state(state: dict[str, Any], device: str) -> None:
    """Puts generators back to a :func:`random_state`."""
    python, numpy = state["python"], state["numpy"]
    random.setstate((python["version"], tuple(python["words"].tolist()), python["gauss"]))
    np.random.set_state(  # noqa: NPY002
        (numpy["name"], numpy["keys"], numpy["position"], numpy["has_gauss"], numpy["cached"])
    )
    torch.set_rng_state(state["torch"])
    if device.startswith("cuda") and "cuda" in state:
        torch.cuda.set_rng_state(state["cuda"], device)
