"""Groups of ops: units, layers, METIS parts, and what users hand in."""

from __future__ import annotations

import ctypes
import os
import tempfile

import numpy as np
import pytest
from hypothesis import given, settings

from opgym.datasets import example
from opgym.errors import InvalidProblemError, UnknownIdError
from opgym.graphs import Cluster, GraphBuilder
from opgym.problems import PlacementProblem
from opgym.problems.grouping import assign, colocation_units, known_layers, metis_parts

from ..reference.strategies import graphs
from .instances import accelerator, cpu, dag, problem

DIAMOND = {0: [], 1: [0], 2: [0], 3: [1, 2]}
CHAIN = {v: [v - 1] if v else [] for v in range(12)}


def posed(graph, cost=None, devices=2):
    return problem(graph, (accelerator(),) * devices, "step_time", cost or [10] * graph.num_ops)


def layered(*layers: str | None, edges=None):
    b = GraphBuilder("test")
    tensors = [b.tensor(bytes=1) for _ in layers]
    for v, layer in enumerate(layers):
        b.op("op", inputs=[tensors[u] for u in (edges or {}).get(v, [])], outputs=[tensors[v]], layer=layer)
    return b.build()


def is_numbered_by_first_op(groups) -> bool:
    first_seen = list(dict.fromkeys(groups.tolist()))
    return first_seen == list(range(len(first_seen)))


# --- units


def test_a_unit_is_a_colocation_group_or_a_lone_op():
    assert colocation_units(dag(DIAMOND)).tolist() == [0, 1, 2, 3]
    assert colocation_units(dag(DIAMOND, groups={1: "b", 3: "b"})).tolist() == [0, 1, 2, 1]
    assert colocation_units(dag(DIAMOND, groups={0: "b", 3: "a", 2: "a"})).tolist() == [0, 1, 2, 2]


def test_op_is_one_group_per_unit():
    p = posed(dag(DIAMOND, groups={1: "b", 3: "b"}))
    assert assign(p, "op").tolist() == [0, 1, 2, 1]
    assert assign(p, "op").dtype == np.int32


# --- layers


def test_layers_are_numbered_by_first_op():
    p = posed(layered("z", "a", "z", "m"))
    assert assign(p, "layer").tolist() == [0, 1, 0, 2]


def test_an_op_of_no_layer_joins_its_first_producer_that_has_one():
    # op 2 reads from 0 (layer x) and 1 (layer y); op 3 from 2
    graph = layered("x", "y", None, None, edges={2: [0, 1], 3: [2]})
    assert assign(posed(graph), "layer").tolist() == [0, 1, 0, 0]


def test_an_op_of_no_layer_before_all_others_joins_its_first_consumer():
    graph = layered(None, "x", "y", edges={1: [0], 2: [0]})
    assert known_layers(graph).tolist() == [0, 0, 1]
    assert assign(posed(graph), "layer").tolist() == [0, 0, 1]


def test_a_chain_of_ops_before_the_first_layer_joins_it_too():
    graph = layered(None, None, "x", edges={1: [0], 2: [1]})
    assert known_layers(graph).tolist() == [0, 0, 0]


def test_ops_connected_to_no_layer_stay_alone():
    assert assign(posed(layered(None, "x", None, "x")), "layer").tolist() == [0, 1, 2, 1]


def test_a_colocation_group_takes_the_layer_of_its_first_op_that_has_one():
    b = GraphBuilder("test")
    for layer, group in ((None, "g"), ("x", None), ("y", "g"), ("x", "g")):
        b.op("op", outputs=[b.tensor(bytes=1)], layer=layer, group=group)
    assert assign(posed(b.build()), "layer").tolist() == [0, 1, 0, 0]


def test_a_graph_without_layers_has_no_groups_by_layer():
    with pytest.raises(InvalidProblemError, match="names no layers; group by 'op' or 'metis:K'"):
        assign(posed(dag(DIAMOND)), "layer")


# --- METIS


def test_metis_parts_are_balanced_and_contiguous_on_a_chain():
    groups = assign(posed(dag(CHAIN)), "metis:3")
    assert groups.tolist() == [0] * 4 + [1] * 4 + [2] * 4


