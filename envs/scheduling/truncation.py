"""What the slots of ``OpScheduling-v0`` hide: known orders, followed as far as the slots allow.

    python -m opgym.envs.scheduling.truncation [SLOTS]

prints the table of the environment's manual (16 slots, if not said otherwise). An order is followed by taking, at
every step, the slot whose op comes first in the order; where the op that is next in the order has no slot, the
order is left. A ratio is the peak of what was played / the peak of the order itself: above 1 the slots cost
memory, below 1 leaving the order happened to save some.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ... import datasets
from ..._core import IncrementalPeak, PartialOrder
from ...graphs.core_graph import core_graph
from ...problems import SchedulingProblem
from .arguments import DEFAULT_SLOTS
from .layout import SINCE, build_layout


def _latest(partial: PartialOrder) -> int:
    """The node that became ready last; of several the first."""
    since = partial.figures[:, SINCE]
    return max(partial.ready, key=lambda node: (int(since[node]), -node))


#: How an order is made: the next node of all that are ready.
RULES: dict[str, Callable[[PartialOrder], int]] = {
    "program order": lambda partial: partial.first_ready,
    "greedy": lambda partial: partial.best(1)[0],
    "depth first": _latest,
}
#: Moves of a search for a better order, and how far an op moves at most.
MOVES, FARTHEST = 20_000, 64


@dataclass(frozen=True)
class Truncation:
    """What slots do to an order.

    Attributes:
        left: Share of the steps at which the next op of the order has no slot.
        ratio: Peak of what was played / peak of the order.
    """

    left: float
    ratio: float


def make_order(start: PartialOrder, rule: Callable[[PartialOrder], int]) -> PartialOrder:
    """Runs everything, each time the node that a rule names."""
    partial = start.copy()
    while not partial.over:
        partial.run(rule(partial))
    return partial


def searched_order(
    problem: SchedulingProblem, start: PartialOrder, orders: list[PartialOrder]
) -> PartialOrder:
    """The best of some orders, improved by moving single ops; a move that does not raise the peak stays."""
    best = min(orders, key=lambda order: order.peak_bytes)
    search = IncrementalPeak(core_graph(problem.graph), problem.ops[best.order])
    rng = np.random.default_rng(0)
    places = rng.integers(best.num_done, size=MOVES)
    targets = np.clip(places + rng.integers(-FARTHEST, FARTHEST + 1, size=MOVES), 0, best.num_done - 1)
    for place, target in zip(places.tolist(), targets.tolist(), strict=True):
        before = search.peak
        if search.move(place, target) and search.peak > before:
            search.move(target, place)
    partial = start.copy()
    for node in np.searchsorted(problem.ops, search.order).tolist():
        partial.run(node)
    return partial


def follow(start: PartialOrder, order: PartialOrder, slots: int) -> Truncation:
    """Follows an order as far as so many slots allow."""
    partial, position = start.copy(), {node: i for i, node in enumerate(order.order.tolist())}
    left = 0
    while not partial.over:
        node = min(partial.best(slots), key=position.__getitem__)
        left += node != min(partial.ready, key=position.__getitem__)
        partial.run(node)
    ratio = partial.peak_bytes / order.peak_bytes if order.peak_bytes else 1.0
    return Truncation(left / len(position), ratio)


def table_row(name: str, ids: list[str], slots: int) -> str:
    """A row in Markdown: per way to make an order the geometric mean of the ratios, the largest, and ``left``."""
    found: dict[str, list[Truncation]] = defaultdict(list)
    for graph in map(datasets.load, ids):
        problem = SchedulingProblem(graph)
        start = build_layout(problem).start()
        orders = {rule: make_order(start, choose) for rule, choose in RULES.items()}
        orders["searched"] = searched_order(problem, start, list(orders.values()))
        for rule, order in orders.items():
            found[rule].append(follow(start, order, slots))
    cells = [f"{len(ids)} x `{name}`"]
    for rows in found.values():
        ratios = np.array([row.ratio for row in rows])
        left = np.mean([row.left for row in rows])
        cells.append(f"{np.exp(np.log(ratios).mean()):.3f} ({ratios.max():.3f}), {left:.0%}")
    return "| " + " | ".join(cells) + " |"


def main(slots: int) -> None:
    """Prints the whole table."""
    rows = {"onnx-light/*": [name for name in datasets.ids() if name.startswith("onnx-light/")]}
    for family in ("er", "ba", "ws", "sbm", "layered", "cells", "fork-join"):
        rows[family] = [f"synthetic/{family}?seed={seed}" for seed in range(20)]
    for wide in ("er?n=1000&p=0.01", "ba?n=1000", "ws?n=1000", "layered?n=1000&width=32"):
        rows[wide] = [f"synthetic/{wide}&seed={seed}" for seed in range(3)]
    head = ["graphs", *RULES, "searched"]
    sys.stdout.write(f"| {' | '.join(head)} |\n|{'---|' * len(head)}\n")
    for name, ids in rows.items():
        sys.stdout.write(table_row(name, ids, slots) + "\n")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else DEFAULT_SLOTS)
