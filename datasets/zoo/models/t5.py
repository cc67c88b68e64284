"""T5: a transformer from text to text with learned relative position biases."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..registry import definition
from .attention import RMSNorm, causal_bias
from .language import translation
from .layers import token_loss
from .workload import Entry


class T5Attention(nn.Module):
    """Attention without scaling or biases; its scores are shifted by what the stack's first layer learned."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value, self.output = (
            nn.Linear(width, 64 * heads, bias=False),
            nn.Linear(width, 64 * heads, bias=False),
            nn.Linear(width, 64 * heads, bias=False),
            nn.Linear(64 * heads, width, bias=False),
        )

    def forward(self, features: Tensor, memory: Tensor, bias: Tensor | None) -> Tensor:
        def split(projected: Tensor) -> Tensor:
            batch, length, _ = projected.shape
            return projected.reshape(batch, length, self.heads, 64).transpose(1, 2)

        query, key, value = split(self.query(features)), split(self.key(memory)), split(self.value(memory))
        scores = query @ key.transpose(2, 3)
        weights = torch.softmax(scores if bias is None else scores + bias, 3)
        return self.output((weights @ value).transpose(1, 2).flatten(2))


class T5Layer(nn.Module):
    """Pre-norm by root mean square; feed-forward with ReLU."""

    def __init__(self, width: int, heads: int, hidden: int, *, cross: bool) -> None:
        super().__init__()
        self.attention = T5Attention(width, heads)
        self.attention_norm = RMSNorm(width)
        self.cross_attention = T5Attention(width, heads) if cross else None
        self.cross_norm = RMSNorm(width) if cross else None
        self.feed_forward = nn.Sequential(
            nn.Linear(width, hidden, bias=False), nn.ReLU(), nn.Linear(hidden, width, bias=False)
        )
        self.feed_forward_norm = RMSNorm(width)

    def forward(self, features: Tensor, bias: Tensor, memory: Tensor | None = None) -> Tensor:
        normal = self.attention_norm(features)
        features = features + self.attention(normal, normal, bias)
        if self.cross_attention is not None and self.cross_norm is not None:
            features = features + self.cross_attention(self.cross_norm(features), memory, None)
        return features + self.feed_forward(self.feed_forward_norm(features))


class RelativeBias(nn.Module):
    """A learned number per head and bucket of distance; buckets grow logarithmically from 16 (or 8) on."""

    def __init__(self, heads: int, *, causal: bool) -> None:
        super().__init__()
        self.causal = causal
        self.table = nn.Embedding(32, heads)

    def forward(self, length: int) -> Tensor:
        positions = torch.arange(length, device=self.table.weight.device)
        distance = positions[:, None] - positions[None, :]
        offset = torch.zeros_like(distance)
        buckets = 32
        if self.causal:
            distance = distance.clamp(min=0)
        else:
            buckets = 16
            offset = (distance < 0).to(distance.dtype) * buckets
            distance = distance.abs()
        exact = buckets // 2
        far = torch.log(distance.clamp(min=1).to(torch.float32) / exact) / math.log(128 / exact)
        coarse = (exact + (far * (buckets - exact)).to(torch.int64)).clamp(max=buckets - 1)
        bucket = torch.where(distance < exact, distance, coarse) + offset
        return self.table(bucket).permute(2, 0, 1).unsqueeze(0)


class T5(nn.Module):
    """Encoder and decoder with relative position biases; logits from the embedding, scaled."""

    def __init__(self, layers: int, width: int, heads: int, hidden: int) -> None:
        super().__init__()
        self.width = width
        self.words = nn.Embedding(32128, width)
        self.encoder_bias = RelativeBias(heads, causal=False)
        self.decoder_bias = RelativeBias(heads, causal=True)
        self.encoder = nn.ModuleList(T5Layer(width, heads, hidden, cross=False) for _ in range(layers))
        self.decoder = nn.ModuleList(T5Layer(width, heads, hidden, cross=True) for _ in range(layers))
        self.encoder_norm = RMSNorm(width)
        self.decoder_norm = RMSNorm(width)

    def forward(self, source: Tensor, shifted: Tensor, targets: Tensor | None = None) -> Tensor:
        memory, bias = self.words(source), self.encoder_bias(source.shape[1])
        for layer in self.encoder:
            memory = layer(memory, bias)
        memory = self.encoder_norm(memory)
        features = self.words(shifted)
        bias = self.decoder_bias(shifted.shape[1]) + causal_bias(shifted.shape[1], features)
        for layer in self.decoder:
            features = layer(features, bias, memory)
        logits = F.linear(self.decoder_norm(features) * self.width**-0.5, self.words.weight)
        return logits if targets is None else token_loss(logits, targets)


@definition(family="t5", source="own", licence="Apache-2.0")
def t5() -> Iterator[Entry]:
    """Raffel et al. 2020, "Exploring the limits of transfer learning with a unified text-to-text transformer":
    small and base of version 1; dropout left out.
    """
    for name, layers, width, heads, hidden in (("small", 6, 512, 8, 2048), ("base", 12, 768, 12, 3072)):
        network = partial(T5, layers, width, heads, hidden)
        yield from translation(f"t5-{name}", network, 32128, layers=layers, width=width, heads=heads)
