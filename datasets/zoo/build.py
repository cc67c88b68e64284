"""From definitions to files: every graph is built in a process of its own, which may fail or hang by itself.

A folder keeps what has been built, so that a build that was interrupted goes on where it stopped: ``candidates/`` has
each graph with a record of what it was made from, and is built anew when that changes; ``zoo/`` has the graphs that the
rules of :mod:`.selection` let in, with their manifest.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import signal
import time
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from ...errors import InvalidDatasetError, MissingExtraError, OpgymError, unknown_id
from ...graphs.atomic import atomic_write, write_text
from ...graphs.closed_json import Row, read_json
from ...graphs.storage import VERSION as GRAPH_VERSION
from ...graphs.storage import to_bytes
from .registry import MODELS, Variant, variants
from .sources import source_digest

RECORD_FORMAT, RECORD_VERSION = "opgym.zoo_candidate", 1
DEFAULT_SECONDS = 900.0
_POLL_SECONDS = 0.05
#: Compilers that have a version of their own, by the source whose programs they compile.
_COMPILERS = {"jax": "jaxlib"}
#: Modules, by source of the definitions, that load what takes seconds; what has none starts threads, or is unknown.
_LOADED_ONCE = {source: f"{__package__}.loaded_once.{source}" for source in ("own", "timm", "transformers")}

Progress = Callable[[int, int, str], None]


@dataclass(frozen=True)
class Result:
    """What became of one graph.

    Attributes:
        name: Name in the zoo.
        status: ``"built"``, ``"kept"`` (it was there already) or ``"failed"``.
        seconds: How long building took, the first time.
        sha256: Of the file; empty where it failed.
        error: Why it failed; empty otherwise.
    """

    name: str
    status: str
    seconds: float
    sha256: str = ""
    error: str = ""


def offered(origin: str = MODELS) -> dict[str, Variant]:
    """All graphs that the definitions offer.

    Raises:
        InvalidDatasetError: The definitions of ``origin`` cannot be read, or are none.
        MissingExtraError: A package that they need is not installed.
    """
    try:
        return variants(origin)
    except ImportError as error:
        if origin != MODELS:
            raise InvalidDatasetError(f"{origin}: its definitions cannot be imported ({error})") from error
        raise MissingExtraError(
            f"building the zoo needs {error.name or 'a package'} ({error}); pip install 'opgym[zoo]'"
        ) from error


def choose(names: Sequence[str], known: Mapping[str, Variant]) -> list[Variant]:
    """The named graphs (``zoo/`` may stand before a name), or all.

    Raises:
        UnknownIdError: With the nearest names.
    """
    chosen = []
    for name in names:
        bare = name.removeprefix("zoo/")
        if bare not in known:
            raise unknown_id("definition", bare, list(known))
        chosen.append(known[bare])
    return chosen if names else list(known.values())


def build(
    chosen: Iterable[Variant],
    out: Path,
    *,
    origin: str = MODELS,
    workers: int = 1,
    seconds: float = DEFAULT_SECONDS,
    progress: Progress | None = None,
) -> list[Result]:
    """Builds graphs into ``out/candidates``; what is there and up to date is kept.

    Args:
        chosen: What to build.
        out: The folder; it is made.
        origin: Where the definitions are (see ``registry.variants``).
        workers: Processes at the same time.
        seconds: Most seconds for one graph.
        progress: Called with the number of graphs done, that of all, and the name of the last.

    Returns:
        A result for each graph, in the order given; a failure is one of them and stops nothing.

    Raises:
        OSError: The folder cannot be written.
    """
    folder = out / "candidates"
    folder.mkdir(parents=True, exist_ok=True)
    todo = list(chosen)
    results: dict[str, Result] = {}
    waiting: list[tuple[Variant, str]] = []
    for variant in todo:
        digest = source_digest(variant.definition)
        record = read_record(folder, variant.name)
        if record is not None and record["made_from"] == digest:
            results[variant.name] = Result(variant.name, "kept", record["seconds"], record["sha256"])
        else:
            waiting.append((variant, digest))

    def report(name: str) -> None:
        if progress is not None:
            progress(len(results), len(todo), name)

    report("")
    for result in _in_processes(waiting, folder, origin, workers, seconds):
        results[result.name] = result
        report(result.name)
    return [results[variant.name] for variant in todo]


def read_record(folder: Path, name: str) -> dict[str, Any] | None:
    """What is known of a candidate whose file is complete; ``None`` where there is none."""
    path = folder / f"{name}.json"
    if not path.exists():
        return None
    try:
        row = Row(
            read_json(path, InvalidDatasetError, "a record of a built graph"),
            f"{path}:",
            InvalidDatasetError,
            ("format", "version", "name", "made_from", "sha256", "seconds"),
        )
        record = {key: row.text(key) for key in ("format", "name", "made_from", "sha256")}
        seconds = row.number("seconds", 0, 1e9)
        data = (folder / f"{name}.npz").read_bytes()
    except (InvalidDatasetError, OSError):  # half a candidate is none: it is built again
        return None
    if row.get("version") != RECORD_VERSION or hashlib.sha256(data).hexdigest() != record["sha256"]:
        return None
    return {**record, "seconds": seconds}


def built_with(sources: Iterable[str]) -> dict[str, str]:
    """Versions that the bytes depend on: of torch, of the packages that define models, of the file format."""
    versions = {"opgym.graph": str(GRAPH_VERSION)}
    packages = {"torch", *sources}
    packages |= {compiler for source, compiler in _COMPILERS.items() if source in packages}
    for package in sorted(packages - {"own"}):
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return versions


def _in_processes(
    waiting: Sequence[tuple[Variant, str]], folder: Path, origin: str, workers: int, seconds: float
) -> Iterable[Result]:
    """Builds in at most ``workers`` processes at a time, and yields what finishes."""
    context = _context(waiting)
    queue = list(reversed(waiting))
    running: dict[str, tuple[BaseProcess, float]] = {}
    try:
        while queue or running:
            while queue and len(running) < workers:
                variant, digest = queue.pop()
                (folder / f"{variant.name}.failed.json").unlink(missing_ok=True)
                process = context.Process(
                    target=_build_one, args=(origin, variant.name, folder, digest), daemon=True
                )
                process.start()
                running[variant.name] = (process, time.monotonic())
            time.sleep(_POLL_SECONDS)
            for name, (process, start) in list(running.items()):
                elapsed = time.monotonic() - start
                if process.is_alive() and elapsed < seconds:
                    continue
                late = process.is_alive()
                if late:
                    process.kill()
                process.join()
                del running[name]
                yield _outcome(folder, name, process.exitcode, elapsed, seconds if late else None)
    finally:  # also after Ctrl-C
        for process, _ in running.values():
            process.kill()
            process.join()


def _context(waiting: Sequence[tuple[Variant, str]]) -> Any:
    """Processes that start from a clean one which has the definitions' packages loaded, where that exists."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    modules = {variant.definition.function.__module__ for variant, _ in waiting}
    ours = sorted(module for module in modules if module.startswith("opgym."))
    sources = sorted({variant.definition.source for variant, _ in waiting} & _LOADED_ONCE.keys())
    context.set_forkserver_preload([*ours, *(_LOADED_ONCE[source] for source in sources)] if ours else [])
    return context


