"""Suites and hold-out protocols: nothing that is tested has a relative among what is trained on."""

import json
from collections import Counter
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from opgym import datasets
from opgym.datasets import synthetic, zoo
from opgym.datasets.suites import (
    PROTOCOLS,
    SUITES,
    Candidate,
    Generated,
    Protocol,
    Row,
    Screening,
    Suite,
    recipes,
)
from opgym.datasets.suites.problem_list import forbid
from opgym.datasets.zoo.topology import TWIN_DISTANCE, kind_shares, share_distance
from opgym.errors import InvalidDatasetError, UnknownIdError
from opgym.graphs.structure import check_structure
from opgym.problems import Placement, PlacementProblem, SchedulingProblem, program_order

NAMES = datasets.suite_names()
#: Rows that were found by search, and rows that were marked by it.
SEARCHED = [name for name in NAMES if datasets.suite(name).screening is not None]
FOUND = [name for name in SEARCHED if not name.startswith("regal-")]


def group(id: str) -> str:
    """What no split may divide: a group of families, or a seed."""
    if id.startswith(synthetic.PREFIX):
        return id
    return zoo.entry(id.partition("#")[0]).group


# --- What is shipped ----------------------------------------------------------------------------------------


def test_the_suites() -> None:
    assert NAMES == [
        "gdp",
        "gdp-a100",
        "gdp-hetero",
        "gdp-memory",
        "memory-order",
        "placement-unscreened",
        "regal-memory-1",
        "regal-memory-2",
        "regal-time",
        "small-exact",
        "stress",
        "throughput",
    ]
    assert datasets.protocol_names() == ["unseen-family", "unseen-size"]
    assert [datasets.suite(name).name for name in NAMES] == NAMES
    with pytest.raises(UnknownIdError, match="did you mean gdp"):
        datasets.suite("gpd")
    with pytest.raises(UnknownIdError, match="did you mean unseen-size"):
        datasets.protocol("unseen-sise")


@pytest.mark.parametrize("name", NAMES)
def test_no_family_is_in_two_parts(name: str) -> None:
    parts: dict[str, set[str]] = {}
    for row in datasets.suite(name).rows:
        parts.setdefault(group(row.graph), set()).add(row.part)
    assert all(len(found) == 1 for found in parts.values())


@pytest.mark.parametrize("name", NAMES)
def test_parts_are_the_zoos_splits(name: str) -> None:
    """So what is tested in one suite is trained on in none; workloads are in the zoo's test, too."""
    for row in datasets.suite(name).rows:
        if row.population == "real":
            assert zoo.entry(row.graph.partition("#")[0]).split == row.part, row.name


@pytest.mark.parametrize("name", NAMES)
def test_rows_name_the_graphs_that_are_shipped(name: str) -> None:
    for row in datasets.suite(name).rows[:: 10 if name.startswith("regal-") else 1]:
        if row.graph.startswith(zoo.PREFIX) and "#" not in row.graph:
            assert zoo.entry(row.graph).fingerprint == row.fingerprint, row.name
        elif name != "stress":  # whose random graphs take long to draw: the slow test poses every row
            assert datasets.load(row.graph).fingerprint == row.fingerprint, row.name


def test_gdp_has_the_papers_workloads_on_the_papers_devices() -> None:
    rows = datasets.suite("gdp").rows
    assert len(rows) == 28
    devices = Counter((row.graph.removeprefix("zoo/").rpartition("-")[0], row.cluster) for row in rows)
    assert set(devices.values()) == {1}
    assert devices.keys() >= {
        ("rnnlm-2l", "2xP100"), ("gnmt-8l", "8xP100@nvlink"), ("transformer-xl-4l", "4xP100"),
        ("inception-v3-b64", "2xP100"), ("amoebanet-a", "4xP100@nvlink"), ("wavenet-4x36", "4xP100"),
    }  # fmt: skip


def test_half_of_the_unscreened_rows_have_the_other_link() -> None:
    clusters = Counter(row.cluster for row in datasets.suite("placement-unscreened").rows)
    assert clusters == {"4xP100": 100, "4xP100@nvlink": 100}


def test_memory_binds_where_it_should() -> None:
    """No device holds the whole step, and all of them together do."""
    row = next(row for row in datasets.suite("gdp-memory").rows if row.graph == "zoo/rnnlm-2l-train")
    problem = row.problem()
    assert isinstance(problem, PlacementProblem)
    assert problem.cluster.capacity_bytes.tolist() == [row.capacity_bytes] * 2
    graph = problem.graph
    alone = problem.evaluate(Placement(np.zeros(graph.num_ops, np.int64), program_order(graph)))
    assert alone.verdict == "out_of_memory"


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_every_row_is_a_problem_that_can_be_posed(name: str) -> None:
    for row in datasets.suite(name).rows:
        row.problem()


