"""Stacks of dilated convolutions over time: WaveNet, ByteNet and temporal convolutional networks."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..registry import definition
from .layers import token_loss
from .workload import Entry, ids, reals, token_workloads, workloads


class CausalConvolution(nn.Module):
    """A dilated convolution that sees no later sample."""

    def __init__(self, inputs: int, outputs: int, kernel: int, dilation: int) -> None:
        super().__init__()
        self.past = (kernel - 1) * dilation
        self.convolution = nn.Conv1d(inputs, outputs, kernel, dilation=dilation)

    def forward(self, samples: Tensor) -> Tensor:
        return self.convolution(F.pad(samples, (self.past, 0)))


class GatedLayer(nn.Module):
    """Gated activation unit; gives the residual output (the last layer none) and the skip output."""

    def __init__(self, channels: int, skip: int, dilation: int, *, last: bool) -> None:
        super().__init__()
        self.filter = CausalConvolution(channels, channels, 2, dilation)
        self.gate = CausalConvolution(channels, channels, 2, dilation)
        self.residual = None if last else nn.Conv1d(channels, channels, 1)
        self.skip = nn.Conv1d(channels, skip, 1)

    def forward(self, samples: Tensor) -> tuple[Tensor, Tensor]:
        gated = torch.tanh(self.filter(samples)) * torch.sigmoid(self.gate(samples))
        if self.residual is not None:
            samples = samples + self.residual(gated)
        return samples, self.skip(gated)


class WaveNet(nn.Module):
    """Stacks of gated layers; within a stack the dilation runs through 1, 2, ..., 256 again and again.

    Args:
        stacks: Number of stacks.
        layers: Gated layers per stack.
        channels: Residual channels.
        skip: Skip channels.
        levels: Quantisation levels of a sample.
    """

    def __init__(self, stacks: int, layers: int, channels: int, skip: int, levels: int = 256) -> None:
        super().__init__()
        self.input = CausalConvolution(1, channels, 2, 1)
        self.stacks = nn.ModuleList(
            nn.ModuleList(
                GatedLayer(channels, skip, 2 ** (index % 9), last=(stack, index) == (stacks - 1, layers - 1))
                for index in range(layers)
            )
            for stack in range(stacks)
        )
        self.first = nn.Conv1d(skip, skip, 1)
        self.second = nn.Conv1d(skip, levels, 1)

    def forward(self, samples: Tensor, targets: Tensor | None = None) -> Tensor:
        features = self.input(samples)
        skips: list[Tensor] = []
        for stack in self.stacks:
            for layer in stack.children():
                features, skip = layer(features)
                skips.append(skip if not skips else skips[-1] + skip)
        logits = self.second(F.relu(self.first(F.relu(skips[-1]))))
        return logits if targets is None else F.cross_entropy(logits, targets)


class ByteNetBlock(nn.Module):
    """Residual block: normalisation and ReLU before each of three convolutions, the middle one dilated."""

    def __init__(self, channels: int, kernel: int, dilation: int, *, causal: bool) -> None:
        super().__init__()
        half = channels // 2
        span = (kernel - 1) * dilation
        self.padding = (span, 0) if causal else (span // 2, span - span // 2)
        self.norms = nn.ModuleList(nn.GroupNorm(1, width) for width in (channels, half, half))
        self.reduce = nn.Conv1d(channels, half, 1)
        self.dilated = nn.Conv1d(half, half, kernel, dilation=dilation)
        self.expand = nn.Conv1d(half, channels, 1)

    def forward(self, features: Tensor) -> Tensor:
        first, second, third = self.norms
        hidden = self.reduce(F.relu(first(features)))
        hidden = self.dilated(F.pad(F.relu(second(hidden)), self.padding))
        return features + self.expand(F.relu(third(hidden)))


class ByteNet(nn.Module):
    """Encoder and decoder of dilated blocks; the decoder stands on top of the encoder."""

    def __init__(self, sets: int, channels: int, vocabulary: int) -> None:
        super().__init__()
        self.source_embedding = nn.Embedding(vocabulary, channels)
        self.target_embedding = nn.Embedding(vocabulary, channels)
        dilations = [2**power for _ in range(sets) for power in range(5)]
        self.encoder = nn.Sequential(*(ByteNetBlock(channels, 3, d, causal=False) for d in dilations))
        self.merge = nn.Conv1d(2 * channels, channels, 1)
        self.decoder = nn.Sequential(*(ByteNetBlock(channels, 3, d, causal=True) for d in dilations))
        self.output = nn.Linear(channels, vocabulary)

    def forward(self, source: Tensor, shifted: Tensor, targets: Tensor | None = None) -> Tensor:
        encoded = self.encoder(self.source_embedding(source).transpose(1, 2))
        words = self.target_embedding(shifted).transpose(1, 2)
        decoded = self.decoder(self.merge(torch.cat([encoded, words], 1)))
        logits = self.output(F.relu(decoded).transpose(1, 2))
        return logits if targets is None else token_loss(logits, targets)


class TemporalBlock(nn.Module):
    """Two weight-normalised causal convolutions and a residual connection."""

    def __init__(self, inputs: int, outputs: int, kernel: int, dilation: int) -> None:
        super().__init__()
        self.past = (kernel - 1) * dilation
        self.dilation = dilation
        widths = ((inputs, outputs), (outputs, outputs))
        self.directions = nn.ParameterList(torch.empty(b, a, kernel) for a, b in widths)
        self.lengths = nn.ParameterList(torch.empty(b, 1, 1) for _, b in widths)
        self.biases = nn.ParameterList(torch.zeros(b) for _, b in widths)
        self.shortcut = nn.Conv1d(inputs, outputs, 1) if inputs != outputs else nn.Identity()

    def forward(self, features: Tensor) -> Tensor:
        hidden = features
        for direction, length, bias in zip(self.directions, self.lengths, self.biases, strict=True):
            norm = torch.sqrt((direction * direction).sum((1, 2), keepdim=True))
            padded = F.pad(hidden, (self.past, 0))
            hidden = F.relu(F.conv1d(padded, length * direction / norm, bias, dilation=self.dilation))
        return F.relu(hidden + self.shortcut(features))


class TemporalConvolutionalNetwork(nn.Module):
    """Blocks of doubling dilation between an embedding and a softmax layer."""

    def __init__(self, blocks: int, channels: int, vocabulary: int, kernel: int = 3) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, channels // 2)
        self.blocks = nn.Sequential(
            *(
                TemporalBlock(channels // 2 if index == 0 else channels, channels, kernel, 2**index)
                for index in range(blocks)
            )
        )
        self.output = nn.Linear(channels, vocabulary)

    def forward(self, words: Tensor, targets: Tensor | None = None) -> Tensor:
        features = self.blocks(self.embedding(words).transpose(1, 2))
        logits = self.output(features.transpose(1, 2))
        return logits if targets is None else token_loss(logits, targets)


@definition(family="wavenet", source="own", licence="Apache-2.0", workload=True)
def wavenet() -> Iterator[Entry]:
    """WaveNet of GDP (Zhou et al. 2019), 2 stacks of 18 and 4 stacks of 36 layers, after van den Oord et al.
    2016, "WaveNet: a generative model for raw audio". The papers do not give sizes; ours: 256 channels, 4,000
    samples, batch 4, dilations up to 256.
    """
    for stacks, layers in ((2, 18), (4, 36)):
        yield from workloads(
            f"wavenet-{stacks}x{layers}",
            partial(WaveNet, stacks, layers, 256, 256),
            inputs=(reals(4, 1, 4000),),
            targets=(ids(256, 4, 4000),),
            batch=4,
            optimizer="adam",
            modes=("train",),
            stacks=stacks,
            layers=layers,
            channels=256,
            samples=4000,
        )


@definition(family="wavenet", source="own", licence="Apache-2.0")
def wavenet_small() -> Iterator[Entry]:
    """WaveNet (van den Oord et al. 2016) in smaller stacks."""
    for stacks, layers in ((1, 10), (3, 10)):
        yield from workloads(
            f"wavenet-{stacks}x{layers}",
            partial(WaveNet, stacks, layers, 64, 256),
            inputs=(reals(8, 1, 8000),),
            targets=(ids(256, 8, 8000),),
            batch=8,
            optimizer="adam",
            stacks=stacks,
            layers=layers,
            channels=64,
            samples=8000,
        )


@definition(family="bytenet", source="own", licence="Apache-2.0")
def bytenet() -> Iterator[Entry]:
    """Kalchbrenner et al. 2016, "Neural machine translation in linear time": sets of five dilated blocks in
    encoder and decoder; normalisation over a whole sample.
    """
    for sets, length in ((2, 400), (6, 400)):
        yield from workloads(
            f"bytenet-{5 * sets}",
            partial(ByteNet, sets, 800, 296),
            inputs=(ids(296, 16, length), ids(296, 16, length)),
            targets=(ids(296, 16, length),),
            batch=16,
            blocks=5 * sets,
            channels=800,
            characters=length,
        )


@definition(family="tcn", source="own", licence="Apache-2.0")
def temporal_convolutional_network() -> Iterator[Entry]:
    """Bai et al. 2018, "An empirical evaluation of generic convolutional and recurrent networks for sequence
    modeling": weight normalisation as ops of the graph; dropout left out.
    """
    for blocks in (4, 8, 11):
        yield from token_workloads(
            f"tcn-{blocks}",
            partial(TemporalConvolutionalNetwork, blocks, 600, 10000),
            batch=16,
            length=160,
            vocabulary=10000,
            optimizer="sgd",
            blocks=blocks,
            channels=600,
        )
