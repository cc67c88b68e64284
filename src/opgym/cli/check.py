"""``opgym check``: recompute a solution from scratch."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .console import print_json, stdout
from .problem import (
    ClusterOption,
    DimOption,
    FlopsOption,
    ImportChoices,
    JsonOption,
    MicroBatchesOption,
    ObjectiveOption,
    ScheduleOption,
    ShapeOption,
    SubgraphsOption,
    TrustOption,
    pose,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..problems import Order, Placement, PlacementProblem, SchedulingProblem


def check(
    problem: Annotated[
        str, typer.Argument(metavar="PROBLEM", help="The model: a file or a dataset id, as for opgym place.")
    ],
    solution: Annotated[
        Path,
        typer.Argument(
            metavar="SOLUTION", help="A file of opgym place or schedule, or a dnn-partitioning split."
        ),
    ],
    dim: DimOption = None,
    cluster: ClusterOption = None,
    objective: ObjectiveOption = None,
    subgraphs: SubgraphsOption = "opaque",
    trust: TrustOption = None,
    shape: ShapeOption = None,
    flops: FlopsOption = None,
    micro_batches: MicroBatchesOption = None,
    schedule: ScheduleOption = None,
    as_json: JsonOption = False,
) -> None:
    """Recompute the value and the verdict of a solution; nothing that the file claims is believed.

    Examples:

    ```sh
    opgym place model.onnx --cluster 4xV100 --out best.json
    opgym check model.onnx best.json
    opgym check onnx-light/shufflenet order.json
    opgym check bert24_inference.json bert24_inference_expert.json --objective max_load
    ```

    The solution is evaluated by code of its own, apart from what solvers use; cluster and objective are
    those it was made for unless options say otherwise. An order is judged by its dynamic peak of memory on one
    device, resident bytes apart. --json prints one object of {value, unit, verdict,
    objective, bound, ratio_to_bound, details}. The exit code is 0 whatever the verdict, and 2 if one of
    the files cannot be read or they do not belong together.
    """
    from ..problems.solution_file import ORDER_FORMAT, load, load_with_problem

    imported = ImportChoices(dim, subgraphs, trust, shape, flops).read(problem)
    document = _read(solution)
    if document.get("format") == ORDER_FORMAT:
        from ..problems import SchedulingProblem

        _refuse_placement_options(solution, cluster, objective, micro_batches, schedule)
        order_problem = SchedulingProblem(imported.graph)
        _report(order_problem, load(solution, order_problem), "dynamic_peak", ("the device",), as_json)
        return
    stated = _stated(document)
    if imported.cluster is None:
        cluster = cluster or stated.get("cluster")
    aim = objective or stated.get("objective")
    if aim == stated.get("objective") and micro_batches is None:
        micro_batches, schedule = stated.get("micro_batches"), schedule or stated.get("schedule")
    posed, placement = load_with_problem(solution, pose(imported, cluster, aim, micro_batches, schedule))
    _report(posed, placement, posed.objective.value, posed.cluster.device_names, as_json)


def _refuse_placement_options(
    solution: Path,
    cluster: str | None,
    objective: str | None,
    micro_batches: int | None,
    schedule: str | None,
) -> None:
    """An order is judged on one device, by one objective."""
    options = {
        "--cluster": cluster,
        "--objective": objective,
        "--micro-batches": micro_batches,
        "--schedule": schedule,
    }
    for option, value in options.items():
        if value is not None:
            message = f"belongs to placements; {solution} holds an order for one device"
            raise typer.BadParameter(message, param_hint=option)


def _report(
    problem: PlacementProblem | SchedulingProblem,
    solution: Placement | Order,
    objective: str,
    device_names: Sequence[str],
    as_json: bool,
) -> None:
    """Recomputes and prints."""
    from ..graphs.units import format_value
    from ..problems.checker import check as recompute
    from .report import plain_value, ratio_to_bound

    outcome = recompute(problem, solution)  # type: ignore[arg-type]  # they belong together
    bound = problem.lower_bound()
    ratio = ratio_to_bound(outcome, bound)
    if as_json:
        print_json(
            {
                "value": plain_value(outcome.value, outcome.unit),
                "unit": outcome.unit,
                "verdict": outcome.verdict.value,
                "objective": objective,
                "bound": bound.value,
                "ratio_to_bound": ratio,
                "details": outcome.details,
            }
        )
        return
    console = stdout()
    style = "bold green" if outcome.ok else "bold red"
    console.print(outcome.verdict.value, style=style, end="  ")
    beside = "" if ratio is None else f", {ratio:.3f} times the lower bound ({bound.name})"
    console.print(f"{objective} {format_value(outcome.value, outcome.unit)}{beside}")
    for key, value in outcome.details.items():
        console.print(_detail(key, value, device_names), style="dim")


def _detail(key: str, value: Any, device_names: Sequence[str]) -> str:
    """A detail of the outcome for people; the unit is the last word of its name."""
    from ..graphs.units import format_value
    from .report import peaks_text, values_text

    *words, unit = key.split("_")
    name = " ".join(words)
    if key == "peak_bytes":
        return f"peak memory: {peaks_text(value, device_names)}"
    if unit in ("ns", "ms", "bytes"):
        texts = values_text(value, unit) if isinstance(value, list) else [format_value(value, unit)]
        return f"{name}: {' / '.join(texts)}"
    return f"{name} {unit}: {value}"


def _read(solution: Path) -> dict[str, Any]:
    """The JSON of a solution file, as far as it is an object."""
    from ..errors import InvalidSolutionError
    from ..graphs.closed_json import read_json

    document = read_json(solution, InvalidSolutionError, "a solution file or a dnn-partitioning split")
    return document if isinstance(document, dict) else {}


def _stated(document: dict[str, Any]) -> dict[str, Any]:
    """Cluster, objective and pipeline that a placement file of ours was made for; splits name none."""
    from ..problems.solution_file import FORMAT

    if document.get("format") != FORMAT:
        return {}
    pipeline = document.get("pipeline")
    rows = document | (pipeline if isinstance(pipeline, dict) else {})
    kinds = {"cluster": str, "objective": str, "micro_batches": int, "schedule": str}
    # What has the wrong type is left to the reader of the file, which names it.
    return {key: rows[key] for key, kind in kinds.items() if type(rows.get(key)) is kind}
