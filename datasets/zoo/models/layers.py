"""Layers that many networks share: convolution blocks, recurrent cells, heads and losses."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

Size = int | tuple[int, int]
Activation = Callable[[], nn.Module]


def pair(size: Size) -> tuple[int, int]:
    """Height and width."""
    return (size, size) if isinstance(size, int) else size


def convolution(
    inputs: int,
    outputs: int,
    kernel: Size = 3,
    stride: Size = 1,
    *,
    padding: Size | None = None,
    dilation: int = 1,
    groups: int = 1,
    bias: bool = False,
) -> nn.Conv2d:
    """A 2-d convolution; unless told otherwise, padded so that stride 1 keeps height and width."""
    height, width = pair(kernel)
    same = (dilation * (height - 1) // 2, dilation * (width - 1) // 2)
    return nn.Conv2d(
        inputs,
        outputs,
        (height, width),
        stride,
        same if padding is None else padding,
        dilation,
        groups,
        bias,
    )


def conv_norm(
    inputs: int,
    outputs: int,
    kernel: Size = 3,
    stride: Size = 1,
    *,
    padding: Size | None = None,
    dilation: int = 1,
    groups: int = 1,
    activation: Activation | None = nn.ReLU,
) -> nn.Sequential:
    """Convolution without bias, batch normalisation, activation."""
    block = nn.Sequential()
    block.add_module(
        "convolution",
        convolution(inputs, outputs, kernel, stride, padding=padding, dilation=dilation, groups=groups),
    )
    block.add_module("norm", nn.BatchNorm2d(outputs))
    if activation is not None:
        block.add_module("activation", activation())
    return block


def norm_conv(inputs: int, outputs: int, kernel: Size = 3, stride: Size = 1) -> nn.Sequential:
    """Batch normalisation, ReLU, convolution: the order of the pre-activation networks."""
    return nn.Sequential(nn.BatchNorm2d(inputs), nn.ReLU(), convolution(inputs, outputs, kernel, stride))


class Classifier(nn.Module):
    """Features, global average pooling and a linear head; given labels, their cross-entropy."""

    def __init__(self, features: nn.Module, channels: int, classes: int = 1000) -> None:
        super().__init__()
        self.features = features
        self.head = nn.Linear(channels, classes)

    def forward(self, images: Tensor, labels: Tensor | None = None) -> Tensor:
        logits = self.head(self.features(images).mean((2, 3)))
        return logits if labels is None else F.cross_entropy(logits, labels)


class SqueezeExcitation(nn.Module):
    """Channel gates from globally pooled features (Hu et al. 2018)."""

    def __init__(
        self,
        channels: int,
        hidden: int,
        activation: Activation = nn.ReLU,
        gate: Activation = nn.Sigmoid,
    ) -> None:
        super().__init__()
        self.reduce = nn.Conv2d(channels, hidden, 1)
        self.activation = activation()
        self.expand = nn.Conv2d(hidden, channels, 1)
        self.gate = gate()

    def forward(self, features: Tensor) -> Tensor:
        pooled = features.mean((2, 3), keepdim=True)
        return features * self.gate(self.expand(self.activation(self.reduce(pooled))))


class Concatenated(nn.Module):
    """Branches of the same input, concatenated along the channels."""

    def __init__(self, *branches: nn.Module) -> None:
        super().__init__()
        self.branches = nn.ModuleList(branches)

    def forward(self, features: Tensor) -> Tensor:
        return torch.cat([branch(features) for branch in self.branches], 1)


class Residual(nn.Module):
    """``activation(shortcut(x) + body(x))``."""

    def __init__(
        self, body: nn.Module, shortcut: nn.Module | None = None, activation: nn.Module | None = None
    ) -> None:
        super().__init__()
        self.body = body
        self.shortcut = nn.Identity() if shortcut is None else shortcut
        self.activation = nn.Identity() if activation is None else activation

    def forward(self, features: Tensor) -> Tensor:
        return self.activation(self.body(features) + self.shortcut(features))


State = tuple[Tensor, Tensor]


class LSTMCell(nn.Module):
    """One step of a long short-term memory.

    Args:
        inputs: Size of the input.
        hidden: Size of the state.
        separate: Each gate has its own two products, as in fine-grained dataflow graphs; otherwise one
            product gives all four gates from input and state side by side.
    """

    def __init__(self, inputs: int, hidden: int, *, separate: bool = False) -> None:
        super().__init__()
        self.separate = separate
        if separate:
            self.from_input = nn.ModuleList(nn.Linear(inputs, hidden) for _ in range(4))
            self.from_state = nn.ModuleList(nn.Linear(hidden, hidden, bias=False) for _ in range(4))
        else:
            self.gates = nn.Linear(inputs + hidden, 4 * hidden)

    def forward(self, features: Tensor, state: State) -> State:
        hidden, memory = state
        if self.separate:
            gates = [
                of_input(features) + of_state(hidden)
                for of_input, of_state in zip(self.from_input, self.from_state, strict=True)
            ]
        else:
            gates = list(self.gates(torch.cat([features, hidden], 1)).chunk(4, 1))
        take, forget, candidate, emit = gates
        memory = torch.sigmoid(forget) * memory + torch.sigmoid(take) * torch.tanh(candidate)
        return torch.sigmoid(emit) * torch.tanh(memory), memory


class GRUCell(nn.Module):
    """One step of a gated recurrent unit (Cho et al. 2014)."""

    def __init__(self, inputs: int, hidden: int) -> None:
        super().__init__()
        self.from_input = nn.Linear(inputs, 3 * hidden)
        self.from_state = nn.Linear(hidden, 3 * hidden)

    def forward(self, features: Tensor, hidden: Tensor) -> Tensor:
        reset_input, update_input, new_input = self.from_input(features).chunk(3, 1)
        reset_state, update_state, new_state = self.from_state(hidden).chunk(3, 1)
        reset = torch.sigmoid(reset_input + reset_state)
        update = torch.sigmoid(update_input + update_state)
        new = torch.tanh(new_input + reset * new_state)
        return new + update * (hidden - new)


def zero_state(like: Tensor, batch: int, hidden: int) -> State:
    """The first state of an LSTM cell."""
    zeros = like.new_zeros(batch, hidden)
    return zeros, zeros


def token_loss(logits: Tensor, targets: Tensor) -> Tensor:
    """Cross-entropy of one class per position; logits [..., classes], targets [...]."""
    return F.cross_entropy(logits.flatten(0, -2), targets.flatten())
