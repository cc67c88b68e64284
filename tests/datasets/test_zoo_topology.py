"""Topologies: what is equal, what is alike, and which graphs are too alike for both to count."""

import numpy as np
import pytest

from opgym import datasets
from opgym.datasets.zoo import selection
from opgym.datasets.zoo.selection import Candidate, select
from opgym.datasets.zoo.splits import SPLITS, split_of, twin_groups
from opgym.datasets.zoo.topology import Likeness, topology_hash, wl_labels
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
    assert one.kind_distance(two) == pytest.approx(1 / 3 + 0 + 1 / 3)
    assert one.kind_distance(one) == 0
    assert one.kind_distance(Likeness.of(graph([], "ccc"))) == 2


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


def test_splits_have_their_shares_and_never_change() -> None:
    draws = [split_of(f"family{i}") for i in range(2000)]
    assert {split: round(draws.count(split) / 2000, 1) for split in SPLITS} == {
        "train": 0.6, "validation": 0.2, "test": 0.2,
    }  # fmt: skip
    assert [split_of(name) for name in ("rnnlm", "gnmt", "resnet", "bert", "unet")] == SPLITS_OF_FIVE


SPLITS_OF_FIVE = ["test", "test", "train", "train", "train"]


def test_twins_are_found_through_others() -> None:
    def rows(shares: dict[str, int], trains: bool = True) -> list[tuple[str, bool, Likeness]]:
        return [
            (name, trains, Likeness.of(graph([], "a" * n + "b" * (100 - n)))) for name, n in shares.items()
        ]

    # Each step is .08 in all; d is .2 from c.
    assert twin_groups(rows({"c": 58, "b": 54, "a": 50, "d": 70})) == {"a": "a", "b": "a", "c": "a", "d": "d"}
    apart = [*rows({"x": 50}), *rows({"y": 50}, trains=False)]
    assert twin_groups(apart) == {"x": "x", "y": "y"}
    assert np.unique(list(twin_groups(rows({"a": 50, "b": 50, "c": 50})).values())).tolist() == ["a"]
