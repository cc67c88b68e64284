"""Tasks of ``opgym reproduce regal``: which graphs they have, and what is asked of them."""

import math

from opgym import datasets
from opgym.problems import PlacementProblem
from opgym.runs.references.regal_suites import CAP, easy_peak, generated
from opgym.runs.reproduce.regal.reproduction import QUICK_GRAPHS, Settings
from opgym.runs.reproduce.regal.tasks import TASKS, Graph, devices_of, graphs_of, spread

GRAPH = "synthetic/er?costs=bytes&seed=1000005"


def chosen(task: str, **settings: object) -> list[Graph]:
    wanted = Settings((task,), **settings)
    return graphs_of(task, wanted.part, wanted.most_graphs)


def test_the_test_is_that_of_the_suites() -> None:
    for task, (suite, linked) in TASKS.items():
        rows = datasets.suite(suite).part("test")
        graphs = chosen(task)
        assert [graph.graph for graph in graphs] == [row.graph for row in rows]
        if not linked:
            assert graphs[0].row() == rows[0]
            assert graphs[-1].row() == rows[-1]


def test_a_quick_look_and_few_graphs_are_spread_over_the_part() -> None:
    quick = chosen("memory-2", quick=True)
    rows = datasets.suite("regal-memory-2").part("test")
    assert {graph.graph for graph in quick} < {row.graph for row in rows}
    for population, count in QUICK_GRAPHS.items():
        assert sum(graph.population == population for graph in quick) == count
    families = {graph.graph.partition("?")[0] for graph in quick if graph.population == "synthetic"}
    assert len(families) == 4
    assert [spread(10, 4), spread(3, 9), spread(5, 5)] == [[0, 2, 5, 7], [0, 1, 2], [0, 1, 2, 3, 4]]


def test_validation_graphs_are_no_test_graphs() -> None:
    test = {graph.graph for graph in chosen("memory-1")}
    graphs = chosen("memory-1", part="validation", graphs=30)
    assert not test & {graph.graph for graph in graphs}
    rule = generated("validation")
    synthetic = [graph.graph for graph in graphs if graph.population == "synthetic"]
    assert synthetic == [rule[index] for index in range(30)]
    assert len({datasets.relatives.relatives(graph.graph).family for graph in graphs[30:]}) > 15
    assert all(graph.row().part == "validation" for graph in graphs[-2:])


def test_with_links_the_same_graphs_pay_for_transfers() -> None:
    free = Graph("time", GRAPH, "validation", "synthetic", 0).row()
    row = Graph("time-links", GRAPH, "validation", "synthetic", 0).row()
    assert (row.cluster, row.objective, row.fingerprint) == ("2xREGAL@pcie3", "step_time", free.fingerprint)
    problem, without = row.problem(), free.problem()
    assert isinstance(problem, PlacementProblem)
    assert isinstance(without, PlacementProblem)
    assert (problem.cluster.channel, without.cluster.channel) == ("port", "free")
    assert (problem.cost_ns == without.cost_ns).all()
    peak = easy_peak(datasets.read(GRAPH), row.cluster).outcome.value
    assert row.capacity_bytes == math.floor(CAP * peak)
    [graph, *_] = [row.graph for row in datasets.suite("regal-memory-2").part("test", "real")]
    real = Graph("memory-2-links", graph, "test", "real", 0).row()
    assert (real.cluster, real.objective, real.capacity_bytes) == ("2xP100", "peak_memory", None)
    assert [devices_of(task) for task in TASKS] == [1, 2, 2, 2, 2]
