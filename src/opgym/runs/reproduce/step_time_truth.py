"""Simulated step times against measured ones, placement by placement: ``opgym reproduce step-time-truth``.

A training step is recorded as a graph and profiled: it runs on one process, and each op gets the time that it took.
With these times and a measured link the simulator says what placements on two devices take. Then two processes, each
bound to a core, run the step for real, placement by placement (:mod:`.two_processes`), and the results of every
placement are compared with those of one process.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...errors import ExecutionFailedError, MissingExtraError
from ...graphs import PROFILES, Cluster, Graph, TableCost
from ...problems import Placement, PlacementProblem, program_order
from ...statistics import kendall_tau
from .step_time_placements import ONE_DEVICE, placements

if TYPE_CHECKING:
    from .two_processes import LinkTimes, Pair, Plan, StepTimes, Task

#: Bar: how alike placements have to be ranked.
MIN_TAU = 0.8
#: Tau is told for all pairs of placements, and for those whose times differ by more than this share.
MARGIN = 0.02
#: Results of two processes and of one may differ by this share of the largest number of a tensor.
TOLERANCE = 1e-4
#: Every round runs every placement, so that slow changes of the machine meet all alike.
ROUNDS, REPETITIONS, PROFILED, WARM = 5, 4, 12, 3
#: Where an op takes so long, the interpreter between ops matters little.
LONG_NS = 50_000
#: With ``quick``.
QUICK_NETWORKS, QUICK_ROUNDS = ("randwire",), 3


@dataclass(frozen=True)
class _Measured:
    """One placement: what the simulator says, and what it took."""

    name: str
    placement: Placement
    plan: Plan
    default_ns: int
    free_ns: int
    times: tuple[StepTimes, ...]

    @property
    def makespan_ns(self) -> NDArray[np.int64]:
        return np.concatenate([found.makespan_ns for found in self.times])


def measure(name: str, *, rounds: int = ROUNDS, patience_s: float = 120.0) -> dict[str, Any]:
    """Simulates and runs the training step of one network under every placement.

    Args:
        name: Of one of :func:`.step_time_nets.workloads`.
        rounds: How often every placement is run :data:`REPETITIONS` times.
        patience_s: After which a process that gives no answer is ended.

    Returns:
        The row: ``network``, ``ops`` (those that run), ``profiled_ns`` (sum of the ops' times), ``median_op_ns``,
        ``share_of_long_ops`` (of that sum: ops that take :data:`LONG_NS` and more), ``contention`` (by what share ops
        take longer when both processes run the whole step at the same time), ``link`` (``copy_ns``,
        ``bytes_per_second``, ``signal_ns``), ``placements``, ``largest_difference`` (of a result from that of one
        process, as a share of the largest number of its tensor), ``own``, ``default`` and ``free`` (how
        near the three simulations come, see :func:`_nearness`), ``best`` (see :func:`_best`).

        Each of ``placements``: ``placement``, ``own_ns`` (simulated with sends on the sender's core), ``default_ns``
        (by the default model of channels), ``free_ns`` (with transfers that take no time), ``measured_ns`` (median),
        ``fastest_ns``, ``sends``, ``sent_bytes``, ``ops_ns``, ``sends_ns``, ``waiting_ns`` (medians, both processes
        together).

    Raises:
        ExecutionFailedError: A process fails or hangs, or a result is wrong.
    """
    from .step_time_nets import workloads
    from .two_processes import Pair, Task, plan_step, usable_cores

    cores = usable_cores()
    task = Task(workloads()[name])
    graph = task.graph
    with Pair(task, cores, patience_s=patience_s) as pair:
        link = pair.link()
        cost_ns, contention = _profile(pair, graph, link)
        cluster = Cluster.uniform([PROFILES["CPU"]] * 2, link.link, name="two processes")
        problem = PlacementProblem(graph, cluster, costs=TableCost({"cpu": cost_ns}))
        free = replace(problem, cluster=replace(cluster, channel="free"))
        runs = [
            _Measured(
                label,
                placement,
                plan_step(problem, placement, link),
                problem.simulate(placement).makespan_ns,
                free.simulate(placement).makespan_ns,
                (),
            )
            for label, placement in placements(problem).items()
        ]
        difference = _largest_difference(pair, task, runs)
        for _ in range(rounds):
            runs = [replace(run, times=(*run.times, pair.steps(run.plan, REPETITIONS))) for run in runs]
    lines = [_line(run) for run in runs]
    works = ~graph.is_variable
    return {
        "network": name,
        "ops": int(works.sum()),
        "profiled_ns": int(cost_ns.sum()),
        "median_op_ns": int(np.median(cost_ns[works])),
        "share_of_long_ops": float(cost_ns[cost_ns >= LONG_NS].sum() / cost_ns.sum()),
        "contention": contention,
        "link": {
            "copy_ns": link.copy_ns,
            "bytes_per_second": link.bytes_per_second,
            "signal_ns": link.signal_ns,
        },
        "placements": lines,
        "largest_difference": difference,
        "own": _nearness(lines, "own_ns"),
        "default": _nearness(lines, "default_ns"),
        "free": _nearness(lines, "free_ns"),
        "best": _best(lines),
    }


def _profile(pair: Pair, graph: Graph, link: LinkTimes) -> tuple[NDArray[np.int64], float]:
    """Times of ops while one process runs the step in program order.

    Returns:
        Median time of each op, ``[ops]`` ns (0 for variables); and by what share the step takes longer when both
        processes run it, each for itself, at the same time.
    """
    from .two_processes import plan_step

    cluster = Cluster.uniform([PROFILES["CPU"]] * 2, link.link)
    unit = PlacementProblem(graph, cluster, costs=TableCost({"cpu": np.ones(graph.num_ops, np.int64)}))
    first = plan_step(unit, Placement(np.zeros(graph.num_ops, np.uint8), program_order(graph)), link)
    actions = first.actions[0]
    second, both = replace(first, actions=((), actions)), replace(first, actions=(actions, actions))
    found = []
    for device, plan in enumerate((first, second)):
        pair.alone(plan, device, WARM)
        found.append(pair.alone(plan, device, PROFILED))
    alone = np.concatenate(found)
    together = pair.steps(both, PROFILED).ops_ns
    cost_ns = np.zeros(graph.num_ops, np.int64)
    cost_ns[[action.op for action in actions]] = np.median(alone, axis=0)
    return cost_ns, float(np.median(together) / np.median(alone.sum(1)) - 1)


def _largest_difference(pair: Pair, task: Task, runs: Sequence[_Measured]) -> float:
    """Compares what every placement computes with what one process gets in program order."""
    expected = {tensor: value.detach().numpy() for tensor, value in task.results().items()}
    largest = 0.0
    for run in runs:
        found = pair.results(run.plan)
        if found.keys() != expected.keys():
            raise ExecutionFailedError(f"placement {run.name!r} gives other results than one process")
        for tensor, value in expected.items():
            size = float(np.abs(value).max(initial=0))
            apart = float(np.abs(found[tensor] - value).max(initial=0)) / (size or 1.0)
            if not apart <= TOLERANCE:
                raise ExecutionFailedError(
                    f"placement {run.name!r}: {task.graph.tensor_names[tensor]!r} is {apart:.2g} of its largest number "
                    "away from what one process computes"
                )
            largest = max(largest, apart)
    return largest


def _line(run: _Measured) -> dict[str, Any]:
    def median(values: Sequence[NDArray[np.int64]]) -> int:
        return int(np.median(np.concatenate(values).sum(1)))

    return {
        "placement": run.name,
        "own_ns": run.plan.simulated_ns,
        "default_ns": run.default_ns,
        "free_ns": run.free_ns,
        "measured_ns": int(np.median(run.makespan_ns)),
        "fastest_ns": int(run.makespan_ns.min()),
        "sends": run.plan.sends,
        "sent_bytes": run.plan.sent_bytes,
        "ops_ns": median([found.ops_ns for found in run.times]),
        "sends_ns": median([found.sends_ns for found in run.times]),
        "waiting_ns": median([found.waiting_ns for found in run.times]),
    }


def _nearness(lines: Sequence[Mapping[str, Any]], model: str) -> dict[str, Any]:
    """How near a simulation comes to the measured medians.

    Returns:
        ``tau``, ``tau_apart`` (over ``pairs_apart`` pairs that differ by more than :data:`MARGIN`), ``tau_fastest``
        (measured by the fastest repetition), ``median_error``, ``largest_error`` (of simulated over measured),
        ``where``, ``median_ratio`` (measured over simulated).
    """
    simulated = np.array([line[model] for line in lines], np.float64)
    measured = np.array([line["measured_ns"] for line in lines], np.float64)
    errors = np.abs(simulated / measured - 1)
    apart, pairs = kendall_tau(simulated, measured, margin=MARGIN)
    return {
        "tau": kendall_tau(simulated, measured)[0],
        "tau_apart": apart,
        "pairs_apart": pairs,
        "tau_fastest": kendall_tau(simulated, [line["fastest_ns"] for line in lines])[0],
        "median_error": float(np.median(errors)),
        "largest_error": float(errors.max()),
        "where": lines[int(errors.argmax())]["placement"],
        "median_ratio": float(np.median(measured / simulated)),
    }


def _best(lines: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What the placement gains that is best by simulation, over one device.

    Returns:
        ``placement``, ``simulated_speedup``, ``measured_speedup``, and ``loss``: by what share it is slower than the
        placement that is fastest when measured.
    """
    alone = next(line for line in lines if line["placement"] == ONE_DEVICE)
    best = min(lines, key=lambda line: line["own_ns"])
    return {
        "placement": best["placement"],
        "simulated_speedup": alone["own_ns"] / best["own_ns"],
        "measured_speedup": alone["measured_ns"] / best["measured_ns"],
        "loss": best["measured_ns"] / min(line["measured_ns"] for line in lines) - 1,
    }


def run(*, quick: bool = False, progress: Callable[[int, int], None] | None = None) -> dict[str, Any]:
    """Measures all networks, one after the other.

    Args:
        quick: One network, and fewer repetitions.
        progress: Told how many of how many networks are done.

    Returns:
        ``rows`` (of :func:`measure`), ``machine``, ``summary``.

    Raises:
        MissingExtraError: torch is not installed.
        ExecutionFailedError: There are not two cores, a process fails or hangs, or a result is wrong.
    """
    try:
        from .step_time_nets import workloads
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] != "torch":
            raise
        raise MissingExtraError(
            "step-time-truth runs networks with the package torch, which is not installed: pip install 'opgym[zoo]'"
        ) from error
    names = list(QUICK_NETWORKS if quick else workloads())
    rows: list[dict[str, Any]] = []
    for name in names:
        rows.append(measure(name, rounds=QUICK_ROUNDS if quick else ROUNDS))
        if progress is not None:
            progress(len(rows), len(names))
    return {"rows": rows, "machine": machine(), "summary": summary(rows)}


def machine() -> dict[str, str]:
    """The ``processor`` and the version of ``torch``."""
    import platform
    from pathlib import Path

    import torch

    processor = platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text(errors="replace").splitlines()
    except OSError:
        lines = []
    for line in lines:
        if line.startswith("model name"):
            processor = line.split(":", 1)[1].strip()
            break
    return {"processor": processor, "torch": torch.__version__.split("+")[0]}


def summary(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """How near the simulation comes, and whether the bar is met."""
    taus = {row["network"]: row["own"]["tau"] for row in rows}
    worst = max(rows, key=lambda row: row["own"]["largest_error"])
    return {
        "networks": len(rows),
        "runs": sum(len(row["placements"]) for row in rows),
        "least_tau": min(taus.values()),
        "least_tau_default": min(row["default"]["tau"] for row in rows),
        "median_error": float(np.median([row["own"]["median_error"] for row in rows])),
        "largest_error": worst["own"]["largest_error"],
        "where": f"{worst['network']}, {worst['own']['where']}",
        "largest_difference": max(row["largest_difference"] for row in rows),
        "largest_contention": max(row["contention"] for row in rows),
        "min_tau": MIN_TAU,
        "ranking_missed_by": [name for name, tau in taus.items() if tau < MIN_TAU],
    }
