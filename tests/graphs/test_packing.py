"""The packed columns of a graph file: what is left out comes back, and columns that fit in no way are refused."""

import io
import json
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opgym.errors import ImportFailedError, InvalidGraphError
from opgym.graphs import Graph, GraphBuilder, load, name_columns, packing, save
from opgym.graphs.name_columns import pack_names, unpack_names
from opgym.graphs.packing import unzigzag, zigzag
from opgym.graphs.storage import from_bytes, to_bytes

from .test_storage import everything


def example() -> Graph:
    """Two variables, their updates and some work: every column has something to say."""
    b = GraphBuilder(level="test", name="example")
    w = [b.tensor(shape=(4, 5), role="parameter", name=f"w{i}") for i in range(2)]
    x, y = b.tensor(shape=(3,), role="input", name="x"), b.tensor(shape=(), is_output=True, name="y")
    homes = [b.op("variable", outputs=[t], group=t, layer="layer.0", name=f"home{t}") for t in w]
    b.op("MatMul", inputs=[x, *w], outputs=[y], flops=7, accessed_bytes=3, layer="layer.1", name="mm_7")
    for t, home in zip(w, homes, strict=True):
        b.op("step", inputs=[t, y], update_of=home, group=t, direction="update", name=f"step{t}")
    return b.build()


# --- What is left out ---------------------------------------------------------------------------------------


def test_whole_numbers_of_either_sign():
    values = np.array([0, -1, 1, -2, 2, 2**63 - 1, -(2**63)], np.int64)
    assert zigzag(values).tolist() == [0, 1, 2, 3, 4, 2**64 - 2, 2**64 - 1]
    assert unzigzag(zigzag(values)).tolist() == values.tolist()


def test_figures_at_their_limits_come_back():
    b = GraphBuilder(level="test")
    big = 2**63 - 1
    x = b.tensor(bytes=big, shape=(big,))
    y = b.tensor(bytes=big, shape=(1,) * 20)
    b.op("op", inputs=[x], outputs=[y], flops=big, accessed_bytes=0, workspace_bytes=big,
         unsupported=[f"class{i:02}" for i in range(64)])  # fmt: skip
    graph = b.build()
    assert everything(from_bytes(to_bytes(graph), "here")) == everything(graph)


def test_ops_without_tensors_come_back():
    b = GraphBuilder(level="test")
    b.op("a")
    b.op("b")
    assert everything(from_bytes(to_bytes(b.build()), "here")) == everything(b.build())


def test_repeated_steps_take_a_few_bytes_each(tmp_path):
    def size(steps: int) -> int:
        b = GraphBuilder(level="test")
        w, x = b.tensor(shape=(64, 64), role="parameter"), b.tensor(shape=(64,), role="input")
        b.op("variable", outputs=[w])
        for t in range(steps):
            y = b.tensor(shape=(64,), name=f"step_{t}/y")
            b.op("MatMul", inputs=[w, x], outputs=[y], flops=8192, name=f"step_{t}/mm")
            x = y
        save(b.build(), tmp_path / "g.npz")
        return (tmp_path / "g.npz").stat().st_size

    assert size(20_000) - size(1_000) < 0.1 * 19_000


def test_the_bytes_do_not_depend_on_where_they_are_written(monkeypatch):
    before = to_bytes(example())
    monkeypatch.setattr("sys.platform", "win32")
    assert to_bytes(example()) == before
    with zipfile.ZipFile(io.BytesIO(before)) as archive:
        assert {entry.date_time for entry in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
        assert {entry.create_system for entry in archive.infolist()} == {3}


# --- Names --------------------------------------------------------------------------------------------------


NAMES = [
    "a_1",
    "a_2",
    "a_10",
    "a_007",
    "1",
    "0",
    "00",
    "",
    "%d%s",
    "a\x00b",
    "\ud800",
    "x12y34",
    "x12y35",
    "9" * 12,
    "٣",
]


def test_names_of_every_kind_come_back():
    assert unpack_names("k", pack_names("k", NAMES), len(NAMES)) == tuple(NAMES)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.lists(st.text(st.sampled_from("01259ab%_é"), max_size=8), max_size=12))
def test_any_names_come_back(names):
    assert unpack_names("k", pack_names("k", names), len(names)) == tuple(names)


