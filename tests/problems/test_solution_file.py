"""Solution files: round trips, a closed schema, and what a hostile or damaged file gets (CASES 21)."""

from __future__ import annotations

import json
import os

import numpy as np
import pytest

from opgym.errors import InvalidSolutionError
from opgym.graphs import Cluster, Link
from opgym.graphs.closed_json import MAX_FILE_BYTES
from opgym.outcome import Verdict
from opgym.problems import Pipeline, Placement
from opgym.problems.solution_file import load, load_with_problem, save

from .instances import accelerator, cpu, dag, problem


@pytest.fixture
def posed():
    return problem(dag({0: [], 1: [0], 2: [1]}), [accelerator(), cpu()], "step_time", [1, 2, 3])


@pytest.fixture
def saved(posed, tmp_path):
    path = tmp_path / "solution.json"
    placement = Placement(np.array([0, 1, 0]), np.array([3.0, np.inf, -np.inf]))
    save(path, posed, placement, posed.evaluate(placement))
    return path


def refused(path, posed) -> str:
    """The message with which a file is refused; it names the file."""
    with pytest.raises(InvalidSolutionError) as caught:
        load(path, posed)
    message = str(caught.value)
    assert str(path) in message
    return message


def changed(path, **keys):
    """Rewrites a file with other values; ``"absent"`` removes a key."""
    document = json.loads(path.read_text()) | keys
    path.write_text(json.dumps({key: value for key, value in document.items() if value != "absent"}))
    return path


@pytest.mark.parametrize("priority", [None, np.array([1.5, -0.0, 1e-300]), np.array([np.inf, 0, -np.inf])])
@pytest.mark.parametrize("transfer", [None, np.array([[0, 1], [np.inf, 2], [3, -np.inf]])])
@pytest.mark.parametrize("dtype", [np.uint8, np.int64])
def test_round_trip(posed, tmp_path, priority, transfer, dtype):
    placement = Placement(np.array([0, 1, 0], dtype), priority, transfer)
    save(tmp_path / "s.json", posed, placement)
    read = load(tmp_path / "s.json", posed)
    assert read.device.tolist() == [0, 1, 0]
    for given, back in ((priority, read.priority), (transfer, read.transfer_priority)):
        assert (given is None) == (back is None)
        assert given is None or given.tolist() == back.tolist()
    assert posed.evaluate(read).value == posed.evaluate(placement).value


def test_what_it_was_made_for_is_written(posed, saved, tmp_path):
    document = json.loads(saved.read_text())
    assert document["graph"]["fingerprint"] == posed.graph.fingerprint
    assert document["devices"] == ["accelerator:0", "CPU:0"]
    assert document["objective"] == "step_time"
    assert document["pipeline"] is None
    assert document["claim"] == {"value": 44.0, "unit": "ns", "verdict": "ok"}
    pipelined = problem(posed.graph, [accelerator()], "max_load", [1, 2, 3], pipeline=Pipeline(8, "1f1b"))
    save(tmp_path / "p.json", pipelined, Placement(np.zeros(3, int)))
    assert json.loads((tmp_path / "p.json").read_text())["pipeline"] == {
        "micro_batches": 8,
        "schedule": "1f1b",
    }
    assert load(tmp_path / "p.json", pipelined).device.tolist() == [0, 0, 0]


def test_an_illegal_placement_can_be_kept_with_its_verdict(posed, tmp_path):
    placement = Placement(np.array([0, 7]))
    save(tmp_path / "s.json", posed, placement, posed.evaluate(placement))
    assert posed.evaluate(load(tmp_path / "s.json", posed)).verdict is Verdict.WRONG_LENGTH


@pytest.mark.parametrize("device", [[0, 1], [0, 1, 0, 1], [0, -1, 0], [0, 2, 0], [0, 2**62, 0], []])
def test_readable_but_illegal_device_maps_get_a_verdict(posed, saved, device):
    outcome = posed.evaluate(load(changed(saved, device=device), posed))
    assert outcome.verdict in (Verdict.WRONG_LENGTH, Verdict.UNKNOWN_DEVICE)


def test_claims_are_not_believed(posed, saved):
    honest = posed.evaluate(load(saved, posed))
    changed(saved, claim={"value": 0.001, "unit": "ns", "verdict": "ok"})
    assert posed.evaluate(load(saved, posed)).value == honest.value == 44


