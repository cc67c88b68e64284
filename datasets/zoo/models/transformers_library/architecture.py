"""A row of the tables, and how its graphs are traced."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributions import Distribution

from .....errors import MissingExtraError
from .....graphs import readers
from .....graphs.readers import Imported
from ...registry import definition
from ..torchvision_stub import install_torchvision_stub
from ..workload import Input, Mode, Optimizer

SOURCE, LICENCE = "transformers", "Apache-2.0"

Settings = Mapping[str, Any]
Arguments = Mapping[str, Input]
#: Makes one number of what a network returns and of the targets by name.
Loss = Callable[[Any, Mapping[str, Tensor]], Tensor]


@dataclass(frozen=True)
class Size:
    """One graph of an architecture.

    Attributes:
        label: Between the family and the mode in the graph's name.
        mode: Training or inference.
        settings: Of the configuration, over those of the architecture.
    """

    label: str
    mode: Mode
    settings: Settings


def train(label: str, **settings: Any) -> Size:
    """A training graph."""
    return Size(label, "train", settings)


def infer(label: str, **settings: Any) -> Size:
    """An inference graph."""
    return Size(label, "infer", settings)


@dataclass(frozen=True)
class Architecture:
    """A row: an architecture with its graphs.

    Attributes:
        family: See ``registry.Definition``.
        model: Class of the library.
        reference: Paper, and what is said about the graphs.
        inputs: Arguments of the network.
        sizes: Its graphs.
        targets: Arguments that training has besides; the network's own, from which it computes a loss, unless
            ``loss`` is given.
        loss: Computes the loss of output and targets in the network's place.
        optimizer: Of training.
        settings: Of the configuration; inner mappings are settings of inner configurations.
        fixed: Plain arguments of the network, such as ``{"use_cache": False}``.
        finite: The code asks tensors whether they have infinite numbers, and gets a no.
    """

    family: str
    model: str
    reference: str
    inputs: Arguments
    sizes: tuple[Size, ...]
    targets: Arguments = field(default_factory=dict)
    loss: Loss | None = None
    optimizer: Optimizer = "sgd"
    settings: Settings = field(default_factory=dict)
    fixed: Settings = field(default_factory=dict)
    finite: bool = False

    def workloads(self) -> Iterator[tuple[str, LibraryWorkload, Settings]]:
        """Name, builder and configuration of each graph."""
        batch = next(iter(self.inputs.values())).shape[0]
        for size in self.sizes:
            name = f"{self.family}-{size.label}-{size.mode}"
            settings = merged(self.settings, size.settings)
            described = {
                "batch": batch,
                "model": self.model,
                "inputs": {name: list(argument.shape) for name, argument in self.inputs.items()},
                **flat(settings),
                **({"optimizer": self.optimizer} if size.mode == "train" else {}),
            }
            yield name, LibraryWorkload(name, self, size.mode, settings), described


def offer(module: str, architectures: Iterable[Architecture]) -> None:
    """Registers a definition for each row of a module's table."""
    for architecture in architectures:

        def graphs(row: Architecture = architecture) -> Iterator[tuple[str, LibraryWorkload, Settings]]:
            return row.workloads()

        graphs.__module__, graphs.__qualname__ = module, architecture.family
        graphs.__doc__ = architecture.reference
        definition(family=architecture.family, source=SOURCE, licence=LICENCE)(graphs)


