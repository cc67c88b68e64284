"""Parses HLO text; every part of the text is looked at once, so the time is linear in its length."""

from __future__ import annotations

import re
from typing import NoReturn

from ....errors import ImportFailedError
from ..ordering import CycleError, order_of
from .module import Computation, Instruction, Module
from .shapes import Shape, ShapeError, ShapeTable, TupleShape, same

_STRING = r'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
# What is not closed reaches to the end, so that no part of a damaged file is scanned twice.
_COMMENT = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\Z)|/\*.*?(?:\*/|\Z)|//[^\n]*', re.DOTALL)
_HEADER = re.compile(r"\s*HloModule\s+([\w.\-]+)")
_TABLE = re.compile(r"\s*(?:FileNames|FunctionNames|FileLocations|StackFrames)\b")
_TABLE_ROW = re.compile(rf"\s*\d+\s+(?:{_STRING}|\{{[^{{}}]*\}})", re.DOTALL)
_COMPUTATION = re.compile(r"\s*(ENTRY\s+)?%?([A-Za-z_][\w.\-]*)\s*(?=[({])")
_SPACE = re.compile(r"\s*+")
_OPEN = re.compile(r"\s*\{")
_CLOSE = re.compile(r"\s*\}")
_NAME = re.compile(r"\s*(ROOT\s+)?%?([A-Za-z_][\w.\-]*)\s*=\s*")
_ARRAY_AND_OPCODE = re.compile(r"([a-z]\w*\[[^\[\]]*\](?:\{[^{}]*\})?)\s*([a-z][\w\-]*)\(")
_OPCODE = re.compile(r"\s*([a-z][\w\-]*)\(")
_PLAIN_OPERANDS = re.compile(r'([^()"]*)\)')
_ATTRIBUTE = re.compile(
    rf'\s*,\s*([\w\-]+)=(\{{(?:[^{{}}"]++|{_STRING})*+\}}|{_STRING}'
    r'|(?:[^,\s{}()\[\]"]++|\[[^\[\]]*+\]|\([^()]*+\))++)',
    re.DOTALL,
)
_ATTRIBUTE_KEY = re.compile(r"\s*,\s*([\w\-]+)=")
_DELIMITER = re.compile(rf'{_STRING}|[(){{}}\[\]"]', re.DOTALL)
_SCALAR = re.compile(r"[-+\w.]+")
_OPERAND = re.compile(r"%?([A-Za-z_][\w.\-]*)")
_ARROW = re.compile(r"\s*->\s*")
_RESULT = re.compile(r"[a-z]\w*\[[^\[\]]*\](?:\{[^{}]*\}(?=\s*\{))?")
_MAX_LITERAL = 32
_CONTROL = "control-predecessors"
_CLOSES = {"(": ")", "{": "}", "[": "]"}


def parse_module(text: str, path: str) -> Module:
    """Parses a module.

    Args:
        text: The whole text.
        path: Names it in messages.

    Raises:
        ImportFailedError: It is no HLO module, is cut off, or breaks a rule; the message names the line.
    """
    if "/*" in text or "//" in text:
        text = _COMMENT.sub(_without_comment, text)
    return _Parser(text, path).module()


def line_of(text: str, at: int) -> int:
    """Number of the line of a position, from 1."""
    return text.count("\n", 0, at) + 1


def _without_comment(match: re.Match[str]) -> str:
    """Strings as they are; comments become spaces, so that positions and lines stay."""
    found = match[0]
    return found if found[0] == '"' else re.sub(r"[^\n]", " ", found)


