"""The zoo in figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from statistics import median
from typing import Any

from .manifest import Manifest


def statistics(manifest: Manifest, folder: Path) -> dict[str, Any]:
    """Counts, as plain data; see ``opgym datasets stats``."""
    entries = [manifest.entries[name] for name in sorted(manifest.entries)]
    ops = [entry.ops for entry in entries] or [0]
    families: dict[str, dict[str, Any]] = {}
    for entry in sorted(entries, key=lambda entry: entry.family):
        row = families.setdefault(
            entry.family,
            {"graphs": 0, "least": entry.ops, "most": 0, "split": entry.split, "group": entry.group},
        )
        row["graphs"] += 1
        row["least"], row["most"] = min(row["least"], entry.ops), max(row["most"], entry.ops)
    return {
        "graphs": len(entries),
        "topologies": len({entry.topology for entry in entries}),
        "families": len(families),
        "groups": len({entry.group for entry in entries}),
        "ops": {"least": min(ops), "median": round(median(ops)), "most": max(ops), "all": sum(ops)},
        "bytes": sum((folder / entry.file).stat().st_size for entry in entries),
        "dataset_version": manifest.dataset_version,
        "built_with": dict(manifest.built_with or {}),
        "by_family": families,
        "by_level": _counts(entry.level for entry in entries),
        "by_source": _counts(entry.source for entry in entries),
        "by_split": _counts(entry.split for entry in entries),
        "by_mode": _counts("train" if entry.trains else "infer" for entry in entries),
        "dropped": _counts(row.rule for row in manifest.dropped),
    }


def _counts(values: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(values).items()))
