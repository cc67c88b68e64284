"""What a cost formula sees of an op."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

from numpy.typing import NDArray

from ....dtypes import storage_bytes
from ..types import DTYPES, TensorType

Shape = tuple[int, ...]


class UnknownShapeError(Exception):
    """A formula needs a shape that is unknown."""


@dataclass(frozen=True)
class OpView:
    """One op with its types.

    Attributes:
        kind: Kind, with the domain if that is not ONNX's own.
        inputs: Types of its inputs; ``None`` for one left out.
        outputs: Types of its outputs; ``None`` for one left out.
        data: Contents of its inputs where they are known.
        read_attributes: Gives its attributes.
    """

    kind: str
    inputs: Sequence[TensorType | None]
    outputs: Sequence[TensorType | None]
    data: Sequence[NDArray[Any] | None]
    read_attributes: Callable[[], Mapping[str, Any]]

    @cached_property
    def attributes(self) -> Mapping[str, Any]:
        """Attributes by name; texts as ``str``."""
        return self.read_attributes()

    def has_input(self, index: int) -> bool:
        """Whether an optional input is given."""
        return index < len(self.inputs) and self.inputs[index] is not None

    def shape(self, index: int = 0) -> Shape:
        """Shape of an input.

        Raises:
            UnknownShapeError: It is unknown, or the input is absent.
        """
        return _known(self.inputs, index)

    def out_shape(self, index: int = 0) -> Shape:
        """Shape of an output; raises as :meth:`shape`."""
        return _known(self.outputs, index)

    def elements(self, index: int = 0) -> int:
        """Number of elements of an input."""
        return prod(self.shape(index))

    def out_elements(self, index: int | None = None) -> int:
        """Number of elements of an output; of the first that is there by default."""
        if index is None:
            index = next((i for i, kind in enumerate(self.outputs) if kind is not None), 0)
        return prod(self.out_shape(index))

    def bytes(self, index: int) -> int:
        """Bytes of an input; 0 if it is absent."""
        return _bytes(self.inputs[index]) if self.has_input(index) else 0

    def output_bytes(self) -> int:
        """Bytes of all outputs."""
        return sum(_bytes(kind) for kind in self.outputs if kind is not None)

    def ints(self, name: str, index: int) -> list[int] | None:
        """Integers that are an attribute in old opsets and an input in new ones; ``None`` where unknown."""
        if name in self.attributes:
            return [int(v) for v in self.attributes[name]]
        if not self.has_input(index):
            return None
        data = self.data[index]
        return None if data is None else [int(v) for v in data.reshape(-1)]


def _known(types: Sequence[TensorType | None], index: int) -> Shape:
    kind = types[index] if index < len(types) else None
    if kind is None or kind.shape is None:
        raise UnknownShapeError
    return kind.shape


def _bytes(kind: TensorType | None) -> int:
    if kind is None or kind.shape is None or kind.element == 0:
        raise UnknownShapeError
    return storage_bytes(DTYPES[kind.element], prod(kind.shape))


#: A formula: the flops of an op, or ``None`` where they depend on values that are not known while reading.
Formula = Callable[[OpView], int | None]
