"""How many processes a command may start."""

from __future__ import annotations

import os
from typing import Annotated

import typer

WorkersOption = Annotated[
    int | None,
    typer.Option(
        min=1, metavar="N", help="Processes; the result does not depend on it. Default: one per core."
    ),
]


def cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
