"""What observations of OpScheduling-v0 hold: fields as documented, right values, fresh arrays."""

import inspect
import warnings
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.utils.env_checker import data_equivalence

from opgym import datasets
from opgym.envs import OpSchedulingEnv
from opgym.envs.scheduling.features import CHANGING_FIELDS, EDGE_FIELDS, FIXED_FIELDS, GLOBAL_FIELDS
from opgym.envs.scheduling.observation import SLOT_FIELDS, GraphObserver
from opgym.errors import InvalidProblemError
from opgym.graphs import Graph, GraphBuilder

from .instances import SHAPES, random_graph

SLOT = {field.name: i for i, field in enumerate(SLOT_FIELDS)}
GLOBAL = {field.name: i for i, field in enumerate(GLOBAL_FIELDS)}
EDGE = {field.name: i for i, field in enumerate(EDGE_FIELDS)}


def test_every_field_is_in_the_docstring() -> None:
    doc = inspect.getdoc(OpSchedulingEnv) or ""
    for field in (*SLOT_FIELDS, *GLOBAL_FIELDS, *GraphObserver.STATUS_FIELDS, *EDGE_FIELDS):
        assert f"| `{field.name}` | {field.low:g} .. {field.high:g} | {field.unit} | {field.meaning} |" in doc
    graph_fields = len(SLOT_FIELDS) + len(GraphObserver.STATUS_FIELDS) + len(GLOBAL_FIELDS)
    for size in (f"[slots * {len(SLOT_FIELDS)} + {len(GLOBAL_FIELDS)}]", f"[nodes, {len(FIXED_FIELDS)}]",
                 f"[nodes, {len(CHANGING_FIELDS)}]", f"[edges, {len(EDGE_FIELDS)}]", f"[{len(GLOBAL_FIELDS)}]",
                 f"float32 [{graph_fields}]"):  # fmt: skip
        assert size in doc
    keys = OpSchedulingEnv(random_graph(0), observation="dict").observation_space
    assert isinstance(keys, spaces.Dict)
    for key, space in keys.items():
        assert f"| `{key}` | {space.dtype} |" in doc


def test_node_has_one_length_for_any_graph() -> None:
    loaded = [*(make() for make in SHAPES.values()), random_graph(0), datasets.load("synthetic/cells?n=300")]
    boxes = [OpSchedulingEnv(graph).observation_space for graph in loaded]
    assert all(box == boxes[0] for box in boxes)
    assert boxes[0].shape == (16 * len(SLOT_FIELDS) + len(GLOBAL_FIELDS),)
    assert np.isfinite(boxes[0].low).all()
    assert np.isfinite(boxes[0].high).all()


def diamond() -> Graph:
    """a (10 bytes) -> b (20), c (40, workspace 5) -> d (8, kept): the program order needs 75 bytes."""
    b = GraphBuilder("test", "diamond")
    x, y, z = (b.tensor(bytes=size) for size in (10, 20, 40))
    b.op("A", outputs=[x])
    b.op("B", inputs=[x], outputs=[y])
    b.op("C", inputs=[x], outputs=[z], workspace_bytes=5)
    b.op("D", inputs=[y, z], outputs=[b.tensor(bytes=8, is_output=True)])
    return b.build()


