"""Networks of the zoo's definitions, narrow enough to train for real on a CPU within seconds."""

from __future__ import annotations

from functools import partial

from ...datasets.zoo.models.cells import CellNetwork
from ...datasets.zoo.models.dense import DenseNet
from ...datasets.zoo.models.genotypes import DARTS_V1
from ...datasets.zoo.models.gnmt import GNMT
from ...datasets.zoo.models.inception import InceptionV3
from ...datasets.zoo.models.language import GPT2
from ...datasets.zoo.models.random_wiring import RandWire, SwiftNetLike, watts_strogatz
from ...datasets.zoo.models.rnnlm import LSTMLanguageModel
from ...datasets.zoo.models.transformer_xl import TransformerXL
from ...datasets.zoo.models.unets import UNet
from ...datasets.zoo.models.wavenet import WaveNet
from ...datasets.zoo.models.workload import Workload, ids, reals

_WORDS = 2000


def workloads() -> dict[str, Workload]:
    """The networks by name, each with its arguments and its optimizer."""
    wirings = [watts_strogatz(16, 4, 0.25, seed) for seed in (9, 10)]
    cells = [watts_strogatz(10, 4, 0.5, seed) for seed in (0, 1)]
    found = [
        Workload("rnnlm-2l", partial(LSTMLanguageModel, 2, 256, _WORDS),
                 (ids(_WORDS, 32, 20),), (ids(_WORDS, 32, 20),), "sgd"),
        Workload("gnmt-2l", partial(GNMT, 2, 128, _WORDS),
                 (ids(_WORDS, 16, 10), ids(_WORDS, 16, 10)), (ids(_WORDS, 16, 10),), "sgd"),
        Workload("transformer-xl-2l", partial(TransformerXL, 2, 128, 4, 512, _WORDS, 32),
                 (ids(_WORDS, 8, 96), reals(2, 8, 32, 128)), (ids(_WORDS, 8, 96),), "adam"),
        Workload("gpt2-6l", partial(GPT2, 6, 128, 4, fused=False, context=64),
                 (ids(50257, 1, 16),), (ids(50257, 1, 16),), "adam"),
        Workload("randwire", partial(RandWire, wirings, 64, 1000),
                 (reals(4, 3, 64, 64),), (ids(1000, 4),), "sgd"),
        Workload("swiftnet-like", partial(SwiftNetLike, cells, 64, 100),
                 (reals(4, 3, 32, 32),), (ids(100, 4),), "sgd"),
        Workload("darts", partial(CellNetwork, DARTS_V1, (1, 1, 1), 16, stem="small", classes=10),
                 (reals(16, 3, 32, 32),), (ids(10, 16),), "sgd"),
        Workload("densenet", partial(DenseNet, (4, 6, 4), 32),
                 (reals(4, 3, 64, 64),), (ids(1000, 4),), "sgd"),
        Workload("unet-4", partial(UNet, 4, 16),
                 (reals(4, 3, 96, 96),), (ids(2, 4, 96, 96),), "sgd"),
        Workload("wavenet", partial(WaveNet, 2, 9, 64, 128),
                 (reals(4, 1, 1000),), (ids(256, 4, 1000),), "adam"),
        Workload("inception-v3", partial(InceptionV3, auxiliary=False, classes=100),
                 (reals(2, 3, 139, 139),), (ids(100, 2),), "sgd"),
    ]  # fmt: skip
    return {workload.name: workload for workload in found}
