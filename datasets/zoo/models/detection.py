"""Object detectors: RetinaNet, YOLOv3, SSD."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .layers import Activation, Residual, conv_norm
from .residual import BLOCKS, ResNet, bottleneck

LEAKY: Activation = partial(nn.LeakyReLU, 0.1)


class Backbone(nn.Module):
    """ResNet-50's last three stages, on grids of 1/8, 1/16 and 1/32."""

    def __init__(self, depth: int = 50) -> None:
        super().__init__()
        features = ResNet(BLOCKS[depth], bottleneck).features
        stem, stages = features.children()
        first, second, third, fourth = stages.children()
        self.stem = nn.Sequential(stem, first)
        self.stages = nn.ModuleList((second, third, fourth))

    def forward(self, images: Tensor) -> list[Tensor]:
        features = self.stem(images)
        levels = []
        for stage in self.stages:
            features = stage(features)
            levels.append(features)
        return levels


class FeaturePyramid(nn.Module):
    """Top-down path with lateral connections, and two coarser levels."""

    def __init__(self, inputs: tuple[int, ...], channels: int = 256) -> None:
        super().__init__()
        self.laterals = nn.ModuleList(nn.Conv2d(width, channels, 1) for width in inputs)
        self.smooth = nn.ModuleList(nn.Conv2d(channels, channels, 3, padding=1) for _ in inputs)
        self.sixth = nn.Conv2d(inputs[-1], channels, 3, 2, 1)
        self.seventh = nn.Conv2d(channels, channels, 3, 2, 1)

    def forward(self, levels: list[Tensor]) -> list[Tensor]:
        merged = [lateral(level) for lateral, level in zip(self.laterals, levels, strict=True)]
        for index in range(len(merged) - 2, -1, -1):
            merged[index] = merged[index] + F.interpolate(merged[index + 1], scale_factor=2.0)
        pyramid = [smooth(level) for smooth, level in zip(self.smooth, merged, strict=True)]
        sixth = self.sixth(levels[-1])
        return [*pyramid, sixth, self.seventh(F.relu(sixth))]


def head(channels: int, outputs: int, layers: int = 4) -> nn.Sequential:
    """Convolutions shared by all levels of a pyramid."""
    steps = nn.Sequential()
    for _ in range(layers):
        steps.append(nn.Conv2d(channels, channels, 3, padding=1))
        steps.append(nn.ReLU())
    steps.append(nn.Conv2d(channels, outputs, 3, padding=1))
    return steps


def focal_loss(logits: Tensor, targets: Tensor) -> Tensor:
    """Cross-entropy that weighs easy places down."""
    probability = torch.sigmoid(logits)
    entropy = F.softplus(logits) - logits * targets
    missed = probability + targets - 2 * probability * targets
    return (missed.square() * entropy * (0.75 - 0.5 * targets)).mean()


def flattened(maps: list[Tensor], values: int) -> Tensor:
    """Maps of all levels side by side, [batch, places, values]."""
    return torch.cat([level.permute(0, 2, 3, 1).reshape(level.shape[0], -1, values) for level in maps], 1)


class RetinaNet(nn.Module):
    """ResNet, feature pyramid, and two heads that all levels share; 9 anchors per place."""

    def __init__(self, depth: int, classes: int = 80) -> None:
        super().__init__()
        self.classes = classes
        self.backbone = Backbone(depth)
        self.pyramid = FeaturePyramid((512, 1024, 2048))
        self.classifier = head(256, 9 * classes)
        self.regressor = head(256, 36)

    def forward(self, images: Tensor, kinds: Tensor | None = None, boxes: Tensor | None = None) -> Tensor:
        levels = self.pyramid(self.backbone(images))
        logits = flattened([self.classifier(level) for level in levels], self.classes)
        places = flattened([self.regressor(level) for level in levels], 4)
        if kinds is None or boxes is None:
            return torch.cat([torch.sigmoid(logits), places], 2)
        return focal_loss(logits, kinds) + F.smooth_l1_loss(places, boxes)


