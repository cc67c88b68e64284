"""One job after the other, in this process: for debugging."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass

from ..plugin import target
from ..sweep import Job, Report, execute
from .base import SweepLauncher


@dataclass
class BasicSettings:
    """There is nothing to set."""

    _target_: str = target("BasicLauncher")


class BasicLauncher(SweepLauncher):
    """One job after the other, in this process."""

    def _run(self, jobs: Sequence[Job]) -> Generator[Report]:
        for job in jobs:
            yield execute(self._sweep.application, job)
