"""Ops with bodies (If, Loop, Scan): each is one op that stands for all that happens inside.

Its flops and moved bytes are those of the larger branch, or of the body times its trips. It reads what the
bodies take from around them and the weights that they bring; what they need for a while is its workspace.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from onnx import GraphProto

from ....errors import ImportFailedError
from . import constants
from .lowering import Lowering
from .model import subgraphs
from .steps import Step, work_of
from .types import (
    BOOL,
    INT64,
    UNKNOWN,
    LoweredGraph,
    LoweredOp,
    Storage,
    TensorType,
    Value,
    from_proto,
)
from .unused import without_unused

#: A larger trip count means "until the condition says so".
_MAX_TRIPS = 2**31


@dataclass
class _Body:
    """A lowered body and what it costs once."""

    name: str
    graph: LoweredGraph

    @property
    def flops(self) -> int:
        return sum(op.flops for op in self.graph.ops)

    @property
    def moved_bytes(self) -> int:
        return sum(op.moved_bytes for op in self.graph.ops)

    @property
    def own(self) -> set[Storage]:
        """Storages that exist only inside."""
        return {s for op in self.graph.ops for s in op.outputs} | {v.storage for v in self.graph.inputs}

    @property
    def taken(self) -> list[Storage]:
        """Storages read from around the body, its own weights among them."""
        own = self.own
        read = [s for op in self.graph.ops for s in op.inputs] + [v.storage for v in self.graph.outputs]
        return [s for s in dict.fromkeys(read) if s not in own]

    @property
    def peak_bytes(self) -> int:
        """Most bytes live at once in the order of the file; results are the op's outputs and not counted."""
        results = {v.storage for v in self.graph.outputs}
        last_use: dict[Storage, int] = {}
        for step, op in enumerate(self.graph.ops):
            for storage in (*op.inputs, *op.outputs):
                last_use[storage] = step
        held = {v.storage for v in self.graph.inputs} - results
        live = sum(s.bytes for s in held)
        peak = live
        inside = {s for op in self.graph.ops for s in op.outputs} - results
        for step, op in enumerate(self.graph.ops):
            live += sum(s.bytes for s in op.outputs if s in inside)
            peak = max(peak, live + op.workspace_bytes)
            live -= sum(s.bytes for s in {*op.inputs, *op.outputs} if s in inside and last_use[s] == step)
        return peak


@dataclass
class _Meaning:
    """What an op with bodies amounts to.

    Attributes:
        types: Types of its outputs as far as they are certain.
        fallback: Types for where they are not.
        trips: How often the costly body runs.
        costly: The body that is counted.
        bodies: All bodies.
        remarks: For the report.
    """

    types: list[TensorType]
    fallback: list[TensorType]
    trips: int
    costly: _Body
    bodies: list[_Body]
    remarks: list[str] = field(default_factory=list)


def lower_bodies(outer: Lowering, step: Step) -> None:
    """Adds an op with bodies to the graph around it.

    Raises:
        ImportFailedError: A body is missing or does not fit its op.
    """
    node, where = step.node, step.where
    meaning = _MEANINGS.get(step.kind, _unknown_meaning)(outer, step)
    if len(meaning.types) != len(node.output):
        raise ImportFailedError(
            f"{where} has {len(node.output)} outputs and its body gives {len(meaning.types)}"
        )
    inference, guessed = outer.context.inference, []
    types: list[TensorType] = []
    for name, certain, fallback in zip(node.output, meaning.types, meaning.fallback, strict=True):
        declared = outer.declared(name)
        kind = certain if declared is None else inference.reconcile(name, certain, declared)
        if kind.shape is None and not kind.container and fallback.shape is not None:
            kind = fallback
            guessed.append(name)
        types.append(kind)
    if guessed:
        meaning.remarks.append(f"largest possible shape taken for {', '.join(guessed)}")
    step.types, step.signature = [(kind, None) for kind in types], None
    outputs = outer.define_outputs(step)
    read = [v.storage for v in step.inputs if v is not None]
    read += [s for body in meaning.bodies for s in body.taken]
    flops = meaning.trips * meaning.costly.flops
    if step.kind in outer.context.costs:
        flops, _ = work_of(outer.context, step)
    moved = max(meaning.trips * meaning.costly.moved_bytes, sum(s.bytes for s in outputs))
    if max(flops, moved) > 2**63 - 1:
        raise ImportFailedError(
            f"{where} runs its body {meaning.trips} times, which is more work than can be counted"
        )
    outer.result.ops.append(
        LoweredOp(
            node=step.index,
            kind=step.kind,
            name=step.name,
            inputs=list(dict.fromkeys(read)),
            outputs=outputs,
            flops=flops,
            accessed_bytes=moved,
            workspace_bytes=max(body.peak_bytes for body in meaning.bodies),
        )
    )
    for body in meaning.bodies:
        unknown = [s.name for op in body.graph.ops for s in op.outputs if s.type.shape is None]
        outer.context.unknown_in_bodies.extend(f"{where}, {body.name}: {name}" for name in unknown)
    remarks = "".join(f"; {remark}" for remark in meaning.remarks)
    outer.context.subgraphs.append(
        f"{where}: one op for "
        f"{', '.join(f'{b.name} ({len(b.graph.ops)} ops)' for b in meaning.bodies)}{remarks}"
    )