class Darknet(nn.Module):
    """Darknet-53: strided convolutions and residual blocks."""

    def __init__(self, repeats: tuple[int, ...] = (1, 2, 8, 8, 4)) -> None:
        super().__init__()
        self.stem = conv_norm(3, 32, activation=LEAKY)
        self.stages = nn.ModuleList()
        channels = 32
        for count in repeats:
            stage = nn.Sequential(conv_norm(channels, 2 * channels, 3, 2, activation=LEAKY))
            channels *= 2
            for _ in range(count):
                stage.append(
                    Residual(
                        nn.Sequential(
                            conv_norm(channels, channels // 2, 1, activation=LEAKY),
                            conv_norm(channels // 2, channels, activation=LEAKY),
                        )
                    )
                )
            self.stages.append(stage)

    def forward(self, images: Tensor) -> list[Tensor]:
        features = self.stem(images)
        levels = []
        for stage in self.stages:
            features = stage(features)
            levels.append(features)
        return levels[-3:]


class YOLOv3(nn.Module):
    """Darknet with predictions at three scales, 3 anchors each."""

    def __init__(self, repeats: tuple[int, ...] = (1, 2, 8, 8, 4), classes: int = 80) -> None:
        super().__init__()
        self.backbone = Darknet(repeats)
        outputs = 3 * (classes + 5)
        self.necks = nn.ModuleList()
        self.heads = nn.ModuleList()
        self.narrow = nn.ModuleList()
        for index, (inputs, width) in enumerate(((1024, 512), (768, 256), (384, 128))):
            neck = nn.Sequential()
            for step in range(5):
                before = inputs if step == 0 else (width if step % 2 else 2 * width)
                after = 2 * width if step % 2 else width
                neck.append(conv_norm(before, after, 3 if step % 2 else 1, activation=LEAKY))
            self.necks.append(neck)
            self.heads.append(
                nn.Sequential(conv_norm(width, 2 * width, activation=LEAKY), nn.Conv2d(2 * width, outputs, 1))
            )
            if index < 2:
                self.narrow.append(conv_norm(width, width // 2, 1, activation=LEAKY))

    def forward(self, images: Tensor, objects: Tensor | None = None) -> Tensor:
        levels = self.backbone(images)
        features = levels[-1]
        maps = []
        for index, (neck, predict) in enumerate(zip(self.necks, self.heads, strict=True)):
            if index > 0:
                enlarged = F.interpolate(self.narrow[index - 1](features), scale_factor=2.0)
                features = torch.cat([enlarged, levels[-1 - index]], 1)
            features = neck(features)
            maps.append(predict(features))
        predicted = flattened(maps, 85)
        if objects is None:
            centres, sizes = torch.sigmoid(predicted[..., :2]), torch.exp(predicted[..., 2:4])
            return torch.cat([centres, sizes, torch.sigmoid(predicted[..., 4:])], 2)
        placed = (predicted[..., :4] - objects[..., :4]).square().mean()
        return placed + F.binary_cross_entropy_with_logits(predicted[..., 4:], objects[..., 4:])


class SSD(nn.Module):
    """VGG-16 and ever coarser convolutions; each of six maps predicts boxes and classes."""

    def __init__(self, classes: int = 21) -> None:
        super().__init__()
        self.classes = classes
        layers: list[nn.Module] = []
        channels = 3
        for width in (64, 64, 0, 128, 128, 0, 256, 256, 256, 0, 512, 512, 512):
            if width:
                layers += [nn.Conv2d(channels, width, 3, padding=1), nn.ReLU()]
                channels = width
            else:
                layers.append(nn.MaxPool2d(2, ceil_mode=True))
        deep: list[nn.Module] = [nn.MaxPool2d(2)]
        for _ in range(3):
            deep += [nn.Conv2d(512, 512, 3, padding=1), nn.ReLU()]
        deep += [nn.MaxPool2d(3, 1, 1), nn.Conv2d(512, 1024, 3, padding=6, dilation=6), nn.ReLU()]
        deep += [nn.Conv2d(1024, 1024, 1), nn.ReLU()]
        self.blocks = nn.ModuleList([nn.Sequential(*layers), nn.Sequential(*deep)])
        for inputs, middle, outputs, stride in (
            (1024, 256, 512, 2),
            (512, 128, 256, 2),
            (256, 128, 256, 1),
            (256, 128, 256, 1),
        ):
            self.blocks.append(
                nn.Sequential(
                    nn.Conv2d(inputs, middle, 1),
                    nn.ReLU(),
                    nn.Conv2d(middle, outputs, 3, stride, 1 if stride == 2 else 0),
                    nn.ReLU(),
                )
            )
        widths, boxes = (512, 1024, 512, 256, 256, 256), (4, 6, 6, 6, 4, 4)
        self.classifiers = nn.ModuleList(
            nn.Conv2d(width, count * classes, 3, padding=1)
            for width, count in zip(widths, boxes, strict=True)
        )
        self.regressors = nn.ModuleList(
            nn.Conv2d(width, count * 4, 3, padding=1) for width, count in zip(widths, boxes, strict=True)
        )

    def forward(self, images: Tensor, kinds: Tensor | None = None, boxes: Tensor | None = None) -> Tensor:
        features = images
        logits, places = [], []
        for block, classify, regress in zip(self.blocks, self.classifiers, self.regressors, strict=True):
            features = block(features)
            logits.append(classify(features))
            places.append(regress(features))
        scores, offsets = flattened(logits, self.classes), flattened(places, 4)
        if kinds is None or boxes is None:
            return torch.cat([torch.softmax(scores, 2), offsets], 2)
        return F.cross_entropy(scores.flatten(0, 1), kinds.flatten()) + F.smooth_l1_loss(offsets, boxes)
