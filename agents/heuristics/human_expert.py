"""Human expert: what a person does who knows the layers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ...outcome import Outcome
from ...problems import Evaluator, Objective, Placement, PlacementProblem
from ...problems.grouping import written_bytes
from ..registry import register
from ..solver import PlacementSolver, Remark, evaluate_device
from .blocks import Blocks, find_blocks
from .workers import legalised, workers

#: Layers without a number in their names that a person puts on the last device.
_LAST = re.compile(r"attention|attn|softmax|classif|logit|head|loss|out|proj|^fc$|^linear$", re.IGNORECASE)
_NUMBER = re.compile(r"\d+")
_CONVOLUTION = re.compile(r"conv", re.IGNORECASE)


@register
@dataclass(frozen=True)
class HumanExpert(PlacementSolver):
    """The best of the splits that people use; backward and update ops stay with their layer.

    - Contiguous layers, balanced by time (by bytes too where that does not fit).
    - One layer per device (layers that share a number, such as those of an encoder and a decoder, together; several
      per device if there are more), attention and the classifier with the last.
    - For convolutional networks: a single device.

    Human experts of Mirhoseini et al. 2017 ("Device placement optimization with reinforcement learning", section
    4.2) and Zhou et al. 2019 ("GDP", section 4.1), as far as they are described there.
    """

    name: ClassVar[str] = "human-expert"
    summary: ClassVar[str] = "contiguous layers, one layer per device, or a single device for convolutions"

    def _search(
        self, problem: PlacementProblem, evaluator: Evaluator[Placement], rng: np.random.Generator
    ) -> Remark:
        blocks = find_blocks(problem)
        best: Outcome | None = None
        winner = ""
        tried: set[bytes] = set()
        for rule, needed_if_full, device in self._candidates(problem, blocks):
            legal = legalised(problem, device)
            if (needed_if_full and best is not None and best.ok) or legal.tobytes() in tried:
                continue
            if evaluator.exhausted:
                break
            tried.add(legal.tobytes())
            outcome = evaluate_device(problem, evaluator, legal)
            if outcome.better_than(best):
                best, winner = outcome, rule
        return Remark(f"{winner}; blocks are {blocks.origin}")

    def _candidates(
        self, problem: PlacementProblem, blocks: Blocks
    ) -> Iterator[tuple[str, bool, NDArray[np.integer]]]:
        """Rule, whether it is only for what does not fit otherwise, and its device map."""
        chosen = workers(problem)
        yield "contiguous layers", False, contiguous_split(problem, blocks, chosen, 0.0)[blocks.block]
        by_number = one_layer_per_device(blocks, len(chosen))
        if by_number is not None:
            yield "one layer per device", False, chosen[by_number][blocks.block]
        if _is_convolutional(problem):
            fastest = chosen[np.argmin(problem.cost_ns[:, chosen].sum(axis=0))]
            yield "single device", False, np.full(problem.graph.num_ops, fastest)
        memory_is_the_aim = problem.objective is Objective.PEAK_MEMORY
        for byte_weight in (0.5, 1.0):
            split = contiguous_split(problem, blocks, chosen, byte_weight)
            yield "contiguous layers, balanced by bytes too", not memory_is_the_aim, split[blocks.block]


def _is_convolutional(problem: PlacementProblem) -> bool:
    return any(_CONVOLUTION.search(kind) for kind in problem.graph.kinds)


def one_layer_per_device(blocks: Blocks, devices: int) -> NDArray[np.int64] | None:
    """Position among ``devices`` of each block by the number in its name, ``[blocks]``; ``None`` without numbers.

    A block without a number goes with the block before it, unless its name says that it is attention or the
    classifier: then to the last device.
    """
    numbers = [_NUMBER.search(name) for name in blocks.names]
    values = sorted({int(number[0]) for number in numbers if number})
    if len(values) < 2:
        return None
    used = min(devices, len(values))
    home = np.zeros(len(blocks.names), np.int64)
    before = 0
    for i, (number, name) in enumerate(zip(numbers, blocks.names, strict=True)):
        if number:
            before = values.index(int(number[0])) * used // len(values)
        home[i] = used - 1 if not number and _LAST.search(name) else before
    return home


def contiguous_split(
    problem: PlacementProblem, blocks: Blocks, chosen: NDArray[np.int64], byte_weight: float
) -> NDArray[np.int64]:
    """Device of each block: contiguous stretches in the order of the devices, the largest as small as possible.

    Args:
        problem: The problem.
        blocks: What is split.
        chosen: Devices, in order, ``[workers]``.
        byte_weight: 0 balances time, 1 bytes against capacity, between them their mean.

    Returns:
        ``[blocks] int64``.
    """
    count = len(blocks.names)
    time = np.stack([np.bincount(blocks.block, problem.cost_ns[:, d], count) for d in chosen], axis=1)
    size = np.bincount(blocks.block, written_bytes(problem.graph), count)[:, None]
    share = (1 - byte_weight) * time / max(time.min(axis=1).sum(), 1.0)
    share = share + byte_weight * size / problem.cluster.capacity_bytes[chosen] / max(
        (size / problem.cluster.capacity_bytes[chosen].max()).sum(), 1e-300
    )
    prefix = np.concatenate([np.zeros((1, len(chosen))), np.cumsum(share, axis=0)])
    low, high = 0.0, float(prefix[-1].max())
    ends = _fill_to(prefix, high)
    for _ in range(60):
        middle = (low + high) / 2
        tried = _fill_to(prefix, middle)
        if tried[-1] == count:
            high, ends = middle, tried
        else:
            low = middle
    stretch = np.searchsorted(np.array(ends), np.arange(count), side="right")
    return chosen[np.minimum(stretch, len(chosen) - 1)]


def _fill_to(prefix: NDArray[np.float64], limit: float) -> list[int]:
    """Where each device's stretch ends if every device takes as many blocks as stay within ``limit``."""
    ends, start = [], 0
    for column in prefix.T:
        start = int(np.searchsorted(column, column[start] + limit, side="right")) - 1
        ends.append(start)
    return ends
