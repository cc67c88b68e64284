"""``opgym place``: place a model on devices by every method, and say how good the result is."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .console import note, print_json, stdout
from .problem import (
    ClusterOption,
    DimOption,
    EvaluationsOption,
    ExactOption,
    FlopsOption,
    ImportChoices,
    JsonOption,
    MicroBatchesOption,
    ModelArgument,
    ObjectiveOption,
    ScheduleOption,
    SecondsOption,
    SeedOption,
    ShapeOption,
    SubgraphsOption,
    TrustOption,
    pose,
)
from .targets import require_files, require_folder, require_no_weights

if TYPE_CHECKING:
    from ..agents import Result
    from ..graphs.readers import Imported
    from ..problems import Placement, PlacementProblem

#: A terminal with fewer columns gets a table without details.
NARROW = 100


def place(
    model: ModelArgument,
    dim: DimOption = None,
    cluster: ClusterOption = None,
    objective: ObjectiveOption = None,
    solver: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="A solver (see opgym solvers), a YAML file of settings, or the folder of a trained agent. "
            "Repeat for more. Default: all that apply but those of --exact, and controls.",
        ),
    ] = None,
    exact: ExactOption = False,
    finetune: Annotated[
        float | None,
        typer.Option(
            min=0.0,
            metavar="S",
            help="With a learned placer (gdp, gdp-plus, hdp, placeto): let it go on learning on it for S seconds.",
        ),
    ] = None,
    pure: Annotated[
        bool,
        typer.Option("--pure", help="With a learned placer: do not put the best heuristic beside it."),
    ] = False,
    seconds: SecondsOption = None,
    evaluations: EvaluationsOption = None,
    seed: SeedOption = 0,
    subgraphs: SubgraphsOption = "opaque",
    trust: TrustOption = None,
    shape: ShapeOption = None,
    flops: FlopsOption = None,
    micro_batches: MicroBatchesOption = None,
    schedule: ScheduleOption = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the best placement, for `opgym check`.")
    ] = None,
    export: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Write the best placement as a device map and, from ONNX, an annotated model."
        ),
    ] = None,
    trace: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the timeline of the best placement for ui.perfetto.dev."),
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw that timeline: .svg, .png or .pdf.")
    ] = None,
    devices: Annotated[
        Path | None,
        typer.Option(
            "--map",
            metavar="FILE",
            help="Draw on which devices each solver puts the ops: .svg, .png or .pdf.",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Place a model on devices by every method, and see how far the best is from a bound.

    Examples:

    ```sh
    opgym place onnx-light/inception_v2
    opgym place model.onnx --dim batch=8 --cluster 4xA100@nvlink3 --plot timeline.svg --export placed/
    opgym place model.onnx --solver m-etf --solver annealing --seconds 60 --out best.json
    opgym place model.onnx --solver gdp --finetune 30 --out best.json
    opgym place model.onnx --solver human-expert --solver annealing --map devices.svg
    opgym place bert24_inference.json --solver dp --json
    opgym place example/two-branch --cluster 2xP100 --exact
    ```

    The table has one row per solver: the value, its ratio to a lower bound that nothing can beat, the peak
    memory of each device, and the verdict (ok, out_of_memory, ...). A solver that does not apply is named
    with the reason. A dnn-partitioning JSON brings its own devices and times, and is judged by max_load
    unless --objective says otherwise.

    A learned placer is shown beside the best heuristic, which is the result where it is better; --pure leaves it out.

    Without --seconds and --evaluations a search gets 5,000 evaluations, fewer above 1,000 ops, and at most 10
    seconds: about 30 seconds for all solvers at 1,000 ops. An exact solver gets at most 30 seconds.

    --json prints a list, best first, of {solver, value, unit, verdict, ratio_to_bound, bound, peak_bytes,
    seconds, evaluations, proven_optimal, note}. The exit code is 0 once a solver has answered, whatever
    the verdict.
    """
    from ..agents import names
    from .report import conclusions, json_row, ranked, show_results, table, tightest_bound
    from .solving import chosen_solvers, heuristics_beside, learned_placers, require_results, solve_all

    chosen = chosen_solvers(solver, names(), exact=exact)
    placers = learned_placers(chosen)
    if (pure or finetune is not None) and not placers:
        option = "--pure" if pure else "--finetune"
        raise typer.BadParameter("needs a learned placer, e.g. --solver gdp", param_hint=option)
    beside = heuristics_beside(chosen, names()) if placers and not pure else []
    files = {"--out": out, "--trace": trace, "--plot": plot, "--map": devices}
    _require_targets(model, files, export)
    imported = ImportChoices(dim, subgraphs, trust, shape, flops).read(model)
    require_no_weights(imported, files)
    problem = pose(imported, cluster, objective, micro_batches, schedule)
    show_progress = not as_json and sys.stderr.isatty()
    solved = solve_all(
        problem, chosen, seconds=seconds, evaluations=evaluations, seed=seed, show_progress=show_progress,
        finetune_seconds=finetune,
    )  # fmt: skip
    require_results(solved, problem, chosen)
    # Those that do not apply were not asked for, so nothing is said of them.
    others = solve_all(
        problem, beside, seconds=None, evaluations=None, seed=seed, show_progress=show_progress
    )
    results = ranked([*solved.results, *ranked(others.results)[:1]])
    bound = tightest_bound(problem, results)
    written = _write(results[0], problem, imported, model, out, export, trace, plot)
    if devices is not None:
        _draw_devices(results, problem, devices)
        written.append(devices)
    if as_json:
        print_json([json_row(result, bound) for result in results])
    else:
        grid = table(results, problem, bound, narrow=stdout().width < NARROW)
        show_results(results, grid, conclusions(results, problem, bound))
    for path in written:
        note(f"wrote {path}")
    if solved.broken:
        raise typer.Exit(1)


