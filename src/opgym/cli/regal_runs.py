"""``opgym reproduce regal``: learned agents and every baseline on the tests of the suites in the manner of REGAL."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from .console import new_table, note, print_json, show
from .problem import JsonOption
from .progress import progress_bar
from .workers import WorkersOption, cores

_ALL, _NONE = "all", "none"


def regal(
    task: Annotated[
        str,
        typer.Option(
            metavar="LIST",
            help="`memory-1`, `memory-2`, `time`, and the latter two with links: `memory-2-links`, `time-links`.",
        ),
    ] = _ALL,
    agents: Annotated[
        str | None,
        typer.Option(
            metavar="LIST",
            help="Learned agents: names, or folders of saved ones, each as NAME=FOLDER if it is to have a name of its "
            "own; `none`. Default: all weights that come with opgym.",
        ),
    ] = None,
    columns: Annotated[
        str | None, typer.Option(metavar="LIST", help="Baselines beside BRKGA. Default: all.")
    ] = None,
    part: Annotated[
        str,
        typer.Option(metavar="NAME", help="`test`, or `validation` while anything is still to be chosen."),
    ] = "test",
    graphs: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="At most so many graphs of each population, evenly spread. Default: all of test, 24 of validation.",
        ),
    ] = None,
    seeds: Annotated[
        int, typer.Option(min=1, max=4, metavar="N", help="Seeds, the same for every column.")
    ] = 4,
    evaluations: Annotated[
        int,
        typer.Option(min=1, metavar="N", help="Budget of BRKGA and of what is compared at the same budget."),
    ] = 5_000,
    quick: Annotated[
        bool,
        typer.Option(
            "--quick", help="12 graphs of each task, two seeds, at most 5,000 evaluations: two minutes."
        ),
    ] = False,
    seeded: Annotated[
        bool,
        typer.Option(
            "--seeded/--no-seeded",
            help="Run agents once more with heuristics' solutions in their first generation.",
        ),
    ] = True,
    name: Annotated[
        str, typer.Option(metavar="WORD", help="What files of results are called, beside their task.")
    ] = "",
    out: Annotated[
        Path,
        typer.Option(metavar="DIR", help="Folder for rows and results; a run goes on with what is there."),
    ] = Path("regal-output"),
    workers: WorkersOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compare REGAL with BRKGA and every baseline of the paper, and with those that decide (hours of CPU time).

    Examples:

    ```sh
    opgym reproduce regal --quick
    opgym reproduce regal --task memory-1 --part validation --graphs 50 --agents mine=runs/my-training
    opgym reproduce regal --task memory-1 --evaluations 1000 --columns brkga-5k --name 1k
    ```

    Every column gets every graph with the same seeds, the random graphs of the test (the headline) and the real ones
    (apart). Better is 1 - value / BRKGA with 5,000 evaluations, seed by seed, over the runs where both fit into memory;
    intervals (95 %) come from a bootstrap that draws whole graphs, or families with their twins of real ones. Trainings
    of one agent have names that differ in an ending -seedN only.
    The folder gets rows.jsonl (one line per column and graph, as soon as it is done; nothing is measured twice),
    regal-TASK.jsonl (all values) and regal.json (what --json prints); of less than the whole test, under other names.

    --json prints a list of {task, method, metric, value, low, high, n, paper}; gains are shares, not per cent.
    """
    from ..agents.regal.base import SHELF
    from ..graphs.atomic import write_text
    from ..runs.reproduce.regal.reproduction import Settings, run
    from ..runs.reproduce.regal.results_file import store
    from ..runs.reproduce.regal.table import lines_of
    from ..runs.reproduce.regal.tasks import TASKS
    from ..runs.reproduce.regal.texts import file_name, sample_name, taken_names
    from ..runs.run_folder import locked
    from .reproduce import as_json_text
    from .targets import require_folder

    settings = Settings(
        tuple(TASKS) if task == _ALL else names_in(task, "--task"),
        part,
        graphs,
        seeds,
        tuple(SHELF.names()) if agents is None else names_in(agents, "--agents"),
        None if columns is None else names_in(columns, "--columns"),
        quick,
        evaluations,
        seeded,
    )
    if not re.fullmatch(r"[\w-]{0,80}", name, re.ASCII):
        raise typer.BadParameter(
            f"{name!r:.100}; expected letters, digits, - and _, at most 80", param_hint="--name"
        )
    if name.partition("-")[0] in taken_names():
        raise typer.BadParameter(
            f"{name!r}; files of something else begin with {', '.join(taken_names())}", param_hint="--name"
        )
    for each in settings.tasks:
        settings.methods(each)  # what cannot be is said before the folder is made
    if not as_json:
        for population, count in settings.scarce.items():
            note(f"all {count} {population} graphs: there are no {graphs:,}")
    require_folder(out, "--out")
    with locked(out):  # two would measure everything twice
        with progress_bar("columns") as progress:
            documents = run(settings, out / "rows.jsonl", workers or cores(), progress)
        sample = sample_name(settings, name)
        lines = [line for document in documents for line in lines_of(document)]
        for document in documents:
            store(document, out / file_name(document["task"], sample))
        write_text(out / f"regal{'-' * bool(sample)}{sample}.json", as_json_text(lines))
    if as_json:
        print_json(lines)
        return
    _show(documents, whole=not sample)
    for document in documents:
        for column, reason in document["skipped"].items():
            note(f"{document['task']}: no column {column}: {reason}")
    note(f"rows and results: {out}")


def _show(documents: Sequence[Mapping[str, Any]], whole: bool) -> None:
    """Tables, and what a reader must know of them; how the paper differs in full where its figures stand beside."""
    from ..runs.reproduce.regal.table import DEVIATIONS
    from ..runs.reproduce.regal.texts import tables, without_headroom

    for document in documents:
        for title, headings, rows in tables(document):
            first, *others = headings
            grid = new_table({first: "left"} | dict.fromkeys(others, "right"), title)
            for row in rows:
                grid.add_row(*row)
            show(grid)
    base = documents[0]["methods"][0]["name"]
    note(
        f"better: than {base}, seed by seed, where both fit; 95 % intervals over graphs, or families of real ones"
    )
    for reason in dict.fromkeys(filter(None, map(without_headroom, documents))):
        note(f"no headroom: {reason}")
    if not whole:
        note(
            f"{len(DEVIATIONS)} things are not as in the paper, graphs and costs among them: docs/regal_results.md"
        )
        return
    for text in DEVIATIONS:
        note(f"not as in the paper: {text}")


def names_in(text: str, option: str) -> tuple[str, ...]:
    """Reads ``a,b``; ``none`` is none.

    Args:
        text: The list.
        option: What it was given for.

    Raises:
        typer.BadParameter: A part is empty, or there twice.
    """
    if text == _NONE:
        return ()
    parts = tuple(part.strip() for part in text.split(","))
    if not all(parts) or len(set(parts)) < len(parts):
        raise typer.BadParameter(f"{text!r}; expected different names, e.g. a,b", param_hint=option)
    return parts
