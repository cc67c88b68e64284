"""EfficientDet, DETR and stacked hourglasses."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .attention import TransformerLayer
from .detection import Backbone, flattened, focal_loss
from .layers import conv_norm, convolution
from .mobile import EfficientNet
from .residual import PreActivationBlock


class Fusion(nn.Module):
    """A normalised weighted sum of maps, then a separable convolution."""

    def __init__(self, inputs: int, channels: int) -> None:
        super().__init__()
        self.weights = nn.Parameter(torch.ones(inputs))
        self.depthwise = convolution(channels, channels, 3, groups=channels)
        self.pointwise = conv_norm(channels, channels, 1, activation=None)

    def forward(self, *maps: Tensor) -> Tensor:
        weights = F.relu(self.weights)
        shares = (weights / (weights.sum() + 1e-4)).unbind(0)
        total = shares[0] * maps[0]
        for share, features in zip(shares[1:], maps[1:], strict=True):
            total = total + share * features
        return self.pointwise(self.depthwise(F.silu(total)))


class BiFPNLayer(nn.Module):
    """Top-down and bottom-up fusion of five levels."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.down = nn.ModuleList(Fusion(2, channels) for _ in range(4))
        self.up = nn.ModuleList(Fusion(3 if index < 3 else 2, channels) for index in range(4))
        self.pool = nn.MaxPool2d(3, 2, 1)

    def forward(self, levels: list[Tensor]) -> list[Tensor]:
        middle = list(levels)
        for index, fuse in zip(range(3, -1, -1), self.down, strict=True):
            middle[index] = fuse(levels[index], F.interpolate(middle[index + 1], scale_factor=2.0))
        result = [middle[0]]
        for index, fuse in zip(range(1, 5), self.up, strict=True):
            halved = self.pool(result[-1])
            maps = (levels[index], middle[index], halved) if index < 4 else (levels[index], halved)
            result.append(fuse(*maps))
        return result


class EfficientDet(nn.Module):
    """EfficientNet-B0, layers of weighted bidirectional pyramids, separable heads with norms per level."""

    #: Which of the backbone's blocks end on a grid of 1/8, 1/16 and 1/32.
    STAGES = ((0, 6), (6, 12), (12, 17))

    def __init__(self, layers: int, channels: int, depth: int, classes: int = 90) -> None:
        super().__init__()
        blocks = list(EfficientNet(1.0, 1.0).features.children())[:-1]
        self.backbone = nn.ModuleList(nn.Sequential(*blocks[start:stop]) for start, stop in self.STAGES)
        self.laterals = nn.ModuleList(
            conv_norm(width, channels, 1, activation=None) for width in (40, 112, 320)
        )
        self.sixth = nn.Sequential(conv_norm(320, channels, 1, activation=None), nn.MaxPool2d(3, 2, 1))
        self.pool = nn.MaxPool2d(3, 2, 1)
        self.pyramid = nn.Sequential(*(BiFPNLayer(channels) for _ in range(layers)))
        self.classes = classes
        self.towers = nn.ModuleList(
            nn.ModuleList(
                nn.Sequential(
                    convolution(channels, channels, 3, groups=channels), nn.Conv2d(channels, channels, 1)
                )
                for _ in range(depth)
            )
            for _ in range(2)
        )
        self.norms = nn.ModuleList(
            nn.ModuleList(nn.ModuleList(nn.BatchNorm2d(channels) for _ in range(5)) for _ in range(depth))
            for _ in range(2)
        )
        self.outputs = nn.ModuleList(nn.Conv2d(channels, 9 * width, 3, padding=1) for width in (classes, 4))

    def predict(self, which: int, levels: list[Tensor]) -> list[Tensor]:
        """Maps of one head: convolutions are shared by the levels, norms are not."""
        towers, norms = list(self.towers)[which].children(), list(self.norms)[which].children()
        for tower, level_norms in zip(towers, norms, strict=True):
            levels = [
                F.silu(norm(tower(level))) for norm, level in zip(level_norms.children(), levels, strict=True)
            ]
        output = self.outputs[which]
        return [output(level) for level in levels]

    def forward(self, images: Tensor, kinds: Tensor | None = None, boxes: Tensor | None = None) -> Tensor:
        levels, taken = [], images
        for block, lateral in zip(self.backbone, self.laterals, strict=True):
            taken = block(taken)
            levels.append(lateral(taken))
        sixth = self.sixth(taken)
        levels = self.pyramid([*levels, sixth, self.pool(sixth)])
        logits = flattened(self.predict(0, levels), self.classes)
        places = flattened(self.predict(1, levels), 4)
        if kinds is None or boxes is None:
            return torch.cat([torch.sigmoid(logits), places], 2)
        return focal_loss(logits, kinds) + F.smooth_l1_loss(places, boxes)