def _require_targets(model: str, files: Mapping[str, Path | None], export: Path | None) -> None:
    """Refuses what could not be written, before any solver runs."""
    require_files(model, files)
    if export is not None:
        require_folder(export, "--export")


def _write(
    best: Result[Placement],
    problem: PlacementProblem,
    imported: Imported,
    model: str,
    out: Path | None,
    export: Path | None,
    trace: Path | None,
    plot: Path | None,
) -> list[Path]:
    """Writes what was asked for about the best result; returns the files."""
    written: list[Path] = []
    graph, cluster, placement = problem.graph, problem.cluster, best.solution
    if out is not None:
        from ..problems.solution_file import save

        save(out, problem, placement, best.outcome)
        written.append(out)
    if not (export or trace or plot):
        return written
    if not problem.objective.simulated:
        note(f"timelines show one step in the simulator; {problem.objective.value} is computed by a formula")
    timeline = problem.simulate(placement, timeline=True).timeline
    assert timeline is not None  # it was asked for
    if export is not None:
        from .exports import export_placement

        written += export_placement(export, imported, model, problem, placement, timeline)
    if trace is not None:
        from ..graphs.writers import write_chrome_trace

        write_chrome_trace(trace, graph, cluster, timeline)
        written.append(trace)
    if plot is not None:
        from ..graphs.plot import plot_timeline

        plot_timeline(
            graph, cluster, timeline, plot, title=f"{graph.name} on {cluster.name}, by {best.solver}"
        )
        written.append(plot)
    return written


def _draw_devices(results: Sequence[Result[Placement]], problem: PlacementProblem, path: Path) -> None:
    """Draws the placement of each solver, best first."""
    from ..graphs.plot import PlacementMap, plot_placements
    from ..graphs.units import format_value

    maps = []
    for result in results:
        outcome = result.outcome
        worth = format_value(outcome.value, outcome.unit) if outcome.ok else outcome.verdict.value
        maps.append(PlacementMap(f"{result.solver}: {worth}", result.solution.device))
    plot_placements(problem.graph, problem.cluster, maps, path)
