"""The front door of the ONNX reader."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from onnx import ModelProto

from ....errors import ImportFailedError, unknown_id
from ..report import Imported, ImportReport, Origin
from .dims import Dimensions
from .emit import LEVEL, Emitted, emit
from .lowering import Lowering
from .model import LoadedModel, Source, external_locations, load_model, nodes_of, subgraphs
from .options import FlopRule, ImportOptions, ShapeSpec
from .shapes import ShapeInference
from .splice import splice_ifs
from .steps import Context
from .types import LoweredGraph, Storage, Value, kind_of


def read_onnx(
    source: Source,
    *,
    dims: Mapping[str, int] | None = None,
    subgraphs: str = "opaque",
    strict: bool = False,
    trust: str | None = None,
    shapes: Mapping[str, ShapeSpec] | None = None,
    costs: Mapping[str, FlopRule] | None = None,
) -> Imported:
    """Reads the inference graph of an ONNX model; weights need not be on disk, and are not followed.

    Initializers, ``Constant`` nodes and filled constants are source tensors; views (``Reshape``, ``Squeeze``,
    ``Dropout`` at inference, ...) are other names of their storage; what only computes shapes is computed
    while reading. Everything else is an op with flops by own formulas. The report lists what was folded or is
    unknown.

    Args:
        source: Path of a file, or a model in memory.
        dims: Sizes of dynamic dimensions, by name, or by place as ``"INPUT:AXIS"`` for one without a name.
        subgraphs: What to do with ``If``, ``Loop``, ``Scan``: ``"opaque"`` makes one op of each, with the
            work of its larger branch; ``"inline"`` puts the taken branch of an ``If`` with a constant
            condition in its place, the others stay opaque; ``"reject"`` refuses.
        strict: Refuse unknown shapes and ops without a cost formula, which are otherwise listed and count
            nothing.
        trust: ``"declared"`` or ``"inferred"``: which side to believe where a declared shape contradicts the
            inferred one; an error by default.
        shapes: Shapes of tensors that the file does not tell (results of custom ops): sizes, or a text with
            the dtype such as ``"float16[1,128]"``.
        costs: Flops of ops by kind (as the report spells it): a number, or a function of the shapes of the
            inputs and of the outputs.

    Raises:
        ImportFailedError: The file is damaged or no ONNX model, contradicts itself, is newer than the
            installed onnx, leaves a dimension open, or holds what the options refuse.
        UnknownIdError: A dimension, tensor, kind or policy that does not exist.
    """
    options = ImportOptions(dims or {}, subgraphs, strict, trust, shapes or {}, costs or {})
    try:
        model = load_model(source)
    except UnicodeDecodeError as error:
        raise ImportFailedError(
            f"the model holds a name that is no UTF-8 text ({error}): it is damaged"
        ) from None
    try:
        return _read(source, model, options)
    except RecursionError:
        raise ImportFailedError(f"{model.label}: bodies or names nest too deeply") from None
    except UnicodeDecodeError as error:
        raise ImportFailedError(f"{model.label}: a name is no UTF-8 text ({error}): it is damaged") from None
    except ImportFailedError as error:
        if str(error).startswith(model.label):
            raise
        raise ImportFailedError(f"{model.label}: {error}") from error


@dataclass
class _Walk:
    """One pass over the model."""

    context: Context
    lowered: LoweredGraph
    folded: Counter[str]


def _read(source: Source, model: LoadedModel, options: ImportOptions) -> Imported:
    external = external_locations(model.proto, model.folder, model.label)
    if options.subgraphs == "reject":
        _refuse_bodies(model)
    proto = model.proto
    walk = _walk(proto, model, options)
    spliced: list[Mapping[int, str]] = []
    while options.subgraphs == "inline" and walk.lowered.constant_ifs:
        spliced.append(walk.lowered.constant_ifs)
        proto = splice_ifs(proto, walk.lowered.constant_ifs)
        walk = _walk(proto, model, options)
    _refuse_unknown_options(options, walk.context)
    emitted = emit(walk.lowered, proto.graph.node, model.name)
    report = _report(model, options, walk, emitted, external, spliced)
    if options.strict:
        _refuse_gaps(report)
    kept = source if isinstance(source, ModelProto) else os.path.abspath(source)
    origin = Origin(kept, emitted.op_node, tuple(spliced))
    return Imported(emitted.graph, report, origin=origin)


def _walk(proto: ModelProto, model: LoadedModel, options: ImportOptions) -> _Walk:
    opsets = {("" if o.domain == "ai.onnx" else o.domain): o.version for o in proto.opset_import}
    if "" not in opsets:
        if proto.ir_version >= 3 and any(n.domain in ("", "ai.onnx") for n in nodes_of(proto.graph)):
            raise ImportFailedError("the model uses ONNX's own operators and states no opset of ai.onnx")
        opsets[""] = 1
    given = options.given_types()
    dims = Dimensions(proto, options.dims, given, model.label)
    inference = ShapeInference(opsets, proto.ir_version, options.trust)
    context = Context(inference, dims, given, options.costs, model.folder)
    inputs = [
        Value(kind, Storage(info.name, kind, role="input"))
        for info, kind in zip(dims.inputs, dims.input_types, strict=True)
    ]
    lowering = Lowering(context, proto.graph, inputs)
    return _Walk(context, lowering.run(), lowering.folded)


def _report(
    model: LoadedModel,
    options: ImportOptions,
    walk: _Walk,
    emitted: Emitted,
    external: list[str],
    spliced: list[Mapping[int, str]],
) -> ImportReport:
    notes = list(model.notes)
    if spliced:
        notes.append(f"{sum(map(len, spliced))} Ifs with a constant condition were replaced by their branch")
    if external:
        absent = [path for path in external if model.folder is None or not (model.folder / path).is_file()]
        notes.append(
            f"weights are in {len(external)} other files, {len(absent)} of them absent; they are not needed"
        )
    if emitted.unused:
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(emitted.unused.items()))
        notes.append(f"only the shapes of these ops were used, so they were left out: {kinds}")
    if options.trust:
        notes.append(f"where declared and inferred shapes differ, the {options.trust} one was taken")
    graph = emitted.graph
    return ImportReport(
        source=model.label,
        format="onnx",
        level=LEVEL,
        ops=graph.num_ops,
        tensors=graph.num_tensors,
        fingerprint=graph.fingerprint,
        folded=dict(sorted((walk.folded + emitted.unused).items())),
        bound_dims=walk.context.dims.bound,
        subgraph_policy=options.subgraphs,
        subgraphs=tuple(walk.context.subgraphs),
        missing_shape=(*emitted.unknown, *walk.context.unknown_in_bodies),
        missing_cost=dict(sorted(walk.context.missing_cost.items())),
        notes=tuple(notes),
    )


def _refuse_bodies(model: LoadedModel) -> None:
    found = [f"{kind_of(n)} {n.name!r}" for n in nodes_of(model.proto.graph) if subgraphs(n)]
    if found:
        raise ImportFailedError(
            f"{len(found)} ops have subgraphs, which the option subgraphs='reject' refuses: "
            f"{', '.join(found[:10])}; "
            "read them with subgraphs='opaque' or 'inline'"
        )


def _refuse_unknown_options(options: ImportOptions, context: Context) -> None:
    for name in options.shapes:
        if name not in context.tensors:
            raise unknown_id("tensor", name, sorted(context.tensors))
    for kind in options.costs:
        if kind not in context.kinds:
            raise unknown_id("kind of op in this model", kind, sorted(context.kinds))


def _refuse_gaps(report: ImportReport) -> None:
    gaps = []
    if report.missing_shape:
        gaps.append(
            f"{len(report.missing_shape)} tensors without a shape ({', '.join(report.missing_shape[:10])})"
        )
    if report.missing_cost:
        kinds = ", ".join(f"{kind} x {count}" for kind, count in report.missing_cost.items())
        gaps.append(f"ops without a cost formula ({kinds})")
    if gaps:
        raise ImportFailedError(
            f"strict import refuses {' and '.join(gaps)}; supply them with shapes= and costs=, or read "
            "without strict"
        )
