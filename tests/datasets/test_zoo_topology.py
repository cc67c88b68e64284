"""Topologies: what is equal, what is alike, and which graphs are too alike for both to count."""

from collections import Counter

import pytest

from opgym import datasets
from opgym.datasets.zoo import selection
from opgym.datasets.zoo.selection import Candidate, select
from opgym.datasets.zoo.splits import assign_splits, splits_of_groups, twin_groups
from opgym.datasets.zoo.topology import Likeness, kind_shares, share_distance, topology_hash, wl_labels
from opgym.graphs import Graph, GraphBuilder


def graph(edges: list[tuple[int, int]], kinds: str, width: int = 1, order: list[int] | None = None) -> Graph:
    """A graph of ops (a letter for each kind) whose edges are tensors of their own."""
    b = GraphBuilder(level="test")
    tensors = {edge: b.tensor(shape=(width,)) for edge in edges}
    for op in order or range(len(kinds)):
        b.op(
            kinds[op],
            inputs=[t for (_, target), t in tensors.items() if target == op],
            outputs=[t for (source, _), t in tensors.items() if source == op],
            flops=width,
        )
    return b.build()


DIAMOND = [(0, 1), (0, 2), (1, 3), (2, 3)]


def test_sizes_names_and_order_do_not_count() -> None:
    one = topology_hash(graph(DIAMOND, "abcd"))
    assert one == topology_hash(graph(DIAMOND, "abcd", width=7))
    assert one == topology_hash(graph(DIAMOND, "abcd", order=[0, 2, 1, 3]))
    assert one == topology_hash(graph([(0, 2), (0, 1), (2, 3), (1, 3)], "acbd"))
    assert len(one) == 16


@pytest.mark.parametrize(
    ("edges", "kinds"),
    [
        (DIAMOND, "abce"),  # another kind
        (DIAMOND, "abbd"),
        (DIAMOND[:3], "abcd"),  # an edge less
        ([(1, 0), (2, 0), (3, 1), (3, 2)], "abcd"),  # turned round
        ([(0, 1), (0, 2), (1, 3), (2, 3), (0, 3)], "abcd"),
        (DIAMOND, "abcda"),  # an op more
    ],
)
def test_kinds_and_edges_count(edges: list[tuple[int, int]], kinds: str) -> None:
    assert topology_hash(graph(edges, kinds)) != topology_hash(graph(DIAMOND, "abcd"))


def test_two_tensors_between_two_ops_are_two_edges() -> None:
    def twice(count: int) -> Graph:
        b = GraphBuilder(level="test")
        tensors = [b.tensor(shape=(1,)) for _ in range(count)]
        b.op("a", outputs=tensors)
        b.op("b", inputs=tensors)
        return b.build()

    assert topology_hash(twice(1)) != topology_hash(twice(2))


def test_a_hash_never_changes() -> None:
    """It is in manifests: whoever changes it changes their version."""
    assert topology_hash(datasets.load("example/two-branch")) == "2d52a1ec9ef013ab"


def test_labels_see_as_far_as_there_are_rounds() -> None:
    """Two chains that differ in their last op: of 12 labels, those within reach of it differ."""
    chain = [(i, i + 1) for i in range(11)]
    one, two = graph(chain, "a" * 12), graph(chain, "a" * 11 + "b")
    for rounds in (0, 1, 3, 11):
        differ = wl_labels(one, rounds) != wl_labels(two, rounds)
        assert differ.nonzero()[0].tolist() == list(range(11 - rounds, 12))


# --- Likeness -----------------------------------------------------------------------------------------------


def test_jaccard_of_label_multisets() -> None:
    """Without edges labels are kinds: aab and abbb share one a and one b of six."""
    one, two = Likeness.of(graph([], "aab")), Likeness.of(graph([], "abbb"))
    assert one.jaccard(two) == two.jaccard(one) == pytest.approx(2 / 5)
    assert one.jaccard(one) == 1
    assert one.jaccard(Likeness.of(graph([], "ccc"))) == 0


def test_distance_of_histograms() -> None:
    one, two = Likeness.of(graph([], "aab")), Likeness.of(graph([], "abc"))
    assert share_distance(one.kinds, two.kinds) == pytest.approx(1 / 3 + 0 + 1 / 3)
    assert share_distance(one.kinds, one.kinds) == 0
    assert share_distance(one.kinds, kind_shares(graph([], "ccc"))) == 2


