"""The tasks of ``opgym reproduce regal``, and their graphs as problems."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from .... import datasets
from ....datasets import zoo
from ....datasets.suites import POPULATIONS, Row
from ...references.regal_suites import CAP, CAP_EVALUATIONS, SETTINGS, easy_peak, generated, row_of

#: Suite of each task, and whether its transfers take time, which those of the suites do not.
TASKS: Mapping[str, tuple[str, bool]] = MappingProxyType(
    {
        "memory-1": ("regal-memory-1", False),
        "memory-2": ("regal-memory-2", False),
        "time": ("regal-time", False),
        "memory-2-links": ("regal-memory-2", True),
        "time-links": ("regal-time", True),
    }
)
#: Two devices with links between them, for the same graphs.
LINKED: Mapping[str, str] = MappingProxyType({"synthetic": "2xREGAL@pcie3", "real": "2xP100"})
PARTS = ("test", "validation")


def devices_of(task: str) -> int:
    """How many devices a task has."""
    return 1 if task == "memory-1" else 2


@dataclass(frozen=True)
class Graph:
    """One graph of a task.

    Attributes:
        task: One of ``TASKS``.
        graph: Its id.
        part: Of the suite.
        population: ``"synthetic"`` or ``"real"``.
        position: Among those of its population in the part.
    """

    task: str
    graph: str
    part: str
    population: str
    position: int

    @property
    def key(self) -> dict[str, Any]:
        """What a stored row must share to be about this graph."""
        suite, linked = TASKS[self.task]
        base = self.graph.partition("#")[0]
        source = zoo.entry(base).fingerprint if base.startswith(zoo.PREFIX) else ""
        cap = [CAP, CAP_EVALUATIONS] if SETTINGS[suite].capped else None
        cluster = LINKED[self.population] if linked else SETTINGS[suite].clusters[self.population]
        return {"suite": suite, "cluster": cluster, "cap": cap, "graph": self.graph, "source": source}

    def row(self) -> Row:
        """Its problem.

        Where memory is little and transfers take time, memory is what the rule of the suite says with these transfers.
        """
        suite, linked = TASKS[self.task]
        if not linked:
            return listed(suite).get(self.graph) or row_of(suite, self.graph, self.part)
        imported, cluster = datasets.read(self.graph), LINKED[self.population]
        row = Row(
            self.graph, imported.graph.fingerprint, cluster, SETTINGS[suite].objective.value, None, self.part,
            "unscreened",
        )  # fmt: skip
        if not SETTINGS[suite].capped:
            return row
        return replace(row, capacity_bytes=math.floor(CAP * easy_peak(imported, cluster).outcome.value))


def graphs_of(task: str, part: str, most: Mapping[str, int]) -> list[Graph]:
    """Graphs of a task, synthetic ones first.

    Args:
        task: One of ``TASKS``.
        part: One of ``PARTS``.
        most: At most so many of each population, evenly spread over the part; all of those that it does not name.
            The synthetic ones of validation, millions, are the first of their rule.
    """
    suite = datasets.suite(TASKS[task][0])
    found = []
    for population in POPULATIONS:
        names = [row.graph for row in suite.part(part, population)]
        count = most.get(population, len(names))
        if part == "validation":
            if population == "synthetic":
                rule = generated(part)
                names = [rule[index] for index in range(min(len(rule), count))]
            else:  # in an order in which neighbours are not of one family
                names.sort(key=lambda name: hashlib.sha256(name.encode()).digest())
        found += [Graph(task, names[at], part, population, at) for at in spread(len(names), count)]
    return found


def spread(available: int, count: int) -> list[int]:
    """Positions of ``count`` of so many things, evenly spread: the first of each equal part."""
    return [i * available // min(count, available) for i in range(min(count, available))]


@lru_cache(maxsize=len(SETTINGS))
def listed(suite: str) -> Mapping[str, Row]:
    """The rows of a suite by the ids of their graphs."""
    return {row.graph: row for row in datasets.suite(suite).rows}
