"""``opgym reproduce``: the experiments behind the figures of the documentation, each by one command."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from . import gdp_runs, learner_runs, regal_runs, truth_runs
from .console import complain, new_table, note, print_json, show
from .problem import JsonOption
from .progress import counting_bar
from .workers import WorkersOption, cores

reproduce_app = typer.Typer(no_args_is_help=True, help="Run the experiments behind the documentation.")


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
    """Peak memory that BRKGA leaves on synthetic graphs, and what closes the gap (17 minutes of CPU time).

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
    from ..runs.reproduce.headroom import Settings, run
    from .targets import require_folder, require_writable

    settings = Settings(graphs, seeds, _numbers(devices, "--devices"), scale)
    known = BestKnown.load(PACKAGED if best_known is None else best_known)
    if best_known is not None:
        require_writable(best_known, "--best-known")
    require_folder(out, "--out")
    with counting_bar("graphs") as progress:
        document = run(settings, known, out / "rows.jsonl", workers or cores(), progress)
    known.save(out / "best_known.json" if best_known is None else best_known)
    write_text(out / "headroom.json", as_json_text(document))
    if as_json:
        print_json(document)
        return
    for table in document["tables"]:
        _show_headroom(table)
    note(f"{document['improved']} best-known values are new or better; rows and tables: {out}")


@reproduce_app.command("best-known")
def best_known(
    out: Annotated[
        Path,
        typer.Option(
            metavar="FILE", help="File of best-known values; made of those that come with opgym if absent."
        ),
    ],
    graphs: Annotated[int, typer.Option(min=1, metavar="N", help="Graphs of each family.")] = 50,
    devices: Annotated[str, typer.Option(metavar="LIST", help="Numbers of devices, e.g. `1,2`.")] = "2",
    evaluations: Annotated[
        int,
        typer.Option(min=1, metavar="N", help="Simulations of a search (one device: ten moves for each)."),
    ] = 400_000,
    rounds: Annotated[
        str, typer.Option(metavar="LIST", help="Rounds of searches, each with its own seed and temperature.")
    ] = "0",
    workers: WorkersOption = None,
    as_json: JsonOption = False,
) -> None:
    """Search longer for lower peaks of the headroom graphs (about 20 minutes of CPU time a round).

    Example:

    ```sh
    opgym reproduce best-known --out best_known.json --rounds 0,1
    opgym reproduce headroom --best-known best_known.json
    ```

    A value is only ever replaced by a lower one, with the solution that reaches it. The file is saved every
    few problems, so a run that is cut short is not lost.
    """
    from ..datasets.reference import PACKAGED, BestKnown
    from ..runs.references.best_known import improve
    from ..runs.reproduce.headroom import Settings, tasks
    from .targets import require_writable

    require_writable(out, "--out")
    settings = Settings(graphs, devices=_numbers(devices, "--devices"))
    known = BestKnown.load(out if out.exists() else PACKAGED)
    with counting_bar("searches") as progress:
        improved = improve(
            tasks(settings),
            known,
            lambda: known.save(out),
            evaluations=evaluations,
            rounds=_numbers(rounds, "--rounds"),
            workers=workers or cores(),
            progress=progress,
        )
    if as_json:
        print_json({"improved": improved, "file": str(out)})
    else:
        note(f"{improved} best-known values are new or better; wrote {out}")


@reproduce_app.command("tuning")
def tuning(
    out: Annotated[
        Path,
        typer.Option(metavar="DIR", help="Folder for rows and settings; a run goes on with what is there."),
    ] = Path("tuning-output"),
    workers: WorkersOption = None,
    as_json: JsonOption = False,
) -> None:
    """Tune BRKGA on training graphs, for peak memory on one and two devices (5 minutes of CPU time).

    Example:

    ```sh
    opgym reproduce tuning && opgym schedule MODEL --solver tuning-output/brkga-tuned.yaml
    ```

    Searches a grid over population, elites, mutants and the Beta distribution of all mutants in stages, each on
    other training graphs, and compares what wins with the untuned settings on validation graphs. The
    settings that come with opgym as `brkga-tuned` were found so.
    The folder gets rows.jsonl, tuning.json (what --json prints) and brkga-tuned.yaml.
    """
    from ..graphs.atomic import write_text
    from ..runs.reproduce.tuning import as_yaml, run
    from .targets import require_folder

    require_folder(out, "--out")
    with counting_bar("graphs") as progress:
        document = run(rows_path=out / "rows.jsonl", workers=workers or cores(), progress=progress)
    write_text(out / "tuning.json", as_json_text(document))
    write_text(out / "brkga-tuned.yaml", as_yaml(document, "opgym reproduce tuning"))
    if as_json:
        print_json(document)
        return
    kept = document["stages"][-1]["kept"][0]
    grid = new_table({"option": "left", "untuned": "right", "tuned": "right"}, title="BRKGA")
    for name, value in document["untuned"].items():
        grid.add_row(name, str(value), str(document["tuned"][name]))
    show(grid)
    columns = list(dict.fromkeys(line["family"] for line in document["check"]))
    grid = new_table(
        {"devices": "left"} | dict.fromkeys(columns, "right"), title="Gain on validation graphs, %"
    )
    for devices in dict.fromkeys(line["devices"] for line in document["check"]):
        lines = {line["family"]: line for line in document["check"] if line["devices"] == devices}
        grid.add_row(str(devices), *(_percent(lines[name]) for name in columns))
    show(grid)
    note(f"gain on the graphs of the last stage: {100 * kept['gain']:.1f} %; settings: {out}")


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


