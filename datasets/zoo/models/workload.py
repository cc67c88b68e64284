"""A network together with what it is fed: what a definition yields and what is traced into a graph."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

from ....graphs import readers
from ....graphs.readers import Imported

Optimizer = Literal["sgd", "adam"]
Mode = Literal["train", "infer"]


@dataclass(frozen=True)
class Input:
    """One argument of a network.

    Attributes:
        shape: Its shape.
        below: For whole numbers (ids, classes, indices) the bound that they stay under; ``None`` for reals.
    """

    shape: tuple[int, ...]
    below: int | None = None

    def placeholder(self, device: str) -> Tensor:
        """Zeros, as float32 or int64."""
        dtype = torch.float32 if self.below is None else torch.int64
        return torch.zeros(self.shape, dtype=dtype, device=device)


def reals(*shape: int) -> Input:
    """An argument of float32 numbers."""
    return Input(shape)


def ids(below: int, *shape: int) -> Input:
    """An argument of whole numbers in ``[0, below)``."""
    return Input(shape, below)


@dataclass(frozen=True)
class Workload:
    """One graph to be: calling it traces the network on fake tensors.

    Attributes:
        name: Name in the zoo.
        network: Makes the module. Given the inputs alone it returns its outputs; given the targets too, its
            loss.
        inputs: Arguments of the module at inference.
        targets: Arguments that training has besides.
        optimizer: What updates the parameters; ``None`` traces inference.
    """

    name: str
    network: Callable[[], nn.Module]
    inputs: tuple[Input, ...]
    targets: tuple[Input, ...]
    optimizer: Optimizer | None

    @property
    def arguments(self) -> tuple[Input, ...]:
        """All arguments of the module in this graph."""
        return self.inputs if self.optimizer is None else self.inputs + self.targets

    def __call__(self) -> Imported:
        """The graph."""
        with torch.device("meta"):
            network = self.network()
        arguments = tuple(argument.placeholder("meta") for argument in self.arguments)
        return readers.from_torch(
            network,
            arguments,
            train=self.optimizer is not None,
            optimizer=self.optimizer,
            name=self.name,
        )


Entry = tuple[str, Workload, Mapping[str, Any]]


def workloads(
    name: str,
    network: Callable[[], nn.Module],
    *,
    inputs: tuple[Input, ...],
    targets: tuple[Input, ...] = (),
    batch: int,
    optimizer: Optimizer = "sgd",
    modes: tuple[Mode, ...] = ("train", "infer"),
    **configuration: Any,
) -> Iterator[Entry]:
    """The training graph and the inference graph of one network.

    Args:
        name: Name without the mode.
        network: See :class:`Workload`.
        inputs: See :class:`Workload`.
        targets: See :class:`Workload`. Without any, the loss is the mean of the outputs.
        batch: Samples per step.
        optimizer: Of the training graph.
        modes: Which of the two graphs to offer.
        configuration: What distinguishes the network, for people.
    """
    for mode in modes:
        updates = optimizer if mode == "train" else None
        described = {"batch": batch, **configuration, **({"optimizer": updates} if updates else {})}
        yield (
            f"{name}-{mode}",
            Workload(f"{name}-{mode}", network, inputs, targets, updates),
            described,
        )


def image_workloads(
    name: str,
    network: Callable[[], nn.Module],
    *,
    batch: int = 32,
    size: int = 224,
    classes: int = 1000,
    optimizer: Optimizer = "sgd",
    modes: tuple[Mode, ...] = ("train", "infer"),
    **configuration: Any,
) -> Iterator[Entry]:
    """Graphs of an image classifier: RGB images in, cross-entropy of the classes as loss."""
    return workloads(
        name,
        network,
        inputs=(reals(batch, 3, size, size),),
        targets=(ids(classes, batch),),
        batch=batch,
        optimizer=optimizer,
        modes=modes,
        image=size,
        classes=classes,
        **configuration,
    )


def token_workloads(
    name: str,
    network: Callable[[], nn.Module],
    *,
    batch: int,
    length: int,
    vocabulary: int,
    optimizer: Optimizer = "sgd",
    modes: tuple[Mode, ...] = ("train", "infer"),
    **configuration: Any,
) -> Iterator[Entry]:
    """Graphs of a model of token sequences: ids in, cross-entropy of one id per position as loss."""
    return workloads(
        name,
        network,
        inputs=(ids(vocabulary, batch, length),),
        targets=(ids(vocabulary, batch, length),),
        batch=batch,
        optimizer=optimizer,
        modes=modes,
        length=length,
        vocabulary=vocabulary,
        **configuration,
    )
