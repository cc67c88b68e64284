"""Graph files: round trips, equal bytes, and every kind of file that is none."""

import io
import json
import os
import zipfile
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings

from opgym.errors import ImportFailedError
from opgym.graphs import Graph, GraphBuilder, load, save, storage
from opgym.graphs.graph import ARRAY_DTYPES

from ..reference.strategies import graphs


def example(name: str = "example") -> Graph:
    """Names of every kind, shapes, groups, an update."""
    b = GraphBuilder(level="test", name=name, in_place=True)
    w = b.tensor(shape=(4, 5), dtype="int4", role="parameter", name="héllo/ünïcode")
    y = b.tensor(shape=(), is_output=True, name="lone surrogate \ud800")
    w2 = b.tensor(bytes=10, dtype="int4", name="")
    home = b.op("variable", outputs=[w], group="g", name="home\x00with a zero")
    b.op("MatMul", inputs=[w], outputs=[y], flops=2**62, layer="l", unsupported=["gpu"], name="m")
    b.op("step", inputs=[w], outputs=[w2], update_of=home, group="g", direction="update", elementwise=True)
    return b.build()


def everything(graph: Graph) -> dict:
    """All fields, names included, comparable."""
    values = {f.name: getattr(graph, f.name) for f in fields(Graph)}
    return {k: (v.dtype, v.tolist()) if isinstance(v, np.ndarray) else v for k, v in values.items()}


# --- Round trips ----------------------------------------------------------------------------------------


def test_a_round_trip_keeps_every_field(tmp_path):
    save(example(), tmp_path / "g.npz")
    assert everything(load(tmp_path / "g.npz")) == everything(example())
    assert load(str(tmp_path / "g.npz")).fingerprint == example().fingerprint


@settings(max_examples=40, deadline=None, derandomize=True)
@given(graphs())
def test_random_graphs_survive(tmp_path_factory, graph):
    path = tmp_path_factory.mktemp("graphs") / "g.npz"
    save(graph, path)
    assert everything(load(path)) == everything(graph)


def test_equal_graphs_give_equal_bytes_whenever_they_are_saved(tmp_path, monkeypatch):
    save(example(), tmp_path / "one.npz")
    monkeypatch.setattr("time.time", lambda: 2_000_000_000.0)
    save(load(tmp_path / "one.npz"), tmp_path / "two.npz")
    assert (tmp_path / "one.npz").read_bytes() == (tmp_path / "two.npz").read_bytes()


def test_saving_leaves_nothing_half_written(tmp_path, monkeypatch):
    save(example("before"), tmp_path / "g.npz")

    def disk_full(*names):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", disk_full)
    with pytest.raises(OSError, match="No space left"):
        save(example("after"), tmp_path / "g.npz")
    assert os.listdir(tmp_path) == ["g.npz"]
    assert load(tmp_path / "g.npz").name == "before"


def test_loaded_arrays_are_read_only(tmp_path):
    save(example(), tmp_path / "g.npz")
    with pytest.raises(ValueError, match="read-only"):
        load(tmp_path / "g.npz").tensor_bytes[0] = 1


