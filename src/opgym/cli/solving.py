"""Runs solvers by name on one problem, one after the other, at the same budget."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import TYPE_CHECKING, Any

from .console import complain, note, stderr

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID
    from typing_extensions import TypeIs

    from ..agents import Result, Solver
    from ..problems import Budget, PlacementProblem, SchedulingProblem
    from ..problems import Progress as Spent

#: What an anytime solver of placements may spend where the user sets no limit: evaluations by size, so that
#: equal commands give equal answers, and a time that only slow objectives reach.
MOST_EVALUATIONS, FEWEST_EVALUATIONS, OP_EVALUATIONS = 5_000, 200, 5_000_000
DEFAULT_SECONDS = 10.0
#: Most seconds of a solver that proves where the user sets no limit: it may never come to its end.
EXACT_SECONDS = 30.0
#: A solver that has run this long gets a progress bar.
PATIENCE_S = 2.0
_REDRAW_S = 0.1


@dataclass
class Solved:
    """What came of a list of solvers.

    Attributes:
        results: Of those that ran, in order.
        skipped: Name and reason of those that did not.
        broken: Name and error of those that failed by a bug.
    """

    results: list[Result[Any]] = field(default_factory=list)
    skipped: list[tuple[str, str]] = field(default_factory=list)
    broken: list[tuple[str, str]] = field(default_factory=list)


def chosen_solvers(given: Sequence[str] | None, known: Sequence[str], *, exact: bool) -> list[str]:
    """The solvers that a command runs, each once: those given, or all but controls, learners and those that prove.

    With ``exact`` those that prove run, too.

    Raises:
        UnknownIdError: A given name is neither a solver nor stored settings.
    """
    from ..agents import is_learner
    from ..conf import make_agent

    solvers = {name: make_agent(name) for name in given or known}
    unasked = [name for name, s in solvers.items() if not (s.proves or s.control or is_learner(s))]
    chosen = [*solvers] if given else unasked
    if exact:
        chosen += [name for name in known if make_agent(name).proves]
    return list(dict.fromkeys(chosen))


def solve_all(
    problem: PlacementProblem | SchedulingProblem,
    names: Sequence[str],
    *,
    seconds: float | None,
    evaluations: int | None,
    seed: int,
    show_progress: bool,
    finetune_seconds: float | None = None,
) -> Solved:
    """Runs solvers; each starts from the same seed, so its result does not depend on which others run.

    Args:
        problem: What to solve.
        names: Solvers, or settings of :mod:`opgym.conf`, in the order to run them.
        seconds: Limit for each; ``None`` for both limits: those of :func:`budget_of`.
        evaluations: Limit for each.
        seed: Seed of each.
        show_progress: Whether to draw a progress bar on stderr for what takes long.
        finetune_seconds: For how long learned placers go on learning on the problem; ``None``: they do not.
    """
    import numpy as np

    from ..agents.networks.placing.learner import PlacementLearner
    from ..conf import make_agent
    from ..errors import InvalidProblemError, UnknownIdError
    from ..problems import Budget

    solved = Solved()
    for position, name in enumerate(names):
        solver = make_agent(name)
        reason = solver.skip_reason(problem)
        if reason is not None:
            solved.skipped.append((name, reason))
            continue
        budget = budget_of(solver, problem, seconds, evaluations)
        if finetune_seconds is not None and isinstance(solver, PlacementLearner):
            solver, budget = solver.finetuned(), Budget(evaluations, finetune_seconds)
        heading = f"{name} ({position + 1} of {len(names)})"
        try:
            with SolverProgress(heading, budget, _unit(problem), enabled=show_progress) as progress:
                rng = np.random.default_rng(seed)
                result = solver.solve(problem, budget, rng, progress.update)
                # Stored settings of a solver go by their own name.
                solved.results.append(replace(result, solver=name))
        except (InvalidProblemError, UnknownIdError) as error:
            solved.skipped.append((name, str(error)))
        except (KeyboardInterrupt, MemoryError):
            raise
        except Exception as error:  # a solver may be third-party: the others' results must not be lost
            solved.broken.append((name, f"{type(error).__name__}: {error}"))
    return solved


def learned_placers(names: Sequence[str]) -> list[str]:
    """Those of some solvers that are learned placers."""
    from ..agents.networks.placing.learner import PlacementLearner
    from ..conf import make_agent

    return [name for name in names if isinstance(make_agent(name), PlacementLearner)]


def heuristics_beside(names: Sequence[str], known: Sequence[str]) -> list[str]:
    """The heuristics that learned placers are compared with, beside those that are asked for anyway."""
    from ..agents.registry import HEURISTICS, family, solver_class

    return [
        name
        for name in known
        if family(name) == HEURISTICS and not solver_class(name).control and name not in names
    ]


def require_results(
    solved: Solved, problem: PlacementProblem | SchedulingProblem, names: Sequence[str]
) -> None:
    """Says on stderr which solvers did not run, or broke.

    Raises:
        InvalidProblemError: No solver applies.
        typer.Exit: None has a result, as some broke.
    """
    import typer

    from ..errors import InvalidProblemError

    for name, reason in solved.skipped:
        note(f"skipped {name}: {reason}")
    for name, reason in solved.broken:
        complain(f"solver {name} failed: {reason}")
    if solved.results:
        return
    if solved.broken:
        raise typer.Exit(1)
    aim = "orders" if _schedules(problem) else problem.objective.value
    raise InvalidProblemError(f"no solver applies: tried {', '.join(names)} for {aim}; see: opgym solvers")


def budget_of(
    solver: Solver[Any, Any],
    problem: PlacementProblem | SchedulingProblem,
    seconds: float | None,
    evaluations: int | None,
) -> Budget:
    """The user's limits; without any, the defaults for a solver that would not stop by itself, or not soon.

    For orders these are the solver's own evaluations, as what one costs differs by a factor of 100 between
    solvers, and seconds; solvers that prove have seconds alone.
    """
    from ..agents.registry import HEURISTICS, family
    from ..problems import Budget

    if seconds is not None or evaluations is not None:
        return Budget(evaluations, seconds)
    if solver.proves:
        return Budget(None, EXACT_SECONDS)
    if _schedules(problem):
        if family(solver.name) != HEURISTICS:
            return Budget(getattr(solver, "evaluations", None), DEFAULT_SECONDS)
    elif solver.anytime:
        affordable = OP_EVALUATIONS // problem.graph.num_ops
        return Budget(max(FEWEST_EVALUATIONS, min(MOST_EVALUATIONS, affordable)), DEFAULT_SECONDS)
    return Budget()


def _schedules(problem: PlacementProblem | SchedulingProblem) -> TypeIs[SchedulingProblem]:
    from ..problems import SchedulingProblem

    return isinstance(problem, SchedulingProblem)


def _unit(problem: PlacementProblem | SchedulingProblem) -> str:
    return problem.unit if _schedules(problem) else problem.objective.unit


class SolverProgress:
    """A bar on stderr that appears only once a solver has run for :data:`PATIENCE_S`.

    Args:
        heading: Says which solver it is.
        budget: What it may spend; the bar shows the larger share of evaluations or seconds.
        unit: Unit of the objective.
        enabled: Whether to draw at all.
    """

    def __init__(self, heading: str, budget: Budget, unit: str, *, enabled: bool) -> None:
        self._heading, self._budget, self._unit, self._enabled = heading, budget, unit, enabled
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None
        self._bar: Progress | None = None
        self._task: TaskID | None = None
        self._drawn_at = 0.0
        self._text = "working"
        self._closed = False

    def __enter__(self) -> SolverProgress:
        if self._enabled:
            self._timer = threading.Timer(PATIENCE_S, self._appear)
            self._timer.daemon = True
            self._timer.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            self._closed = True
            if self._timer is not None:
                self._timer.cancel()
            if self._bar is not None:
                self._bar.stop()

    @property
    def update(self) -> Callable[[Spent], None] | None:
        """The callback for the solver; ``None`` where nothing would be drawn."""
        return self._update if self._enabled else None

    def _appear(self) -> None:
        """Runs in the timer's thread: a solver that is busy in the C++ core need not call back first."""
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        with self._lock:
            if self._closed:
                return
            columns = (
                TextColumn("{task.description}"),
                BarColumn(),
                TimeElapsedColumn(),
                TextColumn("{task.fields[text]}"),
            )
            self._bar = Progress(*columns, console=stderr(), transient=True)
            total = None if self._budget.evaluations is None and self._budget.seconds is None else 1.0
            self._task = self._bar.add_task(self._heading, total=total, text=self._text)
            task = self._bar.tasks[-1]
            if task.start_time is not None:
                task.start_time -= PATIENCE_S  # it shows the time of the solver, not its own
            self._bar.start()

    def _update(self, spent: Spent) -> None:
        now = time.perf_counter()
        if now - self._drawn_at < _REDRAW_S:
            return
        self._drawn_at = now
        from ..graphs.units import format_value

        best = format_value(spent.best.value, self._unit) if spent.best.ok else spent.best.verdict.value
        self._text = f"{spent.evaluations:,} evaluations, best {best}"
        shares = [
            spent.evaluations / self._budget.evaluations if self._budget.evaluations else 0.0,
            spent.seconds / self._budget.seconds if self._budget.seconds else 0.0,
        ]
        with self._lock:
            if self._bar is not None and self._task is not None:
                changes: dict[str, Any] = {"text": self._text, "completed": min(1.0, max(shares))}
                self._bar.update(self._task, **changes)
