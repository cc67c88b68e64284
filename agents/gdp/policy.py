"""GDP's policy: from a graph to a distribution over devices for every unit, in one forward pass."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from ..networks.policy import PolicyNetwork
from .attention import PlacementLayer
from .encoder import GraphEncoder
from .instance import SHAPE_FIELDS, Instance
from .shape import Shape


class Policy(PolicyNetwork):
    """Places every op of a graph.

    Args:
        shape: Its shape.
    """

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.encoder = GraphEncoder(len(shape.kinds), SHAPE_FIELDS, shape.width, shape.rounds)
        self.layers = nn.ModuleList(
            PlacementLayer(
                shape.width,
                shape.heads,
                shape.segment,
                attention=shape.attention,
                superposition=shape.superposition,
            )
            for _ in range(shape.layers)
        )
        self.head = nn.Linear(shape.width, shape.devices)
        nn.init.orthogonal_(self.head.weight, shape.head_gain)
        nn.init.zeros_(self.head.bias)

    def forward(self, graph: Instance) -> Tensor:
        """Logarithms of probabilities, ``[units, devices]``; -inf where a unit may not run.

        A unit says the mean of what its ops say.
        """
        embedded = self.encoder(graph)
        ops = embedded
        for layer in self.layers:
            ops = layer(ops, embedded)
        said = self.head(ops)
        of_units = torch.zeros_like(graph.allowed, dtype=said.dtype).index_add_(0, graph.unit, said)
        logits = (of_units / graph.size[:, None]).masked_fill(~graph.allowed, -torch.inf)
        return functional.log_softmax(logits, dim=1)
