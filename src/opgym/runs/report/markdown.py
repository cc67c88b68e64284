"""A report as Markdown: one table a question, and the pictures beside them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ...graphs.units import format_value
from ...statistics import LEAST_CLUSTERS
from .numbers import CLOSE
from .sections import effort_text

#: What means something to Markdown, or would be turned into a link.
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~!$@&])|(?<=:)(//)|(?i:(?<=www)(\.))")
#: Agents that the table of problems has columns for.
_WIDEST = 12


def escaped(text: str) -> str:
    """A text that came from anywhere, shown as it is: no markup, no HTML, no link."""
    return _SPECIAL.sub(lambda match: _harmless(match[0]), " ".join(text.split()))


def _harmless(found: str) -> str:
    entity = {"<": "&lt;", ">": "&gt;", "&": "&amp;", "|": "&#124;"}.get(found)
    return entity or "".join(f"\\{letter}" for letter in found)


def page(
    documents: Sequence[Mapping[str, Any]],
    pictures: Sequence[Mapping[str, Sequence[str]]],
    folders: Sequence[str],
) -> str:
    """The whole report.

    Args:
        documents: ``numbers.document`` of each section.
        pictures: File names of each section by what they show: ``profile``, ``means``, ``anytime``, ``memory``.
        folders: Where the tables are from.
    """
    parts = [
        "# Comparison of agents",
        "Made by `opgym report` from " + ", ".join(escaped(folder) for folder in folders) + ".",
        _reading(),
    ]
    for document, files in zip(documents, pictures, strict=True):
        parts += _section(document, files)
    return "\n\n".join(parts) + "\n"


def _reading() -> str:
    return f"""\
