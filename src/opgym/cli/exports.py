"""The files of ``opgym place --export``."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from .console import note

if TYPE_CHECKING:
    from ..graphs import Timeline
    from ..graphs.readers import Imported
    from ..problems import Placement, PlacementProblem


def export_placement(
    folder: Path,
    imported: Imported,
    model: str,
    problem: PlacementProblem,
    placement: Placement,
    timeline: Timeline,
) -> list[Path]:
    """Writes the device map and, for an ONNX model, the model with devices and order as node metadata.

    Names start with the model's: ``NAME.device_map.json`` and ``NAME.placed.onnx``; the model itself is
    left alone.

    Returns:
        The files.
    """
    from ..graphs.writers import write_device_map

    stem = re.sub(r"[^\w.-]+", "_", Path(model).stem if Path(model).exists() else model.rsplit("/", 1)[-1])
    device_map = folder / f"{stem}.device_map.json"
    write_device_map(device_map, problem.graph, problem.cluster, placement.device, timeline)
    if imported.origin is None:
        note(f"the model is {imported.report.format}, not ONNX: its device map is exported alone")
        return [device_map]
    from ..graphs.lanes import start_order
    from ..graphs.writers.onnx import write_onnx

    placed = folder / f"{stem}.placed.onnx"
    names = problem.cluster.device_names
    write_onnx(placed, imported, placement.device, device_names=names, order=start_order(timeline))
    return [device_map, placed]
