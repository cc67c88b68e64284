"""Figures of ``opgym reproduce gdp`` as tables that a reader is shown."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ..result_page import TextTable, percent
from . import methods
from .cells import By, better, by_row, figures_by, heading, means, reached, times, told
from .claims import AT_MOST, BEATS, CLAIMS, SPEED_UP
from .figures import ALL, GROUPS, TASKS, Line
from .methods import GDP, HDP, HUMAN, METIS, PORTFOLIO
from .plan import ABLATION, BATCH, GENERALIZATION, ONE
from .tables import UNSCREENED, Table

Shown = dict[str, list[TextTable]]
#: What the page calls tables row by row, behind what it calls the means.
ROWS = "-rows"
CLAIMED = "claims"


def texts(tables: Sequence[Table], *, whole: bool = True) -> Shown:
    """What is shown of each table with something in it: means first, then row by row, and claims at the end.

    Args:
        tables: The tables.
        whole: Whether they are of all rows and methods; else only claims of which something is measured are told.

    Returns:
        Tables by what the page calls them: ``one``, ``one-rows``, ``batch``, ..., ``claims``.
    """
    found: Shown = {}
    for table in tables:
        if table.columns and table.workloads:
            for name, shown in _SHOWN[table.name](table, figures_by(table)).items():
                found[name] = [each for each in shown if each.rows]
    if (claimed := claims([one for table in tables for one in table.lines], whole=whole)).rows:
        found[CLAIMED] = [claimed]
    return found


def claims(lines: Sequence[Line], *, whole: bool = True) -> TextTable:
    """What is claimed of GDP, and whether it holds here."""
    rows = []
    for claim in CLAIMS:
        found = claim.measured(lines)
        if found is None and not whole:
            continue
        ours = "-" if found is None else _claimed(found)
        rows.append([claim.text, claim.said, ours, claim.standing(lines).value, claim.reason])
    title = f"What is claimed of GDP{'' if whole else ', on the rows and by the seeds that were asked for'}"
    return TextTable(title, ("claim", "said", "ours", "here", "why"), rows)


def _claimed(found: Line) -> str:
    if found["metric"] == BEATS:
        return f"{found['value']} of {found['n']} rows"
    if found["metric"].startswith((SPEED_UP, AT_MOST)):
        most = "at most " if found["metric"].startswith(AT_MOST) else ""
        return f"{most}{times(found)}x, {found['n']} rows"
    return f"{percent(found)} %, {found['n']} {'runs' if found['metric'] == 'loss' else 'rows'}"


def _one(table: Table, by: By) -> Shown:
    names, task = list(table.columns), f"{ONE}/{ALL}"
    over = [
        [name, *(percent(by.get((f"{ONE}/{group}", name, f"improvement_over:{base}")))
                 for base in (HUMAN, HDP) for group in (ALL, TASKS))]
        for name in names
    ]  # fmt: skip
    races = [
        [name, times(by.get((task, name, f"{SPEED_UP}:{HDP}"))), reached(missed),
         times(by.get((task, name, f"{AT_MOST}:{HDP}")))]
        for name in names if (missed := by.get((task, name, f"never_reaches:{HDP}"))) is not None
    ]  # fmt: skip
    who = ("column", f"{HUMAN}: all", f"{HUMAN}: tasks", f"{HDP}: all", f"{HDP}: tasks")
    race = f"one: evaluations of {HDP} to its last value / those of others to one as good"
    summary = [
        *_ratios(table, by),
        TextTable("one: better than others, %", who, told(over)),
        TextTable(race, ("column", "times faster", "reached", "at most"), races),
    ]  # fmt: skip
    first = [name for name in names if "@" not in name]
    search = [name for name in names if name.partition("@")[0] in methods.SEARCHES]
    early = [name for name in names if name.endswith(("@1", "@100")) and name not in search]
    late = [name for name in names if name not in (*first, *search, *early)]
    return {ONE: summary, ONE + ROWS: by_row(table, by, first, search, early, late)}


def _batch(table: Table, by: By) -> Shown:
    names, bases = list(table.columns), (HUMAN, HDP, GDP)
    return {
        BATCH: [
            *_ratios(table, by),
            TextTable("batch: better than others, %", ("column", *bases), better(f"{BATCH}/{ALL}", by, names, bases)),
            *by_row(table, by, names),
        ]
    }  # fmt: skip


def _generalization(table: Table, by: By) -> Shown:
    task = f"{GENERALIZATION}/{ALL}"
    own = [name for name in table.columns if name.rpartition(" ")[0] in methods.UNSEEN]
    others = [name for name in table.columns if methods.stem(name.rpartition(" ")[0]) not in methods.UNSEEN]
    bases = (HUMAN, METIS, PORTFOLIO, HDP, GDP, methods.FEW, methods.AS_MANY)
    over = [
        [base, *(percent(by.get((task, name, f"improvement_over:{base}"))) for name in own)] for base in bases
    ]
    tuning = [
        [weights, percent(by.get((task, methods.zero_shot_name(weights), "improvement_over:fine-tuned"))),
         percent(by.get((task, tuned, f"evaluations_saved_over:{GDP}"))),
         reached(by.get((task, tuned, f"never_reaches:{GDP}"))),
         percent(by.get((task, tuned, f"evaluations_saved_at_most_over:{GDP}")))]
        for weights in methods.UNSEEN if (tuned := methods.fine_tuned_name(weights)) in table.columns
    ]  # fmt: skip
    spread = [
        [name, times(one), str(one["n"])]
        for name in own
        if (one := by.get((task, name, "ratio_of_trainings"))) is not None
    ]
    headings = ("weights", "one look better", "evaluations saved", "reached", "saved at most")
    summary = [
        *_ratios(table, by),
        TextTable("generalization: better than others, %", ("than", *map(heading, own)), told(over)),
        TextTable("generalization: beside fine-tuning one look, beside training from scratch fine-tuning, %", headings,
                  tuning),
        TextTable("generalization: multiples of the best known, of trainings median [least, most]",
                  ("column", "multiples", "trainings"), spread),
    ]  # fmt: skip
    first = [name for name in others if name in (*methods.HEURISTICS, PORTFOLIO)]
    rest = [name for name in others if name not in first]
    return {GENERALIZATION: summary, GENERALIZATION + ROWS: by_row(table, by, first, rest, own)}


def _ratios(table: Table, by: By) -> list[TextTable]:
    return means(table, by, "ratio_to_best_known", "multiples of the best known step time")


def _unscreened(table: Table, by: By) -> Shown:
    groups = [group for group in GROUPS if group != TASKS]
    what = "multiples of the best heuristic of each row"
    return {UNSCREENED: means(table, by, f"ratio_to_{PORTFOLIO}", what, groups)}


def _ablation(table: Table, by: By) -> Shown:
    parts = [name for name in table.columns if name in methods.ABLATIONS]
    tasks = {workload.label: f"{ABLATION}/{workload.label}" for workload in table.workloads}
    rows = [
        [label, *(percent(by.get((task, name, "loss"))) for name in parts)]
        for label, task in (tasks | {"all": f"{ABLATION}/{ALL}"}).items()
    ]
    loss = TextTable("ablation: longer than with all parts, %", ("row", *parts), told(rows))
    return {ABLATION: [loss, *by_row(table, by, list(table.columns))]}


_SHOWN: Mapping[str, Callable[[Table, By], Shown]] = {
    ONE: _one, BATCH: _batch, GENERALIZATION: _generalization, UNSCREENED: _unscreened, ABLATION: _ablation,
}  # fmt: skip
