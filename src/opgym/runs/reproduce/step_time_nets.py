"""Four training steps of different shape, sized so that ops take far longer than the interpreter between them."""

from __future__ import annotations

from functools import partial

from torch import nn

from ...datasets.zoo.models.large_language import MixtureOfExperts
from ...datasets.zoo.models.random_wiring import RandWire, watts_strogatz
from ...datasets.zoo.models.representation import CLIP
from ...datasets.zoo.models.rnnlm import LSTMLanguageModel
from ...datasets.zoo.models.workload import Workload, ids, reals

_WORDS = 1000


def workloads() -> dict[str, Workload]:
    """A randomly wired convolutional net, a recurrent one over six steps, experts side by side, two towers."""
    wirings = [watts_strogatz(12, 4, 0.5, seed) for seed in (9, 10)]
    found = [
        Workload("randwire", partial(RandWire, wirings, 64, 100),
                 (reals(16, 3, 64, 64),), (ids(100, 16),), "sgd"),
        Workload("rnnlm-2l", partial(LSTMLanguageModel, 2, 384, _WORDS),
                 (ids(_WORDS, 64, 6),), (ids(_WORDS, 64, 6),), "sgd"),
        Workload("moe-4l", partial(_experts, 4, 192, 4),
                 (ids(_WORDS, 4, 64),), (ids(_WORDS, 4, 64),), "sgd"),
        Workload("clip-2l", partial(CLIP, 2, 256, _WORDS, 16),
                 (reals(4, 3, 224, 224), ids(_WORDS, 4, 16)), (ids(4, 4),), "sgd"),
    ]  # fmt: skip
    return {workload.name: workload for workload in found}


def _experts(layers: int, width: int, experts: int) -> nn.Module:
    """With fewer words than the zoo's, whose last layer would be half of the step."""
    network = MixtureOfExperts(layers, width, 4, experts, 2)
    network.words = nn.Embedding(_WORDS, width)
    network.output = nn.Linear(width, _WORDS, bias=False)
    return network
