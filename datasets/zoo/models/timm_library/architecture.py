"""A row of the tables, and how its graphs are traced."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.modules.dropout import _DropoutNd

from .....errors import MissingExtraError
from .....graphs.readers import Imported
from ...registry import definition
from ..torchvision_stub import install_torchvision_stub
from ..workload import Mode, Optimizer, Workload, ids, reals

SOURCE, LICENCE = "timm", "Apache-2.0"
CLASSES = 1000


@dataclass(frozen=True)
class Step:
    """One graph of an architecture.

    Attributes:
        model: The library's name of the network.
        mode: Training or inference.
        image: Height and width of the images.
        batch: Images per step.
    """

    model: str
    mode: Mode
    image: int
    batch: int

    @property
    def name(self) -> str:
        """Name in the zoo; it says whose name of a model it is, as other definitions have models of that name."""
        return f"{SOURCE}-{self.model.replace('_', '-')}-{self.mode}"


def train(model: str, image: int = 224, batch: int = 32) -> Step:
    """A training step."""
    return Step(model, "train", image, batch)


def infer(model: str, image: int = 224, batch: int = 32) -> Step:
    """An inference step."""
    return Step(model, "infer", image, batch)


@dataclass(frozen=True)
class Architecture:
    """A row: an architecture with its graphs.

    Attributes:
        family: See ``registry.Definition``.
        reference: Its papers.
        optimizer: Of training, as is customary.
        steps: Its graphs.
    """

    family: str
    reference: str
    optimizer: Optimizer
    steps: tuple[Step, ...]

    def workloads(self) -> Iterator[tuple[str, LibraryWorkload, Mapping[str, Any]]]:
        """Name, builder and configuration of each graph."""
        for step in self.steps:
            optimizer = self.optimizer if step.mode == "train" else None
            described = {
                "batch": step.batch,
                "model": step.model,
                "image": step.image,
                "classes": CLASSES,
                **({"optimizer": optimizer} if optimizer else {}),
            }
            yield step.name, LibraryWorkload(step, optimizer), described


def offer(module: str, architectures: Iterable[Architecture]) -> None:
    """Registers a definition for each row of a module's table."""
    for architecture in architectures:

        def graphs(
            row: Architecture = architecture,
        ) -> Iterator[tuple[str, LibraryWorkload, Mapping[str, Any]]]:
            return row.workloads()

        graphs.__module__, graphs.__qualname__ = module, architecture.family
        graphs.__doc__ = architecture.reference
        definition(family=architecture.family, source=SOURCE, licence=LICENCE)(graphs)


@dataclass(frozen=True)
class LibraryWorkload:
    """One graph to be: calling it traces the network on fake tensors.

    Attributes:
        step: Which model, and what it is fed.
        optimizer: What updates the parameters; ``None`` traces inference.
    """

    step: Step
    optimizer: Optimizer | None

    def __call__(self) -> Imported:
        """The graph.

        Raises:
            MissingExtraError: The library is not installed.
        """
        step = self.step
        return Workload(
            step.name,
            partial(ImageClassifier, step.model),
            (reals(step.batch, 3, step.image, step.image),),
            (ids(CLASSES, step.batch),),
            self.optimizer,
        )()


class ImageClassifier(nn.Module):
    """A published model that returns its logits or, given labels, their cross-entropy."""

    def __init__(self, model: str) -> None:
        super().__init__()
        self.network: nn.Module = library().create_model(model, pretrained=False, num_classes=CLASSES)
        make_deterministic(self.network)

    def forward(self, images: Tensor, labels: Tensor | None = None) -> Tensor:
        logits = self.network(images)
        return logits if labels is None else F.cross_entropy(logits, labels)


def library() -> Any:
    """The library, with attention from products and softmax.

    Raises:
        MissingExtraError: It is not installed.
    """
    install_torchvision_stub()
    try:
        timm = importlib.import_module("timm")
    except ImportError as error:
        raise MissingExtraError(
            f"this graph's network is one of timm ({error}); pip install 'opgym[zoo]'"
        ) from error
    importlib.import_module("timm.layers").set_fused_attn(False)
    return timm


def make_deterministic(network: nn.Module) -> None:
    """Turns off dropout and stochastic depth, as modules or as probabilities that are passed on."""
    for module in network.modules():
        if isinstance(module, _DropoutNd):
            module.p = 0.0
        for name in ("drop_prob", "drop_rate"):
            if name in vars(module):
                vars(module)[name] = 0.0
