"""Every command and program in README.md runs as it stands there."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import onnx
import onnx.helper as oh
import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", README, re.DOTALL | re.MULTILINE)
LINES = [line for language, text in BLOCKS if language == "sh" for line in text.splitlines() if line]
SHELL = [line.split("  #")[0].strip() for line in LINES]
PROGRAMS = [text for language, text in BLOCKS if language == "python"]
ENVIRONMENT = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}


def model_with_dynamic_batch(path: Path) -> None:
    """A model of one's own, as the README supposes it: input with a dimension named ``batch``."""
    weight = oh.make_tensor("w", onnx.TensorProto.FLOAT, [64, 64], [0.0] * 4096)
    x = oh.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["batch", 64])
    y = oh.make_tensor_value_info("y", onnx.TensorProto.FLOAT, ["batch", 64])
    nodes = [
        oh.make_node("MatMul", ["x", "w"], ["h"], name="a"),
        oh.make_node("Relu", ["h"], ["y"], name="b"),
    ]
    graph = oh.make_graph(nodes, "own", [x], [y], [weight])
    onnx.save(oh.make_model(graph, opset_imports=[oh.make_opsetid("", 17)], ir_version=8), path)


def test_readme_has_the_blocks_this_file_runs() -> None:
    assert {language for language, _ in BLOCKS} == {"sh", "python"}
    assert any(line.startswith("opgym place") for line in SHELL)
    assert len(PROGRAMS) >= 2


def test_extras_are_those_of_the_package() -> None:
    table = README[README.index("| command | extras |") :].partition("\n\n")[0]
    rows = [row.strip("| ").split(" | ") for row in table.splitlines()[2:]]
    named = {
        extra for _, needs in rows for text in re.findall("`([^`]*)`", needs) for extra in text.split(",")
    }
    options = {"--plot", "--solver cp-sat", "logger=wandb"}
    known = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert named - options == known.keys() - {"dev", "peers"}
    commands = {command for told, _ in rows for command in re.findall("`([a-z]+)", told)}
    assert {"train", "evaluate", "report", "place", "schedule", "check", "import"} <= commands


@pytest.mark.parametrize("line", [line for line in SHELL if line.startswith("opgym")])
def test_shell_command(line: str, tmp_path: Path) -> None:
    model_with_dynamic_batch(tmp_path / "model.onnx")
    done = subprocess.run(line, shell=True, cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for picture in re.findall(r"--plot (\S+)", line):
        assert (tmp_path / picture).read_text().startswith("<?xml")
    if "--exact" in line:  # the README says what comes out
        assert "order of the program, 2.97 MiB." in done.stdout
        assert "at least 2.75 MiB (proven by" in done.stdout


@pytest.mark.parametrize("program", PROGRAMS, ids=range(len(PROGRAMS)))
def test_program(program: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_make_demo_leaves_what_it_promises(tmp_path: Path) -> None:
    """`make demo` with a second per model, in the environment that runs this test."""
    bin_folder = Path(sys.executable).parent
    done = subprocess.run(
        ["make", "demo", f"BIN={bin_folder}", f"OUT={tmp_path}", "DEMO_SECONDS=1", "-o", ".venv/installed-demo"],
        cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    for model in ("inception_v2", "densenet121"):
        for suffix in (".txt", ".svg", ".trace.json", ".solution.json"):
            assert (tmp_path / f"{model}{suffix}").stat().st_size > 500, suffix
        assert list((tmp_path / f"{model}.export").glob("*.onnx"))
    for suffix in (".txt", ".svg", ".order.json", ".reordered.onnx"):
        assert (tmp_path / f"shufflenet{suffix}").stat().st_size > 500, suffix
    assert "Nothing can be better: proven by" in (tmp_path / "shufflenet.txt").read_text()


def test_make_test_is_what_ci_runs() -> None:
    assert "make test" in (ROOT / ".ci" / "run").read_text()
    assert "make test" in SHELL
