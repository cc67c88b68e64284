"""What the schema of an operator says: which results are views, and which arguments it writes to."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import torch

#: Results share the input's storage although the schema does not say so.
_UNDECLARED_VIEWS = frozenset({"_unsafe_view", "unsafe_split", "unsafe_split_with_sizes", "lift_fresh_copy"})
#: In-place operators that need none of the old contents.
_OVERWRITES = frozenset(
    {
        "bernoulli", "cauchy", "copy", "exponential", "fill", "geometric", "log_normal", "normal", "random",
        "uniform", "zero",
    }
)  # fmt: skip
#: Operators that need the shape of their first argument only.
_LIKE = frozenset(
    {
        "empty_like", "full_like", "ones_like", "rand_like", "randint_like", "randn_like", "zeros_like",
        "new_empty", "new_empty_strided", "new_full", "new_ones", "new_zeros",
    }
)  # fmt: skip
#: Pointwise operators that are not tagged so.
_COPIES = frozenset({"_to_copy", "clone", "copy"})
#: Arguments that are written to although the schema does not say so, if the named flag is set.
_UNDECLARED_WRITES = {"native_batch_norm": ("training", ("running_mean", "running_var"))}


@dataclass(frozen=True, slots=True)
class Traits:
    """What holds for every call of one operator; arguments are given by their position in the schema.

    Attributes:
        kind: Its name in a graph: without ``aten``, overload and the underscore of in-place variants.
        names: Names of its arguments.
        composite: Whether it consists of other operators, which are what is recorded.
        view_of: Argument that all its results are views of; ``None``: they are fresh.
        renames: Whether it changes what a tensor looks like (shape, strides), not what it holds.
        written: Arguments that it writes to.
        written_if: A flag, and the arguments that it writes to if that flag is set.
        overwrites: Whether old contents of what it writes to are not needed.
        unread: Arguments whose contents are not read.
        pointwise: Whether each output element depends on input elements at its place alone.
    """

    kind: str
    names: tuple[str, ...]
    composite: bool
    view_of: int | None
    renames: bool
    written: tuple[int, ...]
    written_if: tuple[int, tuple[int, ...]] | None
    overwrites: bool
    unread: frozenset[int]
    pointwise: bool


@cache
def traits_of(func: torch._ops.OpOverload) -> Traits:
    """Reads the schema of an operator."""
    schema = func._schema
    namespace, name = schema.name.split("::")
    written = tuple(
        i for i, a in enumerate(schema.arguments) if a.alias_info is not None and a.alias_info.is_write
    )
    is_out = any(schema.arguments[i].is_out for i in written)
    base = name[:-1] if written and name.endswith("_") and not name.endswith("__") else name
    names = tuple(a.name for a in schema.arguments)
    written_if = None
    if base in _UNDECLARED_WRITES and not written:
        flag, targets = _UNDECLARED_WRITES[base]
        written_if = (names.index(flag), tuple(names.index(t) for t in targets))
    return Traits(
        kind=base if namespace == "aten" else f"{namespace}.{base}",
        names=names,
        composite=_is_composite(func),
        view_of=None if written else _viewed(schema, base),
        renames=torch.Tag.inplace_view in func.tags,
        written=written,
        written_if=written_if,
        overwrites=is_out or base in _OVERWRITES,
        unread=frozenset([0] if base in _LIKE else []),
        pointwise=torch.Tag.pointwise in func.tags or base in _COPIES,
    )


def _viewed(schema: torch.FunctionSchema, base: str) -> int | None:
    if base in _UNDECLARED_VIEWS:
        return 0
    return next((i for i, argument in enumerate(schema.arguments) if argument.alias_info is not None), None)


def _is_composite(func: torch._ops.OpOverload) -> bool:
    has_kernel = torch._C._dispatch_has_kernel_for_dispatch_key
    name = str(func._schema.name) + (f".{func._schema.overload_name}" if func._schema.overload_name else "")
    return bool(has_kernel(name, "CompositeImplicitAutograd")) and not has_kernel(name, "CPU")