@pytest.mark.slow
def test_shipped_files_are_what_the_recipes_make(tmp_path: Path) -> None:
    recipes.write(tmp_path / "lists", tmp_path / "protocols")
    for made, shipped in ((tmp_path / "lists", SUITES), (tmp_path / "protocols", PROTOCOLS)):
        searched = {f"{name}.json" for name in SEARCHED if shipped == SUITES}
        assert {path.name for path in made.iterdir()} | searched == {path.name for path in shipped.iterdir()}
        for path in made.iterdir():
            assert path.read_bytes() == (shipped / path.name).read_bytes(), (
                f"{path.name} is stale: python -m opgym.datasets.suites.recipes"
            )


# --- Suites that are made by search -------------------------------------------------------------------------


def test_candidates_are_graphs_of_the_zoo() -> None:
    assert FOUND == ["memory-order", "small-exact"]
    for name in FOUND:
        screening = datasets.suite(name).screening
        assert screening is not None
        assert all(
            zoo.entry(candidate.graph).fingerprint == candidate.fingerprint
            for candidate in screening.candidates
        )
        assert 0.05 < screening.acceptance_rate < 1


@pytest.mark.slow
def test_every_graph_that_is_small_enough_was_looked_at() -> None:
    expected = {zoo.PREFIX + name for name, entry in zoo.manifest().entries.items() if entry.ops <= 5_000}
    for name in FOUND:
        screening = datasets.suite(name).screening
        assert screening is not None
        looked_at = {candidate.graph for candidate in screening.candidates}
        assert looked_at == expected, f"{name} is stale: opgym datasets screen {name}"


def test_rows_are_what_the_rule_says_of_the_candidates() -> None:
    ordered, exact = datasets.suite("memory-order"), datasets.suite("small-exact")
    assert ordered.screening is not None
    assert exact.screening is not None
    for candidate in ordered.screening.candidates:
        assert candidate.best_heuristic is not None
        assert candidate.bound <= candidate.best_known <= candidate.best_heuristic
        assert candidate.accepted == (candidate.best_heuristic / candidate.best_known - 1 >= 0.02)
    for candidate in exact.screening.candidates:
        assert candidate.accepted == (candidate.bound == candidate.best_known and candidate.ops >= 100)
    assert {row.role for row in ordered.rows} == {"task"}
    gaps = {candidate.graph: candidate.gap for candidate in exact.screening.candidates}
    assert all((row.role == "task") == ((gaps[row.graph] or 0) >= 0.02) for row in exact.rows)
    assert all(row.cluster == "" and row.objective == "peak_memory" for row in (*ordered.rows, *exact.rows))


def test_optima_of_real_graphs_are_proven_by_search_too() -> None:
    exact = datasets.suite("small-exact").screening
    assert exact is not None
    proven = [candidate for candidate in exact.candidates if candidate.accepted]
    assert len(proven) >= 20
    assert sum(candidate.bound_by == "dp-order" for candidate in proven) >= 20


# --- Protocols ----------------------------------------------------------------------------------------------


def test_unseen_families_have_no_relatives_in_training() -> None:
    protocol = datasets.protocol("unseen-family")
    assert sorted(protocol.test) == sorted(zoo.PREFIX + name for name in recipes.WORKLOADS)
    assert {group(id) for id in protocol.train}.isdisjoint(group(id) for id in protocol.test)
    assert len(protocol.train) > 100
    assert not any(zoo.entry(id).workload for id in protocol.train)
    tested = [kind_shares(datasets.load(id)) for id in protocol.test if "8l" not in id]
    trained = [kind_shares(datasets.load(id)) for id in protocol.train[::7] if id.endswith("-train")]
    assert min(share_distance(mine, other) for mine in tested for other in trained) > TWIN_DISTANCE


def test_unseen_sizes_have_their_siblings_in_training() -> None:
    protocol = datasets.protocol("unseen-size")
    assert (len(protocol.train), len(protocol.test)) == (8, 6)
    trained = {zoo.entry(id).family for id in protocol.train}
    assert {zoo.entry(id).family for id in protocol.test} - trained == {"amoebanet"}
    assert set(protocol.train) | set(protocol.test) == {zoo.PREFIX + name for name in recipes.WORKLOADS}


# --- Files --------------------------------------------------------------------------------------------------

