"""A placement written back into the model: legal, readable by others, and the same graph when read again."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto

from opgym import datasets
from opgym.datasets import onnx_light
from opgym.errors import ImportFailedError, InvalidSolutionError
from opgym.graphs import Graph, GraphBuilder, save
from opgym.graphs.readers import Imported, read
from opgym.graphs.readers.onnx import read_onnx
from opgym.graphs.writers.onnx import write_onnx

from . import onnx_files
from .onnx_files import FLOAT, array, body, model, node, small_net


def metadata(proto: ModelProto, key: str) -> list[str]:
    """A metadata value of every node that has it, in the order of the file."""
    found = ({e.key: e.value for e in n.metadata_props} for n in proto.graph.node)
    return [entries[key] for entries in found if key in entries]


def random_schedule(graph: Graph, seed: int) -> np.ndarray:
    """A random order in which every op comes after what it reads."""
    rng = np.random.default_rng(seed)
    producer, consumer, _ = graph.edges
    missing = np.bincount(consumer, minlength=graph.num_ops)
    ready = list(np.flatnonzero(missing == 0))
    order = []
    while ready:
        op = ready.pop(int(rng.integers(len(ready))))
        order.append(op)
        for child in consumer[producer == op]:
            missing[child] -= 1
            if missing[child] == 0:
                ready.append(child)
    return np.array(order)


@pytest.mark.parametrize("name", ["inception_v1", "squeezenet", "shufflenet"])
def test_round_trip_of_a_real_model_in_a_random_schedule(name: str, tmp_path: Path) -> None:
    imported = datasets.read(onnx_light.PREFIX + name)
    graph = imported.graph
    order = random_schedule(graph, 1)
    device = np.random.default_rng(2).integers(0, 4, graph.num_ops)
    path = tmp_path / "placed.onnx"
    write_onnx(path, imported, device, device_names=["a", "b", "c", "d"], order=order)
    onnx.checker.check_model(str(path))
    written = onnx.load(str(path))
    assert metadata(written, "opgym.op") == [str(op) for op in order]
    assert metadata(written, "opgym.order") == [str(place) for place in range(graph.num_ops)]
    ops = [n for n in written.graph.node if any(e.key == "opgym.op" for e in n.metadata_props)]
    devices = [next(e.value for e in n.metadata_props if e.key == "opgym.device") for n in ops]
    assert devices == [str(device[op]) for op in order]
    assert len(metadata(written, "opgym.device_name")) == len(written.graph.node)
    assert set(metadata(written, "opgym.device_name")) <= {"a", "b", "c", "d"}
    original = onnx.load(str(onnx_light.path(name)))
    assert written.graph.initializer == original.graph.initializer
    assert sorted(n.SerializeToString() for n in onnx_files.untouched_fields(written).graph.node) == sorted(
        n.SerializeToString() for n in original.graph.node
    )
    again = read(path)
    assert again.graph.fingerprint == graph.fingerprint
    assert again.graph.op_names == graph.op_names


def written(imported: Imported, tmp_path: Path, **options: object) -> ModelProto:
    path = tmp_path / "out.onnx"
    write_onnx(path, imported, np.zeros(imported.graph.num_ops, int), **options)  # type: ignore[arg-type]
    proto = onnx.load(str(path))
    onnx.checker.check_model(proto)
    assert read_onnx(path).graph == imported.graph
    return proto


def test_views_follow_their_storage_and_constants_go_where_they_are_used(tmp_path: Path) -> None:
    nodes = [
        node("Constant", [], ["shape"], name="late", value_ints=[6]),
        node("Relu", ["x"], ["a"], name="first"),
        node("Neg", ["x"], ["b"], name="second"),
        node("Abs", ["b"], ["c"], name="third"),
        node("Reshape", ["a", "shape"], ["v"], name="view"),
        node("Exp", ["v"], ["y"], name="fourth"),
        node("Add", ["c", "c"], ["z"], name="fifth"),
    ]
    imported = read_onnx(model(nodes, [("x", FLOAT, [2, 3])], [("y", FLOAT, [6]), ("z", FLOAT, [2, 3])]))
    path = tmp_path / "out.onnx"
    write_onnx(path, imported, np.array([3, 1, 1, 2, 0]), order=np.array([1, 2, 0, 4, 3]))
    proto = onnx.load(str(path))
    names = [n.name for n in proto.graph.node]
    assert names == ["second", "third", "first", "late", "view", "fifth", "fourth"]
    assert metadata(proto, "opgym.device") == ["1", "1", "3", "3", "3", "0", "2"]


def test_an_op_that_only_gives_a_shape_is_stored_before_it_is_needed(tmp_path: Path) -> None:
    """The graph has no edge from Relu to the Reshape's consumer; the file has one, through Shape."""
    nodes = [
        node("Relu", ["x"], ["a"], name="gives the shape"),
        node("Shape", ["a"], ["s"], name="shape"),
        node("Neg", ["w"], ["n"], name="neg"),
        node("Reshape", ["n", "s"], ["v"], name="view"),
        node("Exp", ["v"], ["y"], name="needs it"),
    ]
    imported = read_onnx(
        model(
            nodes,
            [("x", FLOAT, [2, 3]), ("w", FLOAT, [6])],
            [("y", FLOAT, [2, 3]), ("a", FLOAT, [2, 3])],
        )
    )
    assert imported.graph.op_names == ("gives the shape", "neg", "needs it")
    proto = written(imported, tmp_path, order=np.array([1, 2, 0]))
    assert [n.name for n in proto.graph.node] == ["neg", "gives the shape", "shape", "view", "needs it"]
    assert metadata(proto, "opgym.order") == ["0", "2", "1"]


