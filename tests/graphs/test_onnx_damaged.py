"""Damaged and hostile files: whatever the bytes, the reader answers with an error of ours or with a graph."""

from __future__ import annotations

import random
from pathlib import Path

import hypothesis.strategies as st
import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from onnx import ModelProto, NodeProto, TensorProto

from opgym.datasets import onnx_light
from opgym.errors import ImportFailedError, OpgymError
from opgym.graphs import Graph
from opgym.graphs.readers import read
from opgym.graphs.readers.onnx import read_onnx
from opgym.graphs.storage import check_structure

from .onnx_files import FLOAT, array, info, model, node, small_net
from .test_onnx_subgraphs import branching, looping

SEEDS = [small_net(), branching(), branching(constant=True), looping(7)]
LIGHT = ["squeezenet", "bvlc_alexnet", "vgg19"]


def damage(content: bytes, rng: random.Random) -> bytes:
    """Cuts, flips, overwrites, removes or repeats some bytes."""
    data = bytearray(content)
    for _ in range(rng.choice([1, 1, 2, 4])):
        place, length = rng.randrange(len(data)), rng.randrange(1, 40)
        kind = rng.random()
        if kind < 0.1:
            data = data[: place + 1]
        elif kind < 0.6:
            data[place] ^= 1 << rng.randrange(8)
        elif kind < 0.8:
            data[place] = rng.randrange(256)
        elif kind < 0.9 and len(data) > length + 1:
            del data[place : place + length]
        else:
            data[place:place] = data[:length]
        data = data or bytearray(b"\0")
    return bytes(data)


@pytest.mark.parametrize("block", range(5))
def test_two_hundred_damaged_files_give_errors_of_ours(block: int, tmp_path: Path) -> None:
    rng = random.Random(block)
    contents = [m.SerializeToString() for m in SEEDS] + [onnx_light.path(name).read_bytes() for name in LIGHT]
    refused = 0
    for i in range(40):
        path = tmp_path / "model.onnx"
        path.write_bytes(damage(contents[i % len(contents)], rng))
        try:
            check_structure(read(path, subgraphs=rng.choice(["opaque", "inline"])).graph)
        except OpgymError:
            refused += 1
    assert 0 < refused <= 40


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_are_refused(content: bytes) -> None:
    try:
        proto = ModelProto.FromString(content)
    except Exception:
        return  # protobuf itself refuses; test_onnx_cases has files of that kind
    with pytest.raises(OpgymError):
        read_onnx(proto)


NUMBERS = [0, 1, -1, 2, 7, 2**31, -(2**31), 2**63 - 1, -(2**63)]


@settings(max_examples=80, deadline=None)
@given(data=st.data())
def test_wild_attributes_and_sizes(data: st.DataObject) -> None:
    """Attributes with impossible values, where a division or an allocation could go wrong."""
    number = st.sampled_from(NUMBERS)
    numbers = st.lists(number, min_size=1, max_size=5)
    wild = [
        node(
            "Conv",
            ["x", "w"],
            ["y"],
            group=data.draw(number),
            strides=data.draw(numbers),
            pads=data.draw(numbers),
        ),
        node("MaxPool", ["x"], ["y"], kernel_shape=data.draw(numbers), strides=data.draw(numbers)),
        node("Transpose", ["x"], ["y"], perm=data.draw(numbers)),
        node("Flatten", ["x"], ["y"], axis=data.draw(number)),
        node("Softmax", ["x"], ["y"], axis=data.draw(number)),
        node("DepthToSpace", ["x"], ["y"], blocksize=data.draw(number)),
        node("Concat", ["x", "x"], ["y"], axis=data.draw(number)),
        node("Split", ["x"], ["y"], axis=data.draw(number), num_outputs=data.draw(number)),
        node("LRN", ["x"], ["y"], size=data.draw(number)),
        node("Reshape", ["x", "s"], ["y"]),
        node("Expand", ["x", "s"], ["y"]),
        node("ConstantOfShape", ["s"], ["y"]),
        node("Range", ["a", "b", "c"], ["y"]),
        node("Slice", ["x", "s", "s"], ["y"]),
        node("Einsum", ["x", "x"], ["y"], equation=data.draw(st.text("ij.,->k ", max_size=12))),
    ]
    chosen = data.draw(st.sampled_from(wild))
    dims = [data.draw(st.sampled_from([0, 1, 3, 2**31, 2**40])) for _ in range(data.draw(st.integers(0, 4)))]
    weights = [
        TensorProto(name="w", data_type=FLOAT, dims=[4, 3, 3, 3]),
        array("s", data.draw(numbers), np.int64),
        *(array(name, data.draw(number), np.int64) for name in "abc"),
    ]
    proto = model([chosen, node("Neg", ["y"], ["z"])], [("x", FLOAT, dims)], [("z", FLOAT, None)], weights)
    try:
        imported = read_onnx(proto)
    except ImportFailedError:
        return
    check_structure(imported.graph)


