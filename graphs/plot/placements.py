"""A picture of placements of one graph beside each other: which device each part of it is on."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...errors import OpgymError
from ..cluster import Cluster
from ..graph import Graph
from . import layout
from .files import drawn
from .palette import HUES, between

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Most rows, and columns of a panel; ops share them where there are more.
MOST_ROWS, COLUMNS = 40, 240
#: Panels side by side.
ACROSS = 2
#: Devices of many, as hues: from the first to the last.
_RAMP = ("#2b2165", "#187a93", "#7bbd53", "#f39c3d")
_LEFT, _ROW, _HEAD, _TITLE, _GAP = 1.4, 0.13, 0.62, 0.27, 0.35
_MOST_LETTERS = 60
Int64 = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class PlacementMap:
    """One placement to be drawn.

    Attributes:
        label: What it is called, and what it is worth.
        device: Of each op, ``[ops]``; of variables nothing is shown.
    """

    label: str
    device: ArrayLike


def plot_placements(
    graph: Graph,
    cluster: Cluster,
    placements: Sequence[PlacementMap],
    path: str | os.PathLike[str] | None = None,
    *,
    title: str | None = None,
) -> Figure:
    """Draws on which device each layer runs in the course of the program, a panel for each placement.

    A row is a layer, or a kind of op where the graph has no layers; a column is a stretch of the program. The colour is
    that of the device that most of its ops are on. Rows and columns are merged where there are many.

    Args:
        graph: The graph.
        cluster: Its devices.
        placements: At least one.
        path: If given, the picture is also written there, atomically; the suffix says in which format (svg, png, pdf).
            Equal placements give equal SVG bytes.
        title: Heading; names of graph and cluster where absent.

    Returns:
        A ``matplotlib.figure.Figure`` outside pyplot's state, so nothing has to be closed.

    Raises:
        OpgymError: There is no placement; or the suffix names no picture format.
        MissingExtraError: matplotlib is not installed.
    """
    if not placements:
        raise OpgymError("no placement to draw; expected at least one")
    return drawn(path, lambda: _draw(graph, cluster, placements, title))


def _draw(graph: Graph, cluster: Cluster, placements: Sequence[PlacementMap], title: str | None) -> Figure:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    labels, row_of_op = rows(graph)
    colors = device_colors(len(cluster))
    lines = -(-len(placements) // ACROSS)
    panel_in = _ROW * max(1, len(labels))
    total_in = _HEAD + lines * (_TITLE + panel_in) + (lines - 1) * _GAP + layout.AXIS
    figure = Figure(figsize=(layout.WIDTH, total_in), facecolor="white")
    FigureCanvasAgg(figure)
    width_in = (layout.WIDTH - _LEFT - layout.MARGIN - (ACROSS - 1) * _GAP) / ACROSS
    for at, placement in enumerate(placements):
        line, column = divmod(at, ACROSS)
        left_in = _LEFT + column * (width_in + _GAP)
        bottom_in = total_in - _HEAD - (line + 1) * (_TITLE + panel_in) - line * _GAP
        box = (left_in / layout.WIDTH, bottom_in / total_in, width_in / layout.WIDTH, panel_in / total_in)
        ax = figure.add_axes(box)
        _draw_panel(ax, cells(graph, row_of_op, len(labels), placement.device, len(cluster)), colors)
        ax.set_title(_short(placement.label), size=8.5, loc="left", pad=4)
        if column == 0:
            ax.set_yticks(np.arange(len(labels)) + 0.5, [_short(label, 24) for label in labels])
        if at + ACROSS >= len(placements):
            ax.set_xlabel("ops in the order of the program", labelpad=1.5)
    heading = title or f"{graph.name or 'graph'} on {cluster.name or f'{len(cluster)} devices'}"
    left = _LEFT / layout.WIDTH
    figure.text(left, 1 - 0.20 / total_in, _short(heading, 90), size=11, weight="bold", va="center_baseline")
    _draw_legend(figure, cluster, colors, total_in)
    return figure


def rows(graph: Graph) -> tuple[list[str], Int64]:
    """Rows of a picture: their labels, and the row of each op, ``[ops] int64``, -1 for variables.

    Layers, or else kinds, in the order of their first op; neighbours share a row where there are more than
    ``MOST_ROWS``. What has no layer is the last row.
    """
    shown = ~graph.is_variable
    layered = shown & (graph.op_layer >= 0)
    if len(graph.layers) >= 2 and 2 * int(layered.sum()) >= int(shown.sum()):
        names, part = graph.layers, np.where(layered, graph.op_layer, -1)
    else:
        names, part = graph.kinds, np.where(shown, graph.op_kind, -1)
    present, first = np.unique(part[part >= 0], return_index=True)
    present = present[np.argsort(first)]
    found, count = len(present), min(len(present), MOST_ROWS)
    row_of_part = np.full(len(names) + 1, -1, np.int64)  # the last one is that of ops of no part
    row_of_part[present] = np.arange(found) * count // max(1, found)
    row_of_op: Int64 = row_of_part[part]
    labels = [names[present[-(-row * found // count)]] for row in range(count)]
    rest = shown & (row_of_op < 0)
    if rest.any():
        row_of_op[rest] = count
        labels.append("no layer")
    return labels, row_of_op


def cells(graph: Graph, row_of_op: Int64, count: int, device: ArrayLike, devices: int) -> Int64:
    """The device that most ops of a cell are on, ``[rows, columns] int64``; -1 without an op.

    Args:
        graph: The graph.
        row_of_op: Row of each op; -1: it is not shown.
        count: Rows.
        device: Of each op.
        devices: How many there are.
    """
    shown = np.flatnonzero(row_of_op >= 0)
    columns = min(COLUMNS, max(1, len(shown)))
    column = np.arange(len(shown)) * columns // max(1, len(shown))
    held = np.zeros((count, columns, devices), np.int64)
    np.add.at(held, (row_of_op[shown], column, np.asarray(device)[shown].astype(np.int64)), 1)
    found: Int64 = np.where(held.any(axis=2), held.argmax(axis=2), -1)
    return found


def device_colors(devices: int) -> list[str]:
    """A colour for each device."""
    if devices <= len(HUES):
        return list(HUES[:devices])
    return [between(_RAMP, device / (devices - 1)) for device in range(devices)]


def _draw_panel(ax: Axes, found: Int64, colors: Sequence[str]) -> None:
    count, columns = found.shape
    ax.set_xlim(0, columns)
    ax.set_ylim(max(1, count), 0)
    ax.set_xticks([])
    ax.set_yticks([])
    ax.tick_params(length=0, labelsize=7)
    ax.spines[:].set_visible(False)
    for row, line in enumerate(found):
        ax.broken_barh([(0, columns)], (row + 0.06, 0.88), facecolor=layout.LANE, linewidth=0)
        starts = np.flatnonzero(np.diff(line, prepend=-2))
        ends = np.append(starts[1:], columns)
        for device in np.unique(line[line >= 0]):
            mine = line[starts] == device
            bars = [
                (int(start), int(end - start)) for start, end in zip(starts[mine], ends[mine], strict=True)
            ]
            ax.broken_barh(bars, (row + 0.06, 0.88), facecolor=colors[int(device)], linewidth=0)


def _draw_legend(figure: Figure, cluster: Cluster, colors: Sequence[str], total_in: float) -> None:
    from matplotlib.patches import Rectangle

    side_in, y_in = 0.11, total_in - 0.47
    names = list(cluster.device_names)
    step_in = min(1.1, (layout.WIDTH - _LEFT - layout.MARGIN) / len(names))
    for device, (name, color) in enumerate(zip(names, colors, strict=True)):
        left_in = _LEFT + device * step_in
        corner = (left_in / layout.WIDTH, (y_in - side_in / 2) / total_in)
        swatch = Rectangle(corner, side_in / layout.WIDTH, side_in / total_in, facecolor=color, linewidth=0)
        swatch.set_transform(figure.transFigure)
        figure.add_artist(swatch)
        if step_in > 0.5 or device in (0, len(names) - 1):
            left = (left_in + side_in + 0.05) / layout.WIDTH
            figure.text(left, y_in / total_in, _short(name, 16), size=7.5, va="center_baseline")


def _short(text: str, most: int = _MOST_LETTERS) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
