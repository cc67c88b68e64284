"""A placement problem as Placeto's policy reads it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ...problems import PlacementProblem
from ..networks.placing.judging import Reward
from ..networks.placing.learned import key_of
from .coarse import CoarseGraph
from .shape import Shape


@dataclass(frozen=True, eq=False)
class Instance:
    """One problem.

    Matrices are ``[groups, groups] float32``; a row has a weight for each group that a group hears.

    Attributes:
        key: Differs where problems do.
        coarse: Its groups.
        reward: Of outcomes.
        fields: What never changes of each group, ``[groups, 2] float32``.
        parents: Groups that a group reads from.
        children: Groups that read from it.
        ancestors: Groups from which a path leads to it.
        descendants: Groups to which a path leads from it.
        parallel: Groups that are neither.
        allowed: Devices of each group, ``[groups, devices of the policy] bool``.
    """

    key: str
    coarse: CoarseGraph
    reward: Reward
    fields: Tensor
    parents: Tensor
    children: Tensor
    ancestors: Tensor
    descendants: Tensor
    parallel: Tensor
    allowed: Tensor

    @classmethod
    def of(cls, problem: PlacementProblem, groups: str, shape: Shape, device: str = "cpu") -> Instance:
        """A problem for a policy of a shape, on a device of torch."""
        coarse = CoarseGraph.of(problem, groups)
        reads, reached = coarse.reads, coarse.reached
        parallel = ~(reached | reached.T | np.eye(len(coarse), dtype=np.bool_))
        allowed = torch.zeros(len(coarse), shape.devices, dtype=torch.bool)
        allowed[:, : len(problem.cluster)] = torch.from_numpy(coarse.allowed)
        mean = shape.aggregate == "mean"
        return cls(
            key_of(problem),
            coarse,
            Reward.of(problem),
            torch.from_numpy(coarse.fields).to(device),
            _weights(reads, mean).to(device),
            _weights(reads.T, mean).to(device),
            _weights(reached, mean).to(device),
            _weights(reached.T, mean).to(device),
            _weights(parallel, mean).to(device),
            allowed.to(device),
        )


def _weights(heard: NDArray[np.bool_], mean: bool) -> Tensor:
    """1 for each group that is heard, or, for a mean, its share of them."""
    weights = heard.astype(np.float32)
    if mean:
        weights /= np.maximum(weights.sum(axis=1, keepdims=True), 1)
    return torch.from_numpy(np.ascontiguousarray(weights))
