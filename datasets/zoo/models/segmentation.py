"""Networks that label every pixel: SegNet, DeepLab-v3+, PSPNet, HRNet, ENet, SegFormer."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .attention import attend
from .layers import Residual, conv_norm, convolution
from .mixers import ChannelNorm
from .residual import basic
from .unets import segmentation_loss


def resized(features: Tensor, like: Tensor) -> Tensor:
    """Bilinear, to the height and width of another map."""
    height, width = like.shape[2], like.shape[3]
    return F.interpolate(features, (height, width), mode="bilinear", align_corners=False)


class SegNet(nn.Module):
    """VGG's convolutions, mirrored; the decoder puts values back to where the pooling found them."""

    def __init__(self, repeats: tuple[int, ...], classes: int = 11) -> None:
        super().__init__()
        widths = (64, 128, 256, 512, 512)[: len(repeats)]
        self.down = nn.ModuleList()
        channels = 3
        for count, width in zip(repeats, widths, strict=True):
            self.down.append(self.block(count, channels, width, width))
            channels = width
        self.pool = nn.MaxPool2d(2, return_indices=True)
        self.unpool = nn.MaxUnpool2d(2)
        self.up = nn.ModuleList()
        for index in range(len(repeats) - 1, -1, -1):
            outputs = widths[index - 1] if index else widths[0]
            self.up.append(self.block(repeats[index], widths[index], widths[index], outputs))
        self.head = nn.Conv2d(widths[0], classes, 3, padding=1)

    @staticmethod
    def block(count: int, inputs: int, middle: int, outputs: int) -> nn.Sequential:
        """Convolutions in a row, the last of another width."""
        widths = [inputs, *[middle] * (count - 1), outputs]
        return nn.Sequential(*(conv_norm(a, b) for a, b in pairwise(widths)))

    def forward(self, images: Tensor, labels: Tensor | None = None) -> Tensor:
        features = images
        places = []
        for block in self.down:
            features, where = self.pool(block(features))
            places.append(where)
        for block in self.up:
            features = block(self.unpool(features, places.pop()))
        return segmentation_loss(self.head(features), labels)


class DilatedResNet(nn.Module):
    """ResNet with bottlenecks whose last two stages keep the grid and dilate; gives stage 1 and stage 4."""

    def __init__(self, blocks: tuple[int, ...]) -> None:
        super().__init__()
        self.stem = nn.Sequential(conv_norm(3, 64, 7, 2), nn.MaxPool2d(3, 2, 1))
        self.stages = nn.ModuleList()
        channels = 64
        for level, (count, stride, dilation) in enumerate(
            zip(blocks, (1, 2, 1, 1), (1, 1, 2, 4), strict=True)
        ):
            middle = 64 * 2**level
            stage = nn.Sequential()
            for index in range(count):
                step = stride if index == 0 else 1
                body = nn.Sequential(
                    conv_norm(channels, middle, 1),
                    conv_norm(middle, middle, 3, step, dilation=dilation, padding=dilation),
                    conv_norm(middle, 4 * middle, 1, activation=None),
                )
                shortcut = conv_norm(channels, 4 * middle, 1, step, activation=None) if index == 0 else None
                stage.append(Residual(body, shortcut, nn.ReLU()))
                channels = 4 * middle
            self.stages.append(stage)

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        features = self.stem(images)
        first = features
        for index, stage in enumerate(self.stages):
            features = stage(features)
            first = features if index == 0 else first
        return first, features


class DeepLabV3Plus(nn.Module):
    """Atrous spatial pyramid pooling, and a decoder that adds low-level detail."""

    def __init__(self, blocks: tuple[int, ...], classes: int = 21) -> None:
        super().__init__()
        self.backbone = DilatedResNet(blocks)
        self.pyramid = nn.ModuleList([conv_norm(2048, 256, 1)])
        for rate in (6, 12, 18):
            self.pyramid.append(conv_norm(2048, 256, dilation=rate, padding=rate))
        self.whole = nn.Sequential(nn.Conv2d(2048, 256, 1), nn.ReLU())
        self.mix = conv_norm(1280, 256, 1)
        self.low = conv_norm(256, 48, 1)
        self.decoder = nn.Sequential(conv_norm(304, 256), conv_norm(256, 256), nn.Conv2d(256, classes, 1))

    def forward(self, images: Tensor, labels: Tensor | None = None) -> Tensor:
        low, high = self.backbone(images)
        parts = [branch(high) for branch in self.pyramid]
        parts.append(self.whole(high.mean((2, 3), keepdim=True)).expand_as(parts[0]))
        mixed = resized(self.mix(torch.cat(parts, 1)), low)
        logits = self.decoder(torch.cat([mixed, self.low(low)], 1))
        return segmentation_loss(resized(logits, images), labels)


