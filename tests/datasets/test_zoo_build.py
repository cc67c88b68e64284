"""Building a zoo: rules, resuming, failures, and the same bytes every time."""

import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from opgym.datasets.zoo.assembly import assemble
from opgym.datasets.zoo.build import Result, build, choose, offered
from opgym.datasets.zoo.comparison import compare
from opgym.datasets.zoo.manifest import Manifest, read_graph
from opgym.datasets.zoo.registry import Variant, definition, variants
from opgym.datasets.zoo.verification import verify
from opgym.errors import ImportFailedError, InvalidDatasetError, UnknownIdError

DEFINITIONS = str(Path(__file__).with_name("zoo_definitions.py"))
SOUND = (
    "chain-100-infer", "chain-150-infer", "chain-225-infer", "chain-wide-infer", "chain-short-infer", "twin-infer",
    "mlp-b32-train", "mlp-b64-train",
)  # fmt: skip


@pytest.fixture(scope="module")
def known() -> dict[str, Variant]:
    return offered(DEFINITIONS)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, known: dict[str, Variant]) -> tuple[Path, list[Result]]:
    """A folder with everything that can be built."""
    out = tmp_path_factory.mktemp("built")
    return out, build(choose(SOUND, known), out, origin=DEFINITIONS, workers=2)


@pytest.fixture(scope="module")
def zoo(built: tuple[Path, list[Result]], known: dict[str, Variant]) -> tuple[Path, Manifest]:
    """The zoo that the rules make of it."""
    return built[0] / "zoo", assemble(built[0], known)


def test_definitions_are_offered_in_the_order_of_the_file(known: dict[str, Variant]) -> None:
    assert list(known)[:8] == list(SOUND)
    assert known["chain-100-infer"].definition.reference == "Chains of three kinds."
    assert known["mlp-b32-train"].configuration == {"batch": 32}
    assert known["twin-infer"].configuration == {}


def test_choosing_by_name(known: dict[str, Variant]) -> None:
    assert [variant.name for variant in choose(["zoo/twin-infer", "mlp-b32-train"], known)] == [
        "twin-infer",
        "mlp-b32-train",
    ]
    assert choose([], known) == list(known.values())
    with pytest.raises(UnknownIdError, match="did you mean twin-infer"):
        choose(["twin-inferr"], known)


def test_everything_is_built(built: tuple[Path, list[Result]]) -> None:
    out, results = built
    assert [(result.name, result.status, result.error) for result in results] == [
        (name, "built", "") for name in SOUND
    ]
    assert {path.suffix for path in (out / "candidates").iterdir()} == {".npz", ".json"}


def test_the_rules(zoo: tuple[Path, Manifest]) -> None:
    folder, manifest = zoo
    assert sorted(manifest.entries) == [
        "chain-100-infer", "chain-150-infer", "chain-225-infer", "mlp-b32-train", "mlp-b64-train", "twin-infer",
    ]  # fmt: skip
    assert {row.name: row.why for row in manifest.dropped} == {
        "chain-wide-infer": "near copy of chain-100-infer",
        "chain-short-infer": "too small: below 100 ops",
    }
    assert {row.rule for row in manifest.dropped} == {"near copy", "too small"}
    assert {path.name for path in folder.iterdir()} == {
        "manifest.json",
        *(f"{name}.npz" for name in manifest.entries),
    }


def test_the_manifest_tells_where_a_graph_is_from(zoo: tuple[Path, Manifest]) -> None:
    entry = zoo[1].entries["chain-150-infer"]
    assert (entry.ops, entry.tensors, entry.level, entry.family, entry.source) == (
        150,
        151,
        "test",
        "chain",
        "own",
    )
    assert (entry.licence, entry.reference, entry.workload, entry.trains) == (
        "Apache-2.0", "Chains of three kinds.", False, False,
    )  # fmt: skip
    assert (entry.batch, entry.configuration) == (8, {"length": 150, "shape": [1, 2]})
    assert zoo[1].entries["twin-infer"].batch is None
    assert zoo[1].entries["mlp-b64-train"].topology == zoo[1].entries["mlp-b32-train"].topology
    assert zoo[1].entries["mlp-b64-train"].fingerprint != zoo[1].entries["mlp-b32-train"].fingerprint


def test_twins_share_a_group_and_a_split(zoo: tuple[Path, Manifest]) -> None:
    entries = zoo[1].entries
    assert {entry.family: entry.group for entry in entries.values()} == {
        "chain": "chain", "twin": "chain", "mlp": "mlp",
    }  # fmt: skip
    assert entries["twin-infer"].split == entries["chain-100-infer"].split


def test_a_zoo_that_was_built_is_sound(zoo: tuple[Path, Manifest]) -> None:
    calls = []
    assert verify(zoo[0], lambda *call: calls.append(call)) == []
    assert calls[-1] == (6, 6, "twin-infer")
    assert Manifest.load(zoo[0] / "manifest.json") == zoo[1]


