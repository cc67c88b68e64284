"""What an HLO module holds, as it is written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from .shapes import Shape

#: Attributes that name computations.
_CALLEES = frozenset((
    "calls", "to_apply", "condition", "body", "true_computation", "false_computation", "branch_computations",
    "called_computations", "select", "scatter", "comparator",
))  # fmt: skip


@dataclass(slots=True)
class Instruction:
    """One line of a computation.

    Attributes:
        name: Without the percent sign.
        opcode: E.g. ``"dot"``.
        shape: Of the result.
        operands: Positions in the computation of what it reads.
        attributes: What stands behind the operands, as text.
        at: Position of the line in the file's text.
        parameter: Number of a ``parameter``, else -1.
        after: Positions of what must have run before, though nothing of it is read.
        callees: Names of the computations that it calls, in order.
        literal: Of a scalar constant, its value as text.
        flops: Once analysed, of one run.
        accessed_bytes: Once analysed, what one run reads and writes.
        turns: Once analysed, how often a loop runs; ``None`` where the text does not tell.
    """

    name: str
    opcode: str
    shape: Shape
    operands: tuple[int, ...]
    attributes: Mapping[str, str]
    at: int
    parameter: int = -1
    after: tuple[int, ...] = ()
    flops: int = 0
    accessed_bytes: int = 0
    callees: tuple[str, ...] = field(init=False)
    literal: str = ""
    turns: int | None = None

    def __post_init__(self) -> None:
        named = [text for key, text in self.attributes.items() if key in _CALLEES]
        found = [part.strip().lstrip("%") for text in named for part in text.strip("{}").split(",")]
        self.callees = tuple([name for name in found if name])

    @property
    def needs(self) -> tuple[int, ...]:
        """Positions of all that comes before it."""
        return self.operands + self.after if self.after else self.operands


@dataclass(slots=True)
class Computation:
    """A function of a module.

    Attributes:
        name: Without the percent sign.
        instructions: In the order of the file.
        root: Position of the instruction whose value is the result.
        order: Positions of the instructions, each behind what it reads.
        parameters: Its parameters by number.
        at: Position in the file's text.
    """

    name: str
    instructions: list[Instruction]
    root: int
    at: int
    order: Sequence[int] = field(default_factory=list)
    parameters: Sequence[Instruction] = field(init=False)

    def __post_init__(self) -> None:
        found = [instruction for instruction in self.instructions if instruction.parameter >= 0]
        self.parameters = sorted(found, key=lambda instruction: instruction.parameter)

    def operands(self, instruction: Instruction) -> list[Instruction]:
        """What an instruction reads."""
        return [self.instructions[position] for position in instruction.operands]


@dataclass(slots=True)
class Module:
    """A program.

    Attributes:
        name: As the file says.
        attributes: What stands behind the name, as text.
        computations: By name, in the order of the file.
        entry: Name of the computation that the program begins with.
    """

    name: str
    attributes: Mapping[str, str]
    computations: Mapping[str, Computation]
    entry: str

    @property
    def is_scheduled(self) -> bool:
        """Whether the order of the instructions is the one in which XLA runs them."""
        return self.attributes.get("is_scheduled") == "true"
