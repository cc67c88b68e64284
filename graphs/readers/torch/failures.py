"""What went wrong while a module ran on fake tensors, in words that say what to change."""

from __future__ import annotations

import traceback
from pathlib import Path

import torch
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    UnsupportedOperatorException,
)

from ....errors import ImportFailedError

#: Code whose frames say nothing about the user's module.
_NOT_THE_USERS = (Path(torch.__file__).parent, Path(__file__).parent)


def describe(name: str, error: Exception, failed_in: tuple[tuple[str, ...], str] | None) -> ImportFailedError:
    """The error to raise instead.

    Args:
        name: Of the module.
        error: What was raised.
        failed_in: Path of the module that was running and the operator that raised, if one did.
    """
    path, kind = failed_in if failed_in is not None else ((), "")
    where = f"in module {'.'.join(path)!r}" if path else "in its forward"
    where += _line(error)
    if isinstance(error, DataDependentOutputException):
        return ImportFailedError(
            f"{name}: {where}, {kind} asks for the value of a tensor (an if, a loop, int(), .item() or .tolist() "
            "on it); a graph is recorded without values: decide by shapes or settings, or fix the choice"
        )
    if isinstance(error, DynamicOutputShapeException):
        return ImportFailedError(
            f"{name}: {where}, the size of what {kind} returns depends on values (nonzero, a boolean mask as "
            "index, unique); a graph has fixed sizes: use where or multiply by the mask"
        )
    if isinstance(error, UnsupportedOperatorException):
        return ImportFailedError(
            f"{name}: {where}, {kind} does not say what it returns for tensors without values; register a fake "
            "for it (torch.library.register_fake)"
        )
    reason = str(error).strip().splitlines()
    text = f"{type(error).__name__}: {reason[0] if reason else 'no message'}"
    hint = ""
    if "meta" in text or "Mixing fake modes" in text:
        hint = "; tensors that are no parameters or buffers are on another device: register them as buffers"
    elif "Sparse" in text:
        hint = "; gradients cannot be sparse: use sparse=False"
    return ImportFailedError(f"{name}: {where}, {kind or 'the module'} failed with {text}{hint}")


def _line(error: BaseException) -> str:
    """Where in the user's code it happened."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        file = Path(frame.filename)
        if not any(file.is_relative_to(folder) for folder in _NOT_THE_USERS):
            return f" ({file.name}, line {frame.lineno})"
    return ""
