"""Four families of random graphs in the manner of REGAL's data, each edge oriented by a random order of nodes.

Modelled on Paliwal et al. 2020, "Reinforced Genetic Algorithm Learning for Optimizing Computation Graphs"; the
parameters are from second-hand accounts, unverified.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...errors import ImportFailedError
from .family import Family, Topology, refuse_too_many
from .parameters import Probability, Values, Whole
from .random_bits import Draws, Int64, Stream

_CHUNK = 2**15  # pairs that are decided at once


def _orient(num_ops: int, one: Int64, other: Int64, stream: Callable[[str], Stream]) -> Topology:
    """Numbers the nodes in a random order; an edge leads from its earlier end to its later one."""
    position = stream("order").permutation(num_ops)
    one, other = position[one], position[other]
    return Topology(num_ops, np.minimum(one, other), np.maximum(one, other))


def _chosen_pairs(num_ops: int, probability: float, stream: Stream) -> tuple[Int64, Int64]:
    """Pairs of nodes, each taken with this probability: their lower nodes, their higher nodes.

    Pair ``(i, j)`` with ``i < j`` is decided by word ``j (j - 1) / 2 + i``, whatever the number of nodes.
    """
    nodes = np.arange(num_ops + 1, dtype=np.int64)
    first_pair = nodes * (nodes - 1) // 2
    pairs = int(first_pair[-1])
    taken = np.concatenate(
        [
            np.flatnonzero(stream.happens(probability, min(_CHUNK, pairs - start), start)) + start
            for start in range(0, pairs + 1, _CHUNK)  # once even without pairs
        ]
    )
    higher = np.searchsorted(first_pair, taken, side="right") - 1
    return taken - first_pair[higher], higher


def erdos_renyi(num_ops: int, values: Values, stream: Callable[[str], Stream]) -> Topology:
    """G(n, p): each pair of nodes is an edge with probability ``p`` (Gilbert 1959)."""
    probability: float = values["p"]
    refuse_too_many(num_ops * (num_ops - 1) / 2 * probability, "er")
    lower, higher = _chosen_pairs(num_ops, probability, stream("edges"))
    return _orient(num_ops, lower, higher, stream)


def barabasi_albert(num_ops: int, values: Values, stream: Callable[[str], Stream]) -> Topology:
    """A star of ``m + 1`` nodes, then each node links to ``m`` earlier ones in proportion to their degree.

    Barabasi, Albert 1999, "Emergence of scaling in random networks"; the start is that of networkx.
    """
    links: int = values["m"]
    if num_ops <= links:
        raise ImportFailedError(f"synthetic/ba: n={num_ops}; expected more than m={links}")
    draws = stream("edges").halves()
    centre, leaves = [0] * links, list(range(1, links + 1))
    one, other = list(leaves), list(centre)
    ends = centre + leaves  # each node as often as it has edges
    for node in range(links + 1, num_ops):
        chosen: dict[int, None] = {}  # a set whose order does not depend on hashes
        while len(chosen) < links:
            chosen[ends[draws.below(len(ends))]] = None
        new = [node] * links
        one += new
        other += chosen
        ends += chosen
        ends += new
    return _orient(num_ops, np.array(one, np.int64), np.array(other, np.int64), stream)


def small_world(num_nodes: int, neighbours: int, rewired: float, draws: Draws) -> list[tuple[int, int]]:
    """Edges of a Watts-Strogatz graph: a ring of nodes tied to their nearest ones, some ties rewired.

    Watts, Strogatz 1998, "Collective dynamics of 'small-world' networks".

    Args:
        num_nodes: Nodes, more than ``neighbours``.
        neighbours: Nearest nodes that a node is tied to, even.
        rewired: Probability that a tie's far end moves to a random node.
        draws: Where random numbers come from.
    """
    ties = [
        (node, (node + hop) % num_nodes) for hop in range(1, neighbours // 2 + 1) for node in range(num_nodes)
    ]
    tied: list[set[int]] = [set() for _ in range(num_nodes)]
    for near, far in ties:
        tied[near].add(far)
        tied[far].add(near)
    for index, (near, far) in enumerate(ties):
        if not draws.happens(rewired) or len(tied[near]) == num_nodes - 1:
            continue
        while (end := draws.below(num_nodes)) == near or end in tied[near]:
            pass
        tied[near].remove(far)
        tied[far].remove(near)
        tied[near].add(end)
        tied[end].add(near)
        ties[index] = (near, end)
    return ties


def watts_strogatz(num_ops: int, values: Values, stream: Callable[[str], Stream]) -> Topology:
    """See :func:`small_world`; ``n * k / 2`` edges."""
    neighbours: int = values["k"]
    if neighbours % 2 or num_ops <= neighbours:
        raise ImportFailedError(f"synthetic/ws: n={num_ops}, k={neighbours}; expected an even k, below n")
    ties = np.array(small_world(num_ops, neighbours, values["p"], stream("edges").halves()), np.int64)
    return _orient(num_ops, ties[:, 0], ties[:, 1], stream)


def stochastic_block(num_ops: int, values: Values, stream: Callable[[str], Stream]) -> Topology:
    """Blocks as equal as possible; a pair is an edge with ``p_in`` inside a block, ``p_out`` across two.

    Holland, Laskey, Leinhardt 1983, "Stochastic blockmodels: first steps".
    """
    blocks: int = values["k"]
    if num_ops < blocks:
        raise ImportFailedError(f"synthetic/sbm: n={num_ops}, k={blocks}; expected k up to n")
    within = num_ops * (num_ops / blocks) / 2
    refuse_too_many(within * values["p_in"] + (num_ops * num_ops / 2 - within) * values["p_out"], "sbm")
    block = np.repeat(np.arange(blocks), num_ops // blocks + (np.arange(blocks) < num_ops % blocks))
    ends: tuple[list[Int64], list[Int64]] = ([], [])
    for inside, parameter, purpose in ((True, "p_in", "edges"), (False, "p_out", "edges across")):
        lower, higher = _chosen_pairs(num_ops, values[parameter], stream(purpose))
        kept = (block[lower] == block[higher]) == inside
        ends[0].append(lower[kept])
        ends[1].append(higher[kept])
    return _orient(num_ops, np.concatenate(ends[0]), np.concatenate(ends[1]), stream)


FAMILIES = (
    Family(
        "er",
        "Erdos-Renyi: every pair of ops is an edge with the same probability",
        (1, 20_000),
        (Probability("p", "0.05", "probability of an edge"),),
        erdos_renyi,
    ),
    Family(
        "ba",
        "Barabasi-Albert: preferential attachment, a few ops with very many edges",
        (2, 100_000),
        (Whole("m", "2", "edges that each added op brings", 1, 64),),
        barabasi_albert,
    ),
    Family(
        "ws",
        "Watts-Strogatz: a ring of near neighbours with some far ties",
        (3, 100_000),
        (
            Whole("k", "4", "nearest neighbours on the ring, even", 2, 64),
            Probability("p", "0.3", "probability that a tie is rewired"),
        ),
        watts_strogatz,
    ),
    Family(
        "sbm",
        "stochastic block model: dense blocks, hardly joined",
        (1, 20_000),
        (
            Whole("k", "4", "blocks", 1, 1000),
            Probability("p_in", "0.3", "probability of an edge inside a block"),
            Probability("p_out", "0.001", "probability of an edge across blocks"),
        ),
        stochastic_block,
    ),
)
