"""``opgym info``: what a bug report should say about the installation."""

from __future__ import annotations

import os
import platform
import re
import sys
from importlib import metadata
from typing import Any

from .console import new_table, print_json, show
from .problem import JsonOption

_REQUIREMENT = re.compile(r"\s*(?P<name>[A-Za-z0-9][\w.-]*)\s*(\[[^\]]*\])?(?P<rest>.*)")
_EXTRA = re.compile(r"extra\s*==\s*['\"](?P<extra>[^'\"]+)['\"]")


def info(as_json: JsonOption = False) -> None:
    """Print versions of everything that matters, for bug reports.

    Example:

    ```sh
    opgym info --json
    ```
    """
    facts = installation()
    if as_json:
        print_json(facts)
        return
    from rich.table import Table

    grid = Table.grid(padding=(0, 2))
    for key in ("opgym", "python", "platform", "cpus", "core", "compiler", "location"):
        grid.add_row(key, str(facts[key]) if facts[key] is not None else "unknown")
    show(grid)
    packages = new_table({"package": "left", "version": "left", "needed by": "left"})
    for package in facts["packages"]:
        version = package["version"] or "not installed"
        packages.add_row(
            package["name"], version, package["extra"] or "opgym", style="" if package["version"] else "dim"
        )
    show(packages)


def installation() -> dict[str, Any]:
    """Versions and build facts as plain data.

    Returns:
        ``opgym``, ``python``, ``platform``, ``cpus`` (those this process may use), ``location``, ``core``
        (the extension module's file), ``compiler`` (what built it, where it says so), and ``packages``:
        name, version (``None``: not installed) and the extra that brings it (``None``: always needed).
    """
    import opgym

    from .. import _core

    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {
        "opgym": opgym.__version__,
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "platform": platform.platform(),
        "cpus": usable,
        "location": os.path.dirname(opgym.__file__),
        "core": os.path.basename(_core.__file__ or ""),
        "compiler": getattr(_core, "build", None) or _compiler_comment(_core.__file__),
        "packages": _packages(),
    }


def _packages() -> list[dict[str, str | None]]:
    """The requirements of the installed distribution, each once, extras after what is always needed."""
    rows: dict[str, dict[str, str | None]] = {}
    for requirement in metadata.requires("opgym") or []:
        match = _REQUIREMENT.fullmatch(requirement)
        if match is None or match["name"].lower() == "opgym":
            continue
        extra = _EXTRA.search(match["rest"])
        name = match["name"]
        try:
            version: str | None = metadata.version(name)
        except metadata.PackageNotFoundError:
            version = None
        rows.setdefault(name, {"name": name, "version": version, "extra": extra["extra"] if extra else None})
    return sorted(rows.values(), key=lambda row: (row["extra"] or "", row["name"] or ""))


def _compiler_comment(path: str | None) -> str | None:
    """What the compiler wrote about itself into the extension module (section ``.comment``), if it did."""
    if path is None or sys.platform != "linux":
        return None
    with open(path, "rb") as file:
        found = re.search(rb"(GCC: \([^)]*\) [\d.]+|clang version [\w.+~-]+)", file.read())
    return found.group().decode() if found else None
