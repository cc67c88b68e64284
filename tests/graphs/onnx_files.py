"""Small ONNX models for the tests of the reader and the writer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

FLOAT = TensorProto.FLOAT
INT64 = TensorProto.INT64
BOOL = TensorProto.BOOL
Dim = int | str | None
Info = tuple[str, int, Sequence[Dim] | None]


def node(op_type: str, inputs: Iterable[str], outputs: Iterable[str], **attributes: Any) -> NodeProto:
    return helper.make_node(op_type, list(inputs), list(outputs), **attributes)


def info(name: str, dtype: int, shape: Sequence[Dim] | None) -> ValueInfoProto:
    return helper.make_tensor_value_info(name, dtype, shape)


def array(name: str, values: Any, dtype: Any = np.float32) -> TensorProto:
    return numpy_helper.from_array(np.asarray(values, dtype), name)


def body(
    nodes: Sequence[NodeProto],
    inputs: Sequence[Info],
    outputs: Sequence[Info],
    weights: Sequence[TensorProto] = (),
) -> GraphProto:
    return helper.make_graph(
        nodes, "body", [info(*i) for i in inputs], [info(*o) for o in outputs], list(weights)
    )


def model(
    nodes: Sequence[NodeProto],
    inputs: Sequence[Info],
    outputs: Sequence[Info],
    weights: Sequence[TensorProto] = (),
    *,
    value_info: Sequence[Info] = (),
    opset: int = 18,
    ir_version: int = 9,
    domains: Mapping[str, int] | None = None,
    **fields: Any,
) -> ModelProto:
    graph = helper.make_graph(
        nodes, "test", [info(*i) for i in inputs], [info(*o) for o in outputs], list(weights),
        value_info=[info(*v) for v in value_info],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", opset)]
    opsets += [helper.make_opsetid(domain, version) for domain, version in (domains or {}).items()]
    return helper.make_model(graph, opset_imports=opsets, ir_version=ir_version, **fields)


def save(proto: ModelProto, folder: Path, name: str = "model.onnx") -> Path:
    path = folder / name
    path.write_bytes(proto.SerializeToString())
    return path


def small_net(**fields: Any) -> ModelProto:
    """x -> MatMul -> Relu -> Reshape -> Add -> y, with two weights."""
    return model(
        [
            node("MatMul", ["x", "w"], ["a"], name="/fc/MatMul"),
            node("Relu", ["a"], ["b"], name="/act/Relu"),
            node("Reshape", ["b", "shape"], ["c"], name="/Reshape"),
            node("Add", ["c", "bias"], ["y"], name="/head/Add"),
        ],
        [("x", FLOAT, [2, 3])],
        [("y", FLOAT, [8])],
        [array("w", np.ones((3, 4))), array("bias", np.ones(8)), array("shape", [8], np.int64)],
        **fields,
    )


def untouched_fields(proto: ModelProto) -> onnx.ModelProto:
    """A model without its nodes' metadata, for comparison."""
    copy = ModelProto()
    copy.CopyFrom(proto)
    for n in copy.graph.node:
        del n.metadata_props[:]
    return copy
