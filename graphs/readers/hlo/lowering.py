"""From the instructions of a computation to ops and tensors; what only renames storage becomes no op."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from ....errors import ImportFailedError
from .attributes import ints
from .check import base_opcode
from .costs import ELEMENTWISE, call_target
from .fusions import Fusion
from .module import Computation, Instruction, Module
from .names import op_name
from .shapes import ArrayShape, Shape, TupleShape, leaves

#: The tensors that a reader of an array reads: its storage, then what must have happened before.
Leaf = tuple[int, ...]
#: The arrays of a value, from left to right.
Value = list[Leaf]

#: More reads than this are refused: a few lines that read large tuples again and again could ask for any number.
MAX_READS = 20_000_000
#: A value that waits for more tensors than this waits for an op that waits for them.
_MAX_WAITS = 16

#: Calls that only say where a value should be.
_MARKS = frozenset(("Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape", "LayoutConstraint"))
#: Elements of the result of a start that the operation gives; the others repeat its operands.
_GIVEN = {"copy": (0,), "send": (2,), "recv": (0, 2)}
_WHOLE = ("all-reduce",)  # a start that gives its result and nothing else
_TOKEN = ArrayShape("token", ())


@dataclass(slots=True)
class TensorSpec:
    """A tensor to be built."""

    shape: ArrayShape
    name: str
    role: str = "activation"
    producer: int = -1
    is_output: bool = False


@dataclass(slots=True)
class OpSpec:
    """An op to be built."""

    kind: str
    name: str
    framework_name: str
    inputs: list[int]
    outputs: list[int]
    flops: int
    accessed_bytes: int
    workspace_bytes: int
    elementwise: bool
    control: int = -1  # a tensor without bytes that stands for the op's end


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of a computation before what calls it is lowered.

    Attributes:
        flops: Of one run.
        accessed_bytes: Of one run.
        workspace_bytes: What one run needs beside its parameters and results; 0 of a fused one.
        instructions: Its own and those of the calls in it.
        unchanged: For each array of the result whether it is the parameter at that place, as it came.
        fusion: What it is to a fusion that calls it.
    """

    flops: int
    accessed_bytes: int
    workspace_bytes: int
    instructions: int
    unchanged: tuple[bool, ...]
    fusion: Fusion | None


@dataclass(slots=True)
class Parts:
    """What a computation became.

    Attributes:
        tensors: In order of making.
        ops: In order of running.
        arguments: The source tensors of each parameter.
        root: The result.
        folded: Instructions that became no op, by opcode.
        owns_arguments: Whether the parameters are storage that may be written over, as a loop's state is.
    """

    tensors: list[TensorSpec] = field(default_factory=list)
    ops: list[OpSpec] = field(default_factory=list)
    arguments: list[Value] = field(default_factory=list)
    root: Value = field(default_factory=list)
    folded: Counter[str] = field(default_factory=Counter)
    owns_arguments: bool = False

    def workspace_bytes(self) -> int:
        """What a run in this order needs beside the parameters and the results."""
        results = {leaf[0] for leaf in self.root if leaf and self.tensors[leaf[0]].producer >= 0}
        last = [-1] * len(self.tensors)
        for at, op in enumerate(self.ops):
            for tensor in (*op.outputs, *op.inputs):
                last[tensor] = at
        dying: list[list[int]] = [[] for _ in self.ops]
        for tensor, at in enumerate(last):
            if at >= 0 and self.tensors[tensor].producer >= 0 and tensor not in results:
                dying[at].append(self.tensors[tensor].shape.bytes)
        live = peak = 0
        for op, freed in zip(self.ops, dying, strict=True):
            live += sum(self.tensors[t].shape.bytes for t in op.outputs if t not in results)
            peak = max(peak, live + op.workspace_bytes)
            live -= sum(freed)
        return peak

    def unchanged(self) -> tuple[bool, ...]:
        """For each array of the result whether it is the parameter at that place."""
        came = [leaf for argument in self.arguments for leaf in argument]
        return tuple(leaf == came[i] if i < len(came) else False for i, leaf in enumerate(self.root))


