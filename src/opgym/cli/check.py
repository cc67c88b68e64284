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
    from ..problems import PlacementProblem


def check(
    problem: Annotated[
        str, typer.Argument(metavar="PROBLEM", help="The model: a file or a dataset id, as for opgym place.")
    ],
    solution: Annotated[
        Path,
        typer.Argument(metavar="SOLUTION", help="A solution file of opgym, or a dnn-partitioning split."),
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
    opgym check bert24_inference.json bert24_inference_expert.json --objective max_load
    ```

    The solution is evaluated by code of its own, apart from what solvers use; cluster and objective are
    those it was made for unless options say otherwise. --json prints one object of {value, unit, verdict,
    objective, bound, ratio_to_bound, details}. The exit code is 0 whatever the verdict, and 2 if one of
    the files cannot be read or they do not belong together.
    """
    from ..graphs.units import format_value
    from ..problems.checker import check as recompute
    from ..problems.solution_file import load_with_problem
    from .report import plain_value, ratio_to_bound

    imported = ImportChoices(dim, subgraphs, trust, shape, flops).read(problem)
    stated = _stated(solution)
    if imported.cluster is None:
        cluster = cluster or stated.get("cluster")
    aim = objective or stated.get("objective")
    if aim == stated.get("objective") and micro_batches is None:
        micro_batches, schedule = stated.get("micro_batches"), schedule or stated.get("schedule")
    posed, placement = load_with_problem(solution, pose(imported, cluster, aim, micro_batches, schedule))
    outcome = recompute(posed, placement)
    bound = posed.lower_bound()
    ratio = ratio_to_bound(outcome, bound)
    if as_json:
        print_json(
            {
                "value": plain_value(outcome.value, outcome.unit),
                "unit": outcome.unit,
                "verdict": outcome.verdict.value,
                "objective": posed.objective.value,
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
    console.print(f"{posed.objective.value} {format_value(outcome.value, outcome.unit)}{beside}")
    for key, value in outcome.details.items():
        console.print(_detail(key, value, posed), style="dim")


def _detail(key: str, value: Any, problem: PlacementProblem) -> str:
    """A detail of the outcome for people; the unit is the last word of its name."""
    from ..graphs.units import format_value
    from .report import peaks_text, values_text

    *words, unit = key.split("_")
    name = " ".join(words)
    if key == "peak_bytes":
        return f"peak memory: {peaks_text(value, problem)}"
    if unit in ("ns", "ms", "bytes"):
        texts = values_text(value, unit) if isinstance(value, list) else [format_value(value, unit)]
        return f"{name}: {' / '.join(texts)}"
    return f"{name} {unit}: {value}"


def _stated(solution: Path) -> dict[str, Any]:
    """Cluster, objective and pipeline that a solution file of ours was made for; splits name none."""
    from ..errors import InvalidSolutionError
    from ..graphs.closed_json import read_json
    from ..problems.solution_file import FORMAT

    document = read_json(solution, InvalidSolutionError, "a solution file or a dnn-partitioning split")
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        return {}
    pipeline = document.get("pipeline")
    rows = document | (pipeline if isinstance(pipeline, dict) else {})
    kinds = {"cluster": str, "objective": str, "micro_batches": int, "schedule": str}
    # What has the wrong type is left to the reader of the file, which names it.
    return {key: rows[key] for key, kind in kinds.items() if type(rows.get(key)) is kind}