def test_line_ends_and_a_byte_order_mark_do_not_matter(posed, saved):
    text = json.dumps(json.loads(saved.read_text()), indent=1)
    saved.write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())
    assert load(saved, posed).device.tolist() == [0, 1, 0]


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"version": 2}, "is version 2 of opgym.placement; this opgym reads version 1"),
        ({"version": None}, "is version None"),
        ({"format": "opgym.graph"}, "has format 'opgym.graph'; expected 'opgym.placement'"),
        ({"format": "absent"}, "lacks 'format'"),
        ({"device": "absent"}, "lacks 'device'"),
        ({"objective": "absent", "claim": "absent"}, "lacks 'objective', 'claim'"),
        ({"extra": 1}, "has unknown keys 'extra'"),
        ({"graph": {"fingerprint": "0" * 64, "name": ""}}, "fingerprint 000000000000..., not "),
        ({"graph": {"fingerprint": 5, "name": ""}}, "graph has fingerprint = 5; expected text"),
        ({"graph": {"name": ""}}, "graph lacks 'fingerprint'"),
        ({"devices": ["P100:0"]}, "was made for devices P100:0, not accelerator:0, CPU:0"),
        ({"devices": "P100"}, "has devices = text; expected a list"),
        ({"objective": "speed"}, "names objective 'speed'"),
        ({"pipeline": {"micro_batches": 0, "schedule": "gpipe"}}, "micro_batches = 0; expected 1 to"),
        ({"pipeline": {"micro_batches": 2, "schedule": "x"}}, "schedule 'x'; expected one of gpipe, 1f1b"),
        ({"claim": {"value": 1}}, "claim lacks 'unit', 'verdict'"),
        (
            {"claim": {"value": "1", "unit": "ns", "verdict": "ok"}},
            "claim has value = '1'; expected a finite",
        ),
        ({"claim": {"value": 1, "unit": "ns", "verdict": "fine"}}, "claim has verdict 'fine'"),
        ({"device": {"0": 1}}, "has device = an object; expected a list"),
        ({"device": [0, 1.5, 0]}, "has device[1] = 1.5; expected a whole number"),
        ({"device": [0, True, 0]}, "has device[1] = True"),
        ({"device": [0, "=1+1", 0]}, "has device[1] = '=1+1'"),
        ({"device": [0, 10**30, 0]}, "has device[1] = 1000000"),
        ({"device": [0, None, 0]}, "has device[1] = None"),
        ({"priority": [1, "nan", 2]}, "has priority[1] = 'nan'; expected a number, 'inf' or '-inf'"),
        ({"priority": [1, False, 2]}, "has priority[1] = False"),
        ({"priority": [1, 10**400, 2]}, "has priority[1] with 401 digits"),
        (
            {"transfer_priority": [[1, 2], [3]]},
            "has a transfer_priority[1] that is no list as long as the first",
        ),
        ({"transfer_priority": [1, 2]}, "has a transfer_priority[0] that is no list"),
        ({"transfer_priority": [[1, "x"]]}, "has transfer_priority[0][1] = 'x'"),
    ],
)
def test_files_of_another_kind_are_refused(posed, saved, keys, message):
    assert message in refused(changed(saved, **keys), posed)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not valid JSON"),
        (b"{", "not valid JSON"),
        (b"\x00\xff\xfe", "not UTF-8 text"),
        (b"[]", "is a list; expected an object"),
        (b"null", "is null; expected an object"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"a": 1, "a": 2}', "has the key 'a' twice"),
        (b"1" * 5000, "not valid JSON"),
    ],
)
def test_damaged_files_are_refused(posed, tmp_path, content, message):
    path = tmp_path / "s.json"
    path.write_bytes(content)
    assert message in refused(path, posed)


@pytest.mark.parametrize("constant", ["NaN", "Infinity", "-Infinity"])
def test_numbers_must_be_finite(posed, saved, constant):
    saved.write_text(saved.read_text().replace("3.0", constant))
    assert f"holds {constant}; numbers must be finite" in refused(saved, posed)


def test_absent_files_folders_and_giants_are_refused(posed, tmp_path):
    assert "no such file" in refused(tmp_path / "none.json", posed)
    assert "is a folder" in refused(tmp_path, posed)
    giant = tmp_path / "giant.json"
    with giant.open("wb") as f:
        f.truncate(MAX_FILE_BYTES + 1)  # sparse: takes no space
    assert f"has {MAX_FILE_BYTES + 1} bytes" in refused(giant, posed)


# --- writing


def test_a_failed_write_leaves_what_was_there(posed, saved, monkeypatch):
    before = saved.read_bytes()

    def full_disk(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full_disk)
    with pytest.raises(OSError, match="No space left"):
        save(saved, posed, Placement(np.array([1, 1, 1])))
    assert saved.read_bytes() == before
    assert [path.name for path in saved.parent.iterdir()] == [saved.name]


def test_nan_is_not_written(posed, tmp_path):
    with pytest.raises(InvalidSolutionError, match="priority holds NaN"):
        save(tmp_path / "s.json", posed, Placement(np.array([0, 0, 0]), np.array([0, np.nan, 0])))
    assert list(tmp_path.iterdir()) == []


# --- splits of the dnn-partitioning repository


