"""Networks of searched cells: NASNet-A, AmoebaNet-A, PNASNet-5, DARTS and ENAS."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..registry import definition
from .genotypes import AMOEBANET_A, DARTS_V1, DARTS_V2, ENAS, NASNET_A, PNASNET_5, Genotype, Step
from .layers import Size, convolution
from .workload import Entry, Mode, image_workloads

Repeats = tuple[int, int, int]


def relu_conv_norm(inputs: int, outputs: int, kernel: Size = 1, stride: Size = 1) -> nn.Sequential:
    """ReLU, convolution, batch normalisation: the order within cells."""
    return nn.Sequential(nn.ReLU(), convolution(inputs, outputs, kernel, stride), nn.BatchNorm2d(outputs))


def separable(channels: int, kernel: int, stride: int) -> nn.Sequential:
    """Depthwise separable convolution, applied twice."""
    layers = nn.Sequential()
    for step in (stride, 1):
        layers.append(nn.ReLU())
        layers.append(convolution(channels, channels, kernel, step, groups=channels))
        layers.append(convolution(channels, channels, 1))
        layers.append(nn.BatchNorm2d(channels))
    return layers


class FactorizedReduction(nn.Module):
    """Halves the grid with two strided 1 x 1 convolutions, one of them shifted by a pixel."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.even = convolution(inputs, outputs // 2, 1, 2)
        self.odd = convolution(inputs, outputs - outputs // 2, 1, 2)
        self.norm = nn.BatchNorm2d(outputs)

    def forward(self, features: Tensor) -> Tensor:
        features = F.relu(features)
        shifted = F.pad(features, (0, 1, 0, 1))[:, :, 1:, 1:]
        return self.norm(torch.cat([self.even(features), self.odd(shifted)], 1))


def operation(name: str, channels: int, stride: int) -> nn.Module:
    """The op of a step."""
    kind, size = name.rstrip("0123456789"), int(name[-1]) if name[-1].isdigit() else 0
    if kind == "skip":
        return nn.Identity() if stride == 1 else FactorizedReduction(channels, channels)
    if kind == "sep":
        return separable(channels, size, stride)
    if kind == "avg":
        return nn.AvgPool2d(size, stride, size // 2, count_include_pad=False)
    if kind == "max":
        return nn.MaxPool2d(size, stride, size // 2)
    if kind == "dil":
        depthwise = convolution(channels, channels, size, stride, dilation=2, groups=channels)
        return nn.Sequential(
            nn.ReLU(), depthwise, convolution(channels, channels, 1), nn.BatchNorm2d(channels)
        )
    middle = channels // 4  # 1 x 7 and then 7 x 1, behind a bottleneck
    return nn.Sequential(
        relu_conv_norm(channels, middle),
        relu_conv_norm(middle, middle, (1, 7), (1, stride)),
        relu_conv_norm(middle, middle, (7, 1), (stride, 1)),
        relu_conv_norm(middle, channels),
    )


class Cell(nn.Module):
    """One cell; reads the outputs of the two cells before it."""

    def __init__(
        self,
        steps: Sequence[Step],
        output: Sequence[int],
        widths: tuple[int, int, int],
        *,
        reduces: bool,
        halve: bool,
    ) -> None:
        super().__init__()
        before, previous, channels = widths
        self.output = tuple(output)
        self.reads = tuple(state for _, state in steps)
        self.adapt_before = (
            FactorizedReduction(before, channels) if halve else relu_conv_norm(before, channels)
        )
        self.adapt_previous = relu_conv_norm(previous, channels)
        self.steps = nn.ModuleList(
            operation(name, channels, 2 if reduces and state < 2 else 1) for name, state in steps
        )

    def forward(self, before: Tensor, previous: Tensor) -> Tensor:
        states = [self.adapt_before(before), self.adapt_previous(previous)]
        results: list[Tensor] = []
        for read, step in zip(self.reads, self.steps, strict=True):
            results.append(step(states[read]))
            if len(results) % 2 == 0:
                states.append(results[-2] + results[-1])
        return torch.cat([states[index] for index in self.output], 1)


class StridedStem(nn.Module):
    """DARTS's stem for large images: three strided convolutions; gives its last two outputs."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.quarter = nn.Sequential(
            convolution(3, channels // 2, 3, 2),
            nn.BatchNorm2d(channels // 2),
            relu_conv_norm(channels // 2, channels, 3, 2),
        )
        self.eighth = relu_conv_norm(channels, channels, 3, 2)

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        quarter = self.quarter(images)
        return quarter, self.eighth(quarter)


class PlainStem(nn.Module):
    """One convolution; the first cell reads its output twice."""

    def __init__(self, channels: int, stride: int) -> None:
        super().__init__()
        self.convolution = convolution(3, channels, 3, stride)
        self.norm = nn.BatchNorm2d(channels)

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        features = self.norm(self.convolution(images))
        return features, features


class CellNetwork(nn.Module):
    """A stem, three runs of normal cells with a reduction cell between them, a linear head.

    Args:
        genotype: The cells.
        repeats: Normal cells of each of the three runs.
        channels: Channels of the first run; each reduction doubles them.
        stem: ``"cells"``: a strided convolution of ``stem_channels`` and two reduction cells; ``"strided"``:
            :class:`StridedStem`; ``"small"``: one convolution without stride, for small images.
        stem_channels: See ``stem``.
        classes: Number of classes.
    """

    def __init__(
        self,
        genotype: Genotype,
        repeats: Repeats,
        channels: int,
        *,
        stem: str = "cells",
        stem_channels: int = 32,
        classes: int = 1000,
    ) -> None:
        super().__init__()
        first, second, third = repeats
        runs = [*[False] * first, True, *[False] * second, True, *[False] * third]
        width, halve = channels, False
        if stem == "cells":
            runs = [True, True, *runs]
            width = channels // 4
            before = previous = stem_channels
            self.stem: nn.Module = PlainStem(stem_channels, 2)
        elif stem == "strided":
            before = previous = channels
            halve = True
            self.stem = StridedStem(channels)
        else:
            before = previous = 3 * channels
            self.stem = PlainStem(previous, 1)
        cells = []
        for index, reduces in enumerate(runs):
            if reduces and not (stem == "cells" and index == 0):
                width *= 2
            steps, output = (
                (genotype.reduction, genotype.reduction_output)
                if reduces
                else (genotype.normal, genotype.normal_output)
            )
            if stem == "cells" and index == 2:
                width = channels
            cells.append(Cell(steps, output, (before, previous, width), reduces=reduces, halve=halve))
            before, previous, halve = previous, width * len(output), reduces
        self.cells = nn.ModuleList(cells)
        self.head = nn.Linear(previous, classes)

    def forward(self, images: Tensor, labels: Tensor | None = None) -> Tensor:
        before, previous = self.stem(images)
        for cell in self.cells:
            before, previous = previous, cell(before, previous)
        logits = self.head(F.relu(previous).mean((2, 3)))
        return logits if labels is None else F.cross_entropy(logits, labels)


def entries(
    name: str,
    genotype: Genotype,
    repeats: Repeats,
    channels: int,
    *,
    stem: str = "cells",
    stem_channels: int = 32,
    batch: int = 32,
    size: int = 224,
    modes: tuple[Mode, ...] = ("train", "infer"),
) -> Iterator[Entry]:
    """Graphs of one network; the stem for small images means CIFAR-10's 10 classes."""
    classes = 10 if stem == "small" else 1000
    yield from image_workloads(
        name,
        partial(
            CellNetwork,
            genotype,
            repeats,
            channels,
            stem=stem,
            stem_channels=stem_channels,
            classes=classes,
        ),
        batch=batch,
        size=size,
        classes=classes,
        modes=modes,
        repeats=list(repeats),
        channels=channels,
        stem=stem,
    )


@definition(family="amoebanet", source="own", licence="Apache-2.0", workload=True)
def amoebanet_gdp() -> Iterator[Entry]:
    """AmoebaNet of GDP (Zhou et al. 2019) after Real et al. 2019, "Regularized evolution for image classifier
    architecture search": AmoebaNet-A, 6 normal cells per run, 190 filters, 331 x 331 images, batch 32,
    without the auxiliary head.
    """
    yield from entries(
        "amoebanet-a", AMOEBANET_A, (6, 6, 6), 190, stem_channels=96, size=331, modes=("train",)
    )


@definition(family="amoebanet", source="own", licence="Apache-2.0")
def amoebanet() -> Iterator[Entry]:
    """AmoebaNet-A (Real et al. 2019) in other sizes: the mobile one and that for CIFAR-10."""
    yield from entries("amoebanet-a-mobile", AMOEBANET_A, (4, 4, 4), 50)
    yield from entries("amoebanet-a-cifar", AMOEBANET_A, (6, 6, 6), 36, stem="small", batch=128, size=32)


@definition(family="nasnet", source="own", licence="Apache-2.0")
def nasnet() -> Iterator[Entry]:
    """Zoph et al. 2018, "Learning transferable architectures for scalable image recognition": NASNet-A 4 @
    1056 (mobile), 6 @ 4032 (large) and 6 @ 768 (CIFAR-10), without the auxiliary head.
    """
    yield from entries("nasnet-a-mobile", NASNET_A, (4, 4, 4), 44)
    yield from entries("nasnet-a-large", NASNET_A, (6, 6, 6), 168, stem_channels=96, size=331)
    yield from entries("nasnet-a-cifar", NASNET_A, (6, 6, 6), 32, stem="small", batch=128, size=32)


@definition(family="pnasnet", source="own", licence="Apache-2.0")
def pnasnet() -> Iterator[Entry]:
    """Liu et al. 2018, "Progressive neural architecture search": PNASNet-5, where one cell serves for both
    kinds, without the auxiliary head.
    """
    yield from entries("pnasnet-5-mobile", PNASNET_5, (3, 2, 2), 54)
    yield from entries("pnasnet-5-large", PNASNET_5, (4, 3, 3), 216, stem_channels=96, size=331)
    yield from entries("pnasnet-5-cifar", PNASNET_5, (3, 2, 2), 48, stem="small", batch=128, size=32)


@definition(family="darts", source="own", licence="Apache-2.0")
def darts() -> Iterator[Entry]:
    """Liu et al. 2019, "DARTS: differentiable architecture search": the cells of the first and of the second
    order search, for ImageNet (14 cells) and CIFAR-10 (20 cells), without the auxiliary head.
    """
    yield from entries("darts-v1-cifar", DARTS_V1, (2, 2, 2), 36, stem="small", batch=96, size=32)
    yield from entries("darts-v2-cifar", DARTS_V2, (6, 6, 6), 36, stem="small", batch=96, size=32)
    yield from entries("darts-v1-imagenet", DARTS_V1, (4, 4, 4), 48, stem="strided", batch=64)
    yield from entries("darts-v2-imagenet", DARTS_V2, (4, 4, 4), 48, stem="strided", batch=64)


@definition(family="enas", source="own", licence="Apache-2.0")
def enas() -> Iterator[Entry]:
    """Pham et al. 2018, "Efficient neural architecture search via parameter sharing": the cells of its micro
    search space, for CIFAR-10 and with a strided stem for larger images.
    """
    yield from entries("enas-imagenet", ENAS, (3, 3, 3), 48, stem="strided", batch=64)
    yield from entries("enas-cifar", ENAS, (5, 5, 5), 36, stem="small", batch=144, size=32)
