"""Reference lines: measured alike by any number of workers, taken up again, and never changed within a version."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from opgym import datasets
from opgym.datasets.reference import Best, Line, Lines
from opgym.datasets.suites import Row, Suite
from opgym.errors import InvalidDatasetError
from opgym.problems import Placement, SchedulingProblem
from opgym.runs.references import reference
from opgym.runs.references.reference import (
    Task,
    lines_of,
    measure,
    named_searches,
    polishing,
    published,
    settle,
)


def row(id: str, cluster: str = "", objective: str = "peak_memory", capacity: int | None = None) -> Row:
    return Row(id, datasets.load(id).fingerprint, cluster, objective, capacity, "test", "task")


RNN, ER = row("example/rnn-train"), row("synthetic/er?n=60&seed=3")
SUITE = Suite("tiny", 1, "summary", "rule", (RNN, ER))
TASKS = [Task(RNN, 2_000), Task(ER, 2_000)]


def of(measured: dict[str, Any]) -> Line:
    return Line.from_row(measured["line"])


# --- One row ------------------------------------------------------------------------------------------------


def test_an_order_is_proven() -> None:
    """240,648,196 bytes are proven in the file of proven peaks, by another run."""
    line = of(measure(TASKS[0]))
    assert line.best is not None
    assert (line.best.value, line.bound, line.unit) == (240_648_196, 240_648_196, "bytes")
    assert line.proven
    assert set(line.heuristics) == {
        "program-order", "bfs", "dfs", "post-order", "sethi-ullman", "greedy-freed-bytes", "best-of-three",
    }  # fmt: skip
    problem = RNN.problem()
    assert isinstance(problem, SchedulingProblem)
    assert line.heuristics["program-order"] == problem.reference_bytes
    assert set(line.annealing) == {100, 5_000}
    assert line.ops == len(problem.ops)
    assert line.best.seconds_limit is None


def test_a_placement_has_the_best_of_all_columns() -> None:
    line = of(measure(Task(row("example/rnn-train", "2xP100", "step_time"), 500)))
    assert line.best is not None
    assert line.unit == "ns"
    values = [value for value in (*line.heuristics.values(), *line.annealing.values()) if value is not None]
    assert line.bound <= line.best.value <= min(values)
    assert {"single", "human-expert", "metis", "m-etf", "heft"} <= set(line.heuristics)
    assert "random" not in line.heuristics
    placement = line.best.solution
    assert isinstance(placement, Placement)
    problem = row("example/rnn-train", "2xP100", "step_time").problem()
    assert problem.evaluate(placement).value == line.best.value  # type: ignore[arg-type]


def test_a_pipeline_is_split_by_dynamic_programming_too() -> None:
    line = of(measure(Task(row("example/two-branch", "2xP100", "max_load"), 200)))
    assert line.best is not None
    assert line.best.value >= line.bound
    names = [
        search.solver
        for search in reference.searches(row("example/two-branch", "2xP100", "max_load").problem())
    ]
    assert names == ["annealing", "annealing-metis", "dp"]


def test_the_best_placement_is_polished() -> None:
    on_two = row("example/rnn-train", "2xP100", "step_time")
    unpolished = of(measure(Task(on_two, searches=named_searches(on_two, ["annealing-metis"], 300, seed=5))))
    found = of(measure(Task(on_two, searches=(polishing(2_000),), known=unpolished)))
    assert unpolished.best is not None
    assert found.best is not None
    assert found.best.value < unpolished.best.value
    assert found.best.found_by == f"pair-annealing from {unpolished.best.found_by}"
    assert found.best.evaluations == 2_000 + unpolished.best.evaluations
    assert (found.heuristics, found.annealing) == (unpolished.heuristics, unpolished.annealing)
    assert on_two.problem().evaluate(found.best.solution).value == found.best.value  # type: ignore[arg-type]


def test_what_a_run_knows_of_a_row_is_taken_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Line | None] = []

    def spy(task: Task) -> dict[str, Any]:
        given.append(task.known)
        return measure(task)

    monkeypatch.setattr(reference, "measure", spy)
    rows = tmp_path / "rows.jsonl"
    on_two = row("example/rnn-train", "2xP100", "step_time")
    task = Task(on_two, searches=named_searches(on_two, ["annealing-metis"], 50))
    first = lines_of([task], rows)
    second = lines_of([replace(task, searches=named_searches(on_two, ["pair-annealing"], 500))], rows)
    lines_of([replace(task, row=replace(on_two, cluster="2xV100"))], rows)
    assert given[0] is None
    assert given[1] is not None
    assert given[1].row() == first[0].row()
    assert given[2] is None
    assert second[0].best is not None
    assert first[0].best is not None
    assert second[0].best.value <= first[0].best.value
    lines_of([task], rows)
    assert len(given) == 3


def test_where_nothing_fits_there_is_no_best_value() -> None:
    line = of(measure(Task(row("example/rnn-train", "2xP100", "step_time", capacity=240_000_000), 100)))
    assert line.best is None
    assert set(line.heuristics.values()) | set(line.annealing.values()) == {None}
    assert not line.proven


def test_a_limit_of_seconds_leaves_the_columns_alone() -> None:
    slow, fast = of(measure(TASKS[1])), of(measure(replace(TASKS[1], seconds=0.001)))
    assert (fast.heuristics, fast.annealing) == (slow.heuristics, slow.annealing)
    assert fast.best is not None
    assert slow.best is not None
    assert slow.best.value <= fast.best.value


# --- Runs ---------------------------------------------------------------------------------------------------


def test_any_number_of_workers_finds_the_same(tmp_path: Path) -> None:
    alone = lines_of(TASKS, workers=1)
    together = lines_of(TASKS, tmp_path / "rows.jsonl", workers=2)
    assert [line.row() for line in alone] == [line.row() for line in together]


def test_a_run_goes_on_with_what_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measured: list[str] = []

    def spy(task: Task) -> dict[str, Any]:
        measured.append(task.row.graph)
        return measure(task)

    monkeypatch.setattr(reference, "measure", spy)
    first = lines_of(TASKS[:1], tmp_path / "rows.jsonl")
    done: list[tuple[int, int, str]] = []
    both = lines_of(TASKS, tmp_path / "rows.jsonl", progress=lambda *state: done.append(state))
    assert measured == [RNN.graph, ER.graph]
    assert both[0].row() == first[0].row()
    assert done == [(1, 2, ""), (2, 2, ER.name)]
    lines_of([replace(TASKS[0], row=replace(RNN, part="train", role="control"))], tmp_path / "rows.jsonl")
    assert len(measured) == 2
    with (tmp_path / "rows.jsonl").open("a") as file:
        file.write('{"task": 3, "line": {}}\n')  # of another program
    lines_of([replace(TASKS[0], evaluations=1_000)], tmp_path / "rows.jsonl")
    assert measured[2:] == [RNN.graph]


# --- Versions -----------------------------------------------------------------------------------------------

PROBLEM = RNN.problem()
assert isinstance(PROBLEM, SchedulingProblem)
FOUND = of(measure(TASKS[0]))
assert FOUND.best is not None
WORSE = replace(FOUND.best, value=FOUND.best.value + 8, found_by="first try")
PUBLISHED = Lines("tiny", 1, 4, {RNN.name: replace(FOUND, best=WORSE, bound=5.0, bound_by="bound: low")})


def test_the_first_lines_are_version_one() -> None:
    settled = settle(SUITE, [FOUND], None)
    assert (settled.lines.reference_version, settled.added, settled.changed) == (1, (RNN.name,), ())


def test_a_better_value_goes_into_the_next_version() -> None:
    settled = settle(SUITE, [FOUND], PUBLISHED)
    assert settled.lines.reference_version == 5
    assert (settled.added, settled.changed, settled.improved) == ((), (RNN.name,), (RNN.name,))
    best, old = settled.lines[RNN.name].best, PUBLISHED[RNN.name].best
    assert best is not None
    assert old is not None
    assert best.value == FOUND.bound
    assert old.value == best.value + 8


def test_what_is_no_better_changes_nothing() -> None:
    known = Lines("tiny", 1, 4, {RNN.name: FOUND})
    settled = settle(SUITE, [replace(FOUND, best=WORSE, bound=5.0, bound_by="bound: low")], known)
    assert settled.lines.reference_version == 4
    assert (settled.added, settled.changed, settled.improved) == ((), (), ())
    assert settled.lines[RNN.name].row() == FOUND.row()


def test_a_new_row_joins_the_version() -> None:
    other = replace(FOUND, problem=ER.name, fingerprint=ER.fingerprint)
    settled = settle(SUITE, [other], PUBLISHED)
    assert settled.lines.reference_version == 4
    assert settled.added == (ER.name,)
    assert list(settled.lines.lines) == [RNN.name, ER.name]
    assert settled.lines[RNN.name].row() == PUBLISHED[RNN.name].row()


def test_a_row_that_goes_or_changes_is_a_new_version() -> None:
    gone = settle(Suite("tiny", 2, "summary", "rule", (ER,)), [], PUBLISHED)
    assert (gone.lines.reference_version, gone.changed, len(gone.lines)) == (5, (RNN.name,), 0)
    other = replace(FOUND, fingerprint="0" * 64)
    assert settle(SUITE, [other], PUBLISHED).changed == (RNN.name,)
    column = replace(FOUND, annealing={100: 1e12, 5_000: None})
    assert settle(SUITE, [column], Lines("tiny", 1, 1, {RNN.name: FOUND})).lines.reference_version == 2


def test_a_value_below_a_bound_is_an_error() -> None:
    assert FOUND.best is not None
    impossible = replace(FOUND, bound=5.0, best=replace(FOUND.best, value=FOUND.bound - 1, found_by="wizard"))
    with pytest.raises(InvalidDatasetError, match="wizard is below the bound"):
        settle(SUITE, [impossible], Lines("tiny", 1, 1, {RNN.name: FOUND}))


def test_the_newest_file_counts_wherever_it_is(tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    for folder, version in ((first, 1), (second, 2)):
        folder.mkdir()
        lines = Lines("tiny", 1, version, {RNN.name: FOUND})
        lines.save(folder / lines.file_name)
    newest = published("tiny", first, second)
    assert newest is not None
    assert newest.reference_version == 2
    assert published("other", first, second) is None


def test_the_stored_solution_is_what_was_found() -> None:
    assert FOUND.best is not None
    stored = Best.from_row(FOUND.best.row(), "best")
    assert np.array_equal(stored.order, FOUND.best.order)
    assert isinstance(PROBLEM, SchedulingProblem)
    assert PROBLEM.evaluate(stored.solution).value == FOUND.best.value  # type: ignore[arg-type]
