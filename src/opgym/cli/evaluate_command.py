"""``opgym evaluate`` as Hydra runs it from a terminal: names of settings are known, and somebody watches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..conf import make_agent
from ..runs.contestants import Contestant, learner_folder
from ..runs.evaluate_app import EvaluateApplication, Watch
from .console import complain
from .progress import progress_bar
from .workers import cores


class EvaluateCommand(EvaluateApplication):
    """The application with names of settings, and somebody who watches."""

    def contestant(self, given: Any) -> Contestant:
        """An agent as it is asked for; a name may be that of stored settings."""
        from ..runs.contestants import Contestant

        if (
            isinstance(given, Mapping)
            or not isinstance(given, str)
            or learner_folder(Path(given)) is not None
        ):
            return Contestant.of(given)
        if Path(given).is_dir():
            return Contestant.of(given)  # says what is missing there
        return Contestant.of_solver(given, make_agent(given))

    @contextmanager
    def watched(self) -> Iterator[Watch]:
        """A progress bar, and failures as they happen."""
        with progress_bar("runs") as progress:
            yield progress, complain

    def default_workers(self) -> int:
        """One process per core."""
        return cores()
