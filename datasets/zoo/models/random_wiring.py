"""Networks wired by random graphs: RandWire and cells like SwiftNet's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..registry import definition
from .layers import conv_norm, convolution
from .workload import Entry, image_workloads

#: For each node the nodes that it reads, all of lower index.
Wiring = Sequence[Sequence[int]]


def oriented(edges: set[tuple[int, int]], nodes: int) -> list[list[int]]:
    """The directed graph of undirected edges: from the lower index to the higher."""
    reads: list[list[int]] = [[] for _ in range(nodes)]
    for a, b in sorted(edges):
        reads[b].append(a)
    return reads


def watts_strogatz(nodes: int, neighbours: int, rewiring: float, seed: int) -> list[list[int]]:
    """A ring where everyone knows the nearest, and each edge's far end moves with some probability."""
    random = np.random.default_rng(seed)
    edges = {
        (min(node, (node + hop) % nodes), max(node, (node + hop) % nodes))
        for hop in range(1, neighbours // 2 + 1)
        for node in range(nodes)
    }
    for hop in range(1, neighbours // 2 + 1):
        for node in range(nodes):
            edge = (min(node, (node + hop) % nodes), max(node, (node + hop) % nodes))
            if random.random() >= rewiring or edge not in edges:
                continue
            free = [
                other
                for other in range(nodes)
                if other != node and (min(node, other), max(node, other)) not in edges
            ]
            if free:
                other = int(random.choice(free))
                edges.remove(edge)
                edges.add((min(node, other), max(node, other)))
    return oriented(edges, nodes)


def erdos_renyi(nodes: int, probability: float, seed: int) -> list[list[int]]:
    """Every pair is joined with the same probability."""
    random = np.random.default_rng(seed)
    drawn = random.random((nodes, nodes)) < probability
    return oriented({(a, b) for b in range(nodes) for a in range(b) if drawn[a, b]}, nodes)


def barabasi_albert(nodes: int, attached: int, seed: int) -> list[list[int]]:
    """Each new node joins ``attached`` others, drawn in proportion to their degrees."""
    random = np.random.default_rng(seed)
    edges: set[tuple[int, int]] = set()
    ends = list(range(attached))
    for node in range(attached, nodes):
        chosen: set[int] = set()
        while len(chosen) < attached:
            chosen.add(int(random.choice(ends)))
        edges |= {(other, node) for other in chosen}
        ends += [*chosen, *[node] * attached]
    return oriented(edges, nodes)


class Node(nn.Module):
    """Weighted sum of the inputs, then ReLU, separable convolution, batch normalisation."""

    def __init__(self, inputs: int, outputs: int, reads: int, stride: int) -> None:
        super().__init__()
        self.weights = nn.Parameter(torch.zeros(reads)) if reads > 1 else None
        self.depthwise = convolution(inputs, inputs, 3, stride, groups=inputs)
        self.pointwise = convolution(inputs, outputs, 1)
        self.norm = nn.BatchNorm2d(outputs)

    def forward(self, inputs: Sequence[Tensor]) -> Tensor:
        total = inputs[0]
        if self.weights is not None:
            weights = torch.sigmoid(self.weights).unbind(0)
            total = weights[0] * inputs[0]
            for weight, features in zip(weights[1:], inputs[1:], strict=True):
                total = total + weight * features
        return self.norm(self.pointwise(self.depthwise(F.relu(total))))


class Stage(nn.Module):
    """A random graph of nodes; those that read nothing read the stage's input, with stride 2."""

    def __init__(self, wiring: Wiring, inputs: int, outputs: int) -> None:
        super().__init__()
        self.wiring = [tuple(reads) for reads in wiring]
        read = {source for reads in self.wiring for source in reads}
        self.last = [node for node in range(len(self.wiring)) if node not in read]
        self.nodes = nn.ModuleList(
            Node(outputs, outputs, len(reads), 1) if reads else Node(inputs, outputs, 1, 2)
            for reads in self.wiring
        )

    def forward(self, features: Tensor) -> Tensor:
        results: list[Tensor] = []
        for reads, node in zip(self.wiring, self.nodes, strict=True):
            results.append(node([results[source] for source in reads] if reads else [features]))
        total = results[self.last[0]]
        for node_index in self.last[1:]:
            total = total + results[node_index]
        return total / len(self.last)


class RandWire(nn.Module):
    """Two strided convolutions, three random stages, a 1 x 1 convolution and a linear head.

    Args:
        wirings: The graph of each stage.
        channels: Channels of the first stage; each stage doubles them.
        classes: Number of classes.
    """

    def __init__(self, wirings: Sequence[Wiring], channels: int, classes: int = 1000) -> None:
        super().__init__()
        half = channels // 2
        self.stem = nn.Sequential(
            conv_norm(3, half, 3, 2, activation=None),
            nn.ReLU(),
            conv_norm(half, channels, 3, 2, activation=None),
        )
        widths = [channels, *(channels * 2**index for index in range(len(wirings)))]
        self.stages = nn.Sequential(
            *(Stage(wiring, a, b) for wiring, a, b in zip(wirings, widths, widths[1:], strict=False))
        )
        self.mix = nn.Sequential(nn.ReLU(), conv_norm(widths[-1], 1280, 1))
        self.head = nn.Linear(1280, classes)

    def forward(self, images: Tensor, labels: Tensor | None = None) -> Tensor:
        logits = self.head(self.mix(self.stages(self.stem(images))).mean((2, 3)))
        return logits if labels is None else F.cross_entropy(logits, labels)


class ConcatenatingNode(nn.Module):
    """Concatenates its inputs, then a 1 x 1 and a depthwise convolution: SwiftNet's irregular cells."""

    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int) -> None:
        super().__init__()
        self.pointwise = conv_norm(inputs, outputs, 1)
        self.depthwise = conv_norm(outputs, outputs, kernel, stride, groups=outputs, activation=None)

    def forward(self, inputs: Sequence[Tensor]) -> Tensor:
        gathered = torch.cat(list(inputs), 1) if len(inputs) > 1 else inputs[0]
        return self.depthwise(self.pointwise(gathered))


class ConcatenatingCell(nn.Module):
    """A random graph of concatenating nodes; the cell gives its unread nodes side by side."""

    def __init__(self, wiring: Wiring, inputs: int, channels: int) -> None:
        super().__init__()
        self.wiring = [tuple(reads) for reads in wiring]
        read = {source for reads in self.wiring for source in reads}
        self.last = [node for node in range(len(self.wiring)) if node not in read]
        self.nodes = nn.ModuleList(
            ConcatenatingNode(
                channels * len(reads) if reads else inputs, channels, 3 + 2 * (index % 2), 1 if reads else 2
            )
            for index, reads in enumerate(self.wiring)
        )

    def forward(self, features: Tensor) -> Tensor:
        results: list[Tensor] = []
        for reads, node in zip(self.wiring, self.nodes, strict=True):
            results.append(node([results[source] for source in reads] if reads else [features]))
        return torch.cat([results[index] for index in self.last], 1)


class SwiftNetLike(nn.Module):
    """Three concatenating cells between a strided convolution and a linear head.

    Args:
        wirings: The graph of each cell.
        channels: Channels of a node of the first cell; each cell adds half of them.
        classes: Number of classes.
    """

    def __init__(self, wirings: Sequence[Wiring], channels: int, classes: int = 250) -> None:
        super().__init__()
        self.stem = conv_norm(3, channels, 3, 2)
        cells = []
        inputs = channels
        for index, wiring in enumerate(wirings):
            cell = ConcatenatingCell(wiring, inputs, channels + index * channels // 2)
            inputs = len(cell.last) * (channels + index * channels // 2)
            cells.append(cell)
        self.cells = nn.Sequential(*cells)
        self.head = nn.Linear(inputs, classes)

    def forward(self, images: Tensor, labels: Tensor | None = None) -> Tensor:
        logits = self.head(self.cells(self.stem(images)).mean((2, 3)))
        return logits if labels is None else F.cross_entropy(logits, labels)


def randwire_entries(
    name: str, wirings: Sequence[Wiring], channels: int, **configuration: Any
) -> Iterator[Entry]:
    """Graphs of one network."""
    nodes = [len(wiring) for wiring in wirings]
    described: Mapping[str, Any] = {"nodes": nodes, "channels": channels, **configuration}
    yield from image_workloads(name, partial(RandWire, wirings, channels), batch=32, **described)


@definition(family="randwire", source="own", licence="Apache-2.0")
def randwire() -> Iterator[Entry]:
    """Xie et al. 2019, "Exploring randomly wired neural networks for image recognition": three stages of 32
    nodes from Watts-Strogatz (4 neighbours, .75), Erdos-Renyi (.2) and Barabasi-Albert (5) graphs, seeds
    stated.
    """
    small = [watts_strogatz(32, 4, 0.75, seed) for seed in (0, 1, 2)]
    yield from randwire_entries("randwire-ws-4-0.75", small, 78, wiring="WS(4, .75)", seeds=[0, 1, 2])
    random = [erdos_renyi(32, 0.2, seed) for seed in (3, 4, 5)]
    yield from randwire_entries("randwire-er-0.2", random, 78, wiring="ER(.2)", seeds=[3, 4, 5])
    attached = [barabasi_albert(32, 5, seed) for seed in (6, 7, 8)]
    yield from randwire_entries("randwire-ba-5", attached, 78, wiring="BA(5)", seeds=[6, 7, 8])
    tiny = [watts_strogatz(16, 4, 0.25, seed) for seed in (9, 10)]
    yield from randwire_entries("randwire-ws-4-0.25-small", tiny, 109, wiring="WS(4, .25)", seeds=[9, 10])


@definition(family="swiftnet-like", source="own", licence="Apache-2.0")
def swiftnet_like() -> Iterator[Entry]:
    """Irregular concatenating cells in the manner of SwiftNet (Zhang et al. 2019, "SwiftNet: using graph
    propagation as meta-knowledge to search highly representative neural architectures"), whose published cells
    are images; ours are Watts-Strogatz and Barabasi-Albert graphs with stated seeds. For 96 x 96 images.
    """
    for name, wirings, description in (
        ("ws", [watts_strogatz(14, 4, 0.5, seed) for seed in (0, 1, 2)], "WS(4, .5)"),
        ("ws-large", [watts_strogatz(24, 4, 0.75, seed) for seed in (6, 7, 8)], "WS(4, .75)"),
        ("ba", [barabasi_albert(16, 3, seed) for seed in (3, 4, 5)], "BA(3)"),
    ):
        yield from image_workloads(
            f"swiftnet-like-{name}",
            partial(SwiftNetLike, wirings, 24, 250),
            batch=32,
            size=96,
            classes=250,
            nodes=[len(wiring) for wiring in wirings],
            wiring=description,
            channels=24,
        )