def test_values_by_hand() -> None:
    env = OpSchedulingEnv(diamond())
    assert env.reference == 75  # a, b, c and the workspace
    observation, _ = env.reset()
    a = observation[: len(SLOT_FIELDS)]
    by_hand = {
        "occupied": 1, "allocated": 10 / 75, "workspace": 0, "kept": 0, "position": 0, "depth": 0, "height": 1,
        "parents": 0, "children": np.log(3) / np.log(5), "net": -10 / 75, "net_relative": -1, "freed": 0,
        "needed": 10 / 75, "rise": 10 / 75, "last_uses": 0, "unlocks": 1, "waited": 0,
    }  # fmt: skip
    assert a.tolist() == pytest.approx([by_hand[name] for name in SLOT], rel=1e-6)
    assert list(by_hand) == list(SLOT)
    footprint_of_d = 20 + 40 + 8
    state = {
        "live": 0,
        "peak": 0,
        "bound": footprint_of_d / 75,
        "progress": 0,
        "ready": np.log(2) / np.log(5),
    }
    assert observation[-6:].tolist() == pytest.approx([*state.values(), 0], rel=1e-6)
    assert list(GLOBAL) == [*state, "hidden"]

    observation, reward, *_ = env.step(0)
    assert reward == -10 / 75
    b, c = observation[: 2 * len(SLOT_FIELDS)].reshape(2, -1)  # b allocates less
    assert b[SLOT["position"]] == np.float32(1 / 3)
    assert [b[SLOT["net"]], c[SLOT["net"]]] == [np.float32(-20 / 75), np.float32(-40 / 75)]
    assert [b[SLOT["net_relative"]], c[SLOT["net_relative"]]] == [-0.5, -1]
    assert [b[SLOT["needed"]], c[SLOT["needed"]]] == [np.float32(20 / 75), np.float32(45 / 75)]
    assert [b[SLOT["rise"]], c[SLOT["rise"]]] == [np.float32(20 / 75), np.float32(45 / 75)]
    assert [b[SLOT["depth"]], b[SLOT["height"]]] == [np.float32(1 / 3), np.float32(2 / 3)]
    assert [b[SLOT["unlocks"]], b[SLOT["last_uses"]], b[SLOT["waited"]]] == [0, 0, 0]

    observation, reward, *_ = env.step(1)  # c
    assert reward == pytest.approx(-45 / 75, rel=1e-12)
    b = observation[: len(SLOT_FIELDS)]
    assert b[SLOT["freed"]] == np.float32(10 / 75)  # b is the last to read a's output now
    assert b[SLOT["net"]] == np.float32(-10 / 75)
    assert b[SLOT["last_uses"]] == 0.5  # one tensor; d reads two
    assert b[SLOT["unlocks"]] == 0.5  # d; a has two readers
    assert b[SLOT["waited"]] == 0.25
    assert b[SLOT["rise"]] == np.float32(15 / 75)  # 50 live and 20 more, after 55
    assert observation[-6 + GLOBAL["live"]] == np.float32(50 / 75)
    assert observation[-6 + GLOBAL["peak"]] == np.float32(55 / 75)
    assert observation[-6 + GLOBAL["progress"]] == 0.5

    env.step(0)
    observation, reward, terminated, _, info = env.step(0)
    assert terminated
    assert reward == 0
    assert info["peak_bytes"] == 70
    assert not observation[:-6].any()
    assert observation[-6:].tolist() == pytest.approx(
        [8 / 75, 70 / 75, footprint_of_d / 75, 1, 0, 0], rel=1e-6
    )


def test_hidden_share() -> None:
    env = OpSchedulingEnv(SHAPES["no_edges"](), slots=2)  # five ops, all ready
    observation, _ = env.reset()
    shares = [observation[-1]]
    for _ in range(5):
        observation = env.step(0)[0]
        shares.append(observation[-1])
    assert shares == [np.float32(3 / 5), 0.5, np.float32(1 / 3), 0, 0, 0]
    assert OpSchedulingEnv(SHAPES["no_edges"](), action="op").reset()[0]["globals"][-1] == 0


def test_edges_by_hand() -> None:
    env = OpSchedulingEnv(SHAPES["multi_edges"](), observation="dict")  # 1 MB and 2 MB from op 0 to op 1
    seen, _ = env.reset()
    assert seen["edges"].tolist() == [[0], [1]]
    values = seen["edge_features"][0]
    assert values[EDGE["bytes"]] * env.reference == pytest.approx(3_000_000)
    assert values[EDGE["log_bytes"]] == pytest.approx(np.log2(3_000_001) / 63)
    split = OpSchedulingEnv(diamond(), observation="dict").reset()[0]
    assert split["edges"].T.tolist() == [[0, 1], [0, 2], [1, 3], [2, 3]]
    assert split["edge_features"][:, EDGE["bytes"]] * 75 == pytest.approx([10, 10, 20, 40])
    assert split["edge_features"][:, EDGE["split_bytes"]] * 75 == pytest.approx([5, 5, 20, 40])


