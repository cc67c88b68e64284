"""Networks of cheap blocks: ShuffleNet 1 and 2, GhostNet, SqueezeNet."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..registry import definition
from .layers import Classifier, Concatenated, Residual, SqueezeExcitation, conv_norm
from .mobile import rounded
from .workload import Entry, image_workloads


def shuffled(features: Tensor, groups: int) -> Tensor:
    """Deals the channels of the groups out in turn."""
    batch, channels, height, width = features.shape
    dealt = features.reshape(batch, groups, channels // groups, height, width).transpose(1, 2)
    return dealt.reshape(batch, channels, height, width)


class ShuffleBlock(nn.Module):
    """Grouped 1 x 1 convolution, shuffle, depthwise, grouped 1 x 1 (ShuffleNet)."""

    def __init__(self, inputs: int, outputs: int, groups: int, stride: int, *, first: bool) -> None:
        super().__init__()
        self.groups = groups
        middle = outputs // 4
        new = outputs - inputs if stride > 1 else outputs
        self.narrow = conv_norm(inputs, middle, 1, groups=1 if first else groups)
        self.depthwise = conv_norm(middle, middle, 3, stride, groups=middle, activation=None)
        self.expand = conv_norm(middle, new, 1, groups=groups, activation=None)
        self.pool = nn.AvgPool2d(3, 2, 1) if stride > 1 else None

    def forward(self, features: Tensor) -> Tensor:
        new = self.expand(self.depthwise(shuffled(self.narrow(features), self.groups)))
        if self.pool is None:
            return torch.relu(features + new)
        return torch.relu(torch.cat([self.pool(features), new], 1))


class ShuffleNetV1(Classifier):
    """Three stages of shuffle blocks."""

    WIDTHS: ClassVar = {1: (144, 288, 576), 3: (240, 480, 960), 8: (384, 768, 1536)}

    def __init__(self, groups: int) -> None:
        features = nn.Sequential(conv_norm(3, 24, 3, 2), nn.MaxPool2d(3, 2, 1))
        channels = 24
        for level, (outputs, repeats) in enumerate(zip(self.WIDTHS[groups], (4, 8, 4), strict=True)):
            for index in range(repeats):
                first = level == 0 and index == 0
                features.append(ShuffleBlock(channels, outputs, groups, 1 if index else 2, first=first))
                channels = outputs
        super().__init__(features, channels)


class SplitShuffleBlock(nn.Module):
    """Half the channels pass untouched, the others three convolutions; then shuffle (ShuffleNet V2)."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        half = outputs // 2
        read = inputs if stride > 1 else half
        self.body = nn.Sequential(
            conv_norm(read, half, 1),
            conv_norm(half, half, 3, stride, groups=half, activation=None),
            conv_norm(half, half, 1),
        )
        self.shortcut = (
            nn.Sequential(
                conv_norm(inputs, inputs, 3, 2, groups=inputs, activation=None), conv_norm(inputs, half, 1)
            )
            if stride > 1
            else None
        )

    def forward(self, features: Tensor) -> Tensor:
        if self.shortcut is None:
            kept, changed = features.chunk(2, 1)
        else:
            kept, changed = self.shortcut(features), features
        return shuffled(torch.cat([kept, self.body(changed)], 1), 2)


class ShuffleNetV2(Classifier):
    """Three stages of split shuffle blocks and a last 1 x 1 convolution."""

    def __init__(self, widths: tuple[int, int, int], repeats: tuple[int, int, int] = (4, 8, 4)) -> None:
        features = nn.Sequential(conv_norm(3, 24, 3, 2), nn.MaxPool2d(3, 2, 1))
        channels = 24
        for outputs, count in zip(widths, repeats, strict=True):
            for index in range(count):
                features.append(SplitShuffleBlock(channels, outputs, 1 if index else 2))
                channels = outputs
        features.append(conv_norm(channels, 1024, 1))
        super().__init__(features, 1024)


class GhostModule(nn.Module):
    """Half the channels from a convolution, the other half from cheap depthwise ones of those."""

    def __init__(self, inputs: int, outputs: int, *, active: bool = True) -> None:
        super().__init__()
        half = math.ceil(outputs / 2)
        activation = nn.ReLU if active else None
        self.outputs = outputs
        self.primary = conv_norm(inputs, half, 1, activation=activation)
        self.cheap = conv_norm(half, half, 3, groups=half, activation=activation)

    def forward(self, features: Tensor) -> Tensor:
        primary = self.primary(features)
        return torch.cat([primary, self.cheap(primary)], 1)[:, : self.outputs]


def ghost_bottleneck(
    inputs: int, hidden: int, outputs: int, kernel: int, stride: int, *, squeeze: bool
) -> nn.Module:
    """Two ghost modules; a strided depthwise convolution and an excitation may stand between them."""
    layers = nn.Sequential(GhostModule(inputs, hidden))
    if stride > 1:
        layers.append(conv_norm(hidden, hidden, kernel, stride, groups=hidden, activation=None))
    if squeeze:
        layers.append(SqueezeExcitation(hidden, rounded(hidden / 4, 4), gate=nn.Hardsigmoid))
    layers.append(GhostModule(hidden, outputs, active=False))
    shortcut: nn.Module | None = None
    if inputs != outputs or stride > 1:
        shortcut = nn.Sequential(
            conv_norm(inputs, inputs, kernel, stride, groups=inputs, activation=None),
            conv_norm(inputs, outputs, 1, activation=None),
        )
    return Residual(layers, shortcut)


