"""The zoo that comes with opgym: sound, as varied as it says, quick to load, and the same bytes when rebuilt."""

import time
from collections import Counter
from pathlib import Path

import pytest

from opgym import datasets
from opgym.datasets import zoo
from opgym.datasets.catalogue import catalogue
from opgym.datasets.zoo.assembly import assemble
from opgym.datasets.zoo.build import build, choose, offered
from opgym.datasets.zoo.selection import FAMILY_CAP, OPS_LIMITS
from opgym.datasets.zoo.verification import verify
from opgym.graphs import VARIABLE, Cluster
from opgym.problems import Objective, PlacementProblem

ENTRIES = zoo.manifest().entries
#: A workload, a network with branches, and one of inference.
REBUILT = ("rnnlm-2l-train", "densenet-121-train", "gpt2-small-infer")


def test_every_file_is_what_the_manifest_says() -> None:
    assert verify(zoo.FOLDER) == []


def test_all_of_it_is_small() -> None:
    assert sum(path.stat().st_size for path in zoo.FOLDER.iterdir()) < 40e6


def test_it_is_varied() -> None:
    fewest, most = OPS_LIMITS
    assert all(fewest <= entry.ops <= most for entry in ENTRIES.values())
    others = [entry for entry in ENTRIES.values() if not entry.workload]
    assert len({entry.topology for entry in others}) == len(others)
    assert max(Counter(entry.family for entry in others).values()) <= FAMILY_CAP
    assert sum(entry.workload for entry in ENTRIES.values()) == 14
    assert ENTRIES["gnmt-8l-train"].ops > 50_000


def test_no_group_of_families_is_in_two_splits() -> None:
    split = {entry.group: entry.split for entry in ENTRIES.values()}
    group = {entry.family: entry.group for entry in ENTRIES.values()}
    assert all(entry.split == split[entry.group] for entry in ENTRIES.values())
    assert all(entry.group == group[entry.family] for entry in ENTRIES.values())
    assert set(split.values()) == {"train", "validation", "test"}


def test_training_graphs_have_variables_and_updates_and_inference_graphs_have_none() -> None:
    for name, entry in list(ENTRIES.items())[::9]:
        graph = datasets.load(f"zoo/{name}")
        updates = entry.trains and entry.level != "hlo"  # a program of XLA returns new parameters
        assert (VARIABLE in graph.kinds) == updates, name
        assert bool((graph.op_update_of >= 0).any()) == updates, name
        assert graph.name == name


@pytest.mark.parametrize("name", ["rnnlm-2l-train", "inception-v3-b32-train", "densenet-121-infer"])
def test_an_id_goes_wherever_a_model_goes(name: str) -> None:
    imported = datasets.read(f"zoo/{name}")
    assert imported.report.source == f"zoo/{name}"
    assert imported.report.fingerprint == imported.graph.fingerprint == ENTRIES[name].fingerprint
    assert any("split" in note for note in imported.report.notes)
    augmented = datasets.load(f"zoo/{name}#augment=3")
    assert augmented.fingerprint != imported.graph.fingerprint
    problem = PlacementProblem(imported.graph, Cluster.parse("4xP100"), Objective.STEP_TIME)
    assert problem.cost_ns.shape == (ENTRIES[name].ops, 4)


def test_loading_is_quick() -> None:
    """Under 100 ms each, 500 ms from 50,000 ops on, by processor time; the median of three."""
    by_size = sorted(ENTRIES.values(), key=lambda entry: entry.ops)
    for entry in (*by_size[:: max(1, len(by_size) // 10)], *by_size[-3:]):
        times = []
        for _ in range(3):
            start = time.process_time()
            datasets.load(f"zoo/{entry.name}")
            times.append(time.process_time() - start)
        limit = 0.5 if entry.ops >= 25_000 else 0.1
        assert sorted(times)[1] < limit, f"{entry.name}: {entry.ops} ops, {times} s"


@pytest.mark.slow
def test_a_rebuild_gives_the_shipped_bytes(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    known = offered()
    results = build(choose(REBUILT, known), tmp_path, workers=2)
    assert {result.name: result.sha256 for result in results} == {
        name: ENTRIES[name].sha256 for name in REBUILT
    }
    made = assemble(tmp_path, known).entries
    for name in REBUILT:
        assert (made[name].fingerprint, made[name].topology) == (
            ENTRIES[name].fingerprint,
            ENTRIES[name].topology,
        )


def test_models_of_the_onnx_package_are_in_the_split_of_their_family() -> None:
    split = {entry.family: entry.split for entry in ENTRIES.values()}
    rows = list(catalogue([id for id in datasets.ids() if id.startswith("onnx-light/")]))
    assert sum(row.family in split for row in rows) >= 6
    assert all(row.split == split.get(row.family, row.split) for row in rows)
