"""Message passing on a batch of padded graphs, in plain torch: nothing but matrix products, gathers and sums."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional


def squashed(values: Tensor) -> Tensor:
    """Values of any size on a scale where a network works well: linear near 0, logarithmic far away."""
    return torch.sign(values) * torch.log1p(torch.abs(values))


@dataclass(frozen=True)
class Graphs:
    """Padded graphs: what observations never change.

    Attributes:
        nodes: Fields of nodes, ``[graphs, nodes, fields]``.
        node_mask: Which are nodes, not padding, ``[graphs, nodes] bool``.
        edges: Writers, then readers, ``[graphs, 2, edges] int64``; any valid node in padding.
        edge_features: Fields of edges, ``[graphs, edges, fields]``.
        edge_mask: Which are edges, not padding, ``[graphs, edges] bool``.
    """

    nodes: Tensor
    node_mask: Tensor
    edges: Tensor
    edge_features: Tensor
    edge_mask: Tensor


@dataclass(frozen=True)
class Edges:
    """All edges of a batch, without padding, between the rows of its nodes ``[batch * nodes, ...]``.

    Attributes:
        writer: Row of the writing node, ``[all edges] int64``.
        reader: Row of the reading node, ``[all edges] int64``.
        source: Row of the edge in ``[graphs * edges, ...]``, ``[all edges] int64``.
        reads: Number of edges into each node, at least 1, ``[batch * nodes, 1]``.
        read_by: Number of edges out of each node, at least 1, ``[batch * nodes, 1]``.
    """

    writer: Tensor
    reader: Tensor
    source: Tensor
    reads: Tensor
    read_by: Tensor

    @classmethod
    def of(cls, graphs: Graphs, graph: Tensor) -> Edges:
        """The edges of a batch.

        Args:
            graphs: The graphs.
            graph: Graph of each element of the batch, ``[batch] int64``.
        """
        num_nodes, num_edges = graphs.nodes.shape[1], graphs.edge_mask.shape[1]
        element, edge = graphs.edge_mask[graph].nonzero(as_tuple=True)
        of_graph = graph[element]
        first = element * num_nodes
        writer, reader = (graphs.edges[of_graph, end, edge] + first for end in (0, 1))
        ones = graphs.nodes.new_ones(len(element))
        reads, read_by = (
            graphs.nodes.new_zeros(len(graph) * num_nodes).index_add(0, end, ones).clamp(min=1)[:, None]
            for end in (reader, writer)
        )
        return cls(writer, reader, of_graph * num_edges + edge, reads, read_by)


class Round(nn.Module):
    """One round: every node hears from those it reads from, and from those that read from it.

    A message is ``relu(W x_sender + U edge)``; a node takes the mean of the messages of each direction, which have
    weights of their own, and adds what a small network makes of them to what it was.

    Args:
        width: Numbers per node.
        edge_fields: Fields of an edge.
    """

    def __init__(self, width: int, edge_fields: int) -> None:
        super().__init__()
        self.from_writer = nn.Linear(width, width)
        self.from_reader = nn.Linear(width, width)
        self.edge = nn.Linear(edge_fields, 2 * width, bias=False)
        self.update = nn.Sequential(nn.Linear(3 * width, width), nn.ReLU(), nn.Linear(width, width))
        self.norm = nn.LayerNorm(width)

    def forward(self, nodes: Tensor, edges: Edges, edge_features: Tensor) -> Tensor:
        """New nodes from nodes.

        Args:
            nodes: ``[batch * nodes, width]``.
            edges: Of the batch.
            edge_features: ``[graphs * edges, edge fields]``: each graph's once, whatever the batch.
        """
        forwards, backwards = self.edge(edge_features).chunk(2, dim=1)
        from_writers = _mean_messages(self.from_writer(nodes), edges.writer, edges.reader, forwards, edges)
        from_readers = _mean_messages(self.from_reader(nodes), edges.reader, edges.writer, backwards, edges)
        heard = [nodes, from_writers / edges.reads, from_readers / edges.read_by]
        changed: Tensor = self.norm(nodes + self.update(torch.cat(heard, dim=1)))
        return changed


def _mean_messages(nodes: Tensor, sender: Tensor, receiver: Tensor, edge: Tensor, edges: Edges) -> Tensor:
    messages = functional.relu(nodes.index_select(0, sender) + edge.index_select(0, edges.source))
    return torch.zeros_like(nodes).index_add(0, receiver, messages)


class GraphNetwork(nn.Module):
    """Embeds every node of every graph of a batch: first by itself, then in a few rounds of messages.

    What never changes is embedded once for each graph, however often the graph stands in the batch; memory grows with
    the nodes and edges of the batch.

    Args:
        node_fields: Fixed fields of a node.
        changing_fields: Fields of a node that change in an episode.
        edge_fields: Fields of an edge.
        width: Numbers per node.
        rounds: Rounds of messages.
    """

    def __init__(
        self, node_fields: int, changing_fields: int, edge_fields: int, width: int, rounds: int
    ) -> None:
        super().__init__()
        self.fixed = nn.Linear(node_fields, width)
        self.changing = nn.Linear(changing_fields, width, bias=False)
        self.mix = nn.Sequential(nn.ReLU(), nn.Linear(width, width))
        self.norm = nn.LayerNorm(width)
        self.rounds = nn.ModuleList(Round(width, edge_fields) for _ in range(rounds))

    def forward(self, graphs: Graphs, graph: Tensor, changing: Tensor) -> Tensor:
        """Embeddings of nodes, ``[batch, nodes, width]``; 0 in padding.

        Args:
            graphs: The graphs.
            graph: Graph of each element of the batch, ``[batch] int64``.
            changing: What changes, ``[batch, nodes, changing fields]``.
        """
        batch, num_nodes, _ = changing.shape
        embedded = self.fixed(squashed(graphs.nodes))[graph] + self.changing(squashed(changing))
        nodes: Tensor = self.norm(self.mix(embedded)).reshape(batch * num_nodes, -1)
        edges = Edges.of(graphs, graph)
        edge_features = squashed(graphs.edge_features).flatten(0, 1)
        for one_round in self.rounds:
            nodes = one_round(nodes, edges, edge_features)
        mask = graphs.node_mask[graph].unsqueeze(2)
        return nodes.reshape(batch, num_nodes, -1) * mask


def mean_of(nodes: Tensor, chosen: Tensor) -> Tensor:
    """Mean over chosen nodes, 0 where there are none.

    Args:
        nodes: ``[batch, nodes, width]``.
        chosen: Which to take, by kind, ``[batch, kinds, nodes]``, 0 or 1.

    Returns:
        ``[batch, kinds, width]``.
    """
    return chosen @ nodes / chosen.sum(2, keepdim=True).clamp(min=1)


def rows_of(nodes: Tensor, index: Tensor) -> Tensor:
    """Rows of nodes by index, ``[batch, indices, width]``; 0 where the index is -1.

    Args:
        nodes: ``[batch, nodes, width]``.
        index: ``[batch, indices] int64``.
    """
    rows = nodes.gather(1, index.clamp(min=0).unsqueeze(2).expand(-1, -1, nodes.shape[2]))
    return torch.where((index >= 0).unsqueeze(2), rows, torch.zeros_like(rows))
