"""``opgym report``: compares what evaluations have found, as Markdown and pictures."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from .console import note, print_json
from .problem import JsonOption


def report(
    folders: Annotated[
        list[Path], typer.Argument(metavar="FOLDER...", help="Folders that `opgym evaluate` has written.")
    ],
    out: Annotated[
        Path,
        typer.Option(
            metavar="DIR", help="Folder for the page and its pictures; files of that name are replaced."
        ),
    ] = Path("report"),
    as_json: JsonOption = False,
) -> None:
    """Compare the results of evaluations: means with intervals, profiles, curves, winners and ties.

    Example:

    ```sh
    opgym report runs/evaluate_gdp --out report
    ```

    Results of several folders are joined; each suite, objective, number of evaluations, limit of seconds and kind of
    graph (real or synthetic) has a section of its own, over the problems that all of its agents ran on. DIR gets
    report.md and SVG files: interquartile means with intervals from a bootstrap of families, graphs and seeds,
    performance profiles, the best so far against evaluations and seconds, and step time against peak memory. Equal
    results give equal bytes.

    --json prints {files, sections}; a section has {suite, population, objective, budget, seconds_limit, problems,
    clusters, left_out, without_best_known, solved_by_all, agents, pairs, rows, profile}: agents with their means, wins
    and ties; pairs with how often the first is better; rows with the winner of each problem, or who is tied; shares of
    runs within factors of the best.
    """
    from ..runs.report import PAGE
    from ..runs.report import report as compare
    from ..runs.report.sections import effort_text
    from .targets import require_folder

    require_folder(out, "--out")
    document = compare(folders, out)
    if as_json:
        print_json(document)
        return
    for section in document["sections"]:
        print(
            f"{section['suite'] or 'own problems'}, {section['objective']}, {section['population']} graphs, "
            f"{effort_text(section['budget'], section['seconds_limit'])}: {_best(section)}"
        )
    note(f"wrote {out / PAGE} and {len(document['files']) - 1} pictures")


def _best(section: Mapping[str, Any]) -> str:
    """Who is best on average, where anybody is."""
    agents = section["agents"]
    means = [agent["interquartile_mean"]["estimate"] for agent in agents]
    least = min(means)
    if math.isinf(least):
        return (
            f"none of {len(agents)} is best on average, as too many runs of each found no feasible solution"
        )
    best = [agent for agent, mean in zip(agents, means, strict=True) if mean == least]
    if len(best) > 1:
        names = ", ".join(agent["agent"] for agent in best)
        return f"{names} are equally good on average and the best of {len(agents)}, IQM {least:.4f}"
    return (
        f"{best[0]['agent']} is best of {len(agents)} on average, IQM {least:.4f}; it wins {best[0]['wins']} of "
        f"{section['problems']} problems and ties on {best[0]['ties']}"
    )