def _lower(outer: Lowering, name: str, body: GraphProto, inputs: Sequence[Value], where: str) -> _Body:
    inner = Lowering(outer.context, body, inputs, outer.visible(), f"{where}, {name}: ")
    graph = inner.run()
    graph.ops, _ = without_unused(graph)
    return _Body(name, graph)


def _body_inputs(outer: Lowering, body: GraphProto, types: Sequence[TensorType], where: str) -> list[Value]:
    """Values of a body's inputs; what the body declares fills what is unknown."""
    weights = {t.name for t in body.initializer}
    infos = [info for info in body.input if info.name not in weights]
    if len(infos) != len(types):
        raise ImportFailedError(f"{where} hands {len(types)} inputs to a body that has {len(infos)}")
    values = []
    for info, given in zip(infos, types, strict=True):
        kind = given
        if kind.shape is None and not kind.container:
            declared = from_proto(info.type, info.name, outer.context.dims.size)
            kind = TensorType(
                kind.element or declared.element, declared.dims if kind.dims is None else kind.dims
            )
        values.append(Value(kind, Storage(info.name, kind)))
    return values


# --- If


def _if_meaning(outer: Lowering, step: Step) -> _Meaning:
    node, inputs, where = step.node, step.inputs, step.where
    branches = dict(subgraphs(node))
    if set(branches) != {"then_branch", "else_branch"} or len(inputs) != 1 or inputs[0] is None:
        raise ImportFailedError(
            f"{where} needs a condition, a then_branch and an else_branch; the file is damaged"
        )
    condition = inputs[0].data
    taken = None
    if condition is not None and condition.size == 1:
        taken = "then_branch" if condition.reshape(-1)[0] else "else_branch"
        outer.result.constant_ifs[step.index] = taken
    bodies, remarks = [], []
    for name in ("then_branch", "else_branch"):
        try:
            bodies.append(_lower(outer, name, branches[name], [], where))
        except ImportFailedError as error:
            # A branch that is not taken for these sizes need not fit them (Squeeze if a dimension is 1).
            if name == taken or (name == "else_branch" and not bodies):
                raise
            remarks.append(f"{name} is left out: {error}")
    costly = max(bodies, key=lambda b: (b.flops, b.moved_bytes))
    remarks.append(f"counted as {costly.name}")
    results = [[v.type for v in body.graph.outputs] for body in bodies]
    if len({len(r) for r in results}) > 1:
        raise ImportFailedError(
            f"the branches of {where} give {len(results[0])} and {len(results[1])} outputs"
        )
    if taken is not None:
        remarks.append(f"the condition is constant: {taken} is taken")
        certain = [v.type for body in bodies if body.name == taken for v in body.graph.outputs]
        return _Meaning(certain, certain, 1, costly, bodies, remarks)
    certain = [_common(kinds) for kinds in zip(*results, strict=True)]
    largest = [max(kinds, key=lambda k: Storage("", k).bytes) for kinds in zip(*results, strict=True)]
    return _Meaning(certain, largest, 1, costly, bodies, remarks)


def _common(kinds: Sequence[TensorType]) -> TensorType:
    """What types have in common."""
    first = kinds[0]
    for kind in kinds[1:]:
        if kind.container != first.container or kind.element != first.element:
            return UNKNOWN
        if kind.dims is None or first.dims is None or len(kind.dims) != len(first.dims):
            first = TensorType(first.element, None, first.container)
        else:
            dims = tuple(a if a == b else None for a, b in zip(first.dims, kind.dims, strict=True))
            first = TensorType(first.element, dims, first.container)
    return first


# --- Loop and Scan


def _loop_meaning(outer: Lowering, step: Step) -> _Meaning:
    inputs, where = step.inputs, step.where
    name, graph = _only_body(step)
    if len(inputs) < 2:
        raise ImportFailedError(f"{where} needs a trip count and a condition (either may be left out as '')")
    most, condition, carried = inputs[0], inputs[1], inputs[2:]
    start = [UNKNOWN if v is None else v.type for v in carried]
    values = _body_inputs(outer, graph, [TensorType(INT64, ()), TensorType(BOOL, ()), *start], where)
    values[1].data = np.array(True)  # where the body runs, its condition holds
    body = _lower(outer, name, graph, values, where)
    if len(body.graph.outputs) <= len(carried):
        raise ImportFailedError(f"the body of {where} gives fewer outputs than the loop carries")
    trips = None
    if most is not None and most.data is not None and most.data.size == 1:
        trips = max(0, int(most.data.reshape(-1)[0]))
        trips = trips if trips <= _MAX_TRIPS else None
    goes_on = body.graph.outputs[0].data
    always = (condition is None or (condition.data is not None and bool(np.all(condition.data)))) and (
        goes_on is not None and bool(np.all(goes_on))
    )
    ends = [v.type for v in body.graph.outputs[1:]]
    states = [_common([a, b]) for a, b in zip(start, ends, strict=False)]
    collected = ends[len(carried) :]
    certain = states + [_stacked(kind, trips if always else None, 0) for kind in collected]
    fallback = states + [_stacked(kind, trips, 0) for kind in collected]
    if trips is None:
        remarks = ["how often it runs is unknown: counted once"]
    else:
        remarks = [f"counted {trips} times" if always else f"counted {trips} times, the most it may run"]
    return _Meaning(certain, fallback, 1 if trips is None else trips, body, [body], remarks)


