"""One problem as the policy and BRKGA see it: features on one side, genes on the other."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ....problems import AnyProblem
from ...search.keys import KeyEncoding, Proposal, betas
from ..task import Task
from .graph_features import GraphFeatures

#: Means, and shares of the largest variance, are the middles of so many equal parts of (0, 1).
BINS = 16
#: What a policy decides of an op: a Beta distribution of the affinity to each device, and one of the priority; of
#: each its mean and its share of the largest variance. With one device the affinities are not asked for.
SLOTS = ("affinity of device 0", "affinity of device 1", "priority")
DECISIONS = 2 * len(SLOTS)


@dataclass(frozen=True, eq=False)
class Instance:
    """A problem, ready to be proposed for.

    Attributes:
        problem: The problem.
        encoding: Its genes.
        features: Of its graph.
        task: What is asked of it.
    """

    problem: AnyProblem
    encoding: KeyEncoding
    features: GraphFeatures
    task: Task
    _group_size: NDArray[np.int64] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_group_size", np.bincount(self.encoding.group))

    @classmethod
    def of(cls, problem: AnyProblem, groups: str | None = None, *, transfer_keys: bool = True) -> Instance:
        """The instance of a problem; ``groups`` and ``transfer_keys`` as of :class:`KeyEncoding`."""
        encoding = KeyEncoding(problem, groups, transfer_keys=transfer_keys)
        return cls(problem, encoding, GraphFeatures.of_problem(problem), Task.of(problem))

    def genes(self, bins: NDArray[np.integer]) -> NDArray[np.float64]:
        """The Beta distributions of all genes from what was decided for ops.

        Ops that share a device share the mean of what was decided for them, to the nearest bin. Transfers, of which
        the policy says nothing, stay uniform.

        Args:
            bins: Mean and variance share of each slot, ``[ops, 6]``, each 0 .. 15.

        Returns:
            ``(a, b)`` of each gene, ``[genes, 2] float64``.
        """
        encoding = self.encoding
        result = np.ones((encoding.genes, 2))
        by_slot = np.asarray(bins).reshape(len(bins), len(SLOTS), 2)
        if self.task.devices > 1:
            shared = np.stack(
                [np.bincount(encoding.group, by_slot[:, slot, k]) / self._group_size
                 for slot in range(self.task.devices) for k in (0, 1)], axis=1,
            )  # fmt: skip
            result[encoding.affinities] = _betas(np.floor(shared + 0.5).reshape(-1, 2))
        result[encoding.priorities] = _betas(by_slot[encoding.ops, -1])
        return result


def proposal_of(instance: Instance, bins: NDArray[np.integer], initial: bool) -> Proposal:
    """What BRKGA draws from.

    Args:
        instance: The problem.
        bins: What was decided of its ops, ``[ops, 6]``.
        initial: Whether the first generation draws from it, too.
    """
    genes = instance.genes(bins)
    return Proposal(mutants=genes, initial=genes if initial else None)


def _betas(bins: NDArray[np.number]) -> NDArray[np.float64]:
    """Beta distributions by bins of mean and variance share, ``[..., 2]``."""
    middle = (np.asarray(bins, np.float64) + 0.5) / BINS
    return betas(middle[..., 0], middle[..., 1])
