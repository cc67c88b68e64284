"""Transformers over image patches: ViT, CaiT, Swin."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..registry import definition
from .attention import Attention, TransformerLayer, attend, feed_forward
from .workload import Entry, image_workloads


class Patches(nn.Module):
    """Non-overlapping patches to vectors, [batch, patches, width]."""

    def __init__(self, size: int, width: int) -> None:
        super().__init__()
        self.project = nn.Conv2d(3, width, size, size)

    def forward(self, images: Tensor) -> Tensor:
        return self.project(images).flatten(2).transpose(1, 2)


class ViT(nn.Module):
    """A class token before the patches, learned positions, pre-norm layers."""

    def __init__(self, layers: int, width: int, heads: int, *, patch: int = 16, fused: bool = False) -> None:
        super().__init__()
        self.patches = Patches(patch, width)
        self.token = nn.Parameter(torch.zeros(1, 1, width))
        self.positions = nn.Parameter(torch.zeros(1, (224 // patch) ** 2 + 1, width))
        self.layers = nn.ModuleList(
            TransformerLayer(width, heads, 4 * width, fused=fused) for _ in range(layers)
        )
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, 1000)

    def forward(self, images: Tensor, labels: Tensor | None = None) -> Tensor:
        patches = self.patches(images)
        token = self.token.expand(patches.shape[0], -1, -1)
        features = torch.cat([token, patches], 1) + self.positions
        for layer in self.layers:
            features = layer(features)
        logits = self.head(self.norm(features)[:, 0])
        return logits if labels is None else F.cross_entropy(logits, labels)


class ClassAttention(nn.Module):
    """Only the class token asks; it sees itself and all patches (CaiT)."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.attention_scale = nn.Parameter(torch.ones(width))
        self.feed_forward_norm = nn.LayerNorm(width)
        self.feed_forward = feed_forward(width, 4 * width)
        self.feed_forward_scale = nn.Parameter(torch.ones(width))

    def forward(self, token: Tensor, patches: Tensor) -> Tensor:
        seen = self.norm(torch.cat([token, patches], 1))
        token = token + self.attention_scale * self.attention(seen[:, :1], seen)
        return token + self.feed_forward_scale * self.feed_forward(self.feed_forward_norm(token))


