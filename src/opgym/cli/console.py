"""What commands print: results on stdout, everything else on stderr; JSON that any parser reads."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

#: Columns of a table that goes to a file or a pipe, where no terminal says how wide it is.
PIPE_WIDTH = 120
#: Exit code where a command ran, and what it looked at is not as it should be.
UNSOUND = 1


def stdout() -> Console:
    """The console for results."""
    return _console(sys.stdout)


def stderr() -> Console:
    """The console for progress, notes and errors."""
    return _console(sys.stderr)


def _console(file: Any) -> Console:
    from rich.console import Console

    terminal = bool(getattr(file, "isatty", lambda: False)())
    return Console(
        file=file,
        width=None if terminal else PIPE_WIDTH,
        soft_wrap=not terminal,
        highlight=False,
        # Names of ops and files are printed as they are: they may hold what rich takes for markup.
        markup=False,
        emoji=False,
    )


def new_table(columns: Mapping[str, str], title: str | None = None) -> Table:
    """An empty table.

    Args:
        columns: For each heading ``"left"``, ``"right"`` (numbers) or ``"wrap"`` (long text).
        title: Heading of the whole.
    """
    from rich import box
    from rich.table import Table

    table = Table(
        title=title,
        title_justify="left",
        title_style="bold",
        header_style="bold",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
    )
    for heading, kind in columns.items():
        if kind == "wrap":
            table.add_column(heading, overflow="fold")
        else:
            table.add_column(heading, justify="right" if kind == "right" else "left", no_wrap=True)
    return table


def show(table: Table) -> None:
    """Prints a table on stdout; in a file, lines end where their text ends."""
    console = stdout()
    if console.is_terminal:
        console.print(table)
        return
    with console.capture() as captured:
        console.print(table)
    print("\n".join(line.rstrip() for line in captured.get().splitlines()))


def note(message: str) -> None:
    """Says something that is not a result."""
    stderr().print(message, style="dim")


def complain(message: str) -> None:
    """Says what went wrong."""
    console = stderr()
    console.print("error: ", style="bold red", end="")
    console.print(message)


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