def test_writing_twice_leaves_one_set_of_metadata(tmp_path: Path) -> None:
    proto = small_net()
    proto.graph.node[0].metadata_props.add(key="mine", value="kept")
    first = written(read_onnx(proto), tmp_path)
    (tmp_path / "again").mkdir()
    second = written(read(tmp_path / "out.onnx"), tmp_path / "again")
    assert first.SerializeToString() == second.SerializeToString()
    assert metadata(second, "mine") == ["kept"]


def test_an_edited_export_is_numbered_by_its_own_order(tmp_path: Path) -> None:
    """Numbers that are left on only some of the ops say nothing."""
    proto = written(read_onnx(small_net()), tmp_path)
    proto.graph.node.append(node("Neg", ["y"], ["extra"]))
    proto.graph.output.append(onnx_files.info("extra", FLOAT, [8]))
    graph = read_onnx(proto).graph
    assert [graph.kind(op) for op in range(graph.num_ops)] == ["MatMul", "Relu", "Add", "Neg"]


def test_functions_and_inlined_branches_stay_inlined(tmp_path: Path) -> None:
    then = body(
        [node("MatMul", ["h", "w"], ["p"]), node("Tanh", ["p"], ["t"])],
        [],
        [("t", FLOAT, [4, 4])],
        [array("w", np.ones((4, 4)))],
    )
    other = body([node("Neg", ["h"], ["n"])], [], [("n", FLOAT, [4, 4])])
    nodes = [
        node("Double", ["x"], ["h"], domain="local"),
        node("If", ["flag"], ["y"], then_branch=then, else_branch=other),
        node("Abs", ["y"], ["z"]),
    ]
    proto = model(
        nodes,
        [("x", FLOAT, [4, 4])],
        [("z", FLOAT, [4, 4])],
        [array("flag", True, bool)],
        domains={"local": 1},
    )
    opsets = [onnx.helper.make_opsetid("", 18)]
    proto.functions.append(
        onnx.helper.make_function(
            "local",
            "Double",
            ["a"],
            ["b"],
            [node("Relu", ["a"], ["r"]), node("Add", ["r", "r"], ["b"])],
            opsets,
        )
    )
    source = onnx_files.save(proto, tmp_path)
    imported = read(source, subgraphs="inline")
    result = written(imported, tmp_path, order=np.array([0, 1, 2, 3, 4]))
    kinds = [n.op_type for n in result.graph.node if n.op_type not in ("Identity",)]
    assert kinds == ["Relu", "Add", "MatMul", "Tanh", "Abs"]
    assert len(result.functions) == 0
    assert [t.name for t in result.graph.initializer] == ["flag", "w:y"]


def test_external_weights_come_along(tmp_path: Path) -> None:
    weight = TensorProto(name="w", data_type=FLOAT, dims=[300, 4], data_location=TensorProto.EXTERNAL)
    weight.external_data.add(key="location", value="data/w.bin")
    proto = model(
        [node("MatMul", ["x", "w"], ["y"])], [("x", FLOAT, [1, 300])], [("y", FLOAT, [1, 4])], [weight]
    )
    home, target = tmp_path / "home", tmp_path / "target"
    (home / "data").mkdir(parents=True)
    target.mkdir()
    (home / "data" / "w.bin").write_bytes(bytes(4800))
    imported = read(onnx_files.save(proto, home))
    path = target / "placed.onnx"
    write_onnx(path, imported, np.array([0]))
    assert (target / "data" / "w.bin").read_bytes() == bytes(4800)
    onnx.checker.check_model(str(path))
    assert onnx.load(str(path)).graph.initializer[0].raw_data == bytes(4800)
    assert read(path).graph == imported.graph
    write_onnx(path, imported, np.array([0]))  # what is there already is the same
    os.unlink(target / "data" / "w.bin")
    (target / "data" / "w.bin").write_bytes(b"something else")
    with pytest.raises(InvalidSolutionError, match=r"w\.bin exists and is not the model's weights"):
        write_onnx(path, imported, np.array([0]))


def test_what_does_not_fit_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    imported = read(onnx_files.save(small_net(), tmp_path))
    path, zeros = tmp_path / "out.onnx", np.zeros(3, int)
    wrong = [
        ({"device": np.zeros(2, int)}, r"device is int64\(2,\); expected \(3,\)"),
        ({"device": np.zeros(3)}, "device is float64"),
        ({"device": -np.ones(3, int)}, "at least 0"),
        ({"device": zeros + 2, "device_names": ["a"]}, "names device 2; there are 1"),
        ({"device": zeros, "order": np.array([0, 1, 1])}, "every op once"),
        ({"device": zeros, "order": np.array([1, 0, 2])}, r"op 1 '/act/Relu' before op 0 '/fc/MatMul'"),
    ]
    for arguments, message in wrong:
        with pytest.raises(InvalidSolutionError, match=message):
            write_onnx(path, imported, **arguments)  # type: ignore[arg-type]
    with pytest.raises(InvalidSolutionError, match="is the model that was read"):
        write_onnx(tmp_path / "model.onnx", imported, zeros)
    onnx_files.save(model([node("Exp", ["x"], ["y"])], [("x", FLOAT, [1])], [("y", FLOAT, [1])]), tmp_path)
    with pytest.raises(ImportFailedError, match="has changed since it was read"):
        write_onnx(path, imported, zeros)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["model.onnx"]


def test_only_graphs_from_onnx_can_be_written(tmp_path: Path) -> None:
    builder = GraphBuilder("example")
    builder.op("Relu", inputs=[builder.tensor(shape=(1,))], outputs=[builder.tensor(shape=(1,))])
    save(builder.build(), tmp_path / "g.npz")
    with pytest.raises(ImportFailedError, match="was read from npz"):
        write_onnx(tmp_path / "out.onnx", read(tmp_path / "g.npz"), np.array([0]))
