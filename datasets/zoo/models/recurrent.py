"""Recurrent sequence models beside LSTM language models: RHN, QRNN, SRU, tagging with a CRF."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..registry import definition
from .layers import LSTMCell, token_loss, zero_state
from .workload import Entry, ids, token_workloads, workloads


class HighwayLayer(nn.Module):
    """One micro-step of a recurrent highway network."""

    def __init__(self, hidden: int, inputs: int) -> None:
        super().__init__()
        self.from_input = nn.Linear(inputs, 2 * hidden, bias=False) if inputs else None
        self.from_state = nn.Linear(hidden, 2 * hidden)

    def forward(self, state: Tensor, features: Tensor) -> Tensor:
        gates = self.from_state(state)
        if self.from_input is not None:
            gates = gates + self.from_input(features)
        candidate, transform = gates.chunk(2, 1)
        transform = torch.sigmoid(transform)
        return torch.tanh(candidate) * transform + state * (1 - transform)


class RecurrentHighwayNetwork(nn.Module):
    """Several micro-steps per word; only the first sees the word."""

    def __init__(self, depth: int, hidden: int, vocabulary: int) -> None:
        super().__init__()
        self.words = nn.Embedding(vocabulary, hidden)
        self.layers = nn.ModuleList(
            HighwayLayer(hidden, hidden if index == 0 else 0) for index in range(depth)
        )

    def forward(self, words: Tensor, targets: Tensor | None = None) -> Tensor:
        embedded = self.words(words)
        state = embedded.new_zeros(embedded.shape[0], embedded.shape[2])
        states = []
        for features in embedded.unbind(1):
            for layer in self.layers:
                state = layer(state, features)
            states.append(state)
        logits = F.linear(torch.stack(states, 1), self.words.weight)
        return logits if targets is None else token_loss(logits, targets)


class QuasiRecurrentLayer(nn.Module):
    """Gates from a causal convolution of width 2; the recurrence is elementwise (fo-pooling)."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.convolution = nn.Conv1d(hidden, 3 * hidden, 2)

    def forward(self, features: Tensor) -> Tensor:
        gates = self.convolution(F.pad(features.transpose(1, 2), (1, 0))).transpose(1, 2)
        candidate, forget, emit = gates.chunk(3, 2)
        candidate, forget, emit = torch.tanh(candidate), torch.sigmoid(forget), torch.sigmoid(emit)
        fresh = (1 - forget) * candidate
        memory = fresh[:, 0]
        memories = [memory]
        for step in range(1, features.shape[1]):
            memory = forget[:, step] * memory + fresh[:, step]
            memories.append(memory)
        return emit * torch.stack(memories, 1)