def test_metis_balances_time_not_numbers():
    cost = [90, *([10] * 9)]
    groups = assign(posed(dag({v: [v - 1] if v else [] for v in range(10)}), cost), "metis:2")
    assert groups.tolist() == [0] + [1] * 9


def test_metis_cuts_few_bytes():
    sizes = [1000] * 12
    sizes[4] = 1  # the cheapest cut, a little off the middle
    groups = assign(posed(dag(CHAIN, sizes=sizes), [10] * 12), "metis:2")
    cut = [v for v in range(11) if groups[v] != groups[v + 1]]
    assert cut in ([4], [5])
    sizes = [1000] * 12
    sizes[5] = 1
    groups = assign(posed(dag(CHAIN, sizes=sizes), [10] * 12), "metis:2")
    assert groups.tolist() == [0] * 6 + [1] * 6


def test_metis_never_splits_a_colocation_group():
    p = posed(dag(CHAIN, groups={0: "g", 11: "g"}))
    groups = assign(p, "metis:4")
    assert groups[0] == groups[11]


def test_more_parts_than_units_are_the_units():
    p = posed(dag(DIAMOND, groups={1: "b", 3: "b"}))
    for k in (3, 4, 64, 1000):
        assert assign(p, f"metis:{k}").tolist() == [0, 1, 2, 1]


def test_one_part_is_everything():
    assert assign(posed(dag(DIAMOND)), "metis:1").tolist() == [0, 0, 0, 0]


def test_without_edges_the_heaviest_go_first_to_the_emptiest_part():
    cost = [5, 4, 3, 3, 3]
    groups = assign(posed(dag({v: [] for v in range(5)}), cost), "metis:2")
    load = np.bincount(groups, weights=cost)
    assert sorted(load.tolist()) == [8, 10]


def test_ops_that_cost_nothing_are_spread_too():
    groups = assign(posed(dag({v: [] for v in range(6)}), [0] * 6), "metis:3")
    assert np.bincount(groups).tolist() == [2, 2, 2]
    groups = assign(posed(dag(CHAIN), [0] * 12), "metis:3")
    assert np.bincount(groups).tolist() == [4, 4, 4]


def test_shares_make_parts_unequal():
    p = posed(dag({v: [v - 1] if v else [] for v in range(80)}), [10] * 80)
    part = metis_parts(p, 2, shares=np.array([0.25, 0.75]))
    assert 18 <= int((part == 0).sum()) <= 22


def test_memory_can_be_balanced_instead_of_time():
    edges = {v: [v - 1] if v else [] for v in range(8)}
    graph = dag(edges, sizes=[1] * 8, parameters={0: 100, 1: 100, 2: 100, 3: 100})
    p = posed(graph, [1, 1, 1, 1, 100, 100, 100, 100])
    by_time, by_memory = metis_parts(p, 2), metis_parts(p, 2, memory_weight=1.0)
    assert by_time.tolist() == [0] * 6 + [1] * 2
    assert by_memory.tolist() == [0] * 2 + [1] * 6


def test_time_is_that_of_the_fastest_device_that_supports_the_op():
    graph = dag({v: [v - 1] if v else [] for v in range(4)}, unsupported={0: "accelerator"})
    # op 0 takes 30 on the only device that supports it; the others 10 on the accelerator
    p = problem(graph, (accelerator(), cpu()), "step_time", [1, 10, 10, 10], [30, 999, 999, 999])
    assert assign(p, "metis:2").tolist() == [0, 1, 1, 1]


def test_the_seed_decides():
    p = PlacementProblem(example.rnn_train(layers=4, steps=10), Cluster.parse("4xP100"))
    one, again = metis_parts(p, 16, seed=1), metis_parts(p, 16, seed=1)
    assert one.tolist() == again.tolist()
    assert any(metis_parts(p, 16, seed=s).tolist() != one.tolist() for s in range(2, 8))


