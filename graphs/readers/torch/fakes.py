"""Fake stand-ins for the tensors of a module and for its inputs: shapes and types, no contents."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn.parameter import is_lazy

from ....errors import ImportFailedError

#: A module, and the name of one of its attributes.
_Place = tuple[nn.Module, str]


@dataclass(frozen=True)
class Held:
    """A tensor that a module holds.

    Attributes:
        name: Qualified name, of its first place where it is shared.
        fake: Its stand-in.
        kind: ``"parameter"``, ``"buffer"`` or ``"attribute"``.
        place: Its first place.
    """

    name: str
    fake: Tensor
    kind: str
    place: _Place

    @property
    def path(self) -> tuple[str, ...]:
        """Path of the module that holds it."""
        return tuple(self.name.split(".")[:-1])


def fake_like(tensor: Tensor, mode: FakeTensorMode, rows: int | None = None) -> Tensor:
    """A fake tensor on the CPU with the shape, strides and type of another, wherever that lives.

    Args:
        tensor: What it stands for; real, ``meta`` or fake.
        mode: Of the fake tensors.
        rows: Its first dimension, where another is wanted.

    Raises:
        ImportFailedError: It has no shape yet, or is no plain strided tensor.
    """
    if is_lazy(tensor):
        raise ImportFailedError("a lazy module has no shapes yet; call it once on example inputs first")
    if tensor.layout != torch.strided or tensor.is_quantized or tensor.is_nested:
        raise ImportFailedError(
            f"a tensor of layout {tensor.layout} (quantized: {tensor.is_quantized}, nested: {tensor.is_nested}) "
            "cannot be part of a graph; expected plain strided tensors"
        )
    with mode:
        if rows is not None and rows != tensor.shape[0]:
            return torch.empty((rows, *tensor.shape[1:]), dtype=tensor.dtype, device="cpu")
        return torch.empty_strided(tensor.size(), tensor.stride(), dtype=tensor.dtype, device="cpu")


@contextmanager
def faked(module: nn.Module, mode: FakeTensorMode) -> Iterator[list[Held]]:
    """Puts stand-ins in the place of all tensors of a module within the block; shared ones stay shared.

    Yields:
        Parameters, buffers and plain attributes, in the order of modules.
    """
    held: list[Held] = []
    stand_in: dict[int, Tensor] = {}
    with ExitStack() as undo:
        for prefix, owner in module.named_modules():
            for name, kind, real in _tensors_of(owner):
                fake = stand_in.get(id(real))
                if fake is None:
                    fake = _stand_in(f"{prefix}.{name}".lstrip("."), kind, real, mode)
                    stand_in[id(real)] = fake
                    held.append(Held(f"{prefix}.{name}".lstrip("."), fake, kind, (owner, name)))
                setattr(owner, name, fake)
                undo.callback(setattr, owner, name, real)
        yield held


def _tensors_of(module: nn.Module) -> list[tuple[str, str, Tensor]]:
    """Name, kind and value of every tensor that a module itself holds."""
    places = (
        ("parameter", module._parameters),
        ("buffer", module._buffers),
        ("attribute", vars(module)),
    )
    return [
        (name, kind, value)
        for kind, values in places
        for name, value in values.items()
        if isinstance(value, Tensor)
    ]


def _stand_in(name: str, kind: str, real: Tensor, mode: FakeTensorMode) -> Tensor:
    try:
        fake = fake_like(real.detach() if kind != "parameter" else real, mode)
    except ImportFailedError as error:
        raise ImportFailedError(f"{kind} {name!r}: {error}") from None
    if kind != "parameter":
        return fake
    with mode:
        return nn.Parameter(fake, requires_grad=real.requires_grad)


def map_tensors(convert: Callable[[str, Tensor], Any], value: Any, name: str) -> Any:
    """Replaces the tensors in nested tuples, lists and dicts.

    Args:
        convert: Gets the place of a tensor, such as ``"x"`` or ``"states.0"``, and the tensor.
        value: Any nesting.
        name: Place of the whole.
    """
    if isinstance(value, Tensor):
        return convert(name, value)
    if isinstance(value, Mapping):
        return {k: map_tensors(convert, v, f"{name}.{k}".lstrip(".")) for k, v in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        items = zip(value._fields, value, strict=True)
        return type(value)(*(map_tensors(convert, v, f"{name}.{k}".lstrip(".")) for k, v in items))
    if isinstance(value, (list, tuple)):
        return type(value)(map_tensors(convert, v, f"{name}.{i}".lstrip(".")) for i, v in enumerate(value))
    return value


@dataclass(frozen=True)
class Inputs:
    """What a module is called with.

    Attributes:
        args: Positional arguments, with fake tensors.
        kwargs: Named arguments, with fake tensors.
        tensors: The fake tensors with their places.
    """

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    tensors: list[tuple[str, Tensor]]


def fake_inputs(module: nn.Module, example: Any, mode: FakeTensorMode, batch: int | None) -> Inputs:
    """Stand-ins for example inputs.

    Args:
        module: What they are for; names the arguments.
        example: A tensor, a tuple or list of arguments, or a mapping of named ones.
        mode: Of the fake tensors.
        batch: Rows of every tensor that has as many as the first one; ``None`` leaves them.

    Raises:
        ImportFailedError: There are none, or ``batch`` is below 1.
    """
    if batch is not None and batch < 1:
        raise ImportFailedError(f"batch={batch}; expected 1 or more")
    found: list[tuple[str, Tensor]] = []
    first: list[int] = []

    def convert(name: str, tensor: Tensor) -> Tensor:
        rows = None
        if tensor.dim() and batch is not None:
            if not first:
                first.append(tensor.shape[0])
            rows = batch if tensor.shape[0] == first[0] else None
        try:
            fake = fake_like(tensor, mode, rows)
        except ImportFailedError as error:
            raise ImportFailedError(f"input {name!r}: {error}") from None
        found.append((name, fake))
        return fake

    if isinstance(example, Mapping):
        return Inputs((), map_tensors(convert, dict(example), ""), found)
    if isinstance(example, Tensor):
        example = (example,)
    if not isinstance(example, (tuple, list)):
        raise ImportFailedError(
            f"example inputs are a {type(example).__name__}; expected a tensor, a tuple of the arguments of "
            "forward, or a dict of named ones"
        )
    names = _argument_names(module, len(example))
    args = tuple(map_tensors(convert, value, name) for name, value in zip(names, example, strict=True))
    return Inputs(args, {}, found)


def _argument_names(module: nn.Module, count: int) -> list[str]:
    try:
        parameters = list(inspect.signature(module.forward).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    names = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)][:count]
    return [*names, *(f"input{i}" for i in range(len(names), count))]
