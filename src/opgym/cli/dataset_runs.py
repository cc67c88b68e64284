"""``opgym datasets reference`` and ``screen``: what suites are measured against, and which rows they have."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .console import new_table, note, print_json, show
from .problem import JsonOption
from .progress import progress_bar
from .workers import cores

if TYPE_CHECKING:
    from ..datasets.reference import Line
    from ..datasets.suites import Suite

#: With a limit of seconds, results do depend on it.
WorkersOption = Annotated[
    int | None, typer.Option(min=1, metavar="N", help="Processes. Default: one per core.")
]


def reference(
    suite: Annotated[str, typer.Argument(metavar="SUITE", help="Name of a suite, e.g. `memory-order`.")],
    rows: Annotated[str, typer.Option(metavar="TEXT", help="Only rows whose name contains this.")] = "",
    out: Annotated[
        Path,
        typer.Option(metavar="DIR", help="Folder for the lines; a run goes on with what is there."),
    ] = Path("reference-lines"),
    evaluations: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Of each search for the best-known value. Default: 200,000 for orders, 50,000 for placements, other "
            "numbers for `regal-*`.",
        ),
    ] = None,
    solvers: Annotated[
        list[str] | None,
        typer.Option(
            "--solver",
            metavar="NAME",
            help="Only this search for the best-known value (again: then that one); pair-annealing polishes the best.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="Of these searches.")] = 0,
    seconds_per_row: Annotated[
        float | None,
        typer.Option(
            min=0.001, metavar="S", help="Most seconds of these searches for a row. Default: no limit."
        ),
    ] = None,
    workers: WorkersOption = None,
    as_json: JsonOption = False,
) -> None:
    """Recompute the reference lines of a suite: bound, heuristics, annealing, best-known value.

    Example:

    ```sh
    opgym datasets reference memory-order --rows mobilenet --seconds-per-row 10
    ```

    DIR gets SUITE.rows.jsonl (one line per row, as soon as it is measured; a run with other searches takes it up) and
    SUITE.vN.json. A published line never
    changes: if anything is better than, or differs from, the newest published version N, all goes into version N + 1,
    with the better solution and bound of both; new rows join version N. Without a limit of seconds, all is the same on
    every machine and for any number of workers; heuristics and annealing are in any case.

    --json prints {suite, suite_version, reference_version, file, added, changed, improved, proven, lines}, lines a
    list of {problem, fingerprint, ops, unit, bound, bound_by, heuristics, annealing, brkga, searched, best, proven,
    gap}; searched are the evaluations of all searches, gap is how far the best heuristic is above the best-known
    value, as a share of the latter. Solutions are in the file only.
    """
    from .. import datasets
    from ..datasets.reference import FOLDER
    from ..runs.references.reference import Task, lines_of, named_searches, published, settle
    from ..runs.references.regal_lines import reference_task, with_known
    from ..runs.references.regal_suites import SETTINGS
    from .targets import require_folder

    found = datasets.suite(suite)
    # Rows for training that nobody has screened are no test: they need no lines.
    wanted = found.part("test") if suite in SETTINGS else found.rows
    chosen = [row for row in wanted if rows in row.name]
    if not chosen:
        raise typer.BadParameter(f"no row of {suite} has {rows!r} in its name", param_hint="--rows")
    require_folder(out, "--out")
    if seed and not solvers:
        raise typer.BadParameter("is that of the searches of --solver", param_hint="--seed")
    base = published(suite, FOLDER, out)
    tasks = [
        reference_task(row, evaluations, seconds_per_row)
        if suite in SETTINGS
        else Task(row, evaluations, seconds_per_row)
        for row in chosen
    ]
    if solvers:
        tasks = [
            replace(task, searches=named_searches(task.row, solvers, evaluations, seed)) for task in tasks
        ]
    with progress_bar("rows") as progress:
        lines = lines_of(tasks, out / f"{suite}.rows.jsonl", workers or cores(), progress)
    if suite in SETTINGS:
        lines = with_known(found, chosen, lines)
    settled = settle(found, lines, base)
    target = out / settled.lines.file_name
    settled.lines.save(target)
    shown = [settled.lines[line.problem] for line in lines]
    if as_json:
        print_json(
            {
                "suite": suite,
                "suite_version": settled.lines.suite_version,
                "reference_version": settled.lines.reference_version,
                "file": str(target),
                "added": settled.added,
                "changed": settled.changed,
                "improved": settled.improved,
                "proven": sum(line.proven for line in shown),
                "lines": [_summary(line) for line in shown],
            }
        )
        return
    _show_lines(shown)
    note(
        f"version {settled.lines.reference_version}: {len(settled.added)} lines added, {len(settled.changed)} changed, "
        f"{len(settled.improved)} of them with a better value; wrote {target}"
    )


def screen(
    suite: Annotated[
        str, typer.Argument(metavar="SUITE", help="`memory-order`, `small-exact` or one of `regal-*`.")
    ],
    graphs: Annotated[
        str, typer.Option(metavar="TEXT", help="Only graphs whose name contains this, for trials.")
    ] = "",
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="Folder for the suite; a run goes on with what is there.")
    ] = Path("screening"),
    seconds: Annotated[
        float | None,
        typer.Option(
            min=0.001,
            metavar="S",
            help="Most seconds of search on one graph. Default: 12; none for `regal-*`.",
        ),
    ] = None,
    evaluations: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="N", help="Of each search. Default: 200,000; 10,000 of BRKGA for `regal-*`."
        ),
    ] = None,
    workers: WorkersOption = None,
    as_json: JsonOption = False,
) -> None:
    """Search for the rows of a suite that is made by search, or mark them (up to half an hour of CPU time).

    Example:

    ```sh
    opgym datasets screen memory-order --graphs mobilenet
    ```

    DIR gets SUITE.json with its rows and all candidates, and a file of what was measured: orders.rows.jsonl, which
    serves `memory-order` and `small-exact`, or SUITE.screened.jsonl. For the former two it also gets SUITE.vN.json,
    the reference lines of the rows; those of `regal-*` are measured by `opgym datasets reference`.

    --json prints {suite, version, rule, method, rows, tasks, controls, acceptance_rate, candidates,
    against_best_of_three, file}; candidates has what was found of each graph, against_best_of_three is the mean over
    rows of best known / best of XLA's three orders (null for `regal-*`).
    """
    from ..datasets.reference import FOLDER
    from ..errors import unknown_id
    from ..runs.references.reference import published, settle
    from ..runs.references.regal_suites import SETTINGS
    from ..runs.references.screening import RULES, SECONDS, candidates, method, suite_of
    from ..runs.references.screening import screen as search
    from .targets import require_folder

    if suite in SETTINGS:
        if seconds is not None:
            raise typer.BadParameter(f"the rows of {suite} do not depend on a clock", param_hint="--seconds")
        require_folder(out, "--out")
        _screen_regal(suite, graphs, out, evaluations, workers or cores(), as_json)
        return
    if suite not in RULES:
        raise unknown_id("suite that is made by search", suite, [*RULES, *SETTINGS])
    seconds = SECONDS if seconds is None else seconds
    entries = [entry for entry in candidates() if graphs in entry.name]
    if not entries:
        raise typer.BadParameter(f"no candidate has {graphs!r} in its name", param_hint="--graphs")
    require_folder(out, "--out")
    with progress_bar("graphs") as progress:
        lines = search(
            entries,
            out / "orders.rows.jsonl",
            seconds=seconds,
            evaluations=evaluations,
            workers=workers or cores(),
            progress=progress,
        )
    made = _with_version(suite_of(suite, entries, lines, method(seconds, evaluations)))
    made.save(out / f"{suite}.json")
    accepted = {row.name for row in made.rows}
    of_rows = [line for line in lines if line.problem in accepted]
    settled = settle(made, of_rows, published(suite, FOLDER))
    settled.lines.save(out / settled.lines.file_name)
    document = _screened(made, of_rows, str(out / f"{suite}.json"))
    if as_json:
        print_json(document)
        return
    _show_lines(of_rows)
    ratio = document["against_best_of_three"]
    compared = "" if ratio is None else f"; best known / XLA's best of three: {ratio:.3f} on average"
    print(
        f"{document['rows']} rows ({document['tasks']} tasks) of {len(entries)} candidates: "
        f"{document['acceptance_rate']:.1%} accepted{compared}"
    )
    note(f"wrote {out / f'{suite}.json'} and {out / settled.lines.file_name}")


def _screen_regal(
    suite: str, graphs: str, out: Path, evaluations: int | None, workers: int, as_json: bool
) -> None:
    from ..datasets.suites import POPULATIONS
    from ..runs.references.regal_suites import EVALUATIONS, method, suite_of, tasks
    from ..runs.references.regal_suites import screen as search

    count = evaluations or EVALUATIONS
    chosen = [task for task in tasks(suite, count) if graphs in task.graph]
    if not chosen:
        raise typer.BadParameter(f"no candidate has {graphs!r} in its name", param_hint="--graphs")
    with progress_bar("graphs") as progress:
        found = search(chosen, out / f"{suite}.screened.jsonl", workers=workers, progress=progress)
    made = _with_version(suite_of(suite, found, method(suite, count)))
    made.save(out / f"{suite}.json")
    if as_json:
        print_json(_screened(made, [], str(out / f"{suite}.json")))
        return
    grid = new_table(
        {"part": "left", "graphs": "left", "rows": "right", "tasks": "right", "controls": "right"}
    )
    for part in ("test", "train", "validation"):
        for population in POPULATIONS:
            rows = made.part(part, population)
            roles = [sum(row.role == role for row in rows) for role in ("task", "control")]
            if rows:
                grid.add_row(
                    part, population, f"{len(rows):,}", *(str(role) if any(roles) else "" for role in roles)
                )
    show(grid)
    assert made.screening is not None
    marked = len(made.screening.candidates)
    tasks_of = sum(row.role == "task" for row in made.rows)
    print(
        f"{marked} of {marked} candidates are rows, {tasks_of} of them tasks"
        + (f" ({tasks_of / marked:.1%})" if marked else "")
    )
    note(f"wrote {out / f'{suite}.json'}")


def _with_version(made: Suite) -> Suite:
    """The suite with the version that its rows deserve: that of the published one, or the next."""
    from .. import datasets

    if made.name not in datasets.suite_names():
        return made
    known = datasets.suite(made.name)
    same = tuple(known.rows) == tuple(made.rows)
    return replace(made, suite_version=known.suite_version + (not same))


def _screened(made: Suite, lines: list[Line], file: str) -> dict[str, Any]:
    assert made.screening is not None
    ratios = []
    for line in lines:
        of_three = line.heuristics["best-of-three"]
        if line.best is not None and of_three:
            ratios.append(line.best.value / of_three)
    roles = Counter(row.role for row in made.rows)
    return {
        "suite": made.name,
        "version": made.suite_version,
        "rule": made.rule,
        "rows": len(made.rows),
        "tasks": roles["task"],
        "controls": roles["control"],
        "against_best_of_three": fmean(ratios) if ratios else None,
        "file": file,
        **made.screening.to_json(),
    }


def _summary(line: Line) -> dict[str, Any]:
    row = line.row() | {"gap": line.gap}
    if row["best"] is not None:
        row["best"] = {key: value for key, value in row["best"].items() if key not in ("order", "device")}
    return row


def _show_lines(lines: list[Line]) -> None:
    """Best known values; what stands beside them as multiples of them."""
    if not lines:
        return
    grid = new_table(
        {
            "problem": "wrap",
            "ops": "right",
            "best known": "right",
            "by": "left",
            "heuristic": "right",
            "annealing": "right",
            "bound": "right",
            "proven by": "wrap",
        }
    )
    for line in lines:
        best = None if line.best is None else line.best.value
        annealed = line.annealing[max(line.annealing)] if line.annealing else None
        grid.add_row(
            line.problem,
            f"{line.ops:,}",
            "-" if best is None else f"{best:,.0f}",
            "" if line.best is None else line.best.found_by,
            *(_multiple(value, best) for value in (line.best_heuristic, annealed, line.bound)),
            line.bound_by if line.proven else "",
        )
    show(grid)
    note(
        f"values in {', '.join(sorted({line.unit for line in lines}))}; the others as multiples of the best known"
    )


def _multiple(value: float | None, of: float | None) -> str:
    return "-" if value is None or not of else f"{value / of:.3f}"
