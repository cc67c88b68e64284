"""Layered random graphs: ops in layers, each reading mostly from the layer before."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .family import Family, Topology
from .parameters import Probability, Values, Whole
from .random_bits import Int64, Stream


def layered(num_ops: int, values: Values, stream: Callable[[str], Stream]) -> Topology:
    """One op, then layers of random width.

    An op reads one to ``fan_in`` tensors: the first of the layer before, each other one of the layer before
    or, with probability ``skip``, of any op of a layer further back. An op that nobody reads, below the last
    layer, is read by a random op of the next. So the graph is connected, and as deep as it has layers.
    """
    layer = _layers(num_ops, values["width"], stream("widths"))
    first_op = np.searchsorted(layer, np.arange(layer[-1] + 2))  # of each layer, and the end
    reader = np.arange(1, num_ops)
    before, here = first_op[layer[reader] - 1], first_op[layer[reader]]
    choice, skips = stream("inputs"), stream("skips")
    fan_in = stream("fan-in").below(values["fan_in"], num_ops - 1) + 1
    sources, targets = [], []
    for position in range(values["fan_in"]):
        start = position * (num_ops - 1)
        far = skips.happens(values["skip"], num_ops - 1, start) & (before > 0) & (position > 0)
        low, high = np.where(far, 0, before), np.where(far, before, here)
        reads = fan_in > position
        sources.append((low + choice.below(high - low, num_ops - 1, start))[reads])
        targets.append(reader[reads])
    unread = np.ones(num_ops, np.bool_)
    unread[np.concatenate(sources)] = False
    lonely = np.flatnonzero(unread & (layer < layer[-1]))
    low, high = first_op[layer[lonely] + 1], first_op[layer[lonely] + 2]
    sources.append(lonely)
    targets.append(low + stream("readers").below(high - low, len(lonely)))
    return Topology(
        num_ops,
        np.concatenate(sources),
        np.concatenate(targets),
        op_layer=layer,
        layer_name="layer",
    )


def _layers(num_ops: int, width: int, stream: Stream) -> Int64:
    """Layer of each op, ``[ops] int64``: op 0 alone, then widths of 1 to ``2 width - 1``, the last cut."""
    widths = stream.below(2 * width - 1, num_ops - 1) + 1
    ends = 1 + np.cumsum(widths)
    return np.searchsorted(np.concatenate([[1], ends]), np.arange(num_ops), side="right").astype(np.int64)


FAMILIES = (
    Family(
        "layered",
        "layers of random width, each op reading mostly from the layer before",
        (1, 100_000),
        (
            Whole("width", "8", "mean ops of a layer", 1, 1000),
            Whole("fan_in", "3", "most tensors that an op draws to read", 1, 64),
            Probability("skip", "0.1", "probability that an input after the first comes from further back"),
        ),
        layered,
    ),
)
