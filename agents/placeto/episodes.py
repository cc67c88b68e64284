"""Placeto's decision process: every group is visited once and may move, in several episodes at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from ...outcome import Outcome
from ..networks.placing.drawing import drawn
from ..networks.placing.judging import INVALID_REWARD, Judge
from .instance import Instance
from .policy import Policy


def cost_of(outcome: Outcome, reference: float) -> float:
    """What an episode makes smaller: the run time, in runs of all work on the fastest single device.

    What does not fit into memory costs ten of them, and ten more for as much memory as its fullest device has, whatever
    its run time. The paper adds a penalty for the excess to the run time; if that is weak, fast placements that do not
    fit are a trap where those that fit are slow.

    Args:
        outcome: Of a placement.
        reference: Value of all work on the fastest single device.
    """
    return outcome.value / reference if outcome.ok else -INVALID_REWARD * (1 + outcome.overflow_share)


class Trials:
    """Placements that were tried in one update: what is known already is not tried again.

    Args:
        instance: The problem.
        judge: Says what a placement is worth, and counts.
    """

    def __init__(self, instance: Instance, judge: Judge) -> None:
        self._coarse, self._judge = instance.coarse, judge
        self._known: dict[bytes, Outcome] = {}
        self.count = 0

    def __call__(self, device: NDArray[np.int64], *, again: bool = False) -> Outcome:
        """Outcome of a placement of groups, ``[groups]``.

        Args:
            device: Of each group.
            again: Whether it is tried even if it was before.
        """
        key = device.astype(np.uint8).tobytes()
        if again or key not in self._known:
            self._known[key] = self._judge(self._coarse.device_of_ops(device))
            self.count += 1
        return self._known[key]


@dataclass(frozen=True, eq=False)
class Episodes:
    """Episodes from one start, which were played in step with each other.

    Attributes:
        start: Device of each group at the start, ``[groups] int64``.
        chosen: Device that each was put on when it was visited, and where it is in the end,
            ``[groups, episodes] int64``.
        costs: Of the placement before each step and after the last, ``[1 + groups, episodes] float64``; or after the
            last only, ``[1, episodes]``.
        ends: Outcomes of the last placements, one per episode.
    """

    start: NDArray[np.int64]
    chosen: NDArray[np.int64]
    costs: NDArray[np.float64]
    ends: tuple[Outcome, ...]


def play(
    policy: Policy,
    instance: Instance,
    start: NDArray[np.int64],
    episodes: int,
    trials: Trials,
    rng: np.random.Generator,
    *,
    every_step: bool,
) -> Episodes:
    """Plays episodes, all of them step by step, so that one look of the network serves all.

    Placements that were tried before in the update are not tried again, but the end of each episode is: an update
    always costs evaluations, whatever it finds.

    Args:
        policy: Draws devices.
        instance: The problem.
        start: Device of each group at the start, ``[groups] int64``.
        episodes: How many.
        trials: Tries placements.
        rng: Source of all randomness.
        every_step: Whether the placement after each step is tried; otherwise that after the last alone.
    """
    reference = instance.reward.reference
    device = np.repeat(start[:, None], episodes, axis=1)
    costs = [[cost_of(trials(start), reference)] * episodes] if every_step else []
    last = len(start) - 1
    ends: list[Outcome] = []
    for group in range(len(start)):
        probability = _probability(policy, instance, device, group)
        device[group] = drawn(probability, rng.random(len(probability)))
        if every_step or group == last:
            ends = [trials(column, again=group == last) for column in device.T]
            costs.append([cost_of(outcome, reference) for outcome in ends])
    return Episodes(start, device, np.array(costs), tuple(ends))


def play_greedily(policy: Policy, instance: Instance, start: NDArray[np.int64]) -> NDArray[np.int64]:
    """The end of an episode that always takes the likeliest device, ``[groups] int64``; tries nothing."""
    device = start[:, None].copy()
    for group in range(len(start)):
        device[group] = _probability(policy, instance, device, group).argmax(axis=1)
    return device[:, 0]


def states_of(episodes: Episodes, first: int, last: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """States of steps ``first .. last - 1``, step after step.

    Returns:
        Device of each group, ``[groups, states] int64``, and the group that is placed, ``[states] int64``.
    """
    groups, count = episodes.chosen.shape
    current = np.repeat(np.arange(first, last), count)
    visited = np.arange(groups)[:, None] < current
    after = np.tile(episodes.chosen, (1, last - first))
    return np.where(visited, after, episodes.start[:, None]), current


def returns_of(costs: NDArray[np.float64], steps: int, discount: float) -> NDArray[np.float64]:
    """Sums of the rewards that follow each step, ``[steps, episodes]``.

    Args:
        costs: Of the placement before each step and after the last, ``[1 + steps, episodes]``: the reward of a step is
            by how much it improved; or of the last alone, ``[1, episodes]``: it is minus that, for the last step.
        steps: Of an episode.
        discount: What a reward is worth a step earlier.
    """
    rewards = costs[:-1] - costs[1:] if len(costs) > 1 else np.zeros((steps, costs.shape[1]))
    if len(costs) == 1:
        rewards[-1] = -costs[0]
    returns = rewards.copy()
    for step in range(steps - 2, -1, -1):
        returns[step] += discount * returns[step + 1]
    return returns


def _probability(
    policy: Policy, instance: Instance, device: NDArray[np.int64], group: int
) -> NDArray[np.float64]:
    """Of each device for a group in each episode, ``[episodes, devices]``."""
    with torch.inference_mode():
        at = instance.allowed.device
        current = torch.full((device.shape[1],), group, device=at)
        said: NDArray[np.float64] = (
            policy(instance, torch.from_numpy(device).to(at), current).exp().double().cpu().numpy()
        )
    return said
