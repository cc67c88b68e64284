"""What the families draw: structure, distributions against networkx, sizes and times."""

import hashlib
import random
from collections.abc import Iterator
from statistics import mean, pstdev

import networkx as nx
import numpy as np
import pytest

from opgym import datasets
from opgym.datasets import synthetic
from opgym.datasets.synthetic.costs import FLOPS_PER_NS
from opgym.datasets.synthetic.random_bits import Draws, Stream
from opgym.datasets.synthetic.regal import small_world
from opgym.errors import InvalidCostError
from opgym.graphs import Cluster, DeviceProfile, Graph, RooflineCost, peak_of_order

REGAL = ("er", "ba", "ws", "sbm")
CONNECTED = ("ba", "layered", "cells", "fork-join")


def undirected(graph: Graph) -> nx.Graph:
    result = nx.Graph()
    result.add_nodes_from(range(graph.num_ops))
    producer, consumer, _ = graph.edges
    result.add_edges_from(zip(producer.tolist(), consumer.tolist(), strict=True))
    return result


def reads(graph: Graph) -> list[list[int]]:
    return [graph.inputs(op).tolist() for op in range(graph.num_ops)]


def graphs(family: str, count: int, parameters: str = "n=100") -> list[Graph]:
    return [datasets.load(f"synthetic/{family}?{parameters}&seed={seed}") for seed in range(count)]


def assert_alike(ours: list[float], theirs: list[float]) -> None:
    """Refuses two samples whose means differ by more than 4 standard errors."""
    error = (np.var(ours) / len(ours) + np.var(theirs) / len(theirs)) ** 0.5
    assert abs(mean(ours) - mean(theirs)) <= 4 * error + 1e-9


class NetworkxDraws(random.Random):
    """Our random numbers as networkx asks for them."""

    def __init__(self, draws: Draws) -> None:
        super().__init__(0)
        self.draws = draws

    def random(self) -> float:
        return self.draws.below(2**32) / 2**32

    def choice(self, seq: list[int]) -> int:
        return seq[self.draws.below(len(seq))]


# --- what all families have in common


@pytest.mark.parametrize("family", synthetic.FAMILIES)
def test_each_op_writes_one_tensor_that_later_ops_read(family: str) -> None:
    for graph in graphs(family, 5, "n=9-60"):
        assert graph.tensor_producer.tolist() == list(range(graph.num_ops))
        assert all(source < op for op, sources in enumerate(reads(graph)) for source in sources)
        accessed = [sum(graph.tensor_bytes[[*inputs, op]]) for op, inputs in enumerate(reads(graph))]
        assert graph.op_accessed_bytes.tolist() == accessed
        assert peak_of_order(graph, np.arange(graph.num_ops)) >= graph.tensor_bytes.max()


@pytest.mark.parametrize("family", CONNECTED)
def test_these_families_are_connected(family: str) -> None:
    for parameters in ("n=9-30", "n=50-200"):
        assert all(nx.is_connected(undirected(graph)) for graph in graphs(family, 30, parameters))


def test_the_others_may_have_isolated_ops_and_are_drawn_as_they_come() -> None:
    isolated = [nx.number_of_isolates(undirected(graph)) for graph in graphs("er", 100, "n=50")]
    expected = 50 * 0.95**49
    assert abs(mean(isolated) - expected) < 5 * pstdev(isolated) / 10
    assert all(nx.number_of_isolates(undirected(graph)) == 0 for graph in graphs("ws", 100, "n=50"))


@pytest.mark.parametrize("family", REGAL)
def test_ops_are_in_random_order(family: str) -> None:
    """The mean distance of the ends of an edge is that of two random positions."""
    distances = [float(np.mean(np.subtract(*graph.edges[1::-1]))) for graph in graphs(family, 200, "n=60")]
    assert_alike(distances, [61 / 3] * 200)


@pytest.mark.parametrize("family", synthetic.FAMILIES)
def test_the_smallest_graphs(family: str) -> None:
    low = synthetic.FAMILIES[family].ops[0]
    small = {"ba": "&m=1", "ws": "&k=2", "sbm": "&k=1"}.get(family, "")
    for seed in range(20):
        assert datasets.load(f"synthetic/{family}?n={low}&seed={seed}{small}").num_ops == low


# --- the four families of the paper


