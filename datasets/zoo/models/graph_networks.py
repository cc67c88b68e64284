"""Networks over graphs: GCN, GraphSAGE, GAT, GIN, gated graph networks."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..registry import definition
from .layers import GRUCell
from .workload import Entry, ids, reals, workloads

NODES, EDGES = 10000, 80000


def summed(messages: Tensor, receivers: Tensor, nodes: int) -> Tensor:
    """The sum of the messages of each receiver."""
    return messages.new_zeros(nodes, messages.shape[1]).index_add(0, receivers, messages)


class GCNLayer(nn.Module):
    """Normalised sum over the neighbours and oneself."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)

    def forward(self, features: Tensor, senders: Tensor, receivers: Tensor) -> Tensor:
        nodes = features.shape[0]
        ones = features.new_ones(receivers.shape[0], 1)
        scale = torch.rsqrt(1 + summed(ones, receivers, nodes))
        scaled = scale * self.linear(features)
        return scale * (summed(scaled[senders], receivers, nodes) + scaled)


class SAGELayer(nn.Module):
    """Oneself beside the mean of the neighbours, normalised to length 1."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.own = nn.Linear(inputs, outputs)
        self.neighbours = nn.Linear(inputs, outputs, bias=False)

    def forward(self, features: Tensor, senders: Tensor, receivers: Tensor) -> Tensor:
        nodes = features.shape[0]
        degree = summed(features.new_ones(receivers.shape[0], 1), receivers, nodes).clamp(min=1)
        mean = summed(features[senders], receivers, nodes) / degree
        mixed = self.own(features) + self.neighbours(mean)
        return mixed * torch.rsqrt((mixed * mixed).sum(1, keepdim=True) + 1e-12)


class GATLayer(nn.Module):
    """Attention over the neighbours with several heads, concatenated."""

    def __init__(self, inputs: int, outputs: int, heads: int = 8) -> None:
        super().__init__()
        self.heads = heads
        self.project = nn.Linear(inputs, outputs, bias=False)
        self.of_sender = nn.Parameter(torch.zeros(heads, outputs // heads))
        self.of_receiver = nn.Parameter(torch.zeros(heads, outputs // heads))

    def forward(self, features: Tensor, senders: Tensor, receivers: Tensor) -> Tensor:
        nodes = features.shape[0]
        projected = self.project(features).reshape(nodes, self.heads, -1)
        sending = (projected * self.of_sender).sum(2)
        receiving = (projected * self.of_receiver).sum(2)
        scores = torch.exp(F.leaky_relu(sending[senders] + receiving[receivers], 0.2))
        weights = scores / summed(scores, receivers, nodes)[receivers]
        messages = (weights.unsqueeze(2) * projected[senders]).flatten(1)
        return summed(messages, receivers, nodes)


class GINLayer(nn.Module):
    """A perceptron of the sum over oneself and the neighbours."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.epsilon = nn.Parameter(torch.zeros(1))
        self.mix = nn.Sequential(
            nn.Linear(inputs, outputs), nn.BatchNorm1d(outputs), nn.ReLU(), nn.Linear(outputs, outputs)
        )

    def forward(self, features: Tensor, senders: Tensor, receivers: Tensor) -> Tensor:
        gathered = summed(features[senders], receivers, features.shape[0])
        return self.mix((1 + self.epsilon) * features + gathered)


class NodeClassifier(nn.Module):
    """Layers of one kind with ReLU between them; every node has a class."""

    def __init__(self, layer: type[nn.Module], layers: int, inputs: int, hidden: int, classes: int) -> None:
        super().__init__()
        widths = [inputs] + [hidden] * (layers - 1)
        self.layers = nn.ModuleList(layer(width, hidden) for width in widths)
        self.head = nn.Linear(hidden, classes)

    def forward(
        self, features: Tensor, senders: Tensor, receivers: Tensor, classes: Tensor | None = None
    ) -> Tensor:
        for layer in self.layers:
            features = F.relu(layer(features, senders, receivers))
        logits = self.head(features)
        return logits if classes is None else F.cross_entropy(logits, classes)


class GatedGraphNetwork(nn.Module):
    """The same message and gated unit again and again; one number per node."""

    def __init__(self, steps: int, hidden: int, classes: int) -> None:
        super().__init__()
        self.steps = steps
        self.message = nn.Linear(hidden, hidden)
        self.cell = GRUCell(hidden, hidden)
        self.head = nn.Linear(2 * hidden, classes)

    def forward(
        self, features: Tensor, senders: Tensor, receivers: Tensor, classes: Tensor | None = None
    ) -> Tensor:
        state = features
        for _ in range(self.steps):
            messages = self.message(state)[senders]
            state = self.cell(summed(messages, receivers, state.shape[0]), state)
        logits = self.head(torch.cat([state, features], 1))
        return logits if classes is None else F.cross_entropy(logits, classes)


def node_workloads(
    name: str, layer: type[nn.Module], depths: tuple[int, ...], hidden: int
) -> Iterator[Entry]:
    """Graphs of classifiers of 10,000 nodes with 80,000 edges, 100 features and 47 classes."""
    for layers in depths:
        yield from workloads(
            f"{name}-{layers}l",
            partial(NodeClassifier, layer, layers, 100, hidden, 47),
            inputs=(reals(NODES, 100), ids(NODES, EDGES), ids(NODES, EDGES)),
            targets=(ids(47, NODES),),
            batch=NODES,
            modes=("train", "infer") if layers > 6 else ("train",),
            layers=layers,
            hidden=hidden,
            edges=EDGES,
        )


@definition(family="gcn", source="own", licence="Apache-2.0")
def gcn() -> Iterator[Entry]:
    """Kipf and Welling 2017, "Semi-supervised classification with graph convolutional networks"."""
    yield from node_workloads("gcn", GCNLayer, (5, 9, 16), 256)


@definition(family="graphsage", source="own", licence="Apache-2.0")
def graphsage() -> Iterator[Entry]:
    """Hamilton et al. 2017, "Inductive representation learning on large graphs": mean aggregation."""
    yield from node_workloads("graphsage", SAGELayer, (3, 6, 12), 256)


@definition(family="gat", source="own", licence="Apache-2.0")
def gat() -> Iterator[Entry]:
    """Velickovic et al. 2018, "Graph attention networks": 8 heads."""
    yield from node_workloads("gat", GATLayer, (3, 6, 12), 256)


@definition(family="gin", source="own", licence="Apache-2.0")
def gin() -> Iterator[Entry]:
    """Xu et al. 2019, "How powerful are graph neural networks?"."""
    yield from node_workloads("gin", GINLayer, (3, 5, 12), 256)


@definition(family="ggnn", source="own", licence="Apache-2.0")
def gated_graph_network() -> Iterator[Entry]:
    """Li et al. 2016, "Gated graph sequence neural networks"."""
    for steps in (5, 12):
        yield from workloads(
            f"ggnn-{steps}",
            partial(GatedGraphNetwork, steps, 128, 47),
            inputs=(reals(NODES, 128), ids(NODES, EDGES), ids(NODES, EDGES)),
            targets=(ids(47, NODES),),
            batch=NODES,
            steps=steps,
            hidden=128,
            edges=EDGES,
        )
