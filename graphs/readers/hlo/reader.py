"""Reads HLO text into a graph; see :func:`read_hlo`."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ....errors import ImportFailedError, InvalidGraphError, unknown_id
from ...builder import GraphBuilder
from ...graph import VARIABLE
from ..report import Imported, ImportReport
from ..scopes import layers_of
from ..text_file import read_text
from .analysis import Analysis, analyse, dynamic_shapes
from .lowering import Lowerer, Parts
from .module import Module
from .names import is_backward, is_parameter, op_name, scopes
from .rules import FlopRule
from .shapes import TupleShape
from .syntax import parse_module

LEVEL = "hlo"
_POLICIES = ("opaque", "inline", "reject")
#: Sums of sizes stay far within int64.
_MAX_TOTAL_BYTES = 2**62
_MAX_DIGITS = 10
_DONATED = re.compile(r"\{([\d, ]*)\}\s*:\s*\(\s*(\d{1,9})\s*,\s*\{([\d, ]*)\}")


def read_hlo(
    path: str | os.PathLike[str],
    *,
    subgraphs: str = "opaque",
    strict: bool = False,
    costs: Mapping[str, FlopRule] | None = None,
) -> Imported:
    """Reads the text of an HLO module, optimised or not.

    An instruction of the entry computation is an op, a fusion too: its flops are those of what it fuses.
    Calls are inlined; ``while`` and ``conditional`` are one op each. Bitcasts, tuples and their elements are
    names of storage, not ops. Parameters and constants are source tensors; a parameter whose storage XLA
    reuses for a result (``input_output_alias``) is a variable, and what computes that result its update. A
    scheduled module keeps XLA's order as the program order of the graph.

    Args:
        path: The file.
        subgraphs: ``"reject"`` refuses loops and branches; the other policies keep them as one op.
        strict: Refuse calls without a cost formula.
        costs: Flops by kind, e.g. ``{"custom-call:my_kernel": 2_000_000}``; a number, or a function of the
            shapes of inputs and outputs.

    Raises:
        ImportFailedError: The text is damaged, contradicts itself, or holds what this reader does not know;
            the message names the line.
        UnknownIdError: An unknown policy, or a kind in ``costs`` that the module does not have.
    """
    text = read_text(path, "HLO text")
    return read_hlo_text(
        text, name=Path(path).stem, source=os.fspath(path), subgraphs=subgraphs, strict=strict, costs=costs
    )


def read_hlo_text(
    text: str,
    *,
    name: str = "",
    source: str = "HLO text",
    subgraphs: str = "opaque",
    strict: bool = False,
    costs: Mapping[str, FlopRule] | None = None,
) -> Imported:
    """Reads HLO text in memory; see :func:`read_hlo`.

    Args:
        text: The module.
        name: Of the graph; that of the module where empty.
        source: Names the text in messages and in the report.
        subgraphs: See :func:`read_hlo`.
        strict: See :func:`read_hlo`.
        costs: See :func:`read_hlo`.
    """
    if subgraphs not in _POLICIES:
        raise unknown_id("subgraph policy", subgraphs, list(_POLICIES))
    module = parse_module(text, source)
    analysis = analyse(module, text, source, costs or {})
    if subgraphs == "reject" and analysis.loops:
        raise ImportFailedError(f"{source}: has loops or branches: {'; '.join(analysis.loops[:10])}")
    if strict and analysis.missing_cost:
        kinds = ", ".join(sorted(analysis.missing_cost))
        raise ImportFailedError(f"{source}: no cost formula for {kinds}; give costs={{kind: flops}}")
    try:
        parts = Lowerer(module, analysis.facts).lower(module.computations[module.entry])
        _check_rules(costs or {}, parts)
        total = sum(tensor.shape.bytes for tensor in parts.tensors)
        if total > _MAX_TOTAL_BYTES:
            raise ImportFailedError(f"its tensors have {total:.3g} bytes; at most {_MAX_TOTAL_BYTES:.3g}")
        return _Build(module, analysis, parts, name or module.name, source, subgraphs).run()
    except InvalidGraphError as problem:
        raise ImportFailedError(f"{source}: {problem}") from None
    except ImportFailedError as problem:
        raise ImportFailedError(f"{source}: {problem}") from None


def _check_rules(costs: Mapping[str, FlopRule], parts: Parts) -> None:
    kinds = sorted({op.kind for op in parts.ops})
    for kind in costs:
        if kind not in kinds:
            raise unknown_id("kind in costs", kind, kinds)


@dataclass(slots=True)
class _Build:
    """One graph in the making."""

    module: Module
    analysis: Analysis
    parts: Parts
    name: str
    source: str
    policy: str
    notes: list[str] = field(default_factory=list)

    def run(self) -> Imported:
        parts = self.parts
        for leaf in parts.root:
            if leaf:
                parts.tensors[leaf[0]].is_output = True
        updates = self._updates()  # op -> the parameter's tensor
        self._set_roles(set(updates.values()))
        builder = GraphBuilder(LEVEL, self.name)
        tensors = [
            builder.tensor(
                bytes=tensor.shape.bytes,
                dtype=tensor.shape.dtype,
                shape=tensor.shape.dims,
                role=tensor.role,
                is_output=tensor.is_output,
                name=tensor.name,
            )
            for tensor in parts.tensors
        ]
        home: dict[int, int] = {}
        for tensor in updates.values():
            spec = parts.tensors[tensor]
            home[tensor] = builder.op(
                VARIABLE, outputs=[tensors[tensor]], group=f"%{spec.name}", name=spec.name
            )
        layers = layers_of([scopes(op.framework_name) for op in parts.ops])
        for number, (op, layer) in enumerate(zip(parts.ops, layers, strict=True)):
            parameter = updates.get(number)
            backward = is_backward(op.framework_name)
            builder.op(
                op.kind,
                inputs=[tensors[t] for t in op.inputs],
                outputs=[tensors[t] for t in op.outputs],
                flops=op.flops,
                accessed_bytes=op.accessed_bytes,
                workspace_bytes=op.workspace_bytes,
                group=None if parameter is None else f"%{parts.tensors[parameter].name}",
                layer=layer,
                direction="update" if parameter is not None else "backward" if backward else "forward",
                update_of=None if parameter is None else home[parameter],
                elementwise=op.elementwise,
                name=op.name,
            )
        graph = builder.build()
        return Imported(graph, self._report(graph.num_ops, graph.num_tensors, graph.fingerprint))

    def _updates(self) -> dict[int, int]:
        """Ops that compute the new value of a parameter in its own storage, and that parameter's tensor."""
        parts = self.parts
        entry = self.module.computations[self.module.entry]
        text = self.module.attributes.get("input_output_alias", "")
        places = _flat_places(entry.instructions[entry.root].shape)
        argument_places: dict[int, dict[tuple[int, ...], int]] = {}
        updates: dict[int, int] = {}
        updated: set[int] = set()
        elsewhere = 0
        for match in _DONATED.finditer(text):
            output, inner = _path(match[1]), _path(match[3])
            number = int(match[2])
            if output not in places or number >= len(parts.arguments):
                raise ImportFailedError(
                    f"input_output_alias names output {output} and parameter {number}; there is no such pair"
                )
            if number not in argument_places:
                argument_places[number] = _flat_places(entry.parameters[number].shape)
            if inner not in argument_places[number]:
                raise ImportFailedError(f"input_output_alias names {inner} of parameter {number}")
            old, new = parts.arguments[number][argument_places[number][inner]], parts.root[places[output]]
            producer = parts.tensors[new[0]].producer if len(new) == 1 else -1
            if (
                producer >= 0
                and producer not in updates
                and old[0] not in updated
                and parts.ops[producer].outputs == [new[0]]
                and parts.tensors[new[0]].shape.bytes == parts.tensors[old[0]].shape.bytes
            ):
                updates[producer] = old[0]
                updated.add(old[0])
            elif new != old:
                elsewhere += 1
        if updates:
            self.notes.append(
                f"{len(updates)} parameters are updated in their own storage (input_output_alias) and are "
                "variables, ops that the file does not have"
            )
        if elsewhere:
            self.notes.append(
                f"{elsewhere} results that reuse a parameter's storage come from an op with other results, "
                "a loop or an alias; they count as new storage"
            )
        return updates

    def _set_roles(self, updated: set[int]) -> None:
        """Weights and state are parameters by what they are called, what is updated is one in any case."""
        parts = self.parts
        entry = self.module.computations[self.module.entry]
        for row, leaves_of_row in zip(entry.parameters, parts.arguments, strict=True):
            called = is_parameter(op_name(row.attributes) or row.name)
            for leaf in leaves_of_row:
                if called or leaf[0] in updated:
                    parts.tensors[leaf[0]].role = "parameter"

    def _report(self, ops: int, tensors: int, fingerprint: str) -> ImportReport:
        scheduled = "XLA's own schedule" if self.module.is_scheduled else "that of the file, not a schedule"
        notes = [f"the order of the instructions is {scheduled}", *self.notes]
        bounded = sum(dynamic_shapes(self.module.computations[name]) for name in self.analysis.facts)
        if bounded:
            notes.append(f"{bounded} shapes are dynamic and count with their upper bounds")
        return ImportReport(
            source=self.source,
            format="hlo",
            level=LEVEL,
            ops=ops,
            tensors=tensors,
            fingerprint=fingerprint,
            folded=dict(sorted(self.parts.folded.items())),
            subgraph_policy=self.policy,
            subgraphs=tuple(self.analysis.loops),
            missing_cost=dict(sorted(self.analysis.missing_cost.items())),
            notes=tuple(notes),
        )


def _path(text: str) -> tuple[int, ...]:
    """Indices into tuples such as ``1,0``; what is longer than any tuple is no index."""
    return tuple(
        int(part) if len(part) < _MAX_DIGITS else -1 for part in text.replace(" ", "").split(",") if part
    )


def _flat_places(shape: object) -> dict[tuple[int, ...], int]:
    """Number among the arrays of a shape of each path of tuple indices."""
    places: dict[tuple[int, ...], int] = {}
    count = 0
    stack: list[tuple[object, tuple[int, ...]]] = [(shape, ())]
    while stack:
        part, path = stack.pop()
        if isinstance(part, TupleShape):
            stack += [(e, (*path, i)) for i, e in reversed(list(enumerate(part.elements)))]
        else:
            places[path] = count
            count += 1
    return places
