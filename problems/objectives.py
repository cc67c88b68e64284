"""What a placement is judged by."""

from __future__ import annotations

import enum


class Objective(enum.StrEnum):
    """Objectives of a placement; all are minimised."""

    STEP_TIME = "step_time"  # makespan of one step in the event simulator
    PEAK_MEMORY = "peak_memory"  # largest resident + dynamic peak over the devices
    MAX_LOAD = "max_load"  # pipelined throughput: time of the busiest stage (Tarnawski et al. 2020)
    LATENCY = "latency"  # single-sample latency of contiguous pieces (Tarnawski et al. 2020)

    @property
    def unit(self) -> str:
        """Unit of the value; the two analytic objectives use milliseconds, as the published graphs do."""
        return {"step_time": "ns", "peak_memory": "bytes"}.get(self.value, "ms")

    @property
    def simulated(self) -> bool:
        """Whether the event simulator evaluates it (else a closed formula does)."""
        return self in (Objective.STEP_TIME, Objective.PEAK_MEMORY)
