"""From a command's arguments to a problem: what ``place``, ``schedule``, ``check`` and ``import`` share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from ..graphs.readers import Imported
    from ..problems import PlacementProblem

DEFAULT_CLUSTER = "4xP100"

ModelArgument = Annotated[
    str,
    typer.Argument(
        metavar="MODEL",
        help="A file (ONNX, HLO text, CostGraphDef text, dnn-partitioning JSON, graph .npz) or a dataset id.",
    ),
]
DimOption = Annotated[
    list[str] | None,
    typer.Option(
        "--dim",
        metavar="NAME=N",
        help="Size of a dynamic dimension; an unnamed one is `INPUT:AXIS=N`. Repeat for more.",
    ),
]
SubgraphsOption = Annotated[
    str, typer.Option(metavar="POLICY", help="If, Loop and Scan: `opaque` (one op), `inline` or `reject`.")
]
TrustOption = Annotated[
    str | None,
    typer.Option(metavar="SIDE", help="Which shape to believe in a contradiction: `declared` or `inferred`."),
]
ShapeOption = Annotated[
    list[str] | None,
    typer.Option(
        "--shape",
        metavar="TENSOR=TYPE",
        help="Type of a tensor that the model does not tell, e.g. `y=float32[8,128]`. Repeat for more.",
    ),
]
FlopsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--flops",
        metavar="KIND=N",
        help="Floating-point operations of a kind of op without a formula. Repeat for more.",
    ),
]
StrictOption = Annotated[
    bool, typer.Option("--strict", help="Refuse a model that has ops without shapes or costs.")
]
ClusterOption = Annotated[
    str | None,
    typer.Option(
        metavar="SPEC",
        help="Devices, e.g. `4xP100`, `8xV100@nvlink`, `1xCPU+4xA100@nvlink3:send`. "
        f"Default: {DEFAULT_CLUSTER}, or what the file brings.",
    ),
]
ObjectiveOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="`step_time`, `peak_memory`, `max_load` or `latency`. "
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
    str | None, typer.Option(metavar="NAME", help="For --micro-batches: `gpipe` (default) or `1f1b`.")
]
SecondsOption = Annotated[
    float | None,
    typer.Option(min=0.0, metavar="S", help="Most seconds for each solver. Default: see above."),
]
ExactOption = Annotated[
    bool, typer.Option("--exact", help="Also run the exact solvers, which prove what they find, or a bound.")
]
EvaluationsOption = Annotated[
    int | None,
    typer.Option(
        min=1, metavar="N", help="Most evaluated solutions for each solver, starting points included."
    ),
]
SeedOption = Annotated[int, typer.Option(min=0, help="Seed of every solver.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]


@dataclass(frozen=True)
class ImportChoices:
    """What a user decides about reading a model, as given.

    Attributes:
        dim: ``NAME=N`` pairs.
        subgraphs: Policy for If, Loop and Scan.
        trust: Which shape to believe.
        shape: ``TENSOR=TYPE`` pairs.
        flops: ``KIND=N`` pairs.
        strict: Whether to refuse what lacks shapes or costs.
    """

    dim: list[str] | None = None
    subgraphs: str = "opaque"
    trust: str | None = None
    shape: list[str] | None = None
    flops: list[str] | None = None
    strict: bool = False

    def read(self, model: str) -> Imported:
        """Reads a model by path or dataset id.

        Raises:
            typer.BadParameter: A pair is none.
            OpgymError: The model cannot be read.
        """
        from .. import datasets

        options: dict[str, Any] = {
            "dims": _sizes(self.dim, "--dim", "NAME=N", "batch=8, or INPUT:AXIS=N, e.g. data:0=8"),
            "shapes": _pairs(self.shape, "--shape", "TENSOR=TYPE", "y=float32[8,128]"),
            "costs": _sizes(self.flops, "--flops", "KIND=N", "MyOp=2000000"),
            "trust": self.trust,
        }
        given = {key: value for key, value in options.items() if value}
        return datasets.read(model, subgraphs=self.subgraphs, strict=self.strict, **given)


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
    usual = Objective.STEP_TIME if imported.cluster is None else Objective.MAX_LOAD
    chosen = usual.value if objective is None else objective
    if chosen != Objective.MAX_LOAD and (micro_batches is not None or schedule is not None):
        option = "--micro-batches" if micro_batches is not None else "--schedule"
        message = f"belongs to --objective max_load; the objective is {chosen}"
        raise typer.BadParameter(message, param_hint=option)
    if schedule is not None and micro_batches is None:
        message = "says in which order micro-batches run; give --micro-batches too"
        raise typer.BadParameter(message, param_hint="--schedule")
    problem = PlacementProblem(
        imported.graph,
        imported.cluster or Cluster.parse(cluster or DEFAULT_CLUSTER),
        chosen,  # type: ignore[arg-type]  # a wrong name is refused there, with the nearest right ones
        imported.costs or RooflineCost(),
        Pipeline(micro_batches, schedule or "gpipe"),
    )
    _ = problem.class_cost_ns
    return problem


def _pairs(given: list[str] | None, option: str, form: str, example: str) -> dict[str, str]:
    """Reads ``NAME=VALUE`` pairs; a name may hold further equals signs.

    Raises:
        typer.BadParameter: One is no pair, or a name appears twice with different values.
    """
    pairs: dict[str, str] = {}
    for pair in given or []:
        name, _, value = (part.strip() for part in pair.rpartition("="))
        if not name or not value:
            raise typer.BadParameter(f"{pair!r}; expected {form}, e.g. {example}", param_hint=option)
        if pairs.setdefault(name, value) != value:
            message = f"{name!r} is given twice: {pairs[name]} and {value}"
            raise typer.BadParameter(message, param_hint=option)
    return pairs


def _sizes(given: list[str] | None, option: str, form: str, example: str) -> dict[str, int]:
    """Reads ``NAME=N`` pairs with whole numbers.

    Raises:
        typer.BadParameter: One is no such pair, or a name appears twice with different sizes.
    """
    pairs = _pairs(given, option, form, example)
    for name, value in pairs.items():
        if not (value.isascii() and value.isdigit() and len(value) < 19):
            message = f"{f'{name}={value}'!r}; expected {form} with a whole number N, e.g. {example}"
            raise typer.BadParameter(message, param_hint=option)
    return {name: int(value) for name, value in pairs.items()}
