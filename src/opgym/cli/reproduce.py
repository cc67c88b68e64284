"""``opgym reproduce``: the experiments behind the figures of the documentation, each by one command."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from .console import new_table, note, print_json, show, stderr
from .problem import JsonOption

reproduce_app = typer.Typer(no_args_is_help=True, help="Run the experiments behind the documentation.")

WorkersOption = Annotated[
    int | None,
    typer.Option(
        min=1, metavar="N", help="Processes; the result does not depend on it. Default: one per core."
    ),
]


@reproduce_app.callback()
def reproduce() -> None:
    """Run the experiments behind the figures of the documentation."""


@reproduce_app.command("headroom")
def headroom(
    graphs: Annotated[int, typer.Option(min=1, metavar="N", help="Graphs of each family.")] = 50,
    seeds: Annotated[int, typer.Option(min=1, metavar="N", help="Seeds of each solver on each graph.")] = 2,
    devices: Annotated[
        str, typer.Option(metavar="LIST", help="Numbers of devices, a table for each, e.g. `1,2`.")
    ] = "1,2",
    out: Annotated[
        Path,
        typer.Option(metavar="DIR", help="Folder for rows and tables; a run goes on with what is there."),
    ] = Path("headroom-output"),
    best_known: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="File of best-known values to start from and to improve. Default: what comes with opgym, "
            "improved in the folder.",
        ),
    ] = None,
    scale: Annotated[
        float, typer.Option(metavar="SHARE", help="Share of every budget, for trials, e.g. `0.1`.")
    ] = 1.0,
    workers: WorkersOption = None,
    as_json: JsonOption = False,
) -> None:
    """Peak memory that BRKGA leaves on synthetic graphs, and what closes the gap (about 20 minutes).

    Example:

    ```sh
    opgym reproduce headroom --graphs 50 --seeds 2
    ```

    Four families of graphs with 50 to 200 ops from the test seeds; BRKGA at 5,000 and 50,000 evaluations, from
    heuristics, and local search on keys, each with the same seeds. Headroom is 1 - best known / BRKGA at 5,000;
    gains are over the latter. Intervals (95 %) come from a bootstrap that draws whole graphs.
    The folder gets rows.jsonl (one line per graph, as soon as it is done), headroom.json (what --json prints)
    and best_known.json.
    """
    from ..datasets.reference import PACKAGED, BestKnown
    from ..graphs.atomic import write_text
    from ..runs.headroom import Settings, run

    settings = Settings(graphs, seeds, _numbers(devices, "--devices"), scale)
    known = BestKnown.load(PACKAGED if best_known is None else best_known)
    out.mkdir(parents=True, exist_ok=True)
    with _progress("graphs") as progress:
        document = run(settings, known, out / "rows.jsonl", workers or _cores(), progress)
    known.save(out / "best_known.json" if best_known is None else best_known)
    write_text(out / "headroom.json", _json(document))
    if as_json:
        print_json(document)
        return
    for table in document["tables"]:
        _show_headroom(table)
    note(f"{document['improved']} best-known values are new or better; rows and tables: {out}")


def _show_headroom(table: dict[str, Any]) -> None:
    count = table["devices"]
    columns = list(table["lines"][0]["gains"])
    where = "one device, order alone" if count == 1 else f"{count} devices, device and order, free transfers"
    grid = new_table(
        {"%": "left", "graphs": "right", "headroom": "right"} | dict.fromkeys(columns, "right"),
        title=f"Peak memory, {where}: headroom of brkga-5k, and gains over it",
    )
    for line in table["lines"]:
        cells = [line["headroom"], *(line["gains"][name] for name in columns)]
        grid.add_row(line["family"], str(line["graphs"]), *map(_percent, cells))
        first = [line["first_study"].get(name) for name in ("headroom", *columns)]
        if any(value is not None for value in first):
            grid.add_row("", "", *("-" if value is None else f"{100 * value:.1f} *" for value in first))
    show(grid)
    note("* first study: prototypes, other graphs of the same families")


def _percent(interval: dict[str, Any]) -> str:
    estimate, low, high = (100 * interval[key] for key in ("estimate", "low", "high"))
    return f"{estimate:.1f} [{low:.1f}, {high:.1f}]"


def _numbers(text: str, option: str) -> tuple[int, ...]:
    """Reads ``1,2``.

    Raises:
        typer.BadParameter: It holds something else, or a number twice.
    """
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() and len(part) < 10 for part in parts) or len(
        set(map(int, parts))
    ) < len(parts):
        raise typer.BadParameter(f"{text!r}; expected different whole numbers, e.g. 1,2", param_hint=option)
    return tuple(map(int, parts))


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _json(document: Any) -> str:
    import json

    from .console import finite

    return json.dumps(finite(document), indent=2, allow_nan=False) + "\n"


@contextmanager
def _progress(what: str) -> Iterator[Callable[[int, int], None] | None]:
    """A bar on stderr; ``None`` where nobody would see it."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    parts = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*parts, console=stderr(), transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
