"""Neural machine translation with recurrent networks, unrolled over time."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor, nn

from ..registry import definition
from .layers import LSTMCell, State, token_loss, zero_state
from .workload import Entry, ids, workloads


class BidirectionalLayer(nn.Module):
    """An LSTM from left to right beside one from right to left; their states, concatenated."""

    def __init__(self, inputs: int, hidden: int, *, separate: bool) -> None:
        super().__init__()
        self.hidden = hidden
        self.forwards = LSTMCell(inputs, hidden, separate=separate)
        self.backwards = LSTMCell(inputs, hidden, separate=separate)

    def forward(self, steps: list[Tensor]) -> list[Tensor]:
        state = zero_state(steps[0], steps[0].shape[0], self.hidden)
        left: list[Tensor] = []
        for features in steps:
            state = self.forwards(features, state)
            left.append(state[0])
        state = zero_state(steps[0], steps[0].shape[0], self.hidden)
        right: list[Tensor] = []
        for features in reversed(steps):
            state = self.backwards(features, state)
            right.append(state[0])
        right.reverse()
        return [torch.cat(both, 1) for both in zip(left, right, strict=True)]


class EncoderLayer(nn.Module):
    """An LSTM over the source, with a residual connection where the widths allow one."""

    def __init__(self, inputs: int, hidden: int, *, separate: bool) -> None:
        super().__init__()
        self.hidden = hidden
        self.residual = inputs == hidden
        self.cell = LSTMCell(inputs, hidden, separate=separate)

    def forward(self, steps: list[Tensor]) -> list[Tensor]:
        state = zero_state(steps[0], steps[0].shape[0], self.hidden)
        outputs = []
        for features in steps:
            state = self.cell(features, state)
            outputs.append(features + state[0] if self.residual else state[0])
        return outputs


class AdditiveAttention(nn.Module):
    """Scores from a tanh layer over query and keys (Bahdanau et al. 2015)."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.query = nn.Linear(hidden, hidden, bias=False)
        self.score = nn.Linear(hidden, 1, bias=False)

    def forward(self, query: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        scores = self.score(torch.tanh(self.query(query).unsqueeze(1) + keys)).squeeze(2)
        weights = torch.softmax(scores, 1)
        return torch.bmm(weights.unsqueeze(1), values).squeeze(1)


class Decoder(nn.Module):
    """LSTM layers over the target; the lowest one's state asks the attention, whose answer goes to all."""

    def __init__(self, layers: int, hidden: int, vocabulary: int, *, separate: bool) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, hidden)
        self.keys = nn.Linear(hidden, hidden, bias=False)
        self.attention = AdditiveAttention(hidden)
        self.layers = nn.ModuleList(LSTMCell(2 * hidden, hidden, separate=separate) for _ in range(layers))
        self.output = nn.Linear(hidden, vocabulary)

    def forward(self, source: Tensor, words: Tensor) -> list[Tensor]:
        """Logits of each step."""
        keys = self.keys(source)
        embedded = self.embedding(words)
        batch, _, hidden = embedded.shape
        states: list[State] = [zero_state(embedded, batch, hidden) for _ in self.layers]
        context = embedded.new_zeros(batch, hidden)
        logits = []
        for features in embedded.unbind(1):
            for index, cell in enumerate(self.layers):
                states[index] = cell(torch.cat([features, context], 1), states[index])
                features = features + states[index][0] if index > 1 else states[index][0]
                if index == 0:
                    context = self.attention(features, keys, source)
            logits.append(self.output(features))
        return logits


class GNMT(nn.Module):
    """Encoder with one bidirectional layer at the bottom, decoder with attention, residual upper layers.

    Args:
        layers: LSTM layers of the encoder (the bidirectional one counted once) and of the decoder.
        hidden: Width.
        vocabulary: Words of either language.
        separate: See :class:`~.layers.LSTMCell`.
    """

    def __init__(self, layers: int, hidden: int, vocabulary: int, *, separate: bool = False) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, hidden)
        encoder: list[nn.Module] = [BidirectionalLayer(hidden, hidden, separate=separate)]
        encoder += [
            EncoderLayer(2 * hidden if index == 1 else hidden, hidden, separate=separate)
            for index in range(1, layers)
        ]
        self.encoder = nn.ModuleList(encoder)
        self.decoder = Decoder(layers, hidden, vocabulary, separate=separate)

    def forward(self, source: Tensor, shifted: Tensor, targets: Tensor | None = None) -> Tensor:
        steps = list(self.embedding(source).unbind(1))
        for layer in self.encoder:
            steps = layer(steps)
        logits = self.decoder(torch.stack(steps, 1), shifted)
        if targets is None:
            return torch.stack(logits, 1)
        losses = [token_loss(step, target) for step, target in zip(logits, targets.unbind(1), strict=True)]
        return torch.stack(losses).mean()


