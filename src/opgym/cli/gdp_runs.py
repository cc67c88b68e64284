"""``opgym reproduce gdp``: GDP, HDP, Placeto and every baseline on GDP's workloads."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .console import UNSOUND, complain, new_table, note, print_json, show
from .problem import JsonOption
from .progress import progress_bar
from .regal_runs import names_in
from .workers import WorkersOption, cores

if TYPE_CHECKING:
    from ..runs.reproduce.gdp.check import Agreement
    from ..runs.reproduce.gdp.reproduction import Measured

_ALL = "all"
#: Where rows are that are not in the package, if nobody says so.
_FOLDER = Path("gdp-output")


def gdp(
    table: Annotated[
        str, typer.Option(metavar="LIST", help="`one`, `batch`, `generalization`, `ablation`.")
    ] = _ALL,
    quick: Annotated[
        bool,
        typer.Option(
            "--quick",
            help="Tables of what is stored, and a sample measured again: minutes, nothing is written.",
        ),
    ] = False,
    rows: Annotated[
        list[str] | None,
        typer.Option(metavar="TEXT", help="Only rows whose name contains this; may be given again."),
    ] = None,
    methods: Annotated[
        str,
        typer.Option(
            metavar="LIST",
            help="Heuristics, `portfolio` (the best of them), `brkga`, `annealing`, `annealing-metis`, `gdp`, `hdp`, "
            "`placeto`, and weights: `gdp-batch`, `gdp-unseen-size`, `gdp-unseen-family`.",
        ),
    ] = _ALL,
    seeds: Annotated[
        int, typer.Option(min=1, max=3, metavar="N", help="Seeds of the eight core rows; others have one.")
    ] = 3,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Folder for rows and results; a run goes on with what is there. Default: `gdp-output`, made where "
            "something has to be measured.",
        ),
    ] = None,
    workers: WorkersOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compare GDP with HDP, Placeto and every baseline on GDP's workloads (all of it anew: a day of CPU time).

    Examples:

    ```sh
    opgym reproduce gdp --quick
    opgym reproduce gdp --table one --rows rnnlm-2l --rows inception --methods human-expert,metis,annealing,gdp
    opgym reproduce gdp --table ablation --out my-ablation
    ```

    Tables: `one`, each method on each row by itself; `batch`, one policy trained on several rows; `generalization`,
    trained policies on six graphs that they have not seen, at one look and after 49 updates, and on an unscreened
    sample; `ablation`, without attention and without superposition.
    Runs that come with opgym, and those in the folder, are not measured again; whatever else the tables ask for is, and
    goes into DIR/rows.jsonl as soon as it is done; DIR/gdp.json has what --json prints.
    A column NAME@N is what a method has found after N evaluations: searches run anew with each, learners once. Better
    is 1 - value / base; intervals (95 %) come from a bootstrap that draws whole families of workloads, in `ablation`
    runs. --quick measures a sample of small rows again and says whether it is as it is stored (exit code 1: it is not).

    --json prints a list of {task, method, metric, value, low, high, n, paper}; gains are shares, not per cent. Of one
    row low and high are the least and the most over seeds.
    """
    from ..runs.reproduce.gdp.check import check
    from ..runs.reproduce.gdp.claims import verdicts, with_paper
    from ..runs.reproduce.gdp.plan import TABLES, Settings
    from ..runs.reproduce.gdp.reproduction import known
    from ..runs.reproduce.gdp.tables import tables

    settings = Settings(
        TABLES if table == _ALL else names_in(table, "--table"),
        tuple(rows or ()),
        None if methods == _ALL else names_in(methods, "--methods"),
        seeds,
    )
    folder = out or _FOLDER
    found = known(settings, folder)
    written = not quick and (out is not None or bool(found.missing))
    again: list[Agreement] = []
    if quick:
        with progress_bar("runs") as progress:
            again = check(found, progress)
    elif written:
        found = _completed(found, folder, workers or cores())
    made = tables(found)
    lines = with_paper([line for each in made for line in each.lines])
    lines += verdicts(lines)
    lines += [line for each in again for line in each.lines()]
    if written:
        _store(folder, lines)
    if as_json:
        print_json(lines)
    else:
        _show(made, found)
        if quick:
            same = sum(each.holds for each in again)
            note(f"measured again: {same} of {len(again)} runs as they are stored")
    apart = [each for each in again if not each.holds]
    for text in (*found.failed, *map(str, apart)):
        complain(text)
    if found.failed or apart:
        raise typer.Exit(UNSOUND)


def _completed(found: Measured, folder: Path, workers: int) -> Measured:
    """Measures what is missing, in a folder that is made for it."""
    from ..runs.reproduce.gdp.reproduction import complete
    from ..runs.run_folder import locked
    from .targets import require_folder

    require_folder(folder, "--out")
    with locked(folder), progress_bar("runs") as progress:  # two would measure everything twice
        return complete(found, folder, workers, progress)


def _store(folder: Path, lines: Sequence[Any]) -> None:
    from ..graphs.atomic import write_text
    from .reproduce import as_json_text

    write_text(folder / "gdp.json", as_json_text(lines))
    note(f"rows and results: {folder}")


def _show(made: Sequence[Any], found: Measured) -> None:
    """Tables, and what a reader must know of them."""
    from ..runs.reproduce.gdp.claims import DEVIATIONS
    from ..runs.reproduce.gdp.texts import CLAIMED, texts

    for name, shown in texts(made, whole=found.settings.whole).items():
        for title, headings, rows in shown:
            first, *others = headings
            kinds = dict.fromkeys(headings, "wrap") if name == CLAIMED else dict.fromkeys(others, "right")
            grid = new_table({first: "left"} | kinds, title)
            for row in rows:
                grid.add_row(*row)
            show(grid)
    for text in found.notes:
        note(text)
    note("step times are simulated; 95 % intervals over families of workloads, in `ablation` over runs")
    if not found.settings.whole:
        note(
            f"{len(DEVIATIONS)} things are not as in the paper, graphs and costs among them: docs/gdp_results.md"
        )
        return
    for text in DEVIATIONS:
        note(f"not as in the paper: {text}")
