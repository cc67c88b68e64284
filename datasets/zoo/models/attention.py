"""Layers of transformers: attention, feed-forward, positions, normalisation."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .layers import Activation


def attend(query: Tensor, key: Tensor, value: Tensor, bias: Tensor | None = None) -> Tensor:
    """Softmax attention from its parts: product, scale, bias (a mask or positions), softmax, product."""
    scores = query @ key.transpose(-1, -2) / math.sqrt(query.shape[-1])
    if bias is not None:
        scores = scores + bias
    return torch.softmax(scores, -1) @ value


def causal_bias(length: int, like: Tensor) -> Tensor:
    """What is added to scores so that no position sees a later one."""
    positions = torch.arange(length, device=like.device)
    later = positions[None, :] > positions[:, None]
    return later.to(like.dtype) * -1e9


def sinusoids(length: int, width: int, like: Tensor) -> Tensor:
    """Sines and cosines of the positions (Vaswani et al. 2017), shape [length, width]."""
    positions = torch.arange(length, device=like.device, dtype=like.dtype)
    powers = torch.arange(0, width, 2, device=like.device, dtype=like.dtype) / width
    angles = positions[:, None] / 10000.0 ** powers[None, :]
    return torch.cat([torch.sin(angles), torch.cos(angles)], 1)


class Attention(nn.Module):
    """Multi-head attention with separate projections of query, key and value.

    Args:
        width: Of input and output.
        heads: Number of heads.
        bias: Of the projections.
        memory: Width of what is attended to, where it is not the input itself.
        fused: One fused op instead of products and softmax.
    """

    def __init__(
        self, width: int, heads: int, *, bias: bool = True, memory: int | None = None, fused: bool = False
    ) -> None:
        super().__init__()
        self.heads = heads
        self.fused = fused
        self.query = nn.Linear(width, width, bias=bias)
        self.key = nn.Linear(memory or width, width, bias=bias)
        self.value = nn.Linear(memory or width, width, bias=bias)
        self.output = nn.Linear(width, width, bias=bias)

    def split(self, features: Tensor) -> Tensor:
        """[batch, length, width] to [batch, heads, length, width / heads]."""
        batch, length, width = features.shape
        return features.reshape(batch, length, self.heads, width // self.heads).transpose(1, 2)

    def forward(self, features: Tensor, memory: Tensor | None = None, bias: Tensor | None = None) -> Tensor:
        memory = features if memory is None else memory
        query = self.split(self.query(features))
        key, value = self.split(self.key(memory)), self.split(self.value(memory))
        if self.fused:
            mixed = F.scaled_dot_product_attention(query, key, value, attn_mask=bias)
        else:
            mixed = attend(query, key, value, bias)
        return self.output(mixed.transpose(1, 2).flatten(2))


def feed_forward(width: int, hidden: int, activation: Activation = nn.GELU) -> nn.Sequential:
    """Two linear layers with an activation between them."""
    return nn.Sequential(nn.Linear(width, hidden), activation(), nn.Linear(hidden, width))


class TransformerLayer(nn.Module):
    """Self-attention, attention to a memory if there is one, feed-forward; each residual and normalised."""

    def __init__(
        self,
        width: int,
        heads: int,
        hidden: int,
        *,
        norm_first: bool = True,
        activation: Activation = nn.GELU,
        cross: bool = False,
        fused: bool = False,
    ) -> None:
        super().__init__()
        self.norm_first = norm_first
        self.attention = Attention(width, heads, fused=fused)
        self.attention_norm = nn.LayerNorm(width)
        if cross:
            self.cross_attention = Attention(width, heads, fused=fused)
            self.cross_norm = nn.LayerNorm(width)
        self.feed_forward = feed_forward(width, hidden, activation)
        self.feed_forward_norm = nn.LayerNorm(width)

    def forward(self, features: Tensor, bias: Tensor | None = None, memory: Tensor | None = None) -> Tensor:
        if self.norm_first:
            features = features + self.attention(self.attention_norm(features), bias=bias)
            if memory is not None:
                features = features + self.cross_attention(self.cross_norm(features), memory)
            return features + self.feed_forward(self.feed_forward_norm(features))
        features = self.attention_norm(features + self.attention(features, bias=bias))
        if memory is not None:
            features = self.cross_norm(features + self.cross_attention(features, memory))
        return self.feed_forward_norm(features + self.feed_forward(features))


class RMSNorm(nn.Module):
    """Division by the root mean square, with a gain (Zhang and Sennrich 2019)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.ones(width))

    def forward(self, features: Tensor) -> Tensor:
        mean_square = features.pow(2).mean(-1, keepdim=True)
        return features * torch.rsqrt(mean_square + 1e-6) * self.gain