class DETR(nn.Module):
    """ResNet-50, a transformer encoder, a decoder of object queries; the loss is that after matching.

    Args:
        layers: Of the encoder and of the decoder.
        size: Height and width of the images.
        queries: Object queries.
        classes: Number of classes.
    """

    def __init__(self, layers: int, size: int, queries: int = 100, classes: int = 92) -> None:
        super().__init__()
        self.backbone = Backbone()
        self.project = nn.Conv2d(2048, 256, 1)
        self.positions = nn.Parameter(torch.zeros((size // 32) ** 2, 256))
        self.queries = nn.Parameter(torch.zeros(queries, 256))
        layer = partial(TransformerLayer, 256, 8, 2048, norm_first=False, activation=nn.ReLU)
        self.encoder = nn.ModuleList(layer() for _ in range(layers))
        self.decoder = nn.ModuleList(layer(cross=True) for _ in range(layers))
        self.classifier = nn.Linear(256, classes)
        self.regressor = nn.Sequential(
            nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 4)
        )

    def forward(self, images: Tensor, kinds: Tensor | None = None, boxes: Tensor | None = None) -> Tensor:
        memory = self.project(self.backbone(images)[-1]).flatten(2).transpose(1, 2) + self.positions
        for layer in self.encoder:
            memory = layer(memory)
        objects = self.queries.expand(images.shape[0], -1, -1)
        losses = []
        for layer in self.decoder:
            objects = layer(objects, None, memory)
            if kinds is not None and boxes is not None:
                logits = self.classifier(objects).flatten(0, 1)
                places = torch.sigmoid(self.regressor(objects))
                losses.append(F.cross_entropy(logits, kinds.flatten()) + 5 * F.l1_loss(places, boxes))
        if losses:
            return torch.stack(losses).sum()
        return torch.cat([self.classifier(objects), torch.sigmoid(self.regressor(objects))], 2)


class Hourglass(nn.Module):
    """Recursive halving with a residual block at every scale on either side."""

    def __init__(self, depth: int, channels: int) -> None:
        super().__init__()
        self.skip = PreActivationBlock(channels, channels // 4, 1)
        self.down = nn.Sequential(nn.MaxPool2d(2), PreActivationBlock(channels, channels // 4, 1))
        self.inner: nn.Module = (
            Hourglass(depth - 1, channels) if depth > 1 else PreActivationBlock(channels, channels // 4, 1)
        )
        self.up = PreActivationBlock(channels, channels // 4, 1)

    def forward(self, features: Tensor) -> Tensor:
        inner = self.up(self.inner(self.down(features)))
        return self.skip(features) + F.interpolate(inner, scale_factor=2.0)


class StackedHourglass(nn.Module):
    """Hourglasses in a row; each gives heat maps, which the next one sees."""

    def __init__(self, stacks: int, channels: int = 256, joints: int = 16) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            conv_norm(3, 64, 7, 2),
            PreActivationBlock(64, 32, 1),
            nn.MaxPool2d(2),
            PreActivationBlock(128, 32, 1),
            PreActivationBlock(128, channels // 4, 1),
        )
        self.hourglasses = nn.ModuleList(
            nn.Sequential(
                Hourglass(4, channels),
                PreActivationBlock(channels, channels // 4, 1),
                conv_norm(channels, channels, 1),
            )
            for _ in range(stacks)
        )
        self.heads = nn.ModuleList(nn.Conv2d(channels, joints, 1) for _ in range(stacks))
        self.back = nn.ModuleList(nn.Conv2d(channels, channels, 1) for _ in range(stacks - 1))
        self.seen = nn.ModuleList(nn.Conv2d(joints, channels, 1) for _ in range(stacks - 1))

    def forward(self, images: Tensor, maps: Tensor | None = None) -> Tensor:
        features = self.stem(images)
        predictions = []
        for index, (hourglass, head) in enumerate(zip(self.hourglasses, self.heads, strict=True)):
            inner = hourglass(features)
            predictions.append(head(inner))
            if index < len(self.back):
                features = features + self.back[index](inner) + self.seen[index](predictions[-1])
        if maps is None:
            return predictions[-1]
        return torch.stack([F.mse_loss(predicted, maps) for predicted in predictions]).sum()
