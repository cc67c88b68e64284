"""What the colour of an op in a picture means: its layer where there are layers, else its kind."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..graph import DIRECTIONS, VARIABLE, Graph

#: Distinct hues (Paul Tol's "bright" and "muted" schemes: also told apart with colour-vision deficiencies).
HUES = ("#4477aa", "#ee8866", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#999933", "#332288", "#cc6677")
OTHER = "#b4b4b4"
#: From the first layer to the last, dark to light.
SEQUENCE = ("#2b2165", "#1f4e8c", "#187a93", "#2a9d7c", "#7bbd53", "#dcc43c", "#f39c3d")

#: Layers that the legend names where there are more than hues.
SAMPLE = 5


@dataclass(frozen=True, eq=False)
class Palette:
    """Colours of ops.

    Attributes:
        color: The distinct colours, ``#rrggbb``.
        of_op: Position in ``color`` of each op, ``[ops] int64``.
        legend: ``(label, color)`` of what a reader has to know; of many layers an even sample.
    """

    color: tuple[str, ...]
    of_op: NDArray[np.int64]
    legend: tuple[tuple[str, str], ...]


def palette(graph: Graph, busy_ns: NDArray[np.int64]) -> Palette:
    """Colours for a timeline: layers in their order, or else the kinds that take the most time.

    Args:
        graph: The graph.
        busy_ns: Time that each op takes, ``[ops] int64``; says which kinds deserve a colour of their own.
    """
    known = graph.op_layer >= 0
    scheduled = ~graph.is_variable
    if len(graph.layers) >= 2 and 2 * int((known & scheduled).sum()) >= int(scheduled.sum()):
        return _by_layer(graph)
    return _by_kind(graph, busy_ns)


def _by_layer(graph: Graph) -> Palette:
    count = len(graph.layers)
    few = count <= len(HUES)
    forward = list(HUES[:count]) if few else [between(SEQUENCE, i / (count - 1)) for i in range(count)]
    trains = bool((graph.op_direction == DIRECTIONS.index("backward")).any())
    lighter = [_mix(color, "#ffffff", 0.45) for color in forward] if trains else []
    colors = (*forward, *lighter, OTHER)
    backward = graph.op_direction == DIRECTIONS.index("backward")
    of_op = np.where(
        graph.op_layer >= 0, graph.op_layer + count * (backward if trains else 0), len(colors) - 1
    )
    shown = range(count) if few else sorted({round(i * (count - 1) / (SAMPLE - 1)) for i in range(SAMPLE)})
    legend = [(graph.layers[i], forward[i]) for i in shown]
    if not few:
        legend[0] = (f"{graph.layers[0]} (first of {count} layers)", forward[0])
    if trains:
        legend.append(("backward: lighter", _mix("#777777", "#ffffff", 0.45)))
    if (graph.op_layer[~graph.is_variable] < 0).any():
        legend.append(("no layer", OTHER))
    return Palette(colors, of_op.astype(np.int64), tuple(legend))


def _by_kind(graph: Graph, busy_ns: NDArray[np.int64]) -> Palette:
    time_ns = np.bincount(graph.op_kind, weights=busy_ns, minlength=len(graph.kinds))
    present = np.bincount(graph.op_kind, minlength=len(graph.kinds))
    order = sorted(range(len(graph.kinds)), key=lambda k: (-time_ns[k], -present[k], graph.kinds[k]))
    order = [k for k in order if graph.kinds[k] != VARIABLE]
    named = order if len(order) <= len(HUES) else order[: len(HUES) - 1]
    color_of = np.full(len(graph.kinds), len(named), np.int64)
    color_of[named] = np.arange(len(named))
    legend = [(graph.kinds[k], HUES[i]) for i, k in enumerate(named)]
    rest = len(order) - len(named)
    if rest:
        legend.append((f"{rest} other kinds", OTHER))
    return Palette((*HUES[: len(named)], OTHER), color_of[graph.op_kind], tuple(legend))


def between(stops: tuple[str, ...], share: float) -> str:
    """The colour at ``share`` of the way along some stops."""
    at = share * (len(stops) - 1)
    left = min(int(at), len(stops) - 2)
    return _mix(stops[left], stops[left + 1], at - left)


def _mix(first: str, second: str, share: float) -> str:
    """The colour at ``share`` of the way from the first to the second."""
    a, b = (np.array([int(c[i : i + 2], 16) for i in (1, 3, 5)]) for c in (first, second))
    red, green, blue = np.rint(a + (b - a) * share).astype(int).tolist()
    return f"#{red:02x}{green:02x}{blue:02x}"
