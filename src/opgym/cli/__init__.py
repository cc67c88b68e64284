"""The command line: one file per command, each with a help text that teaches it."""

from __future__ import annotations

import sys

#: Exit code after Ctrl-C, as shells report signals.
INTERRUPTED = 130


def main() -> int:
    """Runs ``opgym`` with the process's arguments; returns the exit code, 2 for bad input."""
    try:
        from .app import run

        return run()
    except KeyboardInterrupt:  # while modules were loading, or while another error was reported
        print("error: interrupted", file=sys.stderr)
        return INTERRUPTED
