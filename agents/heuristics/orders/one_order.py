"""Solvers that build one order."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
from numpy.typing import NDArray

from ....problems import Evaluator, Order, SchedulingProblem
from ...solver import Remark, SchedulingSolver


class OneOrder(SchedulingSolver):
    """A rule that gives one order; one evaluation."""

    @abstractmethod
    def order(self, problem: SchedulingProblem) -> NDArray[np.int32]:
        """The order of the rule, ``[schedulable ops] int32``."""

    def _search(
        self, problem: SchedulingProblem, evaluator: Evaluator[Order], rng: np.random.Generator
    ) -> Remark | None:
        evaluator.evaluate(Order(self.order(problem)))
        return None
