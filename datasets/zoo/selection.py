"""Which of the graphs that were built belong to the zoo.

None is too small or too large, no two are near copies, and no family has more than its share. Workloads of the papers
are exempt from the last two rules and go first; the others are taken in the order in which the definitions offer them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

from .topology import Likeness

OPS_LIMITS = (100, 100_000)
FAMILY_CAP = 8

_Key = TypeVar("_Key")


@dataclass(frozen=True)
class Candidate(Generic[_Key]):
    """A graph that was built.

    Attributes:
        key: Whatever the caller knows it by.
        name: Name in the zoo.
        family: Architecture.
        workload: Whether it is a workload of the papers.
        likeness: What it is like.
    """

    key: _Key
    name: str
    family: str
    workload: bool
    likeness: Likeness


def select(candidates: Iterable[Candidate[_Key]]) -> tuple[list[Candidate[_Key]], dict[str, str]]:
    """The candidates that the rules let in, and why each other one is kept out, by name."""
    kept: list[Candidate[_Key]] = []
    why: dict[str, str] = {}
    of_family: Counter[str] = Counter()
    fewest, most = OPS_LIMITS
    for candidate in sorted(candidates, key=lambda c: not c.workload):  # stable: otherwise as they come
        ops = candidate.likeness.ops
        twin = None
        if not candidate.workload:
            twin = next((k.name for k in kept if candidate.likeness.is_near_copy(k.likeness)), None)
        if ops < fewest:
            why[candidate.name] = f"too small: below {fewest} ops"
        elif ops > most:
            why[candidate.name] = f"too large: above {most} ops"
        elif twin is not None:
            why[candidate.name] = f"near copy of {twin}"
        elif not candidate.workload and of_family[candidate.family] >= FAMILY_CAP:
            why[candidate.name] = f"family is full: it has {FAMILY_CAP} graphs"
        else:
            kept.append(candidate)
            of_family[candidate.family] += not candidate.workload
    return kept, why
