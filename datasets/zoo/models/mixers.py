"""Image classifiers that mix places without attention: MLP-Mixer, gMLP, ResMLP, ConvMixer, ConvNeXt, PoolFormer."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..registry import definition
from .attention import feed_forward
from .layers import Classifier, Residual, convolution
from .vision_transformers import Patches
from .workload import Entry, image_workloads


class PatchClassifier(nn.Module):
    """Patches, layers, normalisation, mean over the patches, linear head."""

    def __init__(self, patch: int, width: int, layers: list[nn.Module]) -> None:
        super().__init__()
        self.patches = Patches(patch, width)
        self.layers = nn.ModuleList(layers)
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, 1000)

    def forward(self, images: Tensor, labels: Tensor | None = None) -> Tensor:
        features = self.patches(images)
        for layer in self.layers:
            features = layer(features)
        logits = self.head(self.norm(features).mean(1))
        return logits if labels is None else F.cross_entropy(logits, labels)


class MixerLayer(nn.Module):
    """A perceptron over the patches, then one over the channels."""

    def __init__(self, patches: int, width: int, patch_hidden: int, hidden: int) -> None:
        super().__init__()
        self.patch_norm = nn.LayerNorm(width)
        self.patch_mixing = feed_forward(patches, patch_hidden)
        self.channel_norm = nn.LayerNorm(width)
        self.channel_mixing = feed_forward(width, hidden)

    def forward(self, features: Tensor) -> Tensor:
        mixed = self.patch_mixing(self.patch_norm(features).transpose(1, 2)).transpose(1, 2)
        features = features + mixed
        return features + self.channel_mixing(self.channel_norm(features))


class GatedLayer(nn.Module):
    """One gated perceptron; half of the hidden channels gate the other half after mixing patches (gMLP)."""

    def __init__(self, patches: int, width: int, hidden: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.widen = nn.Linear(width, hidden)
        self.gate_norm = nn.LayerNorm(hidden // 2)
        self.spatial = nn.Linear(patches, patches)
        self.narrow = nn.Linear(hidden // 2, width)

    def forward(self, features: Tensor) -> Tensor:
        kept, gate = F.gelu(self.widen(self.norm(features))).chunk(2, 2)
        gate = self.spatial(self.gate_norm(gate).transpose(1, 2)).transpose(1, 2)
        return features + self.narrow(kept * gate)


class Affine(nn.Module):
    """A gain and an offset per channel (ResMLP's only normalisation)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.ones(width))
        self.offset = nn.Parameter(torch.zeros(width))

    def forward(self, features: Tensor) -> Tensor:
        return self.gain * features + self.offset


class AffineLayer(nn.Module):
    """A linear layer over the patches, a perceptron over the channels, scaled residuals (ResMLP)."""

    def __init__(self, patches: int, width: int) -> None:
        super().__init__()
        self.patch_affine = Affine(width)
        self.patch_mixing = nn.Linear(patches, patches)
        self.patch_scale = nn.Parameter(torch.ones(width))
        self.channel_affine = Affine(width)
        self.channel_mixing = feed_forward(width, 4 * width)
        self.channel_scale = nn.Parameter(torch.ones(width))

    def forward(self, features: Tensor) -> Tensor:
        mixed = self.patch_mixing(self.patch_affine(features).transpose(1, 2)).transpose(1, 2)
        features = features + self.patch_scale * mixed
        return features + self.channel_scale * self.channel_mixing(self.channel_affine(features))


class ConvMixer(Classifier):
    """A depthwise convolution with a large kernel and a 1 x 1 one per layer."""

    def __init__(self, layers: int, width: int, kernel: int, patch: int) -> None:
        features = nn.Sequential(nn.Conv2d(3, width, patch, patch), nn.GELU(), nn.BatchNorm2d(width))
        for _ in range(layers):
            depthwise = nn.Sequential(
                convolution(width, width, kernel, groups=width, bias=True), nn.GELU(), nn.BatchNorm2d(width)
            )
            features.append(
                nn.Sequential(
                    Residual(depthwise), nn.Conv2d(width, width, 1), nn.GELU(), nn.BatchNorm2d(width)
                )
            )
        super().__init__(features, width)


class ChannelNorm(nn.Module):
    """Layer normalisation over the channels of a feature map."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(channels)

    def forward(self, features: Tensor) -> Tensor:
        return self.norm(features.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class ConvNeXtBlock(nn.Module):
    """7 x 7 depthwise convolution, then a perceptron over the channels, scaled."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.depthwise = convolution(width, width, 7, groups=width, bias=True)
        self.norm = nn.LayerNorm(width)
        self.mix = feed_forward(width, 4 * width)
        self.scale = nn.Parameter(torch.ones(width))

    def forward(self, features: Tensor) -> Tensor:
        rows = self.depthwise(features).permute(0, 2, 3, 1)
        return features + (self.scale * self.mix(self.norm(rows))).permute(0, 3, 1, 2)


class ConvNeXt(nn.Module):
    """Four stages; each begins with a strided convolution."""

    def __init__(self, depths: tuple[int, ...], widths: tuple[int, ...]) -> None:
        super().__init__()
        self.stages = nn.Sequential()
        for level, (depth, width) in enumerate(zip(depths, widths, strict=True)):
            if level == 0:
                self.stages.append(nn.Sequential(nn.Conv2d(3, width, 4, 4), ChannelNorm(width)))
            else:
                before = widths[level - 1]
                self.stages.append(nn.Sequential(ChannelNorm(before), nn.Conv2d(before, width, 2, 2)))
            for _ in range(depth):
                self.stages.append(ConvNeXtBlock(width))
        self.norm = nn.LayerNorm(widths[-1])
        self.head = nn.Linear(widths[-1], 1000)

    def forward(self, images: Tensor, labels: Tensor | None = None) -> Tensor:
        logits = self.head(self.norm(self.stages(images).mean((2, 3))))
        return logits if labels is None else F.cross_entropy(logits, labels)


class PoolFormerBlock(nn.Module):
    """Average pooling in attention's place."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.pool_norm = nn.GroupNorm(1, width)
        self.pool = nn.AvgPool2d(3, 1, 1, count_include_pad=False)
        self.pool_scale = nn.Parameter(torch.ones(width, 1, 1))
        self.mix_norm = nn.GroupNorm(1, width)
        self.mix = nn.Sequential(nn.Conv2d(width, 4 * width, 1), nn.GELU(), nn.Conv2d(4 * width, width, 1))
        self.mix_scale = nn.Parameter(torch.ones(width, 1, 1))

    def forward(self, features: Tensor) -> Tensor:
        normal = self.pool_norm(features)
        features = features + self.pool_scale * (self.pool(normal) - normal)
        return features + self.mix_scale * self.mix(self.mix_norm(features))


class PoolFormer(nn.Module):
    """Four stages of pooling blocks."""

    def __init__(self, depths: tuple[int, ...], widths: tuple[int, ...]) -> None:
        super().__init__()
        self.stages = nn.Sequential(nn.Conv2d(3, widths[0], 7, 4, 2))
        for level, (depth, width) in enumerate(zip(depths, widths, strict=True)):
            if level > 0:
                self.stages.append(nn.Conv2d(widths[level - 1], width, 3, 2, 1))
            for _ in range(depth):
                self.stages.append(PoolFormerBlock(width))
        self.norm = nn.GroupNorm(1, widths[-1])
        self.head = nn.Linear(widths[-1], 1000)

    def forward(self, images: Tensor, labels: Tensor | None = None) -> Tensor:
        logits = self.head(self.norm(self.stages(images)).mean((2, 3)))
        return logits if labels is None else F.cross_entropy(logits, labels)


def mixer_network(layers: int, width: int) -> PatchClassifier:
    """MLP-Mixer with 16 x 16 patches."""
    return PatchClassifier(16, width, [MixerLayer(196, width, width // 2, 4 * width) for _ in range(layers)])


def gated_network(layers: int, width: int) -> PatchClassifier:
    """gMLP with 16 x 16 patches."""
    return PatchClassifier(16, width, [GatedLayer(196, width, 6 * width) for _ in range(layers)])


def affine_network(layers: int, width: int) -> PatchClassifier:
    """ResMLP with 16 x 16 patches."""
    return PatchClassifier(16, width, [AffineLayer(196, width) for _ in range(layers)])


@definition(family="mlp-mixer", source="own", licence="Apache-2.0")
def mlp_mixer() -> Iterator[Entry]:
    """Tolstikhin et al. 2021, "MLP-Mixer: an all-MLP architecture for vision": S/16, B/16 and L/16."""
    for name, layers, width in (("small", 8, 512), ("base", 12, 768), ("large", 24, 1024)):
        network = partial(mixer_network, layers, width)
        yield from image_workloads(f"mlp-mixer-{name}", network, layers=layers, width=width)


@definition(family="gmlp", source="own", licence="Apache-2.0")
def gmlp() -> Iterator[Entry]:
    """Liu et al. 2021, "Pay attention to MLPs": gMLP-S and a shallower one."""
    for layers, width in ((16, 256), (30, 256)):
        network = partial(gated_network, layers, width)
        yield from image_workloads(f"gmlp-{layers}", network, layers=layers, width=width)


@definition(family="resmlp", source="own", licence="Apache-2.0")
def resmlp() -> Iterator[Entry]:
    """Touvron et al. 2021, "ResMLP: feedforward networks for image classification with data-efficient training":
    12 and 24 layers.
    """
    for layers in (12, 24):
        network = partial(affine_network, layers, 384)
        yield from image_workloads(f"resmlp-{layers}", network, layers=layers, width=384)


@definition(family="convmixer", source="own", licence="Apache-2.0")
def convmixer() -> Iterator[Entry]:
    """Trockman and Kolter 2022, "Patches are all you need?": 768/32 and 1536/20."""
    for width, layers, patch, kernel in ((768, 32, 7, 7), (1536, 20, 7, 9)):
        network = partial(ConvMixer, layers, width, kernel, patch)
        yield from image_workloads(f"convmixer-{width}-{layers}", network, layers=layers)


@definition(family="convnext", source="own", licence="Apache-2.0")
def convnext() -> Iterator[Entry]:
    """Liu et al. 2022, "A ConvNet for the 2020s": tiny and base; stochastic depth left out."""
    for name, depths, widths in (
        ("tiny", (3, 3, 9, 3), (96, 192, 384, 768)),
        ("base", (3, 3, 27, 3), (128, 256, 512, 1024)),
    ):
        network = partial(ConvNeXt, depths, widths)
        yield from image_workloads(f"convnext-{name}", network, depths=list(depths))


@definition(family="poolformer", source="own", licence="Apache-2.0")
def poolformer() -> Iterator[Entry]:
    """Yu et al. 2022, "MetaFormer is actually what you need for vision": PoolFormer-S12 and S24."""
    for name, depths in (("s12", (2, 2, 6, 2)), ("s24", (4, 4, 12, 4))):
        network = partial(PoolFormer, depths, (64, 128, 320, 512))
        yield from image_workloads(f"poolformer-{name}", network, depths=list(depths))