def _scan_meaning(outer: Lowering, step: Step) -> _Meaning:
    inputs, where = step.inputs, step.where
    name, graph = _only_body(step)
    attributes = constants.attributes(step.node)
    scanned = constants.integer(attributes, "num_scan_inputs")
    schema = outer.context.inference.schema(step.node)
    if schema is None or schema.since_version < 9:
        return _unknown_meaning(outer, step)
    if not 1 <= scanned <= len(inputs) or any(v is None for v in inputs):
        raise ImportFailedError(f"{where} scans {scanned} of its {len(inputs)} inputs; the file is damaged")
    kinds = [v.type for v in inputs if v is not None]
    start, sequences = kinds[: len(kinds) - scanned], kinds[len(kinds) - scanned :]
    in_axes = constants.integers(attributes, "scan_input_axes") or [0] * scanned
    if len(in_axes) != scanned:
        raise ImportFailedError(f"{where} states {len(in_axes)} scan_input_axes for {scanned} scanned inputs")
    slices, lengths = [], set()
    for kind, axis in zip(sequences, in_axes, strict=True):
        if kind.dims is None:
            slices.append(TensorType(kind.element))
            continue
        rank = len(kind.dims)
        if not -rank <= axis < rank:
            raise ImportFailedError(f"{where} scans axis {axis} of an input of rank {rank}")
        lengths.add(kind.dims[axis])
        axis %= rank
        slices.append(TensorType(kind.element, kind.dims[:axis] + kind.dims[axis + 1 :]))
    lengths.discard(None)
    if len(lengths) > 1:
        raise ImportFailedError(f"{where} scans sequences of different lengths: {sorted(map(str, lengths))}")
    trips = lengths.pop() if lengths else None
    body = _lower(outer, name, graph, _body_inputs(outer, graph, [*start, *slices], where), where)
    ends = [v.type for v in body.graph.outputs]
    if len(ends) < len(start):
        raise ImportFailedError(f"the body of {where} gives fewer outputs than the scan carries")
    states = [_common([a, b]) for a, b in zip(start, ends, strict=False)]
    collected = ends[len(start) :]
    out_axes = constants.integers(attributes, "scan_output_axes") or [0] * len(collected)
    if len(out_axes) != len(collected):
        raise ImportFailedError(
            f"{where} states {len(out_axes)} scan_output_axes for {len(collected)} outputs"
        )
    types = states + [_stacked(kind, trips, axis) for kind, axis in zip(collected, out_axes, strict=True)]
    remark = "how often it runs is unknown: counted once" if trips is None else f"counted {trips} times"
    return _Meaning(types, types, 1 if trips is None else trips, body, [body], [remark])


def _stacked(kind: TensorType, count: int | None, axis: int) -> TensorType:
    """The type of results collected along a new axis."""
    if kind.dims is None or kind.container:
        return TensorType(kind.element)
    axis = axis + len(kind.dims) + 1 if axis < 0 else axis
    return TensorType(kind.element, (*kind.dims[:axis], count, *kind.dims[axis:]))


def _only_body(step: Step) -> tuple[str, GraphProto]:
    bodies = subgraphs(step.node)
    if len(bodies) != 1:
        raise ImportFailedError(f"{step.where} has {len(bodies)} bodies; expected one")
    return bodies[0]


# --- anything else


def _unknown_meaning(outer: Lowering, step: Step) -> _Meaning:
    """An op whose use of its bodies is unknown: they are counted once, its outputs are as declared."""
    bodies = []
    for name, graph in subgraphs(step.node):
        types = [UNKNOWN] * sum(
            1 for info in graph.input if info.name not in {t.name for t in graph.initializer}
        )
        bodies.append(_lower(outer, name, graph, _body_inputs(outer, graph, types, step.where), step.where))
    try:
        outer.context.inference.infer(step, {})
        types = [kind for kind, _ in step.types]
    except ImportFailedError:  # its rule, if it has one, does not understand these bodies
        types = [UNKNOWN] * len(step.node.output)
    everything = _Body("all", LoweredGraph(ops=[op for body in bodies for op in body.graph.ops]))
    if step.kind not in outer.context.costs:
        outer.context.missing_cost[step.kind] += 1
    return _Meaning(
        types, types, 1, everything, bodies, ["what it does with its bodies is unknown: counted once"]
    )


_MEANINGS: dict[str, Callable[[Lowering, Step], _Meaning]] = {
    "If": _if_meaning,
    "Loop": _loop_meaning,
    "Scan": _scan_meaning,
}
