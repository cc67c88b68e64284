"""Random games of placement, with all that graphs, clusters and arguments allow, in batches and one by one."""

from dataclasses import replace
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode
from hypothesis import assume
from hypothesis import strategies as st

from opgym.envs import GraphPlacementEnv, GraphPlacementVectorEnv
from opgym.errors import InvalidProblemError
from opgym.graphs import Cluster, Graph
from opgym.problems import Objective, PlacementProblem

from ..reference.strategies import clusters, cost_tables, graphs


class Table:
    """Times that were drawn."""

    def __init__(self, cost_ns: np.ndarray) -> None:
        self._cost_ns = cost_ns

    def cost_ns(self, graph: Graph, cluster: Cluster) -> np.ndarray:
        return self._cost_ns


@st.composite
def problems(draw: st.DrawFn) -> list[PlacementProblem]:
    """One to three graphs on one cluster, with ops that rule out devices, and little memory."""
    cluster = draw(clusters(max_devices=4))
    objective = draw(st.sampled_from([*Objective]))
    drawn = []
    for _ in range(draw(st.integers(1, 3))):
        graph = draw(graphs(max_ops=10))
        classes = tuple(sorted({device.name for device in cluster.devices}))
        bits = st.lists(st.sampled_from([0, 0, 0, 1, 2]), min_size=graph.num_ops, max_size=graph.num_ops)
        unsupported = np.array(draw(bits), np.uint64) & np.uint64((1 << len(classes)) - 1)
        graph = replace(graph, op_unsupported=unsupported, device_classes=classes)
        drawn.append((graph, Table(draw(cost_tables(graph, len(cluster.classes))))))
    needed = [int(g.tensor_bytes.sum() + g.op_workspace_bytes.sum()) for g, _ in drawn]
    cluster = cluster.with_capacity(max(1, int(max(needed) * draw(st.sampled_from([0.5, 0.8, 2.0, 1e6])))))
    try:
        return [PlacementProblem(graph, cluster, objective, costs) for graph, costs in drawn]
    except InvalidProblemError:
        assume(False)
        raise


@st.composite
def labels(draw: st.DrawFn, graph: Graph) -> np.ndarray:
    """Groups that do not split colocation groups; they may form cycles."""
    label = np.array(draw(st.lists(st.integers(0, 4), min_size=graph.num_ops, max_size=graph.num_ops)))
    for group in range(graph.num_groups):
        label[graph.op_group == group] = 100 + group
    return label


@st.composite
def refinements(draw: st.DrawFn) -> tuple[GraphPlacementEnv, int]:
    """A single environment whose episodes have one or two passes, and a seed for actions."""
    problem = draw(problems())[0]
    rule = draw(st.sampled_from(["op", "metis:3", "labels"]))
    groups = draw(labels(problem.graph)) if rule == "labels" else rule
    options: dict[str, Any] = draw(
        st.sampled_from([{}, {"mode": "refine", "steps": 17}, {"mode": "refine", "initial": "random"}])
    )
    try:
        env = GraphPlacementEnv(problem=problem, groups=groups, **options)
    except InvalidProblemError as error:
        assume("has no device that may run all" not in str(error))
        raise
    return env, draw(st.integers(0, 2**32))


def native_batch(slots: int, **options: Any) -> GraphPlacementVectorEnv:
    """A batch; the example is thrown away where ops of a group meet that rule out all devices."""
    try:
        return GraphPlacementVectorEnv(slots, **options)
    except InvalidProblemError as error:
        assume("has no device that may run all" not in str(error))
        raise


@st.composite
def games(draw: st.DrawFn) -> tuple[GraphPlacementVectorEnv, list[GraphPlacementEnv], int]:
    """A batch, single environments like its slots, and a seed for actions."""
    posed, slots = draw(problems()), draw(st.integers(1, 5))
    rule = draw(st.sampled_from(["op", "metis:3", None, "labels"]))
    rules = [draw(labels(problem.graph)) if rule == "labels" else rule for problem in posed]
    options: dict[str, Any] = {
        "observation": draw(st.sampled_from(["node", "dict"])),
        "reward": draw(st.sampled_from(["terminal", "dense"])),
        "order": draw(st.sampled_from(["critical_path", "program"])),
    }
    modes, threads = st.sampled_from([*AutoresetMode]), st.sampled_from([1, 1, 2])
    native = native_batch(
        slots,
        problem=posed,
        groups=rules if rule == "labels" else rule,
        autoreset_mode=draw(modes),
        threads=draw(threads),
        **options,
    )
    pad_to = None
    if options["observation"] == "dict":
        pad_to = (native.static["nodes"].shape[1], native.static["edges"].shape[2])
    chosen = [i % len(posed) for i in range(slots)]
    singles = [GraphPlacementEnv(problem=posed[i], groups=rules[i], pad_to=pad_to, **options) for i in chosen]
    return native, singles, draw(st.integers(0, 2**32))
