"""What holds for every command: help, versions, exit codes, signals, pipes and full disks."""

import json
import os
import re
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from opgym.errors import ExecutionFailedError, InvalidRunError, RunInUseError

from .conftest import Run

COMMANDS = (
    ("place",),
    ("schedule",),
    ("train",),
    ("check",),
    ("import",),
    ("solvers",),
    ("datasets", "list"),
    ("datasets", "suites"),
    ("datasets", "show"),
    ("datasets", "stats"),
    ("datasets", "verify"),
    ("datasets", "build"),
    ("benchmark", "simulator"),
    ("benchmark", "envs"),
    ("info",),
)
PYTHON = [sys.executable, "-m", "opgym"]


def process(*args: object, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*PYTHON, *map(str, args)], capture_output=True, text=True, timeout=60, **options)


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_help_teaches_with_an_example(command: tuple[str, ...], opgym: Run) -> None:
    result = opgym(*command, "--help")
    assert result.exit_code == 0
    assert f"opgym {' '.join(command)}" in result.stdout
    assert "Example" in result.stdout
    assert "--json" in result.stdout
    assert opgym(*command, "-h").stdout == result.stdout


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_the_root_help_names_every_command(command: tuple[str, ...], opgym: Run) -> None:
    assert re.search(rf"^│ {command[0]} ", opgym("--help").stdout, re.MULTILINE)


def test_version(opgym: Run) -> None:
    assert opgym("--version").stdout == f"opgym {version('opgym')}\n"


