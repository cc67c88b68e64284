"""What observations hold: fields as documented, right values, fresh arrays, several graphs in one space."""

import inspect
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.utils.env_checker import data_equivalence

from opgym.datasets import example
from opgym.envs import GraphPlacementEnv
from opgym.envs.paths import longest_paths
from opgym.envs.placement.features import (
    DEVICE_FIELDS,
    EDGE_FIELDS,
    FAMILIES,
    GROUP_FIELDS,
    PROGRESS,
    family_of,
)
from opgym.errors import InvalidProblemError
from opgym.graphs import GraphBuilder

from .instances import mixed_support, random_graph, table_cluster, table_costs

GROUP = {field.name: i for i, field in enumerate(GROUP_FIELDS)}
DEVICE = {field.name: i for i, field in enumerate(DEVICE_FIELDS)}
EDGE = {field.name: i for i, field in enumerate(EDGE_FIELDS)}


def split(observation: np.ndarray, devices: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Device fields ``[devices, fields]``, group fields, progress."""
    per_device = devices * len(DEVICE_FIELDS)
    return observation[:per_device].reshape(devices, -1), observation[per_device:-1], float(observation[-1])


def test_every_field_is_in_the_docstring() -> None:
    doc = inspect.getdoc(GraphPlacementEnv) or ""
    for field in (*DEVICE_FIELDS, *GROUP_FIELDS, PROGRESS, *EDGE_FIELDS):
        assert f"| `{field.name}` | {field.low:g} .. {field.high:g} | {field.unit} | {field.meaning} |" in doc
    for size in (f"devices * {len(DEVICE_FIELDS)} + {len(GROUP_FIELDS)} + 1", f"[edges, {len(EDGE_FIELDS)}]",
                 f"[nodes, {len(GROUP_FIELDS)} + 2 * devices]",
                 f"[{len(GROUP_FIELDS) + 2} + {3 + len(DEVICE_FIELDS)} * devices]"):  # fmt: skip
        assert size in " ".join(doc.split())
    keys = GraphPlacementEnv(random_graph(0), observation="dict").observation_space
    assert isinstance(keys, spaces.Dict)
    for key, space in keys.items():
        assert f"| `{key}` | {space.dtype} |" in doc


def test_node_has_one_length_for_any_graph() -> None:
    boxes = [
        GraphPlacementEnv(graph, cluster="1xCPU+2xP100", groups=groups).observation_space
        for graph in (random_graph(0), example.load("rnn-train"), random_graph(1, training=False))
        for groups in ("op", "metis:3")
    ]
    first = boxes[0]
    assert all(box == first for box in boxes)
    assert first.dtype == np.float32
    assert np.isfinite(first.low).all()
    assert np.isfinite(first.high).all()


def chain_with_a_side() -> Any:
    """a (4 ns) -> b (3) -> d (2), a -> c (1) -> d: times and bytes chosen to be told apart."""
    b = GraphBuilder("test", "diamond")
    x, y, z, w = (b.tensor(bytes=size) for size in (100, 20, 30, 1))
    b.op("MatMul", outputs=[x], layer="low")
    b.op("Relu", inputs=[x], outputs=[y], layer="low", elementwise=True)
    b.op("Foo", inputs=[x], outputs=[z], layer="middle", direction="backward")
    b.op("SGD", inputs=[y, z], outputs=[w], layer="high", direction="update")
    return GraphPlacementEnv(b.build(), cluster=table_cluster(2, 1_000), costs=table_costs([4, 3, 1, 2]))


def test_values_by_hand() -> None:
    env = chain_with_a_side()
    assert env.reference == 10
    observation, _ = env.reset()
    device, group, progress = split(observation, 2)
    block = 10 / 4  # mean block
    assert progress == 0
    assert group[GROUP["rank"]] == 1
    assert group[GROUP["depth"]] == 0
    assert group[GROUP["slack"]] == 0
    assert group[GROUP["layer"]] == 0
    assert group[[GROUP["forward"], GROUP["backward"], GROUP["update"]]].tolist() == [1, 0, 0]
    assert group[GROUP["matrix"]] == 1
    assert group[GROUP["work"]] == np.float32(4 / block)
    assert group[GROUP["send"]] == np.float32(min(105 / block, 16))
    assert group[GROUP["fan_in"]] == 0
    assert group[GROUP["fan_out"]] == np.float32(np.log(3) / np.log(5))
    assert device[:, DEVICE["cost"]].tolist() == [np.float32(4 / block)] * 2
    assert device[:, DEVICE["allowed"]].tolist() == [1, 1]
    assert device[:, DEVICE["lock"]].tolist() == [0, 0]

    env.step(0)
    observation = env.step(1)[0]  # group 2 (c) is next: a on 0, b on 1 with a copy of x, which left at 4
    device, group, progress = split(observation, 2)
    assert progress == 0.5
    assert group[GROUP["slack"]] == np.float32(2 / 9)
    assert group[GROUP["depth"]] == np.float32(4 / 9)
    assert group[GROUP["rank"]] == np.float32(3 / 9)
    assert group[GROUP["layer"]] == 0.5
    assert group[GROUP["backward"]] == 1
    assert group[[GROUP[family] for family in FAMILIES]].tolist() == [0] * len(FAMILIES)
    arrival = 4 + 5 + 100
    assert device[:, DEVICE["start"]].tolist() == [
        np.float32(4 / 10),
        np.float32(min((arrival + 3) / 10, 16)),
    ]
    assert device[:, DEVICE["start_delay"]].tolist() == [0, 16]  # 108 ns are more than 16 mean blocks
    assert device[:, DEVICE["transfer"]].tolist() == [0, 0]  # the copy is there already
    assert device[:, DEVICE["bytes_to_move"]].tolist() == [0, 0]
    assert device[:, DEVICE["parents"]].tolist() == [1, 0]
    assert device[:, DEVICE["children"]].tolist() == [0, 0]
    # x waits for c at home and on device 1; device 1 also holds y
    assert device[:, DEVICE["free_memory"]].tolist() == [np.float32(0.9), np.float32(0.88)]

    observation = env.step(0)[0]  # d: reads y (20 bytes on device 1) and z (30 on device 0)
    device, group, _ = split(observation, 2)
    assert device[:, DEVICE["bytes_to_move"]].tolist() == [np.float32(0.4), np.float32(0.6)]
    assert device[:, DEVICE["transfer"]].tolist() == [np.float32(25 / block), np.float32(35 / block)]
    assert device[:, DEVICE["parents"]].tolist() == [0.5, 0.5]
    assert group[GROUP["elementwise"]] == 1  # SGD
    assert group[GROUP["layer"]] == 1

    observation = env.step(0)[0]  # over: nothing to decide
    device, group, progress = split(observation, 2)
    assert progress == 1
    assert not group.any()
    assert device[:, DEVICE["busy_until"]].all()
    assert not device[:, DEVICE["cost"]].any()


def test_lock_and_current() -> None:
    env = GraphPlacementEnv(mixed_support(), cluster="1xCPU+1xP100", mode="refine")
    observation, _ = env.reset()
    for group in range(5):
        device, _, progress = split(observation, 2)
        assert progress == pytest.approx(group / 5)
        assert device[:, DEVICE["lock"]].tolist() == {1: [0, 1], 3: [1, 0]}.get(group, [0, 0])
        assert device[:, DEVICE["allowed"]].tolist() == {1: [0, 1], 3: [1, 0]}.get(group, [1, 1])
        home = int(env.device[group])
        assert device[:, DEVICE["current"]].tolist() == [float(d == home) for d in range(2)]
        if group < 4:  # the child has a device, as the placement is whole
            assert device[int(env.device[group + 1]), DEVICE["children"]] == 1
        observation = env.step(home)[0]


def test_late_parents_of_groups_that_form_a_cycle() -> None:
    b = GraphBuilder("test", "cycle")
    x, y, z = (b.tensor(bytes=1) for _ in range(3))
    b.op("A", outputs=[x])
    b.op("B", inputs=[x], outputs=[y])
    b.op("C", inputs=[y], outputs=[z])
    env = GraphPlacementEnv(b.build(), groups=[0, 1, 0], observation="dict")
    observation, _ = env.reset()
    assert observation["nodes"][:, GROUP["late_parents"]].tolist() == [1, 0]
    assert observation["edges"].tolist() == [[0, 1], [1, 0]]
    assert observation["edge_features"][:, EDGE["late"]].tolist() == [0, 1]
    env.step(0)
    assert env.step(1)[4]["outcome"].ok


def test_dict_is_padded_and_masked() -> None:
    graph = random_graph(0)
    exact = GraphPlacementEnv(graph, observation="dict").reset()[0]
    padded_env = GraphPlacementEnv(graph, observation="dict", pad_to=(50, 200))
    padded = padded_env.reset()[0]
    assert padded in padded_env.observation_space
    nodes, edges = len(exact["node_mask"]), len(exact["edge_mask"])
    assert (exact["node_mask"] == 1).all()
    assert padded["node_mask"].tolist() == [1] * nodes + [0] * (50 - nodes)
    assert padded["edge_mask"].tolist() == [1] * edges + [0] * (200 - edges)
    assert np.array_equal(padded["nodes"][:nodes], exact["nodes"])
    assert not padded["nodes"][nodes:].any()
    assert np.array_equal(padded["edges"][:, :edges], exact["edges"])
    assert (padded["placement"] == -1).all()
    after = padded_env.step(1)[0]
    assert after["placement"].tolist() == [1] + [-1] * 49
    assert after["current"].tolist() == [1]


def test_dict_edges_are_the_graph() -> None:
    env = GraphPlacementEnv(random_graph(4), observation="dict", groups="metis:7")
    observation, _ = env.reset()
    producer, consumer, tensor = env.problem.graph.edges
    crossing: dict[tuple[int, int], set[int]] = {}
    for u, v, t in zip(env.groups[producer], env.groups[consumer], tensor, strict=True):
        if u != v:
            crossing.setdefault((int(u), int(v)), set()).add(int(t))
    assert {tuple(edge) for edge in observation["edges"].T.tolist()} == set(crossing)
    for edge, values in zip(observation["edges"].T.tolist(), observation["edge_features"], strict=True):
        size = sum(int(env.problem.graph.tensor_bytes[t]) for t in crossing[tuple(edge)])
        assert values[EDGE["bytes"]] == np.float32(np.log2(1 + size) / 63)


def test_two_graphs_in_one_vector_environment() -> None:
    graphs = [random_graph(0), random_graph(5, ops=20)]
    for mode in ("sequential", "one_shot"):
        makers = [
            lambda graph=graph, mode=mode: GraphPlacementEnv(
                graph, mode=mode, observation="dict", pad_to=(60, 200)
            )
            for graph in graphs
        ]
        env = gymnasium.vector.SyncVectorEnv(makers)
        observation, _ = env.reset(seed=0)
        assert observation["nodes"].shape[:2] == (2, 60)
        assert len(set(observation["node_mask"].sum(axis=1).tolist())) == 2
        env.action_space.seed(0)
        _, rewards, terminated, _, _ = env.step(env.action_space.sample())
        assert terminated.all() == (mode == "one_shot")
        assert (rewards < 0).all() == (mode == "one_shot")


def test_padding_of_one_shot_actions_is_ignored() -> None:
    env = GraphPlacementEnv(mixed_support(), cluster="1xCPU+1xP100", mode="one_shot", pad_to=(7, 10))
    assert env.action_space == spaces.MultiDiscrete([2] * 7)
    _, info = env.reset()
    assert info["action_mask"].tolist() == [1, 1, 0, 1, 1, 1, 1, 0, 1, 1, 1, 1, 1, 1]
    info = env.step([1, 1, 1, 0, 1, 1, 0])[4]
    assert list(info["device"]) == [1, 1, 1, 0, 1]
    assert info["illegal_actions"] == 0


def test_padding_that_is_too_small() -> None:
    with pytest.raises(InvalidProblemError, match=r"pad_to=\(3, 10\) is too small .* 5 groups"):
        GraphPlacementEnv(mixed_support(), cluster="1xCPU+1xP100", observation="dict", pad_to=(3, 10))


def test_graph_observation() -> None:
    env = GraphPlacementEnv(random_graph(0), observation="graph")
    env.reset()
    observation = env.step(1)[0]
    twin = GraphPlacementEnv(random_graph(0), observation="dict")
    twin.reset()
    expected = twin.step(1)[0]
    columns = expected["nodes"].shape[1]
    assert np.array_equal(observation.nodes[:, :columns], expected["nodes"])
    assert observation.nodes[0, columns : columns + 3].tolist() == [0, 1, 0]  # on device 1, not to be decided
    assert observation.nodes[1, columns : columns + 3].tolist() == [0, 0, 1]
    assert np.array_equal(observation.nodes[1, columns + 3 : -1], expected["devices"].ravel())
    assert not observation.nodes[0, columns + 3 : -1].any()
    assert np.array_equal(observation.edge_links, expected["edges"].T)
    assert np.array_equal(observation.edges, expected["edge_features"])


@pytest.mark.parametrize("observation", ["node", "dict", "graph"])
def test_returned_arrays_belong_to_the_caller(observation: str) -> None:
    env, twin = (GraphPlacementEnv(random_graph(0), observation=observation) for _ in range(2))
    seen, _ = env.reset(seed=0)
    twin.reset(seed=0)
    for _ in range(3):
        parts = seen.values() if isinstance(seen, dict) else seen if isinstance(seen, tuple) else [seen]
        for array in parts:
            array[...] = 0
        seen, expected = env.step(1)[0], twin.step(1)[0]
        assert data_equivalence(seen, expected, exact=True)


def test_large_observations_warn_with_the_bytes() -> None:
    graph = random_graph(0)
    with pytest.warns(UserWarning, match=r"rollout buffer of 2048 steps needs \d+\.\d GB") as caught:
        env = GraphPlacementEnv(graph, observation="dict", pad_to=(20_000, 100_000))
    said = str(caught[0].message)
    seen, _ = env.reset()
    assert f"{sum(array.nbytes for array in seen.values()):,} bytes" in said


@pytest.mark.parametrize("observation", ["node", "dict", "graph"])
def test_announced_bytes_are_the_real_ones(observation: str) -> None:
    env = GraphPlacementEnv(random_graph(0), observation=observation)
    seen, _ = env.reset()
    parts = seen.values() if isinstance(seen, dict) else seen if isinstance(seen, tuple) else [seen]
    assert env._observer.nbytes == sum(array.nbytes for array in parts)


@pytest.mark.parametrize(
    ("kind", "family"),
    [
        ("Conv", "convolution"), ("aten.convolution.default", "convolution"), ("convert", "movement"),
        ("MatMul", "matrix"), ("aten.mm.default", "matrix"), ("aten.addmm.default", "matrix"),
        ("Gemm", "matrix"), ("dot", "matrix"), ("LSTM", "recurrent"), ("GRU", "recurrent"),
        ("BatchNormalization", "normalization"),
        ("aten._softmax.default", "normalization"), ("ReduceMean", "reduction"), ("MaxPool", "reduction"),
        ("aten.sum.dim_IntList", "reduction"), ("SoftmaxCrossEntropy", "reduction"), ("Reshape", "movement"),
        ("aten.cat.default", "movement"), ("Relu", "elementwise"), ("aten.add.Tensor", "elementwise"),
    ],
)  # fmt: skip
def test_families_of_kinds(kind: str, family: str) -> None:
    assert FAMILIES[family_of(kind)] == family


def test_unknown_kind_is_of_no_family() -> None:
    assert family_of("MyCustomOp") == -1


def test_longest_paths_by_hand() -> None:
    env = chain_with_a_side()
    depth, rank, critical = longest_paths(env.problem.graph, env.problem.cost_ns[:, 0])
    assert depth.tolist() == [0, 4, 4, 7]
    assert rank.tolist() == [9, 5, 3, 2]
    assert critical == 9
