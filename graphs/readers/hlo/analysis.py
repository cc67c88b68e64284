"""Checks every instruction of a module and prices it, computations before those that call them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NoReturn

from ....errors import ImportFailedError
from ..ordering import CycleError, order_of
from .attributes import BadAttributeError
from .check import ContradictionError, base_opcode, check_instruction, check_parameters
from .costs import FORMULAS, CostView
from .fusions import Fusion, accessed_bytes, describe
from .loops import trip_count
from .lowering import Facts, Lowerer, is_alias, kind_of
from .module import Computation, Instruction, Module
from .rules import FlopRule, apply_rule
from .shapes import TupleShape, leaves
from .syntax import line_of

_NO_WORK = frozenset(
    ("after-all", "constant", "get-tuple-element", "parameter", "tuple")
)  # what names or holds a value
#: Inlined calls may not grow into more instructions than this.
MAX_INSTRUCTIONS = 3_000_000
_MAX_FIGURE = 2**63 - 1


@dataclass(slots=True)
class Analysis:
    """What the reader knows before the program itself is lowered.

    Attributes:
        facts: Of each computation that the program reaches.
        missing_cost: Kinds without a formula, with how often they stand in the text.
        loops: What runs a computation of its own, and how often.
    """

    facts: dict[str, Facts] = field(default_factory=dict)
    missing_cost: Counter[str] = field(default_factory=Counter)
    loops: list[str] = field(default_factory=list)


def analyse(module: Module, text: str, path: str, rules: Mapping[str, FlopRule]) -> Analysis:
    """Checks and prices a module.

    Args:
        module: The module; its instructions get their flops and bytes.
        text: What it was read from, for the lines in messages.
        path: Names it in messages.
        rules: Flops by kind, which go before the formulas.

    Raises:
        ImportFailedError: Something in it contradicts itself; the message names the line.
    """
    return _Analyser(module, text, path, rules).run()


class _Analyser:
    """One analysis."""

    def __init__(self, module: Module, text: str, path: str, rules: Mapping[str, FlopRule]) -> None:
        self.module = module
        self.text = text
        self.path = path
        self.rules = rules
        self.result = Analysis()
        self.flops_of: dict[str, int] = {}
        self.lowerer = Lowerer(module, self.result.facts)
        self.instructions = 0

    def run(self) -> Analysis:
        computations = self._callees_first()
        fused, flow = set[str](), set[str]()
        for computation in computations:
            for row in computation.instructions:
                if row.opcode in ("while", "conditional"):
                    flow.update(row.callees)
                elif row.opcode == "fusion":
                    fused.update(row.callees)
        for computation in computations:
            self._computation(computation, computation.name in fused, computation.name in flow)
        return self.result

    def _callees_first(self) -> list[Computation]:
        """The computations that the entry reaches, each behind those that it calls."""
        reached: dict[str, int] = {self.module.entry: 0}
        names = [self.module.entry]
        calls: list[list[int]] = []
        for name in names:  # grows while it runs
            row_calls: list[int] = []
            for row in self.module.computations[name].instructions:
                for callee in row.callees if row.attributes else ():
                    if callee not in self.module.computations:
                        self._refuse(row, f"calls %{callee}, which the module does not define")
                    if callee not in reached:
                        reached[callee] = len(names)
                        names.append(callee)
                    row_calls.append(reached[callee])
            calls.append(row_calls)
        try:
            order = order_of(calls)
        except CycleError as problem:
            cycle = " -> ".join(f"%{names[i]}" for i in [*reversed(problem.cycle[:12]), problem.cycle[-1]])
            raise ImportFailedError(
                f"{self.path}: computations call each other in a cycle: {cycle}"
            ) from None
        return [self.module.computations[names[i]] for i in order]

    def _computation(self, computation: Computation, is_fused: bool, is_flow: bool) -> None:
        try:
            check_parameters(computation)
        except ContradictionError as problem:
            self._refuse(computation.instructions[0], str(problem))
        flops = accessed = 0
        for row in computation.instructions:
            operands = computation.operands(row)
            try:
                check_instruction(self.module, computation, row, operands)
                if row.opcode == "while":
                    row.turns = trip_count(self.module, computation, row)
                row.flops = self._flops(row, operands)
                row.accessed_bytes = self._accessed_bytes(row, operands)
            except (ContradictionError, BadAttributeError) as problem:
                self._refuse(row, str(problem))
            if max(row.flops, row.accessed_bytes) > _MAX_FIGURE:
                self._refuse(row, f"{row.flops:.3g} flops on {row.accessed_bytes:.3g} bytes; too large")
            flops += row.flops
            accessed += row.accessed_bytes
            self._note_loop(row)
        instructions = len(computation.instructions) + sum(
            self.result.facts[row.callees[0]].instructions
            for row in computation.instructions
            if row.opcode == "call"
        )
        if is_flow or computation.name == self.module.entry:
            self.instructions += instructions
        if self.instructions > MAX_INSTRUCTIONS:
            raise ImportFailedError(
                f"{self.path}: calls that call others grow to more than {MAX_INSTRUCTIONS:,} instructions"
            )
        workspace = 0
        unchanged: tuple[bool, ...] = ()
        if is_flow:
            try:
                parts = self.lowerer.lower(computation, owns_arguments=True)
            except ImportFailedError as problem:
                raise ImportFailedError(f"{self.path}: {problem}") from None
            workspace, unchanged = parts.workspace_bytes(), parts.unchanged()
        self.flops_of[computation.name] = flops
        fusion: Fusion | None = describe(computation) if is_fused else None
        self.result.facts[computation.name] = Facts(
            flops, accessed, workspace, instructions, unchanged, fusion
        )

    def _flops(self, row: Instruction, operands: list[Instruction]) -> int:
        """Flops of an instruction; one without a formula is noted and costs its bytes alone."""
        kind = kind_of(row, self.result.facts)
        if kind in self.rules:
            return apply_rule(self.rules[kind], kind, row, operands)
        opcode = row.opcode
        if opcode not in FORMULAS:
            if not opcode.endswith("-start"):
                return 0
            opcode = base_opcode(opcode)
            if opcode not in FORMULAS:  # what starts, copies or sends, or runs what it calls
                return sum(self.flops_of[name] for name in row.callees)
            given = row.shape.elements[1:2] if isinstance(row.shape, TupleShape) else ()
            row = replace(row, opcode=opcode, shape=given[0] if given else row.shape)
        flops = FORMULAS[opcode](CostView(row, operands, self.flops_of))
        if flops is None:
            self.result.missing_cost[kind] += 1
            return 0
        return flops

    def _accessed_bytes(self, row: Instruction, operands: list[Instruction]) -> int:
        opcode, facts = row.opcode, self.result.facts
        if opcode in _NO_WORK or is_alias(row, operands) or opcode.endswith(("-done", "async-update")):
            return 0
        if opcode == "fusion":
            fusion = facts[row.callees[0]].fusion
            if fusion is not None:
                return sum(fusion.read_bytes) + fusion.written_bytes
        if opcode == "call":
            return facts[row.callees[0]].accessed_bytes
        if opcode == "while":
            turns = 1 if row.turns is None else row.turns
            return turns * sum(facts[name].accessed_bytes for name in row.callees)
        if opcode == "conditional":
            return max(facts[name].accessed_bytes for name in row.callees)
        return accessed_bytes(row, operands)

    def _note_loop(self, row: Instruction) -> None:
        if row.opcode == "while":
            turns = row.turns
            body = self.result.facts[row.attributes["body"].lstrip("%")]
            how_often = "an unknown number of turns, counted as one" if turns is None else f"{turns} turns"
            self.result.loops.append(
                f"while {row.name}: one op of {how_often} of {body.flops:,} flops and "
                f"{body.accessed_bytes:,} bytes"
            )
        elif row.opcode == "conditional":
            self.result.loops.append(
                f"conditional {row.name}: one op of {row.flops:,} flops, those of the larger of "
                f"{len(row.callees)} branches"
            )

    def _refuse(self, row: Instruction, message: str) -> NoReturn:
        raise ImportFailedError(f"{self.path}: line {line_of(self.text, row.at)}: %{row.name}: {message}")


def dynamic_shapes(computation: Computation) -> int:
    """Instructions with a size that is only bounded."""
    return sum(any(leaf.dynamic for leaf in leaves(row.shape)) for row in computation.instructions)
