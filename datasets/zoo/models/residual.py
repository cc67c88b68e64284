"""Residual networks for images: ResNet, pre-activation ResNet, ResNeXt, SE-ResNet, Res2Net, ResNeSt."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..registry import definition
from .layers import Classifier, Residual, SqueezeExcitation, conv_norm, norm_conv
from .workload import Entry, image_workloads

#: Makes the body of a block: (input channels, middle channels, stride) to layers.
Body = Callable[[int, int, int], nn.Module]

BLOCKS = {18: (2, 2, 2, 2), 34: (3, 4, 6, 3), 50: (3, 4, 6, 3), 101: (3, 4, 23, 3), 152: (3, 8, 36, 3)}


def basic(inputs: int, middle: int, stride: int) -> nn.Module:
    """Two 3 x 3 convolutions."""
    return nn.Sequential(conv_norm(inputs, middle, 3, stride), conv_norm(middle, middle, activation=None))


def bottleneck(inputs: int, middle: int, stride: int) -> nn.Module:
    """1 x 1, 3 x 3, 1 x 1; the stride is that of the 3 x 3."""
    return nn.Sequential(
        conv_norm(inputs, middle, 1),
        conv_norm(middle, middle, 3, stride),
        conv_norm(middle, 4 * middle, 1, activation=None),
    )


def grouped(inputs: int, middle: int, stride: int) -> nn.Module:
    """A bottleneck twice as wide, its 3 x 3 convolution in 32 groups (ResNeXt 32x4d)."""
    width = 2 * middle
    return nn.Sequential(
        conv_norm(inputs, width, 1),
        conv_norm(width, width, 3, stride, groups=32),
        conv_norm(width, 4 * middle, 1, activation=None),
    )


def excited(inputs: int, middle: int, stride: int) -> nn.Module:
    """A bottleneck with squeeze and excitation, reduction 16."""
    return nn.Sequential(bottleneck(inputs, middle, stride), SqueezeExcitation(4 * middle, middle // 4))


class Hierarchical(nn.Module):
    """Res2Net's bottleneck: channels in slices, each convolution also reads the result of the one before."""

    def __init__(self, inputs: int, middle: int, stride: int, slices: int = 4) -> None:
        super().__init__()
        width = middle * 26 // 64
        self.slices = slices
        self.strided = stride > 1 or inputs != 4 * middle
        self.reduce = conv_norm(inputs, width * slices, 1)
        self.steps = nn.ModuleList(conv_norm(width, width, 3, stride) for _ in range(slices - 1))
        self.pool = nn.AvgPool2d(3, stride, 1) if stride > 1 else nn.Identity()
        self.expand = conv_norm(width * slices, 4 * middle, 1, activation=None)

    def forward(self, features: Tensor) -> Tensor:
        slices = self.reduce(features).chunk(self.slices, 1)
        results: list[Tensor] = []
        for step, part in zip(self.steps, slices, strict=False):
            results.append(step(part if self.strided or not results else part + results[-1]))
        results.append(self.pool(slices[-1]))
        return self.expand(torch.cat(results, 1))


