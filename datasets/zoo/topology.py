"""What a graph is like when sizes are ignored: labels of ops by kind and surroundings (Weisfeiler-Lehman).

Reference: Shervashidze et al. 2011, "Weisfeiler-Lehman graph kernels", JMLR 12. A label is a 64-bit hash instead of a
number in order of appearance, so that labels of different graphs can be compared.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...graphs import Graph

#: Rounds after which labels make the topology hash: ops up to that many edges away count.
HASH_ROUNDS = 8
#: Rounds after which labels are compared for likeness; more of them would spread one difference too far.
LIKENESS_ROUNDS = 3
#: Two graphs are near copies above this share of common labels, with op counts within this share.
NEAR_COPY_JACCARD, NEAR_COPY_OPS = 0.95, 0.05
#: Two families are twins if their training graphs, or their inference graphs, have op kinds whose shares differ, in the
#: mean, by no more than this in all.
TWIN_DISTANCE = 0.10

Labels = NDArray[np.uint64]


@dataclass(frozen=True, eq=False)
class Likeness:
    """What graphs are compared by.

    Attributes:
        topology: Hash of op kinds and edges, 16 hexadecimal digits.
        ops: Number of ops.
        label: Distinct labels after ``LIKENESS_ROUNDS`` rounds, ascending.
        count: How many ops have each.
        kinds: Share of the ops that each kind has.
    """

    topology: str
    ops: int
    label: Labels
    count: NDArray[np.int64]
    kinds: dict[str, float]

    @classmethod
    def of(cls, graph: Graph) -> Likeness:
        """What a graph is like."""
        near = wl_labels(graph, LIKENESS_ROUNDS)
        label, count = np.unique(near, return_counts=True)
        return cls(topology_hash(graph), graph.num_ops, label, count.astype(np.int64), kind_shares(graph))

    def jaccard(self, other: Likeness) -> float:
        """Common labels by all labels, each as often as ops have it: 1 for equal topologies."""
        _, mine, theirs = np.intersect1d(self.label, other.label, assume_unique=True, return_indices=True)
        common = int(np.minimum(self.count[mine], other.count[theirs]).sum())
        return common / (self.ops + other.ops - common)

    def is_near_copy(self, other: Likeness) -> bool:
        """Whether the two are too alike for both to count."""
        if self.topology == other.topology:
            return True
        if abs(self.ops - other.ops) > NEAR_COPY_OPS * max(self.ops, other.ops):
            return False
        return self.jaccard(other) > NEAR_COPY_JACCARD


def kind_shares(graph: Graph) -> dict[str, float]:
    """Share of the ops that each kind has."""
    share = np.bincount(graph.op_kind, minlength=len(graph.kinds)) / graph.num_ops
    return dict(zip(graph.kinds, share.tolist(), strict=True))


def share_distance(shares: Mapping[str, float], others: Mapping[str, float]) -> float:
    """Sum of the differences between shares of kinds: 0 for equal histograms, 2 for disjoint ones."""
    every = shares.keys() | others.keys()
    # Rounded once, so that it does not depend on the order in which a set is read.
    return math.fsum(abs(shares.get(kind, 0.0) - others.get(kind, 0.0)) for kind in every)


def topology_hash(graph: Graph) -> str:
    """Equal for graphs whose ops agree in kind and edges, whatever their order and sizes, 16 hexadecimal digits."""
    labels = np.sort(wl_labels(graph, HASH_ROUNDS))
    return hashlib.sha256(labels.astype("<u8").tobytes()).hexdigest()[:16]


def wl_labels(graph: Graph, rounds: int) -> Labels:
    """A label for each op that tells its kind and that of the ops up to ``rounds`` edges away, ``[ops] uint64``."""
    of_kind = [int.from_bytes(hashlib.sha256(kind.encode()).digest()[:8], "little") for kind in graph.kinds]
    labels = np.array(of_kind, np.uint64)[graph.op_kind]
    producer, consumer, _ = graph.edges
    for _ in range(rounds):
        # A sum of hashes tells a multiset; parents and children are hashed apart.
        from_parents = _sum_by(
            consumer, _mixed(labels ^ np.uint64(0x243F6A8885A308D3))[producer], len(labels)
        )
        from_children = _sum_by(
            producer, _mixed(labels ^ np.uint64(0x13198A2E03707344))[consumer], len(labels)
        )
        labels = _mixed(labels + _mixed(from_parents) + np.uint64(3) * _mixed(from_children + np.uint64(1)))
    return labels


def _sum_by(index: NDArray[np.int32], values: Labels, size: int) -> Labels:
    """Sums of the values of each index, modulo 2^64."""
    order = np.argsort(index, kind="stable")
    total = np.concatenate([np.zeros(1, np.uint64), np.cumsum(values[order], dtype=np.uint64)])
    ends = np.cumsum(np.bincount(index, minlength=size))
    sums: Labels = total[ends] - total[np.concatenate([[0], ends[:-1]])]
    return sums


def _mixed(values: Labels) -> Labels:
    """The finaliser of SplitMix64."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: Labels = values ^ (values >> np.uint64(31))
    return mixed
