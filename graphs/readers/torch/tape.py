"""What is recorded while a step runs: ops, and the storages they read and write, version by version."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from ....errors import ImportFailedError
from ...dtypes import BITS


@dataclass(frozen=True, slots=True)
class Layout:
    """How a tensor lies in a storage.

    Attributes:
        dtype: Element type.
        size: Dimensions.
        stride: Elements between neighbours, per dimension.
        offset: First element.
    """

    dtype: torch.dtype
    size: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int

    @classmethod
    def of(cls, tensor: torch.Tensor) -> Layout:
        """That of a tensor."""
        return cls(tensor.dtype, tuple(tensor.size()), tensor.stride(), int(tensor.storage_offset()))


@dataclass(slots=True, eq=False)
class Version:
    """The contents of a storage between two writes: one tensor of the graph.

    Attributes:
        storage: What holds it.
        layout: Of the tensor that was written; of the whole where a part was written.
        producer: Position of the node that wrote it; -1: it was there before.
        role: One of ``ROLES``.
        name: For people.
        is_output: Whether it must survive the step.
    """

    storage: Storage
    layout: Layout
    producer: int
    role: str = "activation"
    name: str = ""
    is_output: bool = False


@dataclass(frozen=True, slots=True)
class Part:
    """A tensor that an operator was given: a version of a storage, looked at in some way."""

    version: Version
    layout: Layout


@dataclass(frozen=True, slots=True)
class Invocation:
    """What a node ran.

    Attributes:
        function: The operator.
        args: Positional arguments; tensors are :class:`Part`.
        kwargs: Named arguments; tensors are :class:`Part`.
        replaced: Versions that it wrote over, one per rewritten storage.
    """

    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    replaced: tuple[Version, ...]


@dataclass(slots=True, eq=False)
class Storage:
    """Memory that tensors share; views are other ways to look at it.

    Attributes:
        bytes: Its size.
        current: What it holds now.
        state: The parameter or buffer that lives here, if one does.
    """

    bytes: int
    current: Version = field(init=False, repr=False)
    state: State | None = None

    def write(self, tensor: torch.Tensor, producer: int) -> Version:
        """Replaces the contents by what a node wrote through ``tensor``."""
        self.current = Version(self, Layout.of(tensor), producer)
        return self.current


@dataclass(slots=True, eq=False)
class State:
    """A parameter with the optimizer's moments, or a buffer: what outlives the step.

    Attributes:
        name: Qualified name of the parameter or buffer.
        path: Module that owns it.
        versions: What its storages held before the step: the parameter itself, then the moments.
        is_parameter: Whether it is a parameter.
    """

    name: str
    path: tuple[str, ...]
    is_parameter: bool
    versions: list[Version] = field(default_factory=list)

    @property
    def changed(self) -> bool:
        """Whether the step has written to it."""
        return any(v.storage.current is not v for v in self.versions)


@dataclass(slots=True, eq=False)
class Node:
    """A call of an operator that does work.

    Attributes:
        kind: Name of the operator.
        reads: Tensors it reads, each once.
        writes: Tensors it writes: new storages, then new contents of old ones.
        rewritten: Storages whose contents it replaced.
        flops: ``None``: no formula.
        accessed_bytes: Bytes read and written.
        elementwise: Whether output elements depend on inputs at the same place alone.
        path: Module it belongs to.
        direction: One of ``DIRECTIONS``.
        home: The state that it updates, for ops of the optimizer.
        invocation: What it ran, where that is kept.
    """

    kind: str
    reads: list[Version]
    writes: list[Version]
    rewritten: list[Storage]
    flops: int | None
    accessed_bytes: int
    elementwise: bool
    path: tuple[str, ...]
    direction: str
    home: State | None
    invocation: Invocation | None


def dtype_name(dtype: torch.dtype) -> str:
    """The name of a torch dtype in a graph.

    Raises:
        ImportFailedError: A graph cannot hold it.
    """
    name = str(dtype).removeprefix("torch.")
    if name in BITS:
        return name
    if name.startswith("float8_"):
        name = name.replace("_", "")
    if name not in BITS:
        raise ImportFailedError(f"a tensor has dtype {dtype}; a graph can hold {', '.join(BITS)}")
    return name