def test_near_copies() -> None:
    def row(common: int, other: int) -> Likeness:
        return Likeness.of(graph([], "a" * common + "b" * other))

    base = row(1000, 0)
    assert base.is_near_copy(row(1000, 20))  # 1000 of 1020
    assert not base.is_near_copy(row(960, 40))  # 960 of 1040
    assert base.is_near_copy(row(1050, 0))  # 5 % more ops, 1000 of 1050
    assert not base.is_near_copy(row(1060, 0))
    assert not base.is_near_copy(row(1000, 60))


# --- Selection ----------------------------------------------------------------------------------------------


def candidate(name: str, ops: int, kind: str, family: str = "f", workload: bool = False) -> Candidate[None]:
    return Candidate(None, name, family, workload, Likeness.of(graph([], kind * ops)))


def test_a_family_has_a_cap_and_workloads_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selection, "FAMILY_CAP", 2)
    rows = [candidate(f"n{i}", 100 + 50 * i, "a") for i in range(4)]
    rows += [candidate("other", 100, "b", "g"), candidate("w0", 101, "a", workload=True)]
    kept, why = select(rows)
    assert [c.name for c in kept] == ["w0", "n1", "n2", "other"]
    assert why == {"n0": "near copy of w0", "n3": "family is full: it has 2 graphs"}


def test_workloads_may_be_alike_but_not_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selection, "OPS_LIMITS", (100, 200))
    kept, why = select([candidate(f"w{n}", n, "a", workload=True) for n in (99, 100, 101, 200, 201)])
    assert [c.name for c in kept] == ["w100", "w101", "w200"]
    assert why == {"w99": "too small: below 100 ops", "w201": "too large: above 200 ops"}


# --- Splits -------------------------------------------------------------------------------------------------


def test_splits_have_their_shares_of_the_groups_and_large_ones_are_spread() -> None:
    graphs = {f"family{i}": 1 + i % 7 for i in range(199)} | {"large": 90}
    splits = assign_splits(graphs, {"large", "family3"})
    assert splits["large"] == splits["family3"] == "test"
    assert Counter(splits.values()) == {"train": 120, "validation": 40, "test": 40}
    of_7 = Counter(splits[group] for group, size in graphs.items() if size == 7)
    assert set(of_7) == {"train", "validation", "test"}
    assert assign_splits(dict(reversed(graphs.items())), {"family3", "large"}) == splits


def test_groups_of_workloads_may_be_more_than_the_test_should_have() -> None:
    workloads = {f"workload{i}": 1 for i in range(5)}
    splits = assign_splits({**workloads, **{f"family{i}": 5 for i in range(10)}}, workloads)
    assert {group for group, split in splits.items() if split == "test"} == set(workloads)
    assert sorted(splits.values()).count("validation") == 3  # as 20 to 60: 2.5 of 10


def test_released_splits_stay() -> None:
    released = {"a": "test", "b": "train", "c": "validation", "d": "test", "gone": "train"}
    groups = {"a": "a", "b": "b", "c": "c", "d": "c", "new": "a"}
    kept = splits_of_groups(released, groups)
    assert kept == {"a": "test", "b": "train", "c": "validation"}  # d was tested, its twin validated on
    splits = assign_splits({"a": 9, "b": 1, "c": 1, "other": 1}, {"b"}, kept)
    assert {group: splits[group] for group in kept} == kept


def test_twins_are_found_through_others() -> None:
    def rows(shares: dict[str, int], level: str = "aten-train") -> list[tuple[str, str, dict[str, float]]]:
        return [
            (name, level, kind_shares(graph([], "a" * n + "b" * (100 - n)))) for name, n in shares.items()
        ]

    # Each step is .08 in all; d is .2 from c.
    assert twin_groups(rows({"c": 58, "b": 54, "a": 50, "d": 70})) == {"a": "a", "b": "a", "c": "a", "d": "d"}
    apart = [*rows({"x": 50}), *rows({"y": 50}, level="aten-infer")]
    assert twin_groups(apart) == {"x": "x", "y": "y"}
    assert set(twin_groups(rows({"a": 50, "b": 50, "c": 50})).values()) == {"a"}


def test_families_are_compared_in_the_mean() -> None:
    def row(family: str, n: int) -> tuple[str, str, dict[str, float]]:
        return family, "hlo", kind_shares(graph([], "a" * n + "b" * (100 - n)))

    outlier = [row("x", 50), row("x", 80), row("y", 50)]  # means 65 and 50
    assert twin_groups(outlier) == {"x": "x", "y": "y"}
    assert twin_groups([*outlier, row("y", 78)]) == {"x": "x", "y": "x"}
