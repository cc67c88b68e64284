"""The upper part of a timeline's picture: lanes with their bars."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..cluster import Cluster
from ..lanes import COMPUTE, RECEIVE, SEND, Lane
from ..simulate import Timeline
from . import layout
from .palette import Palette

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: More transfers than this are drawn without the lines that join sender and receiver.
MAX_CONNECTORS = 120
#: More bars than this are embedded as pixels in a vector file.
MAX_VECTOR_BARS = 12_000


def lane_positions(rows: Sequence[Lane]) -> tuple[list[float], list[float], float]:
    """Top and height of each lane, in inches from the top of the panel, and the height of the panel."""
    tops, heights = [], []
    at = 0.0
    for i, lane in enumerate(rows):
        if i:
            at += layout.LANE_GAP if lane.device == rows[i - 1].device else layout.DEVICE_GAP
        siblings = sum(other.device == lane.device and other.what == lane.what for other in rows)
        full = layout.COMPUTE_LANE if lane.what == COMPUTE else layout.PORT_LANE
        # Ports without exclusive channels may need many rows: together they take the room of at most three.
        size = full * min(1.0, 3 / siblings)
        tops.append(at)
        heights.append(size)
        at += size
    squeeze = min(1.0, layout.MOST_LANES / at)
    return [y * squeeze for y in tops], [size * squeeze for size in heights], at * squeeze


def draw_lanes(
    ax: Axes,
    cluster: Cluster,
    timeline: Timeline,
    rows: Sequence[Lane],
    top: Sequence[float],
    height: Sequence[float],
    colors: Palette,
    span_ns: int,
) -> None:
    """Draws all lanes into axes that measure milliseconds to the right and inches downwards."""
    ax.set_yticks([])
    ax.tick_params(axis="x", length=0, labelbottom=False)
    ax.spines[:].set_visible(False)
    _draw_bars(ax, rows, top, height, colors, span_ns)
    if len(timeline.transfer_tensor) <= MAX_CONNECTORS:
        _draw_connectors(ax, timeline, rows, top, height, span_ns)
    place = ax.get_yaxis_transform()
    for lane, y, size in zip(rows, top, height, strict=True):
        middle = y + size / 2
        label: dict[str, Any] = {"transform": place, "va": "center_baseline"}
        if lane.what == COMPUTE:
            ax.text(
                layout.beside(layout.MARGIN),
                middle,
                cluster.device_names[lane.device],
                weight="bold",
                **label,
            )
            share = int((lane.end_ns - lane.start_ns).sum()) / span_ns
            ax.text(1.008, middle, f"busy {share:.0%}", size=7, **label)
        elif lane.row == 0 and size > 0.06:
            ax.text(-0.008, middle, lane.what, ha="right", size=6, color=layout.FAINT, **label)


def _draw_bars(
    ax: Axes,
    rows: Sequence[Lane],
    top: Sequence[float],
    height: Sequence[float],
    colors: Palette,
    span_ns: int,
) -> None:
    """All bars: one path per colour, so that the file stays small."""
    from matplotlib.patches import PathPatch, Rectangle
    from matplotlib.path import Path

    boxes: dict[tuple[bool, str], list[NDArray[np.float64]]] = {}
    for lane, y, size in zip(rows, top, height, strict=True):
        background = Rectangle(
            (0, y), span_ns * layout.MS, size, facecolor=layout.LANE, linewidth=0, zorder=0.5
        )
        ax.add_patch(background)
        computes = lane.what == COMPUTE
        color = colors.of_op[lane.item] if computes else np.zeros(len(lane.item), np.int64)
        names = colors.color if computes else (layout.TRANSFER,)
        for left, right, c, wide in merged_bars(lane.start_ns, lane.end_ns, color, span_ns):
            corners = np.array([[left, y], [right, y], [right, y + size], [left, y + size], [left, y]])
            boxes.setdefault((wide, names[c]), []).append(corners * (layout.MS, 1))
    pixels = sum(map(len, boxes.values())) > MAX_VECTOR_BARS
    codes = [Path.MOVETO, *[Path.LINETO] * 3, Path.CLOSEPOLY]
    for (wide, name), corners_of in sorted(boxes.items()):
        outline = Path(np.concatenate(corners_of), codes * len(corners_of))
        edge = 0.35 if wide else 0.0
        ax.add_patch(PathPatch(outline, facecolor=name, edgecolor="white", linewidth=edge, rasterized=pixels))


def merged_bars(
    start_ns: NDArray[np.int64], end_ns: NDArray[np.int64], color: NDArray[np.int64], span_ns: int
) -> list[tuple[float, float, int, bool]]:
    """Bars of one lane at the resolution of the picture.

    Bars of two bins and more stay as they are. The narrow ones are summed up by bin; each bin shows the
    colour that takes most of its time, as wide as its busy share; full neighbours of one colour are one bar.

    Args:
        start_ns: ``[bars] int64``.
        end_ns: ``[bars] int64``.
        color: Position of each bar's colour, ``[bars] int64``.
        span_ns: Length of the lane.

    Returns:
        ``(start_ns, end_ns, color, wide)``, the merged ones first; ``wide`` bars have room for an edge.
    """
    if not len(start_ns):
        return []
    bins = layout.BINS
    bin_ns = span_ns / bins
    alone = end_ns - start_ns >= 2 * bin_ns
    start, end, narrow_color = start_ns[~alone], end_ns[~alone], color[~alone]
    taken = np.zeros((bins, int(color.max()) + 1))
    first = np.minimum((start / bin_ns).astype(np.int64), bins - 1)
    for k in range(3):  # a bar of less than two bins touches at most three
        inside = np.minimum(end, (first + k + 1) * bin_ns) - np.maximum(start, (first + k) * bin_ns)
        # What takes no time still happened: it gets a sliver of its bin.
        np.add.at(
            taken,
            (np.minimum(first + k, bins - 1), narrow_color),
            np.maximum(inside, bin_ns / 100 if k == 0 else 0.0),
        )
    share = np.minimum(taken.sum(axis=1) / bin_ns, 1.0)
    leading = taken.argmax(axis=1)
    merged: list[tuple[float, float, int, bool]] = []
    for b in np.flatnonzero(share > 0).tolist():
        left, lead = b * bin_ns, int(leading[b])
        right = left + bin_ns * (1.0 if share[b] > 0.7 else max(float(share[b]), 0.3))
        if merged and merged[-1][2] == lead and left - merged[-1][1] < 0.01 * bin_ns:
            merged[-1] = (merged[-1][0], right, lead, False)
        else:
            merged.append((left, right, lead, False))
    bars = zip(start_ns[alone].tolist(), end_ns[alone].tolist(), color[alone].tolist(), strict=True)
    return merged + [(float(left), float(right), c, right - left >= 5 * bin_ns) for left, right, c in bars]


def _draw_connectors(
    ax: Axes,
    timeline: Timeline,
    rows: Sequence[Lane],
    top: Sequence[float],
    height: Sequence[float],
    span_ns: int,
) -> None:
    """A thin line from a transfer's bar at the sender to its bar at the receiver, under the bars of ops."""
    middle: dict[tuple[str, int], float] = {}
    for lane, y, size in zip(rows, top, height, strict=True):
        middle |= dict.fromkeys(((lane.what, item) for item in lane.item.tolist()), y + size / 2)
    at = (timeline.transfer_start_ns + timeline.transfer_end_ns) / 2
    room = timeline.transfer_end_ns - timeline.transfer_start_ns >= 4 * span_ns / layout.BINS
    for i, (x, roomy) in enumerate(zip((at * layout.MS).tolist(), room.tolist(), strict=True)):
        sender, receiver = middle[SEND, i], middle[RECEIVE, i]
        ax.plot([x, x], [sender, receiver], color=layout.TRANSFER, linewidth=0.5, alpha=0.6, zorder=0.9)
        if roomy:
            head = "v" if receiver > sender else "^"
            ax.plot(x, receiver, marker=head, color="white", markersize=2.6, markeredgewidth=0)