def test_a_large_graph_is_small_in_memory_and_on_disk(tmp_path):
    b = GraphBuilder(level="test")
    n = 100_000
    tensors = [b.tensor(shape=(8, 64, v % 512), name=f"layer_{v // 10}/tensor:{v}") for v in range(n)]
    for v in range(n):
        reads = [tensors[v - 1], tensors[v // 2]] if v else []
        b.op("MatMul", inputs=reads, outputs=[tensors[v]], name=f"layer_{v // 10}/op_{v}")
    graph = b.build()
    save(graph, tmp_path / "g.npz")
    loaded = load(tmp_path / "g.npz")
    assert loaded == graph
    arrays = [getattr(loaded, f.name) for f in fields(Graph)]
    derived = [loaded.is_variable, loaded.consumer_ptr, loaded.consumer_op, *loaded.edges]
    array_bytes = sum(a.nbytes for a in (*arrays, *derived) if isinstance(a, np.ndarray))
    name_bytes = sum(len(name) + 60 for name in (*loaded.op_names, *loaded.tensor_names))
    assert array_bytes + name_bytes < 100e6
    assert (tmp_path / "g.npz").stat().st_size < 0.4e6


# --- Files that are no graph ------------------------------------------------------------------------------


def refused(path: Path, words: str) -> None:
    with pytest.raises(ImportFailedError, match=words) as caught:
        load(path)
    assert str(path) in str(caught.value)


def test_absent_folder_empty_and_foreign_files(tmp_path):
    refused(tmp_path / "absent.npz", "no such file")
    refused(tmp_path, "is a folder")
    (tmp_path / "empty.npz").write_bytes(b"")
    refused(tmp_path / "empty.npz", "not a readable opgym graph")
    (tmp_path / "text.npz").write_text("a,b\n1,2\n")
    refused(tmp_path / "text.npz", "not a readable opgym graph")
    np.savez(tmp_path / "other.npz", weights=np.zeros(3))
    refused(tmp_path / "other.npz", "without a header")


def test_truncated_files(tmp_path):
    save(example(), tmp_path / "g.npz")
    whole = (tmp_path / "g.npz").read_bytes()
    for size in (1, 10, len(whole) // 2, len(whole) - 1):
        (tmp_path / "cut.npz").write_bytes(whole[:size])
        refused(tmp_path / "cut.npz", "not a readable opgym graph")


def test_a_damaged_byte_is_refused_or_harmless(tmp_path):
    save(example(), tmp_path / "g.npz")
    whole = (tmp_path / "g.npz").read_bytes()
    rng = np.random.default_rng(0)
    refusals = 0
    for position in rng.integers(0, len(whole), 150):
        damaged = bytearray(whole)
        damaged[position] ^= 1 << rng.integers(0, 8)
        (tmp_path / "bad.npz").write_bytes(damaged)
        try:
            assert everything(load(tmp_path / "bad.npz")) == everything(
                example()
            )  # a date, a permission, ...
        except ImportFailedError:
            refusals += 1
    assert refusals > 100


# --- Version 1: the arrays as they are --------------------------------------------------------------------


def save_1(graph: Graph, path: Path) -> None:
    """Writes the file that opgym wrote before version 2."""
    fields_1 = ("kinds", "device_classes", "layers", "dtypes", "in_place", "level", "name")
    header = {"format": "opgym.graph", "version": 1, **{key: getattr(graph, key) for key in fields_1}}
    arrays = {"header": np.frombuffer(json.dumps(header).encode(), np.uint8)}
    arrays |= {name: getattr(graph, name) for name in ARRAY_DTYPES}
    for key in ("op_names", "tensor_names"):
        encoded = [name.encode("utf-8", "surrogatepass") for name in getattr(graph, key)]
        arrays[f"{key}_ptr"] = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
        arrays[f"{key}_utf8"] = np.frombuffer(b"".join(encoded), np.uint8)
    np.savez_compressed(path, **arrays)


def test_version_1_is_read(tmp_path):
    save_1(example(), tmp_path / "g.npz")
    assert everything(load(tmp_path / "g.npz")) == everything(example())


def parts(path: Path) -> dict[str, np.ndarray]:
    with np.load(path) as stored:
        return dict(stored)


def rewritten(tmp_path: Path, change) -> Path:
    """A file whose parts (arrays by name, and the header as a dict) went through ``change``."""
    save_1(example(), tmp_path / "good.npz")
    arrays = parts(tmp_path / "good.npz")
    header = json.loads(arrays.pop("header").tobytes())
    change(header, arrays)
    arrays["header"] = np.frombuffer(json.dumps(header).encode(), np.uint8)
    np.savez(tmp_path / "changed.npz", **arrays)
    return tmp_path / "changed.npz"


def test_rewriting_without_a_change_is_accepted(tmp_path):
    assert load(rewritten(tmp_path, lambda header, arrays: None)) == example()


@pytest.mark.parametrize(
    ("header_change", "words"),
    [
        ({"version": 3}, r"version 3; this opgym reads 'opgym\.graph' versions 1 to 2"),
        ({"version": 3, "new field": 1}, "version 3"),
        ({"version": 2}, "parts missing, unknown or listed twice: input.npy, input_ptr.npy"),
        ({"format": "opgym.solution"}, "'opgym.solution'"),
        ({"surprise": 1}, "surprise"),
        ({"kinds": "MatMul"}, "'kinds' is no list of texts"),
        ({"kinds": ["MatMul", 3, "x"]}, "'kinds' is no list of texts"),
        ({"kinds": ["variable", "step", "MatMul"]}, "kinds are not sorted"),
        ({"kinds": ["MatMul", "step", "variable", "zzz"]}, "kinds are not sorted, distinct and used"),
        ({"dtypes": ["float32"]}, "tensor_dtype leaves 0"),
        ({"layers": []}, "op_layer leaves"),
        ({"layers": ["l", "m"]}, "op_layer leaves out"),
        ({"device_classes": []}, "device_classes"),
        ({"in_place": 1}, "'in_place' is no bool"),
        ({"level": None}, "'level' is no str"),
        ({"name": ["a"]}, "'name' is no str"),
    ],
)
def test_headers_of_another_version_or_form(tmp_path, header_change, words):
    refused(rewritten(tmp_path, lambda header, arrays: header.update(header_change)), words)


def test_a_header_that_is_no_object_or_no_json(tmp_path):
    for text in (b"[]", b"{", b"\xff\xfe", b"null"):
        arrays = parts(rewritten(tmp_path, lambda header, arrays: None))
        arrays["header"] = np.frombuffer(text, np.uint8)
        np.savez(tmp_path / "odd.npz", **arrays)
        refused(tmp_path / "odd.npz", "version None|not a readable")


BIG = np.iinfo(np.int32)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("op_flops", [0, -1, 0], "op_flops has a negative entry"),
        ("op_flops", np.zeros((3, 1), np.int64), "op_flops is int64"),
        ("op_flops", np.zeros((), np.int64), "op_flops is int64"),
        ("op_flops", np.zeros(3, ">i8"), "op_flops is >i8"),
        ("op_flops", np.zeros(3), "op_flops is float64"),
        ("op_flops", [0, 0], "op_flops has shape"),
        ("op_kind", [], "no ops"),
        ("op_kind", [2, 0, 3], "op_kind leaves 0 .. 2"),
        ("op_group", [1, -1, 1], "op_group is not numbered in order of first op"),
        ("op_group", [0, -1, 5], "op_group leaves"),
        ("op_direction", [0, 0, 9], "op_direction"),
        ("op_update_of", [-1, -1, 1], "names an op that is no variable"),
        ("op_update_of", [0, -1, 0], "a variable op updates another"),
        ("op_unsupported", [0, 2, 0], "op_unsupported names a device class that does not exist"),
        ("op_unsupported", [0, 2**63, 1], "device_classes are not sorted, distinct and used"),
        ("op_elementwise", np.frombuffer(b"\0\0\2", np.bool_), "neither 0 nor 1"),
        ("tensor_bytes", [10, 4, -4], "tensor_bytes has a negative entry"),
        ("tensor_producer", [0, 1, 1], "tensor_producer contradicts output_ptr"),
        ("tensor_producer", [-1, 1, 2], "output_ptr is not a CSR pointer"),
        ("tensor_role", [0, 0, 4], "tensor_role"),
        ("input_ptr", [0, 0, 2], "input_ptr has 3 entries; expected 4"),
        ("input_ptr", [0, 2, 1, 2], "input_ptr is not a CSR pointer"),
        ("input_ptr", [0, BIG.max, BIG.min, 2], "input_ptr is not a CSR pointer"),
        ("input_ptr", [0, 1, 2, 2], "not in topological order"),
        ("input_tensor", [1, 0], "not in topological order"),
        ("input_tensor", [0, 3], "input_tensor leaves 0 .. 2"),
        ("output_ptr", [0, 1, 3, 2], "output_ptr is not a CSR pointer"),
        ("shape_ptr", [0, 2, 2, 1], "shape_ptr is not a CSR pointer"),
        ("shape_dim", [4, -5], "shape_dim has a negative entry"),
        ("op_names_ptr", [0, 5, 2, 12], "op_names_ptr is not a CSR pointer"),
        ("op_names_ptr", [0, 3], "op_names_ptr is not a CSR pointer"),
        ("op_names_ptr", [], "op_names_ptr is not a CSR pointer"),
        ("tensor_names_utf8", [255] * 40, "CSR pointer|not a readable"),
    ],
)
def test_arrays_that_form_no_graph(tmp_path, name, value, words):
    def change(header, arrays):
        arrays[name] = value if isinstance(value, np.ndarray) else np.array(value, arrays[name].dtype)

    refused(rewritten(tmp_path, change), words)


def test_a_variable_that_reads(tmp_path):
    b = GraphBuilder(level="test")
    source, w = b.tensor(bytes=1), b.tensor(bytes=1)
    b.op("variable", outputs=[w])
    b.op("work", inputs=[source])
    save_1(b.build(), tmp_path / "g.npz")
    arrays = parts(tmp_path / "g.npz") | {"input_ptr": np.array([0, 1, 1], np.int32)}
    np.savez(tmp_path / "odd.npz", **arrays)
    refused(tmp_path / "odd.npz", "a variable op reads tensors")


def test_a_tensor_listed_twice_by_an_op(tmp_path):
    def change(header, arrays):
        arrays["input_ptr"] = np.array([0, 0, 2, 3], np.int32)
        arrays["input_tensor"] = np.array([0, 0, 0], np.int32)

    refused(rewritten(tmp_path, change), "same input tensor twice")


def test_a_name_too_few(tmp_path):
    def change(header, arrays):
        arrays["op_names_ptr"] = np.array([0, len(arrays["op_names_utf8"])])

    refused(rewritten(tmp_path, change), "names do not match")


def test_parts_missing_or_unknown(tmp_path):
    refused(rewritten(tmp_path, lambda header, arrays: arrays.pop("op_group")), "op_group.npy")
    refused(rewritten(tmp_path, lambda header, arrays: arrays.update(more=np.zeros(1))), "more.npy")


def test_nothing_is_unpickled(tmp_path):
    class Trap:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "sprung"),)

    trap = np.array([Trap()], dtype=object)
    refused(rewritten(tmp_path, lambda header, arrays: arrays.update(op_flops=trap)), "op_flops")
    assert not (tmp_path / "sprung").exists()


# --- Bombs --------------------------------------------------------------------------------------------------


def test_a_zip_bomb_is_refused_before_it_is_unpacked(tmp_path, monkeypatch):
    monkeypatch.setattr(storage, "MAX_UNPACKED_BYTES", 10**6)
    with zipfile.ZipFile(tmp_path / "bomb.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.npy", bytes(2 * 10**6))
    refused(tmp_path / "bomb.npz", "unpacks to 2000000 bytes; at most 1000000 are read")


def test_an_array_that_claims_more_than_is_there_allocates_nothing(tmp_path):
    save_1(example(), tmp_path / "g.npz")
    claim = io.BytesIO()
    np.lib.format.write_array_header_1_0(claim, {"descr": "<i8", "fortran_order": False, "shape": (2**58,)})
    with zipfile.ZipFile(tmp_path / "g.npz") as good, zipfile.ZipFile(tmp_path / "liar.npz", "w") as liar:
        for name in good.namelist():
            liar.writestr(name, claim.getvalue() if name == "op_flops.npy" else good.read(name))
    refused(tmp_path / "liar.npz", r"op_flops is int64\(288230376151711744,\) in 0 bytes")
