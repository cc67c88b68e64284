"""Trainings in folders of their own, by a learner that some other package brings (``installed/``)."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from opgym.agents import registry

INSTALLED = Path(__file__).with_name("installed")
#: A training of a tenth of a second.
GUESS = (
    "agent=guess",
    "problem=tiny",
    "trainer.steps=60",
    "trainer.checkpoint_steps=10",
    "trainer.evaluations=1",
    "logger=jsonl",
)
COMMAND = [sys.executable, "-P", "-m", "opgym", "train"]
#: As the program would be where this test runs in the background, and so ignores interrupts.
HEARING = [
    sys.executable,
    "-P",
    "-c",
    "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler);"
    "from opgym.cli import main; sys.exit(main())",
    "train",
]


def environment(**more: str) -> dict[str, str]:
    """Of a process in which the learner is installed."""
    path = os.pathsep.join(filter(None, (str(INSTALLED), os.environ.get("PYTHONPATH"))))
    return {**os.environ, "PYTHONPATH": path, **more}


def process(folder: Path, *arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """Runs ``opgym train`` in a folder."""
    return subprocess.run(
        [*COMMAND, *arguments],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=120,
        **options,
    )


@pytest.fixture
def guess(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The learner is installed in this process, and in those that it starts."""
    monkeypatch.syspath_prepend(str(INSTALLED))
    monkeypatch.setenv("PYTHONPATH", environment()["PYTHONPATH"])
    registry._load_all.cache_clear()
    registry._load_all()
    _forget_names()
    yield
    registry._registry.pop("guess", None)
    _forget_names()


def _forget_names() -> None:
    from opgym.runs.hydra_app import groups

    groups._register_names.cache_clear()


Train = Callable[..., Any]


@pytest.fixture
def train(guess: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Train:
    """Runs ``opgym train`` within this process, in an empty folder; returns typer's result."""
    from typer.testing import CliRunner

    from opgym.cli.app import app

    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> Any:
        result = CliRunner().invoke(app, ["train", *arguments])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return run


def results(folder: Path) -> dict[str, dict[str, Any]]:
    """``result.json`` of every run below a folder, without seconds."""
    found = {}
    for path in sorted(folder.glob("*/result.json")):
        found[path.parent.name] = json.loads(path.read_text())
        del found[path.parent.name]["seconds"]
    return found


def metrics(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """``metrics.jsonl`` of every run below a folder, without what the clock has a part in."""
    from opgym.agents.metrics import METRICS

    timed = {metric.name for metric in METRICS if metric.timed} | {"seconds"}
    found = {}
    for path in sorted(folder.glob("*/metrics.jsonl")):
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        found[path.parent.name] = [{k: v for k, v in line.items() if k not in timed} for line in lines]
    return found
