"""Recommenders: DLRM, DeepFM, DCN-v2, xDeepFM, AutoInt, DIN, MMoE."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .attention import Attention

#: Rows of the embedding table of each categorical feature, in turn.
ROWS = (100000, 1000, 200000, 50, 20000, 300, 5000, 70000, 10, 2500, 40000, 600, 90)


def perceptron(widths: Sequence[int], *, last_active: bool = True) -> nn.Sequential:
    """Linear layers with ReLU between them, and after the last if asked."""
    layers = nn.Sequential()
    for index, (inputs, outputs) in enumerate(pairwise(widths)):
        layers.append(nn.Linear(inputs, outputs))
        if last_active or index < len(widths) - 2:
            layers.append(nn.ReLU())
    return layers


def click_loss(scores: Tensor, clicks: Tensor | None) -> Tensor:
    """Binary cross-entropy; the scores themselves without clicks."""
    return scores if clicks is None else F.binary_cross_entropy_with_logits(scores, clicks)


class Embeddings(nn.Module):
    """One table per categorical feature; gives a list of [batch, width]."""

    def __init__(self, features: int, width: int) -> None:
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(ROWS[index % len(ROWS)], width) for index in range(features))

    def forward(self, categories: Tensor) -> list[Tensor]:
        columns = categories.unbind(1)
        return [table(column) for table, column in zip(self.tables, columns, strict=True)]


class DLRM(nn.Module):
    """Dense features through a perceptron; dot products of all pairs of vectors; a second perceptron."""

    def __init__(self, features: int, width: int, bottom: Sequence[int], top: Sequence[int]) -> None:
        super().__init__()
        self.embeddings = Embeddings(features, width)
        self.bottom = perceptron((13, *bottom, width))
        pairs = features * (features + 1) // 2
        self.top = perceptron((pairs + width, *top, 1), last_active=False)

    def forward(self, dense: Tensor, categories: Tensor, clicks: Tensor | None = None) -> Tensor:
        bottom = self.bottom(dense)
        vectors = torch.stack([bottom, *self.embeddings(categories)], 1)
        products = torch.bmm(vectors, vectors.transpose(1, 2))
        count = vectors.shape[1]
        lower = torch.tril_indices(count, count, -1, device=dense.device)
        pairs = products[:, lower[0], lower[1]]
        return click_loss(self.top(torch.cat([bottom, pairs], 1)).squeeze(1), clicks)


class FactorizationNetwork(nn.Module):
    """What DeepFM, xDeepFM, DCN-v2 and AutoInt share: embeddings, a deep part, another part.

    Args:
        features: Categorical features.
        width: Of the embeddings.
        hidden: Layers of the deep part.
        other: Gets the embeddings [batch, features, width], gives [batch] scores.
    """

    def __init__(self, features: int, width: int, hidden: Sequence[int], other: nn.Module) -> None:
        super().__init__()
        self.embeddings = Embeddings(features, width)
        self.linear = Embeddings(features, 1)
        self.deep = perceptron((features * width, *hidden, 1), last_active=False)
        self.other = other

    def forward(self, categories: Tensor, clicks: Tensor | None = None) -> Tensor:
        vectors = torch.stack(self.embeddings(categories), 1)
        linear = torch.cat(self.linear(categories), 1).sum(1)
        scores = linear + self.deep(vectors.flatten(1)).squeeze(1) + self.other(vectors)
        return click_loss(scores, clicks)


class FactorizationMachine(nn.Module):
    """Sum of the products of all pairs, by squares."""

    def forward(self, vectors: Tensor) -> Tensor:
        squared_sum = vectors.sum(1).square()
        return 0.5 * (squared_sum - vectors.square().sum(1)).sum(1)


class CrossNetwork(nn.Module):
    """x0 * (W x + b) + x, again and again (DCN-v2)."""

    def __init__(self, width: int, layers: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))
        self.output = nn.Linear(width, 1)

    def forward(self, vectors: Tensor) -> Tensor:
        first = features = vectors.flatten(1)
        for layer in self.layers:
            features = first * layer(features) + features
        return self.output(features).squeeze(1)


class CompressedInteractions(nn.Module):
    """Outer products with the first vectors, compressed to feature maps; all maps are pooled (xDeepFM)."""

    def __init__(self, features: int, maps: int, layers: int) -> None:
        super().__init__()
        widths = [features, *([maps] * layers)]
        self.layers = nn.ModuleList(nn.Conv1d(features * width, maps, 1) for width in widths[:-1])
        self.output = nn.Linear(maps * layers, 1)

    def forward(self, vectors: Tensor) -> Tensor:
        maps = vectors
        pooled = []
        for layer in self.layers:
            products = vectors.unsqueeze(1) * maps.unsqueeze(2)
            maps = F.relu(layer(products.flatten(1, 2)))
            pooled.append(maps.sum(2))
        return self.output(torch.cat(pooled, 1)).squeeze(1)


class InteractingLayers(nn.Module):
    """Self-attention among the features (AutoInt)."""

    def __init__(self, features: int, width: int, heads: int, layers: int) -> None:
        super().__init__()
        self.attentions = nn.ModuleList(Attention(width, heads, bias=False) for _ in range(layers))
        self.residuals = nn.ModuleList(nn.Linear(width, width, bias=False) for _ in range(layers))
        self.output = nn.Linear(features * width, 1)

    def forward(self, vectors: Tensor) -> Tensor:
        for attention, residual in zip(self.attentions, self.residuals, strict=True):
            vectors = F.relu(attention(vectors) + residual(vectors))
        return self.output(vectors.flatten(1)).squeeze(1)


class InterestNetwork(nn.Module):
    """Weights a user's past items by a small network that sees each beside the candidate (DIN)."""

    def __init__(self, items: int, width: int, contexts: int) -> None:
        super().__init__()
        self.items = nn.Embedding(items, width)
        self.categories = nn.Embedding(1000, width)
        self.context = Embeddings(contexts, width)
        self.attention = perceptron((8 * width, 80, 40, 1), last_active=False)
        self.top = perceptron(((4 + contexts) * width, 200, 80, 1), last_active=False)

    def forward(
        self,
        history: Tensor,
        kinds: Tensor,
        item: Tensor,
        kind: Tensor,
        contexts: Tensor,
        clicks: Tensor | None = None,
    ) -> Tensor:
        past = torch.cat([self.items(history), self.categories(kinds)], 2)
        candidate = torch.cat([self.items(item), self.categories(kind)], 1)
        asked = candidate.unsqueeze(1).expand_as(past)
        weights = self.attention(torch.cat([asked, past, asked - past, asked * past], 2))
        interest = (weights * past).sum(1)
        scores = self.top(torch.cat([candidate, interest, *self.context(contexts)], 1))
        return click_loss(scores.squeeze(1), clicks)


class MultiGateExperts(nn.Module):
    """Shared experts, one gate and one tower per task (MMoE)."""

    def __init__(self, features: int, width: int, experts: int, tasks: int) -> None:
        super().__init__()
        self.embeddings = Embeddings(features, width)
        flat = features * width
        self.experts = nn.ModuleList(perceptron((flat, 256, 128)) for _ in range(experts))
        self.gates = nn.ModuleList(nn.Linear(flat, experts) for _ in range(tasks))
        self.towers = nn.ModuleList(perceptron((128, 64, 1), last_active=False) for _ in range(tasks))

    def forward(self, categories: Tensor, clicks: Tensor | None = None) -> Tensor:
        flat = torch.cat(self.embeddings(categories), 1)
        answers = torch.stack([expert(flat) for expert in self.experts], 1)
        scores = []
        for gate, tower in zip(self.gates, self.towers, strict=True):
            weights = torch.softmax(gate(flat), 1).unsqueeze(2)
            scores.append(tower((weights * answers).sum(1)))
        return click_loss(torch.cat(scores, 1), clicks)