RNN = datasets.load("example/rnn-train").fingerprint
ROWS = (
    Row("example/rnn-train", RNN, "2xP100", "step_time", 10**9, "train", "task"),
    Row("example/two-branch", "0" * 64, "", "peak_memory", None, "test", "control"),
)
SUITE = Suite("s", 3, "summary", "rule", ROWS)
CANDIDATES = (
    Candidate("example/rnn-train", RNN, 76, 110.0, 100.0, "order-search", 90.0, "bound: some", True),
    Candidate("example/two-branch", "0" * 64, 9, 50.0, 50.0, "bfs", 50.0, "dp-order", True),
    Candidate("example/other", "1" * 64, 9, 0.0, 0.0, "bfs", 0.0, "bound: some", False),
)
SCREENED = replace(SUITE, screening=Screening("how", CANDIDATES))
#: Marked rows of which one is for training, which nobody marked, beside graphs by rule.
RULE = Generated("validation", ("er", "ba"), ("normal", "bytes"), 1_000_000, 1_000_002)
MARKED = replace(
    SUITE,
    rows=(replace(ROWS[0], role="unscreened"), ROWS[1]),
    screening=Screening("how", (replace(CANDIDATES[1], best_heuristic=None),)),
    generated=(RULE,),
)
PROTOCOL = Protocol("p", 2, "summary", ("a", "b"), ("c",))


def test_round_trips(tmp_path: Path) -> None:
    SUITE.save(tmp_path / "s.json")
    PROTOCOL.save(tmp_path / "p.json")
    assert Suite.load(tmp_path / "s.json") == SUITE
    assert Protocol.load(tmp_path / "p.json") == PROTOCOL
    assert SUITE.part("test") == [ROWS[1]]


def test_a_screened_suite_keeps_all_candidates(tmp_path: Path) -> None:
    SCREENED.save(tmp_path / "s.json")
    read = Suite.load(tmp_path / "s.json")
    assert read == SCREENED
    assert read.screening is not None
    assert read.screening.acceptance_rate == pytest.approx(2 / 3)
    assert [candidate.proven for candidate in read.screening.candidates] == [False, True, True]
    assert [candidate.gap for candidate in read.screening.candidates] == pytest.approx([0.1, 0.0, 0.0])
    assert Screening("how", ()).acceptance_rate == 0


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"acceptance_rate": 0.5}, "of its candidates 0.666667 are accepted"),
        ({"candidates": [asdict(CANDIDATES[0])] * 2, "acceptance_rate": 1}, "has a candidate twice"),
        (
            {"candidates": [asdict(CANDIDATES[0])], "acceptance_rate": 1},
            "other screened rows than its screening accepts",
        ),
        ({"candidates": [asdict(CANDIDATES[0]) | {"bound": "x"}]}, "has bound = 'x'"),
        ({"method": 1}, "has method = 1"),
        ({"more": 1}, "unknown keys 'more'"),
    ],
)
def test_screenings_that_are_refused(tmp_path: Path, change: dict[str, Any], words: str) -> None:
    SCREENED.save(tmp_path / "s.json")
    document = json.loads((tmp_path / "s.json").read_text())
    document["screening"] |= change
    (tmp_path / "s.json").write_text(json.dumps(document))
    with pytest.raises(InvalidDatasetError, match=words):
        Suite.load(tmp_path / "s.json")


def test_graphs_by_rule(tmp_path: Path) -> None:
    MARKED.save(tmp_path / "s.json")
    read = Suite.load(tmp_path / "s.json")
    assert read == MARKED
    assert read.screening is not None
    assert read.screening.candidates[0].gap is None
    ids = list(read.generated[0])
    assert len(ids) == len(RULE) == 6
    assert ids[:3] == [
        "synthetic/er?costs=normal&seed=1000000",
        "synthetic/ba?costs=normal&seed=1000000",
        "synthetic/er?costs=bytes&seed=1000001",
    ]
    assert RULE[-1] == ids[5] == "synthetic/ba?costs=normal&seed=1000002"
    with pytest.raises(IndexError, match="graph 6 of 6"):
        RULE[6]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"part": "all"}, "part = 'all'; expected train, validation, test"),
        ({"families": ["er", "re"]}, "has families"),
        ({"families": []}, "has families"),
        ({"costs": ["free"]}, "expected some of bytes, normal"),
        ({"first_seed": 5}, "has first_seed = 5"),
        ({"last_seed": 1_000_000, "first_seed": 1_000_001}, "has last_seed = 1000000"),
        ({"more": 1}, "unknown keys 'more'"),
    ],
)
def test_rules_that_are_refused(change: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidDatasetError, match=words):
        Generated.from_json(json.loads(json.dumps(RULE.to_json())) | change, "s")


