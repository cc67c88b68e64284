"""A picture of a timeline: one lane per device and per port, the memory of each device below."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..cluster import Cluster
from ..graph import Graph
from ..lanes import lanes
from ..simulate import Timeline
from ..units import format_bytes, format_ns
from . import layout
from .bars import draw_lanes, lane_positions
from .files import drawn
from .memory import draw_memory
from .palette import Palette, palette

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_SWATCH = 0.11


def plot_timeline(
    graph: Graph,
    cluster: Cluster,
    timeline: Timeline,
    path: str | os.PathLike[str] | None = None,
    *,
    title: str | None = None,
) -> Figure:
    """Draws what ran where and when, what was sent, and how much memory was live.

    Ops are coloured by layer where the graph has layers, else by kind; a bar of a port is one transfer. Ops
    too narrow to see are merged: such a piece shows the colour that takes most of its time.

    Args:
        graph: The graph that ran.
        cluster: Where it ran.
        timeline: What happened when.
        path: If given, the picture is also written there, atomically; the suffix says in which format (svg,
            png, pdf). Equal timelines give equal SVG bytes.
        title: Heading; names of graph and cluster where absent.

    Returns:
        A ``matplotlib.figure.Figure`` outside pyplot's state, so nothing has to be closed.

    Raises:
        OpgymError: The suffix names no picture format.
        MissingExtraError: matplotlib is not installed.
    """
    return drawn(path, lambda: _draw(graph, cluster, timeline, title))


def _draw(graph: Graph, cluster: Cluster, timeline: Timeline, title: str | None) -> Figure:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    busy_ns = np.where(timeline.op_start_ns >= 0, timeline.op_end_ns - timeline.op_start_ns, 0)
    colors = palette(graph, busy_ns)
    legend = _legend_entries(colors)
    ends = (timeline.op_end_ns, timeline.transfer_end_ns)
    makespan_ns = max(int(part.max(initial=0)) for part in ends)
    span_ns = max(makespan_ns, 1)
    devices = len(cluster)

    rows = lanes(timeline, devices)
    top, height, lanes_in = lane_positions(rows)
    squeeze = min(1.0, layout.MOST_MEMORY / (devices * (layout.MEMORY + layout.MEMORY_GAP)))
    panel_in = squeeze * (layout.MEMORY + layout.MEMORY_GAP)
    head_in = 0.48 + layout.LINE * (1 + max((entry.line for entry in legend), default=0))
    total_in = head_in + lanes_in + layout.BETWEEN + devices * panel_in + layout.AXIS
    figure = Figure(figsize=(layout.WIDTH, total_in), facecolor="white")
    FigureCanvasAgg(figure)

    def axes(bottom_in: float, height_in: float) -> Axes:
        width = layout.WIDTH - layout.LEFT - layout.RIGHT
        box = (layout.LEFT / layout.WIDTH, bottom_in / total_in, width / layout.WIDTH, height_in / total_in)
        ax = figure.add_axes(box)
        ax.set_xlim(0, span_ns * layout.MS)
        return ax

    ax = axes(total_in - head_in - lanes_in, lanes_in)
    ax.set_ylim(lanes_in, 0)  # inches from the top, so that lane heights are what they say
    draw_lanes(ax, cluster, timeline, rows, top, height, colors, span_ns)
    panels = [
        axes(layout.AXIS + (devices - 1 - device) * panel_in, squeeze * layout.MEMORY)
        for device in range(devices)
    ]
    draw_memory(panels, graph, cluster, timeline, span_ns, roomy=squeeze > 0.6)

    heading = title or f"{graph.name or 'graph'} on {cluster.name or f'{devices} devices'}"
    y = 1 - 0.20 / total_in
    facts = _facts(graph, timeline, makespan_ns)
    figure.text(layout.LEFT / layout.WIDTH, y, heading, size=11, weight="bold", va="center_baseline")
    edge = 1 - layout.MARGIN / layout.WIDTH
    figure.text(edge, y, facts, size=8.5, va="center_baseline", ha="right", color=layout.QUIET)
    _draw_legend(figure, legend, total_in)
    return figure


def _facts(graph: Graph, timeline: Timeline, makespan_ns: int) -> str:
    sent = int(graph.tensor_bytes[timeline.transfer_tensor].sum())
    count = len(timeline.transfer_tensor)
    ran = int((timeline.op_start_ns >= 0).sum())
    transfers = f"{count:,} transfers of {format_bytes(sent)}" if count else "no transfers"
    return f"step {format_ns(makespan_ns)}  ·  {ran:,} ops  ·  {transfers}"


@dataclass(frozen=True)
class _Entry:
    """A swatch with its label in the legend."""

    line: int
    left_in: float
    label: str
    color: str


def _legend_entries(colors: Palette) -> list[_Entry]:
    """Where the entries stand: side by side, in as many lines as they need."""
    from matplotlib.textpath import TextPath

    x, line = layout.LEFT, 0
    entries: list[_Entry] = []
    for label, color in colors.legend:
        text = label if len(label) <= 36 else f"{label[:17]}…{label[-18:]}"
        text_in = float(TextPath((0, 0), text, size=7.5).get_extents().width) / 72
        width = _SWATCH + 0.05 + text_in + 0.18
        if x + width > layout.WIDTH and entries:
            x, line = layout.LEFT, line + 1
        entries.append(_Entry(line, x, text, color))
        x += width
    return entries


def _draw_legend(figure: Figure, entries: Sequence[_Entry], total_in: float) -> None:
    from matplotlib.patches import Rectangle

    size = (_SWATCH / layout.WIDTH, _SWATCH / total_in)
    for entry in entries:
        y = total_in - 0.47 - entry.line * layout.LINE
        corner = (entry.left_in / layout.WIDTH, (y - _SWATCH / 2) / total_in)
        swatch = Rectangle(corner, *size, facecolor=entry.color, linewidth=0)
        swatch.set_transform(figure.transFigure)
        figure.add_artist(swatch)
        left = (entry.left_in + _SWATCH + 0.05) / layout.WIDTH
        figure.text(left, y / total_in, entry.label, size=7.5, va="center_baseline")