class AttentionalSeq2Seq(nn.Module):
    """An LSTM encoder and an LSTM decoder that feeds its attention vector back."""

    def __init__(self, layers: int, hidden: int, vocabulary: int) -> None:
        super().__init__()
        self.hidden = hidden
        self.source_embedding = nn.Embedding(vocabulary, hidden)
        self.target_embedding = nn.Embedding(vocabulary, hidden)
        self.encoder = nn.ModuleList(LSTMCell(hidden, hidden) for _ in range(layers))
        self.decoder = nn.ModuleList(
            LSTMCell(2 * hidden if index == 0 else hidden, hidden) for index in range(layers)
        )
        self.score = nn.Linear(hidden, hidden, bias=False)
        self.combine = nn.Linear(2 * hidden, hidden, bias=False)
        self.output = nn.Linear(hidden, vocabulary)

    def forward(self, source: Tensor, shifted: Tensor, targets: Tensor | None = None) -> Tensor:
        embedded = self.source_embedding(source)
        batch = embedded.shape[0]
        states: list[State] = [zero_state(embedded, batch, self.hidden) for _ in self.encoder]
        tops = []
        for features in embedded.unbind(1):
            for index, cell in enumerate(self.encoder):
                states[index] = cell(features, states[index])
                features = states[index][0]
            tops.append(features)
        memory = torch.stack(tops, 1)
        attentional = memory.new_zeros(batch, self.hidden)
        answers = []
        for word in self.target_embedding(shifted).unbind(1):
            features = torch.cat([word, attentional], 1)
            for index, cell in enumerate(self.decoder):
                states[index] = cell(features, states[index])
                features = states[index][0]
            scores = torch.bmm(memory, self.score(features).unsqueeze(2)).squeeze(2)
            context = torch.bmm(torch.softmax(scores, 1).unsqueeze(1), memory).squeeze(1)
            attentional = torch.tanh(self.combine(torch.cat([context, features], 1)))
            answers.append(attentional)
        logits = self.output(torch.stack(answers, 1))
        return logits if targets is None else token_loss(logits, targets)


@definition(family="gnmt", source="own", licence="Apache-2.0", workload=True)
def gnmt() -> Iterator[Entry]:
    """GNMT of GDP (Zhou et al. 2019) after Wu et al. 2016, "Google's neural machine translation system". The
    papers do not give sizes; ours: 1,024 wide, 32,000 words, 40 steps in either language, batch 64. In the
    8-layer network every gate has its own products, as in the papers' graph of more than 50,000 ops.
    """
    for layers in (2, 4, 8):
        separate = layers == 8
        yield from workloads(
            f"gnmt-{layers}l",
            partial(GNMT, layers, 1024, 32000, separate=separate),
            inputs=(ids(32000, 64, 40), ids(32000, 64, 40)),
            targets=(ids(32000, 64, 40),),
            batch=64,
            modes=("train",),
            layers=layers,
            hidden=1024,
            vocabulary=32000,
            source_length=40,
            target_length=40,
            separate_gates=separate,
        )


@definition(family="seq2seq-attention", source="own", licence="Apache-2.0")
def seq2seq_attention() -> Iterator[Entry]:
    """Luong et al. 2015, "Effective approaches to attention-based neural machine translation": general score,
    input feeding; dropout left out.
    """
    for layers, length in ((1, 20), (2, 30), (4, 25)):
        yield from workloads(
            f"seq2seq-attention-{layers}l",
            partial(AttentionalSeq2Seq, layers, 1000, 50000),
            inputs=(ids(50000, 128, length), ids(50000, 128, length)),
            targets=(ids(50000, 128, length),),
            batch=128,
            layers=layers,
            hidden=1000,
            vocabulary=50000,
            source_length=length,
            target_length=length,
        )
