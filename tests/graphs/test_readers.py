"""The front door of the readers: what a file holds decides, not what it is called."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from opgym.errors import ImportFailedError, UnknownIdError
from opgym.graphs import GraphBuilder, save
from opgym.graphs.readers import ImportReport, read

from .onnx_files import small_net

#: The smallest dnn-partitioning graph.
PARTITIONING = {
    "maxSizePerFPGA": 100.0,
    "maxFPGAs": 2,
    "maxCPUs": 1,
    "nodes": [
        {
            "id": i,
            "supportedOnFpga": 1,
            "cpuLatency": 2.0,
            "fpgaLatency": 1.0,
            "isBackwardNode": 0,
            "size": 1.0,
        }
        for i in range(2)
    ],
    "edges": [{"sourceId": 0, "destId": 1, "cost": 0.5}],
}


def npz_file(path: Path) -> Path:
    builder = GraphBuilder("example", "tiny")
    builder.op("Relu", inputs=[builder.tensor(shape=(1,))], outputs=[builder.tensor(shape=(1,))])
    save(builder.build(), path)
    return path


@pytest.mark.parametrize("suffix", [".onnx", ".json", ".npz", ".txt", ""])
def test_the_suffix_does_not_matter(tmp_path: Path, suffix: str) -> None:
    onnx_path, json_path = tmp_path / f"a{suffix}", tmp_path / f"b{suffix}"
    onnx_path.write_bytes(small_net().SerializeToString())
    json_path.write_bytes(b"\xef\xbb\xbf\r\n  " + json.dumps(PARTITIONING).encode())
    npz = npz_file(tmp_path / f"c{suffix or '.x'}")
    reports: list[ImportReport] = [read(path).report for path in (onnx_path, json_path, npz)]
    assert [r.format for r in reports] == ["onnx", "dnn-partitioning", "npz"]
    assert [r.ops for r in reports] == [3, 2, 1]
    assert all(len(r.fingerprint) == 64 for r in reports)


def test_options_of_onnx_are_refused_elsewhere(tmp_path: Path) -> None:
    path = npz_file(tmp_path / "g.x")
    for options in (
        {"dims": {"n": 1}},
        {"trust": "declared"},
        {"shapes": {"x": (1,)}},
        {"costs": {"Relu": 1}},
    ):
        with pytest.raises(ImportFailedError, match=f"{next(iter(options))} is given .* no ONNX model"):
            read(path, **options)
    assert read(path, dims={}, subgraphs="inline", strict=True).graph.num_ops == 1
    with pytest.raises(UnknownIdError, match="did you mean opaque"):
        read(path, subgraphs="opaq")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"{}", "no dnn-partitioning|maxFPGAs|lacks"),
        (b"PK\x03\x04 and no more", "not a readable opgym graph"),
    ],
)
def test_files_that_only_begin_well(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(ImportFailedError, match=message):
        read(path)


def test_unreadable_paths(tmp_path: Path) -> None:
    with pytest.raises(ImportFailedError, match="no such file"):
        read(tmp_path / "absent")
    with pytest.raises(ImportFailedError, match="is a folder"):
        read(tmp_path)
    with pytest.raises(ImportFailedError, match="cannot be read"):
        read("a\0b")


def test_the_package_and_its_datasets_load_no_onnx() -> None:
    code = (
        "import sys, opgym, opgym.datasets, opgym.graphs.readers as r; r.read; opgym.datasets.ids(); "
        "print(sorted(m for m in sys.modules if m.split('.')[0] in ('onnx', 'torch', 'networkx', 'google')))"
    )
    environment = {**os.environ, "PYTHONSAFEPATH": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    )
    assert done.stdout.strip() == "[]"