Values are divided by the best known value of the problem, or, where none is known, by the best found here: lower is
better, 1 is as good as the best known, below 1 is better. A run without a feasible solution, one that failed and one
that does not apply count as infinite. IQM is the mean of the middle half of all runs, with a 95 % interval from a
bootstrap that draws families of graphs (twins as one), then graphs, then seeds, where there are at least
{LEAST_CLUSTERS} families. The geometric mean is over the problems that all agents solve with every seed; those that
solve nothing are not asked. An agent wins a problem if its worst seed is better than every seed of the others; where
seeds overlap, there is a tie. An agent marked \\* draws no random numbers, so it ran with one seed. An agent
marked † was trained before, and what its training took is in no budget, no evaluations and no seconds here. Evaluations
and seconds are medians."""


def _section(document: Mapping[str, Any], files: Mapping[str, Sequence[str]]) -> list[str]:
    suite = escaped(document["suite"]) or "Own problems"
    population, objective = escaped(document["population"]), escaped(document["objective"])
    effort = effort_text(document["budget"], document["seconds_limit"])
    agents = sorted(document["agents"], key=lambda agent: agent["interquartile_mean"]["estimate"])
    parts = [
        f"## {suite}: {objective}, {population} graphs, {effort}",
        _facts(document),
        _summary(agents),
        _picture("interquartile means", files["means"]),
        "### Shares of runs within a factor of the best known value",
        _picture("performance profile", files["profile"]),
        "### The best so far, median and quartiles over problems",
        _picture("anytime curves", files["anytime"]),
    ]
    if len(agents) > 1:
        parts += [
            "### How often the agent of the row is better than that of the column",
            _pairs(document, agents),
        ]
    parts += ["### Problems", _problems(document, agents)]
    if files["memory"]:
        parts += [
            "### Time of a step against memory",
            "The grey line joins what nothing beats in both.",
            *(_picture("step time against peak memory", [file]) for file in files["memory"]),
        ]
    return parts


def _facts(document: Mapping[str, Any]) -> str:
    facts = [
        f"{document['problems']} problems from {document['clusters']} families, {document['solved_by_all']} of them "
        "solved by all."
    ]
    if document["left_out"]:
        facts.append(f"{document['left_out']} more were left out, as not all agents ran on them.")
    if document["without_best_known"]:
        facts.append(f"{document['without_best_known']} have no best known value.")
    facts += [
        f"{escaped(agent['agent'])} {what} on {agent[key]} of them."
        for agent in document["agents"]
        for key, what in (("failed", "**failed**"), ("not_applicable", "does not apply"))
        if agent[key]
    ]
    for agent in document["agents"]:
        if agent["trained_on_these"] is None:
            facts.append(f"It is not known which graphs {escaped(agent['agent'])} had learned from.")
        elif agent["trained_on_these"]:
            facts.append(
                f"{escaped(agent['agent'])} had learned from {agent['trained_on_these']} of these graphs before."
            )
    single = [a["agent"] for a in document["agents"] if len(a["seeds"]) == 1 and not a["deterministic"]]
    if single:
        facts.append(f"With one seed nothing is known of the noise of {', '.join(map(escaped, single))}.")
    return " ".join(facts)


def _summary(agents: Iterable[Mapping[str, Any]]) -> str:
    rows = [
        [
            _marked(agent),
            str(len(agent["seeds"])),
            _interval(agent["interquartile_mean"]),
            _number(agent["geometric_mean"]),
            f"{agent['close']:.0%}",
            str(agent["wins"]),
            str(agent["ties"]),
            f"{agent['feasible']:.0%}",
            "-" if agent["evaluations"] is None else f"{agent['evaluations']:,.0f}",
            "-" if agent["seconds"] is None else f"{agent['seconds']:.3g}",
        ]
        for agent in agents
    ]
    head = ["agent", "seeds", "IQM", "geometric mean", f"within {CLOSE - 1:.0%}", "wins", "ties", "feasible",
            "evaluations", "seconds"]  # fmt: skip
    return _table(head, rows)


def _marked(agent: Mapping[str, Any]) -> str:
    """The label of an agent, with what a reader must know to compare it."""
    marks = [mark for mark, key in ((" \\*", "deterministic"), (" †", "trained_before")) if agent[key]]
    return escaped(agent["agent"]) + "".join(marks)


def _pairs(document: Mapping[str, Any], agents: Sequence[Mapping[str, Any]]) -> str:
    """A square, best agent first; bold where the interval leaves 50 % out."""
    found: dict[tuple[str, str], Mapping[str, Any]] = {}
    for pair in document["pairs"]:
        share = pair["first_is_better"]
        found[pair["first"], pair["second"]] = share
        turned = {end: None if share[end] is None else 1 - share[end] for end in ("estimate", "low", "high")}
        found[pair["second"], pair["first"]] = turned | {"low": turned["high"], "high": turned["low"]}
    labels = [agent["agent"] for agent in agents]
    rows = [
        [escaped(row), *("" if row == column else _share(found[row, column]) for column in labels)]
        for row in labels
    ]
    return _table(["", *map(escaped, labels)], rows)


def _share(share: Mapping[str, Any]) -> str:
    if share["low"] is None:
        return f"{share['estimate']:.0%}"
    text = f"{share['estimate']:.0%} [{share['low']:.0%}, {share['high']:.0%}]"
    return f"**{text}**" if share["low"] > 0.5 or share["high"] < 0.5 else text


def _problems(document: Mapping[str, Any], agents: Sequence[Mapping[str, Any]]) -> str:
    """Who wins where, and the median ratios of the best agents."""
    shown = [agent["agent"] for agent in agents[:_WIDEST]]
    rows = []
    for row in document["rows"]:
        tie = f"tie: {', '.join(map(escaped, row['tied']))}" if row["tied"] else "nobody"
        best = row["best_known"]
        rows.append(
            [
                escaped(row["problem"]),
                "-" if best is None else format_value(best, row["unit"]),
                tie if row["winner"] is None else escaped(row["winner"]),
                *(_number(row["median_ratio"][label]) for label in shown),
            ]
        )
    table = _table(["problem", "best known", "best here", *map(escaped, shown)], rows)
    left = len(agents) - len(shown)
    more = f" The {left} with the highest are in the JSON document only." if left else ""
    return f"Medians over seeds of value / best known; agents by their IQMs.{more}\n\n{table}"


def _picture(what: str, files: Sequence[str]) -> str:
    return "\n".join(f"![{what}]({file})" for file in files)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _interval(mean: Mapping[str, Any]) -> str:
    if mean["low"] is None:
        return _number(mean["estimate"])
    return f"{_number(mean['estimate'])} [{_number(mean['low'])}, {_number(mean['high'])}]"


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return "∞" if math.isinf(value) else f"{value:.4g}" if value >= 10 else f"{value:.3f}"
