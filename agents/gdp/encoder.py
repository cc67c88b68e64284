"""GDP's graph neural network: GraphSAGE with max pooling over neighbours."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from .instance import Instance

#: Scale on which logarithms of sizes are about 1.
_LOG_SCALE = 0.1
#: Numbers of the embedding of a kind.
_KIND_WIDTH = 32


class SageLayer(nn.Module):
    """One layer of GraphSAGE (Hamilton et al. 2017) as GDP has it (Zhou et al. 2019, section 3.1).

    ``h_N(v) = max over neighbours u of sigmoid(W h_u + b)``, ``h_v' = relu(U [h_v, h_N(v)])``.

    Args:
        width: Numbers per op.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.pool = nn.Linear(width, width)
        self.update = nn.Linear(2 * width, width)

    def forward(self, ops: Tensor, degree: Tensor, neighbour: Tensor) -> Tensor:
        """New ops from ops, ``[ops, width]``; see :class:`Instance`. An op without neighbours hears zeros."""
        said = torch.sigmoid(self.pool(ops)).index_select(0, neighbour)
        heard = torch.segment_reduce(said, "max", lengths=degree, axis=0, initial=0.0)
        changed: Tensor = functional.relu(self.update(torch.cat([ops, heard], dim=1)))
        return changed


class GraphEncoder(nn.Module):
    """Embeds the ops of a graph.

    Args:
        kinds: Known kinds of op.
        shape_fields: Sizes of an op's output.
        width: Numbers per op.
        rounds: Layers.
    """

    def __init__(self, kinds: int, shape_fields: int, width: int, rounds: int) -> None:
        super().__init__()
        self.kind = nn.Embedding(1 + kinds, _KIND_WIDTH)
        self.embed = nn.Linear(_KIND_WIDTH + shape_fields, width)
        self.rounds = nn.ModuleList(SageLayer(width) for _ in range(rounds))
        self.norm = nn.LayerNorm(width)

    def forward(self, graph: Instance) -> Tensor:
        """Embeddings, ``[ops, width]``."""
        fields = [self.kind(graph.kind), torch.log1p(graph.shape) * _LOG_SCALE]
        ops = functional.relu(self.embed(torch.cat(fields, dim=1)))
        for layer in self.rounds:
            ops = layer(ops, graph.degree, graph.neighbour)
        normed: Tensor = self.norm(ops)
        return normed
