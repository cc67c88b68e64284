"""Encoder-decoder networks with skip connections: U-Net, U-Net++, Attention U-Net, V-Net."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..registry import definition
from .layers import conv_norm
from .workload import Entry, ids, reals, workloads


def double(inputs: int, outputs: int) -> nn.Sequential:
    """Two 3 x 3 convolutions, each with batch normalisation and ReLU."""
    return nn.Sequential(conv_norm(inputs, outputs), conv_norm(outputs, outputs))


def segmentation_loss(logits: Tensor, labels: Tensor | None) -> Tensor:
    """Cross-entropy of every pixel; the logits themselves without labels."""
    return logits if labels is None else F.cross_entropy(logits, labels)


class UNet(nn.Module):
    """Contracting path, expanding path, and a skip connection at every level.

    Args:
        depth: Number of halvings.
        channels: Channels of the top level; every level doubles them.
        classes: Number of classes.
    """

    def __init__(self, depth: int, channels: int, classes: int = 2) -> None:
        super().__init__()
        widths = [channels * 2**level for level in range(depth + 1)]
        self.down = nn.ModuleList(
            double(3 if level == 0 else widths[level - 1], widths[level]) for level in range(depth + 1)
        )
        self.pool = nn.MaxPool2d(2)
        self.enlarge = nn.ModuleList(
            nn.ConvTranspose2d(widths[level + 1], widths[level], 2, 2) for level in reversed(range(depth))
        )
        self.up = nn.ModuleList(double(2 * widths[level], widths[level]) for level in reversed(range(depth)))
        self.head = nn.Conv2d(channels, classes, 1)

    def forward(self, images: Tensor, labels: Tensor | None = None) -> Tensor:
        features = images
        skips = []
        for level, block in enumerate(self.down):
            features = block(features if level == 0 else self.pool(features))
            skips.append(features)
        skips.pop()
        for enlarge, block in zip(self.enlarge, self.up, strict=True):
            features = block(torch.cat([skips.pop(), enlarge(features)], 1))
        return segmentation_loss(self.head(features), labels)


class AttentionGate(nn.Module):
    """Weights a skip connection by where the coarser features look."""

    def __init__(self, skip: int, coarse: int, hidden: int) -> None:
        super().__init__()
        self.of_skip = conv_norm(skip, hidden, 1, activation=None)
        self.of_coarse = conv_norm(coarse, hidden, 1, activation=None)
        self.score = conv_norm(hidden, 1, 1, activation=nn.Sigmoid)

    def forward(self, skip: Tensor, coarse: Tensor) -> Tensor:
        return skip * self.score(F.relu(self.of_skip(skip) + self.of_coarse(coarse)))


class AttentionUNet(nn.Module):
    """U-Net whose skip connections pass attention gates."""

    def __init__(self, depth: int, channels: int, classes: int = 2) -> None:
        super().__init__()
        widths = [channels * 2**level for level in range(depth + 1)]
        levels = list(reversed(range(depth)))
        self.down = nn.ModuleList(
            double(3 if level == 0 else widths[level - 1], widths[level]) for level in range(depth + 1)
        )
        self.pool = nn.MaxPool2d(2)
        self.enlarge = nn.ModuleList(
            nn.Sequential(nn.Upsample(scale_factor=2), conv_norm(widths[level + 1], widths[level]))
            for level in levels
        )
        self.gates = nn.ModuleList(
            AttentionGate(widths[level], widths[level], widths[level] // 2) for level in levels
        )
        self.up = nn.ModuleList(double(2 * widths[level], widths[level]) for level in levels)
        self.head = nn.Conv2d(channels, classes, 1)

    def forward(self, images: Tensor, labels: Tensor | None = None) -> Tensor:
        features = images
        skips = []
        for level, block in enumerate(self.down):
            features = block(features if level == 0 else self.pool(features))
            skips.append(features)
        skips.pop()
        for enlarge, gate, block in zip(self.enlarge, self.gates, self.up, strict=True):
            coarse = enlarge(features)
            features = block(torch.cat([gate(skips.pop(), coarse), coarse], 1))
        return segmentation_loss(self.head(features), labels)


class NestedUNet(nn.Module):
    """U-Net++: a triangle of blocks; block (i, j) reads all (i, < j) and the enlarged (i + 1, j - 1).

    Args:
        depth: Number of halvings.
        channels: Channels of the top level.
        supervised: Whether every block of the top row has a head and a share in the loss.
        classes: Number of classes.
    """

    def __init__(self, depth: int, channels: int, *, supervised: bool, classes: int = 2) -> None:
        super().__init__()
        widths = [channels * 2**level for level in range(depth + 1)]
        self.depth = depth
        self.pool = nn.MaxPool2d(2)
        self.enlarge = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True)
        self.blocks = nn.ModuleDict()
        for level in range(depth + 1):
            self.blocks[f"{level}_0"] = double(3 if level == 0 else widths[level - 1], widths[level])
            for column in range(1, depth + 1 - level):
                read = column * widths[level] + widths[level + 1]
                self.blocks[f"{level}_{column}"] = double(read, widths[level])
        self.heads = nn.ModuleList(nn.Conv2d(channels, classes, 1) for _ in range(depth if supervised else 1))

    def forward(self, images: Tensor, labels: Tensor | None = None) -> Tensor:
        grid: dict[tuple[int, int], Tensor] = {}
        for level in range(self.depth + 1):
            below = images if level == 0 else self.pool(grid[level - 1, 0])
            grid[level, 0] = self.blocks[f"{level}_0"](below)
            for column in range(1, level + 1):
                row = level - column
                read = [grid[row, earlier] for earlier in range(column)]
                read.append(self.enlarge(grid[row + 1, column - 1]))
                grid[row, column] = self.blocks[f"{row}_{column}"](torch.cat(read, 1))
        first = self.depth + 1 - len(self.heads)
        results = [head(grid[0, first + index]) for index, head in enumerate(self.heads)]
        if labels is None:
            return torch.stack(results).mean(0)
        return torch.stack([F.cross_entropy(logits, labels) for logits in results]).mean()


class VolumeBlock(nn.Module):
    """5 x 5 x 5 convolutions with a residual connection around them (V-Net)."""

    def __init__(self, inputs: int, channels: int, convolutions: int) -> None:
        super().__init__()
        layers = nn.Sequential()
        for index in range(convolutions):
            layers.append(nn.Conv3d(inputs if index == 0 else channels, channels, 5, padding=2))
            layers.append(nn.BatchNorm3d(channels))
            layers.append(nn.PReLU(channels))
        self.layers = layers

    def forward(self, features: Tensor, shortcut: Tensor) -> Tensor:
        return self.layers(features) + shortcut


class VNet(nn.Module):
    """Volumetric encoder and decoder with residual blocks; the loss is the Dice coefficient's.

    Args:
        convolutions: Of each level on the way down, the deepest last.
        channels: Channels of the top level.
    """

    def __init__(self, convolutions: tuple[int, ...], channels: int) -> None:
        super().__init__()
        depth = len(convolutions) - 1
        widths = [channels * 2**level for level in range(depth + 1)]
        self.input = nn.Conv3d(1, channels, 5, padding=2)
        self.down = nn.ModuleList(
            VolumeBlock(widths[level], widths[level], count) for level, count in enumerate(convolutions)
        )
        self.shrink = nn.ModuleList(nn.Conv3d(a, 2 * a, 2, 2) for a in widths[:-1])
        self.enlarge = nn.ModuleList(nn.ConvTranspose3d(2 * a, a, 2, 2) for a in reversed(widths[:-1]))
        self.up = nn.ModuleList(
            VolumeBlock(2 * widths[level], widths[level], convolutions[level])
            for level in reversed(range(depth))
        )
        self.head = nn.Conv3d(channels, 1, 1)

    def forward(self, volume: Tensor, mask: Tensor | None = None) -> Tensor:
        features = self.input(volume)
        skips = []
        for level, block in enumerate(self.down):
            if level > 0:
                features = self.shrink[level - 1](features)
            features = block(features, features)
            skips.append(features)
        skips.pop()
        for enlarge, block in zip(self.enlarge, self.up, strict=True):
            enlarged = enlarge(features)
            features = block(torch.cat([enlarged, skips.pop()], 1), enlarged)
        probability = torch.sigmoid(self.head(features))
        if mask is None:
            return probability
        overlap = (probability * mask).sum()
        return 1 - 2 * overlap / ((probability * probability).sum() + (mask * mask).sum())


def segmentation(
    name: str, network: Callable[[], nn.Module], size: int, depth: int, channels: int, **configuration: Any
) -> Iterator[Entry]:
    """Graphs of a network that tells two classes of pixels apart."""
    yield from workloads(
        name,
        network,
        inputs=(reals(8, 3, size, size),),
        targets=(ids(2, 8, size, size),),
        batch=8,
        image=size,
        depth=depth,
        channels=channels,
        **configuration,
    )


@definition(family="unet", source="own", licence="Apache-2.0")
def unet() -> Iterator[Entry]:
    """Ronneberger et al. 2015, "U-Net: convolutional networks for biomedical image segmentation", with padded
    convolutions and batch normalisation, as mostly used today.
    """
    for depth, size in ((3, 128), (4, 256), (6, 256)):
        channels = 64 if depth < 6 else 32
        yield from segmentation(f"unet-{depth}", partial(UNet, depth, channels), size, depth, channels)


@definition(family="attention-unet", source="own", licence="Apache-2.0")
def attention_unet() -> Iterator[Entry]:
    """Oktay et al. 2018, "Attention U-Net: learning where to look for the pancreas", for images."""
    for depth in (3, 4, 5):
        name = f"attention-unet-{depth}"
        yield from segmentation(name, partial(AttentionUNet, depth, 32), 256, depth, 32)


@definition(family="unet-plus-plus", source="own", licence="Apache-2.0")
def unet_plus_plus() -> Iterator[Entry]:
    """Zhou et al. 2018, "UNet++: a nested U-Net architecture for medical image segmentation", with and without
    deep supervision.
    """
    for depth, supervised in ((3, False), (4, True), (5, True)):
        name = f"unet-plus-plus-{depth}"
        network = partial(NestedUNet, depth, 32, supervised=supervised)
        yield from segmentation(name, network, 256, depth, 32, supervised=supervised)


@definition(family="vnet", source="own", licence="Apache-2.0")
def vnet() -> Iterator[Entry]:
    """Milletari et al. 2016, "V-Net: fully convolutional neural networks for volumetric medical image
    segmentation".
    """
    for convolutions in ((1, 2, 3, 3, 3), (1, 2, 3)):
        yield from workloads(
            f"vnet-{len(convolutions)}",
            partial(VNet, convolutions, 16),
            inputs=(reals(2, 1, 64, 64, 64),),
            targets=(reals(2, 1, 64, 64, 64),),
            batch=2,
            volume=64,
            convolutions=list(convolutions),
            channels=16,
        )
