"""Networks whose wiring follows a structure or a program: Tree-LSTM, pointer network, NTM, neural ODE, capsules."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .layers import LSTMCell, State, conv_norm, token_loss, zero_state

#: Per inner node of a binary tree its two children; leaves come first, the root is last.
Tree = tuple[tuple[int, int], ...]


def random_tree(leaves: int, seed: int) -> Tree:
    """Joins two random neighbours of the row of subtrees until one is left."""
    random = np.random.default_rng(seed)
    row = list(range(leaves))
    joins = []
    while len(row) > 1:
        at = int(random.integers(len(row) - 1))
        joins.append((row[at], row[at + 1]))
        row[at : at + 2] = [leaves + len(joins) - 1]
    return tuple(joins)


class TreeLSTM(nn.Module):
    """Binary Tree-LSTM over a fixed tree; every node has a class.

    Args:
        tree: The tree, the same for all samples of a batch.
        hidden: Width.
        vocabulary: Number of words.
        classes: Number of classes.
    """

    def __init__(self, tree: Tree, hidden: int, vocabulary: int, classes: int = 5) -> None:
        super().__init__()
        self.tree = tree
        self.words = nn.Embedding(vocabulary, hidden)
        self.leaf = nn.Linear(hidden, 2 * hidden)
        self.gates = nn.Linear(2 * hidden, 5 * hidden)
        self.head = nn.Linear(hidden, classes)

    def compose(self, left: State, right: State) -> State:
        """State of a node from those of its children, each with its own forget gate."""
        gates = self.gates(torch.cat([left[0], right[0]], 1)).chunk(5, 1)
        take, forget_left, forget_right, emit = (torch.sigmoid(gate) for gate in gates[:4])
        memory = take * torch.tanh(gates[4]) + forget_left * left[1] + forget_right * right[1]
        return emit * torch.tanh(memory), memory

    def forward(self, words: Tensor, classes: Tensor | None = None) -> Tensor:
        states: list[State] = []
        for features in self.words(words).unbind(1):
            emit, memory = self.leaf(features).chunk(2, 1)
            states.append((torch.sigmoid(emit) * torch.tanh(memory), memory))
        for left, right in self.tree:
            states.append(self.compose(states[left], states[right]))
        logits = self.head(torch.stack([hidden for hidden, _ in states], 1))
        return logits if classes is None else token_loss(logits, classes)


class TensorNetwork(nn.Module):
    """Recursive neural tensor network: composition by bilinear forms."""

    def __init__(self, tree: Tree, hidden: int, vocabulary: int, classes: int = 5) -> None:
        super().__init__()
        self.tree = tree
        self.words = nn.Embedding(vocabulary, hidden)
        self.bilinear = nn.Parameter(torch.zeros(hidden, 2 * hidden, 2 * hidden))
        self.linear = nn.Linear(2 * hidden, hidden)
        self.head = nn.Linear(hidden, classes)

    def forward(self, words: Tensor, classes: Tensor | None = None) -> Tensor:
        nodes = list(self.words(words).unbind(1))
        for left, right in self.tree:
            both = torch.cat([nodes[left], nodes[right]], 1)
            quadratic = (torch.einsum("bi,kij->bkj", both, self.bilinear) @ both.unsqueeze(2)).squeeze(2)
            nodes.append(torch.tanh(quadratic + self.linear(both)))
        logits = self.head(torch.stack(nodes, 1))
        return logits if classes is None else token_loss(logits, classes)


class PointerNetwork(nn.Module):
    """Decoder that points at places of the input, one after the other."""

    def __init__(self, points: int, hidden: int) -> None:
        super().__init__()
        self.points, self.hidden = points, hidden
        self.input = nn.Linear(2, hidden)
        self.encoder = LSTMCell(hidden, hidden)
        self.decoder = LSTMCell(hidden, hidden)
        self.keys = nn.Linear(hidden, hidden, bias=False)
        self.query = nn.Linear(hidden, hidden, bias=False)
        self.score = nn.Linear(hidden, 1, bias=False)
        self.start = nn.Parameter(torch.zeros(hidden))

    def forward(self, places: Tensor, order: Tensor | None = None) -> Tensor:
        embedded = self.input(places)
        state = zero_state(embedded, places.shape[0], self.hidden)
        outputs = []
        for features in embedded.unbind(1):
            state = self.encoder(features, state)
            outputs.append(state[0])
        keys = self.keys(torch.stack(outputs, 1))
        features = self.start.expand(places.shape[0], -1)
        logits = []
        for _ in range(self.points):
            state = self.decoder(features, state)
            scores = self.score(torch.tanh(keys + self.query(state[0]).unsqueeze(1))).squeeze(2)
            logits.append(scores)
            features = torch.bmm(torch.softmax(scores, 1).unsqueeze(1), embedded).squeeze(1)
        stacked = torch.stack(logits, 1)
        return stacked if order is None else token_loss(stacked, order)


class NeuralTuringMachine(nn.Module):
    """LSTM controller with one read and one write head on a memory: content, interpolation, shift, sharpening.

    Args:
        width: Of the input and output vectors.
        hidden: Of the controller.
        places: Memory locations.
        size: Of a location.
    """

    def __init__(self, width: int, hidden: int, places: int, size: int) -> None:
        super().__init__()
        self.places, self.size, self.hidden = places, size, hidden
        self.controller = LSTMCell(width + size, hidden)
        self.read_head = nn.Linear(hidden, size + 6)
        self.write_head = nn.Linear(hidden, 3 * size + 6)
        self.output = nn.Linear(hidden + size, width)

    def address(self, head: Tensor, memory: Tensor, before: Tensor) -> Tensor:
        """Weights of the locations from a head's raw outputs, [batch, places]."""
        key, strength, gate, shift, power = torch.split(head, [self.size, 1, 1, 3, 1], 1)
        key = torch.tanh(key)
        product = torch.bmm(memory, key.unsqueeze(2)).squeeze(2)
        lengths = torch.sqrt((memory * memory).sum(2) * (key * key).sum(1, keepdim=True) + 1e-8)
        content = torch.softmax(F.softplus(strength) * product / lengths, 1)
        gate = torch.sigmoid(gate)
        mixed = gate * content + (1 - gate) * before
        left, stay, right = torch.softmax(shift, 1).chunk(3, 1)
        shifted = left * torch.roll(mixed, -1, 1) + stay * mixed + right * torch.roll(mixed, 1, 1)
        sharp = (shifted + 1e-8) ** (1 + F.softplus(power))
        return sharp / sharp.sum(1, keepdim=True)

    def forward(self, sequence: Tensor, targets: Tensor | None = None) -> Tensor:
        batch = sequence.shape[0]
        memory = sequence.new_zeros(batch, self.places, self.size) + 1e-6
        reading = writing = sequence.new_zeros(batch, self.places) + 1 / self.places
        read = sequence.new_zeros(batch, self.size)
        state = zero_state(sequence, batch, self.hidden)
        outputs = []
        for features in sequence.unbind(1):
            state = self.controller(torch.cat([features, read], 1), state)
            head = self.write_head(state[0])
            address, erase, add = torch.split(head, [self.size + 6, self.size, self.size], 1)
            writing = self.address(address, memory, writing)
            at = writing.unsqueeze(2)
            memory = memory * (1 - at * torch.sigmoid(erase).unsqueeze(1)) + at * torch.tanh(add).unsqueeze(1)
            reading = self.address(self.read_head(state[0]), memory, reading)
            read = torch.bmm(reading.unsqueeze(1), memory).squeeze(1)
            outputs.append(self.output(torch.cat([state[0], read], 1)))
        logits = torch.stack(outputs, 1)
        return logits if targets is None else F.binary_cross_entropy_with_logits(logits, targets)