def test_a_second_build_keeps_what_is_there(
    built: tuple[Path, list[Result]], known: dict[str, Variant]
) -> None:
    out, first = built
    before = {path: path.stat().st_mtime_ns for path in (out / "candidates").iterdir()}
    again = build(choose(SOUND, known), out, origin=DEFINITIONS)
    assert {result.status for result in again} == {"kept"}
    assert [(r.sha256, r.seconds) for r in again] == [(r.sha256, r.seconds) for r in first]
    assert {path: path.stat().st_mtime_ns for path in (out / "candidates").iterdir()} == before


def test_half_a_candidate_is_built_again(tmp_path: Path, known: dict[str, Variant]) -> None:
    chosen = choose(["chain-100-infer", "chain-150-infer"], known)
    first = build(chosen, tmp_path, origin=DEFINITIONS)
    (tmp_path / "candidates" / "chain-100-infer.npz").write_bytes(b"half")
    (tmp_path / "candidates" / "chain-150-infer.json").write_text("{")
    again = build(chosen, tmp_path, origin=DEFINITIONS)
    assert [result.status for result in again] == ["built", "built"]
    assert [result.sha256 for result in again] == [result.sha256 for result in first]


def test_a_changed_definition_is_built_again(tmp_path: Path) -> None:
    copy = tmp_path / "zoo_definitions.py"
    text = Path(DEFINITIONS).read_text()
    copy.write_text(text)
    first = build(choose(["twin-infer"], offered(str(copy))), tmp_path, origin=str(copy))
    copy.write_text(text.replace("chain, 500, 8", "chain, 501, 8"))
    second = build(choose(["twin-infer"], offered(str(copy))), tmp_path, origin=str(copy))
    assert [result.status for result in (*first, *second)] == ["built", "built"]
    assert first[0].sha256 != second[0].sha256


def test_another_process_gives_the_same_bytes(tmp_path: Path, built: tuple[Path, list[Result]]) -> None:
    script = (
        "import sys; from pathlib import Path; from opgym.datasets.zoo.build import *\n"
        "if __name__ == '__main__':\n"
        "    known = offered(sys.argv[1])\n"
        "    build(choose(['chain-225-infer'], known), Path(sys.argv[2]), origin=sys.argv[1])\n"
    )
    (tmp_path / "script.py").write_text(script)
    environment = os.environ | {"PYTHONHASHSEED": "7"}
    subprocess.run(
        [sys.executable, tmp_path / "script.py", DEFINITIONS, tmp_path], check=True, env=environment
    )
    name = "candidates/chain-225-infer.npz"
    assert (tmp_path / name).read_bytes() == (built[0] / name).read_bytes()


def test_failures_are_listed_and_stop_nothing(tmp_path: Path, known: dict[str, Variant]) -> None:
    names = ["refused-infer", "raises-infer", "crashes-infer", "hangs-infer", "twin-infer"]
    results = build(choose(names, known), tmp_path, origin=DEFINITIONS, workers=2, seconds=4)
    assert [(result.name, result.status) for result in results] == [
        *((name, "failed") for name in names[:-1]),
        ("twin-infer", "built"),
    ]
    errors = {result.name: result.error for result in results}
    assert errors["refused-infer"] == "this graph has a cycle"
    assert errors["raises-infer"].startswith("ValueError: invalid literal for int()")
    assert errors["crashes-infer"] == "its process ended with exit code 7"
    assert errors["hangs-infer"] == "stopped after 4 seconds"
    failure = json.loads((tmp_path / "candidates" / "refused-infer.failed.json").read_text())
    assert "InvalidGraphError" in failure["traceback"]
    manifest = assemble(tmp_path, known)
    assert list(manifest.entries) == ["twin-infer"]


def test_nothing_built_makes_no_zoo(tmp_path: Path, known: dict[str, Variant]) -> None:
    with pytest.raises(InvalidDatasetError, match="no graph has been built there"):
        assemble(tmp_path, known)


def test_versions_rise_when_shipped_graphs_change(
    built: tuple[Path, list[Result]], known: dict[str, Variant], zoo: tuple[Path, Manifest]
) -> None:
    out, manifest = built[0], zoo[1]
    assert assemble(out, known, shipped=manifest).dataset_version == 1
    fewer = Manifest({name: manifest.entries[name] for name in list(manifest.entries)[1:]})
    assert assemble(out, known, shipped=fewer).dataset_version == 1  # graphs may come
    smaller = {name: variant for name, variant in known.items() if name != "twin-infer"}
    assert assemble(out, smaller, shipped=manifest).dataset_version == 2  # one has gone
    assert not (out / "zoo" / "twin-infer.npz").exists()
    assert assemble(out, known, shipped=manifest, dataset_version=9).dataset_version == 9
    assert verify(out / "zoo") == []


