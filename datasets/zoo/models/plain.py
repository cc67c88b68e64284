"""Chains of convolutions and their first branched relatives: AlexNet, VGG, NiN, GoogLeNet, Xception, RepVGG."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import ClassVar

from torch import Tensor, nn
from torch.nn import functional as F

from ..registry import definition
from .layers import Classifier, Concatenated, Residual, conv_norm, convolution
from .workload import Entry, image_workloads


class Chain(nn.Module):
    """Convolutions and poolings, then linear layers."""

    def __init__(self, features: nn.Module, flat: int, hidden: int, classes: int = 1000) -> None:
        super().__init__()
        self.features = features
        self.classifier = nn.Sequential(
            nn.Linear(flat, hidden),
            nn.ReLU(),
            nn.Linear(hidden, hidden),
            nn.ReLU(),
            nn.Linear(hidden, classes),
        )

    def forward(self, images: Tensor, labels: Tensor | None = None) -> Tensor:
        logits = self.classifier(self.features(images).flatten(1))
        return logits if labels is None else F.cross_entropy(logits, labels)


class AlexNet(Chain):
    """The single tower: five convolutions, no local response normalisation."""

    def __init__(self) -> None:
        features = nn.Sequential()
        channels = 3
        for outputs, kernel, stride, pool in (
            (64, 11, 4, True),
            (192, 5, 1, True),
            (384, 3, 1, False),
            (256, 3, 1, False),
            (256, 3, 1, True),
        ):
            padding = 2 if kernel > 3 else 1
            features.append(nn.Conv2d(channels, outputs, kernel, stride, padding))
            features.append(nn.ReLU())
            if pool:
                features.append(nn.MaxPool2d(3, 2))
            channels = outputs
        super().__init__(features, 256 * 6 * 6, 4096)


class VGG(Chain):
    """3 x 3 convolutions and maximum poolings."""

    REPEATS: ClassVar = {11: (1, 1, 2, 2, 2), 16: (2, 2, 3, 3, 3), 19: (2, 2, 4, 4, 4)}

    def __init__(self, depth: int, *, norm: bool) -> None:
        features = nn.Sequential()
        channels = 3
        for outputs, repeats in zip((64, 128, 256, 512, 512), self.REPEATS[depth], strict=True):
            for _ in range(repeats):
                features.append(nn.Conv2d(channels, outputs, 3, padding=1))
                if norm:
                    features.append(nn.BatchNorm2d(outputs))
                features.append(nn.ReLU())
                channels = outputs
            features.append(nn.MaxPool2d(2))
        super().__init__(features, 512 * 7 * 7, 4096)


def inception(inputs: int, *widths: int) -> Concatenated:
    """GoogLeNet's module: 1 x 1; 1 x 1 and 3 x 3; 1 x 1 and 5 x 5; pooling and 1 x 1."""
    one, narrow3, three, narrow5, five, pool = widths
    return Concatenated(
        conv_norm(inputs, one, 1),
        nn.Sequential(conv_norm(inputs, narrow3, 1), conv_norm(narrow3, three)),
        nn.Sequential(conv_norm(inputs, narrow5, 1), conv_norm(narrow5, five, 5)),
        nn.Sequential(nn.MaxPool2d(3, 1, 1), conv_norm(inputs, pool, 1)),
    )


class GoogLeNet(nn.Module):
    """Nine modules and two auxiliary classifiers, each 0.3 of its loss."""

    def __init__(self, classes: int = 1000) -> None:
        super().__init__()
        self.first = nn.Sequential(
            conv_norm(3, 64, 7, 2),
            nn.MaxPool2d(3, 2, 1),
            conv_norm(64, 64, 1),
            conv_norm(64, 192),
            nn.MaxPool2d(3, 2, 1),
            inception(192, 64, 96, 128, 16, 32, 32),
            inception(256, 128, 128, 192, 32, 96, 64),
            nn.MaxPool2d(3, 2, 1),
            inception(480, 192, 96, 208, 16, 48, 64),
        )
        self.second = nn.Sequential(
            inception(512, 160, 112, 224, 24, 64, 64),
            inception(512, 128, 128, 256, 24, 64, 64),
            inception(512, 112, 144, 288, 32, 64, 64),
        )
        self.third = nn.Sequential(
            inception(528, 256, 160, 320, 32, 128, 128),
            nn.MaxPool2d(3, 2, 1),
            inception(832, 256, 160, 320, 32, 128, 128),
            inception(832, 384, 192, 384, 48, 128, 128),
        )
        self.head = nn.Linear(1024, classes)
        self.auxiliaries = nn.ModuleList(
            nn.Sequential(
                nn.AdaptiveAvgPool2d(4),
                conv_norm(channels, 128, 1),
                nn.Flatten(),
                nn.Linear(2048, 1024),
                nn.ReLU(),
                nn.Linear(1024, classes),
            )
            for channels in (512, 528)
        )

    def forward(self, images: Tensor, labels: Tensor | None = None) -> Tensor:
        first = self.first(images)
        second = self.second(first)
        logits = self.head(self.third(second).mean((2, 3)))
        if labels is None:
            return logits
        loss = F.cross_entropy(logits, labels)
        for auxiliary, features in zip(self.auxiliaries, (first, second), strict=True):
            loss = loss + 0.3 * F.cross_entropy(auxiliary(features), labels)
        return loss


def separable(inputs: int, outputs: int) -> nn.Sequential:
    """Depthwise 3 x 3, pointwise, normalisation."""
    depthwise = convolution(inputs, inputs, 3, groups=inputs)
    return nn.Sequential(depthwise, convolution(inputs, outputs, 1), nn.BatchNorm2d(outputs))


