"""What ``opgym reproduce gdp`` reports: a list of figures for each table."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from ....statistics import geometric_mean
from . import methods
from .columns import Column, annealing_as_many, column, from_scratch, rules, searches, shown
from .figures import ALL, GROUPS, TASKS, Figures, Line, line, mean
from .methods import GDP, HDP, HUMAN, METIS, PORTFOLIO
from .plan import ABLATION, BATCH, GENERALIZATION, ONE
from .reproduction import Measured
from .speed import saved, speed_ups
from .workloads import Workload

#: The part of ``generalization`` that is about a sample at which nobody looked before.
UNSCREENED = "unscreened"
#: The most evaluations of a learner: all of them.
WHOLE = methods.CUTS[-1]
GDP_WHOLE, HDP_WHOLE = methods.cut_name(GDP, WHOLE), methods.cut_name(HDP, WHOLE)


@dataclass(frozen=True)
class Table:
    """The figures of one table.

    Attributes:
        name: Of ``plan.TABLES``, or ``UNSCREENED``.
        workloads: Its rows.
        columns: Those with something in them, by name.
        lines: Everything that is reported: ``{task, method, metric, value, low, high, n, paper}``.
    """

    name: str
    workloads: Sequence[Workload]
    columns: dict[str, Column]
    lines: list[Line]


def tables(measured: Measured) -> list[Table]:
    """All tables that are asked for.

    Tasks are ``TABLE/ROW`` and ``TABLE/GROUP``: all rows, those that are tasks (no controls), and each link.
    """
    made = {ONE: one, BATCH: batch, GENERALIZATION: generalization, ABLATION: ablation}
    found = []
    for table in measured.settings.tables:
        found.append(made[table](measured))
        if table == GENERALIZATION:
            found.append(unscreened(measured))
    return found


def one(measured: Measured) -> Table:
    """Every method on every row; improvements over human expert and HDP, and search speed-up over HDP.

    A column with a number of evaluations in its name is compared with HDP after as many, any other with all of HDP's.
    """
    workloads = measured.settings.workloads(ONE)
    learned = shown(from_scratch(measured, workloads))
    cuts = [each.at(cut) for cut in methods.CUTS for each in learned.values()]
    found = shown([*rules(measured, workloads), *searches(measured, workloads), *cuts])
    figures = Figures(ONE, workloads, found)
    lines = [*figures.rows(), *figures.ratios(), *figures.improvements(HUMAN), *figures.spent()]
    for cut in methods.CUTS:
        base = methods.cut_name(HDP, cut)
        same = [name for name in found if name.endswith(f"@{cut}")]
        others = [name for name in found if "@" not in name] if cut == WHOLE else []
        if base in found and len(same) + len(others) > 1:
            lines += figures.improvements(base, HDP, [*same, *others])
    if HDP in learned:
        racing = [found[name] for name in found if name.endswith(f"@{WHOLE}") and name != HDP_WHOLE]
        for group in (ALL, TASKS):
            rows = [workload for workload in workloads if GROUPS[group](workload)]
            for each in racing:
                lines += speed_ups(f"{ONE}/{group}", each, found[HDP_WHOLE], HDP, rows)
    return Table(ONE, workloads, found, lines)


def batch(measured: Measured) -> Table:
    """One policy for several workloads, on those that it has learned from, beside policies of one workload each."""
    workloads = measured.settings.workloads(BATCH)
    own = column(measured, workloads, methods.zero_shot(methods.BATCH)).seen()
    workloads = [workload for workload in workloads if workload.name in own.courses]
    human = [each for each in rules(measured, workloads) if each.name == HUMAN]
    learned = [each.at(WHOLE) for each in from_scratch(measured, workloads) if each.courses]
    has = measured.settings.has(methods.BATCH)
    found = shown([*human, *learned, *[own] * has])
    figures = Figures(BATCH, workloads, found)
    lines = [*figures.rows(), *figures.ratios(), *figures.spent()]
    for base, name in ((HUMAN, HUMAN), (HDP_WHOLE, HDP), (GDP_WHOLE, GDP)):
        lines += figures.improvements(base, name)
    return Table(BATCH, workloads, found, lines)


def generalization(measured: Measured) -> Table:
    """Trained weights on what they have not seen, at one look and after fine-tuning."""
    settings = measured.settings
    workloads = settings.workloads(GENERALIZATION)
    others = [
        *rules(measured, workloads),
        *(each for each in searches(measured, workloads) if each.name == methods.FEW),
        *(each.at(WHOLE) for each in from_scratch(measured, workloads) if each.courses),
    ]
    if settings.has("annealing"):
        others.append(annealing_as_many(measured, workloads))
    trained: list[Column] = []
    for weights in filter(settings.has, methods.UNSEEN):
        for training in methods.trainings(weights, measured.store.methods):
            both = (methods.zero_shot(training), methods.fine_tuned(training))
            trained += [column(measured, workloads, method).unseen() for method in both]
    found = shown([*others, *trained])
    figures = Figures(GENERALIZATION, workloads, found)
    lines = [*figures.rows(), *figures.ratios(), *figures.spent()]
    names = [each.name for each in trained if each.courses]
    for base, name in (
        (HUMAN, HUMAN), (METIS, METIS), (PORTFOLIO, PORTFOLIO), (HDP_WHOLE, HDP), (GDP_WHOLE, GDP),
        (methods.FEW, methods.FEW), (methods.AS_MANY, methods.AS_MANY),
    ):  # fmt: skip
        if names:
            lines += figures.improvements(base, name, names)
    for weights in methods.UNSEEN:
        lines += _of_weights(weights, figures)
    return Table(GENERALIZATION, workloads, found, lines)


def _of_weights(weights: str, figures: Figures) -> Iterator[Line]:
    """What fine-tuning adds to one look, what it saves, and how far trainings are apart."""
    task, found = f"{GENERALIZATION}/{ALL}", figures.columns
    first, tuned = methods.zero_shot_name(weights), methods.fine_tuned_name(weights)
    if tuned in found:
        yield from figures.improvements(tuned, "fine-tuned", [first])
        if GDP_WHOLE in found:
            yield from saved(task, found[tuned], found[GDP_WHOLE], GDP, figures.workloads)
        yield from _beats(task, found[tuned], [found.get(HUMAN), found.get(HDP_WHOLE)], figures.workloads)
    for kind in (methods.zero_shot_name, methods.fine_tuned_name):
        means: dict[str, float] = {}  # by weights: the default may be one of those with a seed in its name
        for each in found.values():
            name, _, _ = each.name.rpartition(" ")
            if methods.stem(name) == weights and each.name == kind(name):
                digest = next(iter(each.courses.values()))[0].weights
                if ratios := [r for r in figures.ratio_of(each).values() if math.isfinite(r)]:
                    means[digest] = geometric_mean(ratios)
        if len(means) > 1:
            values = list(means.values())
            yield line(
                task,
                kind(weights),
                "ratio_of_trainings",
                median(values),
                len(values),
                min(values),
                max(values),
            )


def _beats(
    task: str, column: Column, others: Sequence[Column | None], workloads: Sequence[Workload]
) -> Iterator[Line]:
    """On how many rows it is better than all of others."""
    known = [other for other in others if other is not None]
    rows = [workload for workload in workloads if column.of(workload)]
    if len(known) < len(others) or not rows or any(not other.of(row) for other in known for row in rows):
        return
    better = sum(all(column.value(row) < other.value(row) for other in known) for row in rows)
    yield line(task, column.name, "beats_human_and_hdp", better, len(rows))


def unscreened(measured: Measured) -> Table:
    """Trained weights at one look, and heuristics, beside the best heuristic of each row of an unscreened sample."""
    workloads = measured.settings.sample
    trained = [
        column(measured, workloads, methods.zero_shot(weights)).unseen()
        for weights in filter(measured.settings.has, methods.UNSEEN)
    ]
    found = shown([*rules(measured, workloads), *trained])
    figures = Figures(UNSCREENED, workloads, found, [group for group in GROUPS if group != TASKS])
    lines = [*figures.rows(), *figures.ratios(PORTFOLIO), *figures.spent()]
    return Table(UNSCREENED, workloads, found, lines)


def ablation(measured: Measured) -> Table:
    """What GDP loses without attention and without superposition, seed by seed.

    The interval is over runs: it says nothing about other workloads than these four.
    """
    workloads = measured.settings.workloads(ABLATION)
    whole = column(measured, workloads, methods.learners()[0])
    parts = [column(measured, workloads, method) for method in methods.ablations()]
    found = shown([whole, *parts]) if measured.settings.has(GDP) else {}
    figures = Figures(ABLATION, workloads, found)
    lines = [*figures.rows(), *figures.spent()]
    for part in parts if GDP in found else ():
        losses, runs = [], []
        for workload in workloads:
            of_row = [
                without.value / ours.value - 1
                for without, ours in part.pairs(whole, workload)
                if math.isfinite(without.value) and math.isfinite(ours.value)
            ]
            task = f"{ABLATION}/{workload.label}"
            lines += mean(task, part.name, "loss", of_row, [str(i) for i in range(len(of_row))])
            losses += of_row
            runs += [f"{workload.name} {i}" for i in range(len(of_row))]
        lines += mean(f"{ABLATION}/{ALL}", part.name, "loss", losses, runs)
    return Table(ABLATION, workloads, found, lines)