@pytest.fixture
def published(tmp_path):
    """A graph file with ids 7, 3, 5 in a chain, for one accelerator and one CPU."""
    from opgym.graphs.readers.dnn_partitioning import read_dnn_partitioning
    from opgym.problems import PlacementProblem

    def node(number):
        return {"id": number, "supportedOnFpga": 1, "cpuLatency": 2, "fpgaLatency": 1, "isBackwardNode": 0}

    path = tmp_path / "graph.json"
    edges = [{"sourceId": 7, "destId": 3, "cost": 0.5}, {"sourceId": 3, "destId": 5, "cost": 0.25}]
    path.write_text(
        json.dumps(
            {
                "maxSizePerFPGA": 100,
                "maxFPGAs": 1,
                "maxCPUs": 1,
                "nodes": [node(7), node(3), node(5)],
                "edges": edges,
            }
        )
    )
    imported = read_dnn_partitioning(path)
    return PlacementProblem(imported.graph, imported.cluster, "max_load", imported.costs)


def write_split(tmp_path, fpgas, cpus, **more):
    path = tmp_path / "split.json"
    parts = {"fpgas": [{"nodes": nodes} for nodes in fpgas], "cpus": [{"nodes": nodes} for nodes in cpus]}
    path.write_text(json.dumps(parts | more))
    return path


def test_a_split_places_nodes_by_id(published, tmp_path):
    placement = load(write_split(tmp_path, [[5, 7]], [[3]], maxLoad=-1), published)
    assert placement.device.tolist() == [0, 1, 0]
    assert published.evaluate(placement).details["load_ms"] == [1 + 1 + 0.5 + 0.25, 2]


def test_devices_beyond_the_cluster_are_unknown_or_brought_along(published, tmp_path):
    path = write_split(tmp_path, [[5], [], [7]], [[3]])
    assert published.evaluate(load(path, published)).verdict is Verdict.UNKNOWN_DEVICE
    wider, placement = load_with_problem(path, published)
    assert [device.kind for device in wider.cluster.devices] == [
        "accelerator",
        "cpu",
        "accelerator",
        "accelerator",
    ]
    assert placement.device.tolist() == [3, 1, 0]
    assert wider.evaluate(placement).details["load_ms"] == [1 + 0.25, 2, 0, 1 + 0.5]
    assert published.cluster is not wider.cluster
    many_cpus = write_split(tmp_path, [[5]], [[3], [7]])
    same, placement = load_with_problem(many_cpus, published)
    assert same is published
    assert published.evaluate(placement).verdict is Verdict.UNKNOWN_DEVICE


def test_empty_devices_beyond_the_cluster_do_not_matter(published, tmp_path):
    problem_, placement = load_with_problem(write_split(tmp_path, [[5, 7, 3], [], []], [[], []]), published)
    assert problem_ is published
    assert placement.device.tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("fpgas", "cpus", "message"),
    [
        ([[5, 7]], [], "leaves 1 nodes without a device, among them node 3"),
        ([[5, 7, 3, 9]], [], "places node 9; the graph has no such node"),
        ([[5, 7]], [[3, 5]], "cpus[0] lists node 5, which is listed before"),
        ([[5, 7, "3"]], [], "fpgas[0] lists node '3'; expected a whole number"),
        ([[5, 7, True]], [], "fpgas[0] lists node True"),
        ([[7, 5, 3]] + [[]] * 64, [], "has 65 fpgas; at most 64"),
    ],
)
def test_impossible_splits_are_refused(published, tmp_path, fpgas, cpus, message):
    assert message in refused(write_split(tmp_path, fpgas, cpus), published)


def test_a_split_has_no_other_keys(published, tmp_path):
    assert "unknown keys 'speed'" in refused(write_split(tmp_path, [[3, 5, 7]], [], speed=1), published)


def test_a_split_of_another_graph_is_refused(posed, tmp_path):
    path = write_split(tmp_path, [[0, 1, 2]], [])
    with pytest.raises(InvalidSolutionError, match="has no node ids"):
        load(path, posed)


def test_our_files_never_widen_the_cluster(posed, saved):
    same, placement = load_with_problem(saved, posed)
    assert same is posed
    assert placement.device.tolist() == [0, 1, 0]
    changed(saved, device=[0, 5, 0])
    same, placement = load_with_problem(saved, posed)
    assert same.evaluate(placement).verdict is Verdict.UNKNOWN_DEVICE


def test_the_devices_must_be_the_same_ones(posed, saved):
    other = problem(posed.graph, [cpu(), accelerator()], "step_time", [1, 2, 3])
    assert "give the same cluster" in refused(saved, other)
    assert Cluster.uniform([accelerator(), cpu()], Link("x", 1, 0)).device_names == ("accelerator:0", "CPU:0")
