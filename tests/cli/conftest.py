"""Small models of every format, and a way to run commands inside the process."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.helper as oh
import onnx.numpy_helper as onh
import pytest
from typer.testing import CliRunner, Result

from opgym.cli.app import app

Run = Callable[..., Result]


@pytest.fixture
def opgym() -> Run:
    """Runs a command line; anything but a clean exit fails the test with its traceback."""

    def run(*args: object) -> Result:
        result = CliRunner().invoke(app, [str(arg) for arg in args])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return run


@pytest.fixture
def refused(opgym: Run) -> Callable[..., str]:
    """Runs a command that must be refused: exit code 2, nothing on stdout; returns the message."""

    def run(*args: object) -> str:
        result = opgym(*args)
        assert result.exit_code == 2, result.output
        assert result.stdout == ""
        assert "Traceback" not in result.stderr
        return " ".join(result.stderr.split())

    return run


@pytest.fixture
def rows(opgym: Run) -> Callable[..., Any]:
    """Runs a command with --json and returns the document; NaN and infinities are no JSON."""

    def run(*args: object) -> Any:
        result = opgym(*args, "--json")
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout, parse_constant=pytest.fail)

    return run


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """Four branches of three layers each, joined at the end; the batch is dynamic and named."""
    nodes, weights = [], []
    for branch in range(4):
        source = "x"
        for layer in range(3):
            name = f"b{branch}_{layer}"
            weights.append(onh.from_array(np.zeros((256, 256), np.float32), f"w_{name}"))
            nodes.append(oh.make_node("MatMul", [source, f"w_{name}"], [f"h_{name}"], name=f"matmul_{name}"))
            nodes.append(oh.make_node("Relu", [f"h_{name}"], [f"r_{name}"], name=f"relu_{name}"))
            source = f"r_{name}"
    nodes.append(oh.make_node("Sum", [f"r_b{b}_2" for b in range(4)], ["y"], name="sum"))
    x, y = (oh.make_tensor_value_info(n, onnx.TensorProto.FLOAT, ["batch", 256]) for n in "xy")
    graph = oh.make_graph(nodes, "branches", [x], [y], weights)
    path = tmp_path / "branches.onnx"
    onnx.save(oh.make_model(graph, opset_imports=[oh.make_opsetid("", 17)], ir_version=8), path)
    return path


@pytest.fixture
def published(tmp_path: Path) -> Path:
    """A chain of six nodes in the format of dnn-partitioning: two accelerators, one CPU."""
    nodes = [
        {"id": i, "name": f"n{i}", "supportedOnFpga": 1, "cpuLatency": 100.0, "fpgaLatency": 2.0 + i,
         "isBackwardNode": 0, "size": 1000.0}
        for i in range(6)
    ]  # fmt: skip
    edges = [{"sourceId": i, "destId": i + 1, "cost": 0.5} for i in range(5)]
    path = tmp_path / "published.json"
    top = {"maxSizePerFPGA": 1e6, "maxFPGAs": 2, "maxCPUs": 1, "nodes": nodes, "edges": edges}
    path.write_text(json.dumps(top))
    return path


@pytest.fixture
def split(tmp_path: Path) -> Path:
    """Nodes 0 to 3 of ``published`` on one accelerator, 4 and 5 on the other."""
    path = tmp_path / "split.json"
    path.write_text(json.dumps({"fpgas": [{"nodes": [0, 1, 2, 3]}, {"nodes": [4, 5]}], "cpus": []}))
    return path
