"""From a command's arguments to a problem: what ``place``, ``check`` and ``import`` share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from ..graphs.readers import Imported
    from ..problems import PlacementProblem

DEFAULT_CLUSTER = "4xP100"

ModelArgument = Annotated[
    str,
    typer.Argument(metavar="MODEL", help="A file (ONNX, dnn-partitioning JSON, graph .npz) or a dataset id."),
]
DimOption = Annotated[
    list[str] | None,
    typer.Option(
        "--dim",
        metavar="NAME=N",
        help="Size of a dynamic dimension; an unnamed one is INPUT:AXIS=N. Repeat for more.",
    ),
]
SubgraphsOption = Annotated[
    str,
    typer.Option(help="If, Loop and Scan: [bold]opaque[/] (one op), [bold]inline[/] or [bold]reject[/]."),
]
StrictOption = Annotated[
    bool, typer.Option("--strict", help="Refuse a model that has ops without shapes or costs.")
]
ClusterOption = Annotated[
    str | None,
    typer.Option(
        metavar="SPEC",
        help=f"Devices, e.g. 4xP100, 8xV100@nvlink, 1xCPU+4xA100@nvlink3:send. Default: {DEFAULT_CLUSTER}, "
        "or what the file brings.",
    ),
]
ObjectiveOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="step_time, peak_memory, max_load or latency. "
        "Default: step_time; max_load for a dnn-partitioning JSON.",
    ),
]
MicroBatchesOption = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="For max_load: micro-batches per step, with filling and draining. Default: a stream.",
    ),
]
ScheduleOption = Annotated[
    str | None, typer.Option(metavar="NAME", help="For --micro-batches: gpipe (default) or 1f1b.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]


def parse_dims(given: list[str] | None) -> dict[str, int]:
    """Reads ``NAME=N`` pairs.

    Raises:
        typer.BadParameter: One is no such pair, or a name appears twice with different sizes.
    """
    dims: dict[str, int] = {}
    for pair in given or []:
        name, equals, size = pair.rpartition("=")
        if not equals or not name.strip() or not size.strip().isascii() or not size.strip().isdigit():
            raise typer.BadParameter(
                f"{pair!r}; expected NAME=N with a whole number N, e.g. batch=8, "
                "or INPUT:AXIS=N, e.g. data:0=8",
                param_hint="--dim",
            )
        if dims.setdefault(name.strip(), int(size)) != int(size):
            raise typer.BadParameter(
                f"{name.strip()!r} is given twice: {dims[name.strip()]} and {int(size)}", param_hint="--dim"
            )
    return dims


def read_model(model: str, dims: list[str] | None, subgraphs: str, strict: bool) -> Imported:
    """Reads a model by path or dataset id."""
    from .. import datasets

    return datasets.read(model, dims=parse_dims(dims), subgraphs=subgraphs, strict=strict)


def pose(
    imported: Imported,
    cluster: str | None,
    objective: str | None,
    micro_batches: int | None,
    schedule: str | None,
) -> PlacementProblem:
    """Makes the problem; its op times are computed, so that a missing one is noticed before any solver
    runs.

    Raises:
        typer.BadParameter: Options that contradict each other or the file.
        OpgymError: No such cluster or objective, or the graph cannot run on the cluster.
    """
    from ..graphs import Cluster, RooflineCost
    from ..problems import Objective, Pipeline, PlacementProblem

    if imported.cluster is not None and cluster is not None:
        raise typer.BadParameter(
            f"{imported.report.source} brings its own cluster ({imported.cluster.name}) and the times "
            "measured on it; leave --cluster out",
            param_hint="--cluster",
        )
    measured = imported.costs is not None
    chosen = objective or (
        Objective.MAX_LOAD if measured and imported.cluster is not None else Objective.STEP_TIME
    )
    if chosen != Objective.MAX_LOAD and (micro_batches is not None or schedule is not None):
        option = "--micro-batches" if micro_batches is not None else "--schedule"
        raise typer.BadParameter(
            f"belongs to --objective max_load; the objective is {chosen}", param_hint=option
        )
    if schedule is not None and micro_batches is None:
        raise typer.BadParameter("says in which order micro-batches run; give --micro-batches too",
                                 param_hint="--schedule")  # fmt: skip
    problem = PlacementProblem(
        imported.graph,
        imported.cluster or Cluster.parse(cluster or DEFAULT_CLUSTER),
        chosen,  # type: ignore[arg-type]  # a wrong name is refused there, with the nearest right ones
        imported.costs or RooflineCost(),
        Pipeline(micro_batches, schedule or "gpipe"),
    )
    _ = problem.class_cost_ns
    return problem