def test_files_are_compared_by_what_they_hold(tmp_path: Path, zoo: tuple[Path, Manifest]) -> None:
    shipped, built = zoo[0] / "twin-infer.npz", tmp_path / "twin-infer.npz"
    assert compare(built, shipped) == "missing on one side"
    built.write_bytes(shipped.read_bytes())
    assert compare(built, shipped) == "same bytes"
    with zipfile.ZipFile(shipped) as source, zipfile.ZipFile(built, "w", zipfile.ZIP_STORED) as target:
        for name in source.namelist():
            target.writestr(name, source.read(name))
    assert compare(built, shipped) == "same content, compressed otherwise"
    assert compare(zoo[0] / "chain-100-infer.npz", shipped) == "other content"


# --- Damage -------------------------------------------------------------------------------------------------


def test_damage_is_named(tmp_path: Path, known: dict[str, Variant]) -> None:
    build(choose(["chain-100-infer", "chain-150-infer", "twin-infer"], known), tmp_path, origin=DEFINITIONS)
    folder, manifest = tmp_path / "zoo", assemble(tmp_path, known)
    data = bytearray((folder / "twin-infer.npz").read_bytes())
    data[len(data) // 2] ^= 1
    (folder / "twin-infer.npz").write_bytes(data)
    (folder / "chain-100-infer.npz").unlink()
    (folder / "stray.npz").write_bytes(b"")
    problems = {finding.file: finding.problem for finding in verify(folder)}
    assert problems.keys() == {"twin-infer.npz", "chain-100-infer.npz", "stray.npz"}
    assert "is damaged or another file: sha256" in problems["twin-infer.npz"]
    assert "No such file" in problems["chain-100-infer.npz"]
    assert problems["stray.npz"] == "is not in the manifest"
    with pytest.raises(ImportFailedError, match=r"twin-infer\.npz: is damaged"):
        read_graph(folder, manifest.entries["twin-infer"])


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("fingerprint", "0" * 64, "fingerprint is [0-9a-f]{64}; the manifest says 0000"),
        ("topology", "0" * 16, "topology is"),
        ("ops", 99, "ops is 500; the manifest says 99"),
        ("tensors", 99, "tensors is 501"),
        ("level", "hlo", "level is test"),
        ("group", "another", "group is twin; the manifest says another"),
    ],
)
def test_figures_that_do_not_hold(
    tmp_path: Path,
    known: dict[str, Variant],
    built: tuple[Path, list[Result]],
    key: str,
    value: object,
    words: str,
) -> None:
    (tmp_path / "candidates").mkdir()
    for suffix in ("npz", "json"):
        name = f"candidates/twin-infer.{suffix}"
        (tmp_path / name).write_bytes((built[0] / name).read_bytes())
    assemble(tmp_path, known)
    path = tmp_path / "zoo" / "manifest.json"
    document = json.loads(path.read_text())
    document["entries"][0][key] = value
    path.write_text(json.dumps(document))
    findings = verify(tmp_path / "zoo")
    assert [finding.file for finding in findings] == ["twin-infer.npz"]
    assert re.match(words, findings[0].problem)


# --- Definitions that are none ------------------------------------------------------------------------------


def test_definitions_that_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidDatasetError, match="family 'Two Words'"):
        definition(family="Two Words", source="own", licence="MIT")
    head = "from opgym.datasets.zoo.registry import definition\n@definition(family='f', source='own', licence='MIT')\n"
    for body, words in (
        ("def f():\n    yield 'Name-train', int", "offers 'Name-train'; expected a name"),
        ("def f():\n    yield 'name', int", "ends in -train or -infer"),
        ("def f():\n    yield '../x-train', int", "expected a name"),
        ("def f():\n    yield 'x-train', 3", "with a function that builds"),
        ("def f():\n    yield 'x-train', int\n    yield 'x-train', int", "names are unique"),
        ("def f():\n    yield 'x-train', int, 3", "offers 'x-train'.* a configuration"),
        ("def f():\n    yield 'x-train', int, {}, 4", "offers .'x-train',.* expected a name"),
        ("def f():\n    yield 3", "offers 3; expected a name"),
        ("def f():\n    return 3", "f returns 3; expected a generator"),
        (
            "def f():\n    yield 1 / 0",
            r"bad\.py: its definitions cannot be read \(ZeroDivisionError: division",
        ),
        ("def f(:", r"bad\.py: its definitions cannot be read \(SyntaxError: .*line 3"),
        ("def f(): ...\nraise SystemExit(3)", r"\(SystemExit: 3\)"),
    ):
        path = tmp_path / "bad.py"
        path.write_text(head + body)
        with pytest.raises(InvalidDatasetError, match=words):
            variants(str(path))
    with pytest.raises(InvalidDatasetError, match=r"absent\.py: no such file"):
        variants(str(tmp_path / "absent.py"))
    for origin in ("", "a b", "..x", str(tmp_path)):
        with pytest.raises(InvalidDatasetError, match="expected a Python file"):
            variants(origin)
    path.write_text("import no_such_package")
    with pytest.raises(
        InvalidDatasetError, match=r"bad\.py: its definitions cannot be imported .*no_such_package"
    ):
        offered(str(path))
