"""The lower part of a timeline's picture: live memory per device, with its capacity."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..cluster import Cluster
from ..graph import Graph
from ..lanes import memory_curves
from ..simulate import Timeline
from ..units import format_bytes, size_unit
from . import layout

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw_memory(
    panels: Sequence[Axes], graph: Graph, cluster: Cluster, timeline: Timeline, span_ns: int, *, roomy: bool
) -> None:
    """One panel per device, all with the same scale; a capacity far above it is drawn beyond a break.

    Args:
        panels: Axes of each device, top to bottom.
        graph: The graph that ran.
        cluster: Where it ran.
        timeline: What happened when.
        span_ns: Right end of the axes.
        roomy: Whether a panel is high enough for scale and two labels.
    """
    curves = memory_curves(graph, timeline, len(cluster))
    largest = max(1, *(int(size.max()) for _, size in curves))
    capacities = [int(c) for c in cluster.capacity_bytes]
    within = [c for c in capacities if c <= 2.5 * largest]
    limit = max(1.1 * max(largest, *within, 0), 1.45 * largest if len(within) < len(capacities) else 0)
    scale, unit = size_unit(largest)
    for ax, name, capacity, (time_ns, size) in zip(
        panels, cluster.device_names, capacities, curves, strict=True
    ):
        x, y = memory_steps(time_ns, size, span_ns)
        ax.set_ylim(0, limit / scale)
        ax.fill_between(x * layout.MS, y / scale, step="post", color=layout.LIVE, alpha=0.35, linewidth=0)
        ax.step(x * layout.MS, y / scale, where="post", color=layout.LIVE, linewidth=0.8)
        line = capacity if capacity in within else limit
        ax.axhline(line / scale, color=layout.CAPACITY, linewidth=0.8, dashes=(4, 2), clip_on=False)
        if capacity not in within and roomy:
            _break_axis(ax)
        _label(ax, name, capacity, int(size.max()), line / limit, roomy)
        ax.set_yticks([0, _round_tick(largest / scale)])
        ax.tick_params(axis="both", length=2, labelsize=6.5, width=0.6, labelbottom=False, labelleft=roomy)
        ax.spines[["top", "right"]].set_visible(False)
    heading: dict[str, Any] = {"transform": panels[0].transAxes, "size": 7, "color": layout.FAINT}
    panels[0].text(0, 1.12 if roomy else 1.6, f"memory, {unit}", **heading)
    panels[-1].tick_params(axis="x", labelsize=7.5, labelbottom=True)
    panels[-1].set_xlabel("time, ms", labelpad=1.5)


def memory_steps(
    time_ns: NDArray[np.int64], size_bytes: NDArray[np.int64], span_ns: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """A memory curve at the resolution of the picture; no peak is lost.

    Args:
        time_ns: When the size changed, ascending from 0, ``[samples] int64``.
        size_bytes: The size from then on, ``[samples] int64``.
        span_ns: Length of the curve.

    Returns:
        Times and sizes of a step function from 0 to ``span_ns``. Past ``BINS`` samples, each of ``BINS / 2``
        bins shows its maximum.
    """
    time, size = time_ns.astype(np.float64), size_bytes.astype(np.float64)
    if len(time) > layout.BINS:
        bins = layout.BINS // 2
        edge = np.arange(bins, dtype=np.float64) * (span_ns / bins)
        # The size at the left edge of a bin counts as well: it is what the last sample before the edge left.
        highest = size[np.searchsorted(time, edge, side="right") - 1]
        np.maximum.at(highest, np.searchsorted(edge, time, side="right") - 1, size)
        time, size = edge, highest
    changed = np.append(True, size[1:] != size[:-1])
    return np.append(time[changed], float(span_ns)), np.append(size[changed], size[-1])


def _label(ax: Axes, name: str, capacity: int, peak: int, line: float, roomy: bool) -> None:
    """Device on the left; on the right the peak, and the capacity beside its line."""
    place: dict[str, Any] = {"transform": ax.transAxes, "va": "center_baseline"}
    ax.text(layout.beside(layout.MARGIN), 0.5, name, weight="bold", **place)
    ink, weight = (layout.CAPACITY, "bold") if peak > capacity else (layout.INK, "normal")
    if roomy:
        ax.text(1.008, line, format_bytes(capacity), size=6.5, color=layout.CAPACITY, **place)
        y, text = 0.3 if line > 0.6 else 0.85, f"peak {format_bytes(peak)}"
    else:
        y, text = 0.5, f"{format_bytes(peak)} of {format_bytes(capacity)}"
    ax.text(1.008, y, text, size=6.5, color=ink, weight=weight, **place)


def _break_axis(ax: Axes) -> None:
    """Interrupts the left axis: the scale does not go on to the capacity line."""
    place: dict[str, Any] = {"transform": ax.transAxes, "clip_on": False, "zorder": 3}
    ax.plot([0, 0], [0.84, 0.90], color="white", linewidth=1.6, **place)
    for y in (0.84, 0.90):
        ax.plot([-0.004, 0.004], [y - 0.025, y + 0.025], color="#777777", linewidth=0.7, **place)


def _round_tick(value: float) -> float:
    """The largest of 1, 2, 5 times a power of ten that is at most ``value``."""
    power = 10.0 ** np.floor(np.log10(value))
    return float(next(m for m in (5, 2, 1) if m * power <= value * (1 + 1e-9)) * power)
