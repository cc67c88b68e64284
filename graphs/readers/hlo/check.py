"""Refuses instructions whose shapes contradict each other, before anything is computed from them."""

from __future__ import annotations

from collections.abc import Callable

from ...dtypes import BITS
from .attributes import axes, dim_labels, ints, whole
from .costs import ELEMENTWISE, FORMULAS
from .module import Computation, Instruction, Module
from .shapes import ArrayShape, Shape, TupleShape, same

#: Numbers of operands of what has a fixed one.
_ARITY = {
    **dict.fromkeys(ELEMENTWISE, 1),
    **dict.fromkeys(
        ("add", "and", "atan2", "compare", "complex", "divide", "maximum", "minimum", "mulhi", "multiply",
         "or", "power", "remainder", "shift-left", "shift-right-arithmetic", "shift-right-logical",
         "stochastic-convert", "subtract", "xor", "add-dependency", "pad"), 2),
    **dict.fromkeys(("select", "clamp"), 3),
    **dict.fromkeys(
        ("bitcast", "bitcast-convert", "broadcast", "copy", "get-tuple-element", "reshape", "reverse",
         "slice", "transpose", "while"), 1),
    **dict.fromkeys(("constant", "iota", "parameter"), 0),
}  # fmt: skip
#: Computations that an instruction cannot do without.
_APPLIED = {
    **dict.fromkeys(("reduce", "reduce-window", "map", "scatter", "sort"), ("to_apply",)),
    "select-and-scatter": ("select", "scatter"),
}
_ASYNC = ("-start", "-update", "-done")


class ContradictionError(ValueError):
    """An instruction that cannot be; the message says what contradicts what."""


def base_opcode(opcode: str) -> str:
    """``"all-gather"`` of ``"all-gather-start"``; other opcodes as they are."""
    for ending in _ASYNC:
        if opcode.endswith(ending):
            return opcode[: -len(ending)]
    return opcode


def check_instruction(
    module: Module, computation: Computation, instruction: Instruction, operands: list[Instruction]
) -> None:
    """Refuses an unknown opcode and shapes that do not fit.

    Raises:
        ContradictionError: The message says what is wrong.
        BadAttributeError: An attribute is malformed.
    """
    opcode = instruction.opcode
    if opcode not in FORMULAS and base_opcode(opcode) not in (*FORMULAS, "async"):
        raise ContradictionError(f"unknown instruction {opcode!r}; it is newer than this reader, or no HLO")
    arity = _ARITY.get(opcode)
    if arity is not None and len(operands) != arity:
        raise ContradictionError(f"{opcode} has {len(operands)} operands; expected {arity}")
    check = _CHECKS.get(opcode)
    if check is not None:
        check(instruction, [operand.shape for operand in operands])
    for key in _APPLIED.get(opcode, ()):
        if key not in instruction.attributes:
            raise ContradictionError(f"{opcode} names no computation as {key}")
    for name in instruction.callees:
        if name not in module.computations:
            raise ContradictionError(f"calls %{name}, which the module does not define")
    _check_calls(module, instruction, [operand.shape for operand in operands])


def check_parameters(computation: Computation) -> None:
    """Refuses parameters that are not numbered 0, 1, 2, ...

    Raises:
        ContradictionError: The message says which are there.
    """
    numbers = [instruction.parameter for instruction in computation.parameters]
    if numbers != list(range(len(numbers))):
        wrong = next(i for i, number in enumerate(numbers) if number != i)
        raise ContradictionError(
            f"%{computation.name} has {len(numbers)} parameters; number {wrong} is missing or there twice"
        )


def _check_calls(module: Module, instruction: Instruction, operands: list[Shape]) -> None:
    """Operands fit the parameters of what is called with them, results fit the results."""
    opcode, attributes = instruction.opcode, instruction.attributes
    if opcode in ("fusion", "call"):
        callees = instruction.callees
        if len(callees) != 1:
            raise ContradictionError(f"{opcode} names {len(callees)} computations; expected 1")
        _expect_signature(module.computations[callees[0]], operands, instruction.shape)
    elif opcode == "while":
        for key, result in (("condition", None), ("body", instruction.shape)):
            called = module.computations.get(attributes.get(key, "").lstrip("%"))
            if called is None:
                raise ContradictionError(f"while names no {key}")
            _expect_signature(called, [instruction.shape], result)
        _expect_same("the state", operands[0], instruction.shape)
    elif opcode == "conditional":
        callees = instruction.callees
        if not callees or len(operands) != len(callees) + 1:
            raise ContradictionError(
                f"conditional has {len(operands)} operands for {len(callees)} branches; expected one more"
            )
        for name, operand in zip(callees, operands[1:], strict=True):
            _expect_signature(module.computations[name], [operand], instruction.shape)


