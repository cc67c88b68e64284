"""Whether the files of a zoo are what its manifest says, down to the last figure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ...errors import OpgymError
from ...graphs import Graph
from .manifest import MANIFEST, Entry, Manifest, read_graph
from .splits import twin_groups
from .topology import kind_shares, topology_hash


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
    """Reads every graph of a zoo and recomputes checksums, fingerprints, topologies, counts and groups.

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
    shares = []
    for i, name in enumerate(sorted(manifest.entries), 1):
        entry = manifest.entries[name]
        try:
            graph = read_graph(folder, entry)
        except OpgymError as error:
            findings.append(Finding(entry.file, str(error)))
        else:
            findings += [Finding(entry.file, problem) for problem in _problems(graph, entry)]
            shares.append((entry.family, (entry.level, entry.trains), kind_shares(graph)))
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
    return findings + _split_findings(manifest, twin_groups(shares))


def _split_findings(manifest: Manifest, groups: Mapping[str, str]) -> list[Finding]:
    """What is wrong with groups of twins, and splits that divide one."""
    findings = []
    splits: dict[str, str] = {}
    for name in sorted(manifest.entries):
        entry = manifest.entries[name]
        group = groups.get(entry.family, entry.group)
        if group != entry.group:
            findings.append(Finding(entry.file, f"group is {group}; the manifest says {entry.group}"))
        split = splits.setdefault(entry.group, entry.split)
        if split != entry.split:
            findings.append(
                Finding(entry.file, f"is in {entry.split}, others of group {entry.group} in {split}")
            )
    return findings


def _problems(graph: Graph, entry: Entry) -> list[str]:
    found = {
        "fingerprint": graph.fingerprint,
        "topology": topology_hash(graph),
        "ops": graph.num_ops,
        "tensors": graph.num_tensors,
        "level": graph.level,
    }
    return [
        f"{key} is {value}; the manifest says {getattr(entry, key)}"
        for key, value in found.items()
        if value != getattr(entry, key)
    ]