@dataclass(slots=True)
class _Frame:
    """A computation that is being lowered."""

    computation: Computation
    arguments: list[Value]
    values: list[Value | None]
    ops: dict[int, int] = field(default_factory=dict)
    done: int = 0


def kind_of(instruction: Instruction, facts: Mapping[str, Facts]) -> str:
    """What an op is called: its opcode, with what a fusion or a call is about."""
    if instruction.opcode == "fusion":
        fusion = facts[instruction.callees[0]].fusion
        return f"fusion:{fusion.hero}" if fusion else "fusion"
    if instruction.opcode == "custom-call":
        return f"custom-call:{call_target(instruction)}"
    return instruction.opcode


def is_alias(instruction: Instruction, operands: list[Instruction]) -> bool:
    """Whether an instruction gives its first operand another name, shape or type and copies nothing."""
    opcode = instruction.opcode
    if opcode in ("bitcast", "opt-barrier", "add-dependency", "domain"):
        return True
    shape = instruction.shape
    if opcode == "custom-call":
        return call_target(instruction) in _MARKS and len(operands) == 1 and operands[0].shape == shape
    if opcode not in ("reshape", "bitcast-convert"):
        return False
    source = operands[0].shape
    if not isinstance(source, ArrayShape) or not isinstance(shape, ArrayShape):
        return False
    if source.bytes != shape.bytes:
        return False
    before, after = _stored_order(source), _stored_order(shape)
    rows_stay = before == sorted(before) and after == sorted(after)
    only_ones_change = _sizes(source) == _sizes(shape) and before == after
    return rows_stay or only_ones_change


def _sizes(shape: ArrayShape) -> list[int]:
    return [size for size in shape.dims if size != 1]


def _stored_order(shape: ArrayShape) -> list[int]:
    """Axes from the slowest to the fastest, counted among those whose size is not 1."""
    number = {axis: i for i, axis in enumerate(a for a, size in enumerate(shape.dims) if size != 1)}
    order = range(len(shape.dims)) if shape.order is None else reversed(shape.order)
    return [number[axis] for axis in order if axis in number]


