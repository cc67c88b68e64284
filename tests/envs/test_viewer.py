"""The pictures: what they show, and that they need no plotting library."""

import subprocess
import sys

import numpy as np

from opgym.datasets import example
from opgym.envs import GraphPlacementEnv
from opgym.envs.placement import viewer

from .instances import play_devices


def play_half(render_mode: str, **options: object) -> GraphPlacementEnv:
    env = GraphPlacementEnv(example.load("two-branch"), render_mode=render_mode, **options)  # type: ignore[arg-type]
    env.reset()
    for step in range(8):
        env.step(step % 2)
    return env


def lane(frame: np.ndarray, device: int) -> np.ndarray:
    """The pixels of a device's lane, ``[height, width, 3]``."""
    top = viewer._lane_top(device)
    return frame[top : top + viewer._LANE_PX, viewer._MARGIN_PX : viewer._MARGIN_PX + viewer._LANES_PX]


def painted(pixels: np.ndarray) -> float:
    """Share of the pixels that are not empty."""
    return float((pixels != viewer._EMPTY).any(axis=-1).mean())


def test_frames_have_one_size() -> None:
    env = GraphPlacementEnv(example.load("two-branch"), render_mode="rgb_array", cluster="3xP100")
    env.reset()
    shapes = {env.render().shape}
    over = False
    while not over:
        over = env.step(2)[2]
        shapes.add(env.render().shape)
    assert len(shapes) == 1


def test_lanes_fill_as_groups_are_placed() -> None:
    env = GraphPlacementEnv(example.load("two-branch"), render_mode="rgb_array")
    env.reset()
    assert painted(lane(env.render(), 0)) == painted(lane(env.render(), 1)) == 0
    env.step(0)
    assert painted(lane(env.render(), 0)) > 0.5  # one block, drawn over the whole width
    assert painted(lane(env.render(), 1)) == 0
    frame = play_half("rgb_array").render()
    assert painted(lane(frame, 0)) > 0
    assert painted(lane(frame, 1)) > 0


def test_the_end_shows_the_simulated_run() -> None:
    env = GraphPlacementEnv(example.load("two-branch"), render_mode="rgb_array")
    play_devices(env, [0] * env.num_groups)
    busy, transfers = lane(env.render(), 0)[:10], lane(env.render(), 0)[-3:]
    assert painted(busy) == 1.0  # one device never waits
    assert painted(transfers) == 0
    play_devices(env, [g % 2 for g in range(env.num_groups)])
    assert painted(lane(env.render(), 1)[-3:]) > 0  # copies arrive
    assert painted(lane(env.render(), 0)[:10]) < 1


def test_overflow_is_red() -> None:
    graph = example.load("two-branch")
    need = GraphPlacementEnv(graph).problem.footprint_bytes.max()
    problem = GraphPlacementEnv(graph).problem
    env = GraphPlacementEnv(graph, cluster=problem.cluster.with_capacity(int(need)), render_mode="rgb_array")
    red = lambda frame: int((frame == viewer._OVER).all(axis=-1).sum())  # noqa: E731
    env.reset()
    assert red(env.render()) == 0
    _, info = play_devices(env, [0] * env.num_groups)
    assert not info["outcome"].ok
    assert red(env.render()) == viewer._LANE_PX * viewer._MEMORY_PX


def test_text_names_what_is_next_and_how_it_ended() -> None:
    env = play_half("ansi")
    text = env.render()
    assert "decision 8 of 16" in text
    assert "estimated" in text
    op = int(np.flatnonzero(env.groups == 8)[0])
    assert f"next: group 8, {env.problem.graph.op_names[op]} ({env.problem.graph.kind(op)}), on 0 1" in text
    assert text.count("4 groups") == 2
    _, info = play_devices(env, [0] * env.num_groups)
    text = env.render()
    assert "simulated" in text
    assert f"step_time: {info['outcome'].value:g} ns, ok" in text
    assert "#" * 40 in text


def test_rendering_does_not_change_the_episode() -> None:
    env, twin = play_half("rgb_array"), play_half("ansi")
    env.render(), twin.render(), twin.render()
    assert np.array_equal(env.step(1)[0], twin.step(1)[0])


def test_no_plotting_library_is_loaded() -> None:
    code = (
        "import sys, gymnasium, opgym\n"
        "env = gymnasium.make('GraphPlacement-v0', render_mode='rgb_array'); env.reset(); env.render()\n"
        "assert 'matplotlib' not in sys.modules and 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
