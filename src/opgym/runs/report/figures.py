"""The pictures of a report, as SVG: equal numbers give equal bytes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...graphs.plot import layout
from ...graphs.plot.files import drawn
from ...graphs.plot.palette import HUES
from ...statistics import performance_profile
from .numbers import AnytimeCurve, anytime_curves
from .sections import Section

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Panels of one picture of time against memory, and how many stand beside each other.
PANELS, BESIDE = 12, 3
_HEIGHT, _PANEL_HEIGHT, _LINE_HEIGHT = 3.4, 2.3, 0.24
_DASHES = ("-", "--", ":", "-.")
_MARKERS = "osD^vP*X<>hd"
_MS, _GIB = 1e-6, 2.0**-30
_MOST_LETTERS = 46


def draw_profile(section: Section, document: dict[str, Any], path: Path) -> None:
    """Shares of runs within factors of the best."""

    def draw(figure: Figure) -> None:
        ax = figure.subplots()
        least, most = document["profile"]["factor"][0], document["profile"]["factor"][-1]
        for position, (agent, ratios) in enumerate(zip(section.agents, section.ratios, strict=True)):
            factor = np.unique([least, *ratios[(least < ratios) & (ratios < most)], most])
            share = performance_profile(ratios, factor)
            ax.step(factor, share, where="post", label=_label(agent.label), **_line(position))
        _logarithmic(ax, "x", least, most)
        ax.set_ylim(0, 1.02)
        ax.set_xlabel("value / best known")
        ax.set_ylabel("share of runs within this factor")
        _legend(ax)

    _picture(path, _HEIGHT, draw)


def draw_means(section: Section, document: dict[str, Any], path: Path) -> None:
    """Interquartile means with their intervals, best first."""
    agents = sorted(document["agents"], key=lambda agent: agent["interquartile_mean"]["estimate"])
    shown = [agent for agent in agents if np.isfinite(agent["interquartile_mean"]["estimate"])]

    def draw(figure: Figure) -> None:
        ax = figure.subplots()
        order = [agent.label for agent in section.agents]
        for line, agent in enumerate(shown):
            mean, color = agent["interquartile_mean"], _line(order.index(agent["agent"]))["color"]
            if mean["low"] is not None:
                high = mean["high"] if np.isfinite(mean["high"]) else None
                ax.plot(
                    [mean["low"], high or mean["estimate"]],
                    [line, line],
                    color=color,
                    linewidth=3,
                    alpha=0.45,
                )
                if high is None:
                    ax.annotate(
                        "∞", (mean["estimate"], line), xytext=(6, 0), textcoords="offset points", va="center"
                    )
            ax.plot([mean["estimate"]], [line], "o", color=color, markersize=4.5)
        ax.set_yticks(range(len(shown)), [drawable(agent["agent"]) for agent in shown])
        ax.set_ylim(max(len(shown), 1) - 0.5, -0.5)
        if not shown:
            ax.text(0.5, 0.5, "no agent has a finite mean", transform=ax.transAxes, ha="center", va="center")
        ax.axvline(1, color=layout.FAINT, linewidth=0.6)
        ends = [agent["interquartile_mean"][end] for agent in shown for end in ("estimate", "low", "high")]
        known = [end for end in ends if end is not None and np.isfinite(end) and end > 0]
        _logarithmic(ax, "x", min([1.0, *known]) / 1.02, max([1.1, *known]) * 1.02)
        ax.set_xlabel("interquartile mean of value / best known")

    _picture(path, 0.7 + _LINE_HEIGHT * max(len(shown), 2), draw)


def draw_anytime(section: Section, document: dict[str, Any], path: Path) -> None:
    """The best so far against evaluations, and against seconds."""

    def draw(figure: Figure) -> None:
        left, right = figure.subplots(1, 2, sharey=True)
        finite: list[float] = []
        for ax, against in ((left, "evaluations"), (right, "seconds")):
            curves = anytime_curves(section, against)
            for position, curve in enumerate(curves):
                _draw_curve(ax, curve, section.agents[position].label, position)
            _logarithmic(ax, "x", curves[0].spent[0], curves[0].spent[-1])
            ax.set_xlabel(against)
            shown = np.concatenate([curve.ratio.ravel() for curve in curves])
            finite = [*finite, *shown[np.isfinite(shown) & (shown > 0)]]
        _logarithmic(left, "y", min(finite, default=1.0) / 1.02, max(finite, default=2.0) * 1.02)
        left.set_ylabel("best so far / best known")
        _legend(right)

    _picture(path, _HEIGHT, draw)


def _draw_curve(ax: Axes, curve: AnytimeCurve, label: str, position: int) -> None:
    low, middle, high = np.where(np.isinf(curve.ratio), np.nan, curve.ratio)
    style = _line(position)
    ax.step(curve.spent, middle, where="post", label=_label(label), **style)
    known = ~np.isnan(high)
    ax.fill_between(
        curve.spent[known],
        low[known],
        high[known],
        step="post",
        color=style["color"],
        alpha=0.13,
        linewidth=0,
    )


def draw_memory(section: Section, path: Path, first: int) -> None:
    """Time of a step against memory, a panel for each problem; what nothing beats in both is joined by a line.

    Args:
        section: What is compared; steps are simulated.
        path: Where to write.
        first: Position of the first problem; up to ``PANELS`` are drawn.
    """
    problems = range(first, min(first + PANELS, len(section.problems)))
    lines = -(-len(problems) // BESIDE)

    def draw(figure: Figure) -> None:
        axes = figure.subplots(lines, BESIDE, squeeze=False).ravel()
        for ax, problem in zip(axes, problems, strict=False):
            _draw_panel(ax, section, problem)
        for ax in axes[len(problems) :]:
            ax.set_axis_off()
        handles, labels = axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=5, frameon=False)

    _picture(path, 0.8 + _PANEL_HEIGHT * lines, draw)


def _draw_panel(ax: Axes, section: Section, problem: int) -> None:
    points = []
    for position, agent in enumerate(section.agents):
        feasible = np.isfinite(section.values[position][problem])
        time_ms = section.column(position, "step_time_ns")[problem][feasible] * _MS
        memory_gib = section.column(position, "peak_bytes")[problem][feasible] * _GIB
        ax.plot(
            time_ms, memory_gib, linestyle="none", marker=_MARKERS[position % len(_MARKERS)], markersize=4,
            color=_line(position)["color"], label=_label(agent.label), alpha=0.8,
        )  # fmt: skip
        points += [point for point in zip(time_ms, memory_gib, strict=True) if not np.isnan(point).any()]
    front = pareto_front(np.array(points, np.float64).reshape(-1, 2))
    ax.step(front[:, 0], front[:, 1], where="post", color=layout.FAINT, linewidth=0.8, zorder=0)
    name = section.problems[problem].name
    name = drawable(name)
    ax.set_title(name if len(name) <= _MOST_LETTERS else f"{name[: _MOST_LETTERS - 1]}…", size=6.5)
    ax.set_xlabel("step time, ms", labelpad=1)
    ax.set_ylabel("peak memory, GiB", labelpad=1)
    ax.ticklabel_format(useOffset=False, style="plain")


def pareto_front(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """The points that no other one beats in one coordinate without losing in the other.

    Args:
        points: ``[points, 2] float``, lower is better.

    Returns:
        ``[front, 2] float``, by the first coordinate, each once.
    """
    front: list[NDArray[np.float64]] = []
    for point in np.unique(points, axis=0):
        if not front or point[1] < front[-1][1]:
            front.append(point)
    return np.array(front).reshape(-1, 2)


# --- What all pictures share --------------------------------------------------------------------------------


def _picture(path: Path, height: float, draw: Callable[[Figure], None]) -> None:
    def made() -> Figure:
        from matplotlib import rc_context
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        # Names come from anywhere: a dollar sign in one is no formula.
        with rc_context({"text.parse_math": False}):
            figure = Figure(figsize=(layout.WIDTH, height), facecolor="white", layout="constrained")
            FigureCanvasAgg(figure)
            draw(figure)
            for ax in figure.axes:
                ax.spines[["top", "right"]].set_visible(False)
                ax.tick_params(length=2, labelsize=7.5, width=0.6)
        return figure

    drawn(path, made)


def _logarithmic(ax: Axes, which: str, low: float, high: float) -> None:
    """A logarithmic axis whose ticks are plain numbers."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator

    axis = ax.xaxis if which == "x" else ax.yaxis
    ax.set(**{f"{which}scale": "log", f"{which}lim": (low, high)})
    decades = np.log10(high / low)
    fine = (
        (1.0, 1.02, 1.05, 1.1, 1.2, 1.3, 1.5, 2.0, 3.0) if decades < 0.4 else (1.0, 1.2, 1.5, 2.0, 3.0, 5.0)
    )
    axis.set_major_locator(
        LogLocator(subs=fine if decades <= 1 else (1.0, 2.0, 5.0) if decades < 2 else (1.0,))
    )
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.6g}"))
    axis.set_minor_formatter(NullFormatter())


def _legend(ax: Axes) -> None:
    handles, labels = ax.get_legend_handles_labels()
    ax.legend(handles, labels, frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize=7.5)


def _label(text: str) -> str:
    """A label as matplotlib shows it: it leaves out those that begin with an underscore."""
    return drawable(f" {text}" if text.startswith("_") else text)


def drawable(text: str) -> str:
    """A name in letters that the font has; others as ``\\u65e5``, so that names stay different."""
    from matplotlib.font_manager import findfont, get_font

    font = get_font(findfont(str(layout.STYLE["font.family"])))
    return "".join(
        letter if font.get_char_index(ord(letter)) else letter.encode("ascii", "backslashreplace").decode()
        for letter in text
    )


def _line(position: int) -> dict[str, Any]:
    """Colour and dashes of an agent."""
    return {
        "color": HUES[position % len(HUES)],
        "linestyle": _DASHES[position // len(HUES) % len(_DASHES)],
        "linewidth": 1.2,
    }