def test_erdos_renyi_is_what_the_text_says() -> None:
    """The same graph from the text of the documentation alone, in plain integers."""

    def words(purpose: str) -> Iterator[int]:
        name = f"opgym.synthetic/1/er/42/{purpose}"
        state = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "little")
        while True:
            state = (state + 0x9E3779B97F4A7C15) % 2**64
            z = ((state ^ state >> 30) * 0xBF58476D1CE4E5B9) % 2**64
            z = ((z ^ z >> 27) * 0x94D049BB133111EB) % 2**64
            yield z ^ z >> 31

    def normals(purpose: str) -> Iterator[int]:
        stream = words(purpose)
        while True:
            three = [next(stream) for _ in range(3)]
            yield sum(w >> s & 0xFFFF for w in three for s in (0, 16, 32, 48)) - 6 * 65_535

    n, word, key = 40, words("edges"), words("order")
    keys = [next(key) for _ in range(n)]
    order = sorted(range(n), key=keys.__getitem__)
    pairs = [(i, j) for j in range(n) for i in range(j) if next(word) >> 11 < int(0.25 * 2**53)]
    edges = sorted({(min(order[i], order[j]), max(order[i], order[j])) for i, j in pairs})
    normal, noise = normals("sizes"), normals("costs")
    size = [50_000_000 + (10_000_000 * next(normal) + 2**15 >> 16) for _ in range(n)]
    accessed = [size[v] + sum(size[a] for a, b in edges if b == v) for v in range(n)]
    ns = [(a * max(6553, 65_536 + next(noise) // 10) + 5 * 65_536) // (10 * 65_536) for a in accessed]

    imported = datasets.read(f"synthetic/er?n={n}&p=.25&seed=42")
    assert sorted(zip(*(side.tolist() for side in imported.graph.edges[:2]), strict=True)) == edges
    assert imported.graph.tensor_bytes.tolist() == size
    assert imported.costs is not None
    assert imported.costs.cost_ns(imported.graph, Cluster.parse("1xREGAL"))[:, 0].tolist() == ns


def test_erdos_renyi_has_as_many_edges_as_it_should() -> None:
    edges = [len(graph.input_tensor) for graph in graphs("er", 200)]
    assert abs(mean(edges) - 247.5) < 5 * 15.3 / 200**0.5  # binomial(4950, 0.05)
    assert 12 < pstdev(edges) < 19
    assert len(datasets.load("synthetic/er?n=300&p=1").input_tensor) == 300 * 299 // 2
    assert len(datasets.load("synthetic/er?n=300&p=0").input_tensor) == 0
    # more pairs than are decided at once
    assert abs(len(datasets.load("synthetic/er?n=2000&p=.01").input_tensor) - 19_990) < 5 * 141


def test_barabasi_albert_is_that_of_networkx() -> None:
    for links in (1, 2, 5):
        ours = [undirected(graph) for graph in graphs("ba", 60, f"n=80&m={links}")]
        theirs = [nx.barabasi_albert_graph(80, links, seed=seed) for seed in range(60)]
        assert {g.number_of_edges() for g in ours} == {links * (80 - links)}
        for statistic in (
            lambda g: max(d for _, d in g.degree()),
            lambda g: sum(d * d for _, d in g.degree()),
            lambda g: sum(1 for _, d in g.degree() if d == min(dict(g.degree()).values())),
            nx.average_shortest_path_length,
        ):
            assert_alike([statistic(g) for g in ours], [statistic(g) for g in theirs])


def test_watts_strogatz_is_that_of_networkx() -> None:
    for neighbours, rewired in ((4, 0.3), (6, 1.0), (2, 0.05)):
        ours = [undirected(g) for g in graphs("ws", 60, f"n=60&k={neighbours}&p={rewired}")]
        theirs = [nx.watts_strogatz_graph(60, neighbours, rewired, seed=seed) for seed in range(60)]
        assert {g.number_of_edges() for g in ours} == {60 * neighbours // 2}
        assert min(d for g in ours for _, d in g.degree()) >= neighbours // 2
        for statistic in (
            nx.average_clustering,
            lambda g: max(d for _, d in g.degree()),
            nx.global_efficiency,
        ):
            assert_alike([statistic(g) for g in ours], [statistic(g) for g in theirs])
    for seed in range(20):  # tie by tie, from the same random numbers
        ties = nx.Graph(small_world(40, 6, 0.5, Stream(f"ties {seed}").halves()))
        same = nx.watts_strogatz_graph(40, 6, 0.5, seed=NetworkxDraws(Stream(f"ties {seed}").halves()))
        assert nx.utils.graphs_equal(nx.Graph(sorted(ties.edges)), nx.Graph(sorted(same.edges)))
    ring = undirected(datasets.load("synthetic/ws?n=60&k=2&p=0"))
    assert nx.is_isomorphic(ring, nx.cycle_graph(60))


def test_watts_strogatz_leaves_a_node_alone_that_is_tied_to_all_others() -> None:
    assert len(datasets.load("synthetic/ws?n=5&k=4&p=1").input_tensor) == 10


def test_stochastic_blocks_have_as_many_edges_as_they_should() -> None:
    edges = [len(graph.input_tensor) for graph in graphs("sbm", 200)]
    assert abs(mean(edges) - (1200 * 0.3 + 3750 * 0.001)) < 5 * 16 / 200**0.5
    for graph in graphs("sbm", 20, "n=102&p_out=0"):
        sizes = sorted(len(part) for part in nx.connected_components(undirected(graph)))
        assert sizes == [25, 25, 26, 26]
    bipartite = undirected(datasets.load("synthetic/sbm?n=40&k=2&p_in=0&p_out=1"))
    assert nx.is_isomorphic(bipartite, nx.complete_bipartite_graph(20, 20))
    theirs = [
        nx.stochastic_block_model([20] * 3, np.full((3, 3), 0.05) + 0.35 * np.eye(3), seed=seed)
        for seed in range(100)
    ]
    ours = [undirected(graph) for graph in graphs("sbm", 100, "n=60&k=3&p_in=0.4&p_out=0.05")]
    for statistic in (nx.Graph.number_of_edges, nx.transitivity):
        assert_alike([statistic(g) for g in ours], [statistic(g) for g in theirs])


# --- ours


def test_layers_are_read_by_the_next() -> None:
    widths = []
    for graph in graphs("layered", 40, "n=300&width=6&fan_in=4&skip=.3"):
        layer = graph.op_layer.tolist()
        assert graph.layers == tuple(f"layer{i}" for i in range(layer[-1] + 1))
        assert layer == sorted(layer)
        assert layer.count(0) == 1
        widths += [layer.count(i) for i in range(1, layer[-1])]
        read = set(graph.input_tensor.tolist())
        for op, sources in enumerate(reads(graph)):
            assert op == 0 or max(layer[source] for source in sources) == layer[op] - 1
            assert op in read or layer[op] == layer[-1]
    assert set(widths) == set(range(1, 12))
    assert abs(mean(widths) - 6) < 5 * 3.17 / len(widths) ** 0.5


def test_an_op_that_nobody_drew_gets_a_random_reader() -> None:
    place = []
    for graph in graphs("layered", 10, "n=400&width=20&fan_in=1&skip=0"):
        start = np.searchsorted(graph.op_layer, np.arange(graph.op_layer[-1] + 2))
        for op, sources in enumerate(reads(graph)):
            low, high = start[graph.op_layer[op] : graph.op_layer[op] + 2]
            if len(sources) > 1 and high - low > 1:
                place.append((op - low) / (high - low - 1))
    assert abs(mean(place) - 0.5) < 5 * pstdev(place) / len(place) ** 0.5
    assert len(place) > 100


def test_skips_reach_further_back_as_often_as_they_should() -> None:
    for skip in (0, 1):
        far = [
            graph.op_layer[source] < graph.op_layer[op] - 1
            for graph in graphs("layered", 10, f"n=200&fan_in=2&skip={skip}")
            for op, sources in enumerate(reads(graph))
            for source in sources
        ]
        assert (np.mean(far) > 0.25) == bool(skip)
        assert skip or not any(far)


def test_randomly_wired_cells() -> None:
    for graph in graphs("cells", 20, "n=120&nodes=12"):
        layer, kind = graph.op_layer, [graph.kind(op) for op in range(120)]
        assert graph.layers == tuple(f"cell{i}" for i in range(10))
        sizes = np.bincount(layer)
        assert sizes[0] == 1
        assert sizes[1:].max() - sizes[1:].min() <= 1
        for cell in range(1, 10):
            ops = np.flatnonzero(layer == cell).tolist()
            end, entry = ops[-1], ops[0] - 1
            assert kind[end] == "add"
            inner = [(source, op) for op in ops for source in graph.inputs(op).tolist() if op != end]
            # Watts-Strogatz with 4 neighbours has 2 edges per node; others read the entry alone
            assert sum(source != entry for source, _ in inner) == 2 * (len(ops) - 1)
            assert {op for op in ops if graph.inputs(op).tolist() == [entry]}
            assert all(source >= entry for source, _ in inner)
            used = {source for source, _ in inner}
            assert graph.inputs(end).tolist() == [op for op in ops[:-1] if op not in used]


def test_searched_cells() -> None:
    ends = 0
    for graph in graphs("cells", 20, "n=150&nodes=14&wiring=searched"):
        kind = [graph.kind(op) for op in range(150)]
        last_of_cell = [
            int(np.flatnonzero(graph.op_layer == cell)[-1]) for cell in range(graph.op_layer[-1] + 1)
        ]
        for op, sources in enumerate(reads(graph)):
            if kind[op] == "add":
                assert len({graph.inputs(source)[0] for source in sources}) == 2
            if kind[op] == "concat":
                assert graph.tensor_bytes[op] == graph.tensor_bytes[sources].sum()
                assert all(kind[source] != "concat" for source in sources)
                assert all(graph.consumers(source).tolist() == [op] for source in sources)
            if kind[op] == "op" and op:
                assert len(sources) == 1
        for cell in range(2, len(last_of_cell)):
            first = last_of_cell[cell - 1] + 1
            assert graph.inputs(first).tolist() == [last_of_cell[cell - 2]]
            assert graph.inputs(first + 1).tolist() == [last_of_cell[cell - 1]]
        assert kind.count("concat") == len(graph.layers) - 1
        ends += sum(len(graph.consumers(op)) == 0 for op in range(150))
    # the output of the cell before the last is read by the last, so only the last op has no reader
    assert ends == 20


def test_forks_and_joins_are_series_parallel() -> None:
    for graph in graphs("fork-join", 40, "n=20-120"):
        edges = nx.MultiDiGraph(list(zip(*(side.tolist() for side in graph.edges[:2]), strict=True)))
        edges.add_edge("start", 0)
        assert [op for op in range(graph.num_ops) if not len(graph.consumers(op))] == [graph.num_ops - 1]
        changed = True
        while changed:  # series and parallel reductions leave one edge of a series-parallel graph
            simple = nx.MultiDiGraph(list(nx.DiGraph(edges).edges))
            changed = simple.number_of_edges() < edges.number_of_edges()
            edges = simple
            for node in list(edges):
                if edges.in_degree(node) == edges.out_degree(node) == 1:
                    (before,), (after,) = edges.predecessors(node), edges.successors(node)
                    edges.remove_node(node)
                    edges.add_edge(before, after)
                    changed = True
        assert list(edges.edges()) == [("start", graph.num_ops - 1)]


def test_forks_have_as_many_branches_as_asked() -> None:
    wide = datasets.load("synthetic/fork-join?n=2000&branches=7&forks=1")
    assert max(len(wide.consumers(op)) for op in range(2000)) == 7
    row = datasets.load("synthetic/fork-join?n=200&forks=0")
    assert reads(row) == [[], *([op] for op in range(199))]


# --- sizes and times


def test_sizes_and_times_follow_the_rules() -> None:
    size, normal, ratio = [], [], []
    regal = Cluster.parse("1xREGAL")
    for seed in range(100):
        for rule in ("normal", "bytes"):
            imported = datasets.read(f"synthetic/ba?n=200&seed={seed}&costs={rule}")
            assert imported.costs is not None
            ns = imported.costs.cost_ns(imported.graph, regal)[:, 0]
            if rule == "normal":
                normal += (ns / 1e5).tolist()
                size += (imported.graph.tensor_bytes / 1e6).tolist()
            else:
                ratio += (ns * 10 / imported.graph.op_accessed_bytes).tolist()
    error = 1 / len(size) ** 0.5
    for sample, centre, deviation in ((size, 50, 10), (normal, 50, 10), (ratio, 1, 0.1)):
        assert abs(np.mean(sample) - centre) < 5 * deviation * error
        assert abs(np.std(sample) / deviation - 1) < 5 * error
        assert 3.5 < np.abs(np.array(sample) - centre).max() / deviation < 6
    assert abs(np.corrcoef(size, normal)[0, 1]) < 5 * error


def test_times_hold_on_devices_without_rates_and_the_roofline_elsewhere() -> None:
    imported = datasets.read("synthetic/sbm?n=70")
    graph, costs = imported.graph, imported.costs
    assert costs is not None
    mixed = costs.cost_ns(graph, Cluster.parse("1xREGAL+2xP100@nvlink"))
    assert mixed.shape == (70, 2)
    assert mixed[:, 0].tolist() == costs.cost_ns(graph, Cluster.parse("2xREGAL"))[:, 0].tolist()
    assert mixed[:, 1].tolist() == RooflineCost().cost_ns(graph, Cluster.parse("1xP100"))[:, 0].tolist()
    ten_teraflops = DeviceProfile("ideal", "gpu", {"float32": 10**13}, 10**18, 2**40, launch_overhead_ns=0)
    ideal = Cluster((ten_teraflops,), np.zeros((1, 1), np.int64), np.zeros((1, 1), np.int64), "free")
    assert np.abs(costs.cost_ns(graph, ideal)[:, 0] - mixed[:, 0]).max() <= 1  # the roofline rounds up
    assert (graph.op_flops == mixed[:, 0] * FLOPS_PER_NS).all()
    with pytest.raises(InvalidCostError):
        costs.cost_ns(datasets.load("synthetic/sbm?n=71"), Cluster.parse("1xREGAL"))
