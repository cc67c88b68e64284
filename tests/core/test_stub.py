"""The checked-in stub of the core is what nanobind says of the extension that is installed."""

import subprocess
import sys
from pathlib import Path

import pytest

STUB = Path(__file__).parents[2] / "src" / "opgym" / "_core.pyi"


def test_the_stub_is_fresh(tmp_path: Path) -> None:
    pytest.importorskip("nanobind", reason="nanobind, which prints stubs, is not installed")
    out = tmp_path / "_core.pyi"
    subprocess.run(
        [sys.executable, "-m", "nanobind.stubgen", "-m", "opgym._core", "-o", str(out)],
        check=True,
        cwd=tmp_path,
    )
    assert out.read_text() == STUB.read_text(), (
        "python -m nanobind.stubgen -m opgym._core -o src/opgym/_core.pyi"
    )
