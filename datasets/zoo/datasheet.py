"""The zoo's datasheet: a table of families for people, and metadata in Croissant for programs.

Reference: Gebru et al. 2021, "Datasheets for datasets"; Akhtar et al. 2024, "Croissant: a metadata format for ML-ready
datasets" (mlcommons.org/croissant/1.0).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .manifest import MANIFEST, Entry, Manifest

_CROISSANT = "http://mlcommons.org/croissant/1.0"
_FIELD_TYPES = {"ops": "sc:Integer", "tensors": "sc:Integer", "batch": "sc:Integer", "workload": "sc:Boolean"}
_FIELDS: Mapping[str, str] = {
    "name": "the id is zoo/<name>",
    "sha256": "of the file <name>.npz",
    "fingerprint": "sha256 of the graph's canonical arrays",
    "topology": "hash of op kinds and edges, sizes ignored",
    "ops": "number of ops",
    "tensors": "number of tensors",
    "level": "what an op is",
    "family": "architecture",
    "group": "first family of its group of twins",
    "split": "train, validation or test; never divides a group",
    "workload": "whether it is a workload of GDP",
    "source": "own, or the package that defines the model",
    "licence": "SPDX identifier of the definition",
    "reference": "paper and configuration",
    "batch": "samples per step",
}


def families_table(manifest: Manifest) -> str:
    """One row for each family, as Markdown."""
    families: dict[str, list[Entry]] = {}
    for entry in manifest.entries.values():
        families.setdefault(entry.family, []).append(entry)
    lines = ["| family | graphs | ops | split | source | licence | from |", "|---|---|---|---|---|---|---|"]
    for family, entries in sorted(families.items()):
        ops = sorted(entry.ops for entry in entries)
        span = f"{ops[0]:,}" if ops[0] == ops[-1] else f"{ops[0]:,}-{ops[-1]:,}"
        references = "; ".join(sorted({entry.reference.replace("|", "\\|") for entry in entries}))
        twin = "" if entries[0].group == family else f" (twin of {entries[0].group})"
        lines.append(
            f"| {family}{twin} | {len(entries)} | {span} | {entries[0].split} "
            f"| {_all(entry.source for entry in entries)} | {_all(entry.licence for entry in entries)} "
            f"| {references} |"
        )
    return "\n".join(lines)


def croissant(manifest: Manifest, sha256: str) -> dict[str, Any]:
    """The zoo's metadata as a Croissant 1.0 document (JSON-LD).

    Args:
        manifest: Of the zoo.
        sha256: Of the manifest's file.
    """
    fields = [
        {
            "@type": "cr:Field",
            "@id": f"graphs/{name}",
            "name": name,
            "description": meaning,
            "dataType": _FIELD_TYPES.get(name, "sc:Text"),
            "source": {
                "fileObject": {"@id": "manifest"},
                "extract": {"jsonPath": f"$.entries[*].{name}"},
            },
        }
        for name, meaning in _FIELDS.items()
    ]
    return {
        "@context": {
            "@language": "en",
            "@vocab": "https://schema.org/",
            "sc": "https://schema.org/",
            "cr": "http://mlcommons.org/croissant/",
            "dct": "http://purl.org/dc/terms/",
            "conformsTo": "dct:conformsTo",
            "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
            "extract": "cr:extract",
            "field": "cr:field",
            "fileObject": "cr:fileObject",
            "fileSet": "cr:fileSet",
            "includes": "cr:includes",
            "jsonPath": "cr:jsonPath",
            "recordSet": "cr:recordSet",
            "source": "cr:source",
        },
        "@type": "sc:Dataset",
        "name": "opgym-zoo",
        "conformsTo": _CROISSANT,
        "description": (
            f"{len(manifest.entries)} computation graphs of {_families(manifest)} neural architectures, training steps "
            "and inference, with sizes and costs, without weights or data"
        ),
        "license": [
            f"https://spdx.org/licenses/{licence}.html"
            for licence in sorted({entry.licence for entry in manifest.entries.values()})
        ],
        "version": f"{manifest.dataset_version}.0.0",
        "distribution": [
            {
                "@type": "cr:FileObject",
                "@id": "manifest",
                "name": MANIFEST,
                "contentUrl": f"datasets/zoo/graphs/{MANIFEST}",
                "encodingFormat": "application/json",
                "sha256": sha256,
            },
            {
                "@type": "cr:FileSet",
                "@id": "files",
                "name": "graphs",
                "includes": "datasets/zoo/graphs/*.npz",
                "encodingFormat": "application/x-npz",
            },
        ],
        "recordSet": [{"@type": "cr:RecordSet", "@id": "graphs", "name": "graphs", "field": fields}],
    }


def _families(manifest: Manifest) -> int:
    return len({entry.family for entry in manifest.entries.values()})


def _all(values: Any) -> str:
    return ", ".join(sorted(set(values)))