@pytest.mark.parametrize(
    ("malformed", "message"),
    [
        (node("Split", ["x"], ["y", "z"], num_outputs=1), "num_outputs is 1 and there are 2 outputs"),
        (node("Split", ["x"], ["y"], num_outputs=2**31 - 1), "num_outputs is 2147483647"),
        (node("GatherND", ["x", "i"], ["y"], batch_dims=-2), "batch_dims is -2"),
        (node("GatherND", ["x", "i"], ["y"], batch_dims=[1, 2]), "wrong type"),
        (
            node("LayerNormalization", ["x", "x"], ["y"], axis=2**31),
            "axis is 2147483648; the input has 2 axes",
        ),
        (node("Einsum", ["x"], ["y"], equation="-,"), "equation '-,' is malformed"),
        (node("Einsum", ["x", "x"], ["y"], equation="ij,>jk->ik"), "is malformed"),
    ],
)
def test_nodes_on_which_onnx_itself_crashes_or_never_ends(malformed: NodeProto, message: str) -> None:
    proto = model([malformed], [("x", FLOAT, [4, 4])], [("y", FLOAT, None)], [array("i", [[1]], np.int64)])
    with pytest.raises(ImportFailedError, match=message):
        read_onnx(proto)


kinds = st.sampled_from(
    ["Relu", "Add", "Mul", "MatMul", "Identity", "Reshape", "Transpose", "Concat", "Split"]
)


@st.composite
def random_models(draw: st.DrawFn) -> tuple[ModelProto, int]:
    """Models of square tensors (of 4 KiB, so that nothing is folded), wired at random, outputs left unused."""
    names, nodes, shapes = ["x", "w"], [], array("shape", [32, 32], np.int64)
    for i in range(draw(st.integers(1, 12))):
        kind, a, b = draw(kinds), draw(st.sampled_from(names)), draw(st.sampled_from(names))
        out = f"t{i}"
        if kind in ("Add", "Mul", "MatMul"):
            nodes.append(node(kind, [a, b], [out]))
        elif kind == "Reshape":
            nodes.append(node(kind, [a, "shape"], [out]))
        elif kind == "Concat":
            nodes.append(node(kind, [a, b], [f"{out}/wide"], axis=0))
            nodes.append(node("Split", [f"{out}/wide"], [out, f"{out}/rest"], axis=0, num_outputs=2))
        elif kind == "Split":
            nodes.append(node(kind, [a], [out], axis=0, num_outputs=1))
        else:
            nodes.append(node(kind, [a], [out]))
        names.append(out)
    proto = model(
        nodes,
        [("x", FLOAT, [32, 32])],
        [(names[-1], FLOAT, [32, 32])],
        [array("w", np.ones((32, 32))), shapes],
    )
    return proto, draw(st.integers(0, 2**31))


VIEWS = {"Identity", "Reshape"}


def edges_of(graph: Graph) -> set[tuple[str, str]]:
    """Edges by the names of ops, which are those of their first outputs."""
    producer, consumer, _ = graph.edges
    return {(graph.op_names[u], graph.op_names[v]) for u, v in zip(producer, consumer, strict=True)}


def edges_over_views(proto: ModelProto) -> set[tuple[str, str]]:
    """The paths of the file that lead from op to op over views alone."""
    by_output = {name: n for n in proto.graph.node for name in n.output}
    edges = set()
    for n in proto.graph.node:
        for name in n.input if n.op_type not in VIEWS else ():
            while name in by_output and by_output[name].op_type in VIEWS:
                name = by_output[name].input[0]
            if name in by_output:
                edges.add((by_output[name].output[0], n.output[0]))
    return edges


@settings(max_examples=80, deadline=None)
@given(random_models())
def test_random_models_keep_their_books_in_any_order_and_spelling(case: tuple[ModelProto, int]) -> None:
    proto, seed = case
    onnx.checker.check_model(proto)
    if all(n.op_type in VIEWS for n in proto.graph.node):
        with pytest.raises(ImportFailedError, match="nothing to decide"):
            read_onnx(proto)
        return
    imported = read_onnx(proto, strict=True)
    check_structure(imported.graph)
    assert imported.report.ops == sum(n.op_type not in VIEWS for n in proto.graph.node)
    assert imported.report.ops + sum(imported.report.folded.values()) == len(proto.graph.node)
    assert VIEWS.isdisjoint(imported.graph.kinds)
    inferred = onnx.shape_inference.infer_shapes(proto, strict_mode=True)
    sizes = {
        v.name: np.prod([d.dim_value for d in v.type.tensor_type.shape.dim])
        for v in inferred.graph.value_info
    }
    for t in range(imported.graph.num_tensors):
        name = imported.graph.tensor_names[t]
        if name in sizes:
            assert imported.graph.tensor_bytes[t] == 4 * sizes[name]

    assert edges_of(imported.graph) == edges_over_views(proto)

    rng = np.random.default_rng(seed)
    spelled = ModelProto()
    spelled.CopyFrom(proto)
    weight = spelled.graph.initializer[0]
    if rng.integers(2):
        spelled.graph.input.append(info("w", FLOAT, [32, 32]))
    else:
        spelled.graph.node.append(node("Constant", [], ["w"], value=weight))
        del spelled.graph.initializer[0]
    assert read_onnx(spelled).graph == imported.graph
