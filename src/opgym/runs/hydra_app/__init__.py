"""Commands that Hydra runs: settings composed from ``opgym.conf`` and the command line, single runs and sweeps.

``run_app(application, argv)`` does everything; an :class:`Application` says what a run is.
"""

from __future__ import annotations

from .app import Done, RunFailed, run_app
from .application import Application, Settings
from .sweep import FAILED, Row, Sweep

__all__ = ["FAILED", "Application", "Done", "Row", "RunFailed", "Settings", "Sweep", "run_app"]
