"""Transformer-XL: attention over a segment and the cached one before it, with relative positions."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..registry import definition
from .attention import feed_forward, sinusoids
from .layers import token_loss
from .workload import Entry, Mode, ids, reals, workloads


def shift(scores: Tensor) -> Tensor:
    """Relative positions to absolute ones: row i moves left by (rows - 1 - i)."""
    batch, heads, rows, columns = scores.shape
    padded = F.pad(scores, (1, 0)).reshape(batch, heads, columns + 1, rows)
    return padded[:, :, 1:].reshape(batch, heads, rows, columns)


class RelativeAttention(nn.Module):
    """Multi-head attention whose scores add content and relative position, each with its own bias."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(width, width, bias=False)
        self.key_value = nn.Linear(width, 2 * width, bias=False)
        self.position = nn.Linear(width, width, bias=False)
        self.content_bias = nn.Parameter(torch.zeros(heads, 1, width // heads))
        self.position_bias = nn.Parameter(torch.zeros(heads, 1, width // heads))
        self.output = nn.Linear(width, width, bias=False)

    def split(self, features: Tensor) -> Tensor:
        batch, length, width = features.shape
        return features.reshape(batch, length, self.heads, width // self.heads).transpose(1, 2)

    def forward(self, features: Tensor, memory: Tensor, positions: Tensor) -> Tensor:
        seen = torch.cat([memory, features], 1)
        query = self.split(self.query(features))
        key, value = (self.split(half) for half in self.key_value(seen).chunk(2, 2))
        position = self.split(self.position(positions).unsqueeze(0))
        content_scores = (query + self.content_bias) @ key.transpose(2, 3)
        position_scores = shift((query + self.position_bias) @ position.transpose(2, 3))
        scores = (content_scores + position_scores) / math.sqrt(query.shape[-1])
        rows = torch.arange(features.shape[1], device=features.device)
        columns = torch.arange(seen.shape[1], device=features.device)
        later = columns[None, :] > rows[:, None] + memory.shape[1]
        weights = torch.softmax(scores.masked_fill(later, -1e9), 3)
        return self.output((weights @ value).transpose(1, 2).flatten(2))


class Layer(nn.Module):
    """Relative attention and feed-forward, each followed by residual and normalisation."""

    def __init__(self, width: int, heads: int, hidden: int) -> None:
        super().__init__()
        self.attention = RelativeAttention(width, heads)
        self.attention_norm = nn.LayerNorm(width)
        self.feed_forward = feed_forward(width, hidden, nn.ReLU)
        self.feed_forward_norm = nn.LayerNorm(width)

    def forward(self, features: Tensor, memory: Tensor, positions: Tensor) -> Tensor:
        features = self.attention_norm(features + self.attention(features, memory, positions))
        return self.feed_forward_norm(features + self.feed_forward(features))


class TransformerXL(nn.Module):
    """Several segments one after the other within one step; a layer's input is the next segment's memory.

    Args:
        layers: Number of layers.
        width: Of the features.
        heads: Attention heads.
        hidden: Of the feed-forward parts.
        vocabulary: Number of words.
        segment: Words per segment, and positions remembered.
    """

    def __init__(
        self, layers: int, width: int, heads: int, hidden: int, vocabulary: int, segment: int
    ) -> None:
        super().__init__()
        self.width = width
        self.segment = segment
        self.embedding = nn.Embedding(vocabulary, width)
        self.layers = nn.ModuleList(Layer(width, heads, hidden) for _ in range(layers))
        self.output = nn.Linear(width, vocabulary)

    def forward(self, words: Tensor, memories: Tensor, targets: Tensor | None = None) -> Tensor:
        """Words [batch, segments x segment]; memories [layers, batch, segment, width]."""
        remembered = list(memories.unbind(0))
        positions = sinusoids(2 * self.segment, self.width, memories).flip(0)
        logits, losses = [], []
        for start in range(0, words.shape[1], self.segment):
            features = self.embedding(words[:, start : start + self.segment])
            for index, layer in enumerate(self.layers):
                memory, remembered[index] = remembered[index], features.detach()
                features = layer(features, memory, positions)
            logits.append(self.output(features))
            if targets is not None:
                losses.append(token_loss(logits[-1], targets[:, start : start + self.segment]))
        return torch.stack(losses).mean() if losses else torch.cat(logits, 1)


def entries(
    name: str, layers: int, segments: int, *, segment: int, modes: tuple[Mode, ...] = ("train", "infer")
) -> Iterator[Entry]:
    """Graphs of a network that is 1,024 wide, 16 heads, 10,000 words."""
    batch, width, heads, hidden, vocabulary = 16, 1024, 16, 4096, 10000
    yield from workloads(
        name,
        partial(TransformerXL, layers, width, heads, hidden, vocabulary, segment),
        inputs=(ids(vocabulary, batch, segments * segment), reals(layers, batch, segment, width)),
        targets=(ids(vocabulary, batch, segments * segment),),
        batch=batch,
        optimizer="adam",
        modes=modes,
        layers=layers,
        width=width,
        heads=heads,
        hidden=hidden,
        vocabulary=vocabulary,
        segments=segments,
        segment=segment,
    )


@definition(family="transformer-xl", source="own", licence="Apache-2.0", workload=True)
def transformer_xl() -> Iterator[Entry]:
    """Transformer-XL of GDP (Zhou et al. 2019) after Dai et al. 2019, "Transformer-XL: attentive language
    models beyond a fixed-length context". The papers do not give sizes; ours: 1,024 wide, 16 heads, 10,000
    words, 4 segments of 128 words with as many remembered, batch 16; plain softmax, dropout left out.
    """
    for layers in (2, 4, 8):
        yield from entries(f"transformer-xl-{layers}l", layers, 4, segment=128, modes=("train",))


@definition(family="transformer-xl", source="own", licence="Apache-2.0")
def transformer_xl_segments() -> Iterator[Entry]:
    """Transformer-XL (Dai et al. 2019) with other numbers of layers and segments; plain softmax, dropout left
    out.
    """
    yield from entries("transformer-xl-12l-1s", 12, 1, segment=128)
    yield from entries("transformer-xl-3l-8s", 3, 8, segment=64)
    yield from entries("transformer-xl-6l-2s", 6, 2, segment=192)
