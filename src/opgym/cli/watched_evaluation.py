"""The application of ``opgym evaluate`` at a terminal: names of settings are known, and somebody watches."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..conf import agent_names, make_agent
from ..errors import UnknownIdError
from ..runs.evaluate.app import EvaluateApplication, Watch
from ..runs.evaluate.contestants import Contestant, is_solver
from .console import complain
from .progress import progress_bar
from .workers import cores


class WatchedEvaluation(EvaluateApplication):
    """The application with names of settings, and somebody who watches."""

    def contestant(self, given: Any) -> Contestant:
        """An agent as it is asked for; a name may be that of stored settings, or of a file of settings."""
        if not isinstance(given, str):
            return Contestant.of(given)
        if given in agent_names() or given.endswith(".yaml"):
            return Contestant.of_solver(given, make_agent(given))
        try:
            return Contestant.of(given)
        except UnknownIdError:
            if not is_solver(given):
                make_agent(given)  # suggests names of settings, too
            raise

    @contextmanager
    def watched(self) -> Iterator[Watch]:
        """A progress bar, and failures as they happen."""
        with progress_bar("runs") as progress:
            yield progress, complain

    def default_workers(self) -> int:
        """One process per core."""
        return cores()