@dataclass(frozen=True)
class LibraryWorkload:
    """One graph to be: calling it traces the network on fake tensors.

    Attributes:
        name: Name in the zoo.
        architecture: Its row.
        mode: Training or inference.
        settings: Of the configuration.
    """

    name: str
    architecture: Architecture
    mode: Mode
    settings: Settings

    def network(self) -> nn.Module:
        """The library's module, without weights.

        Raises:
            MissingExtraError: The library is not installed.
        """
        library = load_library()
        model = getattr(library, self.architecture.model)
        configuration = model.config_class(**self.settings)
        _simplify(configuration, library.PretrainedConfig)
        with torch.device("meta"):
            return model(configuration)

    def __call__(self) -> Imported:
        """The graph."""
        row = self.architecture
        training = self.mode == "train"
        network = self.network()
        given = {name: argument.placeholder("meta") for name, argument in row.inputs.items()}
        targets = {name: argument.placeholder("meta") for name, argument in row.targets.items()}
        arguments: dict[str, Any] = {**given, **row.fixed}
        if training and row.loss is not None:
            network = _Supervised(network, row.loss)
            arguments = {"arguments": arguments, "targets": targets}
        elif training:
            arguments |= targets
        with _unvalidated(), _no_to_all_questions() if row.finite else nullcontext():
            return readers.from_torch(
                network,
                arguments,
                train=training,
                optimizer=row.optimizer if training else None,
                loss=_own_loss if training and row.loss is None and targets else None,
                name=self.name,
            )


class _Supervised(nn.Module):
    """A network with a loss that is not its own."""

    def __init__(self, network: nn.Module, loss: Loss) -> None:
        super().__init__()
        self.network, self.loss = network, loss

    def forward(self, arguments: Mapping[str, Any], targets: Mapping[str, Tensor]) -> Tensor:
        return self.loss(self.network(**arguments), targets)


@contextmanager
def _no_to_all_questions() -> Iterator[None]:
    """Every tensor is false as a condition within the block."""
    asked = Tensor.__bool__
    no: Any = lambda tensor: False  # noqa: E731
    Tensor.__bool__ = no  # type: ignore[method-assign]
    try:
        yield
    finally:
        Tensor.__bool__ = asked  # type: ignore[method-assign]


@contextmanager
def _unvalidated() -> Iterator[None]:
    """Distributions do not look at their parameters' values within the block."""
    asked = Distribution._validate_args
    Distribution.set_default_validate_args(False)
    try:
        yield
    finally:
        Distribution.set_default_validate_args(asked)


def _own_loss(output: Any) -> Tensor:
    return output.loss


def merged(below: Settings, above: Settings) -> dict[str, Any]:
    """Settings of which the second go first; inner mappings are merged likewise."""
    result = dict(below)
    for name, value in above.items():
        inner = result.get(name)
        if isinstance(inner, Mapping) and isinstance(value, Mapping):
            value = merged(inner, value)
        result[name] = value
    return result


def flat(settings: Settings, prefix: str = "") -> dict[str, Any]:
    """Inner mappings as dotted names."""
    result: dict[str, Any] = {}
    for name, value in settings.items():
        if isinstance(value, Mapping):
            result |= flat(value, f"{prefix}{name}.")
        else:
            result[f"{prefix}{name}"] = list(value) if isinstance(value, tuple) else value
    return result


def load_library() -> Any:
    """The library, without any access to the network."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    os.environ["TRANSFORMERS_DISABLE_TORCH_CHECK"] = "1"  # checks of values, which there are none of
    install_torchvision_stub()
    try:
        transformers = import_module(SOURCE)
    except ImportError as error:
        raise MissingExtraError(
            f"this graph's network is one of transformers ({error}); pip install 'opgym[zoo]'"
        ) from error
    transformers.logging.set_verbosity_error()
    return transformers


def _simplify(configuration: Any, kind: type) -> None:
    """Turns off what draws random numbers, keeps caches or dispatches on values, in inner configurations, too."""
    for name, value in list(vars(configuration).items()):
        if isinstance(value, kind):
            _simplify(value, kind)
        elif "drop" in name or name == "mask_time_prob":
            if isinstance(value, float):
                setattr(configuration, name, 0.0)
            elif isinstance(value, (list, tuple)):
                setattr(configuration, name, [0.0] * len(value))
    for name, value in (
        ("use_cache", False), ("apply_spec_augment", False), ("_experts_implementation", "batched_mm"),
    ):  # fmt: skip
        if hasattr(configuration, name):
            setattr(configuration, name, value)