class NeuralODE(nn.Module):
    """An image classifier whose middle is an ordinary differential equation, solved by Runge-Kutta of order 4."""

    def __init__(self, steps: int, channels: int, classes: int = 10) -> None:
        super().__init__()
        self.steps = steps
        self.stem = nn.Sequential(
            conv_norm(3, channels),
            conv_norm(channels, channels, 4, 2, padding=1),
            conv_norm(channels, channels, 4, 2),
        )
        self.norms = nn.ModuleList(nn.GroupNorm(16, channels) for _ in range(3))
        self.first = nn.Conv2d(channels + 1, channels, 3, padding=1)
        self.second = nn.Conv2d(channels + 1, channels, 3, padding=1)
        self.head = nn.Linear(channels, classes)

    def derivative(self, time: float, state: Tensor) -> Tensor:
        """What the network says about the rate of change."""
        before, between, after = self.norms
        clock = torch.full_like(state[:, :1], time)
        hidden = self.first(torch.cat([clock, F.relu(before(state))], 1))
        return after(self.second(torch.cat([clock, F.relu(between(hidden))], 1)))

    def forward(self, images: Tensor, labels: Tensor | None = None) -> Tensor:
        state = self.stem(images)
        width = 1 / self.steps
        for step in range(self.steps):
            time = step * width
            first = self.derivative(time, state)
            second = self.derivative(time + width / 2, state + width / 2 * first)
            third = self.derivative(time + width / 2, state + width / 2 * second)
            fourth = self.derivative(time + width, state + width * third)
            state = state + width / 6 * (first + 2 * second + 2 * third + fourth)
        logits = self.head(F.relu(state).mean((2, 3)))
        return logits if labels is None else F.cross_entropy(logits, labels)


