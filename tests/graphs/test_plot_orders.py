"""The picture of orders: right files, same bytes, peaks and curves where they belong."""

from pathlib import Path

import numpy as np
import pytest

from opgym.errors import OpgymError

pytest.importorskip("matplotlib", reason="the extra opgym[plot] is not installed")

from opgym.graphs.plot import OrderCurve, plot_orders
from opgym.graphs.plot.layout import BINS

MIB = 2**20


def curve(label: str, *mib: int) -> OrderCurve:
    return OrderCurve(label, np.array(mib, np.int64) * MIB)


def test_curves_and_labels_are_at_their_heights() -> None:
    figure = plot_orders(
        [curve("program order", 4, 9, 12, 3), curve("beam", 4, 8, 6, 3)], title="Memory", bound_bytes=5 * MIB
    )
    [ax] = figure.axes
    assert ax.get_xlim() == (0, 4)
    assert ax.get_ylabel() == "memory, MiB"
    lines = {tuple(line.get_ydata()): tuple(line.get_xdata()) for line in ax.lines[:2]}
    assert lines[4, 9, 12, 3, 3] == (0, 1, 2, 3, 4)
    assert lines[4, 8, 6, 3, 3] == (0, 1, 2, 3, 4)
    assert list(ax.lines[2].get_ydata()) == [5, 5]
    top = ax.get_ylim()[1]
    heights = {text.get_text(): text.get_position()[1] * top for text in ax.texts}
    assert heights == {
        "program order: 12 MiB": pytest.approx(12),
        "beam: 8 MiB": pytest.approx(8),
        "bound: 5 MiB": pytest.approx(5),
    }


def test_labels_do_not_lie_on_each_other_and_the_bound_has_none_of_its_own() -> None:
    figure = plot_orders([curve("program order", 100, 101), curve("dfs", 100, 90)], bound_bytes=100 * MIB)
    places = sorted((text.get_position()[1], text.get_text()) for text in figure.axes[0].texts)
    assert [text for _, text in places] == ["dfs: 100 MiB, the bound", "program order: 101 MiB"]
    assert places[1][0] - places[0][0] > 0.06


def test_a_long_order_keeps_its_peak() -> None:
    memory = np.full(50_000, MIB, np.int64)
    memory[31_234] = 7 * MIB
    [line] = plot_orders([OrderCurve("long", memory)]).axes[0].lines
    assert max(line.get_ydata()) == 7
    assert len(line.get_ydata()) < BINS


def test_nothing_allocated_and_a_title_without_end(tmp_path: Path) -> None:
    figure = plot_orders([curve("empty", 0)], title="x" * 500, bound_bytes=0)
    assert figure.axes[0].get_ylim()[1] > 0
    assert len(figure.texts[0].get_text()) == 90


@pytest.mark.parametrize("suffix", ["svg", "png", "pdf"])
def test_equal_curves_give_equal_bytes(suffix: str, tmp_path: Path) -> None:
    paths = [tmp_path / f"{name}.{suffix}" for name in "ab"]
    for path in paths:
        plot_orders([curve("a", 1, 2, 3), curve("b", 1, 2, 2)], path, title="Memory")
    assert paths[0].read_bytes() == paths[1].read_bytes()
    magic = {"svg": b"<?xml", "png": b"\x89PNG\r\n\x1a\n", "pdf": b"%PDF-"}[suffix]
    assert paths[0].read_bytes().startswith(magic)


def test_another_format_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OpgymError, match=r"ends in one of \.svg, \.png, \.pdf"):
        plot_orders([curve("a", 1)], tmp_path / "m.jpeg")
    assert list(tmp_path.iterdir()) == []