class GhostNet(nn.Module):
    """Ghost bottlenecks in the order of MobileNetV3."""

    ROWS = (
        (3, 16, 16, False, 1), (3, 48, 24, False, 2), (3, 72, 24, False, 1), (5, 72, 40, True, 2),
        (5, 120, 40, True, 1), (3, 240, 80, False, 2), (3, 200, 80, False, 1), (3, 184, 80, False, 1),
        (3, 184, 80, False, 1), (3, 480, 112, True, 1), (3, 672, 112, True, 1), (5, 672, 160, True, 2),
        (5, 960, 160, False, 1), (5, 960, 160, True, 1), (5, 960, 160, False, 1), (5, 960, 160, True, 1),
    )  # fmt: skip

    def __init__(self, classes: int = 1000) -> None:
        super().__init__()
        features = nn.Sequential(conv_norm(3, 16, 3, 2))
        channels = 16
        for kernel, hidden, outputs, squeeze, stride in self.ROWS:
            features.append(ghost_bottleneck(channels, hidden, outputs, kernel, stride, squeeze=squeeze))
            channels = outputs
        features.append(conv_norm(channels, 960, 1))
        self.features = features
        self.mix = nn.Sequential(nn.Linear(960, 1280), nn.ReLU())
        self.head = nn.Linear(1280, classes)

    def forward(self, images: Tensor, labels: Tensor | None = None) -> Tensor:
        logits = self.head(self.mix(self.features(images).mean((2, 3))))
        return logits if labels is None else F.cross_entropy(logits, labels)


class Fire(nn.Module):
    """Squeeze to few channels, then 1 x 1 beside 3 x 3 convolutions (SqueezeNet)."""

    def __init__(self, inputs: int, squeeze: int, expand: int) -> None:
        super().__init__()
        self.residual = inputs == 2 * expand
        self.squeeze = nn.Sequential(nn.Conv2d(inputs, squeeze, 1), nn.ReLU())
        self.expand = Concatenated(
            nn.Sequential(nn.Conv2d(squeeze, expand, 1), nn.ReLU()),
            nn.Sequential(nn.Conv2d(squeeze, expand, 3, padding=1), nn.ReLU()),
        )

    def forward(self, features: Tensor) -> Tensor:
        return self.expand(self.squeeze(features))


class Bypass(Fire):
    """A fire module with its input added where the widths allow it."""

    def forward(self, features: Tensor) -> Tensor:
        new = super().forward(features)
        return features + new if self.residual else new


class SqueezeNet(nn.Module):
    """Version 1.0, whose classifier is a 1 x 1 convolution."""

    STEPS = (
        (16, 64),
        (16, 64),
        (32, 128),
        (0, 0),
        (32, 128),
        (48, 192),
        (48, 192),
        (64, 256),
        (0, 0),
        (64, 256),
    )

    def __init__(self, *, bypass: bool, classes: int = 1000) -> None:
        super().__init__()
        features = nn.Sequential(nn.Conv2d(3, 96, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, ceil_mode=True))
        channels = 96
        for squeeze, expand in self.STEPS:
            if squeeze == 0:
                features.append(nn.MaxPool2d(3, 2, ceil_mode=True))
                continue
            features.append((Bypass if bypass else Fire)(channels, squeeze, expand))
            channels = 2 * expand
        self.features = features
        self.head = nn.Sequential(nn.Conv2d(channels, classes, 1), nn.ReLU())

    def forward(self, images: Tensor, labels: Tensor | None = None) -> Tensor:
        logits = self.head(self.features(images)).mean((2, 3))
        return logits if labels is None else F.cross_entropy(logits, labels)


@definition(family="shufflenet-v1", source="own", licence="Apache-2.0")
def shufflenet_v1() -> Iterator[Entry]:
    """Zhang et al. 2018, "ShuffleNet: an extremely efficient convolutional neural network"."""
    yield from image_workloads("shufflenet-v1-g3", partial(ShuffleNetV1, 3), batch=64, groups=3)


@definition(family="shufflenet-v2", source="own", licence="Apache-2.0")
def shufflenet_v2() -> Iterator[Entry]:
    """Ma et al. 2018, "ShuffleNet V2: practical guidelines for efficient CNN architecture design"; 1x, and a
    deeper one.
    """
    yield from image_workloads("shufflenet-v2-1x", partial(ShuffleNetV2, (116, 232, 464)), batch=64)
    deep = partial(ShuffleNetV2, (244, 488, 976), (8, 16, 6))
    yield from image_workloads("shufflenet-v2-deep", deep, batch=64, blocks=[8, 16, 6])


@definition(family="ghostnet", source="own", licence="Apache-2.0")
def ghostnet() -> Iterator[Entry]:
    """Han et al. 2020, "GhostNet: more features from cheap operations"."""
    yield from image_workloads("ghostnet", GhostNet, batch=64)


@definition(family="squeezenet", source="own", licence="Apache-2.0")
def squeezenet() -> Iterator[Entry]:
    """Iandola et al. 2016, "SqueezeNet: AlexNet-level accuracy with 50x fewer parameters", version 1.0, plain
    and with simple bypass.
    """
    for name, bypass in (("squeezenet", False), ("squeezenet-bypass", True)):
        yield from image_workloads(name, partial(SqueezeNet, bypass=bypass), batch=64, modes=("train",))
