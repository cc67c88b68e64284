"""What ``opgym reproduce gdp`` compares: heuristics, searches, learners from scratch, and trained ones."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ....agents.gdp.gdp import SHELF
from ....errors import InvalidProblemError, unknown_id
from ...evaluate.contestants import Contestant, is_solver
from .workloads import SEEDS, Workload

HUMAN, METIS, GDP, HDP, PORTFOLIO = "human-expert", "metis", "gdp", "hdp", "portfolio"
#: Rules that need no search; the best of them on each row is the portfolio.
HEURISTICS = (HUMAN, METIS, "m-topo", "m-etf", "m-sct", "heft")
#: Searches with their options; the course of each depends on its budget, so there is a run for every one.
SEARCHES: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {"brkga": {"groups": "metis:64"}, "annealing": {}, "annealing-metis": {}}
)
SEARCH_BUDGETS = (100, 5_000)
#: Learners that begin with nothing learned; one run gives what they have found after fewer evaluations, too.
LEARNERS = (GDP, HDP, "placeto")
CUTS = (1, 100, 1_000, 5_000)
#: Evaluations of a learner by the most ops of a graph: as many as fit into some minutes, said without a clock.
BUDGETS: tuple[tuple[float, int], ...] = ((6_000, 5_000), (20_000, 2_000), (float("inf"), 800))
#: GDP without one of its parts.
ABLATIONS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {"gdp-no-attention": {"attention": False}, "gdp-no-superposition": {"superposition": "none"}}
)
#: Names of weights: one policy for several workloads, and one for each protocol of what it has not seen.
BATCH = "gdp-batch"
UNSEEN = ("gdp-unseen-size", "gdp-unseen-family")
PRETRAINED = (BATCH, *UNSEEN)
#: Most updates of fine-tuning: fewer than the paper's 50.
FINETUNE = 49
#: Annealing with few evaluations.
FEW = "annealing@100"
#: Annealing with as many evaluations as fine-tuning had on the row.
AS_MANY = "annealing as many"
#: What ``--methods`` takes.
NAMES = (*HEURISTICS, PORTFOLIO, *SEARCHES, *LEARNERS, *PRETRAINED)

_DIGITS = 12
_TRAINING = re.compile(r"(?P<stem>.+)-seed[0-9]+")


@dataclass(frozen=True)
class Method:
    """One way of solving a row.

    Attributes:
        name: What stored rows and tables call it.
        contestant: The solver; ``None``: it cannot be run here.
        missing: Why not.
        evaluations: Its budget; ``None``: it stops by itself.
        random: Whether it draws random numbers; what does not runs once.
        learned: Whether a network is in it, whose memory is worth telling.
        scratch: Whether it begins with nothing learned: then its budget is that of a row.
        further: Whether it only shows how far trainings are apart: one course of it will do.
        weights: Digest of those that come with the package.
    """

    name: str
    contestant: Contestant | None
    missing: str = ""
    evaluations: int | None = None
    random: bool = False
    learned: bool = False
    scratch: bool = False
    further: bool = False
    weights: str = ""

    def on(self, workload: Workload) -> Method:
        """The same with the budget that it has on a row."""
        return replace(self, evaluations=learner_budget(workload.ops)) if self.scratch else self

    def seeds(self, workload: Workload, most: int) -> tuple[int, ...]:
        """Its seeds on a row.

        Args:
            workload: The row.
            most: Seeds of core rows.
        """
        return workload.seeds(most) if self.random and not self.further else SEEDS[:1]

    @property
    def key(self) -> dict[str, Any]:
        """What a stored row must share to stand for this method, whatever its name."""
        digest = "" if self.contestant is None else self.contestant.digest
        return {"solver": digest, "evaluations": self.evaluations, "weights": self.weights}


def cut_name(method: str, evaluations: int) -> str:
    """What the column of a method with so many evaluations is called."""
    return f"{method}@{evaluations}"


def learner_budget(ops: int) -> int:
    """Evaluations of a learner from scratch."""
    return next(evaluations for most, evaluations in BUDGETS if ops <= most)


def budgets_text() -> str:
    """The budgets of learners in words."""
    limits = [f"{evaluations:,} up to {most:,} ops" for most, evaluations in BUDGETS[:-1]]
    return f"{', '.join(limits)} and {BUDGETS[-1][1]:,} beyond"


@cache
def heuristics() -> tuple[Method, ...]:
    """The rules."""
    return tuple(_method(name, name) for name in HEURISTICS)


@cache
def searches() -> tuple[Method, ...]:
    """The searches, with few and with many evaluations."""
    return tuple(
        _method(cut_name(name, budget), name, options, evaluations=budget, random=True)
        for name, options in SEARCHES.items()
        for budget in SEARCH_BUDGETS
    )


@cache
def learners() -> tuple[Method, ...]:
    """The learners from scratch; their budget is that of a row."""
    return tuple(_scratch(name, name) for name in LEARNERS)


@cache
def ablations() -> tuple[Method, ...]:
    """GDP without one of its parts, from scratch."""
    return tuple(_scratch(name, GDP, options) for name, options in ABLATIONS.items())


def annealing_with(evaluations: int) -> Method:
    """Annealing with as many evaluations as something else had."""
    return _method(AS_MANY, "annealing", SEARCHES["annealing"], evaluations=evaluations, random=True)


def zero_shot_name(weights: str) -> str:
    """The column of trained weights: their most likely placement."""
    return f"{weights} zero-shot"


def fine_tuned_name(weights: str) -> str:
    """The column of trained weights that learn on from there."""
    return f"{weights} fine-tuned"


def zero_shot(weights: str) -> Method:
    """The most likely placement of trained weights: one evaluation."""
    return _trained(zero_shot_name(weights), weights, {}, evaluations=1)


def fine_tuned(weights: str) -> Method:
    """Trained weights that learn on, for a few updates."""
    return _trained(fine_tuned_name(weights), weights, {"finetune": FINETUNE}, random=True)


def trainings(weights: str, known: Iterable[str] = ()) -> list[str]:
    """Weights, there or not, and further trainings of them, whose names end in ``-seedN``.

    Args:
        weights: One of ``PRETRAINED``.
        known: Names of methods of stored rows: what was measured is told, whether the weights are still there or not.
    """
    names = {name.rpartition(" ")[0] for name in known if " " in name}
    found = {name for name in (*SHELF.names(), *names) if stem(name) == weights}
    return [weights, *sorted(found - {weights})]


def stem(weights: str) -> str:
    """Weights without what tells trainings apart."""
    match = _TRAINING.fullmatch(weights)
    return weights if match is None else match["stem"]


def require_methods(names: Sequence[str]) -> None:
    """Refuses an unknown name, and none at all.

    Raises:
        UnknownIdError: With the nearest names.
        InvalidProblemError: There is none.
    """
    if not names:
        raise InvalidProblemError(f"no methods; expected at least one of {', '.join(NAMES)}")
    for name in names:
        if name not in NAMES:
            raise unknown_id("method", name, list(NAMES))


def _scratch(name: str, solver: str, options: Mapping[str, Any] = MappingProxyType({})) -> Method:
    return _method(name, solver, {"weights": "none", **options}, random=True, learned=True, scratch=True)


def _trained(name: str, weights: str, options: Mapping[str, Any], **more: Any) -> Method:
    further = weights != stem(weights)
    if weights not in SHELF.names():
        return Method(name, None, f"weights {weights} are not there", learned=True, further=further, **more)
    made = _method(name, GDP, {"weights": weights, **options}, learned=True, further=further, **more)
    return replace(made, weights=_digest_of(SHELF.folder / weights))


def _method(
    name: str, solver: str, options: Mapping[str, Any] = MappingProxyType({}), /, **more: Any
) -> Method:
    if not is_solver(solver):
        return Method(name, None, f"there is no solver {solver}", **more)
    return Method(name, Contestant.of({"solver": solver, "options": dict(options), "name": name}), **more)


@cache
def _digest_of(folder: Path) -> str:
    """Of all files of saved weights."""
    digest = hashlib.sha256()
    for path in sorted(path for path in folder.iterdir() if path.is_file()):
        digest.update(path.name.encode() + b"\n" + path.read_bytes())
    return digest.hexdigest()[:_DIGITS]
