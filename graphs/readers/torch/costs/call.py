"""A call of an operator, as cost formulas see it: shapes and settings by the names of its schema."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from torch import Tensor

from ..schemas import Traits

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Call:
    """One call.

    Attributes:
        traits: Of the operator.
        args: Positional arguments.
        kwargs: Named arguments.
        outputs: Tensors it wrote.
    """

    traits: Traits
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    outputs: Sequence[Tensor]

    def value(self, name: str, default: Any = None) -> Any:
        """An argument, the default where it was left out."""
        if name in self.kwargs:
            return self.kwargs[name]
        if name not in self.traits.names:
            raise KeyError(f"{self.traits.kind} has no argument {name!r}")
        position = self.traits.names.index(name)
        return self.args[position] if position < len(self.args) else default

    def has(self, name: str) -> bool:
        """Whether an optional argument was given."""
        return name in self.traits.names and self.value(name) is not None

    def shape(self, name: str) -> Shape:
        """Shape of a tensor argument."""
        return tuple(self.value(name).shape)

    def elements(self, name: str) -> int:
        """Elements of a tensor argument."""
        return int(self.value(name).numel())

    def bytes(self, name: str) -> int:
        """Bytes of a tensor argument as it is seen through its view; 0 where it was left out."""
        tensor = self.value(name) if name in self.traits.names else None
        return 0 if tensor is None else int(tensor.numel() * tensor.element_size())

    def mask(self, name: str = "output_mask") -> list[bool]:
        """Which results were asked for."""
        return [bool(wanted) for wanted in self.value(name)]

    def out_shape(self, index: int = 0) -> Shape:
        """Shape of an output."""
        return tuple(self.outputs[index].shape)

    def out_elements(self, index: int = 0) -> int:
        """Elements of an output."""
        return prod(self.outputs[index].shape)

    def all_elements(self) -> int:
        """Elements of all outputs."""
        return sum(prod(t.shape) for t in self.outputs)

    def out_bytes(self) -> int:
        """Bytes of all outputs."""
        return sum(t.numel() * t.element_size() for t in self.outputs)


#: Floating-point operations of a call; ``None``: not known.
Formula = Callable[[Call], int | None]
