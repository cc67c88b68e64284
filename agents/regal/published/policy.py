"""The policy: an encoder of graphs, and the heads on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ...networks.policy import PolicyNetwork
from ..task import FIELDS
from .beta_heads import BetaHeads
from .encoder import GraphUnion, MessagePassingEncoder, SequenceEncoder
from .graph_features import EDGE_FIELDS, NODE_FIELDS
from .instance import Instance
from .shape import SEQUENCE, Shape


@dataclass(frozen=True)
class Batch:
    """Instances as the policy reads them.

    Attributes:
        graphs: Their graphs.
        two_devices: Which ops have affinities, ``[nodes] bool``.
        graph: Position of the instance of each op, ``[nodes] int64``.
    """

    graphs: GraphUnion
    two_devices: Tensor
    graph: Tensor

    @classmethod
    def of(cls, instances: Sequence[Instance]) -> Batch:
        """The batch of instances."""
        graphs = GraphUnion.of(
            [instance.features for instance in instances], [instance.task.fields for instance in instances]
        )
        sizes = torch.tensor(graphs.sizes)
        two = torch.tensor([instance.task.devices > 1 for instance in instances])
        return cls(
            graphs, two.repeat_interleave(sizes), torch.arange(len(instances)).repeat_interleave(sizes)
        )

    def mean_of(self, values: Tensor) -> Tensor:
        """Mean over the ops of each instance, ``[..., nodes] -> [..., instances]``."""
        sizes = torch.tensor(self.graphs.sizes, dtype=values.dtype)
        none = torch.zeros((*values.shape[:-1], len(sizes)), dtype=values.dtype)
        return none.index_add(-1, self.graph, values) / sizes


class Policy(PolicyNetwork):
    """Proposes Beta distributions for the ops of graphs.

    Args:
        network: Its shape.
    """

    def __init__(self, network: Shape) -> None:
        super().__init__()
        fields = len(NODE_FIELDS) + FIELDS
        self.encoder: nn.Module
        if network.encoder == SEQUENCE:
            self.encoder = SequenceEncoder(fields, network.width, network.rounds)
        else:
            edge_fields = len(EDGE_FIELDS) if network.edge_messages else 0
            self.encoder = MessagePassingEncoder(fields, edge_fields, network.width, network.rounds)
        self.heads = BetaHeads(network.width, autoregressive=network.autoregressive)
        #: Expected reward of a graph, from the mean of its nodes.
        self.value = nn.Linear(network.width, 1) if network.value_head else None
        if self.value is not None:
            nn.init.zeros_(self.value.weight)
            nn.init.zeros_(self.value.bias)

    def propose(self, instance: Instance) -> NDArray[np.int64]:
        """The most likely bins of every op, ``[ops, 6] int64``: one forward pass."""
        with torch.inference_mode():
            batch = Batch.of([instance])
            bins: NDArray[np.int64] = self.heads.greedy(self.encoder(batch.graphs), batch.two_devices).numpy()
        return bins
