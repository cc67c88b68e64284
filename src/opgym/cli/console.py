"""What commands print: results on stdout, everything else on stderr; JSON that any parser reads."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

#: Columns of a table that goes to a file or a pipe, where no terminal says how wide it is.
PIPE_WIDTH = 120


def stdout() -> Console:
    """The console for results."""
    return _console(sys.stdout)


def stderr() -> Console:
    """The console for progress, notes and errors."""
    return _console(sys.stderr)


def _console(file: Any) -> Console:
    from rich.console import Console

    terminal = bool(getattr(file, "isatty", lambda: False)())
    return Console(file=file, width=None if terminal else PIPE_WIDTH, highlight=False, soft_wrap=not terminal)


def note(message: str) -> None:
    """Says something that is not a result."""
    stderr().print(message, style="dim", markup=False)


def complain(message: str) -> None:
    """Says what went wrong."""
    console = stderr()
    console.print("error: ", style="bold red", end="")
    console.print(message, markup=False)


def print_json(document: Any) -> None:
    """Prints one JSON document; what has no finite value is ``null``."""
    print(json.dumps(finite(document), indent=2, allow_nan=False))


def finite(value: Any) -> Any:
    """The value as plain JSON data, with ``None`` for NaN and infinities."""
    if isinstance(value, Mapping):
        return {str(key): finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    if hasattr(value, "tolist"):  # numpy arrays and scalars
        return finite(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
