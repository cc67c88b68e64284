"""Points, proteins, weather and time series: PointNet, Evoformer, ConvLSTM, N-BEATS."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .attention import attend, feed_forward
from .layers import State


def point_layers(*widths: int) -> nn.Sequential:
    """Shared perceptron over points, [batch, channels, points]."""
    layers = nn.Sequential()
    for inputs, outputs in pairwise(widths):
        layers.extend([nn.Conv1d(inputs, outputs, 1), nn.BatchNorm1d(outputs), nn.ReLU()])
    return layers


class Alignment(nn.Module):
    """Predicts a matrix that turns points or features (T-Net)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width
        self.points = point_layers(width, 64, 128, 1024)
        self.matrix = nn.Sequential(
            nn.Linear(1024, 512),
            nn.BatchNorm1d(512),
            nn.ReLU(),
            nn.Linear(512, 256),
            nn.BatchNorm1d(256),
            nn.ReLU(),
        )
        self.output = nn.Linear(256, width * width)

    def forward(self, points: Tensor) -> Tensor:
        """The matrix, the identity plus what is predicted."""
        pooled = self.points(points).amax(2)
        matrix = self.output(self.matrix(pooled)).reshape(-1, self.width, self.width)
        return matrix + torch.eye(self.width, device=points.device)


class PointNet(nn.Module):
    """Classifies point clouds; with ``parts``, labels every point.

    Args:
        parts: Classes of single points; 0 classifies clouds.
        classes: Classes of clouds.
    """

    def __init__(self, parts: int, classes: int = 40) -> None:
        super().__init__()
        self.parts = parts
        self.turn = Alignment(3)
        self.first = point_layers(3, 64, 64)
        self.turn_features = Alignment(64)
        self.second = point_layers(64, 64, 128, 1024)
        if parts:
            self.head: nn.Module = nn.Sequential(point_layers(1088, 512, 256, 128), nn.Conv1d(128, parts, 1))
        else:
            self.head = nn.Sequential(
                nn.Linear(1024, 512),
                nn.BatchNorm1d(512),
                nn.ReLU(),
                nn.Linear(512, 256),
                nn.ReLU(),
                nn.Linear(256, classes),
            )

    def forward(self, points: Tensor, labels: Tensor | None = None) -> Tensor:
        local = self.first(torch.bmm(self.turn(points), points))
        matrix = self.turn_features(local)
        local = torch.bmm(matrix, local)
        pooled = self.second(local).amax(2)
        if self.parts:
            logits = self.head(torch.cat([local, pooled.unsqueeze(2).expand(-1, -1, points.shape[2])], 1))
        else:
            logits = self.head(pooled)
        if labels is None:
            return logits
        apart = torch.eye(64, device=points.device) - matrix @ matrix.transpose(1, 2)
        return F.cross_entropy(logits, labels) + 0.001 * apart.square().sum((1, 2)).mean()


