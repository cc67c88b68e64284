"""The suites in the manner of REGAL: their parts, how rows were marked, and what they are measured against."""

from collections import Counter
from dataclasses import replace

import pytest

from opgym import datasets
from opgym.datasets import synthetic, zoo
from opgym.datasets.reference import Lines, lines
from opgym.datasets.suites import Suite
from opgym.problems import PlacementProblem, SchedulingProblem
from opgym.runs.references.reference import measure as measure_line
from opgym.runs.references.regal_lines import reference_task, report
from opgym.runs.references.regal_suites import CAP, SETTINGS, Task, leaves_a_gap, measure, row_of, tasks
from opgym.runs.reproduce import headroom
from opgym.statistics import LEAST_CLUSTERS

NAMES = list(SETTINGS)


@pytest.fixture(params=NAMES)
def suite(request: pytest.FixtureRequest) -> Suite:
    return datasets.suite(request.param)


@pytest.fixture
def known(suite: Suite) -> Lines:
    return lines(suite.name)


def group(id: str) -> str:
    """The family of a graph, with its twins."""
    return zoo.entry(id.partition("#")[0]).group


def test_nothing_better_is_known_from_the_screening(suite: Suite, known: Lines) -> None:
    assert suite.screening is not None
    screened = {candidate.graph: candidate.best_known for candidate in suite.screening.candidates}
    for row in suite.part("test"):
        best = known[row.name].best
        assert best is not None
        assert best.value <= screened[row.graph], row.name


# --- Parts --------------------------------------------------------------------------------------------------


