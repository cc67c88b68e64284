"""The pictures of OpScheduling-v0: the memory of every step, in pixels and in text."""

import subprocess
import sys

import numpy as np
import pytest

from opgym.envs import OpSchedulingEnv
from opgym.envs.scheduling import viewer
from opgym.graphs import Graph, GraphBuilder

from .instances import SHAPES


def stairs() -> Graph:
    """Two sources of 50 bytes, each read by one op that writes 1: in turn 51 at most, both first 101."""
    b = GraphBuilder("test", "stairs")
    for i in range(2):
        x = b.tensor(bytes=50)
        b.op("Source", outputs=[x], name=f"source{i}")
        b.op("Reader", inputs=[x], outputs=[b.tensor(bytes=1, is_output=True)], name=f"reader{i}")
    return b.build()


def plot(frame: np.ndarray) -> np.ndarray:
    return frame[viewer.MARGIN_PX :][: viewer.HEIGHT_PX, viewer.MARGIN_PX :][:, : viewer.WIDTH_PX]


def heights(frame: np.ndarray) -> list[float]:
    """Bars in the middle of each of the four steps, as a share of the plot."""
    pixels = plot(frame)
    quarter = viewer.WIDTH_PX // 4
    columns = [pixels[:, step * quarter + quarter // 2] for step in range(4)]
    return [
        float(((column == viewer.USED) | (column == viewer.ABOVE)).all(axis=-1).mean()) for column in columns
    ]


def test_bars_are_the_memory_of_each_step() -> None:
    env = OpSchedulingEnv(stairs(), action="op", render_mode="rgb_array")
    env.reset()
    assert heights(env.render()) == [0, 0, 0, 0]
    # the program order takes 50, 51, 51, 52 bytes; its curve, its peak and the peak so far cover a few pixels
    for step, (node, used, red) in enumerate([(0, 50, False), (2, 100, True), (1, 101, True), (3, 52, True)]):
        env.step(node)
        frame = env.render()
        highest = max(env.peak_bytes, 52)
        assert heights(frame)[step] == pytest.approx(used / highest, abs=4 / viewer.HEIGHT_PX)
        assert heights(frame)[step + 1 :] == [0] * (3 - step)
        assert (plot(frame) == viewer.ABOVE).all(axis=-1).any() == red
    done = (frame[-viewer.MARGIN_PX] == viewer.INK).all(axis=-1).sum()
    assert done == viewer.WIDTH_PX


@pytest.mark.parametrize("shape", SHAPES)
def test_frames_have_one_size(shape: str) -> None:
    shapes = set()
    for graph in (SHAPES[shape](), stairs()):
        env, over = OpSchedulingEnv(graph, render_mode="rgb_array"), False
        env.reset()
        while not over:
            shapes.add(env.render().shape)
            over = env.step(0)[2]
        shapes.add(env.render().shape)
    assert len(shapes) == 1


def test_many_steps_share_a_column_and_the_highest_shows() -> None:
    b = GraphBuilder("test", "comb")
    for i in range(5_000):
        b.op("Op", outputs=[b.tensor(bytes=1_000 if i == 2_500 else 10)])
    env = OpSchedulingEnv(b.build(), slots=1, render_mode="rgb_array")
    env.reset()
    for _ in range(5_000):
        env.step(0)
    pixels = plot(env.render())
    column = (pixels == viewer.USED).all(axis=-1).sum(axis=0)
    assert column.max() > 0.9 * viewer.HEIGHT_PX  # of 8 or 9 steps in that column, one is high
    assert int(column.argmax()) == viewer.WIDTH_PX // 2


def test_text() -> None:
    env = OpSchedulingEnv(stairs(), action="op", render_mode="ansi")
    env.reset()
    env.step(0)
    text = env.render()
    assert "stairs: op 1 of 4, 50 bytes live, peak 50 bytes, 0.962 of the program order's" in text
    assert "2 ready, best ranked: op 1 reader0 (Reader), takes 1 bytes, frees 50" in text
    bars = [line.partition("|")[2].rstrip("|") for line in text.splitlines() if "|" in line]
    assert [line.count("#") for line in bars] == [
        16
    ] * 8  # a quarter of 64 columns; 50 of 52 bytes fill all rows
    for node in (2, 1, 3):
        env.step(node)
    text = env.render()
    assert "op 4 of 4, 2 bytes live, peak 101 bytes, 1.942 of" in text
    assert "best ranked" not in text
    assert "peak: 101 bytes, ok" in text
    assert text.splitlines()[1].strip().startswith("101 |")


def test_rendering_does_not_change_the_episode() -> None:
    env, twin = (OpSchedulingEnv(stairs(), render_mode=mode) for mode in ("rgb_array", "ansi"))
    env.reset(), twin.reset()
    for _ in range(4):
        env.render(), twin.render(), twin.render()
        assert np.array_equal(env.step(1)[0], twin.step(1)[0])


def test_no_plotting_library_is_needed() -> None:
    code = (
        "import sys, gymnasium, opgym\n"
        "env = gymnasium.make('OpScheduling-v0', render_mode='rgb_array'); env.reset(); env.render()\n"
        "assert 'matplotlib' not in sys.modules and 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
