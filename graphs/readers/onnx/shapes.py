"""Types of a node's outputs: onnx's inference node by node, what the file declares, what the caller says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import onnx
from onnx import NodeProto, TypeProto
from onnx.checker import ValidationError
from onnx.defs import OpSchema, SchemaError
from onnx.shape_inference import InferenceError

from ....errors import ImportFailedError
from .constants import data_proto
from .guards import unsound
from .types import UNDEFINED, UNKNOWN, Dims, TensorType, Value, from_proto, literal_size

if TYPE_CHECKING:
    from .steps import Step

#: Operators without an inference rule of their own in onnx, whose first output is as their first input.
_LIKE_FIRST_INPUT = ("GroupNormalization", "MeanVarianceNormalization")
#: A type, with its protobuf form where it is at hand.
Inferred = tuple[TensorType, TypeProto | None]
#: What the types and the work of a node follow from.
Signature = tuple[object, ...]


class ShapeInference:
    """Infers types one node at a time, so that an error names its node and no model is too large.

    Args:
        opsets: Opset version by domain.
        ir_version: IR version of the model.
        trust: Which side is believed in a contradiction, or ``None``.
    """

    def __init__(self, opsets: Mapping[str, int], ir_version: int, trust: str | None) -> None:
        self._imports = [onnx.helper.make_opsetid(domain, version) for domain, version in opsets.items()]
        self._opsets = opsets
        self._ir_version = ir_version
        self._trust = trust
        self._schemas: dict[tuple[str, str], OpSchema | None] = {}
        self._known: dict[Signature, list[Inferred]] = {}

    def schema(self, node: NodeProto) -> OpSchema | None:
        """The definition of a node's operator at the model's opset, or ``None`` for a custom one."""
        domain = "" if node.domain == "ai.onnx" else node.domain
        key = (domain, node.op_type)
        if key not in self._schemas:
            self._schemas[key] = _find_schema(node.op_type, domain, self._opsets.get(domain, 0))
        return self._schemas[key]

    def infer(self, step: Step, declared: Mapping[str, TensorType]) -> None:
        """Sets the types of the outputs of a node without bodies, and its signature.

        Args:
            step: The node.
            declared: Types that the file or the caller states, by tensor.

        Raises:
            ImportFailedError: The node breaks its operator's rules, or a declared type contradicts the
                inferred one.
        """
        signature = _signature(step.node, step.inputs)
        inferred = self._known.get(signature)
        if inferred is None:
            inferred = self._known[signature] = self._infer(step)
        step.types, step.signature = inferred, signature
        if any(name in declared for name in step.node.output):
            step.types = []
            for name, (kind, proto) in zip(step.node.output, inferred, strict=True):
                merged = self.reconcile(name, kind, declared[name]) if name in declared else kind
                step.types.append((kind, proto) if merged == kind else (merged, None))
                if merged != kind:
                    step.signature = None

    def reconcile(self, name: str, inferred: TensorType, declared: TensorType) -> TensorType:
        """Joins what is inferred and what is declared about a tensor.

        Raises:
            ImportFailedError: They contradict each other and the caller did not say which to trust.
        """
        if inferred.container or declared.container:
            return inferred if inferred.container else declared
        same_element = (
            UNDEFINED in (inferred.element, declared.element) or inferred.element == declared.element
        )
        if same_element and _agree(inferred.dims, declared.dims):
            return TensorType(inferred.element or declared.element, _join(inferred.dims, declared.dims))
        if self._trust == "inferred":
            return inferred
        if self._trust == "declared":
            dims = inferred.dims if declared.dims is None else declared.dims
            return TensorType(declared.element or inferred.element, dims)
        raise ImportFailedError(
            f"tensor {name!r} is declared as {declared} and inferred as {inferred}; correct the file, or say "
            "which to "
            "trust: trust='declared' or trust='inferred'"
        )

    def _infer(self, step: Step) -> list[Inferred]:
        node, inputs = step.node, step.inputs
        schema = self.schema(node)
        nothing: list[Inferred] = [(UNKNOWN, None)] * len(node.output)
        if schema is None or any(v is not None and _is_untyped(v.type) for v in inputs):
            return nothing
        reason = unsound(node, [None if v is None else v.type for v in inputs])
        if reason is not None:
            raise ImportFailedError(f"{step.where} is malformed: {reason}")
        types: dict[str, TypeProto] = {}
        data = {}
        for name, value in zip(node.input, inputs, strict=True):
            if value is not None:
                types[name] = value.type_proto()
                contents = data_proto(value)
                if contents is not None:
                    data[name] = contents
        try:
            outputs = onnx.shape_inference.infer_node_outputs(
                schema, _explicit(node), types, data, opset_imports=self._imports, ir_version=self._ir_version
            )
        except (InferenceError, ValidationError) as error:
            if self._trust == "declared":
                return nothing
            reason = " ".join(str(error).split())
            raise ImportFailedError(
                f"{step.where} does not fit its inputs: {reason}; correct the file or the sizes given to its "
                "dimensions "
                "(trust='declared' goes by the declared shapes instead)"
            ) from None
        except Exception as error:  # the binding raises whatever C++ threw
            raise ImportFailedError(f"{step.where}: its output types cannot be inferred ({error})") from error
        for name, proto in outputs.items():
            if any(d.dim_value < 0 for d in proto.tensor_type.shape.dim):
                raise ImportFailedError(
                    f"{step.where} gives {name!r} a negative size; its attributes are wrong"
                )
        found = ((outputs.get(name), name) for name in node.output)
        results = [(UNKNOWN if p is None else from_proto(p, name, literal_size), p) for p, name in found]
        if node.op_type in _LIKE_FIRST_INPUT and inputs[0] is not None and results[0][0].dims is None:
            results[0] = (inputs[0].type, inputs[0].type_proto())
        return results


def _signature(node: NodeProto, inputs: Sequence[Value | None]) -> Signature:
    """What the types of a node's outputs follow from: nets repeat themselves, and inference is slow."""
    return (
        node.op_type,
        node.domain,
        *(a.SerializeToString() for a in node.attribute),
        *(None if v is None else (v.type, None if v.data is None else v.data.tobytes()) for v in inputs),
        *(bool(name) for name in node.output),
    )


def _find_schema(op_type: str, domain: str, version: int) -> OpSchema | None:
    """The newest definition up to an opset; a deprecated operator keeps its last one."""
    while version > 0:
        try:
            schema = onnx.defs.get_schema(op_type, version, domain)
        except SchemaError:
            return None
        if not schema.deprecated:
            return schema
        version = schema.since_version - 1
    return None


def _explicit(node: NodeProto) -> NodeProto:
    """A node with its defaults written out where onnx's inference overlooks them (1.23: two-sided STFT)."""
    if node.op_type != "STFT" or any(a.name == "onesided" for a in node.attribute):
        return node
    copy = NodeProto()
    copy.CopyFrom(node)
    copy.attribute.append(onnx.helper.make_attribute("onesided", 1))
    return copy


def _is_untyped(kind: TensorType) -> bool:
    return kind.element == UNDEFINED and not kind.container


def _agree(a: Dims | None, b: Dims | None) -> bool:
    """Whether two shapes can be those of one tensor."""
    if a is None or b is None:
        return True
    return len(a) == len(b) and all(
        p == q for p, q in zip(a, b, strict=True) if p is not None and q is not None
    )


def _join(a: Dims | None, b: Dims | None) -> Dims | None:
    """What two shapes that agree say together."""
    if a is None or b is None:
        return b if a is None else a
    return tuple(q if p is None else p for p, q in zip(a, b, strict=True))