@reproduce_app.command("optima")
def optima(
    quick: Annotated[
        bool, typer.Option("--quick", help="One small graph of each family, and the real ones below 200 ops.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the proven optima, each with an order that has it."),
    ] = None,
    workers: WorkersOption = None,
    as_json: JsonOption = False,
) -> None:
    """Prove the least peak memory of about a hundred graphs, and see which solvers reach it (2 to 10 minutes).

    Examples:

    ```sh
    opgym reproduce optima --quick
    opgym reproduce optima --workers 2 --out proven_peak_memory.json
    ```

    The graphs: those of onnx-light and example with 50 ops and more, and of each synthetic family four of 50, 75 and
    100 ops from the test seeds (of three families two of 200 ops, too). A proof is a bound that meets the peak of an
    order: of the graph, of dp-order, or of cp-sat (extra solvers); up to 60 ops both have to agree. Every other solver
    gets 5,000 evaluations and one seed. A graph whose program order is optimal is marked as trivial.

    A value below something that was proven ends the command with an error (exit code 1).
    """
    from ..datasets.reference import save_proven_peaks
    from ..runs.reproduce.optima import proven_peaks, run
    from .targets import require_writable

    if out is not None:
        require_writable(out, "--out")
    with counting_bar("graphs") as progress:
        document = run(quick=quick, workers=workers or cores(), progress=progress)
    if out is not None:
        save_proven_peaks(out, proven_peaks(document["rows"]))
    if as_json:
        print_json(document)
    else:
        from .optima_report import show_optima

        show_optima(document)
    for text in document["contradictions"]:
        complain(text)
    if out is not None:
        note(f"wrote {out}")
    if document["contradictions"]:
        raise typer.Exit(1)


@reproduce_app.command("regal-headroom")
def regal_headroom(as_json: JsonOption = False) -> None:
    """Tell what BRKGA, annealing and heuristics leave on the tests of the `regal-*` suites, by stored reference lines.

    Example:

    ```sh
    opgym reproduce regal-headroom
    ```

    Left is 1 - best known / value, its mean over rows with a 95 % interval of a bootstrap that draws whole graphs, and
    whole families (with their twins) of real ones; of fewer than five of these there is no interval. `opgym datasets
    reference SUITE` recomputes the lines.

    --json prints a list of {suite, suite_version, reference_version, tables}.
    """
    from ..runs.references.regal_lines import report_all
    from .regal_report import show_regal

    documents = report_all()
    if as_json:
        print_json(documents)
    else:
        show_regal(documents)


@reproduce_app.command("regal-cap")
def regal_cap(
    graphs: Annotated[int, typer.Option(min=1, metavar="N", help="Validation graphs.")] = 24,
    workers: WorkersOption = None,
    as_json: JsonOption = False,
) -> None:
    """Tell what BRKGA leaves of step time with more or less memory, on validation graphs (100 s of CPU time).

    Example:

    ```sh
    opgym reproduce regal-cap --graphs 4
    ```

    Memory is a multiple of the peak that BRKGA finds with 5,000 evaluations where it has no limit. `regal-time` has
    the multiple with the most to gain at which BRKGA still finds something that fits in most of its runs.

    --json prints a list of {factor, graphs, runs, feasible, left, heuristic_feasible}.
    """
    from ..runs.reproduce.regal.cap import run
    from .regal_report import show_cap

    with counting_bar("graphs") as progress:
        lines = run(graphs, workers or cores(), progress)
    if as_json:
        print_json(lines)
    else:
        show_cap(lines)


for _name, _command in (
    ("learner-tuning", learner_runs.learner_tuning),
    ("regal", regal_runs.regal),
    ("gdp", gdp_runs.gdp),
    ("memory-truth", truth_runs.memory_truth),
    ("step-time-truth", truth_runs.step_time_truth),
    ("ranking-robustness", truth_runs.ranking_robustness),
):
    reproduce_app.command(_name)(_command)


def _percent(interval: dict[str, Any]) -> str:
    mean = f"{100 * interval['estimate']:.1f}"
    if interval["low"] is None:
        return mean
    return f"{mean} [{100 * interval['low']:.1f}, {100 * interval['high']:.1f}]"


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


def as_json_text(document: Any) -> str:
    import json

    from .console import finite

    return json.dumps(finite(document), indent=2, allow_nan=False) + "\n"
