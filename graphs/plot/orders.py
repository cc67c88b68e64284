"""A picture of what orders on one device mean for memory: a curve for each, step by step."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..units import format_bytes, size_unit
from . import layout
from .files import drawn
from .memory import memory_steps

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_HEIGHT, _HEAD = 3.1, 0.55
_MOST_LETTERS = 90
#: Labels at the right edge are at least this far apart, as a share of the height of the axes.
_LABEL_GAP = 0.065


@dataclass(frozen=True, eq=False)
class OrderCurve:
    """The memory of one order.

    Attributes:
        label: What the order is called.
        memory_bytes: Bytes while each op runs, ``[ops] int64``.
    """

    label: str
    memory_bytes: NDArray[np.int64]


def plot_orders(
    curves: Sequence[OrderCurve],
    path: str | os.PathLike[str] | None = None,
    *,
    title: str = "",
    bound_bytes: int | None = None,
) -> Figure:
    """Draws the memory of orders of the same ops.

    Args:
        curves: What is compared, at least one; the last one is the subject and filled, the others are lines.
        path: If given, the picture is also written there, atomically; the suffix says in which format (svg, png,
            pdf). Equal curves give equal SVG bytes.
        title: Heading.
        bound_bytes: A peak that no order can beat, drawn as a line.

    Returns:
        A ``matplotlib.figure.Figure`` outside pyplot's state, so nothing has to be closed.

    Raises:
        OpgymError: The suffix names no picture format.
        MissingExtraError: matplotlib is not installed.
    """
    return drawn(path, lambda: _draw(curves, title, bound_bytes))


def _draw(curves: Sequence[OrderCurve], title: str, bound_bytes: int | None) -> Figure:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    ops = len(curves[-1].memory_bytes)
    peaks = [int(curve.memory_bytes.max(initial=0)) for curve in curves]
    highest = max(1, *peaks, bound_bytes or 0)
    scale, unit = size_unit(highest)
    figure = Figure(figsize=(layout.WIDTH, _HEIGHT), facecolor="white")
    FigureCanvasAgg(figure)
    left, bottom = layout.LEFT / layout.WIDTH, layout.AXIS / _HEIGHT
    width = (layout.WIDTH - layout.LEFT - 2 * layout.RIGHT) / layout.WIDTH
    ax = figure.add_axes((left, bottom, width, 1 - bottom - _HEAD / _HEIGHT))
    ax.set_xlim(0, ops)
    ax.set_ylim(0, 1.05 * highest / scale)
    ax.set_xlabel("ops that have run", labelpad=1.5)
    ax.set_ylabel(f"memory, {unit}")
    ax.tick_params(length=2, labelsize=7.5, width=0.6)
    ax.spines[["top", "right"]].set_visible(False)
    labels: list[tuple[int, str, str, str]] = []
    for curve, peak in zip(curves, peaks, strict=True):
        subject = curve is curves[-1]
        color = layout.LIVE if subject else layout.FAINT
        x, y = memory_steps(np.arange(ops), curve.memory_bytes, ops)
        if subject:
            ax.fill_between(x, y / scale, step="post", color=color, alpha=0.35, linewidth=0)
        ax.step(x, y / scale, where="post", color=color, linewidth=1.2 if subject else 0.9)
        text = f"{curve.label}: {format_bytes(peak)}" + (", the bound" if peak == bound_bytes else "")
        labels.append((peak, text, color, "bold" if subject else "normal"))
    if bound_bytes is not None:
        ax.axhline(bound_bytes / scale, color=layout.CAPACITY, linewidth=0.8, dashes=(4, 2))
        if bound_bytes not in peaks:
            labels.append((bound_bytes, f"bound: {format_bytes(bound_bytes)}", layout.CAPACITY, "normal"))
    _write_labels(ax, labels, 1.05 * highest)
    heading = title if len(title) <= _MOST_LETTERS else f"{title[: _MOST_LETTERS - 1]}…"
    figure.text(left, 1 - 0.22 / _HEIGHT, heading, size=11, weight="bold", va="center_baseline")
    return figure


def _write_labels(ax: Axes, labels: Sequence[tuple[int, str, str, str]], top_bytes: float) -> None:
    """Names the peaks at the right edge, at their height, or above the label below where that is too close."""
    lowest = 0.0
    for size, text, color, weight in sorted(labels, key=lambda label: label[0]):
        y = max(size / top_bytes, lowest)
        lowest = y + _LABEL_GAP
        style: dict[str, Any] = {"size": 7.5, "color": color, "weight": weight, "va": "center_baseline"}
        ax.text(1.01, y, text, transform=ax.transAxes, **style)