class SimpleRecurrentLayer(nn.Module):
    """One product for all steps, light recurrence with state in its gates, highway connection (SRU)."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.product = nn.Linear(hidden, 3 * hidden, bias=False)
        self.forget_state, self.reset_state, self.forget_bias, self.reset_bias = (
            nn.Parameter(torch.zeros(hidden)) for _ in range(4)
        )

    def forward(self, features: Tensor) -> Tensor:
        candidate, forget_input, reset_input = self.product(features).chunk(3, 2)
        state = features.new_zeros(features.shape[0], features.shape[2])
        outputs = []
        for step in range(features.shape[1]):
            forget = torch.sigmoid(forget_input[:, step] + self.forget_state * state + self.forget_bias)
            reset = torch.sigmoid(reset_input[:, step] + self.reset_state * state + self.reset_bias)
            state = forget * state + (1 - forget) * candidate[:, step]
            outputs.append(reset * state + (1 - reset) * features[:, step])
        return torch.stack(outputs, 1)


class LayeredModel(nn.Module):
    """Embedding, layers over whole sequences, softmax."""

    def __init__(self, layer: type[nn.Module], layers: int, width: int, vocabulary: int) -> None:
        super().__init__()
        self.words = nn.Embedding(vocabulary, width)
        self.layers = nn.ModuleList(layer(width) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.output = nn.Linear(width, vocabulary)

    def forward(self, words: Tensor, targets: Tensor | None = None) -> Tensor:
        features = self.words(words)
        for layer in self.layers:
            features = layer(features)
        logits = self.output(self.norm(features))
        return logits if targets is None else token_loss(logits, targets)


class Tagger(nn.Module):
    """Bidirectional LSTM with a conditional random field over its tags."""

    def __init__(self, layers: int, hidden: int, vocabulary: int, tags: int) -> None:
        super().__init__()
        self.hidden = hidden
        self.words = nn.Embedding(vocabulary, hidden)
        widths = [hidden] + [2 * hidden] * (layers - 1)
        self.forwards = nn.ModuleList(LSTMCell(width, hidden) for width in widths)
        self.backwards = nn.ModuleList(LSTMCell(width, hidden) for width in widths)
        self.emission = nn.Linear(2 * hidden, tags)
        self.transition = nn.Parameter(torch.zeros(tags, tags))

    def emissions(self, words: Tensor) -> Tensor:
        """Scores of the tags, [batch, length, tags]."""
        steps = list(self.words(words).unbind(1))
        for forwards, backwards in zip(self.forwards, self.backwards, strict=True):
            left, right = [], []
            state = zero_state(steps[0], words.shape[0], self.hidden)
            for features in steps:
                state = forwards(features, state)
                left.append(state[0])
            state = zero_state(steps[0], words.shape[0], self.hidden)
            for features in reversed(steps):
                state = backwards(features, state)
                right.append(state[0])
            steps = [torch.cat(both, 1) for both in zip(left, reversed(right), strict=True)]
        return self.emission(torch.stack(steps, 1))

    def forward(self, words: Tensor, tags: Tensor | None = None) -> Tensor:
        """Best scores of the last tag (Viterbi), or the mean negative log-likelihood."""
        emissions = self.emissions(words).unbind(1)
        scores = emissions[0]
        for emission in emissions[1:]:
            paths = scores.unsqueeze(2) + self.transition
            reached = torch.logsumexp(paths, 1) if tags is not None else paths.max(1).values
            scores = reached + emission
        if tags is None:
            return scores
        own = torch.stack(emissions, 1).gather(2, tags.unsqueeze(2)).sum((1, 2))
        moves = self.transition[tags[:, :-1], tags[:, 1:]].sum(1)
        return (torch.logsumexp(scores, 1) - own - moves).mean()


@definition(family="rhn", source="own", licence="Apache-2.0")
def recurrent_highway_network() -> Iterator[Entry]:
    """Zilly et al. 2017, "Recurrent highway networks": depth 5 and 10, tied embeddings."""
    for depth in (3, 5, 10):
        network = partial(RecurrentHighwayNetwork, depth, 830, 10000)
        yield from token_workloads(
            f"rhn-{depth}", network, batch=20, length=35, vocabulary=10000, depth=depth
        )


@definition(family="qrnn", source="own", licence="Apache-2.0")
def quasi_recurrent_network() -> Iterator[Entry]:
    """Bradbury et al. 2017, "Quasi-recurrent neural networks": fo-pooling."""
    for layers, length in ((2, 105), (4, 64)):
        network = partial(LayeredModel, QuasiRecurrentLayer, layers, 640, 10000)
        yield from token_workloads(
            f"qrnn-{layers}l", network, batch=20, length=length, vocabulary=10000, layers=layers
        )


@definition(family="sru", source="own", licence="Apache-2.0")
def simple_recurrent_unit() -> Iterator[Entry]:
    """Lei et al. 2018, "Simple recurrent units for highly parallelizable recurrence"."""
    for layers, length in ((3, 64), (6, 50)):
        network = partial(LayeredModel, SimpleRecurrentLayer, layers, 910, 10000)
        yield from token_workloads(
            f"sru-{layers}l", network, batch=32, length=length, vocabulary=10000, layers=layers
        )


@definition(family="bilstm-crf", source="own", licence="Apache-2.0")
def tagger() -> Iterator[Entry]:
    """Huang et al. 2015, "Bidirectional LSTM-CRF models for sequence tagging": the forward algorithm for training,
    Viterbi's scores for inference.
    """
    for layers, length in ((1, 40), (2, 60)):
        yield from workloads(
            f"bilstm-crf-{layers}l",
            partial(Tagger, layers, 200, 20000, 17),
            inputs=(ids(20000, 32, length),),
            targets=(ids(17, 32, length),),
            batch=32,
            layers=layers,
            length=length,
            tags=17,
        )