def _expect_signature(called: Computation, operands: list[Shape], result: Shape | None) -> None:
    parameters = called.parameters
    if len(parameters) != len(operands):
        raise ContradictionError(
            f"%{called.name} has {len(parameters)} parameters and is called with {len(operands)} values"
        )
    for parameter, operand in zip(parameters, operands, strict=True):
        _expect_same(f"%{parameter.name} of %{called.name}", operand, parameter.shape)
    if result is not None:
        _expect_same(f"the result of %{called.name}", called.instructions[called.root].shape, result)


def _expect_same(what: str, given: Shape, expected: Shape) -> None:
    if given is not expected and not same(given, expected):
        raise ContradictionError(f"{what} is {given}; expected {expected}")


def _array(shape: Shape) -> ArrayShape:
    if not isinstance(shape, ArrayShape):
        raise ContradictionError(f"{shape} is a tuple; expected an array")
    return shape


def _elementwise(instruction: Instruction, operands: list[Shape]) -> None:
    """All of the same sizes; a ``select`` may have a scalar condition, a ``clamp`` scalar bounds."""
    dims = _array(instruction.shape).dims
    scalars = {"select": (0,), "clamp": (0, 2)}.get(instruction.opcode, ())
    for position, operand in enumerate(operands):
        given = _array(operand).dims
        if given != dims and not (position in scalars and not given):
            raise ContradictionError(
                f"{instruction.opcode} of {operand} gives {instruction.shape}; sizes must agree"
            )


def _same_elements(instruction: Instruction, operands: list[Shape]) -> None:
    source, out = _array(operands[0]), _array(instruction.shape)
    if source.elements != out.elements or source.type != out.type:
        raise ContradictionError(f"{instruction.opcode} of {source} gives {out}; elements must stay")


def _same_bits(instruction: Instruction, operands: list[Shape]) -> None:
    source, out = _array(operands[0]), _array(instruction.shape)
    before, after = (shape.elements * BITS[shape.dtype] for shape in (source, out))
    if before != after:
        raise ContradictionError(
            f"{instruction.opcode} of {source} ({before} bits) gives {out} ({after} bits)"
        )


def _transpose(instruction: Instruction, operands: list[Shape]) -> None:
    source, out = _array(operands[0]), _array(instruction.shape)
    order = axes(instruction.attributes, "dimensions", len(source.dims))
    if len(order) != len(source.dims) or tuple(source.dims[axis] for axis in order) != out.dims:
        raise ContradictionError(f"transpose of {source} by {order} gives {out}")


def _broadcast(instruction: Instruction, operands: list[Shape]) -> None:
    source, out = _array(operands[0]), _array(instruction.shape)
    where = axes(instruction.attributes, "dimensions", len(out.dims))
    if len(where) != len(source.dims) or tuple(out.dims[axis] for axis in where) != source.dims:
        raise ContradictionError(f"broadcast of {source} to axes {where} gives {out}")


def _concatenate(instruction: Instruction, operands: list[Shape]) -> None:
    out = _array(instruction.shape)
    (axis,) = axes(instruction.attributes, "dimensions", len(out.dims)) or (-1,)
    parts = [_array(operand) for operand in operands]
    fits = axis >= 0 and all(
        len(part.dims) == len(out.dims)
        and part.dims[:axis] + part.dims[axis + 1 :] == out.dims[:axis] + out.dims[axis + 1 :]
        for part in parts
    )
    if not fits or sum(part.dims[axis] for part in parts) != out.dims[axis]:
        raise ContradictionError(f"concatenate of {', '.join(map(str, parts[:6]))} along {axis} gives {out}")