class Xception(Classifier):
    """Entry, middle and exit flow of separable convolutions.

    Args:
        middle: Blocks of the middle flow.
    """

    def __init__(self, middle: int) -> None:
        features = nn.Sequential(conv_norm(3, 32, 3, 2, padding=0), conv_norm(32, 64, 3, padding=0))
        channels = 64
        for outputs in (128, 256, 728):
            features.append(self.block((channels, outputs, outputs), active=channels != 64))
            channels = outputs
        for _ in range(middle):
            layers = nn.Sequential()
            for _ in range(3):
                layers.append(nn.Sequential(nn.ReLU(), separable(728, 728)))
            features.append(Residual(layers))
        features.append(self.block((728, 728, 1024), active=True))
        features.append(nn.Sequential(separable(1024, 1536), nn.ReLU(), separable(1536, 2048), nn.ReLU()))
        super().__init__(features, 2048)

    @staticmethod
    def block(widths: tuple[int, int, int], *, active: bool) -> Residual:
        """Two separable convolutions and a strided pooling beside a strided 1 x 1 convolution."""
        inputs, hidden, outputs = widths
        layers = nn.Sequential()
        if active:
            layers.append(nn.ReLU())
        layers.append(separable(inputs, hidden))
        layers.append(nn.ReLU())
        layers.append(separable(hidden, outputs))
        layers.append(nn.MaxPool2d(3, 2, 1))
        return Residual(layers, conv_norm(inputs, outputs, 1, 2, activation=None))


class RepVGGBlock(nn.Module):
    """The sum of a 3 x 3, a 1 x 1 and, where shapes allow, an identity branch, each normalised."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.wide = conv_norm(inputs, outputs, 3, stride, activation=None)
        self.narrow = conv_norm(inputs, outputs, 1, stride, activation=None)
        self.identity = nn.BatchNorm2d(inputs) if inputs == outputs and stride == 1 else None

    def forward(self, features: Tensor) -> Tensor:
        total = self.wide(features) + self.narrow(features)
        if self.identity is not None:
            total = total + self.identity(features)
        return F.relu(total)


class RepVGG(Classifier):
    """Stages of three-branched blocks, as they are trained."""

    def __init__(self, repeats: tuple[int, ...], widths: tuple[int, ...]) -> None:
        features = nn.Sequential(RepVGGBlock(3, min(64, widths[0]), 2))
        channels = min(64, widths[0])
        for count, outputs in zip(repeats, widths, strict=True):
            for index in range(count):
                features.append(RepVGGBlock(channels, outputs, 1 if index else 2))
                channels = outputs
        super().__init__(features, channels)


class NetworkInNetwork(Classifier):
    """Convolutions followed by two 1 x 1 ones, for small images."""

    def __init__(self, classes: int = 10) -> None:
        features = nn.Sequential()
        channels = 3
        for kernel, widths in ((5, (192, 160, 96)), (5, (192, 192, 192)), (3, (192, 192, 192))):
            for index, width in enumerate(widths):
                features.append(conv_norm(channels, width, kernel if index == 0 else 1))
                channels = width
            if kernel == 5:
                features.append(nn.MaxPool2d(3, 2, 1))
        super().__init__(features, channels, classes)


@definition(family="alexnet", source="own", licence="Apache-2.0")
def alexnet() -> Iterator[Entry]:
    """Krizhevsky 2014, "One weird trick for parallelizing convolutional neural networks": the single tower."""
    yield from image_workloads("alexnet", AlexNet, batch=128, optimizer="adam", modes=("train",))


@definition(family="vgg", source="own", licence="Apache-2.0")
def vgg() -> Iterator[Entry]:
    """Simonyan and Zisserman 2015, "Very deep convolutional networks for large-scale image recognition", plain
    and with batch normalisation.
    """
    for depth, norm in ((11, False), (16, False), (19, False), (16, True)):
        name = f"vgg-{depth}-norm" if norm else f"vgg-{depth}"
        network = partial(VGG, depth, norm=norm)
        yield from image_workloads(name, network, modes=("train",), depth=depth, batch_norm=norm)
    yield from image_workloads("vgg-19-norm", partial(VGG, 19, norm=True), depth=19, batch_norm=True)


@definition(family="nin", source="own", licence="Apache-2.0")
def network_in_network() -> Iterator[Entry]:
    """Lin et al. 2014, "Network in network", with batch normalisation."""
    yield from image_workloads("nin", NetworkInNetwork, batch=128, size=32, classes=10, modes=("train",))


@definition(family="googlenet", source="own", licence="Apache-2.0")
def googlenet() -> Iterator[Entry]:
    """Szegedy et al. 2015, "Going deeper with convolutions", with batch normalisation."""
    yield from image_workloads("googlenet", GoogLeNet, batch=64)


@definition(family="xception", source="own", licence="Apache-2.0")
def xception() -> Iterator[Entry]:
    """Chollet 2017, "Xception: deep learning with depthwise separable convolutions", with 8 blocks in the middle
    flow, and with 16 as DeepLab-v3+ has it.
    """
    for middle in (8, 16):
        yield from image_workloads(
            f"xception-{middle}", partial(Xception, middle), size=299, middle_blocks=middle
        )


@definition(family="repvgg", source="own", licence="Apache-2.0")
def repvgg() -> Iterator[Entry]:
    """Ding et al. 2021, "RepVGG: making VGG-style convnets great again": A0 and B0 before re-parametrisation."""
    for name, repeats, widths in (
        ("a0", (2, 4, 14, 1), (48, 96, 192, 1280)),
        ("b0", (4, 6, 16, 1), (64, 128, 256, 1280)),
    ):
        yield from image_workloads(f"repvgg-{name}", partial(RepVGG, repeats, widths), blocks=list(repeats))