class TalkingHeads(nn.Module):
    """Attention whose heads are mixed before and after the softmax, with scaled residuals (CaiT)."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm = nn.LayerNorm(width)
        self.query_key_value = nn.Linear(width, 3 * width)
        self.before = nn.Linear(heads, heads)
        self.after = nn.Linear(heads, heads)
        self.output = nn.Linear(width, width)
        self.attention_scale = nn.Parameter(torch.ones(width))
        self.feed_forward_norm = nn.LayerNorm(width)
        self.feed_forward = feed_forward(width, 4 * width)
        self.feed_forward_scale = nn.Parameter(torch.ones(width))

    def forward(self, features: Tensor) -> Tensor:
        batch, length, width = features.shape
        parts = self.query_key_value(self.norm(features))
        parts = parts.reshape(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        query, key, value = parts.unbind(0)
        scores = (query * (width // self.heads) ** -0.5) @ key.transpose(2, 3)
        weights = torch.softmax(self.before(scores.permute(0, 2, 3, 1)), 2)
        mixed = self.after(weights).permute(0, 3, 1, 2) @ value
        features = features + self.attention_scale * self.output(mixed.transpose(1, 2).flatten(2))
        return features + self.feed_forward_scale * self.feed_forward(self.feed_forward_norm(features))


class CaiT(nn.Module):
    """Talking-heads layers over the patches, then two layers of class attention."""

    def __init__(self, layers: int, width: int, heads: int) -> None:
        super().__init__()
        self.patches = Patches(16, width)
        self.positions = nn.Parameter(torch.zeros(1, 196, width))
        self.layers = nn.ModuleList(TalkingHeads(width, heads) for _ in range(layers))
        self.token = nn.Parameter(torch.zeros(1, 1, width))
        self.class_layers = nn.ModuleList(ClassAttention(width, heads) for _ in range(2))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, 1000)

    def forward(self, images: Tensor, labels: Tensor | None = None) -> Tensor:
        features = self.patches(images) + self.positions
        for layer in self.layers:
            features = layer(features)
        token = self.token.expand(features.shape[0], -1, -1)
        for layer in self.class_layers:
            token = layer(token, features)
        logits = self.head(self.norm(torch.cat([token, features], 1))[:, 0])
        return logits if labels is None else F.cross_entropy(logits, labels)


class WindowAttention(nn.Module):
    """Attention within 7 x 7 windows, shifted by half a window in every other layer (Swin).

    Args:
        width: Of the features.
        heads: Attention heads.
        grid: Height and width of the feature map.
        shifted: Whether windows are shifted.
    """

    def __init__(self, width: int, heads: int, grid: int, *, shifted: bool) -> None:
        super().__init__()
        self.heads, self.grid = heads, grid
        self.shift = 3 if shifted and grid > 7 else 0
        self.query_key_value = nn.Linear(width, 3 * width)
        self.position_bias = nn.Parameter(torch.zeros(13 * 13, heads))
        self.output = nn.Linear(width, width)

    def bias(self) -> Tensor:
        """The learned bias of each pair of places, [heads, 49, 49]."""
        places = torch.arange(49, device=self.position_bias.device)
        rows = places[:, None] // 7 - places[None, :] // 7 + 6
        columns = places[:, None] % 7 - places[None, :] % 7 + 6
        return (
            self.position_bias[(13 * rows + columns).flatten()].reshape(49, 49, self.heads).permute(2, 0, 1)
        )

    def mask(self) -> Tensor:
        """Forbids what came together only through the cyclic shift, [windows, 49, 49]."""
        line = torch.arange(self.grid, device=self.position_bias.device)
        part = (line >= self.grid - 7).to(torch.int64) + (line >= self.grid - self.shift).to(torch.int64)
        region = self.windows((3 * part[:, None] + part[None, :])[None, :, :, None]).squeeze(2)
        return (region[:, :, None] != region[:, None, :]).to(torch.float32) * -100.0

    def windows(self, features: Tensor) -> Tensor:
        """[batch, grid, grid, width] to [batch x windows, 49, width]."""
        batch, width, count = features.shape[0], features.shape[3], self.grid // 7
        cut = features.reshape(batch, count, 7, count, 7, width).transpose(2, 3)
        return cut.reshape(batch * count * count, 49, width)

    def forward(self, features: Tensor) -> Tensor:
        batch, _, width = features.shape
        count = self.grid // 7
        grid = features.reshape(batch, self.grid, self.grid, width)
        if self.shift:
            grid = torch.roll(grid, (-self.shift, -self.shift), (1, 2))
        windows = self.windows(grid)
        parts = self.query_key_value(windows).reshape(-1, 49, 3, self.heads, width // self.heads)
        query, key, value = parts.permute(2, 0, 3, 1, 4).unbind(0)
        bias = self.bias().unsqueeze(0)
        if self.shift:
            bias = (bias + self.mask()[:, None]).repeat(batch, 1, 1, 1)
        mixed = self.output(attend(query, key, value, bias).transpose(1, 2).flatten(2))
        grid = mixed.reshape(batch, count, count, 7, 7, width).transpose(2, 3)
        grid = grid.reshape(batch, self.grid, self.grid, width)
        if self.shift:
            grid = torch.roll(grid, (self.shift, self.shift), (1, 2))
        return grid.reshape(batch, self.grid * self.grid, width)


class SwinLayer(nn.Module):
    """Pre-norm window attention and feed-forward."""

    def __init__(self, width: int, heads: int, grid: int, *, shifted: bool) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm(width)
        self.attention = WindowAttention(width, heads, grid, shifted=shifted)
        self.feed_forward_norm = nn.LayerNorm(width)
        self.feed_forward = feed_forward(width, 4 * width)

    def forward(self, features: Tensor) -> Tensor:
        features = features + self.attention(self.attention_norm(features))
        return features + self.feed_forward(self.feed_forward_norm(features))


class PatchMerging(nn.Module):
    """Four neighbouring patches to one of twice the width."""

    def __init__(self, width: int, grid: int) -> None:
        super().__init__()
        self.grid = grid
        self.norm = nn.LayerNorm(4 * width)
        self.reduce = nn.Linear(4 * width, 2 * width, bias=False)

    def forward(self, features: Tensor) -> Tensor:
        batch, _, width = features.shape
        half = self.grid // 2
        pairs = features.reshape(batch, half, 2, half, 2, width).permute(0, 1, 3, 4, 2, 5)
        return self.reduce(self.norm(pairs.reshape(batch, half * half, 4 * width)))


class Swin(nn.Module):
    """Four stages of window attention on ever coarser grids."""

    def __init__(self, depths: tuple[int, ...], width: int, heads: tuple[int, ...]) -> None:
        super().__init__()
        self.patches = Patches(4, width)
        self.norm = nn.LayerNorm(width)
        grid = 56
        self.stages = nn.Sequential()
        for level, (depth, count) in enumerate(zip(depths, heads, strict=True)):
            if level > 0:
                self.stages.append(PatchMerging(width, grid))
                width, grid = 2 * width, grid // 2
            for index in range(depth):
                self.stages.append(SwinLayer(width, count, grid, shifted=index % 2 == 1))
        self.last_norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, 1000)

    def forward(self, images: Tensor, labels: Tensor | None = None) -> Tensor:
        features = self.last_norm(self.stages(self.norm(self.patches(images))))
        logits = self.head(features.mean(1))
        return logits if labels is None else F.cross_entropy(logits, labels)


@definition(family="vit", source="own", licence="Apache-2.0")
def vit() -> Iterator[Entry]:
    """Dosovitskiy et al. 2021, "An image is worth 16x16 words": base and large, and a small one with fused
    attention.
    """
    for name, layers, width, heads, fused in (
        ("small-fused", 8, 384, 6, True),
        ("base", 12, 768, 12, False),
        ("large", 24, 1024, 16, False),
    ):
        network = partial(ViT, layers, width, heads, fused=fused)
        yield from image_workloads(
            f"vit-{name}", network, optimizer="adam", layers=layers, width=width, fused_attention=fused
        )


@definition(family="cait", source="own", licence="Apache-2.0")
def cait() -> Iterator[Entry]:
    """Touvron et al. 2021, "Going deeper with image transformers": XXS-24 and S-36."""
    for name, layers, width, heads in (("xxs-24", 24, 192, 4), ("s-36", 36, 384, 8)):
        network = partial(CaiT, layers, width, heads)
        yield from image_workloads(f"cait-{name}", network, batch=16, layers=layers, width=width)


@definition(family="swin", source="own", licence="Apache-2.0")
def swin() -> Iterator[Entry]:
    """Liu et al. 2021, "Swin Transformer: hierarchical vision transformer using shifted windows": tiny and small;
    stochastic depth left out.
    """
    for name, depths in (("tiny", (2, 2, 6, 2)), ("small", (2, 2, 18, 2))):
        network = partial(Swin, depths, 96, (3, 6, 12, 24))
        yield from image_workloads(f"swin-{name}", network, depths=list(depths))