def _outcome(folder: Path, name: str, exit_code: int | None, elapsed: float, limit: float | None) -> Result:
    """What a process that has ended left behind."""
    record = read_record(folder, name) if exit_code == 0 and limit is None else None
    if record is not None:
        return Result(name, "built", record["seconds"], record["sha256"])
    failed = folder / f"{name}.failed.json"
    if limit is not None:
        error = f"stopped after {limit:g} seconds"
    elif failed.exists():
        error = str(json.loads(failed.read_text(encoding="utf-8"))["error"])
    else:
        error = f"its process ended with exit code {exit_code}" + (
            f" ({signal.Signals(-exit_code).name})" if exit_code is not None and exit_code < 0 else ""
        )
    return Result(name, "failed", elapsed, error=error)


def _build_one(origin: str, name: str, folder: Path, digest: str) -> None:
    """Builds one graph, in a process of its own."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which then ends this one
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    start = time.monotonic()
    try:
        imported = variants(origin)[name].build()
        data = to_bytes(imported.graph)
        with atomic_write(folder / f"{name}.npz") as file:
            file.write(data)
        record = {
            "format": RECORD_FORMAT,
            "version": RECORD_VERSION,
            "name": name,
            "made_from": digest,
            "sha256": hashlib.sha256(data).hexdigest(),
            "seconds": round(time.monotonic() - start, 2),
        }
        write_text(folder / f"{name}.json", json.dumps(record) + "\n")
    except BaseException as error:  # also what a package calls exit() for
        text = str(error) if isinstance(error, OpgymError) else f"{type(error).__name__}: {error}"
        failure = {"name": name, "error": text[:2000], "traceback": traceback.format_exc()}
        write_text(folder / f"{name}.failed.json", json.dumps(failure, indent=1) + "\n")
        raise SystemExit(1) from None