def test_the_test_has_synthetic_and_real_graphs(suite: Suite) -> None:
    drawn, real = suite.part("test", "synthetic"), suite.part("test", "real")
    assert len(drawn) >= 200
    assert len(real) >= 60
    assert len(drawn) + len(real) == len(suite.part("test"))
    assert len({row.fingerprint for row in suite.rows}) == len(suite.rows)
    kinds = Counter((row.graph.split("?")[0], "costs=bytes" in row.graph) for row in drawn)
    assert kinds.keys() == {(f"synthetic/{f}", rule) for f in headroom.FAMILIES for rule in (False, True)}
    assert set(kinds.values()) == {len(drawn) // 8}
    assert all(50 <= synthetic.load(row.graph).num_ops <= 200 for row in drawn[::9])


def test_nothing_that_is_tested_has_a_relative_among_what_is_trained_on(suite: Suite) -> None:
    groups = {
        part: {group(row.graph) for row in suite.part(part, "real")}
        for part in ("train", "validation", "test")
    }
    assert all(groups.values())
    assert groups["test"].isdisjoint(groups["train"] | groups["validation"])
    assert groups["train"].isdisjoint(groups["validation"])
    for row in suite.rows:
        if row.population == "real":
            assert zoo.entry(row.graph.partition("#")[0]).split == row.part
        else:
            assert synthetic.split_of(int(row.graph.partition("seed=")[2])) == row.part


def test_training_graphs_are_named_by_rule(suite: Suite) -> None:
    rules = {rule.part: rule for rule in suite.generated}
    assert rules.keys() == {"train", "validation"}
    assert len(rules["train"]) == 4_000_000
    assert rules["train"][0] == "synthetic/er?costs=normal&seed=0"
    assert rules["train"][6] == "synthetic/ws?costs=bytes&seed=1"
    assert rules["validation"][-1] == "synthetic/sbm?costs=bytes&seed=1999999"
    row = row_of(suite.name, rules["train"][13], "train")
    like = suite.part("test", "synthetic")[0]
    assert (row.cluster, row.objective, row.role) == (like.cluster, like.objective, "unscreened")
    assert (row.capacity_bytes is None) == (like.capacity_bytes is None)


def test_rows_pose_their_problems(suite: Suite) -> None:
    for row in [*suite.part("test", "synthetic")[::40], *suite.part("test", "real")[1::20]]:
        problem = row.problem()
        assert problem.graph.fingerprint == row.fingerprint
        if suite.name == "regal-memory-1":
            assert isinstance(problem, SchedulingProblem)
        else:
            assert isinstance(problem, PlacementProblem)
            assert len(problem.cluster) == 2
            assert problem.cluster.channel == "free"
            assert problem.objective.value == row.objective


# --- Marks --------------------------------------------------------------------------------------------------


def test_rows_are_marked_by_what_was_found(suite: Suite) -> None:
    assert suite.screening is not None
    candidates = {candidate.graph: candidate for candidate in suite.screening.candidates}
    assert candidates.keys() == {row.graph for row in suite.part("test")}
    for row in suite.rows:
        if row.part != "test":
            assert row.role == "unscreened"
            continue
        candidate = candidates[row.graph]
        assert row.role == ("task" if leaves_a_gap(candidate) else "control")
        assert candidate.bound <= candidate.best_known
        if candidate.best_heuristic is not None:
            assert candidate.best_known <= candidate.best_heuristic
            assert (row.role == "control") == (candidate.best_heuristic < 1.02 * candidate.best_known)
    # Nothing was dropped, so every candidate is a row, and there are tasks in both populations.
    assert suite.screening.acceptance_rate == 1
    for population in ("synthetic", "real"):
        assert any(row.role == "task" for row in suite.part("test", population))


def test_marks_are_found_again(suite: Suite) -> None:
    assert suite.screening is not None
    stored = {candidate.graph: candidate for candidate in suite.screening.candidates}
    wanted = {task.graph: task for task in tasks(suite.name)}
    smallest = min(suite.part("test", "real"), key=lambda row: stored[row.graph].ops)
    for row in (*suite.part("test", "synthetic")[3::67], smallest):
        found = measure(wanted[row.graph])
        assert found["candidate"] == stored[row.graph].__dict__
        assert found["row"]["role"] == row.role
        assert found["row"]["capacity_bytes"] == row.capacity_bytes


def test_memory_is_above_a_peak_that_is_known_to_fit() -> None:
    for row in datasets.suite("regal-time").part("test")[::60]:
        twin = datasets.suite("regal-memory-2")
        peak = next(line for line in lines(twin.name) if line.fingerprint == row.fingerprint)
        assert row.capacity_bytes is not None
        assert row.capacity_bytes >= int(CAP * peak.brkga[5_000])  # type: ignore[operator]


# --- Reference lines ----------------------------------------------------------------------------------------


def test_every_row_of_the_test_has_a_line(suite: Suite, known: Lines) -> None:
    assert list(known.lines) == [row.name for row in suite.part("test")]
    for row in suite.part("test")[::23]:
        line, problem = known[row.name], row.problem()
        assert line.best is not None
        assert problem.evaluate(line.best.solution).value == line.best.value  # type: ignore[arg-type]
        assert problem.lower_bound().value <= line.bound <= line.best.value
        others = [*line.heuristics.values(), *line.annealing.values(), *line.brkga.values()]
        assert all(line.best.value <= value for value in others if value is not None)
        assert set(line.annealing) == {100, 5_000}
        assert set(line.brkga) == {5_000}


def test_lines_are_found_again(suite: Suite, known: Lines) -> None:
    row = suite.part("test", "synthetic")[5]
    stored = known[row.name]
    found = measure_line(reference_task(row))["line"]
    assert found["heuristics"] == stored.heuristics
    assert found["annealing"] == {str(count): value for count, value in stored.annealing.items()}
    assert found["brkga"] == {str(count): value for count, value in stored.brkga.items()}
    assert stored.best is not None
    assert stored.best.value <= found["best"]["value"]


def test_the_column_of_brkga_is_that_of_the_headroom_table() -> None:
    row = datasets.suite("regal-memory-2").part("test", "synthetic")[2]
    base = headroom.columns(2)[headroom.BASE].run(row.problem(), 0)
    assert lines("regal-memory-2")[row.name].brkga == {5_000: base.outcome.value}


def test_brkga_leaves_something_on_random_graphs() -> None:
    for name in ("regal-memory-1", "regal-memory-2"):
        document = report(name)
        table = next(t for t in document["tables"] if (t["population"], t["role"]) == ("synthetic", "all"))
        assert table["rows"] == table["clusters"] == len(datasets.suite(name).part("test", "synthetic"))
        left = table["columns"]["brkga 5,000"]
        assert left["feasible"] == table["rows"]
        assert left["left"]["estimate"] >= 0.08
        assert left["left"]["low"] < left["left"]["estimate"] < left["left"]["high"]
    real = next(t for t in report("regal-time")["tables"] if t["population"] == "real")
    assert 1 < real["clusters"] < real["rows"]


def test_few_samples_have_no_interval() -> None:
    whole = datasets.suite("regal-memory-1")
    for rows, told in ((LEAST_CLUSTERS - 1, False), (LEAST_CLUSTERS, True)):
        some = replace(whole, rows=whole.part("test", "synthetic")[:rows])
        table = next(t for t in report(whole.name, some)["tables"] if t["role"] == "all")
        left = table["columns"]["brkga 5,000"]["left"]
        assert table["clusters"] == rows
        assert (left["low"] is not None, left["high"] is not None) == (told, told)
        assert 0 < left["estimate"] < 1


def test_a_rebuilt_graph_is_searched_anew() -> None:
    """What is stored of a graph does not stand for another one of the same name."""
    task = Task("regal-memory-1", "zoo/a", "test", "one", 10)
    assert task.key != Task("regal-memory-1", "zoo/a", "test", "another", 10).key
    assert task.key == Task("regal-memory-1", "zoo/a", "test", "one", 10).key
