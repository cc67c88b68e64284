"""A policy that places the ops of a graph, and its way of learning from what placements are worth."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Generic, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from ....problems import PlacementProblem
from .judging import Judge

InstanceT = TypeVar("InstanceT")


class Placer(ABC, Generic[InstanceT]):
    """One policy that learns.

    Attributes:
        policy: Its network.
        optimizer: Of its weights.
        learning_rate: Step size of the next updates.
    """

    policy: torch.nn.Module
    optimizer: torch.optim.Optimizer
    learning_rate: float

    @abstractmethod
    def instance(self, problem: PlacementProblem) -> InstanceT:
        """A problem as the policy reads it."""

    @abstractmethod
    def greedy(self, instance: InstanceT) -> NDArray[np.uint8]:
        """The most likely placement, without any evaluation: device of each op, ``[ops] uint8``."""

    @abstractmethod
    def update(
        self, instance: InstanceT, judge: Judge, rng: np.random.Generator
    ) -> tuple[int, dict[str, float]]:
        """Tries placements of a problem and learns from them, once.

        Args:
            instance: The problem.
            judge: Says what a placement is worth; may end the search with an exception, and nothing is learned then.
            rng: Source of all randomness.

        Returns:
            Placements tried, and metrics.
        """

    def state(self) -> dict[str, Any]:
        """What it knows beside weights and optimizer, as plain data."""
        return {}

    def set_state(self, state: dict[str, Any]) -> None:
        """Takes back a :meth:`state`."""

    # --- for those who learn

    def descend(self, loss: torch.Tensor, most_gradient: float) -> None:
        """One step of the optimizer.

        Args:
            loss: What to make smaller.
            most_gradient: Norm to which the gradient is shortened.
        """
        for group in self.optimizer.param_groups:
            group["lr"] = self.learning_rate
        self.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(self.policy.parameters(), most_gradient)
        self.optimizer.step()
