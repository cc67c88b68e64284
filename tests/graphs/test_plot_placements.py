"""The picture of placements: every cell shows the device that most of its ops are on."""

from pathlib import Path

import numpy as np
import pytest

from opgym.datasets import load
from opgym.errors import OpgymError
from opgym.graphs import Cluster, Graph, GraphBuilder

pytest.importorskip("matplotlib", reason="the extra opgym[plot] is not installed")

from opgym.graphs.plot import PlacementMap, plot_placements
from opgym.graphs.plot.placements import COLUMNS, MOST_ROWS, cells, device_colors, rows


def chain(*layers: str | None, kinds: tuple[str, ...] = ("MatMul",)) -> Graph:
    """One op after the other, each of a layer or of none."""
    builder = GraphBuilder("test", "chain")
    before: list[int] = []
    for i, layer in enumerate(layers):
        after = [builder.tensor(bytes=8)]
        builder.op(kinds[i % len(kinds)], inputs=before, outputs=after, layer=layer)
        before = after
    return builder.build()


def test_rows_are_layers_in_the_order_of_the_program_and_what_has_none_is_last() -> None:
    graph = chain("b", "a", None, "a", "b", "a")
    labels, row = rows(graph)
    assert labels == ["b", "a", "no layer"]
    assert row.tolist() == [0, 1, 2, 1, 0, 1]


def test_without_layers_rows_are_kinds() -> None:
    graph = chain(None, None, None, None, kinds=("Relu", "Add"))
    labels, row = rows(graph)
    assert labels == ["Relu", "Add"]
    assert row.tolist() == [0, 1, 0, 1]


def test_variables_are_not_shown() -> None:
    graph = load("zoo/alexnet-train")
    labels, row = rows(graph)
    assert ((row < 0) == graph.is_variable).all()
    assert graph.is_variable.any()
    assert 1 < len(labels) == row.max() + 1


@pytest.mark.parametrize("layers", [MOST_ROWS, MOST_ROWS + 1, 3 * MOST_ROWS - 1])
def test_neighbours_share_a_row_where_there_are_many(layers: int) -> None:
    labels, row = rows(chain(*(f"layer{i}" for i in range(layers))))
    assert len(labels) == MOST_ROWS
    assert (np.diff(row) >= 0).all()
    counts = np.bincount(row, minlength=MOST_ROWS)
    assert counts.max() - counts.min() <= 1
    assert labels == [f"layer{np.flatnonzero(row == r)[0]}" for r in range(MOST_ROWS)]


def test_a_cell_shows_the_device_of_most_of_its_ops() -> None:
    graph = chain(*["a"] * (3 * COLUMNS))
    _, row = rows(graph)
    device = np.tile([1, 2, 2], COLUMNS)
    assert (cells(graph, row, 1, device, 3) == 2).all()
    assert cells(graph, row, 1, device, 3).shape == (1, COLUMNS)
    short = chain("a", "b", "a")
    assert cells(short, rows(short)[1], 2, [1, 0, 1], 2).tolist() == [[1, -1, 1], [-1, 0, -1]]


@pytest.mark.parametrize("devices", [1, 2, 9, 10, 64])
def test_every_device_has_a_colour_of_its_own(devices: int) -> None:
    assert len(set(device_colors(devices))) == devices


def test_a_panel_for_each_placement_with_its_label(tmp_path: Path) -> None:
    graph, cluster = load("example/two-branch"), Cluster.parse("2xP100")
    ops = graph.num_ops
    maps = [
        PlacementMap("one: 5 ms", np.zeros(ops)),
        PlacementMap("x" * 99, np.ones(ops)),
        PlacementMap("c", np.ones(ops)),
    ]
    figure = plot_placements(graph, cluster, maps, tmp_path / "a.svg")
    assert len(figure.axes) == 3
    assert [ax.get_title(loc="left") for ax in figure.axes][::2] == ["one: 5 ms", "c"]
    assert {text.get_text() for text in figure.texts} == {f"{graph.name} on 2xP100", "P100:0", "P100:1"}
    plot_placements(graph, cluster, maps, tmp_path / "b.svg")
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_what_cannot_be_drawn_is_refused(tmp_path: Path) -> None:
    graph, cluster = load("example/two-branch"), Cluster.parse("2xP100")
    with pytest.raises(OpgymError, match="no placement to draw"):
        plot_placements(graph, cluster, [])
    with pytest.raises(OpgymError, match=r"\.svg, \.png, \.pdf"):
        plot_placements(graph, cluster, [PlacementMap("a", np.zeros(graph.num_ops))], tmp_path / "a.bmp")