def _dot(instruction: Instruction, operands: list[Shape]) -> None:
    if len(operands) < 2:
        raise ContradictionError(f"dot has {len(operands)} operands; expected 2")
    left, right, out = _array(operands[0]), _array(operands[1]), _array(instruction.shape)
    summed = [
        axes(instruction.attributes, f"{side}_contracting_dims", len(shape.dims))
        for side, shape in (("lhs", left), ("rhs", right))
    ]
    batch = [
        axes(instruction.attributes, f"{side}_batch_dims", len(shape.dims))
        for side, shape in (("lhs", left), ("rhs", right))
    ]
    sides = (left, right)
    for what, pair in (("contracts", summed), ("runs over", batch)):
        sizes = [[shape.dims[axis] for axis in chosen] for shape, chosen in zip(sides, pair, strict=True)]
        if sizes[0] != sizes[1]:
            raise ContradictionError(f"dot of {left} and {right} {what} sizes {sizes[0]} and {sizes[1]}")
    free = [
        size
        for shape, used in zip(sides, zip(summed, batch, strict=True), strict=True)
        for axis, size in enumerate(shape.dims)
        if axis not in (*used[0], *used[1])
    ]
    expected = [left.dims[axis] for axis in batch[0]] + free
    if list(out.dims) != expected and "sparsity" not in instruction.attributes:
        raise ContradictionError(f"dot of {left} and {right} gives {out}; expected sizes {expected}")


def _convolution(instruction: Instruction, operands: list[Shape]) -> None:
    if len(operands) < 2:
        raise ContradictionError(f"convolution has {len(operands)} operands; expected 2")
    shapes = (_array(operands[0]), _array(operands[1]), _array(instruction.shape))
    labels = dim_labels(instruction.attributes)
    if any(len(shape.dims) != len(names) for shape, names in zip(shapes, labels, strict=True)):
        raise ContradictionError(
            f"convolution of {shapes[0]} and {shapes[1]} gives {shapes[2]} by dim_labels "
            f"{instruction.attributes['dim_labels']}"
        )

    def size(which: int, label: str) -> int:
        return shapes[which].dims[labels[which].index(label)]

    groups = whole(instruction.attributes, "feature_group_count", 1)
    batches = whole(instruction.attributes, "batch_group_count", 1)
    if size(0, "f") != groups * size(1, "i"):
        raise ContradictionError(
            f"convolution of {size(0, 'f')} channels in {groups} groups by a kernel of {size(1, 'i')}"
        )
    if size(2, "f") != size(1, "o") or size(0, "b") != batches * size(2, "b"):
        raise ContradictionError(f"convolution of {shapes[0]} and {shapes[1]} gives {shapes[2]}")


def _reduce(instruction: Instruction, operands: list[Shape]) -> None:
    if len(operands) < 2 or len(operands) % 2:
        raise ContradictionError(f"reduce has {len(operands)} operands; expected arrays and as many starts")
    source = _array(operands[0])
    gone = axes(instruction.attributes, "dimensions", len(source.dims))
    expected = tuple(size for axis, size in enumerate(source.dims) if axis not in gone)
    shape = instruction.shape
    results = shape.elements if isinstance(shape, TupleShape) else (shape,)
    if len(results) != len(operands) // 2 or any(_array(result).dims != expected for result in results):
        raise ContradictionError(f"reduce of {source} over axes {gone} gives {shape}")


def _tuple(instruction: Instruction, operands: list[Shape]) -> None:
    shape = instruction.shape
    elements = shape.elements if isinstance(shape, TupleShape) else (shape,)
    fits = isinstance(shape, TupleShape) and len(elements) == len(operands)
    if not fits or not all(a is b or same(a, b) for a, b in zip(operands, elements, strict=True)):
        raise ContradictionError(f"a tuple of {len(operands)} values is said to be {shape}")


def _get_tuple_element(instruction: Instruction, operands: list[Shape]) -> None:
    index = ints(instruction.attributes, "index")
    source = operands[0]
    if not isinstance(source, TupleShape):
        raise ContradictionError(f"get-tuple-element of {source}; expected a tuple")
    if len(index) != 1 or not 0 <= index[0] < len(source.elements):
        raise ContradictionError(
            f"get-tuple-element has index={instruction.attributes.get('index')!r} of a tuple of "
            f"{len(source.elements)}"
        )
    _expect_same(f"element {index[0]}", source.elements[index[0]], instruction.shape)


_CHECKS: dict[str, Callable[[Instruction, list[Shape]], None]] = {
    **dict.fromkeys(ELEMENTWISE, _elementwise),
    "bitcast": _same_bits,
    "bitcast-convert": _same_bits,
    "broadcast": _broadcast,
    "concatenate": _concatenate,
    "convolution": _convolution,
    "copy": _elementwise,
    "dot": _dot,
    "get-tuple-element": _get_tuple_element,
    "reduce": _reduce,
    "reshape": _same_elements,
    "transpose": _transpose,
    "tuple": _tuple,
}
