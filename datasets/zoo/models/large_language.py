"""Later language models: Llama and mixtures of experts."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..registry import definition
from .attention import Attention, RMSNorm, causal_bias, feed_forward
from .layers import token_loss
from .workload import Entry, token_workloads


def rotations(length: int, width: int, like: Tensor) -> tuple[Tensor, Tensor]:
    """Cosines and sines of rotary positions (Su et al. 2021), each [length, width / 2]."""
    powers = torch.arange(0, width, 2, device=like.device, dtype=like.dtype) / width
    angles = torch.arange(length, device=like.device, dtype=like.dtype)[:, None] / 10000.0 ** powers[None, :]
    return torch.cos(angles), torch.sin(angles)


def rotated(features: Tensor, cosines: Tensor, sines: Tensor) -> Tensor:
    """Turns each pair (first half, second half) by its angle."""
    first, second = features.chunk(2, -1)
    return torch.cat([first * cosines - second * sines, second * cosines + first * sines], -1)


class GroupedAttention(nn.Module):
    """Causal fused attention with rotary positions, where several query heads share one key head."""

    def __init__(self, width: int, heads: int, key_heads: int) -> None:
        super().__init__()
        self.heads, self.key_heads, self.size = heads, key_heads, width // heads
        self.query = nn.Linear(width, width, bias=False)
        self.key = nn.Linear(width, key_heads * self.size, bias=False)
        self.value = nn.Linear(width, key_heads * self.size, bias=False)
        self.output = nn.Linear(width, width, bias=False)

    def split(self, features: Tensor, heads: int) -> Tensor:
        batch, length, _ = features.shape
        return features.reshape(batch, length, heads, self.size).transpose(1, 2)

    def forward(self, features: Tensor, cosines: Tensor, sines: Tensor) -> Tensor:
        query = rotated(self.split(self.query(features), self.heads), cosines, sines)
        key = rotated(self.split(self.key(features), self.key_heads), cosines, sines)
        value = self.split(self.value(features), self.key_heads)
        repeats = self.heads // self.key_heads
        if repeats > 1:
            key, value = key.repeat_interleave(repeats, 1), value.repeat_interleave(repeats, 1)
        mixed = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        return self.output(mixed.transpose(1, 2).flatten(2))


class GatedFeedForward(nn.Module):
    """SwiGLU (Shazeer 2020)."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.gate = nn.Linear(width, hidden, bias=False)
        self.up = nn.Linear(width, hidden, bias=False)
        self.down = nn.Linear(hidden, width, bias=False)

    def forward(self, features: Tensor) -> Tensor:
        return self.down(F.silu(self.gate(features)) * self.up(features))


class Experts(nn.Module):
    """Top-k routing with dense dispatch: every expert sees a fixed number of slots (GShard).

    Args:
        width: Of the features.
        hidden: Of an expert.
        experts: Number of experts.
        chosen: Experts per token.
        capacity: Slots over the mean number of tokens per expert.
    """

    def __init__(self, width: int, hidden: int, experts: int, chosen: int, capacity: float) -> None:
        super().__init__()
        self.chosen, self.capacity = chosen, capacity
        self.router = nn.Linear(width, experts, bias=False)
        self.experts = nn.ModuleList(feed_forward(width, hidden, nn.ReLU) for _ in range(experts))

    def forward(self, features: Tensor) -> Tensor:
        tokens = features.flatten(0, 1)
        count, experts = tokens.shape[0], len(self.experts)
        slots = int(self.capacity * self.chosen * count / experts)
        probabilities = torch.softmax(self.router(tokens), 1)
        weights, choices = torch.topk(probabilities, self.chosen, 1)
        numbers = torch.arange(experts, device=tokens.device)
        assigned = (choices.unsqueeze(2) == numbers).to(tokens.dtype)
        place = torch.cumsum(assigned.flatten(0, 1), 0).reshape(assigned.shape) * assigned
        kept = assigned * (place <= slots).to(tokens.dtype)
        slot = (place.sum(2, keepdim=True) - 1).to(torch.int64)
        at_slot = (slot == torch.arange(slots, device=tokens.device)).to(tokens.dtype)
        dispatch = torch.einsum("tke,tkc->tec", kept, at_slot)
        combine = torch.einsum("tk,tke,tkc->tec", weights, kept, at_slot)
        gathered = torch.einsum("tec,td->ecd", dispatch, tokens)
        answers = [expert(part) for expert, part in zip(self.experts, gathered.unbind(0), strict=True)]
        return torch.einsum("tec,ecd->td", combine, torch.stack(answers)).reshape(features.shape)


