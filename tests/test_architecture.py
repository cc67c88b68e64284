"""The house rules that a machine can check: imports run downwards, importing stays light, no leftovers."""

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "opgym"

#: The floor of every room and of every module that lies directly in the package; "" is the package itself,
#: whose import registers the environments.
FLOORS = {
    "_core": 0, "errors": 0, "outcome": 0, "statistics": 0,
    "graphs": 1, "kernels": 1,
    "problems": 2,
    "datasets": 3,
    "envs": 4,
    "agents": 5, "leaderboards": 5,
    "conf": 6,  # settings of agents, which reproductions run
    "benchmark": 7, "runs": 7,
    "": 8,
    "cli": 9,
    "__main__": 10,
}  # fmt: skip


def modules() -> Iterator[tuple[str, Path]]:
    """Dotted name and file of every module of the package, rooms through their links."""
    for entry in sorted(PACKAGE.iterdir()):
        files = sorted(entry.rglob("*.py")) if entry.is_dir() else [entry] if entry.suffix == ".py" else []
        for file in files:
            parts = file.relative_to(PACKAGE).with_suffix("").parts
            yield ".".join(("opgym", *(p for p in parts if p != "__init__"))), file


def imports(name: str, source: str, *, is_package: bool) -> Iterator[tuple[int, str]]:
    """(line, dotted name) of everything that a module imports, also within functions and for types only."""
    package = name.split(".") if is_package else name.split(".")[:-1]
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            base = [*base, *(node.module.split(".") if node.module else [])]
            yield from ((node.lineno, ".".join([*base, alias.name])) for alias in node.names)


def room(name: str) -> str:
    """The room (or module at the top of the package) of a dotted name; empty for the package itself."""
    below = name.split(".")[1:]
    return "" if not below or below[0] == "__version__" else below[0]


def upward_imports(name: str, source: str, *, is_package: bool) -> list[str]:
    """Imports of a module that run upwards or sideways."""
    own = room(name)
    found = []
    for line, target in imports(name, source, is_package=is_package):
        if target.split(".")[0] != "opgym" or room(target) == own:
            continue
        floor = FLOORS.get(room(target))
        if floor is None or floor >= FLOORS[own]:
            found.append(f"{name}:{line} ({own}, floor {FLOORS[own]}) imports {target} (floor {floor})")
    return found


MODULES = list(modules())


def test_every_room_has_a_floor():
    tops = {room(name) for name, _ in MODULES} - {""}
    assert {"graphs", "problems", "datasets", "envs", "agents", "cli"} <= tops
    assert tops <= FLOORS.keys()


def test_imports_run_downwards_only():
    found = []
    for name, file in MODULES:
        found += upward_imports(name, file.read_text(), is_package=file.name == "__init__.py")
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("name", "source", "upward"),
    [
        ("opgym.leaderboards.score", "from ..agents import make", True),
        ("opgym.leaderboards.score", "def f():\n    from opgym.agents.registry import make", True),
        ("opgym.agents.regal", "from ..leaderboards import score", True),
        ("opgym.graphs.graph", "from ..problems.placement import Placement", True),
        ("opgym.graphs.readers.onnx", "from ...problems import placement", True),
        ("opgym.graphs.readers.onnx", "from ..graph import Graph\nfrom ... import _core, errors", False),
        ("opgym.graphs.graph", "from .. import problems", True),
        ("opgym.graphs.graph", "import opgym.envs", True),
        ("opgym.problems.budget", "if TYPE_CHECKING:\n    from ..agents import Solver", True),
        ("opgym.problems.budget", "from ..graphs import Graph\nimport numpy.typing", False),
        ("opgym.cli.place", "from .. import agents, datasets, envs", False),
        ("opgym.cli.info", "from .. import __version__\nimport opgym", False),
        ("opgym.benchmark.simulator", "import opgym", True),
        ("opgym.__main__", "from opgym.cli import main", False),
        ("opgym.outcome", "from .errors import OpgymError", True),
        ("opgym.envs.env", "from .. import unheard_of", True),
    ],
)
def test_the_check_itself(name, source, upward):
    assert bool(upward_imports(name, source, is_package=False)) == upward


def test_rooms_import_each_other_relatively():
    absolute = [
        f"{name}:{line}"
        for name, file in MODULES
        if (PACKAGE / room(name)).is_symlink()
        for line, target in absolute_imports(file.read_text())
        if target.split(".")[0] == "opgym"
    ]
    assert not absolute


def absolute_imports(source: str) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield node.lineno, node.module or ""


def test_rooms_are_relative_links_to_root_folders():
    links = [entry for entry in PACKAGE.iterdir() if entry.is_symlink()]
    assert {"graphs", "problems", "datasets", "envs", "agents"} <= {entry.name for entry in links}
    for entry in links:
        assert entry.readlink() == Path("..", "..", entry.name)
        assert (ROOT / entry.name / "__init__.py").is_file()


def loaded_after(statement: str) -> set[str]:
    """Top-level modules that are no part of Python, in a fresh process after a statement."""
    script = (
        f"import sys, json\n{statement}\nprint(json.dumps(sorted({{m.split('.')[0] for m in sys.modules}})))"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(json.loads(run.stdout.splitlines()[-1])) - sys.stdlib_module_names


def test_import_opgym_loads_nothing_beyond_numpy_and_gymnasium():
    before = loaded_after("import numpy, numpy.typing, numpy.random, gymnasium")
    loaded = loaded_after("import opgym, gymnasium; assert 'GraphPlacement-v0' in gymnasium.registry")
    heavy = {"torch", "tvm", "wandb", "onnx", "matplotlib", "scipy", "networkx", "pymetis", "typer", "rich",
             "stable_baselines3", "pandas", "jax", "tensorflow"}  # fmt: skip
    assert not loaded & heavy
    assert loaded - before == {"opgym"}


# --- Files --------------------------------------------------------------------------------------------

#: Written apart, so that this file does not find itself.
MARKERS = re.compile(r"\b(" + "|".join(("TO" + "DO", "FIX" + "ME", "XX" + "X")) + r")\b")
MACHINE_PATHS = re.compile(r"(?<![\w./~-])/(?:" + "|".join(("work", "root", "home", "Users")) + r")/\w")


def tracked_texts() -> list[tuple[str, str]]:
    """Every text file under version control."""
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    if listing.returncode:
        pytest.skip("no git checkout: nothing says which files belong to the project")
    texts = []
    for name in filter(None, listing.stdout.decode().split("\0")):
        path = ROOT / name
        if path.is_file() and not path.is_symlink():
            data = path.read_bytes()
            if b"\0" not in data:
                texts.append((name, data.decode("utf-8")))
    return texts


@pytest.mark.parametrize("pattern", [MARKERS, MACHINE_PATHS], ids=["leftover markers", "machine paths"])
def test_tracked_files_hold_no(pattern):
    found = [
        f"{name}:{number}: {line.strip()[:100]}"
        for name, text in tracked_texts()
        for number, line in enumerate(text.splitlines(), 1)
        if pattern.search(line)
    ]
    assert not found, "\n".join(found)


def test_tracked_text_ends_with_a_newline_and_uses_unix_line_ends():
    found = [name for name, text in tracked_texts() if "\r" in text or (text and not text.endswith("\n"))]
    assert not found