class SplitAttention(nn.Module):
    """ResNeSt's bottleneck: two candidate feature maps, mixed by channel-wise attention; cardinality 1."""

    def __init__(self, inputs: int, middle: int, stride: int) -> None:
        super().__init__()
        hidden = max(32, middle // 2)
        self.reduce = conv_norm(inputs, middle, 1)
        self.candidates = conv_norm(middle, 2 * middle, 3, groups=2)
        self.squeeze = conv_norm(middle, hidden, 1)
        self.choose = nn.Conv2d(hidden, 2 * middle, 1)
        self.pool = nn.AvgPool2d(3, stride, 1) if stride > 1 else nn.Identity()
        self.expand = conv_norm(middle, 4 * middle, 1, activation=None)

    def forward(self, features: Tensor) -> Tensor:
        first, second = self.candidates(self.reduce(features)).chunk(2, 1)
        pooled = (first + second).mean((2, 3), keepdim=True)
        scores = torch.stack(self.choose(self.squeeze(pooled)).chunk(2, 1))
        left, right = torch.softmax(scores, 0).unbind(0)
        return self.expand(self.pool(left * first + right * second))


def stem(channels: int = 64, *, deep: bool = False) -> nn.Sequential:
    """A 7 x 7 convolution, or three 3 x 3 ones, and a maximum pooling."""
    if deep:
        return nn.Sequential(
            conv_norm(3, channels // 2, 3, 2),
            conv_norm(channels // 2, channels // 2),
            conv_norm(channels // 2, channels),
            nn.MaxPool2d(3, 2, 1),
        )
    return nn.Sequential(conv_norm(3, channels, 7, 2), nn.MaxPool2d(3, 2, 1))


class ResNet(Classifier):
    """Four stages of residual blocks.

    Args:
        blocks: Blocks per stage.
        body: What a block computes beside its shortcut.
        expansion: Output channels over middle channels of a block.
        deep: See :func:`stem`.
        pooled_shortcut: Shortcuts halve the grid by average pooling rather than by a strided convolution.
    """

    def __init__(
        self,
        blocks: tuple[int, ...],
        body: Body,
        *,
        expansion: int = 4,
        deep: bool = False,
        pooled_shortcut: bool = False,
    ) -> None:
        stages = nn.Sequential()
        channels = 64
        for level, count in enumerate(blocks):
            middle = 64 * 2**level
            stage = nn.Sequential()
            for index in range(count):
                stride = 2 if level > 0 and index == 0 else 1
                shortcut: nn.Module | None = None
                if channels != expansion * middle or stride > 1:
                    if pooled_shortcut and stride > 1:
                        shortcut = nn.Sequential(
                            nn.AvgPool2d(2, 2), conv_norm(channels, expansion * middle, 1, activation=None)
                        )
                    else:
                        shortcut = conv_norm(channels, expansion * middle, 1, stride, activation=None)
                stage.append(Residual(body(channels, middle, stride), shortcut, nn.ReLU()))
                channels = expansion * middle
            stages.append(stage)
        super().__init__(nn.Sequential(stem(deep=deep), stages), channels)


class PreActivationBlock(nn.Module):
    """Normalisation and ReLU before each convolution; a projecting shortcut reads the activated input."""

    def __init__(self, inputs: int, middle: int, stride: int) -> None:
        super().__init__()
        self.norm = nn.BatchNorm2d(inputs)
        self.first = nn.Conv2d(inputs, middle, 1, bias=False)
        self.second = norm_conv(middle, middle, 3, stride)
        self.third = norm_conv(middle, 4 * middle, 1)
        projects = stride > 1 or inputs != 4 * middle
        self.shortcut = nn.Conv2d(inputs, 4 * middle, 1, stride, bias=False) if projects else None

    def forward(self, features: Tensor) -> Tensor:
        active = F.relu(self.norm(features))
        kept = features if self.shortcut is None else self.shortcut(active)
        return kept + self.third(self.second(self.first(active)))


class PreActivationResNet(Classifier):
    """Stages of pre-activation blocks, closed by a last normalisation."""

    def __init__(self, blocks: tuple[int, ...]) -> None:
        layers = nn.Sequential(stem())
        channels = 64
        for level, count in enumerate(blocks):
            middle = 64 * 2**level
            for index in range(count):
                stride = 2 if level > 0 and index == 0 else 1
                layers.append(PreActivationBlock(channels, middle, stride))
                channels = 4 * middle
        layers.append(nn.BatchNorm2d(channels))
        layers.append(nn.ReLU())
        super().__init__(layers, channels)


@definition(family="resnet", source="own", licence="Apache-2.0")
def resnet() -> Iterator[Entry]:
    """He et al. 2016, "Deep residual learning for image recognition"; bottlenecks with the stride at the 3 x 3
    convolution.
    """
    for depth in (18, 34):
        network = partial(ResNet, BLOCKS[depth], basic, expansion=1)
        yield from image_workloads(f"resnet-{depth}", network, batch=64, depth=depth)
    for depth in (50, 152):
        network = partial(ResNet, BLOCKS[depth], bottleneck)
        yield from image_workloads(f"resnet-{depth}", network, depth=depth)


@definition(family="resnet-v2", source="own", licence="Apache-2.0")
def pre_activation_resnet() -> Iterator[Entry]:
    """He et al. 2016, "Identity mappings in deep residual networks"."""
    for depth in (50, 101):
        yield from image_workloads(
            f"resnet-v2-{depth}", partial(PreActivationResNet, BLOCKS[depth]), depth=depth
        )


@definition(family="resnet", source="own", licence="Apache-2.0")
def resnext() -> Iterator[Entry]:
    """Xie et al. 2017, "Aggregated residual transformations for deep neural networks": 32x4d. Its graphs differ
    from ResNet's by their sizes alone, hence another depth.
    """
    network = partial(ResNet, BLOCKS[101], grouped)
    yield from image_workloads("resnext-101-32x4d", network, depth=101, groups=32)


@definition(family="se-resnet", source="own", licence="Apache-2.0")
def se_resnet() -> Iterator[Entry]:
    """Hu et al. 2018, "Squeeze-and-excitation networks"."""
    for depth in (50, 101):
        yield from image_workloads(f"se-resnet-{depth}", partial(ResNet, BLOCKS[depth], excited), depth=depth)


@definition(family="res2net", source="own", licence="Apache-2.0")
def res2net() -> Iterator[Entry]:
    """Gao et al. 2021, "Res2Net: a new multi-scale backbone architecture": 26 channels in each of 4 slices."""
    for depth in (50, 101):
        network = partial(ResNet, BLOCKS[depth], Hierarchical)
        yield from image_workloads(f"res2net-{depth}", network, depth=depth, slices=4)


@definition(family="resnest", source="own", licence="Apache-2.0")
def resnest() -> Iterator[Entry]:
    """Zhang et al. 2022, "ResNeSt: split-attention networks": radix 2, cardinality 1, deep stem, average
    pooling instead of strides.
    """
    for depth in (50, 101):
        network = partial(ResNet, BLOCKS[depth], SplitAttention, deep=True, pooled_shortcut=True)
        yield from image_workloads(f"resnest-{depth}", network, depth=depth, radix=2)
