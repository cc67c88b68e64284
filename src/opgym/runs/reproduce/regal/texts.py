"""Values of ``opgym reproduce regal`` as tables, and what their files are called."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ....datasets.suites import POPULATIONS
from ..result_page import TextTable, percent
from .methods import BASELINE, EVALUATIONS, SEEDS
from .reproduction import Settings
from .table import lines_of
from .tasks import PARTS, TASKS

#: What files are called that are no whole test, where nobody gives them a name.
_QUICK, _SAMPLE = "quick", "sample"


def file_name(task: str, sample: str = "") -> str:
    """The name of the file of a task; of what is no whole test, with a word that says so."""
    return f"regal-{task}{'-' * bool(sample)}{sample}.jsonl"


def sample_name(settings: Settings, name: str = "") -> str:
    """What files of results are called beside their task; empty for the whole test with all columns and seeds.

    Args:
        settings: What was measured.
        name: What they are to be called; validation and a quick look say so all the same.
    """
    if settings.part != "test" or settings.quick:
        return "-".join(filter(None, [settings.part if settings.part != "test" else _QUICK, name]))
    chosen = (settings.graphs, settings.seeds, settings.columns, settings.evaluations, settings.seeded)
    return name or ("" if chosen == (None, len(SEEDS), None, EVALUATIONS, True) else _SAMPLE)


def taken_names() -> list[str]:
    """First words of names that files of something else have: results of one thing never overwrite another's."""
    longer = [
        other.removeprefix(f"{task}-") for task in TASKS for other in TASKS if other.startswith(f"{task}-")
    ]
    return sorted({_QUICK, _SAMPLE, *(part for part in PARTS if part != "test"), *longer})


# --- Tables -------------------------------------------------------------------------------------------------


def tables(document: Mapping[str, Any], lines: Sequence[Mapping[str, Any]] | None = None) -> list[TextTable]:
    """Everything that a reader is shown of a task: for each population its columns, then agents beside them.

    Args:
        document: What ``regal.run`` returns of the task.
        lines: What :func:`~opgym.runs.reproduce.regal.table.lines_of` makes of it, if that is at hand.
    """
    lines, found = lines_of(document) if lines is None else lines, []
    for population in POPULATIONS:
        of_population = [line for line in lines if line["task"] == f"{document['task']}/{population}"]
        if of_population:
            found += _tables(document, population, of_population)
    return found


def without_headroom(document: Mapping[str, Any]) -> str | None:
    """Why nothing is said of headroom in the tables of a task; ``None``: it is, wherever a best known value is."""
    if document["reference_version"] is not None:
        return None
    if document["part"] != "test":
        return "best known values are stored for the test only"
    return "best known values are stored for transfers that take no time only"


def _tables(
    document: Mapping[str, Any], population: str, lines: Sequence[Mapping[str, Any]]
) -> list[TextTable]:
    by = {(line["method"], line["metric"]): line for line in lines}
    title = f"{document['task']}, {population} graphs of the {document['part']} part"
    kinds = {method["name"]: method["kind"] for method in document["methods"]}
    shown = [name for name in kinds if (name, "feasible") in by]
    rows = [_row(name, by) for name in shown]
    base = document["methods"][0]["name"]
    headroom = by.get((base, "headroom"))
    left = "" if headroom is None else f"; {base} leaves {percent(headroom)} % to the best known"
    headings = ("column", "better, %", "headroom, %", "won / tied / lost", "fits", "s", "evaluations")
    found = [TextTable(title + left, headings, rows)]
    further = {m["name"] for m in document["methods"] if m["training_of"] not in ("", m["name"])}
    agents = [name for name in shown if kinds[name] != BASELINE and name not in further]
    if agents:
        same = [
            method["name"]
            for method in document["methods"][1:]
            if (method["kind"], method["evaluations"]) == (BASELINE, document["methods"][0]["evaluations"])
            and method["name"] in shown
        ]
        if same:
            over = [
                [name, *(percent(by.get((name, f"improvement_over:{other}"))) for other in same)]
                for name in agents
            ]
            found.append(TextTable(f"{title}: better than other columns, %", ("agent", *same), over))
        # Ablations and other budgets stand beside each other; the paper has no such figures.
        said = [
            line for line in lines if same and line["paper"] is not None and line["method"] not in further
        ]
        spread = [line for line in lines if line["metric"] == "improvement_of_trainings"]
        rest = [
            *(
                [line["method"], _words(line["metric"]), _figure(line), _figure(line, line["paper"])]
                for line in said
            ),
            *([line["method"], "better: median [least, most], %", percent(line), "-"] for line in spread),
        ]
        if rest:
            beside = ("agent", "figure", "ours", "the paper's")
            found.append(TextTable(f"{title}: beside the paper", beside, rest))
    return found


def _row(name: str, by: Mapping[tuple[str, str], Mapping[str, Any]]) -> list[str]:
    def of(metric: str) -> Mapping[str, Any] | None:
        return by.get((name, metric))

    ranks = [of(metric) for metric in ("wins", "ties", "losses")]
    fits, spent = by[name, "feasible"], by[name, "evaluations"]
    return [
        name,
        percent(of("improvement")),
        percent(of("headroom_captured"), digits=0),
        " / ".join(str(line["value"]) for line in ranks if line is not None) or "-",
        f"{round(fits['value'] * fits['n'])} of {fits['n']}",
        f"{by[name, 'seconds']['value']:.2f}",
        f"{spent['value']:,.0f}",
    ]


def _words(metric: str) -> str:
    return {
        "improvement": "better, %",
        "headroom_captured": "of headroom, %",
        "times_next_best": "times the best gain of the paper's baselines and GAS",
    }[metric]


def _figure(line: Mapping[str, Any], value: float | None = None) -> str:
    if line["metric"] == "times_next_best":
        return f"{line['value'] if value is None else value:.1f}"
    if value is not None:
        return f"{100 * value:.2f}".rstrip("0").rstrip(".")
    return percent(line, 2)
