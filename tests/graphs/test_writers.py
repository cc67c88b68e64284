"""Chrome trace, device map and dot: what a reader of the files relies on."""

import json
import re
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from opgym.graphs import Cluster, Graph, GraphBuilder, Simulation, Simulator
from opgym.graphs.atomic import atomic_write
from opgym.graphs.lanes import lanes, memory_curves, start_order
from opgym.graphs.units import format_bytes, format_ns, format_value
from opgym.graphs.writers import device_map, dot_text, write_chrome_trace, write_device_map, write_dot

CHANNELS = ("port", "send", "link", "free")


def random_graph(seed: int, ops: int = 60, *, variables: int = 3) -> Graph:
    """Ops with up to three earlier inputs, variables, zero-byte tensors, and names that repeat."""
    rng = np.random.default_rng(seed)
    b = GraphBuilder("example", "random")
    tensors = [b.tensor(bytes=int(rng.integers(1, 1 << 20)), role="input", name="in") for _ in range(3)]
    for _ in range(variables):
        held = b.tensor(bytes=1 << 16, role="parameter")
        b.op("variable", outputs=[held])
        tensors.append(held)
    for i in range(ops):
        reads = rng.choice(len(tensors), size=int(rng.integers(1, 4)), replace=False)
        out = b.tensor(bytes=int(rng.choice([0, 1 << 12, 1 << 18])), name=f"t{i % 7}")
        kind = ("Conv", "Relu", "Add")[i % 3]
        b.op(kind, inputs=[tensors[t] for t in reads], outputs=[out], flops=int(rng.integers(0, 10**8)),
             name=f"op{i % 10}" if i % 4 else "")  # fmt: skip
        tensors.append(out)
    return b.build()


def simulated(seed: int, channel: str = "port") -> tuple[Graph, Cluster, Simulation]:
    graph = random_graph(seed)
    cluster = Cluster.parse(f"3xP100@{'free' if channel == 'free' else 'pcie3'}:{channel}")
    device = np.random.default_rng(seed).integers(0, 3, graph.num_ops)
    return graph, cluster, Simulator(graph, cluster).run(device, timeline=True)


def nanoseconds(microseconds: float) -> int:
    """A time of the trace; the test fails if it is not a whole number of nanoseconds."""
    value = round(microseconds * 1000)
    assert value / 1000 == microseconds
    return value


@pytest.mark.parametrize("channel", CHANNELS)
@pytest.mark.parametrize("seed", range(4))
def test_lanes_hold_every_bar_once_and_bars_do_not_overlap(seed: int, channel: str) -> None:
    graph, cluster, run = simulated(seed, channel)
    assert run.timeline is not None
    found: dict[str, list[int]] = defaultdict(list)
    for lane in lanes(run.timeline, len(cluster)):
        assert (lane.end_ns[:-1] <= lane.start_ns[1:]).all()
        found[lane.what] += lane.item.tolist()
    assert sorted(found["compute"]) == np.flatnonzero(~graph.is_variable).tolist()
    everything = list(range(len(run.timeline.transfer_tensor)))
    assert sorted(found["send"]) == sorted(found["receive"]) == everything


def test_an_exclusive_port_is_one_lane_and_parallel_links_are_several() -> None:
    counts = {}
    for channel in ("port", "link"):
        _, cluster, run = simulated(0, channel)
        assert run.timeline is not None
        counts[channel] = sum(lane.what == "send" for lane in lanes(run.timeline, len(cluster)))
    assert counts["port"] == 3
    assert counts["link"] > 3


@pytest.mark.parametrize("channel", CHANNELS)
@pytest.mark.parametrize("seed", range(4))
def test_memory_curves_start_resident_and_reach_the_peak(seed: int, channel: str) -> None:
    graph, cluster, run = simulated(seed, channel)
    assert run.timeline is not None
    curves = memory_curves(graph, run.timeline, len(cluster))
    assert [int(size[0]) for _, size in curves] == run.resident_bytes.tolist()
    assert [int(size.max()) for _, size in curves] == run.peak_bytes.tolist()
    assert all((np.diff(time) >= 0).all() and time[0] == 0 for time, _ in curves)


@pytest.mark.parametrize("channel", CHANNELS)
@pytest.mark.parametrize("seed", range(4))
def test_the_order_of_starts_is_topological(seed: int, channel: str) -> None:
    graph, _, run = simulated(seed, channel)
    assert run.timeline is not None
    order = start_order(run.timeline)
    assert sorted(order.tolist()) == list(range(graph.num_ops))
    place = np.argsort(order)
    source, reader, _ = graph.edges
    assert (place[source] < place[reader]).all()


