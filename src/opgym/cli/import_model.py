"""``opgym import``: read a model and say what was assumed on the way."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .console import note, print_json, show
from .problem import (
    DimOption,
    FlopsOption,
    ImportChoices,
    JsonOption,
    ModelArgument,
    ShapeOption,
    StrictOption,
    SubgraphsOption,
    TrustOption,
)
from .targets import require_files, require_no_weights

if TYPE_CHECKING:
    from ..graphs.readers import ImportReport


def import_model(
    model: ModelArgument,
    dim: DimOption = None,
    subgraphs: SubgraphsOption = "opaque",
    trust: TrustOption = None,
    shape: ShapeOption = None,
    flops: FlopsOption = None,
    strict: StrictOption = False,
    save: Annotated[
        Path | None,
        typer.Option(metavar="FILE.npz", help="Write the graph, for place, check and opgym.graphs.load."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Read a model and print what was folded, bound, assumed or left unknown.

    Examples:

    ```sh
    opgym import model.onnx --dim batch=8
    opgym import model.onnx --dim data:0=1 --subgraphs inline --strict --save model.npz
    ```

    --json prints the report as one object: source, format, level, ops, tensors, fingerprint, folded,
    bound_dims, subgraph_policy, subgraphs, missing_shape, missing_cost, notes.
    """
    require_files(model, {"--save": save})
    imported = ImportChoices(dim, subgraphs, trust, shape, flops, strict).read(model)
    require_no_weights(imported, {"--save": save})
    if save is not None:
        from ..graphs import save as save_graph

        save_graph(imported.graph, save)
    if as_json:
        print_json(imported.report.as_dict())
    else:
        _print_report(imported.report)
    if save is not None:
        note(f"wrote {save}")


def _print_report(report: ImportReport) -> None:
    from rich.table import Table

    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for key, value in report.as_dict().items():
        grid.add_row(key.replace("_", " "), _as_text(value))
    show(grid)


def _as_text(value: Any, most: int = 10) -> str:
    """A value of the report in one paragraph; long lists are cut, and say so (--json has all)."""
    if isinstance(value, dict):
        items = [
            f"{key}: {item:,}" for key, item in sorted(value.items(), key=lambda pair: (-pair[1], pair[0]))
        ]
    elif isinstance(value, list | tuple):
        items = [str(item) for item in value]
    else:
        return f"{value:,}" if isinstance(value, int) else str(value) or "-"
    if len(items) > most:
        items = [*items[:most], f"and {len(items) - most:,} more (--json lists all)"]
    return ", ".join(items) or "-"
