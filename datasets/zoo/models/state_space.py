"""Language models that are recurrent over time and parallel within a step: RWKV and Mamba."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..registry import definition
from .recurrent import LayeredModel
from .workload import Entry, token_workloads


class TimeMixing(nn.Module):
    """RWKV's weighted mean over the past, as a recurrence with the largest exponent kept apart."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.mixes = nn.ParameterList(torch.zeros(width) for _ in range(3))
        self.decay = nn.Parameter(torch.zeros(width))
        self.bonus = nn.Parameter(torch.zeros(width))
        self.receptance, self.key, self.value, self.output = (
            nn.Linear(width, width, bias=False) for _ in range(4)
        )

    def forward(self, features: Tensor) -> Tensor:
        before = F.pad(features, (0, 0, 1, 0))[:, :-1]
        blended = [mix * features + (1 - mix) * before for mix in self.mixes]
        receptance, key, value = (
            torch.sigmoid(self.receptance(blended[0])),
            self.key(blended[1]),
            self.value(blended[2]),
        )
        decay = -torch.exp(self.decay)
        top = bottom = torch.zeros_like(key[:, 0])
        largest = top - 1e30
        outputs = []
        for step in range(features.shape[1]):
            now, worth = key[:, step], value[:, step]
            peak = torch.maximum(largest, self.bonus + now)
            old, new = torch.exp(largest - peak), torch.exp(self.bonus + now - peak)
            outputs.append((old * top + new * worth) / (old * bottom + new))
            peak = torch.maximum(largest + decay, now)
            old, new = torch.exp(largest + decay - peak), torch.exp(now - peak)
            top, bottom, largest = old * top + new * worth, old * bottom + new, peak
        return self.output(receptance * torch.stack(outputs, 1))


class RWKVLayer(nn.Module):
    """Time mixing and channel mixing, pre-norm."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.time_norm = nn.LayerNorm(width)
        self.time_mixing = TimeMixing(width)
        self.channel_norm = nn.LayerNorm(width)
        self.mixes = nn.ParameterList(torch.zeros(width) for _ in range(2))
        self.receptance = nn.Linear(width, width, bias=False)
        self.key = nn.Linear(width, 4 * width, bias=False)
        self.value = nn.Linear(4 * width, width, bias=False)

    def forward(self, features: Tensor) -> Tensor:
        features = features + self.time_mixing(self.time_norm(features))
        normal = self.channel_norm(features)
        before = F.pad(normal, (0, 0, 1, 0))[:, :-1]
        key, receptance = (mix * normal + (1 - mix) * before for mix in self.mixes)
        mixed = self.value(torch.square(torch.relu(self.key(key))))
        return features + torch.sigmoid(self.receptance(receptance)) * mixed


class SelectiveStateSpace(nn.Module):
    """Mamba's block: short convolution, input-dependent state space, scanned step by step, gated."""

    def __init__(self, width: int, states: int = 16) -> None:
        super().__init__()
        inner, rank = 2 * width, width // 16
        self.states, self.rank = states, rank
        self.norm = nn.LayerNorm(width)
        self.input = nn.Linear(width, 2 * inner, bias=False)
        self.convolution = nn.Conv1d(inner, inner, 4, groups=inner)
        self.select = nn.Linear(inner, rank + 2 * states, bias=False)
        self.step_size = nn.Linear(rank, inner)
        self.decay = nn.Parameter(torch.zeros(inner, states))
        self.skip = nn.Parameter(torch.ones(inner))
        self.output = nn.Linear(inner, width, bias=False)

    def forward(self, features: Tensor) -> Tensor:
        inner, gate = self.input(self.norm(features)).chunk(2, 2)
        inner = F.silu(self.convolution(F.pad(inner.transpose(1, 2), (3, 0)))).transpose(1, 2)
        rank, write, read = self.select(inner).split([self.rank, self.states, self.states], 2)
        step_size = F.softplus(self.step_size(rank))
        decay = torch.exp(step_size.unsqueeze(3) * -torch.exp(self.decay))
        written = (step_size * inner).unsqueeze(3) * write.unsqueeze(2)
        state = written[:, 0]
        outputs = [(state * read[:, 0].unsqueeze(1)).sum(2)]
        for step in range(1, features.shape[1]):
            state = decay[:, step] * state + written[:, step]
            outputs.append((state * read[:, step].unsqueeze(1)).sum(2))
        mixed = torch.stack(outputs, 1) + self.skip * inner
        return features + self.output(mixed * F.silu(gate))


@definition(family="rwkv", source="own", licence="Apache-2.0")
def rwkv() -> Iterator[Entry]:
    """Peng et al. 2023, "RWKV: reinventing RNNs for the transformer era": version 4, its recurrence unrolled over
    32 and 48 words.
    """
    for layers, length in ((4, 48), (12, 32)):
        network = partial(LayeredModel, RWKVLayer, layers, 768, 50277)
        yield from token_workloads(
            f"rwkv-{layers}l", network, batch=8, length=length, vocabulary=50277, layers=layers
        )


@definition(family="mamba", source="own", licence="Apache-2.0")
def mamba() -> Iterator[Entry]:
    """Gu and Dao 2023, "Mamba: linear-time sequence modeling with selective state spaces": the scan unrolled over
    48 and 32 words.
    """
    for layers, length in ((4, 48), (12, 32)):
        network = partial(LayeredModel, SelectiveStateSpace, layers, 512, 50277)
        yield from token_workloads(
            f"mamba-{layers}l", network, batch=4, length=length, vocabulary=50277, layers=layers
        )
