"""``opgym schedule``: order the ops of a model for little memory, and say how good the order is."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .console import note, print_json, stdout
from .problem import (
    DimOption,
    EvaluationsOption,
    ExactOption,
    FlopsOption,
    ImportChoices,
    JsonOption,
    ModelArgument,
    SecondsOption,
    SeedOption,
    ShapeOption,
    SubgraphsOption,
    TrustOption,
)
from .targets import require_files, require_no_weights

if TYPE_CHECKING:
    from ..agents import Result
    from ..graphs.readers import Imported
    from ..problems import Bound, Order, SchedulingProblem

#: A terminal with fewer columns gets a table of fewer columns.
NARROW = 100


def schedule(
    model: ModelArgument,
    dim: DimOption = None,
    solver: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="A solver (see opgym solvers), a YAML file of settings, or the folder of a trained agent. "
            "Repeat for more. Default: all but those of --exact, and controls.",
        ),
    ] = None,
    exact: ExactOption = False,
    seconds: SecondsOption = None,
    evaluations: EvaluationsOption = None,
    seed: SeedOption = 0,
    subgraphs: SubgraphsOption = "opaque",
    trust: TrustOption = None,
    shape: ShapeOption = None,
    flops: FlopsOption = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the best order, for `opgym check`.")
    ] = None,
    export: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the ONNX model with its nodes in the best order."),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Draw its memory beside that of the program's order: .svg, .png or .pdf."
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Order the ops of a model on one device for a low peak of memory, and see how far the best is from a bound.

    Examples:

    ```sh
    opgym schedule onnx-light/shufflenet
    opgym schedule model.onnx --dim batch=8 --exact --plot memory.svg --export reordered.onnx
    opgym schedule "synthetic/ws?n=200&seed=1" --solver post-order --solver order-search --seconds 60 --out order.json
    opgym schedule example/rnn-train --exact --json
    ```

    The table has one row per solver: the peak of what is allocated while ops run, its ratio to the highest
    proven bound (of the problem, or of a solver that ran) and to the order in which the model stores its ops, and
    whether it is proven to be the least. Parameters and inputs stay on the device whatever the order; they are
    named beside the table, and peak_bytes in --json includes them.

    Without --seconds and --evaluations a search spends its own number of evaluations and at most 10 seconds, an
    exact solver at most 30 seconds: some ten seconds for all but the exact ones at 1,000 ops.

    Search pays where branches are wide. A chain has one order, and a large first layer sets the peak of most
    convolutional networks: then the command says that nothing can be better.

    The exported model gives the same results. ONNX Runtime has its own idea of order; it follows the file with
    execution_order = ExecutionOrder.PRIORITY_BASED in its session options (see docs/cli.md).

    --json prints a list as opgym place does, best first: {solver, value, unit, verdict, ratio_to_bound, bound,
    peak_bytes, seconds, evaluations, proven_optimal, note}.
    """
    from ..agents import names
    from ..problems import SchedulingProblem
    from .order_report import order_conclusions, order_table
    from .report import json_row, ranked, show_results, tightest_bound
    from .solving import chosen_solvers, require_results, solve_all

    chosen = chosen_solvers(solver, names(SchedulingProblem), exact=exact)
    files = {"--out": out, "--export": export, "--plot": plot}
    require_files(model, files)
    imported = ImportChoices(dim, subgraphs, trust, shape, flops).read(model)
    require_no_weights(imported, files)
    if export is not None and imported.origin is None:
        message = f"{model} is {imported.report.format}; only a model that is read from ONNX can be exported"
        raise typer.BadParameter(message, param_hint="--export")
    problem = SchedulingProblem(imported.graph)
    show_progress = not as_json and sys.stderr.isatty()
    solved = solve_all(
        problem, chosen, seconds=seconds, evaluations=evaluations, seed=seed, show_progress=show_progress
    )
    require_results(solved, problem, chosen)
    results = ranked(solved.results)
    bound = tightest_bound(problem, results)
    written = _write(results[0], problem, bound, imported, out, export, plot)
    if as_json:
        print_json([json_row(result, bound) for result in results])
    else:
        grid = order_table(results, problem, bound, narrow=stdout().width < NARROW)
        show_results(results, grid, order_conclusions(results, problem, bound))
    for path in written:
        note(f"wrote {path}")
    if solved.broken:
        raise typer.Exit(1)


def _write(
    best: Result[Order],
    problem: SchedulingProblem,
    bound: Bound,
    imported: Imported,
    out: Path | None,
    export: Path | None,
    plot: Path | None,
) -> list[Path]:
    """Writes what was asked for about the best result; returns the files.

    Raises:
        InvalidSolutionError: There is something to write and no legal order.
    """
    written: list[Path] = []
    if (out or export or plot) and not best.outcome.ok:
        from ..errors import InvalidSolutionError

        raise InvalidSolutionError(
            f"no legal order to write: that of {best.solver} is {best.outcome.verdict.value}"
        )
    if out is not None:
        from ..problems.solution_file import save

        save(out, problem, best.solution, best.outcome)
        written.append(out)
    if export is not None:
        _export(export, best, problem, imported)
        written.append(export)
    if plot is not None:
        _plot(plot, best, problem, bound)
        written.append(plot)
    return written


def _export(path: Path, best: Result[Order], problem: SchedulingProblem, imported: Imported) -> None:
    import numpy as np

    from ..graphs.units import format_bytes
    from ..graphs.writers.onnx import write_reordered_onnx
    from ..problems import Order

    stored = write_reordered_onnx(path, imported, best.solution.op)
    if not np.array_equal(stored, best.solution.op):
        peak = problem.evaluate(Order(stored)).value
        note(
            "some ops are stored earlier than scheduled, as the model computes a shape from them: "
            f"the peak of {path} is {format_bytes(peak)}, that of the order {format_bytes(best.outcome.value)}"
        )


def _plot(path: Path, best: Result[Order], problem: SchedulingProblem, bound: Bound) -> None:
    import numpy as np

    from ..graphs.plot import OrderCurve, plot_orders
    from ..problems.plain_order import plain_order_memory

    curves = [
        OrderCurve(name, np.array(plain_order_memory(problem.graph, order.tolist()), np.int64))
        for name, order in (("program order", problem.ops), (best.solver, best.solution.op))
    ]
    title = f"Memory while each op runs: {problem.graph.name or 'graph'}"
    plot_orders(curves, path, title=title, bound_bytes=int(bound.value))
