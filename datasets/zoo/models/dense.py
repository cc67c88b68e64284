"""Networks of many skip connections: DenseNet, Tiramisu, dual path networks, FractalNet, DLA."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .layers import Classifier, Residual, conv_norm, norm_conv


class DenseBlock(nn.Module):
    """Every layer reads the concatenation of the block's input and of all layers before it.

    Args:
        inputs: Channels of the input.
        layers: Number of layers.
        growth: Channels that each layer adds.
        narrow: Whether a 1 x 1 convolution to four times the growth comes first in a layer.
        forget_input: Whether the result is the layers' outputs alone.
    """

    def __init__(
        self, inputs: int, layers: int, growth: int, *, narrow: bool = True, forget_input: bool = False
    ) -> None:
        super().__init__()
        self.forget_input = forget_input
        self.layers = nn.ModuleList(
            nn.Sequential(norm_conv(inputs + index * growth, 4 * growth, 1), norm_conv(4 * growth, growth))
            if narrow
            else norm_conv(inputs + index * growth, growth)
            for index in range(layers)
        )

    def forward(self, features: Tensor) -> Tensor:
        parts = [features]
        for layer in self.layers:
            parts.append(layer(torch.cat(parts, 1)))
        return torch.cat(parts[1:] if self.forget_input else parts, 1)


class DenseNet(Classifier):
    """Dense blocks with halving transitions between them."""

    def __init__(self, blocks: tuple[int, ...], growth: int = 32) -> None:
        channels = 2 * growth
        features = nn.Sequential(conv_norm(3, channels, 7, 2), nn.MaxPool2d(3, 2, 1))
        for index, layers in enumerate(blocks):
            if index > 0:
                features.append(nn.Sequential(norm_conv(channels, channels // 2, 1), nn.AvgPool2d(2)))
                channels //= 2
            features.append(DenseBlock(channels, layers, growth))
            channels += layers * growth
        features.append(nn.BatchNorm2d(channels))
        features.append(nn.ReLU())
        super().__init__(features, channels)


class Tiramisu(nn.Module):
    """Dense blocks on the way down and up of a U-Net; only new feature maps are enlarged.

    Args:
        layers: Layers of the dense blocks on the way down; the last is the bottom.
        growth: Channels that a layer adds.
        classes: Number of classes.
    """

    def __init__(self, layers: tuple[int, ...], growth: int, classes: int = 11) -> None:
        super().__init__()
        channels = 48
        self.stem = nn.Conv2d(3, channels, 3, padding=1)
        self.down = nn.ModuleList()
        self.shrink = nn.ModuleList()
        skips = []
        for count in layers[:-1]:
            self.down.append(DenseBlock(channels, count, growth, narrow=False))
            channels += count * growth
            skips.append(channels)
            self.shrink.append(nn.Sequential(norm_conv(channels, channels, 1), nn.MaxPool2d(2)))
        self.bottom = DenseBlock(channels, layers[-1], growth, narrow=False, forget_input=True)
        fresh = layers[-1] * growth
        self.enlarge = nn.ModuleList()
        self.up = nn.ModuleList()
        for index, count in enumerate(reversed(layers[:-1])):
            last = index == len(layers) - 2
            self.enlarge.append(nn.ConvTranspose2d(fresh, fresh, 3, 2, 1, 1))
            channels = fresh + skips.pop()
            self.up.append(DenseBlock(channels, count, growth, narrow=False, forget_input=not last))
            fresh = count * growth
        self.head = nn.Conv2d(channels + fresh, classes, 1)

    def forward(self, images: Tensor, labels: Tensor | None = None) -> Tensor:
        features = self.stem(images)
        skips = []
        for block, shrink in zip(self.down, self.shrink, strict=True):
            features = block(features)
            skips.append(features)
            features = shrink(features)
        features = self.bottom(features)
        for enlarge, block in zip(self.enlarge, self.up, strict=True):
            features = block(torch.cat([enlarge(features), skips.pop()], 1))
        logits = self.head(features)
        return logits if labels is None else F.cross_entropy(logits, labels)


class DualPathBlock(nn.Module):
    """A grouped bottleneck whose output is partly added to a residual path, partly appended to a dense one."""

    def __init__(
        self, inputs: int, middle: int, residual: int, growth: int, stride: int, *, project: bool
    ) -> None:
        super().__init__()
        self.residual = residual
        self.project = norm_conv(inputs, residual + 2 * growth, 1, stride) if project else None
        self.body = nn.Sequential(
            norm_conv(inputs, middle, 1),
            nn.BatchNorm2d(middle),
            nn.ReLU(),
            nn.Conv2d(middle, middle, 3, stride, 1, groups=32, bias=False),
            norm_conv(middle, residual + growth, 1),
        )

    def forward(self, features: Tensor) -> Tensor:
        kept = features if self.project is None else self.project(features)
        new = self.body(features)
        added = kept[:, : self.residual] + new[:, : self.residual]
        return torch.cat([added, kept[:, self.residual :], new[:, self.residual :]], 1)


class DualPathNetwork(Classifier):
    """Stages of dual path blocks; the first of each stage projects."""

    def __init__(self, blocks: tuple[int, ...], growths: tuple[int, ...], middle: int = 96) -> None:
        features = nn.Sequential(conv_norm(3, 64, 7, 2), nn.MaxPool2d(3, 2, 1))
        channels = 64
        for level, (count, growth) in enumerate(zip(blocks, growths, strict=True)):
            residual, width = 256 * 2**level, middle * 2**level
            for index in range(count):
                stride = 2 if level > 0 and index == 0 else 1
                features.append(DualPathBlock(channels, width, residual, growth, stride, project=index == 0))
                channels = residual + 3 * growth if index == 0 else channels + growth
        features.append(nn.BatchNorm2d(channels))
        features.append(nn.ReLU())
        super().__init__(features, channels)


class Fractal(nn.Module):
    """The expansion rule f(c + 1) = mean of one convolution and of f(c) twice; joins are flat."""

    def __init__(self, inputs: int, outputs: int, columns: int) -> None:
        super().__init__()
        self.depth = 2 ** (columns - 1)
        self.columns = nn.ModuleList()
        for column in range(columns):
            layers = nn.ModuleList()
            for index in range(2**column):
                first = index == 0
                layers.append(conv_norm(inputs if first else outputs, outputs))
            self.columns.append(layers)

    def forward(self, features: Tensor) -> Tensor:
        states = [features] * len(self.columns)
        for row in range(1, self.depth + 1):
            joined = []
            for column, layers in enumerate(self.columns.children()):
                every = self.depth >> column
                if row % every == 0:
                    states[column] = list(layers.children())[row // every - 1](states[column])
                    joined.append(column)
            if len(joined) > 1:
                mean = torch.stack([states[column] for column in joined]).mean(0)
                for column in joined:
                    states[column] = mean
        return states[-1]


class FractalNet(Classifier):
    """Fractal blocks with maximum pooling after each but the last."""

    def __init__(self, columns: int, widths: tuple[int, ...], classes: int) -> None:
        features = nn.Sequential()
        for before, width in zip((3, *widths), widths, strict=False):
            if before != 3:
                features.append(nn.MaxPool2d(2))
            features.append(Fractal(before, width, columns))
        super().__init__(features, widths[-1], classes)


class Tree(nn.Module):
    """Hierarchical aggregation (DLA): two subtrees and a root that reads all their results.

    Args:
        levels: Height; the leaves are residual blocks.
        inputs: Input channels.
        outputs: Output channels.
        stride: Of the first leaf.
        read: Channels that the root reads beside those of the two subtrees.
        with_input: Whether the root also reads the tree's own input, halved.
    """

    def __init__(
        self, levels: int, inputs: int, outputs: int, stride: int, *, read: int = 0, with_input: bool = False
    ) -> None:
        super().__init__()
        self.levels = levels
        self.with_input = with_input
        self.pool = nn.MaxPool2d(2) if stride > 1 else nn.Identity()
        read = read + (inputs if with_input else 0)
        if levels == 1:
            self.left: nn.Module = leaf(inputs, outputs, stride)
            self.right: nn.Module = leaf(outputs, outputs, 1)
            self.root = conv_norm(2 * outputs + read, outputs, 1)
        else:
            self.left = Tree(levels - 1, inputs, outputs, stride)
            self.right = Tree(levels - 1, outputs, outputs, 1, read=outputs + read)

    def forward(self, features: Tensor, *others: Tensor) -> Tensor:
        if self.with_input:
            others = (*others, self.pool(features))
        left = self.left(features)
        if self.levels == 1:
            return self.root(torch.cat([self.right(left), left, *others], 1))
        return self.right(left, left, *others)


def leaf(inputs: int, outputs: int, stride: int) -> Residual:
    """A residual block of two 3 x 3 convolutions."""
    shortcut = None
    if inputs != outputs or stride > 1:
        shortcut = conv_norm(inputs, outputs, 1, stride, activation=None)
    body = nn.Sequential(conv_norm(inputs, outputs, 3, stride), conv_norm(outputs, outputs, activation=None))
    return Residual(body, shortcut, nn.ReLU())