def test_module_and_console_script_are_the_same_program() -> None:
    assert process("--version").stdout == f"opgym {version('opgym')}\n"
    script = Path(sys.executable).with_name("opgym")
    if not script.exists():
        pytest.skip("the package is not installed with its script")
    done = subprocess.run([script, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"opgym {version('opgym')}\n"


def test_the_command_line_starts_without_heavy_packages() -> None:
    program = """
import sys
import opgym.cli.app
heavy = ("torch", "matplotlib", "onnx", "scipy", "stable_baselines3", "rich.table")
print(*(name for name in heavy if name in sys.modules))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("plaice",), "No such command 'plaice'. Did you mean 'place'?"),
        (("place",), "Missing argument 'MODEL'"),
        (("place", "m", "--nothing"), "No such option: --nothing"),
        (("place", "m", "--seconds", "soon"), "'--seconds'"),
        (("place", "m", "--seconds", "-1"), "'--seconds'"),
        (("place", "m", "--evaluations", "0"), "'--evaluations'"),
        (("place", "m", "--seed", "-1"), "'--seed'"),
        (("schedule",), "Missing argument 'MODEL'"),
        (("schedule", "m", "--evaluations", "0"), "'--evaluations'"),
        (("check", "m"), "Missing argument 'SOLUTION'"),
        (("datasets", "lst"), "Did you mean 'list'?"),
    ],
)
def test_bad_usage(args: tuple[str, ...], message: str, refused: Callable[..., str]) -> None:
    assert message in refused(*args)


def test_errors_are_no_tracebacks_in_a_real_process(tmp_path: Path) -> None:
    done = process("place", tmp_path / "absent.onnx", "--json")
    assert (done.returncode, done.stdout) == (2, "")
    assert "absent.onnx" in done.stderr
    assert "Traceback" not in done.stderr


#: The same where this process ignores interrupts, as a job in the background does.
HEARING = [
    sys.executable,
    "-c",
    "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler);"
    "from opgym.cli import main; sys.exit(main())",
]


@pytest.mark.skipif(
    not Path("/proc/self/maps").exists(), reason="the system does not tell what a process loads"
)
def test_interrupt_is_a_message_and_130(tmp_path: Path) -> None:
    out = tmp_path / "solution.json"
    arguments = ["place", "example/rnn-train", "--solver", "annealing", "--seconds", "100", "--out", str(out)]
    running = subprocess.Popen(
        [*HEARING, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    maps = Path(f"/proc/{running.pid}/maps")
    deadline = time.monotonic() + 30
    while "pymetis" not in maps.read_text() and time.monotonic() < deadline:
        time.sleep(0.1)  # the solver partitions the graph first: then it runs
    time.sleep(0.5)
    assert running.poll() is None
    running.send_signal(signal.SIGINT)
    stdout, stderr = running.communicate(timeout=20)
    assert (running.returncode, stdout) == (130, "")
    assert "interrupted" in stderr
    assert "Traceback" not in stderr
    assert list(tmp_path.iterdir()) == []


def test_a_closed_pipe_is_quiet() -> None:
    running = subprocess.Popen(
        [*PYTHON, "solvers"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert running.stdout is not None
    assert running.stderr is not None
    running.stdout.close()
    assert running.stderr.read() == ""
    assert running.wait(timeout=30) == 141


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_closed_stream_is_one_that_goes_nowhere(closed: str, tmp_path: Path) -> None:
    """Without one of its own, a stream's number would go to the next file that is opened."""
    out = tmp_path / "solution.json"
    command = [*PYTHON, "place", "example/two-branch", "--solver", "single", "--out", str(out)]
    done = subprocess.run(
        ["sh", "-c", f'"$@" {closed}', "sh", *command], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert (">&-" in closed.replace("2>&-", "")) == (done.stdout == "")
    assert json.loads(out.read_text())


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="the system has no /dev/full")
def test_a_full_disk_under_stdout_is_a_message() -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run([*PYTHON, "solvers", "--json"], stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1
    assert "No space left on device" in done.stderr
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


def test_a_file_that_cannot_be_finished_leaves_nothing(tmp_path: Path) -> None:
    """As on a full disk: the process may write files of at most 64 bytes."""
    old = tmp_path / "solution.json"
    old.write_text("old")

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64))

    done = process(
        "place", "example/rnn-train", "--solver", "single", "--out", old, "--json",
        preexec_fn=limit, env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"},
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (1, "")
    assert "File too large" in done.stderr
    assert old.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["solution.json"]


def test_a_read_only_home_and_working_folder_do_not_matter() -> None:
    """Every solver, in a real process: libraries that print below Python would spoil the JSON."""
    nowhere = {"HOME": "/nonexistent", "XDG_CACHE_HOME": "/nonexistent", "TMPDIR": "/nonexistent"}
    command = ("place", "example/rnn-train", "--evaluations", 20, "--json")
    done = process(*command, env=os.environ | nowhere, cwd="/proc")
    assert done.returncode == 0, done.stderr
    solvers = {row["solver"] for row in json.loads(done.stdout)}
    assert {"single", "metis", "m-etf", "m-sct", "annealing"} <= solvers


def test_output_without_unicode_is_possible() -> None:
    done = process("solvers", env=os.environ | {"PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0, done.stderr
    assert "m-etf" in done.stdout


@pytest.mark.parametrize(
    ("error", "code"),
    [(RunInUseError, 2), (InvalidRunError, 2), (ExecutionFailedError, 1)],
)
@pytest.mark.parametrize(
    ("command", "function"),
    [
        ("train", "opgym.runs.hydra_app.run_app"),
        ("evaluate", "opgym.runs.hydra_app.run_app"),
        ("reproduce step-time-truth", "opgym.runs.reproduce.step_time_truth.run"),
    ],
)
def test_an_error_has_one_exit_code_in_all_commands(
    opgym: Run,
    monkeypatch: pytest.MonkeyPatch,
    command: str,
    function: str,
    error: type[Exception],
    code: int,
) -> None:
    def fail(*arguments: object, **options: object) -> None:
        raise error("what went wrong")

    monkeypatch.setattr(function, fail)
    result = opgym(*command.split())
    assert (result.exit_code, result.stdout) == (code, "")
    assert result.stderr == "error: what went wrong\n"


@pytest.mark.parametrize("command", ["", "place", "train", "evaluate", "reproduce regal", "datasets list"])
def test_help_is_text_on_stdout_with_json_too(opgym: Run, command: str) -> None:
    result = opgym(*command.split(), *(["--json"] if command else []), "--help")
    assert (result.exit_code, result.stderr) == (0, "")
    assert "Usage: " in result.stdout
