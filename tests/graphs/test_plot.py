"""The picture of a timeline: right files, same bytes, small, and no bar lost."""

import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest

from opgym.errors import MissingExtraError, OpgymError
from opgym.graphs import Cluster, Graph, GraphBuilder, Simulator, Timeline

pytest.importorskip("matplotlib", reason="the extra opgym[plot] is not installed")

from opgym.graphs.plot import plot_timeline, require_picture_path
from opgym.graphs.plot.bars import merged_bars
from opgym.graphs.plot.layout import BINS
from opgym.graphs.plot.memory import memory_steps
from opgym.graphs.plot.palette import HUES, palette


def layered(layers: int, width: int, *, backward: bool = False, named: bool = True) -> Graph:
    b = GraphBuilder("example", "layered")
    x = b.tensor(bytes=1 << 20, role="input")
    for layer in range(layers):
        for i in range(width):
            y = b.tensor(bytes=1 << 18)
            direction = "backward" if backward and i % 2 else "forward"
            b.op(("MatMul", "Relu")[i % 2], inputs=[x], outputs=[y], flops=10**8, direction=direction,
                 layer=f"layer{layer}" if named else None)  # fmt: skip
            x = y
    return b.build()


def run(graph: Graph, cluster: Cluster, device: np.ndarray | None = None) -> Timeline:
    if device is None:
        device = np.maximum(graph.op_layer, 0) % len(cluster)
    timeline = Simulator(graph, cluster).run(device, timeline=True).timeline
    assert timeline is not None
    return timeline


@pytest.mark.parametrize("suffix", ["svg", "png", "pdf", "SVG"])
def test_the_suffix_says_the_format(suffix: str, tmp_path: Path) -> None:
    graph, cluster = layered(3, 4), Cluster.parse("2xP100")
    path = tmp_path / f"t.{suffix}"
    plot_timeline(graph, cluster, run(graph, cluster), path)
    data = path.read_bytes()
    magic = {"svg": b"<?xml", "png": b"\x89PNG\r\n\x1a\n", "pdf": b"%PDF-"}[suffix.lower()]
    assert data.startswith(magic)
    if suffix.lower() == "svg":
        assert ET.fromstring(data).tag == "{http://www.w3.org/2000/svg}svg"


@pytest.mark.parametrize("suffix", ["svg", "png", "pdf"])
def test_equal_timelines_give_equal_bytes(suffix: str, tmp_path: Path) -> None:
    graph, cluster = layered(12, 4, backward=True), Cluster.parse("2xP100")
    for name in ("a", "b"):
        plot_timeline(graph, cluster, run(graph, cluster), tmp_path / f"{name}.{suffix}")
    assert (tmp_path / f"a.{suffix}").read_bytes() == (tmp_path / f"b.{suffix}").read_bytes()


def test_all_texts_are_there() -> None:
    graph, cluster = layered(3, 4), Cluster.parse("2xP100")
    timeline = run(graph, cluster)
    figure = plot_timeline(graph, cluster, timeline, title="my title")
    texts = [text.get_text() for text in figure.findobj(match=lambda artist: hasattr(artist, "get_text"))]
    for expected in ("my title", "layer0", "layer2", "P100:0", "P100:1", "send", "receive", "time, ms"):
        assert expected in texts
    assert sum(text.startswith("busy") for text in texts) == 2
    assert sum(text.startswith("peak") for text in texts) == 2
    assert any("12 ops" in text and "2 transfers of 512 KiB" in text for text in texts)


def test_over_capacity_is_marked() -> None:
    graph = layered(3, 4)
    cluster = Cluster.parse("2xP100").with_capacity(1 << 20)
    figure = plot_timeline(graph, cluster, run(graph, cluster))
    bold = [
        text.get_text()
        for text in figure.findobj(match=lambda artist: hasattr(artist, "get_text"))
        if text.get_weight() == "bold"
    ]
    assert any(text.startswith("peak 1.") for text in bold)


@pytest.mark.parametrize("spec", ["1xP100", "4xP100@nvlink:link", "3xP100@free", "64xP100"])
def test_any_cluster_can_be_drawn(spec: str, tmp_path: Path) -> None:
    graph, cluster = layered(5, 6), Cluster.parse(spec)
    plot_timeline(graph, cluster, run(graph, cluster), tmp_path / "t.svg")
    assert (tmp_path / "t.svg").stat().st_size > 10_000


def test_a_graph_of_variables_only_can_be_drawn() -> None:
    b = GraphBuilder("example")
    b.op("variable", outputs=[b.tensor(bytes=8)])
    graph, cluster = b.build(), Cluster.parse("1xP100")
    plot_timeline(graph, cluster, run(graph, cluster, np.zeros(1, int)))


def test_13_000_ops_make_a_small_file(tmp_path: Path) -> None:
    graph, cluster = layered(130, 100), Cluster.parse("8xP100")
    device = np.random.default_rng(0).integers(0, 8, graph.num_ops)
    plot_timeline(graph, cluster, run(graph, cluster, device), tmp_path / "t.svg")
    assert (tmp_path / "t.svg").stat().st_size < 2_000_000