def test_rows_know_where_their_graph_is_from() -> None:
    drawn = replace(ROWS[0], graph="synthetic/er?seed=1")
    assert (ROWS[0].population, drawn.population) == ("real", "synthetic")
    mixed = replace(SUITE, rows=(*ROWS, drawn))
    assert mixed.part("train") == [ROWS[0], drawn]
    assert mixed.part("train", "synthetic") == [drawn]
    assert mixed.part("test", "synthetic") == []


def test_rows_become_problems() -> None:
    problem = ROWS[0].problem()
    assert isinstance(problem, PlacementProblem)
    assert (problem.objective, problem.cluster.capacity_bytes.tolist()) == ("step_time", [10**9] * 2)
    with pytest.raises(InvalidDatasetError, match="the suite was made for 0000"):
        ROWS[1].problem()
    fresh = Row(
        ROWS[1].graph, datasets.load(ROWS[1].graph).fingerprint, "", "peak_memory", None, "test", "task"
    )
    assert isinstance(fresh.problem(), SchedulingProblem)
    id = "synthetic/er?n=60&seed=1"
    drawn = Row(id, datasets.load(id).fingerprint, "2xREGAL", "step_time", None, "train", "task").problem()
    assert isinstance(drawn, PlacementProblem)
    assert type(drawn.costs) is type(datasets.read(id).costs)


def test_kinds_that_a_device_cannot_run() -> None:
    row = replace(
        ROWS[0], cluster="1xCPU+2xP100", unsupported={"P100": ("Tanh", "Absent"), "V100": ("Absent",)}
    )
    problem = row.problem()
    assert isinstance(problem, PlacementProblem)
    graph = problem.graph
    assert graph.device_classes == ("P100",)
    forbidden = [graph.kind(op) for op in np.flatnonzero(graph.op_unsupported)]
    assert set(forbidden) == {"Tanh"}
    assert len(forbidden) == datasets.load("example/rnn-train").op_kind.tolist().count(
        graph.kinds.index("Tanh")
    )
    everything = Placement(np.ones(graph.num_ops, np.int64), program_order(graph))
    assert problem.evaluate(everything).verdict == "unsupported_device"
    twice = forbid(graph, {"CPU": ["Tanh", "Add"], "P100": ["Add"]})
    assert twice.device_classes == ("CPU", "P100")
    assert {twice.kind(op) for op in np.flatnonzero(twice.op_unsupported == 3)} == {"Tanh", "Add"}
    check_structure(twice)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"unsupported": {"P100": "Tanh"}}, "no object of lists of kinds"),
        ({"part": "holdout"}, "part = 'holdout'; expected train, validation, test"),
        ({"role": ""}, "has role"),
        ({"objective": "time"}, "has objective = 'time'; expected step_time"),
        ({"capacity_bytes": 0}, "has capacity_bytes = 0"),
        ({"more": 1}, "unknown keys 'more'"),
        ({"graph": 3}, "has graph = 3; expected text"),
    ],
)
def test_rows_that_are_refused(tmp_path: Path, change: dict[str, Any], words: str) -> None:
    SUITE.save(tmp_path / "s.json")
    document = json.loads((tmp_path / "s.json").read_text())
    document["rows"][1] |= change
    (tmp_path / "s.json").write_text(json.dumps(document))
    with pytest.raises(InvalidDatasetError, match=words):
        Suite.load(tmp_path / "s.json")


def test_documents_that_are_refused(tmp_path: Path) -> None:
    SUITE.save(tmp_path / "s.json")
    PROTOCOL.save(tmp_path / "p.json")
    for name, change, words in (
        ("s", {"version": 3}, "version 3; expected 'opgym.suite'"),
        ("s", {"rows": [asdict(ROWS[0])] * 2}, "has one problem twice"),
        ("p", {"format": "opgym.suite"}, "expected 'opgym.protocol'"),
        ("p", {"train": ["c", "d"]}, "trains on a graph that is held out"),
        ("p", {"train": ["a", "a"]}, "no list of different ids"),
        ("p", {"test": [1]}, "no list of different ids"),
    ):
        document = json.loads((tmp_path / f"{name}.json").read_text()) | change
        (tmp_path / "bad.json").write_text(json.dumps(document))
        with pytest.raises(InvalidDatasetError, match=words):
            (Suite if name == "s" else Protocol).load(tmp_path / "bad.json")
