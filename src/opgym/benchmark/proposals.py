"""How long a trained learner of proposals takes for a large graph, and how much of that is its network.

Times are CPU times of one thread: features, network and search, from the problem to its solution.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ..agents import make
from ..datasets import read
from ..graphs import Cluster
from ..problems import AnyProblem, Budget, Objective, PlacementProblem, SchedulingProblem

#: Random graphs from sparse to dense.
GRAPHS = tuple(f"synthetic/{family}?n={{ops}}&seed=0" for family in ("ws", "ba", "sbm", "er"))
AGENTS = ("regal", "regal-plus")
OPS, TURNS = 2_000, 3
EVALUATIONS = 5_000
#: Of a solve, and of the forward pass as a share of it.
BAR_SECONDS, BAR_SHARE = 3.0, 0.2


@dataclass(frozen=True)
class Row:
    """One measured agent on one graph.

    Attributes:
        agent: Its name.
        task: ``"memory-1"``, ``"memory-2"`` or ``"time"``: peak memory on one or two devices, step time.
        graph: Id of the graph.
        ops: Its ops.
        edges: Reads of a tensor by an op.
        seconds: CPU seconds of one solve with ``EVALUATIONS`` evaluations, the best of some turns.
        network_seconds: Of them, of the forward pass.
        network_share: The same as a share of ``seconds``.
        bar_seconds: The most that is asked for.
        bar_share: The largest share that is asked for.
        within_bar: Whether both hold.
    """

    agent: str
    task: str
    graph: str
    ops: int
    edges: int
    seconds: float
    network_seconds: float
    network_share: float
    bar_seconds: float
    bar_share: float
    within_bar: bool


def run(progress: Callable[[str], None] | None = None) -> list[dict[str, Any]]:
    """Measures every agent that comes with weights on every graph.

    Args:
        progress: Told the name of each case before it is measured.

    Returns:
        A :class:`Row` as a dict for each.
    """
    rows = []
    for agent in AGENTS:
        learner = make(agent)
        if not learner.trained:  # type: ignore[attr-defined]
            continue
        for pattern in GRAPHS:
            graph = pattern.format(ops=OPS)
            for task, problem in _problems(graph).items():
                if progress is not None:
                    progress(f"{agent}: {task} of {graph}")
                seconds, network = min(_timed(learner, problem) for _ in range(TURNS))
                share = network / seconds
                rows.append(
                    Row(
                        agent, task, graph, problem.graph.num_ops, len(problem.graph.edges[0]), seconds, network, share,
                        BAR_SECONDS, BAR_SHARE, seconds < BAR_SECONDS and share < BAR_SHARE,
                    )
                )  # fmt: skip
    return [asdict(row) for row in rows]


def _problems(graph: str) -> dict[str, AnyProblem]:
    imported, cluster = read(graph), Cluster.parse("2xREGAL")
    assert imported.costs is not None
    return {
        "memory-1": SchedulingProblem(imported.graph),
        "memory-2": PlacementProblem(imported.graph, cluster, Objective.PEAK_MEMORY, imported.costs),
        "time": PlacementProblem(imported.graph, cluster, Objective.STEP_TIME, imported.costs),
    }


def _timed(learner: Any, problem: AnyProblem) -> tuple[float, float]:
    """Seconds of one solve, and of the network in it."""
    with _network_seconds() as network:
        began = time.process_time()
        learner.solve(problem, Budget(evaluations=EVALUATIONS), np.random.default_rng(0))
        return time.process_time() - began, sum(network)


@contextmanager
def _network_seconds() -> Iterator[list[float]]:
    """Collects the CPU seconds of every call of a module that is in no other one."""
    from torch.nn.modules import module

    seconds: list[float] = []
    began: list[float] = []

    def before(*_: Any) -> None:
        began.append(time.process_time())

    def after(*_: Any) -> None:
        start = began.pop()
        if not began:
            seconds.append(time.process_time() - start)

    hooks = (
        module.register_module_forward_pre_hook(before),
        module.register_module_forward_hook(after, always_call=True),
    )
    try:
        yield seconds
    finally:
        for hook in hooks:
            hook.remove()
