"""Graphs from networkx: attributes in, arrays out, and messages that name the node."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pytest

from opgym.errors import ImportFailedError
from opgym.graphs import Cluster
from opgym.graphs.readers import from_networkx
from opgym.graphs.readers.networkx import EDGE_ATTRIBUTES, NODE_ATTRIBUTES


def test_all_attributes_arrive() -> None:
    g = nx.DiGraph(name="step")
    g.add_node("w", kind="variable", output_bytes=400, group="w", layer="fc")
    g.add_node(
        "fc",
        kind="MatMul",
        flops=10**6,
        shape=(10, 10),
        dtype="float16",
        layer="fc",
        workspace_bytes=7,
        parameter_bytes=64,
        elementwise=True,
        unsupported=["cpu"],
        accessed_bytes=99,
    )
    g.add_node("grad", direction="backward", output_bytes=[40, 8])
    g.add_node("update", direction="update", update_of="w", group="w", is_output=True)
    g.add_edge("w", "fc")
    g.add_edge("fc", "grad")
    g.add_edge("grad", "update", slot=1)
    g.add_edge("fc", "update", bytes=0)
    imported = from_networkx(g)
    graph = imported.graph
    assert graph.op_names == ("w", "fc", "grad", "update")
    assert [graph.kind(op) for op in range(4)] == ["variable", "MatMul", "op", "op"]
    assert graph.op_flops.tolist() == [0, 10**6, 0, 0]
    assert graph.op_workspace_bytes.tolist() == [0, 7, 0, 0]
    assert graph.op_accessed_bytes.tolist() == [400, 99, 248, 8]
    assert graph.op_group.tolist() == [0, -1, -1, 0]
    assert graph.op_layer.tolist() == [0, 0, -1, -1]
    assert graph.op_direction.tolist() == [0, 0, 1, 2]
    assert graph.op_update_of.tolist() == [-1, -1, -1, 0]
    assert graph.op_elementwise.tolist() == [False, True, False, False]
    assert graph.op_unsupported.tolist() == [0, 1, 0, 0]
    assert graph.tensor_bytes.tolist() == [64, 400, 200, 0, 40, 8, 0]
    assert graph.tensor_role.tolist() == [1, 0, 0, 0, 0, 0, 0]
    assert graph.tensor_is_output.tolist() == [False] * 6 + [True]
    assert [graph.inputs(op).tolist() for op in range(4)] == [[], [0, 1], [2], [3, 5]]
    assert graph.name == "step"
    assert imported.costs is None
    assert imported.report.format == "networkx"
    assert imported.report.notes == ()


def test_every_documented_attribute_is_read() -> None:
    """The tables that users see name exactly what the reader looks at."""
    g = nx.DiGraph()
    g.add_node("a", **dict.fromkeys(NODE_ATTRIBUTES), colour="red")
    g.add_node("b")
    g.add_edge("a", "b", **dict.fromkeys(EDGE_ATTRIBUTES), weight=3)
    with pytest.raises(ImportFailedError):
        from_networkx(g)
    h = nx.DiGraph()
    h.add_node("a", colour="red")
    h.add_edge("a", "b", weight=3)
    assert from_networkx(h).report.notes == (
        "attribute 'colour' is not read (1 times)",
        "attribute 'weight' is not read (1 times)",
    )


def test_edges_may_carry_their_own_bytes_and_run_in_parallel() -> None:
    g = nx.MultiDiGraph()
    g.add_node("a", dtype="int8")
    for size in (100, 200):
        g.add_edge("a", "b", bytes=size)
    g.add_node("c", output_bytes=[1, 2, 3])
    g.add_edge("c", "b", slot=2)
    g.add_edge("c", "b", slot=0)
    graph = from_networkx(g).graph
    sizes = {graph.op_names[v]: [int(graph.tensor_bytes[t]) for t in graph.inputs(v)] for v in range(3)}
    assert sorted(sizes["b"]) == [1, 3, 100, 200]
    assert graph.dtype(int(graph.inputs(graph.op_names.index("b"))[0])) == "int8"


def test_measured_times_follow_the_ops_into_topological_order() -> None:
    g = nx.DiGraph()
    g.add_node("late", time_ns={"gpu": 30, "cpu": 300})
    g.add_node("early", time_ns={"gpu": 10, "cpu": 100})
    g.add_node("apart", time_ns={"cpu": 200, "gpu": np.int64(20)})
    g.add_edge("early", "late")
    imported = from_networkx(g)
    assert imported.graph.op_names == ("early", "late", "apart")
    assert imported.costs is not None
    table = imported.costs.cost_ns(imported.graph, Cluster.parse("1xCPU+1xP100"))
    assert table.tolist() == [[100, 10], [300, 30], [200, 20]]


def graph_with(node: dict[str, Any] | None = None, edge: dict[str, Any] | None = None) -> nx.DiGraph:
    g = nx.DiGraph()
    g.add_node("a", **(node or {}))
    g.add_edge("a", "b", **(edge or {}))
    return g


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        (graph_with({"flops": -1}), "node 'a': flops is -1"),
        (graph_with({"flops": 1.5}), "whole number"),
        (graph_with({"flops": float("nan")}), "node 'a': flops is nan"),
        (graph_with({"flops": True}), "whole number"),
        (graph_with({"output_bytes": "many"}), "output_bytes is 'many'"),
        (graph_with({"output_bytes": 2**63}), r"0 to 2\^63 - 1"),
        (graph_with({"shape": (2,), "output_bytes": 8}), "both shape and output_bytes"),
        (graph_with({"dtype": "float33"}), "dtype 'float33'"),
        (graph_with({"direction": "sideways"}), "'sideways'"),
        (graph_with({"update_of": "ghost"}), "update_of='ghost', which is no node"),
        (graph_with({"update_of": "b"}), "not a variable"),
        (graph_with({"unsupported": "cpu"}), "unsupported='cpu'"),
        (graph_with({"time_ns": {"gpu": 1}}), "'b' has no time_ns"),
        (graph_with(None, {"slot": 1}), "'a' -> 'b' reads slot 1; node 'a' has 1 outputs"),
        (graph_with(None, {"bytes": 8, "slot": 0}), "both bytes and slot"),
        (nx.Graph([("a", "b")]), "DiGraph"),
        (nx.DiGraph(), "no ops"),
        (nx.DiGraph([("a", "b"), ("b", "a")]), "cycle: op"),
        (nx.DiGraph([("a", "a")]), "cycle: op"),
        ("not a graph", "expected a networkx DiGraph"),
    ],
)
def test_what_does_not_fit_is_refused(graph: Any, message: str) -> None:
    with pytest.raises(ImportFailedError, match=message):
        from_networkx(graph)


def test_times_that_do_not_match_are_refused() -> None:
    g = nx.DiGraph()
    g.add_node("a", time_ns={"gpu": 1})
    g.add_node("b", time_ns={"cpu": 1})
    with pytest.raises(ImportFailedError, match=r"'b' has time_ns=.*same classes as node 'a' \(gpu\)"):
        from_networkx(g)