class CapsuleNetwork(nn.Module):
    """Primary and class capsules with routing by agreement, and a decoder that regularises.

    Args:
        routings: Rounds of routing.
    """

    def __init__(self, routings: int) -> None:
        super().__init__()
        self.routings = routings
        self.convolution = nn.Conv2d(3, 256, 9)
        self.primary = nn.Conv2d(256, 256, 9, 2)
        self.votes = nn.Parameter(torch.zeros(32 * 64, 10, 16, 8))
        self.decoder = nn.Sequential(
            nn.Linear(160, 512),
            nn.ReLU(),
            nn.Linear(512, 1024),
            nn.ReLU(),
            nn.Linear(1024, 3072),
            nn.Sigmoid(),
        )

    @staticmethod
    def squash(vectors: Tensor) -> Tensor:
        """Keeps the direction; the length goes below 1."""
        square = (vectors * vectors).sum(-1, keepdim=True)
        return square / (1 + square) * vectors * torch.rsqrt(square + 1e-8)

    def forward(self, images: Tensor, labels: Tensor | None = None) -> Tensor:
        batch = images.shape[0]
        primary = self.primary(F.relu(self.convolution(images))).reshape(batch, 32, 8, 64)
        capsules = self.squash(primary.transpose(2, 3).reshape(batch, 2048, 8))
        votes = torch.einsum("nkij,bnj->bnki", self.votes, capsules)
        agreement = votes.new_zeros(batch, 2048, 10)
        result = votes[:, 0]
        for step in range(self.routings):
            weights = torch.softmax(agreement, 2)
            result = self.squash((weights.unsqueeze(3) * votes).sum(1))
            if step < self.routings - 1:
                agreement = agreement + (votes * result.unsqueeze(1)).sum(3)
        lengths = torch.sqrt((result * result).sum(2) + 1e-8)
        if labels is None:
            return lengths
        own = (labels.unsqueeze(1) == torch.arange(10, device=labels.device)).to(lengths.dtype)
        margin = own * F.relu(0.9 - lengths).square() + 0.5 * (1 - own) * F.relu(lengths - 0.1).square()
        decoded = self.decoder((result * own.unsqueeze(2)).flatten(1))
        return margin.sum(1).mean() + 0.0005 * (decoded - images.flatten(1)).square().sum(1).mean()
