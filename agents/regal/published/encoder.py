"""Encoders: from graphs to a row of numbers for each op."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import pack_sequence, unpack_sequence

from ..union import first_nodes, union_of_edges, union_of_nodes
from .graph_features import GraphFeatures

#: Of fields: standard deviations of sizes are a few tenths of their mean.
_GAIN = 4.0
#: Messages that fit into a near cache: those of a dense graph, all at once, would not.
_EDGES_AT_A_TIME = 4096


@dataclass(frozen=True)
class GraphUnion:
    """Several graphs as one that is not connected: no padding, whatever their sizes.

    Attributes:
        nodes: Fields of ops, those of the task behind those of the graph, ``[nodes, fields] float32``.
        writer: Writing node of each edge, ``[edges] int64``.
        reader: Reading node of each edge, ``[edges] int64``.
        edge_features: Fields of edges, ``[edges, fields] float32``.
        sizes: Nodes of each graph, in the order of the rows.
    """

    nodes: Tensor
    writer: Tensor
    reader: Tensor
    edge_features: Tensor
    sizes: tuple[int, ...]

    @classmethod
    def of(cls, graphs: Sequence[GraphFeatures], tasks: Sequence[NDArray[np.float32]]) -> GraphUnion:
        """The union of graphs.

        Args:
            graphs: The graphs.
            tasks: Fields that tell the task of each, ``[fields] float32``.
        """
        sizes = tuple(len(graph.nodes) for graph in graphs)
        edges = union_of_edges([graph.edges for graph in graphs], first_nodes(sizes))
        return cls(
            torch.from_numpy(union_of_nodes([graph.nodes for graph in graphs], tasks)),
            torch.from_numpy(edges[0]),
            torch.from_numpy(edges[1]),
            torch.from_numpy(np.concatenate([graph.edge_features for graph in graphs])),
            sizes,
        )


def squashed(fields: Tensor) -> Tensor:
    """Fields over their means on a scale where a network works well: the mean is 0, and far above it is logarithmic.

    Sizes of random graphs are all near their mean; what is left of them has to be seen beside the biases.
    """
    return _GAIN * (torch.log1p(fields) - math.log(2))


class MessageRound(nn.Module):
    """One round of messages: each node hears from those whose tensors it reads, and from those that read its own.

    A message is ``relu(W sender + U edge)``, with weights of each direction; a node takes the sum of each direction
    (Paliwal et al. 2020), and adds what a small network makes of them to what it was.

    Args:
        width: Numbers per node.
        edge_fields: Fields of an edge; 0: messages do not see edges.
    """

    def __init__(self, width: int, edge_fields: int) -> None:
        super().__init__()
        self.forwards = nn.Linear(width, width)
        self.backwards = nn.Linear(width, width)
        self.edge = nn.Linear(edge_fields, 2 * width, bias=False) if edge_fields else None
        self.update = nn.Sequential(nn.Linear(3 * width, width), nn.ReLU(), nn.Linear(width, width))
        self.norm = nn.LayerNorm(width)

    def forward(self, nodes: Tensor, writer: Tensor, reader: Tensor, edge_features: Tensor) -> Tensor:
        """New nodes from nodes, ``[nodes, width]``."""
        forwards, backwards = self.forwards(nodes), self.backwards(nodes)
        from_writers, from_readers = torch.zeros_like(nodes), torch.zeros_like(nodes)
        parts = (torch.split(part, _EDGES_AT_A_TIME) for part in (writer, reader, edge_features))
        for of_writer, of_reader, fields in zip(*parts, strict=True):
            forth, back = forwards.index_select(0, of_writer), backwards.index_select(0, of_reader)
            if self.edge is not None:
                of_forth, of_back = self.edge(fields).chunk(2, dim=1)
                forth, back = forth + of_forth, back + of_back
            from_writers.index_add_(0, of_reader, functional.relu(forth))
            from_readers.index_add_(0, of_writer, functional.relu(back))
        heard = [nodes, from_writers, from_readers]
        changed: Tensor = self.norm(nodes + self.update(torch.cat(heard, dim=1)))
        return changed


class MessagePassingEncoder(nn.Module):
    """A graph neural network: nodes by themselves, then rounds of messages in both directions.

    Args:
        node_fields: Fields of a node, with those of the task.
        edge_fields: Fields of an edge; 0: messages do not see edges.
        width: Numbers per node.
        rounds: Rounds of messages, each with weights of its own.
    """

    def __init__(self, node_fields: int, edge_fields: int, width: int, rounds: int) -> None:
        super().__init__()
        self.embed = nn.Sequential(nn.Linear(node_fields, width), nn.ReLU(), nn.Linear(width, width))
        self.norm = nn.LayerNorm(width)
        self.rounds = nn.ModuleList(MessageRound(width, edge_fields) for _ in range(rounds))

    def forward(self, graphs: GraphUnion) -> Tensor:
        """Embeddings of nodes, ``[nodes, width]``."""
        nodes: Tensor = self.norm(self.embed(squashed(graphs.nodes)))
        edge_features = squashed(graphs.edge_features)
        for one_round in self.rounds:
            nodes = one_round(nodes, graphs.writer, graphs.reader, edge_features)
        return nodes


class SequenceEncoder(nn.Module):
    """The graph as a sequence (GAS): an LSTM in both directions over ops in topological order, which sees no edge.

    Args:
        node_fields: Fields of a node, with those of the task.
        width: Numbers per node, half of each direction; even.
        layers: Of the LSTM.
    """

    def __init__(self, node_fields: int, width: int, layers: int) -> None:
        super().__init__()
        self.embed = nn.Linear(node_fields, width)
        self.recurrent = nn.LSTM(width, width // 2, layers, bidirectional=True)

    def forward(self, graphs: GraphUnion) -> Tensor:
        """Embeddings of nodes, ``[nodes, width]``."""
        nodes = functional.relu(self.embed(squashed(graphs.nodes)))
        packed, _ = self.recurrent(
            pack_sequence(list(torch.split(nodes, list(graphs.sizes))), enforce_sorted=False)
        )
        return torch.cat(unpack_sequence(packed))
