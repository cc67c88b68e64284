"""The command line: one file per command, each with a help text that teaches it."""

from __future__ import annotations


def main() -> int:
    """Runs ``opgym`` with the process's arguments; returns the exit code, 2 for bad input."""
    from .app import run

    return run()
