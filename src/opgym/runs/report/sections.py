"""From the tables of evaluations to what can be compared: the same problems, at the same budget, in one kind of graph.

Tables may have been written by anybody. Ratios in them are not believed: values are, as there is nothing to compute
them from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...datasets.suites import POPULATIONS
from ...datasets.synthetic import PREFIX as SYNTHETIC
from ...errors import InvalidDatasetError
from ...outcome import Verdict
from ..evaluate.result_tables import (
    CURVES,
    FAILED,
    KEY,
    MOST_AGENTS,
    MOST_PROBLEMS,
    MOST_SEEDS,
    NOT_APPLICABLE,
    NOTHING,
    RESULTS,
    THIS_GRAPH,
    TRAINED_ON,
    UNKNOWN_GRAPHS,
    read_table,
)

MOST_SECTIONS = 50
_UNITS = ("ns", "bytes", "ms")
_MOST_LETTERS = 80
_DIGEST_LETTERS = 4

Floats = NDArray[np.float64]
Record = Mapping[str, Any]
Curve = list[tuple[int, float, float]]


@dataclass(frozen=True)
class Agent:
    """One column of a comparison.

    Attributes:
        label: What tables and figures call it; unique within a section.
        name: What the evaluation called it.
        options: Digest of its options.
        seeds: Seeds that it ran on every problem.
        deterministic: Whether it drew no random number on any problem.
    """

    label: str
    name: str
    options: str
    seeds: tuple[int, ...]
    deterministic: bool


@dataclass(frozen=True)
class Problem:
    """One row of a comparison.

    Attributes:
        name: Its name.
        twins: What must not be counted twice.
        unit: Of values.
        best_known: Best value of the reference lines; ``None``: unknown.
        bound: A value that nothing beats; ``None``: unknown.
    """

    name: str
    twins: str
    unit: str
    best_known: float | None
    bound: float | None


class Group(NamedTuple):
    """What all runs of a section share, as its attributes say."""

    suite: str
    population: str
    objective: str
    budget: int
    seconds_limit: float | None


@dataclass(frozen=True, eq=False)
class Section:
    """Agents on problems that may be averaged.

    Attributes:
        suite: Name of the suite; empty for problems of one's own.
        population: One of ``POPULATIONS``.
        objective: What is minimised.
        budget: Evaluations that each agent was given.
        seconds_limit: Most seconds of each run; ``None``: no limit.
        agents: The agents.
        problems: Those that all of the agents ran on.
        left_out: Number of problems that only some of the agents ran on.
        records: Of each agent, ``[problems][seeds]``; a deterministic result stands for every seed.
        curves: Of each agent, ``[problems][seeds]``, the points of its best-so-far curve.
    """

    suite: str
    population: str
    objective: str
    budget: int
    seconds_limit: float | None
    agents: tuple[Agent, ...]
    problems: tuple[Problem, ...]
    left_out: int
    records: tuple[Sequence[Sequence[Record]], ...]
    curves: tuple[Sequence[Sequence[Curve]], ...]

    def column(self, agent: int, name: str) -> Floats:
        """A column of the table of results, ``[problems, seeds] float``; NaN where it is null."""
        return np.array([[_number(record[name]) for record in row] for row in self.records[agent]])

    @cached_property
    def values(self) -> list[Floats]:
        """Value of each run of each agent, ``[problems, seeds] float``; infinity without a feasible solution."""
        return [
            np.array(
                [
                    [record["value"] if record["verdict"] == Verdict.OK else np.inf for record in row]
                    for row in rows
                ],
                np.float64,
            )
            for rows in self.records
        ]

    @cached_property
    def best(self) -> Floats:
        """What ratios are relative to, ``[problems] float``: best known, or else the best value of any agent here."""
        found = np.min([values.min(axis=1) for values in self.values], axis=0)
        known = np.array([np.nan if p.best_known is None else p.best_known for p in self.problems])
        return np.where(np.isnan(known), found, known)

    @cached_property
    def ratios(self) -> list[Floats]:
        """``values`` / ``best``, ``[problems, seeds] float``."""
        return [self.ratio(values, self.best[:, None]) for values in self.values]

    @staticmethod
    def ratio(values: Floats, best: Floats) -> Floats:
        """Values relative to the best; of 0 only 0 is a multiple."""
        with np.errstate(invalid="ignore", divide="ignore"):
            ratios = np.where(best > 0, values / best, np.where(values > 0, np.inf, 1.0))
        return np.where(np.isinf(values), np.inf, ratios)

    @property
    def clusters(self) -> list[str]:
        """What must not be counted twice, of each problem."""
        return [problem.twins for problem in self.problems]

    def count(self, agent: int, column: str, value: str) -> int:
        """Problems for which an agent has this value in a column with any seed."""
        return sum(any(record[column] == value for record in row) for row in self.records[agent])

    def trained_before(self, agent: int) -> bool:
        """Whether an agent had learned from any graphs before it ran."""
        return any(self.count(agent, "trained_on", what) for what in TRAINED_ON if what != NOTHING)

    def trained_on_these(self, agent: int) -> int | None:
        """Problems whose very graph an agent had learned from before; ``None``: it does not know."""
        unknown = self.count(agent, "trained_on", UNKNOWN_GRAPHS)
        return None if unknown else self.count(agent, "trained_on", THIS_GRAPH)


def read_sections(folders: Sequence[Path]) -> list[Section]:
    """What the folders of evaluations hold, joined.

    Args:
        folders: Folders that ``opgym evaluate`` has written.

    Raises:
        InvalidDatasetError: A table is damaged, two contradict each other, or nothing can be compared.
    """
    records: dict[tuple[Any, ...], Record] = {}
    curves: dict[tuple[Any, ...], Curve] = {}
    for folder in folders:
        table = read_table(folder, RESULTS)
        for values in zip(*table.values(), strict=True):
            record: Record = dict(zip(table, values, strict=True))
            _require_sound(record, folder)
            other = records.setdefault(_key(record), record)
            if (other["value"], other["verdict"]) != (record["value"], record["verdict"]):
                raise InvalidDatasetError(
                    f"{folder}: {_printable(record['agent'])} on {_printable(record['row'])}, seed {record['seed']}, "
                    f"has another value than in another folder; a run has one result"
                )
        for key, points in _curves(folder).items():
            curves.setdefault(key, points)
    if not records:
        raise InvalidDatasetError(f"no results in {', '.join(map(str, folders))}")
    groups: dict[Group, list[Record]] = {}
    for record in records.values():
        population = POPULATIONS[not record["graph"].startswith(SYNTHETIC)]
        group = Group(
            record["suite"], population, record["objective"], record["budget"], record["seconds_limit"]
        )
        groups.setdefault(group, []).append(record)
    if len(groups) > MOST_SECTIONS:
        raise InvalidDatasetError(
            f"{len(groups)} suites, objectives, budgets and limits of time; at most {MOST_SECTIONS} are compared"
        )
    return [_section(key, found, curves) for key, found in groups.items()]


def _section(group: Group, records: Sequence[Record], curves: Mapping[tuple[Any, ...], Curve]) -> Section:
    by_agent: dict[tuple[str, str], dict[str, dict[int, Record]]] = {}
    for record in records:
        rows = by_agent.setdefault((record["agent"], record["options"]), {})
        rows.setdefault(record["row"], {})[record["seed"]] = record
    by_row: dict[str, list[Record]] = {}
    for record in records:
        by_row.setdefault(record["row"], []).append(record)
    effort = effort_text(group.budget, group.seconds_limit)
    title = f"{_printable(group.suite) or 'own problems'}, {_printable(group.objective)}, {effort}"
    for what, count, most in (
        ("agents", len(by_agent), MOST_AGENTS),
        ("problems", len(by_row), MOST_PROBLEMS),
        ("seeds", len({record["seed"] for record in records}), MOST_SEEDS),
    ):
        if count > most:
            raise InvalidDatasetError(f"{title}: {count} {what}; at most {most} are compared")
    common = [row for row in by_row if all(row in rows for rows in by_agent.values())]
    if not common:
        raise InvalidDatasetError(f"{title}: no problem that all of {len(by_agent)} agents ran on")
    agents: list[Agent] = []
    chosen: list[list[list[Record]]] = []
    for (name, options), rows in by_agent.items():
        free = {row for row in common if not any(r["deterministic"] for r in rows[row].values())}
        seeds = set.intersection(*(set(rows[row]) for row in free)) if free else set(rows[common[0]])
        if not seeds:
            raise InvalidDatasetError(f"{title}: {_printable(name)} has no seed that it ran on every problem")
        agents.append(Agent(_label(name, options, by_agent), name, options, tuple(sorted(seeds)), not free))
        chosen.append(
            [
                [
                    rows[row][seed] if row in free else next(iter(rows[row].values()))
                    for seed in agents[-1].seeds
                ]
                for row in common
            ]
        )
    problems = tuple(_problem(row, by_row[row], title) for row in common)
    return Section(
        *group, tuple(agents), problems, len(by_row) - len(common), tuple(chosen),
        tuple([[curves.get(_key(record), []) for record in row] for row in rows] for rows in chosen),
    )  # fmt: skip


def effort_text(budget: int, seconds_limit: float | None) -> str:
    """What each run of a section was given, for its title."""
    limit = "" if seconds_limit is None else f", at most {seconds_limit:.15g} s each run"
    return f"{budget:,} evaluations{limit}"


def _problem(name: str, records: Sequence[Record], title: str) -> Problem:
    units = {record["unit"] for record in records if record["unit"]}
    twins = {record["twins"] for record in records}
    if len(units) > 1 or len(twins) > 1:
        raise InvalidDatasetError(
            f"{title}: {_printable(name)} has values in several units, or several groups of twins"
        )
    known = [record["best_known"] for record in records if record["best_known"] is not None]
    bounds = [record["bound"] for record in records if record["bound"] is not None]
    return Problem(
        _printable(name),
        twins.pop(),
        next(iter(units), ""),
        min(known, default=None),
        max(bounds, default=None),
    )


def _curves(folder: Path) -> dict[tuple[Any, ...], Curve]:
    """The curves of a folder, each in the order of its evaluations."""
    table = read_table(folder, CURVES)
    found: dict[tuple[Any, ...], Curve] = {}
    keys = [table[column.name] for column in KEY]
    for *key, evaluations, seconds, value in zip(
        *keys, table["evaluations"], table["seconds"], table["value"], strict=True
    ):
        curve = found.setdefault(tuple(key), [])
        if curve and not (curve[-1][0] <= evaluations and curve[-1][1] <= seconds and curve[-1][2] > value):
            raise InvalidDatasetError(
                f"{folder}: the curve of {_printable(str(key[2]))} on {_printable(str(key[1]))} does not descend"
            )
        curve.append((evaluations, seconds, value))
    return found


def _require_sound(record: Record, folder: Path) -> None:
    """Refuses a row whose columns contradict each other."""
    ok = record["verdict"] == Verdict.OK
    if ok and (record["value"] is None or record["unit"] not in _UNITS or record["seconds"] is None):
        raise InvalidDatasetError(
            f"{folder}: {_printable(record['agent'])} on {_printable(record['row'])} is ok without a value, seconds, "
            f"or a unit of {', '.join(_UNITS)}"
        )
    if record["verdict"] in (FAILED, NOT_APPLICABLE) and record["value"] is not None:
        raise InvalidDatasetError(
            f"{folder}: {_printable(record['agent'])} on {_printable(record['row'])} is {record['verdict']}, and has "
            "a value"
        )


def _key(record: Record) -> tuple[Any, ...]:
    return tuple(record[column.name] for column in KEY)


def _label(name: str, options: str, agents: Mapping[tuple[str, str], Any]) -> str:
    """The name of an agent, with the beginning of its digest where another one has the same name."""
    twice = sum(_printable(other) == _printable(name) for other, _ in agents) > 1
    return f"{_printable(name)} ({_printable(options)[:_DIGEST_LETTERS]})" if twice else _printable(name)


def _printable(text: str) -> str:
    """A name as it can be shown: on one line, without what changes how other text is shown, and not endless."""
    shown = "".join(c if c.isprintable() else "\ufffd" for c in text)
    return shown if len(shown) <= _MOST_LETTERS else f"{shown[: _MOST_LETTERS - 1]}…"


def _number(value: float | None) -> float:
    return np.nan if value is None else float(value)
