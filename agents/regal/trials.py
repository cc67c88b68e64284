"""What a proposal is worth: runs of BRKGA with it and without, from the same random numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Protocol, Self

from ..search.keys import Brkga, KeyEncoding, Proposal
from .task import Task

#: What an end that does not fit into memory costs beside its overflow, as a share of the value of the plain run.
INFEASIBLE_SHARE = 0.25


@dataclass(frozen=True)
class End:
    """How a run of BRKGA ended.

    Attributes:
        value: Of the objective.
        overflow_share: Bytes over capacity / capacity on the worst device; 0 where it fits.
    """

    value: int
    overflow_share: float

    def cost(self, plain: End) -> float:
        """What is minimised: value over that of the plain run, and a penalty, finite and graded, if it does not fit.

        The cost of a plain run is 1, or more where it does not fit itself.
        """
        ratio = self.value / max(plain.value, 1)
        return ratio if self.overflow_share <= 0 else ratio + INFEASIBLE_SHARE + self.overflow_share


class Proposable(Protocol):
    """A problem that proposals can be made for."""

    @property
    def encoding(self) -> KeyEncoding:
        """Its genes."""
        ...

    @property
    def task(self) -> Task:
        """What is asked of it."""
        ...


@dataclass(frozen=True)
class Trial:
    """One run to be made.

    Attributes:
        instance: The problem.
        seed: Of the run; trials that are compared share it.
        proposal: What is proposed; ``None``: nothing, the plain run.
    """

    instance: Proposable
    seed: int
    proposal: Proposal | None = None


class Trials:
    """Makes runs of BRKGA side by side; what comes out does not depend on how many.

    Args:
        brkga: Settings of the runs.
        evaluations: Of each run.
        threads: Runs at a time.
    """

    def __init__(self, brkga: Brkga, evaluations: int, *, threads: int) -> None:
        self._brkga = replace(brkga, threads=1)
        self._evaluations = evaluations
        self._pool = ThreadPoolExecutor(threads) if threads > 1 else None

    def run(self, trials: Iterable[Trial]) -> list[End]:
        """The ends of runs, in their order."""
        return list(self._pool.map(self._run, trials) if self._pool is not None else map(self._run, trials))

    def _run(self, trial: Trial) -> End:
        brkga = replace(self._brkga, proposal=trial.proposal)
        search = brkga.core_search(trial.instance.encoding, trial.seed)
        spent, end = 0, End(0, math.inf)
        while spent < self._evaluations and not search.over:
            spent += search.run(self._evaluations - spent, math.inf)
            for _, _, overflow_share, value in search.improvements:
                end = End(int(value), float(overflow_share))
        return end

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._pool is not None:
            # What still runs after an interrupt ends by itself, soon: Python waits for it before it exits. A second
            # interrupt must not end that wait, as it would here, or a run would outlive the interpreter.
            self._pool.shutdown(wait=False, cancel_futures=True)
