"""OR-tools' CP-SAT behind one door: its absence, its limits, its answers."""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from ....errors import MissingExtraError
from ....problems import Budget, Evaluator

if TYPE_CHECKING:
    from ortools.sat.python import cp_model

#: What to say where OR-tools is absent.
MISSING = "needs OR-tools, which is not installed; run: pip install 'opgym[solvers]'"


def installed() -> bool:
    """Whether OR-tools can be imported."""
    return find_spec("ortools") is not None


def load() -> Any:
    """The module ``ortools.sat.python.cp_model``, imported when it is first needed.

    Raises:
        MissingExtraError: It is not installed.
    """
    try:
        from ortools.sat.python import cp_model
    except ImportError as error:
        raise MissingExtraError(f"solver 'cp-sat' {MISSING}") from error
    return cp_model


@dataclass(frozen=True)
class Answer:
    """What CP-SAT says of a model.

    Attributes:
        solver: Holds the values of the last solution, if there is one.
        found: Whether there is one.
        closed: Whether nothing is left open: the last solution is optimal, or there is none.
        bound: A value that no solution of the model can beat; ``-inf`` without an objective.
    """

    solver: cp_model.CpSolver
    found: bool
    closed: bool
    bound: float

    @property
    def refuted(self) -> bool:
        """Whether the model is proven to have no solution."""
        return self.closed and not self.found


class Engine:
    """Solves models one after the other within one allowance of effort and time.

    Effort is OR-tools' deterministic time: it counts steps, so that with one worker the same model gets the same
    answer on a fast and on a slow machine; one unit takes one to five seconds. It is limited where the budget
    states no seconds; where it does, the clock is the limit, and what is found depends on the machine.

    Args:
        evaluator: Says how much time is left.
        effort: Allowance in units of deterministic time.
        workers: Threads; with more than one, answers differ from run to run.
        seed: Seed of CP-SAT.
    """

    def __init__(self, evaluator: Evaluator[Any], effort: float, workers: int, seed: int) -> None:
        #: ``ortools.sat.python.cp_model``.
        self.module = load()
        self._evaluator = evaluator
        self._seconds = evaluator.budget.seconds
        self._effort = math.inf if self._seconds is not None else effort
        self._workers = workers
        self._seed = seed

    @property
    def exhausted(self) -> bool:
        """Whether nothing is left."""
        return self._effort <= 0 or self._seconds_left <= 0

    @property
    def _seconds_left(self) -> float:
        return math.inf if self._seconds is None else max(0.0, self._seconds - self._evaluator.seconds)

    def solve(
        self,
        model: cp_model.CpModel,
        share: float = 1.0,
        on_solution: Callable[[cp_model.CpSolverSolutionCallback], bool] | None = None,
    ) -> Answer:
        """Solves a model.

        Args:
            model: The model.
            share: Most of what is left that may be spent.
            on_solution: Sees each solution; ``False`` ends the search. What it raises is raised here.
        """
        cp = self.module
        solver = cp.CpSolver()
        parameters = solver.parameters
        parameters.num_workers = self._workers
        parameters.random_seed = self._seed
        parameters.catch_sigint_signal = False  # it would leave Ctrl-C without Python's handler
        if math.isfinite(self._effort):
            parameters.max_deterministic_time = self._effort * share
        if math.isfinite(self._seconds_left):
            parameters.max_time_in_seconds = self._seconds_left * share
        watcher = None if on_solution is None else _watcher(cp, on_solution)
        status = _solve(solver, model, watcher)
        self._effort -= solver.deterministic_time
        if watcher is not None and watcher.error is not None:
            raise watcher.error
        found = status in (cp.OPTIMAL, cp.FEASIBLE)
        closed = status in (cp.OPTIMAL, cp.INFEASIBLE)
        if status == cp.MODEL_INVALID:
            raise AssertionError(f"CP-SAT refuses the model: {model.validate()}")
        bound = solver.best_objective_bound if model.has_objective() else -math.inf
        if status == cp.INFEASIBLE:
            bound = math.inf
        return Answer(solver, found, closed, bound)


def _solve(solver: cp_model.CpSolver, model: cp_model.CpModel, watcher: Any) -> Any:
    """Solves in another thread, so that this one hears interrupts, and ends the search if there is one."""
    with ThreadPoolExecutor(1) as pool:
        status = pool.submit(solver.solve, model, watcher)
        try:
            return status.result()
        except KeyboardInterrupt:
            solver.stop_search()
            raise


def _watcher(cp: Any, on_solution: Callable[[Any], bool]) -> Any:
    """A callback that keeps what goes wrong: an exception must not pass through the solver's own threads."""

    class Watcher(cp.CpSolverSolutionCallback):  # type: ignore[misc]
        error: BaseException | None = None

        def on_solution_callback(self) -> None:
            if self.error is not None:
                return
            try:
                go_on = on_solution(self)
            except BaseException as error:
                self.error, go_on = error, False
            if not go_on:
                self.stop_search()

    return Watcher()


def leave_one(evaluator: Evaluator[Any], most: int) -> Budget:
    """A budget for a search that comes first: at most ``most`` evaluations, and at least one is left if any can be."""
    left = evaluator.remaining
    evaluations = most if left is None else max(1, min(most, left - 1))
    seconds = evaluator.budget.seconds
    return Budget(evaluations, None if seconds is None else max(0.0, seconds - evaluator.seconds) / 4)
