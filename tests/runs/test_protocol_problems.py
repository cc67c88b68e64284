"""Problems of a hold-out protocol: nothing that is held out is learned from, nor is a weight chosen by it."""

from collections import Counter

import pytest

from opgym.datasets import zoo
from opgym.datasets.suites import protocol, suite
from opgym.errors import InvalidProblemError, UnknownIdError
from opgym.runs.train.config import ProblemConfig
from opgym.runs.train.generated_problems import pose_validation
from opgym.runs.train.problems import pose

PLACEMENT = "GraphPlacement-v0"
CLUSTERS = ["2xP100", "4xP100@nvlink", "8xP100"]


def family(**settings):
    return ProblemConfig(**{"protocol": "unseen-family", "clusters": CLUSTERS, "most_ops": 400, **settings})


def graphs(found):
    return [named.name.partition(" on ")[0] for named in found]


def test_workloads_are_rows_of_their_suite():
    found = pose(ProblemConfig(protocol="unseen-size"), PLACEMENT)
    held_out = set(protocol("unseen-size").test)
    rows = {row.name: row for row in suite("gdp").rows}
    assert [named.name for named in found] == [
        name for name, row in rows.items() if row.graph not in held_out
    ]
    assert len(found) == 16
    for named in found:
        assert named.problem.graph.fingerprint == rows[named.name].fingerprint


def test_fewer_workloads_are_spread_evenly_over_families():
    found = pose(ProblemConfig(protocol="unseen-size", rows=4), PLACEMENT)
    assert len({name.split("/")[1][:4] for name in graphs(found)}) == 4
    config = ProblemConfig(protocol="unseen-size", validation=3)
    assert set(graphs(pose_validation(config))) <= set(protocol("unseen-size").train)


def test_graphs_of_the_zoo_are_of_the_part_and_none_is_held_out():
    config = family(rows=20, validation=10)
    found, validation = pose(config, PLACEMENT), pose_validation(config)
    for part, names in (("train", graphs(found)), ("validation", graphs(validation))):
        assert set(names) <= set(protocol("unseen-family").train)
        for name in names:
            entry = zoo.entry(name)
            assert entry.split == part
            assert entry.ops <= 400
            assert name.endswith("-train")
    assert len(found) == 20
    assert len(validation) == 10


def test_families_and_clusters_take_turns():
    found = pose(family(rows=30, most_ops=900), PLACEMENT)
    assert len({zoo.entry(name).group for name in graphs(found)}) == 30
    counts = Counter(named.problem.cluster.name for named in found).values()
    assert len(counts) == 3
    assert max(counts) - min(counts) <= 3  # some graphs have an op that fits nowhere


def test_a_graph_has_two_clusters():
    found = pose(family(most_ops=250), PLACEMENT)
    clusters = {}
    for named in found:
        clusters.setdefault(named.problem.graph.fingerprint, set()).add(named.problem.cluster.name)
    assert {len(names) for names in clusters.values()} == {2}


def test_the_same_settings_pose_the_same_problems():
    names = [[named.name for named in pose(family(rows=8), PLACEMENT)] for _ in range(2)]
    assert names[0] == names[1]
    assert [named.name for named in pose(family(rows=5), PLACEMENT)] == names[0][:5]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"rows": 0}, "problem.rows = 0; expected how many problems, 1 .. "),
        ({"rows": [1]}, "problem.rows = .1.; expected how many problems"),
        ({"rows": 10**6}, "expected how many problems, 1 .. "),
        ({"clusters": None}, "needs a list of clusters"),
        ({"clusters": []}, "needs a list of clusters"),
        ({"clusters": [2]}, "needs a list of clusters"),
        ({"most_ops": 1}, "nothing to learn from"),
        ({"graph": "example/two-branch"}, "problem.protocol and problem.graph are both given"),
        ({"suite": "gdp"}, "problem.protocol and problem.suite are both given"),
        ({"suites": ["regal-time"]}, "problem.protocol and problem.suites are both given"),
        ({"cluster": "2xP100"}, "problem.protocol and problem.cluster are both given"),
        (
            {"protocol": None, "clusters": CLUSTERS, "most_ops": None},
            "problem.clusters = .* needs problem.protocol",
        ),
        ({"protocol": None, "clusters": None}, "problem.most_ops = 400 needs problem.protocol"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(settings, message):
    with pytest.raises(InvalidProblemError, match=message):
        pose(family(**settings), PLACEMENT)


def test_orders_have_no_protocol():
    with pytest.raises(InvalidProblemError, match="about placement, which OpScheduling-v0 does not play"):
        pose(family(), "OpScheduling-v0")


def test_unknown_names_are_refused_with_the_nearest():
    with pytest.raises(UnknownIdError, match="did you mean unseen-size"):
        pose(ProblemConfig(protocol="unseen-sizes"), PLACEMENT)