class _Parser:
    """One pass over a text."""

    def __init__(self, text: str, path: str) -> None:
        self.text = text
        self.path = path
        self.shapes = ShapeTable()
        self.declared: dict[int, list[Shape | None]] = {}

    def module(self) -> Module:
        header = _HEADER.match(self.text)
        if header is None:
            self._refuse(0, "expected HLO text, which begins with 'HloModule NAME'")
        attributes, at = self._attributes(header.end())
        at = self._skip_tables(at)
        computations: dict[str, Computation] = {}
        entry = ""
        while self._behind_space(at) < len(self.text):
            start = _COMPUTATION.match(self.text, at)
            if start is None:
                self._refuse(at, "expected a computation such as 'ENTRY %main (x: f32[2]) -> f32[2] {'")
            computation, at = self._computation(start)
            if computation.name in computations:
                self._refuse(computation.at, f"a second computation is called %{computation.name}")
            computations[computation.name] = computation
            if start[1]:
                if entry:
                    self._refuse(computation.at, f"a second ENTRY; %{entry} is one already")
                entry = computation.name
        if not computations:
            self._refuse(at, "the module has no computations; the file is cut off or empty")
        if not entry:
            self._refuse(0, f"none of {len(computations)} computations is marked ENTRY; the file is cut off")
        module = Module(header[1], attributes, computations, entry)
        for computation in computations.values():
            self._order(computation, module.is_scheduled)
        return module

    def _skip_tables(self, at: int) -> int:
        """Behind the tables of source lines that follow the header."""
        while (table := _TABLE.match(self.text, at)) is not None:
            at = table.end()
            while (row := _TABLE_ROW.match(self.text, at)) is not None:
                at = row.end()
        return at

    def _computation(self, start: re.Match[str]) -> tuple[Computation, int]:
        name = start[2]
        at = self._skip_signature(start.end(), name)
        instructions: list[Instruction] = []
        operand_names: list[list[str]] = []
        position: dict[str, int] = {}
        root = -1
        text = self.text
        while (match := _NAME.match(text, at)) is not None:
            instruction, names, at = self._instruction(match)
            if instruction.name in position:
                self._refuse(match.start(), f"%{instruction.name} is defined twice in %{name}")
            if match[1]:
                if root >= 0:
                    self._refuse(match.start(), f"%{name} has a second ROOT")
                root = len(instructions)
            position[instruction.name] = len(instructions)
            instructions.append(instruction)
            operand_names.append(names)
        end = _CLOSE.match(text, at)
        if end is None:
            at_end = self._behind_space(at) == len(text)
            what = "the file ends within" if at_end else "expected an instruction or '}' in"
            self._refuse(at, f"{what} computation %{name}")
        if not instructions:
            self._refuse(start.start(), f"computation %{name} is empty")
        _, at = self._attributes(end.end())
        for instruction, names in zip(instructions, operand_names, strict=True):
            try:
                instruction.operands = tuple([position[operand] for operand in names])
                if _CONTROL in instruction.attributes:
                    before = instruction.attributes[_CONTROL].strip("{}").replace("%", "").split(",")
                    instruction.after = tuple([position[part.strip()] for part in before if part.strip()])
            except KeyError as missing:
                self._refuse(
                    instruction.at,
                    f"%{instruction.name} reads %{missing.args[0]}, which %{name} does not define",
                )
            if self.declared:
                self._check_declared(instruction, [instructions[i] for i in instruction.operands])
        return Computation(
            name, instructions, root if root >= 0 else len(instructions) - 1, start.start(2)
        ), at

    def _skip_signature(self, at: int, name: str) -> int:
        """Behind the ``{`` of a computation; its signature only repeats what its lines say."""
        if self.text[at : at + 1] == "(":
            at = self._balanced(at)
            arrow = _ARROW.match(self.text, at)
            if arrow is None:
                self._refuse(at, f"expected '->' behind the parameters of %{name}")
            at = arrow.end()
            if self.text[at : at + 1] == "(":
                at = self._balanced(at)
            else:
                result = _RESULT.match(self.text, at)
                if result is None:
                    self._refuse(at, f"expected the shape of the result of %{name}")
                at = result.end()
        opening = _OPEN.match(self.text, at)
        if opening is None:
            self._refuse(at, f"expected '{{' behind the signature of %{name}")
        return opening.end()

    def _instruction(self, name: re.Match[str]) -> tuple[Instruction, list[str], int]:
        """An instruction, the names of its operands, and where it ends."""
        text, at = self.text, name.end()
        head = _ARRAY_AND_OPCODE.match(text, at)
        if head is not None:
            shape_text, opcode = head[1], head[2]
        else:
            if text[at : at + 1] != "(":
                self._refuse(at, f"%{name[2]}: expected a shape such as f32[8,128] and an opcode")
            end = self._balanced(at)
            head = _OPCODE.match(text, end)
            if head is None:
                self._refuse(end, f"%{name[2]}: expected an opcode such as 'add(' behind its shape")
            shape_text, opcode = text[at:end], head[1]
        at = head.end()
        plain = _PLAIN_OPERANDS.match(text, at)
        if plain is not None:
            inner, at = plain[1], plain.end()
        else:
            end = self._balanced(at - 1)
            inner, at = text[at : end - 1], end
        attributes, at = self._attributes(at)
        instruction = Instruction(name[2], opcode, TupleShape(()), (), attributes, name.start(2))
        instruction.shape = self._shape(shape_text, instruction)
        names: list[str] = []
        if opcode == "parameter":
            number = inner.strip()
            if not (number.isascii() and number.isdigit()) or len(number) > 9:
                self._refuse(instruction.at, f"%{name[2]} is parameter({inner[:20]}); expected a number")
            instruction.parameter = int(number)
        elif opcode == "constant":
            instruction.literal = inner.strip() if len(inner) < _MAX_LITERAL else ""
        else:
            names = self._operands(inner, instruction)
        return instruction, names, at

    def _operands(self, inner: str, instruction: Instruction) -> list[str]:
        """Names of operands; shapes may stand before them."""
        if not inner or inner.isspace():
            return []
        parts = inner.split(",") if "[" not in inner and "(" not in inner else _split(inner)
        names: list[str] = []
        declared: list[Shape | None] = []
        for part in parts:
            words = part.split()
            match = _OPERAND.fullmatch(words[-1]) if words else None
            if match is None:
                self._refuse(
                    instruction.at,
                    f"%{instruction.name}: {part.strip()[:60]!r} is no operand; expected names such as %add.1",
                )
            names.append(match[1])
            declared.append(self._shape(" ".join(words[:-1]), instruction) if len(words) > 1 else None)
        if any(declared):
            self.declared[id(instruction)] = declared
        return names

    def _shape(self, text: str, instruction: Instruction) -> Shape:
        try:
            return self.shapes.read(text)
        except ShapeError as problem:
            self._refuse(instruction.at, f"%{instruction.name}: {problem}")

    def _check_declared(self, instruction: Instruction, operands: list[Instruction]) -> None:
        """Refuses an operand that is said to have another shape than the line that defines it says."""
        for operand, declared in zip(operands, self.declared.pop(id(instruction), ()), strict=False):
            if declared is not None and not same(declared, operand.shape):
                self._refuse(
                    instruction.at,
                    f"%{instruction.name} reads %{operand.name} as {declared}; it is {operand.shape}",
                )

    def _attributes(self, at: int) -> tuple[dict[str, str], int]:
        """What stands behind, as ``, key=value, ...``, and where it ends."""
        found: dict[str, str] = {}
        text = self.text
        while True:
            match = _ATTRIBUTE.match(text, at)
            if match is not None:
                found[match[1]] = match[2]
                at = match.end() if match[1] != "literal" else self._behind_literal(match.end())
                continue
            key = _ATTRIBUTE_KEY.match(text, at)
            if key is None:
                return found, at
            at = key.end()
            if text[at : at + 1] not in _CLOSES:
                self._refuse(at, f"attribute {key[1]!r} has no value")
            end = self._balanced(at)
            found[key[1]] = text[at:end]
            at = end

    def _behind_literal(self, at: int) -> int:
        """Behind the value that follows the shape of a literal, as in ``literal=s32[2]{0} {1, 2}``."""
        while True:
            at += len(self.text[at : at + 8]) - len(self.text[at : at + 8].lstrip(" "))
            if self.text[at : at + 1] in ("{", "("):
                at = self._balanced(at)
                continue
            scalar = _SCALAR.match(self.text, at)
            return scalar.end() if scalar else at

    def _balanced(self, at: int) -> int:
        """Behind the bracket that closes the one at a position."""
        expected: list[str] = []
        end = -1
        for match in _DELIMITER.finditer(self.text, at):
            mark = match[0]
            if mark in _CLOSES:
                expected.append(_CLOSES[mark])
            elif mark == '"':
                self._refuse(match.start(), "a string is not closed")
            elif len(mark) == 1:
                if expected.pop() != mark:
                    self._refuse(match.start(), f"{mark!r} closes what is not open")
                if not expected:
                    end = match.end()
                    break
        if end < 0:
            self._refuse(at, f"{self.text[at]!r} is never closed; the file is cut off")
        return end

    def _order(self, computation: Computation, is_scheduled: bool) -> None:
        """Orders the instructions by what they read."""
        rows = computation.instructions
        try:
            computation.order = order_of([row.needs for row in rows])
        except CycleError as problem:
            names = [f"%{rows[position].name}" for position in problem.cycle]
            shown = (
                names if len(names) <= 12 else [*names[:6], f"... {len(names) - 12} more ...", *names[-6:]]
            )
            first = rows[problem.cycle[0]]
            self._refuse(first.at, f"%{computation.name} has a cycle: {' -> '.join([*shown, names[0]])}")
        if is_scheduled and not isinstance(computation.order, range):
            late = next(r for i, r in enumerate(rows) if max(r.needs, default=-1) > i)
            self._refuse(
                late.at,
                f"%{late.name} reads what a later line defines, and the module is said to be scheduled "
                "(is_scheduled=true); without that its lines may stand in any order",
            )

    def _behind_space(self, at: int) -> int:
        match = _SPACE.match(self.text, at)
        return match.end() if match else at

    def _refuse(self, at: int, message: str) -> NoReturn:
        behind_space = self._behind_space(at)
        at = behind_space if behind_space < len(self.text) else at
        line = line_of(self.text, at)
        shown = self.text[at : at + 60].split("\n")[0].strip()
        raise ImportFailedError(
            f"{self.path}: line {line}: {message}" + (f" (at {shown!r})" if shown else "")
        )


def _split(text: str) -> list[str]:
    """Parts between the commas that no bracket holds."""
    parts = []
    depth = begin = 0
    for match in re.finditer(r"[(){}\[\],]", text):
        mark = match[0]
        if mark in "({[":
            depth += 1
        elif mark in ")}]":
            depth -= 1
        elif depth == 0:
            parts.append(text[begin : match.start()])
            begin = match.end()
    return [*parts, text[begin:]]
