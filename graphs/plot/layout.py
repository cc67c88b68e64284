"""Measures, in inches, and inks of a timeline's picture."""

from __future__ import annotations

WIDTH = 10.0
LEFT, RIGHT = 1.2, 1.05
#: Left edge of the device names, and right edge of the heading.
MARGIN = 0.15
LINE = 0.19
#: Heights of a compute lane and of a port's lane, gaps within and between devices.
COMPUTE_LANE, PORT_LANE, LANE_GAP, DEVICE_GAP = 0.30, 0.10, 0.025, 0.13
#: Height of a device's memory panel with the gap below it; room below all of them for the time axis.
MEMORY, MEMORY_GAP, AXIS = 0.46, 0.09, 0.42
BETWEEN = 0.30
#: Lanes, and memory panels, are squeezed to these heights where a cluster is large.
MOST_LANES, MOST_MEMORY = 10.0, 6.0

INK, FAINT, QUIET = "#222222", "#8a8a8a", "#555555"
LANE, TRANSFER, CAPACITY, LIVE = "#f3f3f1", "#55606b", "#c0392b", "#6f8fae"
#: A nanosecond in milliseconds, the unit of the time axis.
MS = 1e-6
#: Horizontal resolution: what is narrower is merged, so that 100,000 ops make a small file.
BINS = 1_000

STYLE = {
    "font.family": "DejaVu Sans",  # comes with matplotlib: the same everywhere
    "font.size": 8.0,
    "text.color": INK,
    "axes.edgecolor": "#999999",
    "axes.labelcolor": INK,
    "axes.linewidth": 0.6,
    "xtick.color": INK,
    "ytick.color": INK,
    "svg.hashsalt": "opgym",  # ids in the SVG derive from it: equal timelines give equal bytes
    "svg.fonttype": "path",
}


def beside(inches: float) -> float:
    """Axes coordinate of a distance from the left edge of the figure."""
    return (inches - LEFT) / (WIDTH - LEFT - RIGHT)
