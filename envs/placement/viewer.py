"""Pictures of a placement: lanes of devices over time, drawn with numpy alone, and the same as text."""

from __future__ import annotations

import colorsys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...graphs import DIRECTIONS, Timeline
from ...problems import Placement, PlacementProblem
from .blocks import Blocks
from .types import PlacementState

_LANES_PX, _MEMORY_PX, _MARGIN_PX, _LANE_PX, _GAP_PX = 600, 72, 26, 22, 10
_BACKGROUND, _EMPTY, _INK, _TRANSFER, _OVER = (
    (255,) * 3,
    (236,) * 3,
    (60, 60, 60),
    (130, 130, 130),
    (200, 30, 30),
)
#: 3 x 5 pixels of each digit, row by row from the top, 3 bits a row.
_DIGITS = (0o75557, 0o26227, 0o71747, 0o71717, 0o55711, 0o74717, 0o74757, 0o71111, 0o75757, 0o75717)
_DIGIT_SCALE = 2


class Bar(NamedTuple):
    """Something that occupies a lane for some time."""

    device: int
    start_ns: int
    end_ns: int
    color: tuple[int, ...]
    thin: bool  # a transfer, below the ops of the device that receives it


@dataclass(frozen=True)
class Picture:
    """One state of an episode.

    While groups are missing it shows the estimate, one bar per group; a whole placement is simulated, one
    bar per op and one thin one per transfer, on the device that receives it. The column at the right is the
    memory of each device (the peak, once the placement is whole) against its capacity, red where it
    overflows. The line at the bottom is the progress of the episode.

    Attributes:
        problem: Graph and cluster.
        blocks: The groups.
        state: What to draw.
        total_steps: Decisions of the episode.
        solution: The whole placement, if every group has a device.
    """

    problem: PlacementProblem
    blocks: Blocks
    state: PlacementState
    total_steps: int
    solution: Placement | None

    def rgb_array(self) -> NDArray[np.uint8]:
        """The picture, ``uint8 [height, width, 3]``; its size depends on the number of devices only."""
        bars, horizon_ns, memory_bytes = self._content()
        devices = len(self.problem.cluster)
        height = _GAP_PX + devices * (_LANE_PX + _GAP_PX) + _GAP_PX
        width = _MARGIN_PX + _LANES_PX + _GAP_PX + _MEMORY_PX + _GAP_PX
        image = np.empty((height, width, 3), np.uint8)
        image[:] = _BACKGROUND
        scale = _LANES_PX / max(horizon_ns, 1)
        for d in range(devices):
            top = _lane_top(d)
            image[top : top + _LANE_PX, _MARGIN_PX : _MARGIN_PX + _LANES_PX] = _EMPTY
            _draw_number(image, d, top + (_LANE_PX - 5 * _DIGIT_SCALE) // 2)
            self._draw_memory(image, d, memory_bytes[d])
        for bar in bars:
            left = _MARGIN_PX + int(bar.start_ns * scale)
            right = max(_MARGIN_PX + int(bar.end_ns * scale), left + 1)
            top = _lane_top(bar.device)
            rows = slice(top + _LANE_PX - 5, top + _LANE_PX) if bar.thin else slice(top, top + _LANE_PX - 6)
            image[rows, left : min(right, _MARGIN_PX + _LANES_PX)] = bar.color
        done = round(_LANES_PX * self.state.step / self.total_steps)
        image[height - 5 : height - 2, _MARGIN_PX : _MARGIN_PX + done] = _INK
        return image

    def ansi(self) -> str:
        """The picture as text, one line per device."""
        bars, horizon_ns, memory_bytes = self._content()
        problem, state = self.problem, self.state
        graph, width = problem.graph, 40
        lines = [
            f"{graph.name or 'graph'} on {problem.cluster.name or 'cluster'}: "
            f"decision {state.step} of {self.total_steps}, {horizon_ns / 1e6:.3f} ms "
            + ("simulated" if self.solution is not None else "estimated")
        ]
        if state.group >= 0:
            op = int(self.blocks.first_op[state.group])
            allowed = " ".join(str(d) for d in np.flatnonzero(self.blocks.allowed[state.group]))
            lines.append(
                f"next: group {state.group}, {graph.op_names[op] or op} ({graph.kind(op)}), on {allowed}"
            )
        groups = np.bincount(state.device.astype(np.int64) + 1, minlength=len(problem.cluster) + 1)[1:]
        for d, name in enumerate(problem.cluster.device_names):
            cells = [" "] * width
            for bar in bars:
                if bar.device == d and not bar.thin:
                    left = int(bar.start_ns * width / max(horizon_ns, 1))
                    right = max(-(-bar.end_ns * width // max(horizon_ns, 1)), left + 1)
                    cells[left:right] = "#" * (min(right, width) - left)
            share = memory_bytes[d] / int(problem.cluster.capacity_bytes[d])
            lines.append(f"{name:>12} |{''.join(cells)}| {groups[d]:5} groups, memory {share:6.1%}")
        if state.outcome is not None:
            lines.append(
                f"{problem.objective}: {state.outcome.value:g} {state.outcome.unit}, {state.outcome.verdict}"
            )
        return "\n".join(lines) + "\n"

    def _content(self) -> tuple[list[Bar], int, list[int]]:
        """Bars, the time at the right edge in ns, and the memory of each device in bytes."""
        if self.solution is None:
            estimate = self.state.estimate
            return list(self._estimated()), max(estimate.finish_ns, 1), estimate.live_bytes
        run = self.problem.simulate(self.solution, timeline=True)
        return list(self._simulated(run.timeline)), run.makespan_ns, run.peak_bytes.tolist()

    def _estimated(self) -> Iterator[Bar]:
        estimate = self.state.estimate
        for group, (device, start) in enumerate(zip(estimate.device, estimate.start_ns, strict=True)):
            if device >= 0 and self.blocks.scheduled[group]:
                end = start + self.blocks.cost_ns[group][device]
                yield Bar(device, start, end, self._color(int(self.blocks.first_op[group])), False)

    def _simulated(self, timeline: Timeline | None) -> Iterator[Bar]:
        if timeline is None:  # only without timeline=True
            return
        lanes = (timeline.op_device, timeline.op_start_ns, timeline.op_end_ns)
        for op, (device, start, end) in enumerate(zip(*(a.tolist() for a in lanes), strict=True)):
            if end >= 0:
                yield Bar(device, start, end, self._color(op), False)
        moves = (timeline.transfer_destination, timeline.transfer_start_ns, timeline.transfer_end_ns)
        for device, start, end in zip(*(a.tolist() for a in moves), strict=True):
            yield Bar(device, start, end, _TRANSFER, True)

    def _color(self, op: int) -> tuple[int, ...]:
        """A hue for each layer; backward ops darker, updates paler."""
        graph = self.problem.graph
        layer, direction = int(graph.op_layer[op]), DIRECTIONS[graph.op_direction[op]]
        hue = (0.58 + 0.618034 * layer) % 1.0  # golden-ratio steps keep neighbours apart
        saturation, value = {"forward": (0.55, 0.95), "backward": (0.75, 0.70), "update": (0.30, 0.85)}[
            direction
        ]
        return tuple(round(255 * c) for c in colorsys.hsv_to_rgb(hue, saturation, value))

    def _draw_memory(self, image: NDArray[np.uint8], device: int, memory_bytes: int) -> None:
        top, left = _lane_top(device), _MARGIN_PX + _LANES_PX + _GAP_PX
        share = memory_bytes / int(self.problem.cluster.capacity_bytes[device])
        image[top : top + _LANE_PX, left : left + _MEMORY_PX] = _EMPTY
        filled = min(round(_MEMORY_PX * share), _MEMORY_PX)
        image[top : top + _LANE_PX, left : left + filled] = _OVER if share > 1 else _TRANSFER


def _lane_top(device: int) -> int:
    return _GAP_PX + device * (_LANE_PX + _GAP_PX)


def _draw_number(image: NDArray[np.uint8], number: int, top: int) -> None:
    """Writes a number into the left margin."""
    left = 4
    for digit in str(number):
        bits = _DIGITS[int(digit)]
        for row in range(5):
            for column in range(3):
                if bits >> (3 * (4 - row) + 2 - column) & 1:
                    y, x = top + row * _DIGIT_SCALE, left + column * _DIGIT_SCALE
                    image[y : y + _DIGIT_SCALE, x : x + _DIGIT_SCALE] = _INK
        left += 4 * _DIGIT_SCALE