@pytest.mark.parametrize("seed", range(2))
def test_three_observations_of_one_state_agree(seed: int) -> None:
    options: dict[str, Any] = {"graph": random_graph(seed), "slots": 4}
    node, whole, graph = (OpSchedulingEnv(observation=o, **options) for o in ("node", "dict", "graph"))
    by_op = OpSchedulingEnv(random_graph(seed), action="op")
    rng, seen, over = (
        np.random.default_rng(seed),
        [env.reset()[0] for env in (node, whole, graph, by_op)],
        False,
    )
    node_of = {op: i for i, op in enumerate(node.problem.ops)}
    while not over:
        rows, state = seen[0][:-6].reshape(4, -1), seen[1]
        fields = np.concatenate([state["nodes"], state["figures"]], axis=1)
        slots = [node_of[op] for op in node.slot_ops]
        assert state["slots"].tolist() == slots + [-1] * (4 - len(slots))
        relative = SLOT["net_relative"]  # among the slots there, among all ready ops here
        same = np.arange(rows.shape[1]) != relative
        assert np.array_equal(rows[: len(slots), same], fields[slots][:, same])
        ready = [node_of[op] for op in node.ready_ops]
        assert np.flatnonzero(state["status"] == 1).tolist() == sorted(ready)
        assert np.flatnonzero(state["status"] == 2).tolist() == sorted(node_of[op] for op in node.order)
        assert not state["figures"][state["status"] != 1].any()
        assert np.array_equal(state["globals"], seen[0][-6:])
        nodes = seen[2].nodes
        assert np.array_equal(nodes[:, : len(SLOT_FIELDS)], fields)
        assert np.array_equal(nodes[:, len(SLOT_FIELDS)], state["status"] == 1)
        assert np.array_equal(nodes[:, len(SLOT_FIELDS) + 1], state["status"] == 2)
        assert nodes[slots, len(SLOT_FIELDS) + 2].tolist() == [1, 0.75, 0.5, 0.25][: len(slots)]
        assert np.array_equal(nodes[:, -6:], np.broadcast_to(state["globals"], (len(nodes), 6)))
        assert np.array_equal(seen[2].edge_links, state["edges"].T)
        assert "slots" not in seen[3]
        assert all(np.array_equal(seen[3][key], state[key]) for key in seen[3] if key != "globals")
        assert seen[3]["globals"][-1] == 0
        slot = int(rng.integers(len(slots)))
        chosen = slots[slot]
        steps = [env.step(slot) for env in (node, whole, graph)] + [by_op.step(chosen)]
        seen, over = [step[0] for step in steps], steps[0][2]


@pytest.mark.parametrize("observation", ["dict", "graph"])
def test_graph_without_edges(observation: str) -> None:
    env = OpSchedulingEnv(SHAPES["no_edges"](), observation=observation)
    seen, _ = env.reset()
    if observation == "dict":
        assert seen["edges"].shape == (2, 1)
        assert seen["edge_mask"].tolist() == [0]
    else:
        assert seen.edges is None
        assert seen.edge_links is None


def test_padding_gives_several_graphs_one_space() -> None:
    envs = [
        OpSchedulingEnv(graph, observation="dict", pad_to=(60, 200))
        for graph in (random_graph(0), random_graph(1, ops=20), diamond())
    ]
    assert all(env.observation_space == envs[0].observation_space for env in envs)
    for env in envs:
        seen, _ = env.reset()
        exact, _ = OpSchedulingEnv(problem=env.problem, observation="dict").reset()
        assert seen["node_mask"].sum() == env.num_ops
        assert (seen["status"] == -1).sum() == 60 - env.num_ops
        for key in ("nodes", "figures", "edge_features"):
            assert np.array_equal(seen[key][: len(exact[key])], exact[key])
            assert not seen[key][len(exact[key]) :].any()
        assert np.array_equal(seen["edges"][:, : exact["edges"].shape[1]], exact["edges"])
        assert np.array_equal(seen["slots"], exact["slots"])


@pytest.mark.parametrize("pad_to", [(3, 100), (100, 3)])
def test_padding_too_small_is_refused(pad_to: tuple[int, int]) -> None:
    with pytest.raises(InvalidProblemError, match=r"too small for this graph: 4 ops to order, 4 edges"):
        OpSchedulingEnv(diamond(), observation="dict", pad_to=pad_to)


@pytest.mark.parametrize(
    ("action", "observation"), [("slot", "node"), ("slot", "dict"), ("op", "dict"), ("op", "graph")]
)
def test_observations_are_fresh(action: str, observation: str) -> None:
    env, twin = (OpSchedulingEnv(random_graph(0), action=action, observation=observation) for _ in range(2))
    seen, _ = env.reset()
    twin.reset()
    for array in seen.values() if isinstance(seen, dict) else seen if isinstance(seen, tuple) else [seen]:
        array[...] = 77
    assert data_equivalence(env.step(0), twin.step(0), exact=True)


@pytest.mark.parametrize("observation", ["node", "dict", "graph"])
def test_announced_bytes_are_the_real_ones(observation: str) -> None:
    env = OpSchedulingEnv(random_graph(0), observation=observation)
    seen, _ = env.reset()
    parts = seen.values() if isinstance(seen, dict) else seen if isinstance(seen, tuple) else [seen]
    assert env._observer.nbytes == sum(array.nbytes for array in parts)


def test_rollouts_too_large_are_announced() -> None:
    with pytest.warns(
        UserWarning, match=r"observation has [\d,]+ bytes.* GB for each environment; .*'node'"
    ) as seen:
        OpSchedulingEnv("synthetic/layered?n=10000", action="op")
    assert seen[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gymnasium.make("OpScheduling-v0", graph="synthetic/layered?n=10000")