def test_idle_device_has_an_empty_compute_lane() -> None:
    graph = random_graph(0)
    cluster = Cluster.parse("2xP100")
    timeline = Simulator(graph, cluster).run(np.zeros(graph.num_ops, int), timeline=True).timeline
    assert timeline is not None
    assert [(lane.device, lane.what, len(lane.item)) for lane in lanes(timeline, 2)] == [
        (0, "compute", int((~graph.is_variable).sum())),
        (1, "compute", 0),
    ]


@pytest.mark.parametrize("channel", CHANNELS)
def test_chrome_trace_is_what_viewers_expect(channel: str, tmp_path: Path) -> None:
    graph, cluster, run = simulated(1, channel)
    timeline = run.timeline
    assert timeline is not None
    path = tmp_path / "t.json"
    write_chrome_trace(path, graph, cluster, timeline)
    trace = json.loads(path.read_text(), parse_constant=pytest.fail)
    assert trace["otherData"]["fingerprint"] == graph.fingerprint
    events = defaultdict(list)
    for event in trace["traceEvents"]:
        events[event["ph"]].append(event)
    assert set(events) <= {"M", "X", "C", "s", "t", "f"}

    names = {(e["name"], e["pid"], e["tid"]): e["args"] for e in events["M"]}
    for device, name in enumerate(cluster.device_names):
        assert names["process_name", device + 1, 0] == {"name": name}
    by_lane = defaultdict(list)
    for bar in events["X"]:
        by_lane[bar["pid"], bar["tid"]].append(bar)
    for (pid, tid), bars in by_lane.items():
        assert names["thread_name", pid, tid]["name"].split()[0] in ("compute", "send", "receive")
        end = 0
        for bar in bars:
            start = nanoseconds(bar["ts"])
            assert start >= end
            end = start + nanoseconds(bar["dur"])
    ops = {e["args"]["op"]: e for e in events["X"] if e["cat"] != "transfer"}
    assert set(ops) == set(np.flatnonzero(~graph.is_variable).tolist())
    for op, bar in ops.items():
        assert bar["pid"] == timeline.op_device[op] + 1
        assert nanoseconds(bar["ts"]) == timeline.op_start_ns[op]
        assert bar["name"] == (graph.op_names[op] or graph.kind(op))
    assert sum(e["cat"] == "transfer" for e in events["X"]) == 2 * len(timeline.transfer_tensor)

    for kind in ("s", "f"):
        assert sorted(e["id"] for e in events[kind]) == list(range(len(timeline.transfer_tensor)))
    bounds = {key: [(b["ts"], b["ts"] + b["dur"]) for b in bars] for key, bars in by_lane.items()}
    for flow in events["s"] + events["t"] + events["f"]:
        spans = bounds[flow["pid"], flow["tid"]]
        assert any(start <= flow["ts"] <= end for start, end in spans), "a flow must touch a bar"
    peak = [max(e["args"]["bytes"] for e in events["C"] if e["pid"] == d + 1) for d in range(len(cluster))]
    assert peak == run.peak_bytes.tolist()


def test_chrome_trace_is_deterministic(tmp_path: Path) -> None:
    for name in ("a.json", "b.json"):
        graph, cluster, run = simulated(2)
        assert run.timeline is not None
        write_chrome_trace(tmp_path / name, graph, cluster, run.timeline)
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()


def test_device_map_names_every_op_by_index(tmp_path: Path) -> None:
    graph, cluster, run = simulated(3)
    timeline = run.timeline
    assert timeline is not None
    path = tmp_path / "map.json"
    write_device_map(path, graph, cluster, timeline.op_device, timeline)
    data = json.loads(path.read_text())
    assert data == device_map(graph, cluster, timeline.op_device, timeline)
    assert (data["format"], data["version"]) == ("opgym.device_map", 1)
    assert data["graph"]["fingerprint"] == graph.fingerprint
    assert [row["op"] for row in data["ops"]] == list(range(graph.num_ops))
    assert [row["device"] for row in data["ops"]] == timeline.op_device.tolist()
    assert [device["ops"] for device in data["devices"]] == np.bincount(timeline.op_device).tolist()
    for device in range(3):
        ran = sorted(
            (row for row in data["ops"] if row["device"] == device and "order" in row),
            key=lambda row: row["order"],
        )
        assert [row["order"] for row in ran] == list(range(len(ran)))
        starts = [row["start_ns"] for row in ran]
        assert starts == sorted(starts)
    assert all(("order" in row) != (row["kind"] == "variable") for row in data["ops"])


