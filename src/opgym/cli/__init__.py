"""The command line: one file per command, each with a help text that teaches it."""

from __future__ import annotations

import os
import sys

#: Exit code after Ctrl-C, as shells report signals.
INTERRUPTED = 130


def main() -> int:
    """Runs ``opgym`` with the process's arguments; returns the exit code, 2 for bad input."""
    _open_standard_streams()
    try:
        from .app import run

        return run()
    except KeyboardInterrupt:  # while modules were loading, or while another error was reported
        print("error: interrupted", file=sys.stderr)
        return INTERRUPTED


def _open_standard_streams() -> None:
    """Makes a stream that was closed (``opgym report runs/x >&-``) one that goes nowhere.

    Otherwise Python has none to print on, and the next file that is opened gets its number: whatever a library writes
    there would go into that file.
    """
    descriptor = os.open(os.devnull, os.O_RDWR)
    while descriptor <= 2:
        os.set_inheritable(descriptor, True)
        descriptor = os.open(os.devnull, os.O_RDWR)
    os.close(descriptor)
    if sys.stdout is None:
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115 as long as the process
    if sys.stderr is None:
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
