"""A progress bar for what takes long, where somebody looks."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from .console import stderr


@contextmanager
def progress_bar(what: str) -> Iterator[Callable[[int, int, str], None] | None]:
    """A bar on stderr; ``None`` where nobody would see it.

    Args:
        what: What is counted.

    Yields:
        A function of how many are done, how many there are, and the name of the last.
    """
    if not sys.stderr.isatty():
        yield None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    parts = (
        TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(),
        TextColumn("{task.description}", markup=False),
    )  # fmt: skip
    with Progress(*parts, console=stderr(), transient=True) as bar:
        task = bar.add_task("", total=None)
        yield lambda done, total, name: bar.update(task, completed=done, total=total, description=name)


@contextmanager
def counting_bar(what: str) -> Iterator[Callable[[int, int], None] | None]:
    """:func:`progress_bar` for what has no names: a function of how many are done and how many there are."""
    with progress_bar(what) as report:
        yield None if report is None else lambda done, total: report(done, total, "")