def test_device_map_without_timeline_has_no_order() -> None:
    graph, cluster, run = simulated(3)
    assert run.timeline is not None
    rows = device_map(graph, cluster, run.timeline.op_device)["ops"]
    assert set(rows[0]) == {"op", "name", "kind", "device"}


def parse_dot(text: str) -> tuple[dict[str, dict[str, str]], list[tuple[str, str]]]:
    """Nodes with attributes, and edges: the part of the grammar that the writer may use, strictly."""
    string = r'"(?:[^"\\]|\\.)*"'
    attributes = rf"\[((?:\w+=(?:{string}|[\w.]+)(?:, )?)*)\]"
    body = re.fullmatch(rf"digraph {string} \{{\n(.*)\}}\n", text, re.DOTALL)
    assert body
    nodes: dict[str, dict[str, str]] = {}
    edges = []
    for line in body[1].splitlines():
        if re.fullmatch(rf"  (rankdir=TB|(node|edge) {attributes});", line):
            continue
        edge = re.fullmatch(rf"  (n\d+) -> (n\d+) {attributes};", line)
        node = re.fullmatch(rf"  (n\d+) {attributes};", line)
        assert edge or node, line
        if edge:
            edges.append((edge[1], edge[2]))
        elif node:
            nodes[node[1]] = dict(re.findall(rf"(\w+)=({string}|[\w.]+)", node[2]))
    return nodes, edges


def test_dot_has_every_op_and_every_read(tmp_path: Path) -> None:
    graph, cluster, run = simulated(4)
    assert run.timeline is not None
    device = run.timeline.op_device
    write_dot(tmp_path / "g.dot", graph, cluster, device)
    nodes, edges = parse_dot((tmp_path / "g.dot").read_text())
    assert list(nodes) == [f"n{op}" for op in range(graph.num_ops)]
    source, reader, _ = graph.edges
    assert edges == [(f"n{u}", f"n{v}") for u, v in zip(source.tolist(), reader.tolist(), strict=True)]
    fills = [nodes[f"n{op}"]["fillcolor"] for op in range(graph.num_ops)]
    assert len(set(zip(fills, device.tolist(), strict=True))) == 3
    assert nodes["n0"]["tooltip"] == f'"{cluster.device_names[device[0]]}"'


def test_dot_quotes_names_that_would_break_it() -> None:
    b = GraphBuilder("example", 'a "quoted" \\ name')
    x = b.tensor(bytes=4)
    b.op("Relu", outputs=[x], name='x"];\n}\\')
    nodes, _ = parse_dot(dot_text(b.build()))
    assert nodes["n0"]["label"] == r'"x\"];\n}\\\nRelu"'


def test_an_error_names_the_file_that_was_to_be_and_no_temporary_one(tmp_path):
    folder, gone = tmp_path / "taken", tmp_path / "gone" / "table.json"
    folder.mkdir()
    for path in (folder, gone):
        with pytest.raises(OSError, match=r"\] [\w ]+: '[^']+'$") as caught, atomic_write(path) as f:
            f.write(b"1")
        assert caught.value.filename == str(path)
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]


def test_a_failed_write_leaves_the_old_file_and_no_rubbish(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_text("old")
    with pytest.raises(TypeError), atomic_write(path) as f:
        f.writelines([b"half", "no bytes"])  # type: ignore[list-item]
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["f"]


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0, "ns", "0 ns"),
        (999, "ns", "999 ns"),
        (12_345_678, "ns", "12.35 ms"),
        (999_996, "ns", "1 ms"),
        (20.084, "ms", "20.08 ms"),
        (0.5, "ms", "500 µs"),
        (1023 * 2**20, "bytes", "1,020 MiB"),
        (412 * 2**20, "bytes", "412 MiB"),
        (0, "bytes", "0 B"),
        (float("inf"), "ns", "-"),
        (float("nan"), "bytes", "-"),
    ],
)
def test_values_for_people(value: float, unit: str, text: str) -> None:
    assert format_value(value, unit) == text


def test_units_are_told_apart() -> None:
    assert format_ns(2_000) == "2 µs"
    assert format_bytes(2_048) == "2 KiB"
