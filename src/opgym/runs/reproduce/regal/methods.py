"""Columns of ``opgym reproduce regal``: the baselines of the paper, and those that decide what it is worth."""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ....agents import Result
from ....agents.exact.cp_sat.engine import installed
from ....conf import agent
from ....problems import Budget, PlacementProblem, SchedulingProblem
from ...evaluate.contestants import Contestant
from .. import headroom

Problem = SchedulingProblem | PlacementProblem

#: The column that all others are compared with, and its evaluations.
BASE, EVALUATIONS = headroom.BASE, 5_000
#: Of every column. Not 1, which is that of the screening of the suites.
SEEDS = (0, 2, 3, 4)
#: Rows of each population on which CP-SAT runs, the first ones; on two devices all that its model is not too large for.
CP_SAT_ROWS = {"synthetic": 24, "real": 12}
#: Its limit, in OR-tools' deterministic time, of which a unit takes some seconds: what it finds is the same everywhere.
CP_SAT_EFFORT = 3.0

#: What a column is: one that comes with this reproduction, a learned agent, or one with heuristics in its start.
BASELINE, AGENT, SEEDED_AGENT = "baseline", "agent", "seeded agent"
_DIGITS = 12


@dataclass(frozen=True)
class Method:
    """One column.

    Attributes:
        name: What tables call it.
        solvers: What is run; of several the best solution counts, and all evaluations.
        evaluations: Budget of each; ``None``: it stops by itself.
        kind: ``BASELINE``, ``AGENT`` or ``SEEDED_AGENT``.
        published: Whether the paper compares with it.
        seeds: How many of ``SEEDS`` it gets, where it is dear; ``None``: all.
        random: Whether it draws random numbers; what does not runs once.
        long: Whether a quick look leaves it out.
        rows: By population, on how many rows it is run, where it is dear; the first ones.
        starts: Solvers that a learned agent takes into its first generation; else none are asked for.
        training_of: Of which agent it is one of several trainings.
        training: Digest of what was learned.
        weights: The same where neither options nor folder tell it apart: of weights that come with the package.
    """

    name: str
    solvers: tuple[Contestant, ...]
    evaluations: int | None = EVALUATIONS
    kind: str = BASELINE
    published: bool = False
    seeds: int | None = None
    random: bool = True
    long: bool = False
    rows: tuple[tuple[str, int], ...] = ()
    starts: tuple[str, ...] = ()
    training_of: str = ""
    training: str = ""
    weights: str = ""

    @property
    def key(self) -> dict[str, Any]:
        """What a stored row must share to stand for this column, whatever its name."""
        return {
            "solvers": [contestant.digest for contestant in self.solvers],
            "evaluations": self.evaluations,
            "starts": list(self.starts),
            "weights": self.weights,
        }

    def with_evaluations(self, evaluations: int) -> Method:
        """The same with another budget, if it has that of the base; a name that says the budget says it then."""
        if self.evaluations != EVALUATIONS or evaluations == EVALUATIONS:
            return self
        thousands, rest = divmod(evaluations, 1_000)
        budget = f"-{evaluations}" if rest or not thousands else f"-{thousands}k"
        name = self.name.removesuffix("-5k") + budget if self.name.endswith("-5k") else self.name
        return replace(self, name=name, evaluations=evaluations)

    def chosen_seeds(self, seeds: Sequence[int]) -> tuple[int, ...]:
        """Those of some seeds that it is run with."""
        return tuple(seeds[: 1 if not self.random else self.seeds])

    def run(self, problem: Problem, seed: int) -> list[Result[Any]]:
        """What each of its solvers finds, of those that apply to the problem."""
        found = []
        for contestant in self.solvers:
            solver = contestant.make()
            if self.starts:  # dataclasses.replace would lose what was learned
                solver = copy.copy(solver)
                object.__setattr__(solver, "starts", self.starts)
            if solver.skip_reason(problem) is None:
                budget = Budget(evaluations=self.evaluations)
                found.append(solver.solve(problem, budget, np.random.default_rng(seed)))
        return found

    def skip_reason(self, problem: Problem) -> str | None:
        """Why none of its solvers applies, or ``None``."""
        reasons = [contestant.make().skip_reason(problem) for contestant in self.solvers]
        return None if None in reasons else reasons[0]

    def document(self) -> dict[str, Any]:
        """What a stored table says of the column."""
        text = json.dumps(self.key, sort_keys=True)
        return {
            "name": self.name,
            "solver": self.solvers[0].make().name if len(self.solvers) == 1 else "",
            "evaluations": self.evaluations,
            "kind": self.kind,
            "published": self.published,
            "random": self.random,
            "long": self.long,
            "training_of": self.training_of,
            "training": self.training,
            "digest": hashlib.sha256(text.encode()).hexdigest()[:_DIGITS],
        }


def baselines(devices: int) -> list[Method]:
    """All columns that are no learned agents, in the order of tables.

    Args:
        devices: 1 or 2.
    """
    known = headroom.columns(devices)
    starts = tuple(known["brkga-seeded-5k"].options["starts"])

    def column(name: str, **options: Any) -> Method:
        there = known[name]
        given = {"solver": there.solver, "options": dict(there.options), "name": name}
        return Method(name, (Contestant.of(given),), there.evaluations, **options)

    def of(name: str, solver: str, evaluations: int | None = EVALUATIONS, /, **options: Any) -> Method:
        settings = options.pop("settings", {})
        contestant = Contestant.of({"solver": solver, "options": settings, "name": name})
        return Method(name, (contestant,), evaluations, **options)

    found = [
        column(BASE, published=True),
        Method(
            "brkga-tuned-5k",
            (Contestant.of_solver("brkga-tuned-5k", agent("brkga-tuned")),),
            published=True,
        ),
        column("brkga-seeded-5k"),
        column("key-search-5k", published=True),
        of("idrs-5k", "idrs", settings={"evaluations_per_proposal": 1_000}),
        of("annealing-5k", "order-annealing" if devices == 1 else "pair-annealing"),
        of("partition-dfs", "partition-dfs", None, random=False, published=True),
        Method(
            "best-heuristic", tuple(Contestant.of(name) for name in starts), None, random=False
        ),
        column("brkga-50k", long=True),
        of("idrs-100k", "idrs", 100_000, seeds=1, long=True, published=True),
    ]  # fmt: skip
    if devices == 1:
        found.insert(7, of("best-of-three", "best-of-three", None, random=False))
    if installed():
        settings = {"effort": CP_SAT_EFFORT, "start_evaluations": 1}
        rows = tuple(CP_SAT_ROWS.items()) if devices == 1 else ()
        found.append(
            of(
                "cp-sat",
                "cp-sat",
                None,
                settings=settings,
                random=False,
                long=True,
                published=True,
                rows=rows,
            )
        )
    return found


def starts_of(devices: int) -> tuple[str, ...]:
    """Solvers of which solutions are in the first generation of a seeded search."""
    return tuple(headroom.columns(devices)["brkga-seeded-5k"].options["starts"])
