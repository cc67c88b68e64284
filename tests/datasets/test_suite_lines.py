"""Files of reference lines: what is shipped holds when it is evaluated again, and damaged files are refused."""

import base64
import json
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from opgym import datasets
from opgym.datasets.reference import FOLDER, Best, Line, Lines, lines, load_named, suites_with_lines, versions
from opgym.errors import InvalidDatasetError, InvalidSolutionError, UnknownIdError
from opgym.graphs import Cluster
from opgym.problems import Objective, Order, Placement, PlacementProblem, SchedulingProblem, program_order

SHIPPED = ("gdp", "memory-order", "small-exact")
GRAPH = datasets.load("example/rnn-train")
SCHEDULE = SchedulingProblem(GRAPH)
PROGRAM = Best.of(SCHEDULE, Order(SCHEDULE.ops), "program-order", 1, None)


def line(**changes: Any) -> Line:
    known = Line(
        "a problem", GRAPH.fingerprint, len(SCHEDULE.ops), "bytes", 5.0, "bound: some",
        {"program-order": PROGRAM.value, "absent": None}, {100: PROGRAM.value, 5000: None}, PROGRAM,
    )  # fmt: skip
    return replace(known, **changes)


# --- What is shipped ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SHIPPED)
def test_every_row_has_a_line_that_holds(name: str) -> None:
    suite, found = datasets.suite(name), lines(name)
    assert found.suite_version == suite.suite_version
    assert [line.problem for line in found] == [row.name for row in suite.rows]
    for row in suite.rows[::8]:
        shipped, problem = found[row.name], row.problem()
        assert shipped.fingerprint == row.fingerprint
        assert shipped.best is not None
        outcome = problem.evaluate(shipped.best.solution)  # type: ignore[arg-type]
        assert outcome.ok
        assert outcome.value == shipped.best.value
        assert problem.lower_bound().value <= shipped.bound <= shipped.best.value
        assert shipped.best.value <= min(v for v in shipped.heuristics.values() if v is not None)
        assert set(shipped.annealing) == {100, 5000}
        assert shipped.annealing[5000] is not None
        assert shipped.best.value <= shipped.annealing[5000]


def test_a_version_that_is_not_there() -> None:
    newest = max(versions("memory-order"))
    assert (
        lines("memory-order", newest).reference_version == newest == lines("memory-order").reference_version
    )
    with pytest.raises(UnknownIdError, match="did you mean memory-order"):
        lines("memory-ordre")
    with pytest.raises(UnknownIdError, match="version of the reference lines of memory-order"):
        lines("memory-order", 99)
    for path in FOLDER.glob("*.json"):
        loaded = Lines.load(path)
        assert path.name == loaded.file_name


# --- Solutions ----------------------------------------------------------------------------------------------


def test_orders_are_stored_as_they_are() -> None:
    rng = np.random.default_rng(0)
    order = SCHEDULE.ops[rng.permutation(len(SCHEDULE.ops))]
    stored = Best(1.0, "x", 1, 2.5, order, np.empty(0, np.int32))
    read = Best.from_row(json.loads(json.dumps(stored.row())), "best")
    assert isinstance(read.solution, Order)
    assert read.solution.op.tolist() == order.tolist()
    assert (read.value, read.found_by, read.evaluations, read.seconds_limit) == (1.0, "x", 1, 2.5)
    assert PROGRAM.value == SCHEDULE.reference_bytes


def test_placements_keep_their_value() -> None:
    problem = PlacementProblem(GRAPH, Cluster.parse("2xP100"), Objective.STEP_TIME)
    device = np.zeros(GRAPH.num_ops, np.int64)
    for placement in (Placement(device), Placement(device, program_order(GRAPH))):
        best = Best.of(problem, placement, "single", 2, None)
        assert best.value == problem.evaluate(placement).value
        again = Best.from_row(json.loads(json.dumps(best.row())), "best").solution
        assert isinstance(again, Placement)
        assert problem.evaluate(again).value == best.value
    unordered = Best.of(
        PlacementProblem(GRAPH, Cluster.parse("2xP100"), Objective.MAX_LOAD),
        Placement(device),
        "single",
        1,
        None,
    )
    assert len(unordered.order) == 0
    with pytest.raises(InvalidSolutionError, match="priorities of transfers"):
        Best.of(problem, Placement(device, None, np.zeros((GRAPH.num_tensors, 2))), "x", 1, None)
    small = replace(problem, cluster=problem.cluster.with_capacity(240_000_000))
    with pytest.raises(InvalidSolutionError, match="out_of_memory"):
        Best.of(small, Placement(device), "x", 1, None)


# --- Lines --------------------------------------------------------------------------------------------------


