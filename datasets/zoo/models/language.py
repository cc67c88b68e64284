"""Transformer language models: BERT, ALBERT, GPT-2, the original Transformer, Universal Transformer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..registry import definition
from .attention import TransformerLayer, causal_bias, sinusoids
from .layers import token_loss
from .workload import Entry, ids, reals, token_workloads, workloads


class BERT(nn.Module):
    """Embeddings of words, positions and segments, post-norm layers, masked language model head.

    Args:
        layers: Number of layers.
        width: Of the features.
        heads: Attention heads.
        vocabulary: Number of word pieces.
        shared: One layer for all depths, and narrow embeddings (ALBERT).
    """

    def __init__(self, layers: int, width: int, heads: int, vocabulary: int, *, shared: bool = False) -> None:
        super().__init__()
        narrow = 128 if shared else width
        self.words = nn.Embedding(vocabulary, narrow)
        self.positions = nn.Embedding(512, narrow)
        self.segments = nn.Embedding(2, narrow)
        self.norm = nn.LayerNorm(narrow)
        self.widen = nn.Linear(narrow, width) if shared else nn.Identity()
        layer = partial(TransformerLayer, width, heads, 4 * width, norm_first=False)
        self.depth = layers
        self.layers = nn.ModuleList(layer() for _ in range(1 if shared else layers))
        self.transform = nn.Sequential(nn.Linear(width, narrow), nn.GELU(), nn.LayerNorm(narrow))
        self.bias = nn.Parameter(torch.zeros(vocabulary))

    def forward(self, words: Tensor, segments: Tensor, mask: Tensor, targets: Tensor | None = None) -> Tensor:
        positions = torch.arange(words.shape[1], device=words.device)
        embedded = self.words(words) + self.segments(segments) + self.positions(positions)
        features = self.widen(self.norm(embedded))
        bias = ((1 - mask) * -1e9)[:, None, None, :]
        layers = list(self.layers)
        for depth in range(self.depth):
            features = layers[depth % len(layers)](features, bias)
        logits = F.linear(self.transform(features), self.words.weight, self.bias)
        return logits if targets is None else token_loss(logits, targets)


class GPT2(nn.Module):
    """Learned positions, pre-norm causal layers, output tied to the embedding."""

    def __init__(self, layers: int, width: int, heads: int, *, fused: bool, context: int = 1024) -> None:
        super().__init__()
        self.words = nn.Embedding(50257, width)
        self.positions = nn.Embedding(context, width)
        self.layers = nn.ModuleList(
            TransformerLayer(width, heads, 4 * width, fused=fused) for _ in range(layers)
        )
        self.norm = nn.LayerNorm(width)

    def forward(self, words: Tensor, targets: Tensor | None = None) -> Tensor:
        positions = torch.arange(words.shape[1], device=words.device)
        features = self.words(words) + self.positions(positions)
        bias = causal_bias(words.shape[1], features)
        for layer in self.layers:
            features = layer(features, bias)
        logits = F.linear(self.norm(features), self.words.weight)
        return logits if targets is None else token_loss(logits, targets)


class Transformer(nn.Module):
    """Encoder and decoder with sinusoidal positions; one matrix embeds both languages and gives the logits.

    Args:
        layers: Of the encoder and of the decoder.
        width: Of the features.
        heads: Attention heads.
        hidden: Of the feed-forward parts.
        vocabulary: Number of word pieces.
        universal: One layer is applied again and again, with the step added to the positions.
    """

    def __init__(
        self, layers: int, width: int, heads: int, hidden: int, vocabulary: int, *, universal: bool = False
    ) -> None:
        super().__init__()
        self.depth = layers
        self.width = width
        self.universal = universal
        self.words = nn.Embedding(vocabulary, width)
        distinct = 1 if universal else layers
        layer = partial(TransformerLayer, width, heads, hidden, norm_first=False, activation=nn.ReLU)
        self.encoder = nn.ModuleList(layer() for _ in range(distinct))
        self.decoder = nn.ModuleList(layer(cross=True) for _ in range(distinct))

    def marked(self, features: Tensor, step: int) -> Tensor:
        """Universal Transformers add the coordinates of place and step before every step."""
        if not self.universal:
            return features
        places = sinusoids(features.shape[1], self.width, features)
        return features + places + sinusoids(step + 1, self.width, features)[step]

    def forward(self, source: Tensor, shifted: Tensor, targets: Tensor | None = None) -> Tensor:
        memory = self.words(source) * self.width**0.5
        features = self.words(shifted) * self.width**0.5
        if not self.universal:
            memory = memory + sinusoids(source.shape[1], self.width, memory)
            features = features + sinusoids(shifted.shape[1], self.width, features)
        encoder, decoder = list(self.encoder), list(self.decoder)
        for step in range(self.depth):
            memory = encoder[step % len(encoder)](self.marked(memory, step))
        bias = causal_bias(shifted.shape[1], features)
        for step in range(self.depth):
            features = decoder[step % len(decoder)](self.marked(features, step), bias, memory)
        logits = F.linear(features, self.words.weight)
        return logits if targets is None else token_loss(logits, targets)


@definition(family="bert", source="own", licence="Apache-2.0")
def bert() -> Iterator[Entry]:
    """Devlin et al. 2019, "BERT: pre-training of deep bidirectional transformers": base, large and a small one,
    masked language modelling over 128 word pieces; dropout left out.
    """
    for name, layers, width, heads in (("small", 4, 512, 8), ("base", 12, 768, 12), ("large", 24, 1024, 16)):
        yield from bert_entries(f"bert-{name}", layers, width, heads, 30522, shared=False)


@definition(family="albert", source="own", licence="Apache-2.0")
def albert() -> Iterator[Entry]:
    """Lan et al. 2020, "ALBERT: a lite BERT for self-supervised learning of language representations": one layer
    shared by all depths.
    """
    for name, layers, width, heads in (("base", 12, 768, 12), ("large", 24, 1024, 16)):
        yield from bert_entries(f"albert-{name}", layers, width, heads, 30000, shared=True)


def bert_entries(
    name: str, layers: int, width: int, heads: int, vocabulary: int, *, shared: bool
) -> Iterator[Entry]:
    """Graphs of one BERT."""
    yield from workloads(
        name,
        partial(BERT, layers, width, heads, vocabulary, shared=shared),
        inputs=(ids(vocabulary, 16, 128), ids(2, 16, 128), reals(16, 128)),
        targets=(ids(vocabulary, 16, 128),),
        batch=16,
        optimizer="adam",
        layers=layers,
        width=width,
        heads=heads,
        length=128,
    )


@definition(family="gpt2", source="own", licence="Apache-2.0")
def gpt2() -> Iterator[Entry]:
    """Radford et al. 2019, "Language models are unsupervised multitask learners": small and medium with attention
    from products and softmax, large with fused attention; dropout left out.
    """
    for name, layers, width, heads, fused in (
        ("small", 12, 768, 12, False),
        ("medium", 24, 1024, 16, False),
        ("large-fused", 36, 1280, 20, True),
    ):
        yield from token_workloads(
            f"gpt2-{name}",
            partial(GPT2, layers, width, heads, fused=fused),
            batch=4,
            length=512,
            vocabulary=50257,
            optimizer="adam",
            layers=layers,
            width=width,
            heads=heads,
            fused_attention=fused,
        )


def translation(
    name: str, network: Callable[[], nn.Module], vocabulary: int, **configuration: Any
) -> Iterator[Entry]:
    """Graphs of an encoder and decoder over 64 word pieces each."""
    yield from workloads(
        name,
        network,
        inputs=(ids(vocabulary, 16, 64), ids(vocabulary, 16, 64)),
        targets=(ids(vocabulary, 16, 64),),
        batch=16,
        optimizer="adam",
        source_length=64,
        target_length=64,
        **configuration,
    )


@definition(family="transformer", source="own", licence="Apache-2.0")
def transformer() -> Iterator[Entry]:
    """Vaswani et al. 2017, "Attention is all you need": base, a shallower and a deeper one; dropout left out."""
    for name, layers, width, heads in (("3l", 3, 512, 8), ("base", 6, 512, 8), ("deep", 12, 1024, 16)):
        network = partial(Transformer, layers, width, heads, 4 * width, 37000)
        yield from translation(f"transformer-{name}", network, 37000, layers=layers, width=width, heads=heads)


@definition(family="universal-transformer", source="own", licence="Apache-2.0")
def universal_transformer() -> Iterator[Entry]:
    """Dehghani et al. 2019, "Universal Transformers": a fixed number of steps, no adaptive halting."""
    for steps in (6, 10):
        network = partial(Transformer, steps, 512, 8, 2048, 37000, universal=True)
        yield from translation(
            f"universal-transformer-{steps}", network, 37000, steps=steps, width=512, heads=8
        )
