"""Attention of less than quadratic cost and its substitutes: Performer, Linformer, Longformer, Perceiver, RetNet."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..registry import definition
from .attention import Attention, attend, feed_forward
from .layers import token_loss
from .workload import Entry, token_workloads


class Heads(nn.Module):
    """Projections of queries, keys and values, and back; what happens between is the subclass's."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width)
        self.output = nn.Linear(width, width)

    def mix(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        """[batch, heads, length, size] each; gives the same shape."""
        raise NotImplementedError

    def forward(self, features: Tensor) -> Tensor:
        batch, length, width = features.shape
        shape = (batch, length, self.heads, width // self.heads)
        query, key, value = (
            project(features).reshape(shape).transpose(1, 2) for project in (self.query, self.key, self.value)
        )
        return self.output(self.mix(query, key, value).transpose(1, 2).reshape(batch, length, width))


class RandomFeatures(Heads):
    """Softmax by positive random features, so that keys meet values first (Performer)."""

    def __init__(self, width: int, heads: int, length: int) -> None:
        super().__init__(width, heads)
        self.register_buffer("directions", torch.zeros(width // heads, 128))

    def mapped(self, features: Tensor) -> Tensor:
        """Random features of queries or keys."""
        scaled = features * features.shape[-1] ** -0.25
        projected = scaled @ self.get_buffer("directions")
        return torch.exp(projected - 0.5 * (scaled * scaled).sum(-1, keepdim=True)) + 1e-4

    def mix(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        query, key = self.mapped(query), self.mapped(key)
        norm = query @ key.sum(2).unsqueeze(3)
        return query @ (key.transpose(2, 3) @ value) / norm


class LowRank(Heads):
    """Keys and values are projected from all places to a few (Linformer)."""

    def __init__(self, width: int, heads: int, length: int) -> None:
        super().__init__(width, heads)
        self.shrink_keys = nn.Linear(length, 128, bias=False)
        self.shrink_values = nn.Linear(length, 128, bias=False)

    def mix(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        key = self.shrink_keys(key.transpose(2, 3)).transpose(2, 3)
        value = self.shrink_values(value.transpose(2, 3)).transpose(2, 3)
        return attend(query, key, value)


class Local(Heads):
    """Every block of 64 places sees itself and its two neighbours, and all see the first block (Longformer)."""

    def __init__(self, width: int, heads: int, length: int) -> None:
        super().__init__(width, heads)

    def mix(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        queries, keys, values = (torch.split(part, 64, 2) for part in (query, key, value))
        mixed = []
        for index, block in enumerate(queries):
            seen = sorted({0, *range(max(0, index - 1), min(len(keys), index + 2))})
            near = torch.cat([keys[other] for other in seen], 2)
            mixed.append(attend(block, near, torch.cat([values[other] for other in seen], 2)))
        return torch.cat(mixed, 2)


class Synthesizer(nn.Module):
    """Attention weights from a perceptron of each place alone, without queries and keys."""

    def __init__(self, width: int, heads: int, length: int) -> None:
        super().__init__()
        self.heads, self.length = heads, length
        self.weights = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, heads * length))
        self.value = nn.Linear(width, width)
        self.output = nn.Linear(width, width)

    def forward(self, features: Tensor) -> Tensor:
        batch, length, width = features.shape
        scores = self.weights(features).reshape(batch, length, self.heads, self.length).transpose(1, 2)
        value = self.value(features).reshape(batch, length, self.heads, width // self.heads).transpose(1, 2)
        return self.output((torch.softmax(scores, 3) @ value).transpose(1, 2).reshape(batch, length, width))


class Retention(Heads):
    """Decaying causal mixing without softmax, each head normalised and gated (RetNet)."""

    def __init__(self, width: int, heads: int, length: int) -> None:
        super().__init__(width, heads)
        self.gate = nn.Linear(width, width)
        self.norm = nn.LayerNorm(width // heads, elementwise_affine=False)

    def mix(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        places = torch.arange(query.shape[2], device=query.device, dtype=query.dtype)
        heads = torch.arange(self.heads, device=query.device, dtype=query.dtype)
        decay = torch.log(1 - 2.0 ** (-5 - heads))[:, None, None]
        distance = places[:, None] - places[None, :]
        weights = torch.exp(decay * distance.clamp(min=0)) * (distance >= 0).to(query.dtype)
        return self.norm((query @ key.transpose(2, 3) * query.shape[-1] ** -0.5 * weights) @ value)

    def forward(self, features: Tensor) -> Tensor:
        batch, length, width = features.shape
        shape = (batch, length, self.heads, width // self.heads)
        query, key, value = (
            project(features).reshape(shape).transpose(1, 2) for project in (self.query, self.key, self.value)
        )
        mixed = self.mix(query, key, value).transpose(1, 2).reshape(batch, length, width)
        return self.output(F.silu(self.gate(features)) * mixed)


#: Makes the mixing part of a layer: (width, heads, length) to module.
Mixing = Callable[[int, int, int], nn.Module]


class Layer(nn.Module):
    """Pre-norm mixing and feed-forward."""

    def __init__(self, mixing: nn.Module, width: int) -> None:
        super().__init__()
        self.mixing_norm = nn.LayerNorm(width)
        self.mixing = mixing
        self.feed_forward_norm = nn.LayerNorm(width)
        self.feed_forward = feed_forward(width, 4 * width)

    def forward(self, features: Tensor) -> Tensor:
        features = features + self.mixing(self.mixing_norm(features))
        return features + self.feed_forward(self.feed_forward_norm(features))


class SequenceModel(nn.Module):
    """Embedding, learned positions, layers, softmax."""

    def __init__(
        self, mixing: Mixing, layers: int, width: int, heads: int, length: int, vocabulary: int
    ) -> None:
        super().__init__()
        self.words = nn.Embedding(vocabulary, width)
        self.positions = nn.Parameter(torch.zeros(length, width))
        self.layers = nn.ModuleList(Layer(mixing(width, heads, length), width) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.output = nn.Linear(width, vocabulary)

    def forward(self, words: Tensor, targets: Tensor | None = None) -> Tensor:
        features = self.words(words) + self.positions
        for layer in self.layers:
            features = layer(features)
        logits = self.output(self.norm(features))
        return logits if targets is None else token_loss(logits, targets)


class CrossLayer(nn.Module):
    """Attention to something else, and feed-forward."""

    def __init__(self, width: int, memory: int, heads: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.memory_norm = nn.LayerNorm(memory)
        self.attention = Attention(width, heads, memory=memory)
        self.feed_forward_norm = nn.LayerNorm(width)
        self.feed_forward = feed_forward(width, width)

    def forward(self, features: Tensor, memory: Tensor) -> Tensor:
        features = features + self.attention(self.norm(features), self.memory_norm(memory))
        return features + self.feed_forward(self.feed_forward_norm(features))


class PerceiverIO(nn.Module):
    """A few latent vectors ask the input, think, and are asked by the output's places."""

    def __init__(self, layers: int, repeats: int, length: int, vocabulary: int) -> None:
        super().__init__()
        self.repeats = repeats
        self.words = nn.Embedding(vocabulary, 256)
        self.positions = nn.Parameter(torch.zeros(length, 256))
        self.latents = nn.Parameter(torch.zeros(256, 512))
        self.encoder = CrossLayer(512, 256, 8)
        self.layers = nn.ModuleList(Layer(Attention(512, 8), 512) for _ in range(layers))
        self.decoder = CrossLayer(256, 512, 8)
        self.output = nn.Linear(256, vocabulary)

    def forward(self, words: Tensor, targets: Tensor | None = None) -> Tensor:
        memory = self.words(words) + self.positions
        features = self.latents.expand(words.shape[0], -1, -1)
        for _ in range(self.repeats):
            features = self.encoder(features, memory)
            for layer in self.layers:
                features = layer(features)
        places = self.positions.expand(words.shape[0], -1, -1)
        logits = self.output(self.decoder(places, features))
        return logits if targets is None else token_loss(logits, targets)


def sequence_models(name: str, mixing: Mixing, length: int, **configuration: Any) -> Iterator[Entry]:
    """Graphs of 6 and 12 layers."""
    for layers, width, heads in ((6, 512, 8), (12, 768, 12)):
        yield from token_workloads(
            f"{name}-{layers}l",
            partial(SequenceModel, mixing, layers, width, heads, length, 32000),
            batch=4,
            length=length,
            vocabulary=32000,
            layers=layers,
            width=width,
            heads=heads,
            **configuration,
        )


@definition(family="performer", source="own", licence="Apache-2.0")
def performer() -> Iterator[Entry]:
    """Choromanski et al. 2021, "Rethinking attention with performers": 128 random features, both directions."""
    yield from sequence_models("performer", RandomFeatures, 1024)


@definition(family="linformer", source="own", licence="Apache-2.0")
def linformer() -> Iterator[Entry]:
    """Wang et al. 2020, "Linformer: self-attention with linear complexity": rank 128."""
    yield from sequence_models("linformer", LowRank, 1024)


@definition(family="longformer", source="own", licence="Apache-2.0")
def longformer() -> Iterator[Entry]:
    """Beltagy et al. 2020, "Longformer: the long-document transformer": blocks of 64, the first one global."""
    yield from sequence_models("longformer", Local, 1024, block=64)


@definition(family="synthesizer", source="own", licence="Apache-2.0")
def synthesizer() -> Iterator[Entry]:
    """Tay et al. 2021, "Synthesizer: rethinking self-attention for transformer models": dense."""
    yield from sequence_models("synthesizer", Synthesizer, 256)


@definition(family="retnet", source="own", licence="Apache-2.0")
def retnet() -> Iterator[Entry]:
    """Sun et al. 2023, "Retentive network: a successor to transformer for large language models": the parallel
    form.
    """
    yield from sequence_models("retnet", Retention, 512)


@definition(family="perceiver-io", source="own", licence="Apache-2.0")
def perceiver_io() -> Iterator[Entry]:
    """Jaegle et al. 2022, "Perceiver IO: a general architecture for structured inputs and outputs": 256 latent
    vectors over 1,024 bytes, once and three times.
    """
    for layers, repeats in ((8, 1), (4, 3)):
        yield from token_workloads(
            f"perceiver-io-{layers}l-{repeats}x",
            partial(PerceiverIO, layers, repeats, 1024, 262),
            batch=8,
            length=1024,
            vocabulary=262,
            layers=layers,
            repeats=repeats,
        )
