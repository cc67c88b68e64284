"""Whole placements, decided group by group in the environment's batch: what was seen, and what was chosen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..._core import PlacementBatch
from ...envs.placement.observation import node_space
from ..networks.placing.drawing import drawn
from .instance import DEVICE_WIDTH, Instance
from .policy import Policy, log_probabilities

#: Chooses a device for each placement from probabilities ``[placements, devices]``.
Choose = Callable[[NDArray[np.float32]], NDArray[np.int64]]


@dataclass(frozen=True, eq=False)
class Construction:
    """Placements of one problem.

    Attributes:
        chosen: Device of each group, ``[placements, groups] int64``.
        devices: What the environment said of each device when a group was decided, ``[placements, groups, devices,
            DEVICE_WIDTH] float32``.
        legal: Where the group could run, ``[placements, groups, devices] bool``.
        probability: Of each device, when it was chosen, ``[placements, groups, devices] float32``.
        device: Device of each op, ``[placements, ops] uint8``.
    """

    chosen: NDArray[np.int64]
    devices: NDArray[np.float32]
    legal: NDArray[np.bool_]
    probability: NDArray[np.float32]
    device: NDArray[np.uint8]


def most_likely(policy: Policy, graph: Instance) -> Construction:
    """The placement that takes the best device for each group."""
    return constructed(policy, graph, 1, lambda probability: probability.argmax(axis=1))


def sampled(policy: Policy, graph: Instance, count: int, rng: np.random.Generator) -> Construction:
    """Placements that are drawn."""

    return constructed(
        policy, graph, count, lambda probability: drawn(probability, rng.random(count, np.float32))
    )


def followed(policy: Policy, graph: Instance, device: NDArray[np.integer]) -> Construction:
    """The placement that is given, and how likely its decisions are.

    Args:
        policy: Says how likely they are.
        graph: The problem.
        device: Of each group, ``[groups] int``; where a group may not go there, the best other one is taken.
    """
    wanted = iter(device.astype(np.int64))

    def choose(probability: NDArray[np.float32]) -> NDArray[np.int64]:
        at = next(wanted)
        return np.array([at]) if probability[0, at] > 0 else probability.argmax(axis=1)

    return constructed(policy, graph, 1, choose)


def constructed(policy: Policy, graph: Instance, count: int, choose: Choose) -> Construction:
    """Decides one group after the other, in so many placements at once.

    Args:
        policy: Says how likely each device is.
        graph: The problem.
        count: Of placements.
        choose: Takes one of the devices.
    """
    groups, devices = len(graph), graph.num_devices
    board = _Board(graph, count)
    chosen = np.empty((count, groups), np.int64)
    seen = np.empty((count, groups, devices, DEVICE_WIDTH), np.float32)
    legal = np.empty((count, groups, devices), np.bool_)
    probability = np.empty((count, groups, devices), np.float32)
    with torch.inference_mode():
        known = policy.known(graph)
        there = torch.zeros(groups, count * devices, device=known.group.device)
        rows = devices * np.arange(count)
        for at in range(groups):
            seen[:, at], legal[:, at] = board.devices, board.legal
            liked = (known.liking[:, at, :at] @ there[:at]).view(-1, count, devices).permute(1, 2, 0)
            scores = policy.scores(known.group[at], _on(there, seen[:, at]), liked)
            says = log_probabilities(scores, _on(there, legal[:, at])).exp().cpu().numpy()
            goes = choose(says)
            there[at, _on(there, rows + goes)] = 1
            board.decide(goes)
            chosen[:, at], probability[:, at] = goes, says
    device = chosen.astype(np.uint8)[:, graph.tables.blocks.group_of_op]
    return Construction(chosen, seen, legal, probability, device)


class _Board:
    """Episodes of the environment, side by side in the core.

    Args:
        graph: What they are about.
        count: Of episodes.
    """

    def __init__(self, graph: Instance, count: int) -> None:
        tables = graph.tables
        self._batch = PlacementBatch([tables.core], count, len(graph), False, True, 1)
        self._shape = (count, tables.num_devices, DEVICE_WIDTH)
        self._observation = [np.empty((count, *node_space(tables.num_devices).shape), np.float32)]
        self._mask = np.empty((count, tables.num_devices), np.int8)
        self._reward, self._over = np.empty(count), np.empty(count, np.bool_)
        self._illegal = np.empty(count, np.int64)
        slots = np.arange(count)
        self._batch.reset(slots, np.zeros(count, np.int64))
        self._batch.observe(slots, self._illegal, self._mask, self._observation)

    @property
    def devices(self) -> NDArray[np.float32]:
        """What is said of each device for the group that is to decide, ``[episodes, devices, DEVICE_WIDTH]``."""
        _, devices, width = self._shape
        return self._observation[0][:, : devices * width].reshape(self._shape)

    @property
    def legal(self) -> NDArray[np.bool_]:
        """Where it may run, ``[episodes, devices]``."""
        return self._mask.astype(np.bool_)

    def decide(self, device: NDArray[np.int64]) -> None:
        """Puts the group somewhere, in each episode."""
        self._batch.step(device, None, self._reward, self._over, self._illegal, self._mask, self._observation)


def _on(like: Tensor, array: NDArray[Any]) -> Tensor:
    """An array on the device of a tensor."""
    return torch.from_numpy(array).to(like.device)