class GatedAttention(nn.Module):
    """Attention along one axis with a sigmoid gate and an optional bias from pairs; the rest is batch."""

    def __init__(self, width: int, heads: int, pair: int | None) -> None:
        super().__init__()
        self.heads = heads
        self.norm = nn.LayerNorm(width)
        self.query, self.key, self.value = (nn.Linear(width, width, bias=False) for _ in range(3))
        self.bias = nn.Linear(pair, heads, bias=False) if pair else None
        self.gate, self.output = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, features: Tensor, pairs: Tensor | None = None) -> Tensor:
        """Features [rows, places, width]; pairs [places, places, pair width]."""
        rows, places, width = features.shape
        normal = self.norm(features)
        shape = (rows, places, self.heads, width // self.heads)
        query, key, value = (
            project(normal).reshape(shape).transpose(1, 2) for project in (self.query, self.key, self.value)
        )
        bias = self.bias(pairs).permute(2, 0, 1) if self.bias is not None else None
        mixed = attend(query, key, value, bias).transpose(1, 2).reshape(rows, places, width)
        return features + self.output(torch.sigmoid(self.gate(normal)) * mixed)


class TriangleUpdate(nn.Module):
    """Every pair sums over the third corner of its triangles."""

    def __init__(self, width: int, equation: str) -> None:
        super().__init__()
        self.equation = equation
        self.norm, self.after = nn.LayerNorm(width), nn.LayerNorm(width)
        self.left, self.right, self.left_gate, self.right_gate, self.gate, self.output = (
            nn.Linear(width, width) for _ in range(6)
        )

    def forward(self, pairs: Tensor) -> Tensor:
        normal = self.norm(pairs)
        left = torch.sigmoid(self.left_gate(normal)) * self.left(normal)
        right = torch.sigmoid(self.right_gate(normal)) * self.right(normal)
        total = self.after(torch.einsum(self.equation, left, right))
        return pairs + torch.sigmoid(self.gate(normal)) * self.output(total)


class EvoformerBlock(nn.Module):
    """Rows and columns of the alignment, outer product mean, triangles of the pairs."""

    def __init__(self, width: int, pair: int) -> None:
        super().__init__()
        self.rows, self.columns = GatedAttention(width, 8, pair), GatedAttention(width, 8, None)
        self.mix = nn.Sequential(nn.LayerNorm(width), feed_forward(width, 4 * width, nn.ReLU))
        self.outer_norm = nn.LayerNorm(width)
        self.outer_left, self.outer_right = nn.Linear(width, 32), nn.Linear(width, 32)
        self.outer = nn.Linear(1024, pair)
        self.outgoing = TriangleUpdate(pair, "ikc,jkc->ijc")
        self.incoming = TriangleUpdate(pair, "kic,kjc->ijc")
        self.starting, self.ending = GatedAttention(pair, 4, pair), GatedAttention(pair, 4, pair)
        self.pair_mix = nn.Sequential(nn.LayerNorm(pair), feed_forward(pair, 4 * pair, nn.ReLU))

    def forward(self, alignment: Tensor, pairs: Tensor) -> tuple[Tensor, Tensor]:
        """Alignment [sequences, residues, width]; pairs [residues, residues, pair]."""
        alignment = self.rows(alignment, pairs)
        alignment = self.columns(alignment.transpose(0, 1)).transpose(0, 1)
        alignment = alignment + self.mix(alignment)
        normal = self.outer_norm(alignment)
        left, right = self.outer_left(normal), self.outer_right(normal)
        product = torch.einsum("sic,sjd->ijcd", left, right).flatten(2) / alignment.shape[0]
        pairs = self.incoming(self.outgoing(pairs + self.outer(product)))
        pairs = self.starting(pairs, pairs)
        turned = pairs.transpose(0, 1)
        pairs = self.ending(turned, turned).transpose(0, 1)
        return alignment, pairs + self.pair_mix(pairs)


class Evoformer(nn.Module):
    """Blocks between an alignment and pair features; distances in bins and masked residues as losses."""

    def __init__(self, blocks: int, width: int, pair: int) -> None:
        super().__init__()
        self.residues = nn.Embedding(23, width)
        self.left, self.right = nn.Linear(width, pair), nn.Linear(width, pair)
        self.blocks = nn.ModuleList(EvoformerBlock(width, pair) for _ in range(blocks))
        self.distances, self.masked = nn.Linear(pair, 64), nn.Linear(width, 23)

    def forward(
        self, sequences: Tensor, bins: Tensor | None = None, residues: Tensor | None = None
    ) -> Tensor:
        alignment = self.residues(sequences)
        pairs = self.left(alignment[0])[:, None] + self.right(alignment[0])[None]
        for block in self.blocks:
            alignment, pairs = block(alignment, pairs)
        logits = self.distances(pairs + pairs.transpose(0, 1))
        if bins is None or residues is None:
            return logits
        masked = F.cross_entropy(self.masked(alignment).flatten(0, 1), residues.flatten())
        return 0.3 * F.cross_entropy(logits.flatten(0, 1), bins.flatten()) + 2 * masked


class ConvLSTM(nn.Module):
    """Encodes the past frames and forecasts the next ones with convolutional LSTM layers."""

    def __init__(self, layers: int, width: int, ahead: int) -> None:
        super().__init__()
        self.width, self.ahead = width, ahead
        self.encoder, self.forecaster = (
            nn.ModuleList(
                nn.Conv2d((16 if index == 0 else width) + width, 4 * width, 5, padding=2)
                for index in range(layers)
            )
            for _ in range(2)
        )
        self.output = nn.Conv2d(layers * width, 16, 1)

    def step(self, gates: nn.Module, features: Tensor, state: State) -> State:
        """One step of one layer."""
        hidden, memory = state
        take, forget, candidate, emit = gates(torch.cat([features, hidden], 1)).chunk(4, 1)
        memory = torch.sigmoid(forget) * memory + torch.sigmoid(take) * torch.tanh(candidate)
        return torch.sigmoid(emit) * torch.tanh(memory), memory

    def forward(self, frames: Tensor, future: Tensor | None = None) -> Tensor:
        empty = frames.new_zeros(frames.shape[0], self.width, frames.shape[3], frames.shape[4])
        states: list[State] = [(empty, empty) for _ in self.encoder]
        for frame in frames.unbind(1):
            features = frame
            for index, gates in enumerate(self.encoder):
                states[index] = self.step(gates, features, states[index])
                features = states[index][0]
        shown, forecast = torch.zeros_like(frames[:, 0]), []
        for _ in range(self.ahead):
            features = shown
            for index, gates in enumerate(self.forecaster):
                states[index] = self.step(gates, features, states[index])
                features = states[index][0]
            shown = self.output(torch.cat([hidden for hidden, _ in states], 1))
            forecast.append(shown)
        logits = torch.stack(forecast, 1)
        return logits if future is None else (F.softplus(logits) - logits * future).mean()


class NBeats(nn.Module):
    """Stacks of perceptrons; each block explains part of the past and adds to the forecast."""

    def __init__(self, stacks: int, blocks: int, past: int, ahead: int, *, shared: bool) -> None:
        super().__init__()
        self.blocks, self.shared = blocks, shared
        count = stacks if shared else stacks * blocks
        self.bodies, self.backcasts, self.forecasts = nn.ModuleList(), nn.ModuleList(), nn.ModuleList()
        for _ in range(count):
            body = nn.Sequential()
            for index in range(4):
                body.extend([nn.Linear(past if index == 0 else 256, 256), nn.ReLU()])
            self.bodies.append(body)
            self.backcasts.append(nn.Linear(256, past))
            self.forecasts.append(nn.Linear(256, ahead))

    def forward(self, past: Tensor, future: Tensor | None = None) -> Tensor:
        rest, forecast = past, past.new_zeros(())
        repeats = self.blocks if self.shared else 1
        parts = [*zip(self.bodies, self.backcasts, self.forecasts, strict=True)]
        for body, backcast, predict in (part for part in parts for _ in range(repeats)):
            hidden = body(rest)
            forecast = forecast + predict(hidden)
            rest = rest - backcast(hidden)
        # The last block's backcast stays unexplained; its size is asked to be small.
        return forecast if future is None else F.l1_loss(forecast, future) + 0.01 * rest.square().mean()