def test_counting_names_are_one_template():
    columns = pack_names("k", [f"layer_{i}/mm" for i in range(50)])
    assert json.loads(columns["k_text"].tobytes()) == [["layer_", "/mm"]]
    assert columns["k_number"].tolist() == [0] + [2] * 49


# --- Columns that fit in no way -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("op_class", [0, 0, 1, 2, 9], "op_class leaves op_table"),
        ("op_class", [], "no ops|does not fit"),
        ("op_table", [1, 2, 3], "op_table is no table of 10 figures"),
        ("tensor_table", [1], "tensor_table is no table of 5 figures"),
        ("tensor_class", [0, 0, 0, 7], "tensor_class leaves tensor_table"),
        ("tensor_class", [0], "more outputs than there are tensors"),
        ("tensor_table_dims", [1], "tensor_table_dims does not fit"),
        ("input", [1, 1], "input does not fit op_table"),
        ("input", [2**40] * 7, "input names a tensor that does not exist"),
        ("input", [2**64 - 1] * 7, "input names a tensor that does not exist"),
        ("op_group", [1, 1], "op_group has 2 entries; expected 5"),
        ("op_group", [2, 1, 0, 3, 2], "op_group goes back before the first"),
        ("op_layer", [9, 1, 0, 3, 2], "op_layer goes back before the first"),
        ("update_of", [0], "update_of does not fit op_table"),
        ("update_of", [0, 99], "update_of names an op that does not exist"),
        ("update_of", [0, 4], "update_of names an op that is no variable"),
        ("op_names_template", [0], "there are 1 op_names; expected 5"),
        ("op_names_template", [0, 0, 1, 2, 9], "op_names_template leaves the 3 templates"),
        ("op_names_number", [0], "op_names_number does not fit op_names_template"),
        ("layers_text", list(b'{"a": 1}'), "layers_text is no list of templates"),
        ("layers_text", list(b"[[]]"), "layers_text is no list of templates"),
        ("layers_text", list(b"[[1, 2]]"), "layers_text is no list of templates"),
        ("layers_text", list(b"[["), "not a readable opgym graph"),
        ("layers_template", [0, 0, 0], "layers_number does not fit"),
        ("op_flops", [0], "op_flops.npy"),
    ],
)
def test_columns_that_form_no_graph(tmp_path, name, value, words):
    dtype = np.uint8 if name.endswith("text") else np.uint64
    refused(changed(tmp_path, {name: np.array(value, dtype)}), words)


def test_figures_that_form_no_graph(tmp_path):
    for figure, value, words in (
        ("kind", 2**40, "op_kind leaves int32"),
        ("flops", -5, "op_flops has a negative entry"),
        ("elementwise", 2, "elementwise holds a flag"),
        ("is_update", 3, "is_update holds a flag"),
        ("inputs", -1, "input does not fit"),
        ("inputs", 2**62, "input does not fit"),
        ("outputs", -1, "more outputs than there are tensors"),
        ("outputs", 2**62, "more outputs than there are tensors"),
    ):
        table = stored(tmp_path)["op_table"].astype(np.int64).reshape(10, -1)
        table[packing._OP_FIGURES.index(figure), -1] = value
        refused(changed(tmp_path, {"op_table": table.ravel()}), words)


def test_little_that_stands_for_much_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(packing, "MAX_DIMENSIONS", 3)
    with pytest.raises(InvalidGraphError, match="more dimensions in all"):
        packing.unpack(packing.pack(example()), example().kinds)
    columns = pack_names("k", ["x" * 100] * 100)
    monkeypatch.setattr(name_columns, "MAX_NAME_CHARACTERS", 10_000)
    with pytest.raises(InvalidGraphError, match="k are longer in all than is read"):
        unpack_names("k", columns, 100)


def stored(tmp_path: Path) -> dict[str, np.ndarray]:
    save(example(), tmp_path / "good.npz")
    with np.load(tmp_path / "good.npz") as archive:
        return dict(archive)


def changed(tmp_path: Path, replaced: dict[str, np.ndarray]) -> Path:
    np.savez(tmp_path / "changed.npz", **(stored(tmp_path) | replaced))
    return tmp_path / "changed.npz"


def refused(path: Path, words: str) -> None:
    with pytest.raises(ImportFailedError, match=words) as caught:
        load(path)
    assert str(path) in str(caught.value)