class PSPNet(nn.Module):
    """Averages over grids of 1, 2, 3 and 6 cells beside the features."""

    def __init__(self, blocks: tuple[int, ...], classes: int = 21) -> None:
        super().__init__()
        self.backbone = DilatedResNet(blocks)
        self.pools = nn.ModuleList(
            nn.Sequential(nn.AvgPool2d(60 // cells), nn.Conv2d(2048, 512, 1), nn.ReLU())
            for cells in (1, 2, 3, 6)
        )
        self.head = nn.Sequential(conv_norm(4096, 512), nn.Conv2d(512, classes, 1))

    def forward(self, images: Tensor, labels: Tensor | None = None) -> Tensor:
        _, features = self.backbone(images)
        parts = [features, *(resized(pool(features), features) for pool in self.pools)]
        return segmentation_loss(resized(self.head(torch.cat(parts, 1)), images), labels)


def residual_block(inputs: int, outputs: int) -> Residual:
    """A basic block, projecting where the width changes."""
    shortcut = conv_norm(inputs, outputs, 1, activation=None) if inputs != outputs else None
    return Residual(basic(inputs, outputs, 1), shortcut, nn.ReLU())


class Exchange(nn.Module):
    """Each resolution gets the sum of all of them, strided or enlarged (HRNet)."""

    def __init__(self, widths: tuple[int, ...]) -> None:
        super().__init__()
        self.count = len(widths)
        self.paths = nn.ModuleDict()
        for target, outputs in enumerate(widths):
            for source, inputs in enumerate(widths):
                if source > target:
                    self.paths[f"{source}_{target}"] = nn.Sequential(
                        conv_norm(inputs, outputs, 1, activation=None),
                        nn.Upsample(scale_factor=2 ** (source - target)),
                    )
                elif source < target:
                    steps = nn.Sequential()
                    for step in range(target - source):
                        last = step == target - source - 1
                        steps.append(
                            conv_norm(
                                inputs,
                                outputs if last else inputs,
                                3,
                                2,
                                activation=None if last else nn.ReLU,
                            )
                        )
                    self.paths[f"{source}_{target}"] = steps

    def forward(self, maps: list[Tensor]) -> list[Tensor]:
        results = []
        for target in range(self.count):
            total = maps[target]
            for source in range(self.count):
                if source != target:
                    total = total + self.paths[f"{source}_{target}"](maps[source])
            results.append(F.relu(total))
        return results


class HRNetModule(nn.Module):
    """Four basic blocks per resolution, then an exchange."""

    def __init__(self, widths: tuple[int, ...]) -> None:
        super().__init__()
        self.branches = nn.ModuleList(
            nn.Sequential(*(residual_block(width, width) for _ in range(4))) for width in widths
        )
        self.exchange = Exchange(widths)

    def forward(self, maps: list[Tensor]) -> list[Tensor]:
        return self.exchange([branch(features) for branch, features in zip(self.branches, maps, strict=True)])


class HRNet(nn.Module):
    """Keeps the highest resolution throughout; a lower one joins at every stage.

    Args:
        modules: Modules of the stages with two, three and four resolutions.
        width: Channels of the highest resolution.
        classes: Number of classes.
    """

    def __init__(self, modules: tuple[int, int, int], width: int, classes: int = 19) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            conv_norm(3, 64, 3, 2), conv_norm(64, 64, 3, 2), *(residual_block(64, 64) for _ in range(4))
        )
        widths = tuple(width * 2**level for level in range(4))
        self.first = nn.ModuleList([conv_norm(64, widths[0]), conv_norm(64, widths[1], 3, 2)])
        self.grow = nn.ModuleList(conv_norm(widths[level], widths[level + 1], 3, 2) for level in (1, 2))
        self.stages = nn.ModuleList(
            nn.Sequential(*(HRNetModule(widths[: level + 2]) for _ in range(count)))
            for level, count in enumerate(modules)
        )
        total = sum(widths)
        self.head = nn.Sequential(conv_norm(total, total, 1), nn.Conv2d(total, classes, 1))

    def forward(self, images: Tensor, labels: Tensor | None = None) -> Tensor:
        features = self.stem(images)
        maps = [branch(features) for branch in self.first]
        for index, stage in enumerate(self.stages):
            if index > 0:
                maps = [*maps, self.grow[index - 1](maps[-1])]
            maps = stage(maps)
        joined = torch.cat([maps[0], *(resized(features, maps[0]) for features in maps[1:])], 1)
        return segmentation_loss(resized(self.head(joined), images), labels)


class ReducedAttention(nn.Module):
    """Attention whose keys and values come from a coarser grid, then a feed-forward with a depthwise convolution."""

    def __init__(self, width: int, heads: int, reduction: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm = nn.LayerNorm(width)
        self.query = nn.Linear(width, width)
        self.reduce = nn.Conv2d(width, width, reduction, reduction) if reduction > 1 else nn.Identity()
        self.reduce_norm = nn.LayerNorm(width) if reduction > 1 else nn.Identity()
        self.key_value = nn.Linear(width, 2 * width)
        self.output = nn.Linear(width, width)
        self.mix_norm = nn.LayerNorm(width)
        self.widen = nn.Linear(width, 4 * width)
        self.depthwise = convolution(4 * width, 4 * width, groups=4 * width, bias=True)
        self.narrow = nn.Linear(4 * width, width)

    def split(self, features: Tensor) -> Tensor:
        batch, length, width = features.shape
        return features.reshape(batch, length, self.heads, width // self.heads).transpose(1, 2)

    def forward(self, grid: Tensor) -> Tensor:
        batch, width, rows, columns = grid.shape
        features = grid.flatten(2).transpose(1, 2)
        normal = self.norm(features)
        coarse = (
            self.reduce(normal.transpose(1, 2).reshape(batch, width, rows, columns))
            .flatten(2)
            .transpose(1, 2)
        )
        key, value = self.key_value(self.reduce_norm(coarse)).chunk(2, 2)
        mixed = attend(self.split(self.query(normal)), self.split(key), self.split(value))
        features = features + self.output(mixed.transpose(1, 2).flatten(2))
        hidden = self.widen(self.mix_norm(features)).transpose(1, 2).reshape(batch, 4 * width, rows, columns)
        hidden = F.gelu(self.depthwise(hidden)).flatten(2).transpose(1, 2)
        features = features + self.narrow(hidden)
        return features.transpose(1, 2).reshape(batch, width, rows, columns)


class SegFormer(nn.Module):
    """Four stages of reduced attention without positions, and a decoder of linear layers."""

    def __init__(
        self, depths: tuple[int, ...], widths: tuple[int, ...], decoder: int, classes: int = 150
    ) -> None:
        super().__init__()
        heads, reductions = (1, 2, 5, 8), (8, 4, 2, 1)
        self.stages = nn.ModuleList()
        channels = 3
        for level, (depth, width) in enumerate(zip(depths, widths, strict=True)):
            patch = (
                convolution(channels, width, 7, 4, bias=True)
                if level == 0
                else convolution(channels, width, 3, 2, bias=True)
            )
            blocks = (ReducedAttention(width, heads[level], reductions[level]) for _ in range(depth))
            self.stages.append(nn.Sequential(patch, ChannelNorm(width), *blocks, ChannelNorm(width)))
            channels = width
        self.unify = nn.ModuleList(nn.Conv2d(width, decoder, 1) for width in widths)
        self.head = nn.Sequential(conv_norm(4 * decoder, decoder, 1), nn.Conv2d(decoder, classes, 1))

    def forward(self, images: Tensor, labels: Tensor | None = None) -> Tensor:
        features = images
        maps: list[Tensor] = []
        for stage, unify in zip(self.stages, self.unify, strict=True):
            features = stage(features)
            unified = unify(features)
            maps.append(resized(unified, maps[0]) if maps else unified)
        logits = self.head(torch.cat(maps, 1))
        return segmentation_loss(resized(logits, images), labels)
