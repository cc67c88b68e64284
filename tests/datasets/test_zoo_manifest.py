"""The manifest: closed, checked, and no way out of its folder."""

import json
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from opgym.datasets.zoo.datasheet import croissant, families_table
from opgym.datasets.zoo.manifest import Dropped, Entry, Manifest
from opgym.errors import InvalidDatasetError

ENTRY = Entry(
    name="net-train", sha256="a" * 64, fingerprint="b" * 64, topology="c" * 16, ops=120, tensors=130,
    level="aten-train", family="net", group="net", split="train", workload=False, source="own",
    licence="Apache-2.0", reference="A paper.", batch=32, configuration={"layers": 2},
)  # fmt: skip
MANIFEST = Manifest(
    {"net-infer": replace(ENTRY, name="net-infer", batch=None, configuration={}), "net-train": ENTRY},
    (Dropped("old-train", "net", 99, "too small: below 100 ops"),),
    {"torch": "2.13.0"},
    3,
)


def test_a_round_trip(tmp_path: Path) -> None:
    MANIFEST.save(tmp_path / "m.json")
    assert Manifest.load(tmp_path / "m.json") == MANIFEST
    lines = (tmp_path / "m.json").read_text().splitlines()
    assert sum('"name":"net-' in line for line in lines) == 2
    Manifest({}).save(tmp_path / "empty.json")
    assert Manifest.load(tmp_path / "empty.json").entries == {}


def test_modes_and_files() -> None:
    assert (ENTRY.file, ENTRY.trains) == ("net-train.npz", True)
    assert not MANIFEST.entries["net-infer"].trains


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"name": "../net-train"}, r"has name = '\.\./net-train'"),
        ({"name": "/net-train"}, "has name"),
        ({"name": "a\\b-train"}, "has name"),
        ({"name": "C:net-train"}, "has name"),
        ({"name": "net"}, "has name"),
        ({"sha256": "A" * 64}, "has sha256"),
        ({"fingerprint": "b" * 63}, "has fingerprint"),
        ({"topology": "c" * 17}, "has topology"),
        ({"ops": 0}, "has ops = 0; expected 1"),
        ({"ops": 1.5}, "expected a whole number"),
        ({"tensors": -1}, "has tensors"),
        ({"family": "Two Words"}, "has family"),
        ({"group": ""}, "has group"),
        ({"split": "holdout"}, "has split = 'holdout'; expected train, validation, test"),
        ({"workload": "yes"}, "has workload"),
        ({"batch": 0}, "has batch = 0"),
        ({"configuration": []}, "configuration that is no object"),
        ({"licence": None}, "has licence = None; expected text"),
        ({"surprise": 1}, "unknown keys 'surprise'"),
        ({"name": "net-infer"}, "lists 'net-infer' twice"),
    ],
)
def test_entries_that_are_refused(tmp_path: Path, change: dict[str, Any], words: str) -> None:
    document = stored(tmp_path)
    document["entries"][1] |= change
    refused(tmp_path, document, words)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"version": 2}, "version 2; expected 'opgym.zoo', version 1"),
        ({"format": "opgym.graph"}, "format 'opgym.graph'"),
        ({"entries": {}}, "has entries = an object; expected a list"),
        ({"built_with": {"torch": 2}}, "no object of texts"),
        ({"dataset_version": 0}, "has dataset_version = 0"),
        ({"dropped": [{"name": "x"}]}, "dropped 0 lacks 'family'"),
        ({"more": 1}, "unknown keys 'more'"),
    ],
)
def test_documents_that_are_refused(tmp_path: Path, change: dict[str, Any], words: str) -> None:
    refused(tmp_path, stored(tmp_path) | change, words)


def stored(tmp_path: Path) -> dict[str, Any]:
    MANIFEST.save(tmp_path / "m.json")
    document: dict[str, Any] = json.loads((tmp_path / "m.json").read_text())
    return document


def refused(tmp_path: Path, document: dict[str, Any], words: str) -> None:
    (tmp_path / "m.json").write_text(json.dumps(document))
    with pytest.raises(InvalidDatasetError, match=words) as caught:
        Manifest.load(tmp_path / "m.json")
    assert str(tmp_path / "m.json") in str(caught.value)


# --- Datasheet ----------------------------------------------------------------------------------------------


def test_every_family_has_a_row() -> None:
    other = replace(
        ENTRY, name="v-infer", family="v", group="net", source="timm", licence="MIT", reference="A | B."
    )
    table = families_table(Manifest({**MANIFEST.entries, "v-infer": other})).splitlines()
    assert table[2:] == [
        "| net | 2 | 120 | train | own | Apache-2.0 | A paper. |",
        "| v (twin of net) | 1 | 120 | train | timm | MIT | A \\| B. |",
    ]


def test_croissant_describes_every_plain_field_of_an_entry() -> None:
    document = croissant(MANIFEST, "d" * 64)
    assert document["conformsTo"] == "http://mlcommons.org/croissant/1.0"
    assert (document["version"], document["license"]) == (
        "3.0.0",
        ["https://spdx.org/licenses/Apache-2.0.html"],
    )
    manifest, files = document["distribution"]
    assert (manifest["sha256"], files["includes"]) == ("d" * 64, "datasets/zoo/graphs/*.npz")
    (records,) = document["recordSet"]
    described = {row["name"] for row in records["field"]}
    assert described == {field.name for field in fields(Entry)} - {"configuration"}
    assert all(row["source"]["fileObject"]["@id"] == manifest["@id"] for row in records["field"])