def test_gap_and_proof() -> None:
    worse = line(heuristics={"a": 1.5 * PROGRAM.value, "b": 1.25 * PROGRAM.value, "c": None})
    assert worse.best_heuristic == 1.25 * PROGRAM.value
    assert worse.gap == pytest.approx(0.25)
    assert not worse.proven
    assert line(bound=PROGRAM.value).proven
    assert line(best=None).gap is None
    assert not line(best=None).proven
    assert line(heuristics={"a": None}).gap is None


def test_joining_keeps_the_better_of_everything() -> None:
    better = replace(PROGRAM, value=PROGRAM.value - 1, found_by="search")
    old, new = line(bound=7.0, bound_by="old"), line(bound=6.0, best=better, annealing={100: 9.0})
    joined = old.joined(new)
    assert joined.best is better
    assert (joined.bound, joined.bound_by, joined.annealing) == (7.0, "old", {100: 9.0})
    back = new.joined(old)
    assert back.best is better
    assert (back.bound, back.annealing) == (7.0, old.annealing)
    assert line(best=None).joined(old).best is PROGRAM
    assert old.joined(line(best=None)).best is PROGRAM


def test_round_trip(tmp_path: Path) -> None:
    saved = Lines("s", 2, 3, {"a problem": line(), "another": line(problem="another", best=None)})
    assert saved.file_name == "s.v3.json"
    saved.save(tmp_path / saved.file_name)
    read = Lines.load(tmp_path / "s.v3.json")
    assert (read.suite, read.suite_version, read.reference_version, len(read)) == ("s", 2, 3, 2)
    assert [line.row() for line in read] == [line.row() for line in saved]
    (tmp_path / "s.v10.json").touch()
    (tmp_path / "s.v0.json").touch()
    (tmp_path / "s-more.v1.json").touch()
    assert list(versions("s", tmp_path)) == [3, 10]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"proven": True}, "the bound says otherwise"),
        ({"bound": PROGRAM.value + 1, "proven": True}, "below the bound"),
        ({"heuristics": {"a": "x"}}, "expected a value or null"),
        ({"heuristics": {"a": True}}, "expected a value or null"),
        ({"heuristics": {"a": 10**400}}, "expected a value or null"),
        ({"heuristics": {"a": float("nan")}}, "expected a value or null"),
        ({"bound": 10**400}, r"has bound = 10+; expected 0 to"),
        ({"heuristics": [1]}, "no object"),
        ({"annealing": {"many": 1.0}}, "no numbers of evaluations"),
        ({"seconds": 1}, "unknown keys 'seconds'"),
        ({"ops": 0}, "has ops = 0"),
        ({"best": {}}, "best lacks"),
    ],
)
def test_lines_that_are_refused(change: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidDatasetError, match=words):
        Line.from_row(line().row() | change)


def packed(data: bytes) -> str:
    return base64.b64encode(zlib.compress(data)).decode()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"order": "!"}, "cannot be unpacked"),
        ({"order": base64.b64encode(b"no zlib").decode()}, "cannot be unpacked"),
        ({"order": packed(b"123")}, "cut off"),
        ({"order": packed(b"\xff" * 4)}, "no op or device"),
        ({"order": packed(b"\0" * 80_000_000)}, "too long"),
        ({"order": packed(b"\0" * 4)[:-8]}, "cut off|cannot be unpacked"),
        ({"order": ""}, "no solution"),
        ({"evaluations": 0}, "has evaluations = 0"),
        ({"value": -1}, "has value = -1"),
    ],
)
def test_solutions_that_are_refused(change: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidDatasetError, match=words):
        Best.from_row(PROGRAM.row() | change, "best")


def test_files_that_are_refused(tmp_path: Path) -> None:
    Lines("s", 1, 1, {"a problem": line()}).save(tmp_path / "s.v1.json")
    document = json.loads((tmp_path / "s.v1.json").read_text())
    for change, words in (
        ({"version": 3}, "version 3; expected 'opgym.reference_lines'"),
        ({"lines": document["lines"] * 2}, "has a problem twice"),
        ({"reference_version": 0}, "has reference_version = 0"),
        ({"more": 0}, "unknown keys 'more'"),
    ):
        (tmp_path / "bad.json").write_text(json.dumps(document | change))
        with pytest.raises(InvalidDatasetError, match=words):
            Lines.load(tmp_path / "bad.json")


def test_names_of_files_tell_what_they_hold(tmp_path: Path) -> None:
    file = tmp_path / "s.v1.json"
    Lines("s", 1, 1, {"a problem": line()}).save(file)
    assert load_named(file).suite == "s"
    assert suites_with_lines(tmp_path) == ["s"]
    file.rename(tmp_path / "t.v2.json")
    with pytest.raises(InvalidDatasetError, match=r"t\.v2\.json: has lines of s, .* belong into s\.v1\.json"):
        load_named(tmp_path / "t.v2.json")
    (tmp_path / "t.v2.json").rename(tmp_path / "s.v01.json")
    assert suites_with_lines(tmp_path) == []
