"""What the bytes of a graph depend on: the code that defines and traces it, and the packages under that."""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import sys
from collections.abc import Iterator
from functools import cache
from importlib import metadata
from pathlib import Path

from .registry import MODELS, Definition

#: Code that every graph goes through, relative to the package.
_COMMON = (
    "graphs/graph.py", "graphs/builder.py", "graphs/dtypes.py", "graphs/storage.py", "graphs/packing.py",
    "graphs/name_columns.py",
)  # fmt: skip
#: The reader of the graphs of each source, and the package that makes what it reads; torch's, if not told.
_READERS = {"jax": ("graphs/readers/hlo", "jaxlib")}
_TORCH = ("graphs/readers/torch", "torch")


def source_digest(definition: Definition) -> str:
    """sha256 of everything that a definition's graphs are made from, as far as it can be known."""
    digest = hashlib.sha256(_common_digest(*_READERS.get(definition.source, _TORCH)).encode())
    for file in sorted(_modules(definition.function.__module__)):
        digest.update(file.read_bytes())
    if definition.source != "own":
        digest.update(f"{definition.source} {_version(definition.source)}".encode())
    return digest.hexdigest()


@cache
def _common_digest(reader: str, tracer: str) -> str:
    digest = hashlib.sha256(f"{tracer} {_version(tracer)}".encode())
    package = Path(__file__).parents[2]
    for name in (*_COMMON, reader):
        path = package / name
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            digest.update(file.read_bytes())
    return digest.hexdigest()


def _modules(name: str) -> set[Path]:
    """The file of a module of definitions, and those of the modules among them that it imports."""
    found: dict[str, Path] = {}
    waiting = [name]
    while waiting:
        module = waiting.pop()
        file = _file(module)
        if module in found or file is None:
            continue
        found[module] = file
        waiting += [target for target in _imports(module, file) if target.startswith(f"{MODELS}.")]
    return set(found.values())


def _imports(module: str, file: Path) -> Iterator[str]:
    """Dotted names that a module imports, relative ones resolved."""
    package = module.split(".") if file.name == "__init__.py" else module.split(".")[:-1]
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            base = [*base, *(node.module.split(".") if node.module else [])]
            yield ".".join(base)
            yield from (".".join([*base, alias.name]) for alias in node.names)


def _file(module: str) -> Path | None:
    loaded = sys.modules.get(module)
    if loaded is not None and getattr(loaded, "__file__", None):
        return Path(str(loaded.__file__))
    try:
        spec = importlib.util.find_spec(module)
    except ImportError:  # a name inside a module
        return None
    return Path(spec.origin) if spec is not None and spec.origin else None


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"