def test_wide_bars_stay_as_they_are() -> None:
    start, end = np.array([0, 500, 700]), np.array([100, 650, 1000])
    bars = merged_bars(start, end, np.array([0, 1, 0]), 1000)
    assert bars == [(0.0, 100.0, 0, True), (500.0, 650.0, 1, True), (700.0, 1000.0, 0, True)]


def test_narrow_bars_become_one_where_the_lane_is_busy() -> None:
    span = 10 * BINS
    start = np.arange(0, span // 2, 5)
    bars = merged_bars(start, start + 5, np.zeros(len(start), np.int64), span)
    assert bars == [(0.0, span / 2, 0, False)]


def test_merged_bars_keep_the_busy_share_and_the_leading_colour() -> None:
    rng = np.random.default_rng(1)
    length = rng.integers(0, 8, 5_000)
    gap = rng.integers(0, 8, 5_000)
    end = np.cumsum(length + gap)
    color = (np.arange(5_000) % 10 == 0).astype(np.int64)  # a tenth has colour 1
    bars = merged_bars(end - length, end, color, int(end[-1]))
    assert len(bars) <= BINS
    drawn = sum(right - left for left, right, _, _ in bars)
    assert drawn == pytest.approx(length.sum(), rel=0.12)
    assert sum(c == 1 for *_, c, _ in bars) < 0.2 * len(bars)


def test_bars_without_duration_are_visible() -> None:
    at = np.array([0, 500, 1000])
    bars = merged_bars(at, at, np.zeros(3, np.int64), 1000)
    assert [left for left, *_ in bars] == [0.0, 500.0, 999.0]
    assert all(right > left for left, right, *_ in bars)


@pytest.mark.parametrize("samples", [5, 20 * BINS])
def test_a_memory_curve_keeps_its_peak_and_its_end(samples: int) -> None:
    rng = np.random.default_rng(samples)
    time = np.sort(np.concatenate([[0], rng.integers(0, 10**6, samples - 1)]))
    size = rng.integers(0, 1000, samples)
    size[samples // 2] = 5000
    x, y = memory_steps(time, size, 10**6)
    assert y.max() == 5000
    assert x[0] == 0
    assert x[-1] == 10**6
    assert (np.diff(x) >= 0).all()
    assert len(x) <= BINS + 1
    for i in range(len(x) - 1):  # nowhere below the true curve
        before = size[time <= x[i]]
        assert y[i] >= before[-1]


def test_layers_colour_when_there_are_layers_and_kinds_otherwise() -> None:
    busy = np.ones(12, np.int64)
    by_layer = palette(layered(3, 4), busy)
    assert [label for label, _ in by_layer.legend] == ["layer0", "layer1", "layer2"]
    assert by_layer.of_op.tolist() == [0] * 4 + [1] * 4 + [2] * 4
    by_kind = palette(layered(3, 4, named=False), busy)
    assert [label for label, _ in by_kind.legend] == ["MatMul", "Relu"]


def test_the_kinds_that_take_most_time_get_colours() -> None:
    b = GraphBuilder("example")
    x = b.tensor(bytes=4, role="input")
    for i in range(20):
        b.op(f"Kind{i:02}", inputs=[x], outputs=[b.tensor(bytes=4)])
    colors = palette(b.build(), np.arange(20))
    labels = [label for label, _ in colors.legend]
    assert labels == [f"Kind{i:02}" for i in range(19, 19 - len(HUES) + 1, -1)] + ["12 other kinds"]
    assert colors.of_op[0] == colors.of_op[5] != colors.of_op[19]


def test_backward_is_a_lighter_shade_of_its_layer() -> None:
    graph = layered(2, 2, backward=True)
    colors = palette(graph, np.ones(4, np.int64))
    forward, backward = (colors.color[i] for i in colors.of_op[:2])
    assert forward == HUES[0]
    brightness = [sum(int(c[i : i + 2], 16) for i in (1, 3, 5)) for c in (forward, backward)]
    assert brightness[1] > brightness[0]


def test_many_layers_are_a_scale_and_the_legend_a_sample() -> None:
    graph = layered(40, 1)
    colors = palette(graph, np.ones(40, np.int64))
    assert len(set(colors.color[:40])) == 40
    assert colors.legend[0][0] == "layer0 (first of 40 layers)"
    assert colors.legend[-1][0] == "layer39"
    assert len(colors.legend) == 5


@pytest.mark.parametrize("name", ["t.bmp", "t", "t.svg.gz"])
def test_an_unknown_suffix_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(OpgymError, match=r"expected a name that ends in one of \.svg, \.png, \.pdf"):
        require_picture_path(tmp_path / name)


def test_without_matplotlib_the_error_names_the_extra(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'opgym\[plot\]'"):
        require_picture_path(tmp_path / "t.svg")


def test_the_writers_and_the_plot_import_no_matplotlib() -> None:
    program = "import opgym.graphs.plot, opgym.graphs.writers, sys; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
