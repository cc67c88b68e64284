"""Whether the files of a zoo are what its manifest says, down to the last figure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ...errors import OpgymError
from .manifest import MANIFEST, Entry, Manifest, read_graph
from .splits import split_of
from .topology import topology_hash


@dataclass(frozen=True)
class Finding:
    """Something that is wrong.

    Attributes:
        file: The file.
        problem: What is wrong with it.
    """

    file: str
    problem: str


def verify(folder: Path, progress: Callable[[int, int, str], None] | None = None) -> list[Finding]:
    """Reads every graph of a zoo and recomputes checksums, fingerprints, topologies, counts and splits.

    Args:
        folder: Of the zoo.
        progress: Called with the number of graphs checked, that of all, and the name of the last.

    Returns:
        What is wrong, by file; empty for a sound zoo.

    Raises:
        InvalidDatasetError: The manifest itself is damaged.
    """
    manifest = Manifest.load(folder / MANIFEST)
    findings = []
    for i, name in enumerate(sorted(manifest.entries), 1):
        entry = manifest.entries[name]
        findings += [Finding(entry.file, problem) for problem in _problems(folder, entry)]
        if progress is not None:
            progress(i, len(manifest.entries), name)
    known = {entry.file for entry in manifest.entries.values()} | {MANIFEST}
    for path in sorted(folder.iterdir()):
        if path.name not in known:
            findings.append(Finding(path.name, "is not in the manifest"))
    by_topology: dict[str, str] = {}
    for name in sorted(manifest.entries):
        entry = manifest.entries[name]
        other = by_topology.setdefault(entry.topology, name)
        if other != name and not (entry.workload or manifest.entries[other].workload):
            findings.append(Finding(entry.file, f"has the topology of {other}"))
    return findings


def _problems(folder: Path, entry: Entry) -> list[str]:
    try:
        graph = read_graph(folder, entry)
    except OpgymError as error:
        return [str(error)]
    found = {
        "fingerprint": graph.fingerprint,
        "topology": topology_hash(graph),
        "ops": graph.num_ops,
        "tensors": graph.num_tensors,
        "level": graph.level,
        "split": split_of(entry.group),
    }
    return [
        f"{key} is {value}; the manifest says {getattr(entry, key)}"
        for key, value in found.items()
        if value != getattr(entry, key)
    ]
