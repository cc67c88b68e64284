"""Inception-v4 and Inception-ResNet-v2."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from torch import Tensor, nn
from torch.nn import functional as F

from ..registry import definition
from .inception import pooled
from .layers import Classifier, Concatenated, conv_norm
from .workload import Entry, image_workloads


def chain(inputs: int, *steps: tuple[int, int | tuple[int, int]]) -> nn.Sequential:
    """Convolutions one after the other, each (channels, kernel)."""
    layers = nn.Sequential()
    for outputs, kernel in steps:
        layers.append(conv_norm(inputs, outputs, kernel))
        inputs = outputs
    return layers


def reduction(inputs: int, narrow: tuple[int, int, int], wide: int) -> Concatenated:
    """Reduction-A: from 35 x 35 to 17 x 17 (figure 7)."""
    first, second, third = narrow
    return Concatenated(
        nn.MaxPool2d(3, 2),
        conv_norm(inputs, wide, 3, 2, padding=0),
        nn.Sequential(chain(inputs, (first, 1), (second, 3)), conv_norm(second, third, 3, 2, padding=0)),
    )


def stem() -> nn.Sequential:
    """The stem of Inception-v4 (figure 3): 384 channels on a 35 x 35 grid."""
    return nn.Sequential(
        conv_norm(3, 32, 3, 2, padding=0),
        conv_norm(32, 32, 3, padding=0),
        conv_norm(32, 64),
        Concatenated(nn.MaxPool2d(3, 2), conv_norm(64, 96, 3, 2, padding=0)),
        Concatenated(
            nn.Sequential(conv_norm(160, 64, 1), conv_norm(64, 96, 3, padding=0)),
            nn.Sequential(chain(160, (64, 1), (64, (7, 1)), (64, (1, 7))), conv_norm(64, 96, 3, padding=0)),
        ),
        Concatenated(conv_norm(192, 192, 3, 2, padding=0), nn.MaxPool2d(3, 2)),
    )


def block_a() -> Concatenated:
    """Inception-A (figure 4)."""
    return Concatenated(
        pooled(384, 96),
        conv_norm(384, 96, 1),
        chain(384, (64, 1), (96, 3)),
        chain(384, (64, 1), (96, 3), (96, 3)),
    )


def block_b() -> Concatenated:
    """Inception-B (figure 5)."""
    return Concatenated(
        pooled(1024, 128),
        conv_norm(1024, 384, 1),
        chain(1024, (192, 1), (224, (1, 7)), (256, (7, 1))),
        chain(1024, (192, 1), (192, (1, 7)), (224, (7, 1)), (224, (1, 7)), (256, (7, 1))),
    )


def split(inputs: int) -> Concatenated:
    """1 x 3 beside 3 x 1, 256 channels each."""
    return Concatenated(conv_norm(inputs, 256, (1, 3)), conv_norm(inputs, 256, (3, 1)))


def block_c() -> Concatenated:
    """Inception-C (figure 6)."""
    return Concatenated(
        pooled(1536, 256),
        conv_norm(1536, 256, 1),
        nn.Sequential(conv_norm(1536, 384, 1), split(384)),
        nn.Sequential(chain(1536, (384, 1), (448, (1, 3)), (512, (3, 1))), split(512)),
    )


class InceptionV4(Classifier):
    """The network of figure 9 with ``a``, ``b`` and ``c`` blocks of each kind."""

    def __init__(self, a: int, b: int, c: int) -> None:
        reduction_b = Concatenated(
            nn.MaxPool2d(3, 2),
            nn.Sequential(conv_norm(1024, 192, 1), conv_norm(192, 192, 3, 2, padding=0)),
            nn.Sequential(
                chain(1024, (256, 1), (256, (1, 7)), (320, (7, 1))), conv_norm(320, 320, 3, 2, padding=0)
            ),
        )
        features = nn.Sequential(
            stem(),
            *(block_a() for _ in range(a)),
            reduction(384, (192, 224, 256), 384),
            *(block_b() for _ in range(b)),
            reduction_b,
            *(block_c() for _ in range(c)),
        )
        super().__init__(features, 1536)


class ScaledResidual(nn.Module):
    """Branches, a linear 1 x 1 convolution, and their scaled sum with the input."""

    def __init__(
        self, channels: int, mixed: int, scale: float, *branches: nn.Module, last: bool = False
    ) -> None:
        super().__init__()
        self.scale = scale
        self.last = last
        self.branches = Concatenated(*branches)
        self.project = nn.Conv2d(mixed, channels, 1)

    def forward(self, features: Tensor) -> Tensor:
        summed = features + self.scale * self.project(self.branches(features))
        return summed if self.last else F.relu(summed)


def residual_a() -> ScaledResidual:
    """Inception-ResNet-A (figure 16)."""
    return ScaledResidual(
        320,
        128,
        0.17,
        conv_norm(320, 32, 1),
        chain(320, (32, 1), (32, 3)),
        chain(320, (32, 1), (48, 3), (64, 3)),
    )


def residual_b() -> ScaledResidual:
    """Inception-ResNet-B (figure 17)."""
    return ScaledResidual(
        1088, 384, 0.1, conv_norm(1088, 192, 1), chain(1088, (128, 1), (160, (1, 7)), (192, (7, 1)))
    )


def residual_c(*, last: bool = False) -> ScaledResidual:
    """Inception-ResNet-C (figure 19)."""
    return ScaledResidual(
        2080,
        448,
        1.0 if last else 0.2,
        conv_norm(2080, 192, 1),
        chain(2080, (192, 1), (224, (1, 3)), (256, (3, 1))),
        last=last,
    )


class InceptionResNetV2(Classifier):
    """Version 2 with ``a``, ``b`` and ``c`` blocks of each kind."""

    def __init__(self, a: int, b: int, c: int) -> None:
        first = Concatenated(
            conv_norm(192, 96, 1),
            chain(192, (48, 1), (64, 5)),
            chain(192, (64, 1), (96, 3), (96, 3)),
            pooled(192, 64),
        )
        reduction_b = Concatenated(
            nn.Sequential(conv_norm(1088, 256, 1), conv_norm(256, 384, 3, 2, padding=0)),
            nn.Sequential(conv_norm(1088, 256, 1), conv_norm(256, 288, 3, 2, padding=0)),
            nn.Sequential(chain(1088, (256, 1), (288, 3)), conv_norm(288, 320, 3, 2, padding=0)),
            nn.MaxPool2d(3, 2),
        )
        features = nn.Sequential(
            conv_norm(3, 32, 3, 2, padding=0),
            conv_norm(32, 32, 3, padding=0),
            conv_norm(32, 64),
            nn.MaxPool2d(3, 2),
            conv_norm(64, 80, 1),
            conv_norm(80, 192, 3, padding=0),
            nn.MaxPool2d(3, 2),
            first,
            *(residual_a() for _ in range(a)),
            reduction(320, (256, 256, 384), 384),
            *(residual_b() for _ in range(b)),
            reduction_b,
            *(residual_c(last=index == c - 1) for index in range(c)),
            conv_norm(2080, 1536, 1),
        )
        super().__init__(features, 1536)


@definition(family="inception-v4", source="own", licence="Apache-2.0")
def inception_v4() -> Iterator[Entry]:
    """Szegedy et al. 2017, "Inception-v4, Inception-ResNet and the impact of residual connections on
    learning": 4, 7 and 3 blocks as published, and a deeper and a shallower network.
    """
    for a, b, c in ((2, 3, 2), (4, 7, 3), (6, 12, 5)):
        yield from image_workloads(
            f"inception-v4-{a}-{b}-{c}",
            partial(InceptionV4, a, b, c),
            size=299,
            blocks=[a, b, c],
        )


@definition(family="inception-resnet-v2", source="own", licence="Apache-2.0")
def inception_resnet_v2() -> Iterator[Entry]:
    """Szegedy et al. 2017, "Inception-v4, Inception-ResNet and the impact of residual connections on
    learning": the public version 2 with 10, 20 and 10 blocks, and shallower networks.
    """
    for a, b, c in ((2, 4, 2), (5, 10, 5), (10, 20, 10)):
        yield from image_workloads(
            f"inception-resnet-v2-{a}-{b}-{c}",
            partial(InceptionResNetV2, a, b, c),
            size=299,
            blocks=[a, b, c],
        )
