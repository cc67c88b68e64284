"""From built graphs to a zoo: the rules are applied, files are copied, the manifest is written."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ...errors import ImportFailedError, InvalidDatasetError
from ...graphs import Graph
from ...graphs.atomic import atomic_write
from ...graphs.storage import from_bytes
from .build import built_with, read_record
from .manifest import MANIFEST, Dropped, Entry, Manifest
from .registry import Variant
from .selection import Candidate, select
from .splits import assign_splits, splits_of_groups, twin_groups
from .topology import Likeness

_MOST_BATCH = 2**31 - 1


@dataclass(frozen=True)
class _Built:
    variant: Variant
    sha256: str
    fingerprint: str
    tensors: int
    level: str


def assemble(
    out: Path,
    known: Mapping[str, Variant],
    *,
    dataset_version: int | None = None,
    shipped: Manifest | None = None,
    progress: Callable[[int, int, str], None] | None = None,
) -> Manifest:
    """Makes ``out/zoo`` of the graphs in ``out/candidates``.

    Args:
        out: Folder of a build.
        known: What the definitions offer; other candidates are left alone.
        dataset_version: Of the new manifest; by default that of ``shipped``, plus one if a graph of it has
            gone or has other bytes. Version 1 is the first, and makes all splits anew.
        shipped: What has been released; its families keep their splits.
        progress: Called with the number of graphs looked at, that of all, and the name of the last.

    Raises:
        InvalidDatasetError: Nothing has been built, or a configuration is no plain JSON.
        OSError: The folder cannot be written.
    """
    candidates = []
    for i, variant in enumerate(known.values(), 1):
        candidate = _candidate(out / "candidates", variant)
        if candidate is not None:
            candidates.append(candidate)
        if progress is not None:
            progress(i, len(known), variant.name)
    if not candidates:
        raise InvalidDatasetError(f"{out}: no graph has been built there")
    kept, why = select(candidates)
    groups = twin_groups((c.family, (c.key.level, c.name.endswith("-train")), c.likeness.kinds) for c in kept)
    first = shipped is None or dataset_version == 1
    released = {} if first or shipped is None else {e.family: e.split for e in shipped.entries.values()}
    splits = assign_splits(
        Counter(groups[c.family] for c in kept),
        {groups[c.family] for c in kept if c.workload},
        splits_of_groups(released, groups),
    )
    entries = {}
    for candidate in kept:
        group = groups[candidate.family]
        entries[candidate.name] = _entry(candidate, group, splits[group])
    dropped = tuple(
        Dropped(c.name, c.family, c.likeness.ops, why[c.name])
        for c in sorted(candidates, key=lambda c: c.name)
        if c.name in why
    )
    if dataset_version is None:
        dataset_version = _next_version(shipped, entries)
    sources = {entry.source for entry in entries.values()}
    manifest = Manifest(entries, dropped, built_with(sources), dataset_version)
    _write(out, manifest)
    return manifest


def _candidate(folder: Path, variant: Variant) -> Candidate[_Built] | None:
    record = read_record(folder, variant.name)
    if record is None:
        return None
    path = folder / f"{variant.name}.npz"
    try:
        graph: Graph = from_bytes(path.read_bytes(), str(path))
    except ImportFailedError as error:
        raise InvalidDatasetError(f"{variant.name} was built and cannot be read back: {error}") from error
    built = _Built(variant, record["sha256"], graph.fingerprint, graph.num_tensors, graph.level)
    definition = variant.definition
    return Candidate(built, variant.name, definition.family, definition.workload, Likeness.of(graph))


def _entry(candidate: Candidate[_Built], group: str, split: str) -> Entry:
    built, definition = candidate.key, candidate.key.variant.definition
    configuration = dict(built.variant.configuration)
    batch = configuration.pop("batch", None)
    if batch is not None and not (type(batch) is int and 1 <= batch <= _MOST_BATCH):
        raise InvalidDatasetError(f"{candidate.name} has batch = {batch!r}; expected a whole number above 0")
    try:
        configuration = json.loads(json.dumps(configuration, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise InvalidDatasetError(f"{candidate.name} has a configuration that is no JSON: {error}") from error
    return Entry(
        name=candidate.name,
        sha256=built.sha256,
        fingerprint=built.fingerprint,
        topology=candidate.likeness.topology,
        ops=candidate.likeness.ops,
        tensors=built.tensors,
        level=built.level,
        family=definition.family,
        group=group,
        split=split,
        workload=definition.workload,
        source=definition.source,
        licence=definition.licence,
        reference=definition.reference,
        batch=batch,
        configuration=configuration,
    )


def _next_version(shipped: Manifest | None, entries: Mapping[str, Entry]) -> int:
    if shipped is None:
        return 1
    same = all(
        name in entries and entries[name].sha256 == old.sha256 for name, old in shipped.entries.items()
    )
    return shipped.dataset_version + (not same)


def _write(out: Path, manifest: Manifest) -> None:
    """Copies the files, writes the manifest, and only then removes files of the one before."""
    folder = out / "zoo"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / MANIFEST
    before = Manifest.load(path).entries if path.exists() else {}
    for entry in manifest.entries.values():
        target = folder / entry.file
        if target.exists() and hashlib.sha256(target.read_bytes()).hexdigest() == entry.sha256:
            continue
        with atomic_write(target) as file:
            file.write((out / "candidates" / entry.file).read_bytes())
    manifest.save(path)
    for name, entry in before.items():
        if name not in manifest.entries:
            (folder / entry.file).unlink(missing_ok=True)
