"""What loops outside Python spend and find, as the evaluator takes it over."""

from __future__ import annotations

import numpy as np
import pytest

from opgym.errors import OpgymError
from opgym.problems import Budget, BudgetExhausted, CurvePoint, Evaluator, Order, SchedulingProblem

from .test_scheduling import two_branches

#: Peaks 25, 24 and 32.
FAIR, GOOD, BAD = ([0, 1, 2, 3, 4, 5], [0, 3, 4, 1, 2, 5], [0, 1, 3, 2, 4, 5])


def order(ops: list[int]) -> Order:
    return Order(np.array(ops, np.int32))


@pytest.fixture
def evaluator() -> Evaluator[Order]:
    return Evaluator(SchedulingProblem(two_branches()), Budget(evaluations=10))


def test_evaluations_count_and_new_bests_join_the_curve(evaluator):
    evaluator.evaluate(order(BAD))
    evaluator.account(4, [CurvePoint(2, 0.1, 25.0), CurvePoint(3, 0.2, 24.0)], order(GOOD), began=5.0)
    assert (evaluator.evaluations, evaluator.remaining) == (5, 5)
    assert evaluator.best_outcome.value == 24
    assert [(p.evaluations, p.value) for p in evaluator.curve] == [(1, 32.0), (3, 25.0), (4, 24.0)]
    assert [p.seconds for p in evaluator.curve[1:]] == [5.1, 5.2]


def test_what_is_no_better_than_known_only_counts(evaluator):
    known = order(FAIR)
    evaluator.evaluate(known)
    evaluator.account(3, [CurvePoint(1, 0.1, 32.0), CurvePoint(2, 0.1, 25.0)], order(FAIR), began=0.0)
    evaluator.account(2, [], None, began=0.0)
    assert evaluator.evaluations == 6
    assert evaluator.best is known
    assert len(evaluator.curve) == 1


def test_points_that_were_beaten_before_are_left_out(evaluator):
    evaluator.evaluate(order(FAIR))
    evaluator.account(3, [CurvePoint(1, 0.1, 32.0), CurvePoint(2, 0.2, 24.0)], order(GOOD), began=0.0)
    assert [p.value for p in evaluator.curve] == [25.0, 24.0]


def test_a_value_that_the_solution_does_not_have_is_found_out(evaluator):
    with pytest.raises(OpgymError, match=r"says 23\.0 of a solution worth 24\.0"):
        evaluator.account(1, [CurvePoint(1, 0.1, 23.0)], order(GOOD), began=0.0)
    assert evaluator.best is None


def test_more_than_was_left_is_found_out(evaluator):
    evaluator.account(10, [], None, began=0.0)
    assert evaluator.exhausted
    with pytest.raises(OpgymError, match="spent 1 evaluations where 0 were left"):
        evaluator.account(1, [], None, began=0.0)


def test_progress_is_told_once_per_call():
    told = []
    evaluator = Evaluator(SchedulingProblem(two_branches()), None, told.append)
    evaluator.account(7, [CurvePoint(7, 0.1, 24.0)], order(GOOD), began=0.0)
    assert [(t.evaluations, t.best.value) for t in told] == [(7, 24.0)]


def test_a_share_is_spent_and_its_findings_are_ours(evaluator):
    evaluator.evaluate(order(FAIR))
    with evaluator.share(3) as own:
        for ops in (BAD, GOOD, FAIR):
            own.evaluate(order(ops))
        with pytest.raises(BudgetExhausted):
            own.evaluate(order(FAIR))
    assert evaluator.evaluations == 4
    assert [(p.evaluations, p.value) for p in evaluator.curve] == [(1, 25.0), (3, 24.0)]


def test_a_share_is_at_most_what_is_left_and_is_kept_when_its_search_gives_up(evaluator):
    evaluator.account(8, [], None, began=0.0)
    with pytest.raises(BudgetExhausted), evaluator.share(5) as own:  # noqa: PT012
        assert own.remaining == 2
        for ops in (BAD, GOOD, FAIR):
            own.evaluate(order(ops))
    assert evaluator.exhausted
    assert evaluator.best_outcome.value == 24
    with Evaluator(evaluator.problem, Budget(seconds=1e6)).share(None) as unlimited:
        assert unlimited.remaining is None
        assert 0 < unlimited.budget.seconds <= 1e6