class Lowerer:
    """Lowers computations of a module; calls are inlined, loops and branches stay one op."""

    def __init__(self, module: Module, facts: Mapping[str, Facts]) -> None:
        self.module = module
        self.facts = facts
        self._places: dict[int, list[int]] = {}
        self._reads = 0

    def lower(self, computation: Computation, *, owns_arguments: bool = False) -> Parts:
        """The ops of a computation, in its order.

        Raises:
            ImportFailedError: It reads more than ``MAX_READS`` tensors.
        """
        parts = Parts(owns_arguments=owns_arguments)
        for parameter in computation.parameters:
            found = list(leaves(parameter.shape))
            parts.arguments.append(
                [
                    (_add(parts, shape, _numbered(parameter.name, i, found), role="input"),)
                    for i, shape in enumerate(found)
                ]
            )
        stack = [_Frame(computation, parts.arguments, [None] * len(computation.instructions))]
        result: Value | None = None
        while stack:
            frame = stack[-1]
            rows = frame.computation.instructions
            if result is not None:  # of the call that this frame waits for
                frame.values[frame.computation.order[frame.done]] = result
                frame.done += 1
                result = None
            called = None
            while called is None and frame.done < len(rows):
                position = frame.computation.order[frame.done]
                called = self._step(parts, frame, position)
                frame.done += called is None
            if called is not None:
                stack.append(called)
                continue
            result = frame.values[frame.computation.root]
            stack.pop()
        parts.root = result or []
        return parts

    def _step(self, parts: Parts, frame: _Frame, position: int) -> _Frame | None:
        """Gives one instruction its value, or returns the call that must run first."""
        computation = frame.computation
        row = computation.instructions[position]
        values = [frame.values[p] or [] for p in row.operands]
        if row.opcode == "call":
            parts.folded["call"] += 1
            called = self.module.computations[row.callees[0]]
            return _Frame(called, values, [None] * len(called.instructions))
        value = self._without_op(parts, frame, row, values)
        if value is not None:
            parts.folded[row.opcode] += 1
        else:
            after = [self._end_of(parts, frame.ops[p]) for p in row.after if p in frame.ops]
            frame.ops[position] = len(parts.ops)
            value = self._op(parts, row, computation.operands(row), values, after)
        frame.values[position] = value
        return None

    def _without_op(self, parts: Parts, frame: _Frame, row: Instruction, values: list[Value]) -> Value | None:
        """The value of what is no work; ``None`` of what is."""
        opcode = row.opcode
        if opcode == "parameter":
            return frame.arguments[row.parameter]
        if opcode == "constant":
            found = list(leaves(row.shape))
            return [
                (_add(parts, shape, _numbered(row.name, i, found), role="constant"),)
                for i, shape in enumerate(found)
            ]
        if opcode == "tuple":
            return [leaf for value in values for leaf in value]
        if opcode == "get-tuple-element":
            source = frame.computation.operands(row)[0].shape
            return self._element(source, values[0], ints(row.attributes, "index")[0])
        if opcode == "after-all":
            waits = self._counted([tensor for value in values for leaf in value for tensor in leaf])
            return [self._bounded(parts, row, (), tuple(dict.fromkeys(waits)))]
        if opcode.endswith("-update") and base_opcode(opcode) != opcode:
            return values[0]
        if opcode.endswith("-done"):
            base = base_opcode(opcode)
            if base in _WHOLE:
                return values[0]
            source = frame.computation.operands(row)[0].shape
            if isinstance(source, TupleShape):
                chosen = _GIVEN.get(base, (1,))
                return [leaf for i in chosen for leaf in self._element(source, values[0], i)]
            return values[0]
        if is_alias(row, frame.computation.operands(row)):
            if opcode == "add-dependency":
                before = values[1][0] if values[1] else ()
                return [self._bounded(parts, row, leaf[:1], (*leaf[1:], *before)) for leaf in values[0]]
            return [leaf for value in values for leaf in value]
        return None

    def _op(
        self,
        parts: Parts,
        row: Instruction,
        operands: list[Instruction],
        values: list[Value],
        after: list[int],
    ) -> Value:
        """Adds an op and returns its value."""
        inputs = self._counted([tensor for value in values for leaf in value for tensor in leaf])
        op = OpSpec(
            kind=kind_of(row, self.facts),
            name=row.name,
            framework_name=op_name(row.attributes),
            inputs=list(dict.fromkeys([*inputs, *after])),
            outputs=[],
            flops=row.flops,
            accessed_bytes=row.accessed_bytes,
            workspace_bytes=0,
            elementwise=self._may_run_in_place(row),
        )
        parts.ops.append(op)
        number = len(parts.ops) - 1
        kept: dict[int, Leaf] = {}
        if row.opcode in ("while", "conditional"):
            op.workspace_bytes = max(self.facts[name].workspace_bytes for name in row.callees)
        if row.opcode == "while":
            kept = self._kept_state(parts, row, values[0], number)
        elif row.opcode.endswith("-start"):
            kept = self._kept_by_start(row, values)
        found = list(leaves(row.shape))
        value = []
        for i, shape in enumerate(found):
            leaf = kept.get(i)
            if leaf is None:
                tensor = _add(parts, shape, _numbered(row.name, i, found), producer=number)
                op.outputs.append(tensor)
                leaf = (tensor,)
            value.append(leaf)
        if op.control >= 0:  # the first output says in what type an op computes
            op.outputs.remove(op.control)
            op.outputs.append(op.control)
        return value

    def _kept_state(self, parts: Parts, row: Instruction, state: Value, op: int) -> dict[int, Leaf]:
        """Arrays of a loop's state that stay in their storage.

        What the body leaves alone keeps its tensor. In a scheduled module XLA has put copies wherever a loop
        may not write over what it was given, so the rest is written in place.
        """
        body = self.facts[row.attributes["body"].lstrip("%")]
        kept: dict[int, Leaf] = {}
        claimed: set[int] = set()
        for i, leaf in enumerate(state):
            if i < len(body.unchanged) and body.unchanged[i]:
                kept[i] = leaf
                continue
            if not self.module.is_scheduled or not leaf or leaf[0] in claimed:
                continue
            tensor = parts.tensors[leaf[0]]
            if tensor.producer >= 0 or (parts.owns_arguments and tensor.role == "input"):
                claimed.add(leaf[0])
                kept[i] = (leaf[0], self._end_of(parts, op))
        return kept

    def _kept_by_start(self, row: Instruction, values: list[Value]) -> dict[int, Leaf]:
        """Parts of the result of an asynchronous start that repeat operands or only say how it goes."""
        base = base_opcode(row.opcode)
        if base in _WHOLE or not isinstance(row.shape, TupleShape):
            return {}
        operands = [leaf for value in values for leaf in value]
        given = _GIVEN.get(base, (1,))
        kept: dict[int, Leaf] = {}
        places = self._places_of(row.shape)
        repeated = iter(operands)
        for element in range(len(row.shape.elements)):
            if element not in given:
                for place in range(places[element], places[element + 1]):
                    kept[place] = next(repeated, ())
        return kept

    def _may_run_in_place(self, row: Instruction) -> bool:
        if row.opcode == "fusion":
            fusion = self.facts[row.callees[0]].fusion
            return fusion is not None and fusion.elementwise
        return row.opcode in ELEMENTWISE or row.opcode == "dynamic-update-slice"

    def _element(self, source: Shape, value: Value, index: int) -> Value:
        """The arrays of one element of a tuple."""
        if not isinstance(source, TupleShape) or index >= len(source.elements):
            return value
        places = self._places_of(source)
        return value[places[index] : places[index + 1]]

    def _places_of(self, shape: TupleShape) -> list[int]:
        """Where the arrays of each element of a tuple begin."""
        places = self._places.get(id(shape))
        if places is None:
            places = [0]
            for element in shape.elements:
                places.append(places[-1] + sum(1 for _ in leaves(element)))
            self._places[id(shape)] = places
        return places

    def _counted(self, reads: list[int]) -> list[int]:
        """The same tensors, counted.

        Raises:
            ImportFailedError: They are too many.
        """
        self._reads += len(reads)
        if self._reads > MAX_READS:
            raise ImportFailedError(f"its instructions read more than {MAX_READS:,} tensors, tuples unpacked")
        return reads

    def _bounded(self, parts: Parts, row: Instruction, storage: Leaf, waits: Leaf) -> Leaf:
        """A leaf that waits for tensors, or for one op that does where they are many."""
        if len(waits) <= _MAX_WAITS:
            return storage + waits
        op = OpSpec(row.opcode, row.name, op_name(row.attributes), list(waits), [], 0, 0, 0, False)
        parts.ops.append(op)
        return (*storage, self._end_of(parts, len(parts.ops) - 1))

    def _end_of(self, parts: Parts, op: int) -> int:
        """A tensor without bytes that exists once an op has ended."""
        spec = parts.ops[op]
        if spec.control < 0:
            spec.control = _add(parts, _TOKEN, f"{spec.name}:end", producer=op)
            spec.outputs.append(spec.control)
        return spec.control


def _add(parts: Parts, shape: ArrayShape, name: str, *, role: str = "activation", producer: int = -1) -> int:
    parts.tensors.append(TensorSpec(shape, name, role, producer))
    return len(parts.tensors) - 1


def _numbered(name: str, index: int, found: list[ArrayShape]) -> str:
    return name if len(found) == 1 else f"{name}:{index}"
