"""Evaluations are counted, limited and remembered."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from opgym.outcome import Outcome, Verdict
from opgym.problems import Budget, BudgetExhausted, Evaluator, Placement

from .instances import accelerator, dag, problem


class Scripted:
    """A problem whose solutions are their own values; negative ones are out of memory."""

    def evaluate(self, solution: float) -> Outcome:
        if solution < 0:
            return Outcome(-solution, "ns", Verdict.OUT_OF_MEMORY, overflow_share=-solution)
        return Outcome(solution, "ns")


def test_counts_and_keeps_the_best():
    evaluator = Evaluator(Scripted())
    for value in (-9.0, -4.0, -7.0, 30.0, 20.0, 25.0, 20.0, 10.0):
        evaluator.evaluate(value)
    assert evaluator.evaluations == 8
    assert evaluator.best == 10.0
    assert [(p.evaluations, p.value) for p in evaluator.curve] == [(1, 9), (2, 4), (4, 30), (5, 20), (8, 10)]
    assert [p.feasible for p in evaluator.curve] == [False, False, True, True, True]
    assert [p.value for p in evaluator.feasible_curve] == [30, 20, 10]
    seconds = [p.seconds for p in evaluator.curve]
    assert seconds == sorted(seconds)
    assert seconds[-1] <= evaluator.seconds


def test_an_infeasible_value_above_the_first_feasible_one_is_not_of_the_feasible_curve():
    evaluator = Evaluator(Scripted())
    for value in (-90.0, 30.0):
        evaluator.evaluate(value)
    with evaluator.share(None) as own:
        for value in (-80.0, 25.0):
            own.evaluate(value)
    assert [(p.evaluations, p.value) for p in evaluator.feasible_curve] == [(2, 30), (4, 25)]


def test_the_number_of_evaluations_is_never_exceeded():
    evaluator = Evaluator(Scripted(), Budget(evaluations=3))
    for value in (3.0, 2.0, 1.0):
        assert not evaluator.exhausted
        evaluator.evaluate(value)
    assert evaluator.remaining == 0
    assert evaluator.exhausted
    with pytest.raises(BudgetExhausted, match="evaluations=3"):
        evaluator.evaluate(0.0)
    assert evaluator.evaluations == 3
    assert evaluator.best == 1.0


def test_no_evaluation_is_granted_on_an_empty_budget():
    evaluator = Evaluator(Scripted(), Budget(evaluations=0))
    with pytest.raises(BudgetExhausted):
        evaluator.evaluate(1.0)
    assert evaluator.best is None
    assert evaluator.best_outcome is None


def test_time_ends_it_but_grants_one_evaluation():
    evaluator = Evaluator(Scripted(), Budget(seconds=0.0))
    evaluator.evaluate(5.0)
    assert evaluator.exhausted
    with pytest.raises(BudgetExhausted):
        evaluator.evaluate(4.0)


def test_time_ends_it_when_the_clock_says_so(monkeypatch):
    now = 100.0
    monkeypatch.setattr("opgym.problems.budget.time", SimpleNamespace(perf_counter=lambda: now))
    evaluator = Evaluator(Scripted(), Budget(seconds=2.0))
    for now in (100.5, 101.5, 101.75):  # noqa: B007 - the clock reads it
        evaluator.evaluate(1.0)
        assert not evaluator.exhausted
    now = 102.0
    assert evaluator.exhausted
    assert evaluator.seconds == 2.0
    with pytest.raises(BudgetExhausted):
        evaluator.evaluate(1.0)


def test_progress_hears_of_every_evaluation():
    heard = []
    evaluator = Evaluator(Scripted(), progress=lambda p: heard.append((p.evaluations, p.best.value)))
    for value in (3.0, 5.0, 2.0):
        evaluator.evaluate(value)
    assert heard == [(1, 3), (2, 3), (3, 2)]


def test_illegal_placements_cost_an_evaluation():
    p = problem(dag({0: []}), [accelerator()], "step_time", [5])
    evaluator = Evaluator(p, Budget(evaluations=2))
    assert not evaluator.evaluate(Placement(np.array([4]))).ok
    assert evaluator.evaluate(Placement(np.array([0]))).value == 5
    assert evaluator.evaluations == 2
    assert evaluator.best_outcome.ok
