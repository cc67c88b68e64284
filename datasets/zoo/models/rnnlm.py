"""Recurrent language models, unrolled over time."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor, nn

from ..registry import definition
from .layers import GRUCell, LSTMCell, State, token_loss, zero_state
from .workload import Entry, token_workloads


class LSTMLanguageModel(nn.Module):
    """Embedding, a stack of LSTM cells, a softmax layer per step.

    Args:
        layers: Cells in the stack.
        hidden: Width of embedding and cells.
        vocabulary: Number of words.
        separate: See :class:`~.layers.LSTMCell`.
    """

    def __init__(self, layers: int, hidden: int, vocabulary: int, *, separate: bool = False) -> None:
        super().__init__()
        self.hidden = hidden
        self.embedding = nn.Embedding(vocabulary, hidden)
        self.layers = nn.ModuleList(LSTMCell(hidden, hidden, separate=separate) for _ in range(layers))
        self.output = nn.Linear(hidden, vocabulary)

    def forward(self, words: Tensor, targets: Tensor | None = None) -> Tensor:
        embedded = self.embedding(words)
        batch, length, hidden = embedded.shape
        states: list[State] = [zero_state(embedded, batch, hidden) for _ in self.layers]
        logits = []
        losses = []
        for step in range(length):
            features = embedded[:, step]
            for index, cell in enumerate(self.layers):
                states[index] = cell(features, states[index])
                features = states[index][0]
            logits.append(self.output(features))
            if targets is not None:
                losses.append(token_loss(logits[-1], targets[:, step]))
        return torch.stack(losses).mean() if losses else torch.stack(logits, 1)


class GRULanguageModel(nn.Module):
    """Embedding, a stack of gated recurrent units, one softmax layer over all steps at once."""

    def __init__(self, layers: int, hidden: int, vocabulary: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, hidden)
        self.layers = nn.ModuleList(GRUCell(hidden, hidden) for _ in range(layers))
        self.output = nn.Linear(hidden, vocabulary)

    def forward(self, words: Tensor, targets: Tensor | None = None) -> Tensor:
        embedded = self.embedding(words)
        features = list(embedded.unbind(1))
        for cell in self.layers:
            state = embedded.new_zeros(embedded.shape[0], embedded.shape[2])
            for step, feature in enumerate(features):
                state = cell(feature, state)
                features[step] = state
        logits = self.output(torch.stack(features, 1))
        return logits if targets is None else token_loss(logits, targets)


@definition(family="rnnlm", source="own", licence="Apache-2.0", workload=True)
def rnnlm() -> Iterator[Entry]:
    """RNNLM of GDP (Zhou et al. 2019) after Jozefowicz et al. 2016, "Exploring the limits of language
    modeling". The papers do not give sizes; ours: 2,048 wide, 10,000 words, 40 steps, batch 64, all four gates
    from one product.
    """
    for layers in (2, 4, 8):
        yield from token_workloads(
            f"rnnlm-{layers}l",
            partial(LSTMLanguageModel, layers, 2048, 10000),
            batch=64,
            length=40,
            vocabulary=10000,
            optimizer="sgd",
            modes=("train",),
            layers=layers,
            hidden=2048,
        )


@definition(family="rnnlm", source="own", licence="Apache-2.0")
def lstm_language_model() -> Iterator[Entry]:
    """Smaller relatives of RNNLM: Zaremba et al. 2014, "Recurrent neural network regularization" (two layers,
    35 steps, batch 20), and cells whose gates have products of their own; dropout left out.
    """
    for size, hidden, separate in (("medium", 650, False), ("large", 1500, True)):
        yield from token_workloads(
            f"lstm-lm-{size}",
            partial(LSTMLanguageModel, 2, hidden, 10000, separate=separate),
            batch=20,
            length=35,
            vocabulary=10000,
            optimizer="sgd",
            layers=2,
            hidden=hidden,
            separate_gates=separate,
        )
    yield from token_workloads(
        "lstm-lm-1l",
        partial(LSTMLanguageModel, 1, 1024, 10000),
        batch=32,
        length=64,
        vocabulary=10000,
        layers=1,
        hidden=1024,
    )


@definition(family="gru-lm", source="own", licence="Apache-2.0")
def gru_language_model() -> Iterator[Entry]:
    """Language models of gated recurrent units: Cho et al. 2014, "Learning phrase representations using RNN
    encoder-decoder", compared with LSTM in Chung et al. 2014.
    """
    for layers, length in ((1, 50), (3, 35), (6, 24)):
        yield from token_workloads(
            f"gru-lm-{layers}l",
            partial(GRULanguageModel, layers, 1024, 10000),
            batch=32,
            length=length,
            vocabulary=10000,
            layers=layers,
            hidden=1024,
        )
