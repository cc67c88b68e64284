"""Speech: Jasper, QuartzNet, Deep Speech 2, Conformer."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .attention import Attention, feed_forward, sinusoids
from .layers import GRUCell, token_loss


class TimeBlock(nn.Module):
    """Sub-blocks of convolution, normalisation and ReLU over time; the residual joins before the last ReLU.

    Args:
        inputs: Channels of the input.
        outputs: Channels of the result.
        kernel: Width of the convolutions.
        repeats: Number of sub-blocks.
        separable: Depthwise and pointwise instead of full convolutions (QuartzNet instead of Jasper).
    """

    def __init__(self, inputs: int, outputs: int, kernel: int, repeats: int, *, separable: bool) -> None:
        super().__init__()
        self.layers = nn.ModuleList()
        for index in range(repeats):
            before = inputs if index == 0 else outputs
            if separable:
                self.layers.append(
                    nn.Sequential(
                        nn.Conv1d(before, before, kernel, padding=kernel // 2, groups=before, bias=False),
                        nn.Conv1d(before, outputs, 1, bias=False),
                        nn.BatchNorm1d(outputs),
                    )
                )
            else:
                convolution = nn.Conv1d(before, outputs, kernel, padding=kernel // 2, bias=False)
                self.layers.append(nn.Sequential(convolution, nn.BatchNorm1d(outputs)))
        self.shortcut = nn.Sequential(nn.Conv1d(inputs, outputs, 1, bias=False), nn.BatchNorm1d(outputs))

    def forward(self, features: Tensor) -> Tensor:
        hidden = features
        for index, layer in enumerate(self.layers):
            hidden = layer(hidden)
            if index == len(self.layers) - 1:
                hidden = hidden + self.shortcut(features)
            hidden = F.relu(hidden)
        return hidden


class Jasper(nn.Module):
    """A strided convolution, residual blocks, two more convolutions; one letter per frame.

    Args:
        blocks: (channels, kernel) of each block.
        repeats: Sub-blocks of each.
        separable: See :class:`TimeBlock`.
    """

    def __init__(self, blocks: tuple[tuple[int, int], ...], repeats: int, *, separable: bool) -> None:
        super().__init__()
        layers = nn.Sequential(nn.Conv1d(64, 256, 11, 2, 5, bias=False), nn.BatchNorm1d(256), nn.ReLU())
        channels = 256
        for outputs, kernel in blocks:
            layers.append(TimeBlock(channels, outputs, kernel, repeats, separable=separable))
            channels = outputs
        for outputs, kernel, dilation in ((512, 87, 2), (1024, 1, 1)):
            padding = dilation * (kernel // 2)
            groups = channels if separable and kernel > 1 else 1
            if groups > 1:
                layers.append(
                    nn.Conv1d(channels, channels, kernel, 1, padding, dilation, groups=groups, bias=False)
                )
                layers.append(nn.Conv1d(channels, outputs, 1, bias=False))
            else:
                width = kernel if separable else min(kernel, 29)
                layers.append(
                    nn.Conv1d(channels, outputs, width, 1, dilation * (width // 2), dilation, bias=False)
                )
            layers.extend([nn.BatchNorm1d(outputs), nn.ReLU()])
            channels = outputs
        self.layers = layers
        self.head = nn.Conv1d(channels, 29, 1)

    def forward(self, sound: Tensor, letters: Tensor | None = None) -> Tensor:
        logits = self.head(self.layers(sound))
        return logits if letters is None else F.cross_entropy(logits, letters)


class DeepSpeech2(nn.Module):
    """Two strided convolutions over time and frequency, bidirectional recurrent layers, one letter per frame."""

    def __init__(self, layers: int, hidden: int, bands: int = 160) -> None:
        super().__init__()
        self.convolutions = nn.Sequential(
            nn.Conv2d(1, 32, (41, 11), 2, (20, 5)),
            nn.BatchNorm2d(32),
            nn.Hardtanh(0, 20),
            nn.Conv2d(32, 32, (21, 11), (2, 1), (10, 5)),
            nn.BatchNorm2d(32),
            nn.Hardtanh(0, 20),
        )
        self.hidden = hidden
        widths = [32 * bands // 4] + [hidden] * (layers - 1)
        self.forwards = nn.ModuleList(GRUCell(width, hidden) for width in widths)
        self.backwards = nn.ModuleList(GRUCell(width, hidden) for width in widths)
        self.head = nn.Linear(hidden, 29)

    def forward(self, sound: Tensor, letters: Tensor | None = None) -> Tensor:
        features = self.convolutions(sound)
        steps = list(features.flatten(1, 2).unbind(2))
        for forwards, backwards in zip(self.forwards, self.backwards, strict=True):
            left, right = [], []
            state = other = steps[0].new_zeros(steps[0].shape[0], self.hidden)
            for step in steps:
                state = forwards(step, state)
                left.append(state)
            for step in reversed(steps):
                other = backwards(step, other)
                right.append(other)
            steps = [a + b for a, b in zip(left, reversed(right), strict=True)]
        logits = self.head(torch.stack(steps, 1))
        return logits if letters is None else token_loss(logits, letters)


class ConvolutionModule(nn.Module):
    """Gated pointwise, depthwise over time, pointwise (Conformer)."""

    def __init__(self, width: int, kernel: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.widen = nn.Conv1d(width, 2 * width, 1)
        self.depthwise = nn.Conv1d(width, width, kernel, padding=kernel // 2, groups=width)
        self.depthwise_norm = nn.BatchNorm1d(width)
        self.narrow = nn.Conv1d(width, width, 1)

    def forward(self, features: Tensor) -> Tensor:
        kept, gate = self.widen(self.norm(features).transpose(1, 2)).chunk(2, 1)
        mixed = F.silu(self.depthwise_norm(self.depthwise(kept * torch.sigmoid(gate))))
        return self.narrow(mixed).transpose(1, 2)


class ConformerBlock(nn.Module):
    """Half a feed-forward, attention, convolution, half a feed-forward, each residual."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.LayerNorm(width), feed_forward(width, 4 * width, nn.SiLU))
        self.attention_norm = nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.convolution = ConvolutionModule(width, 31)
        self.second = nn.Sequential(nn.LayerNorm(width), feed_forward(width, 4 * width, nn.SiLU))
        self.norm = nn.LayerNorm(width)

    def forward(self, features: Tensor) -> Tensor:
        features = features + 0.5 * self.first(features)
        features = features + self.attention(self.attention_norm(features))
        features = features + self.convolution(features)
        return self.norm(features + 0.5 * self.second(features))


class Conformer(nn.Module):
    """Convolutional subsampling by four and conformer blocks; one word piece per frame."""

    def __init__(self, blocks: int, width: int, heads: int, pieces: int = 1024) -> None:
        super().__init__()
        self.width = width
        self.subsample = nn.Sequential(
            nn.Conv2d(1, width, 3, 2, 1), nn.ReLU(), nn.Conv2d(width, width, 3, 2, 1), nn.ReLU()
        )
        self.project = nn.Linear(20 * width, width)
        self.blocks = nn.ModuleList(ConformerBlock(width, heads) for _ in range(blocks))
        self.head = nn.Linear(width, pieces)

    def forward(self, sound: Tensor, pieces: Tensor | None = None) -> Tensor:
        features = self.project(self.subsample(sound).transpose(1, 2).flatten(2))
        features = features + sinusoids(features.shape[1], self.width, features)
        for block in self.blocks:
            features = block(features)
        logits = self.head(features)
        return logits if pieces is None else token_loss(logits, pieces)