class LlamaLayer(nn.Module):
    """Pre-norm attention and gated feed-forward."""

    def __init__(self, width: int, heads: int, key_heads: int, hidden: int) -> None:
        super().__init__()
        self.attention_norm = RMSNorm(width)
        self.attention = GroupedAttention(width, heads, key_heads)
        self.feed_forward_norm = RMSNorm(width)
        self.feed_forward = GatedFeedForward(width, hidden)

    def forward(self, features: Tensor, cosines: Tensor, sines: Tensor) -> Tensor:
        features = features + self.attention(self.attention_norm(features), cosines, sines)
        return features + self.feed_forward(self.feed_forward_norm(features))


class Llama(nn.Module):
    """Decoder with rotary positions and root mean square norms."""

    def __init__(self, layers: int, width: int, heads: int, key_heads: int, hidden: int) -> None:
        super().__init__()
        self.size = width // heads
        self.words = nn.Embedding(32000, width)
        self.layers = nn.ModuleList(LlamaLayer(width, heads, key_heads, hidden) for _ in range(layers))
        self.norm = RMSNorm(width)
        self.output = nn.Linear(width, 32000, bias=False)

    def forward(self, words: Tensor, targets: Tensor | None = None) -> Tensor:
        features = self.words(words)
        cosines, sines = rotations(words.shape[1], self.size, features)
        for layer in self.layers:
            features = layer(features, cosines, sines)
        logits = self.output(self.norm(features))
        return logits if targets is None else token_loss(logits, targets)


class ExpertLayer(nn.Module):
    """Pre-norm attention, then a feed-forward part or experts."""

    def __init__(self, width: int, heads: int, mix: nn.Module) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.mix_norm = nn.LayerNorm(width)
        self.mix = mix

    def forward(self, features: Tensor, bias: Tensor) -> Tensor:
        features = features + self.attention(self.attention_norm(features), bias=bias)
        return features + self.mix(self.mix_norm(features))


class MixtureOfExperts(nn.Module):
    """Decoder in which every other layer has experts."""

    def __init__(self, layers: int, width: int, heads: int, experts: int, chosen: int) -> None:
        super().__init__()
        self.words = nn.Embedding(32000, width)
        self.positions = nn.Embedding(512, width)
        self.layers = nn.ModuleList(
            ExpertLayer(
                width,
                heads,
                Experts(width, 4 * width, experts, chosen, 1.25)
                if index % 2
                else feed_forward(width, 4 * width),
            )
            for index in range(layers)
        )
        self.norm = nn.LayerNorm(width)
        self.output = nn.Linear(width, 32000, bias=False)

    def forward(self, words: Tensor, targets: Tensor | None = None) -> Tensor:
        features = self.words(words) + self.positions(torch.arange(words.shape[1], device=words.device))
        bias = causal_bias(words.shape[1], features)
        for layer in self.layers:
            features = layer(features, bias)
        logits = self.output(self.norm(features))
        return logits if targets is None else token_loss(logits, targets)


@definition(family="llama", source="own", licence="Apache-2.0")
def llama() -> Iterator[Entry]:
    """Touvron et al. 2023, "LLaMA: open and efficient foundation language models", the 7 billion one's layers in
    smaller numbers and widths; the second with grouped queries as in Llama 2.
    """
    for name, layers, width, heads, key_heads, hidden in (
        ("8l", 8, 2048, 16, 16, 5504),
        ("22l-grouped", 22, 2048, 32, 4, 5632),
        ("32l", 32, 4096, 32, 32, 11008),
    ):
        yield from token_workloads(
            f"llama-{name}",
            partial(Llama, layers, width, heads, key_heads, hidden),
            batch=1,
            length=1024,
            vocabulary=32000,
            layers=layers,
            width=width,
            heads=heads,
            key_heads=key_heads,
        )


@definition(family="switch-transformer", source="own", licence="Apache-2.0")
def mixture_of_experts() -> Iterator[Entry]:
    """Mixtures of experts with static shapes: Fedus et al. 2022, "Switch Transformers" (one expert per token) and
    Lepikhin et al. 2021, "GShard" (two per token); no balancing loss.
    """
    for layers, experts, chosen in ((4, 8, 1), (8, 8, 2), (12, 16, 2)):
        yield from token_workloads(
            f"moe-{layers}l-{experts}e-top{chosen}",
            partial(MixtureOfExperts, layers, 768, 12, experts, chosen),
            batch=4,
            length=256,
            vocabulary=32000,
            layers=layers,
            experts=experts,
            chosen=chosen,
        )
