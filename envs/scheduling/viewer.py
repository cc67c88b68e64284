"""Pictures of an order: the memory that it takes, step by step, drawn with numpy alone, and the same as text."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...problems import SchedulingProblem
from .layout import FREED, NEEDED
from .types import SchedulingState

WIDTH_PX, HEIGHT_PX, MARGIN_PX = 600, 200, 10
BACKGROUND, EMPTY, INK, PROGRAM, USED, ABOVE = (
    (255,) * 3,
    (236,) * 3,
    (60, 60, 60),
    (150, 150, 150),
    (90, 140, 200),
    (200, 30, 30),
)
_COLUMNS, _ROWS = 64, 8


@dataclass(frozen=True)
class Picture:
    """One state of an episode.

    From left to right the steps; the bars are the memory while each op ran, red where it is above the peak of
    the program order; the dark line is the peak so far, the grey curve the program order, the grey line its
    peak. The line at the bottom is the progress of the episode.

    Attributes:
        problem: The graph.
        state: What to draw.
        program_bytes: Memory while each op of the program order runs, ``[ops] int64``.
    """

    problem: SchedulingProblem
    state: SchedulingState
    program_bytes: NDArray[np.int64]

    def rgb_array(self) -> NDArray[np.uint8]:
        """The picture, ``uint8 [height, width, 3]``, always of one size."""
        partial = self.state.partial
        image = np.full((HEIGHT_PX + 3 * MARGIN_PX, WIDTH_PX + 2 * MARGIN_PX, 3), BACKGROUND, np.uint8)
        plot = image[MARGIN_PX : MARGIN_PX + HEIGHT_PX, MARGIN_PX : MARGIN_PX + WIDTH_PX]
        plot[:] = EMPTY
        reference, highest = int(self.program_bytes.max()), self._highest_bytes()
        used, program = self._columns(WIDTH_PX)
        row = np.arange(HEIGHT_PX, 0, -1)[:, None]  # pixels above the bottom
        used_px = np.ceil(used / highest * HEIGHT_PX)
        reference_px = round(reference / highest * HEIGHT_PX)
        plot[row <= used_px] = USED
        plot[(row <= used_px) & (row > reference_px)] = ABOVE
        plot[row == np.maximum(np.ceil(program / highest * HEIGHT_PX), 1)] = PROGRAM
        _draw_level(plot, reference_px, PROGRAM)
        if partial.num_done:
            _draw_level(plot, round(partial.peak_bytes / highest * HEIGHT_PX), INK)
        done = round(WIDTH_PX * partial.num_done / len(self.program_bytes))
        image[-MARGIN_PX : -MARGIN_PX + 3, MARGIN_PX : MARGIN_PX + done] = INK
        return image

    def ansi(self) -> str:
        """The picture as text."""
        graph, state = self.problem.graph, self.state
        partial, reference = state.partial, int(self.program_bytes.max())
        share = f"{partial.peak_bytes / reference:.3f}" if reference else "1"
        lines = [
            f"{graph.name or 'graph'}: op {partial.num_done} of {len(self.program_bytes)}, "
            f"{partial.live_bytes:,} bytes live, peak {partial.peak_bytes:,} bytes, {share} of the program order's"
        ]
        if not partial.over:
            node = partial.best(1)[0]
            op, figures = int(self.problem.ops[node]), partial.figures[node]
            lines.append(
                f"{partial.num_ready} ready, best ranked: op {op} {graph.op_names[op]} ({graph.kind(op)}), "
                f"takes {figures[NEEDED]:,} bytes, frees {figures[FREED]:,}"
            )
        highest = self._highest_bytes()
        used, _ = self._columns(_COLUMNS)
        for level in range(_ROWS, 0, -1):
            at_least = highest * (level - 1) / _ROWS
            bars = "".join("#" if bytes > at_least else " " for bytes in used.tolist())
            lines.append(f"{highest * level / _ROWS:20,.0f} |{bars}|")
        if state.outcome is not None:
            lines.append(f"peak: {state.outcome.value:g} {state.outcome.unit}, {state.outcome.verdict}")
        return "\n".join(lines) + "\n"

    def _highest_bytes(self) -> int:
        """What the top edge stands for."""
        return max(int(self.program_bytes.max()), self.state.partial.peak_bytes, 1)

    def _columns(self, width: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The most memory within each column, so far and in the program order, each ``[width] int64``."""
        steps = len(self.program_bytes)
        used = np.zeros(steps, np.int64)
        used[: self.state.partial.num_done] = self.state.partial.used_bytes
        left = np.arange(width) * steps // width
        right = np.maximum(-(-(np.arange(width) + 1) * steps // width), left + 1)
        # Pairs (left, right) of neighbouring columns may share a step; every other result is a column.
        edges = np.stack([left, np.minimum(right, steps)], axis=1).ravel()
        return tuple(  # type: ignore[return-value]
            np.maximum.reduceat(np.append(values, 0), edges)[::2] for values in (used, self.program_bytes)
        )


def _draw_level(plot: NDArray[np.uint8], height_px: int, color: tuple[int, ...]) -> None:
    """A horizontal line, so many pixels above the bottom."""
    plot[HEIGHT_PX - max(min(height_px, HEIGHT_PX), 1)] = color