def printed_by(action) -> bytes:
    """What C code wrote to the standard output meanwhile."""
    c = ctypes.CDLL(None)
    with tempfile.TemporaryFile() as file:
        saved = os.dup(1)
        c.fflush(None)
        os.dup2(file.fileno(), 1)
        try:
            action()
            c.fflush(None)
        finally:
            os.dup2(saved, 1)
            os.close(saved)
        file.seek(0)
        return file.read()


def test_capturing_what_c_prints_works():
    assert printed_by(lambda: ctypes.CDLL(None).puts(b"metis")) == b"metis\n"


@pytest.mark.parametrize("seed", range(20))
def test_metis_prints_nothing(seed):
    """It complains on the standard output about more parts than it finds vertices for: JSON goes there."""
    rng = np.random.default_rng(seed)
    ops = int(rng.integers(2, 90))
    graph = dag(
        {v: sorted({int(u) for u in rng.integers(0, v, rng.integers(0, 4))}) if v else [] for v in range(ops)}
    )
    spread = float(rng.choice([0, 1, 3, 8]))
    p = posed(graph, np.exp(rng.normal(0, spread, ops)).round().astype(np.int64).tolist())
    for k in (2, 3, 4, 8, 16, 64):
        assert printed_by(lambda k=k: metis_parts(p, k)) == b""
        shares = rng.dirichlet(np.full(k, 20.0))
        assert printed_by(lambda k=k, s=shares: metis_parts(p, k, shares=s)) == b""


@given(graphs(max_ops=14))
@settings(max_examples=60, deadline=None)
def test_any_grouping_keeps_units_whole_and_is_numbered_by_first_op(graph):
    p = posed_any(graph)
    unit = colocation_units(graph)
    specs = ["op", "metis:1", "metis:2", "metis:3", "metis:7", "metis:64"] + (
        ["layer"] if graph.layers else []
    )
    for spec in specs:
        groups = assign(p, spec)
        assert groups.dtype == np.int32
        assert is_numbered_by_first_op(groups)
        for u in range(int(unit.max()) + 1):
            assert len(set(groups[unit == u].tolist())) == 1
        if spec.startswith("metis"):
            assert int(groups.max()) < max(int(spec[6:]), 1) or groups.tolist() == unit.tolist()


def posed_any(graph):
    cost = np.where(graph.is_variable, 0, 1 + np.arange(graph.num_ops) % 5).tolist()
    return problem(graph, (accelerator(2**60),) * 2, "step_time", cost)


# --- what users hand in


def test_given_labels_are_renumbered():
    p = posed(dag(DIAMOND))
    assert assign(p, [7, 3, 7, -1]).tolist() == [0, 1, 0, 2]
    assert assign(p, np.array([5, 5, 5, 5], np.int64)).tolist() == [0, 0, 0, 0]


def test_given_labels_may_join_colocation_groups():
    p = posed(dag(DIAMOND, groups={0: "a", 1: "a", 2: "b", 3: "b"}))
    assert assign(p, [1, 1, 1, 1]).tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([0, 1, 2], r"shape \(3,\) and dtype int64; expected integers of shape \(4,\)"),
        ([0.0, 1.0, 2.0, 3.0], r"dtype float64; expected integers of shape \(4,\)"),
        ([[0, 1], [2, 3]], r"shape \(2, 2\)"),
        (
            [0, 1, 2, 3],
            "put op 3 apart from its colocation group 0; ops that must share a device have to share",
        ),
    ],
)
def test_impossible_labels_are_refused(labels, message):
    with pytest.raises(InvalidProblemError, match=message):
        assign(posed(dag(DIAMOND, groups={1: "b", 3: "b"})), labels)


def test_an_unknown_grouping_suggests_the_nearest():
    p = posed(dag(DIAMOND))
    with pytest.raises(UnknownIdError, match="unknown grouping 'layers'; did you mean layer"):
        assign(p, "layers")
    with pytest.raises(UnknownIdError, match="unknown grouping 'metis'; did you mean metis:64"):
        assign(p, "metis")
    with pytest.raises(InvalidProblemError, match="'metis:0' asks for 0 parts; expected at least 1"):
        assign(p, "metis:0")
