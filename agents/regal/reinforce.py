"""REINFORCE on a bandit: a graph is a context, a proposal an action, a run of BRKGA with it the reward."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ...errors import OpgymError
from .. import metrics
from ..learner import Monitor
from ..sb3.tree_file import read_tree, write_tree
from .beta_heads import decisions_of
from .instance import Instance
from .network import Network
from .policy import Batch, Policy
from .task import AnyProblem, Task
from .trials import Trial, Trials

#: Advantages beyond so many standard deviations count as that many: an end that does not fit is far off the others.
_MOST_ADVANTAGE = 3.0
#: Spread of the rewards of a graph below which all its proposals are about as good: half a per cent.
_LEAST_SPREAD = 0.005
#: Norm to which gradients are shortened.
_MOST_GRADIENT = 1.0
#: Weight of the loss of the value head.
_VALUE_WEIGHT = 0.5
#: Streams of random numbers.
_WEIGHTS, _ORDER, _UPDATE, _VALIDATION = range(4)
#: Name of a checkpoint's files.
_NAME = "training"
#: Metrics of the gain on validation problems, by task.
_GAINS = {
    Task("peak_memory", 1): metrics.VALIDATION_GAIN_MEMORY_1,
    Task("peak_memory", 2): metrics.VALIDATION_GAIN_MEMORY_2,
    Task("step_time", 2): metrics.VALIDATION_GAIN_TIME_2,
}


@dataclass(frozen=True)
class Recipe:
    """How to train.

    Attributes:
        network: Shape of the policy.
        graphs: Graphs of an update.
        samples: Proposals drawn for each of them.
        learning_rate: Step size of Adam.
        anneal: Whether it falls to 0 in the course of the training.
        entropy: Weight of the entropy of decisions, in what is maximised.
        validate_every: Updates between two looks at the validation problems.
        groups: What shares a device, as of ``brkga``.
        transfer_keys: Whether transfers have keys, as of ``brkga``.
    """

    network: Network
    graphs: int
    samples: int
    learning_rate: float
    anneal: bool
    entropy: float
    validate_every: int
    groups: str | None
    transfer_keys: bool


def new_policy(network: Network, seed: int) -> Policy:
    """A policy with random weights."""
    torch.manual_seed(_torch_seed(np.random.default_rng([seed, _WEIGHTS])))
    return Policy(network)


class Training:
    """One training, update by update.

    Everything that is drawn in an update follows from the seed and its number, so a checkpoint holds weights, the
    state of the optimizer and what was best, and no generator.

    Args:
        recipe: How to train.
        policy: What to train; changed in place.
        problems: What to learn from; read where they are drawn, so they may be a sequence that makes them.
        validation: What to choose weights by; empty: the last ones are taken.
        trials: Makes the runs.
        steps: Proposals to try; the last update is taken to its end.
        seed: Of all randomness.
    """

    def __init__(
        self,
        recipe: Recipe,
        policy: Policy,
        problems: Sequence[AnyProblem],
        validation: Sequence[AnyProblem],
        trials: Trials,
        steps: int,
        seed: int,
    ) -> None:
        self._recipe, self._policy, self._problems, self._trials = recipe, policy, problems, trials
        self._total_steps, self._seed = steps, seed
        self._optimizer = torch.optim.Adam(policy.parameters(), lr=recipe.learning_rate)
        self._updates = 0
        self._best_gain: float | None = None
        self._best: dict[str, NDArray[Any]] = policy.weights()
        self._validation = [self._instance(problem) for problem in validation]
        self._plain: list[float] = []
        self._seconds = 0.0

    @property
    def steps(self) -> int:
        """Proposals tried so far, those of validation apart."""
        return self._updates * self._recipe.graphs * self._recipe.samples

    @property
    def result(self) -> tuple[dict[str, NDArray[Any]], float | None]:
        """The weights of the training, and their gain on the validation problems, if there are any."""
        return (self._best, self._best_gain) if self._validation else (self._policy.weights(), None)

    def run(self, identity: Mapping[str, Any], monitor: Monitor | None) -> None:
        """Trains to the end.

        Args:
            identity: Everything that decides what the training does, as plain data.
            monitor: Watches; with a checkpoint the training goes on from there.

        Raises:
            OpgymError: The checkpoint is damaged, or of another training.
        """
        latest = None if monitor is None else monitor.latest
        if latest is not None:
            self._resume(latest, identity)
        while self.steps < self._total_steps:
            began, self._seconds = time.perf_counter(), 0.0
            before = self.steps
            line = self._update()
            last = self.steps >= self._total_steps
            if self._validation and (last or self._updates % self._recipe.validate_every == 0):
                line |= self._validate()
            seconds = max(time.perf_counter() - began, 1e-9)
            line[metrics.STEPS_PER_SECOND.name] = (self.steps - before) / seconds
            line[metrics.ENVIRONMENT_SHARE.name] = self._seconds / seconds
            if monitor is not None:
                monitor.log(self.steps, line)
                monitor.checkpoint(self.steps, lambda folder: self._write(folder, identity), last=last)

    # --- one update

    def _update(self) -> dict[str, float]:
        recipe, rng = self._recipe, np.random.default_rng([self._seed, _UPDATE, self._updates])
        instances = [self._instance(self._problems[i]) for i in self._drawn()]
        batch = Batch.of(instances)
        nodes = self._policy.encoder(batch.graphs)
        generator = torch.Generator().manual_seed(_torch_seed(rng))
        with torch.no_grad():
            bins = self._policy.heads.sample(nodes, batch.two_devices, recipe.samples, generator)
        rewards, fits = self._rewards(instances, bins, rng)
        advantage, value_loss = self._advantage(batch, nodes, rewards)
        log_prob, entropy = self._policy.heads.log_prob(nodes, batch.two_devices, bins)
        # Per decision, so that a large graph does not count for more than a small one.
        share = batch.mean_of(decisions_of(batch.two_devices))
        policy_loss = -(advantage * batch.mean_of(log_prob) / share).mean()
        decided = (batch.mean_of(entropy) / share).mean()
        loss = policy_loss - recipe.entropy * decided + _VALUE_WEIGHT * value_loss
        self._step(loss)
        line = {
            metrics.REWARD.name: float(rewards.mean()),
            metrics.FEASIBLE_SHARE.name: fits,
            metrics.LEARNING_RATE.name: float(self._optimizer.param_groups[0]["lr"]),
            metrics.UPDATES.name: float(self._updates),
            metrics.POLICY_LOSS.name: float(policy_loss.detach()),
            metrics.ENTROPY.name: float(decided.detach()),
            metrics.TOTAL_LOSS.name: float(loss.detach()),
        }
        if self._policy.value is not None:
            line[metrics.VALUE_LOSS.name] = float(value_loss.detach())
        return line

    def _drawn(self) -> list[int]:
        """Positions of the problems of this update: each in turn, in a new order each time round."""
        count = len(self._problems)
        first = self._updates * self._recipe.graphs
        chosen = []
        for position in range(first, first + self._recipe.graphs):
            round_, place = divmod(position, count)
            order = np.random.default_rng([self._seed, _ORDER, round_]).permutation(count)
            chosen.append(int(order[place]))
        return chosen

    def _rewards(
        self, instances: Sequence[Instance], bins: Tensor, rng: np.random.Generator
    ) -> tuple[Tensor, float]:
        """Minus the costs of proposals, ``[samples, instances]``, and the share of runs that fit.

        The samples of a graph and its plain run share random numbers.
        """
        sizes = [len(instance.features.nodes) for instance in instances]
        of_instance = [part.numpy() for part in torch.split(bins, sizes, dim=1)]
        trials = []
        for instance, decided in zip(instances, of_instance, strict=True):
            seed = int(rng.integers(2**63))
            trials += [Trial(instance, seed), *(Trial(instance, seed, sample) for sample in decided)]
        ends = self._timed(trials)
        rows = [ends[i : i + 1 + len(bins)] for i in range(0, len(ends), 1 + len(bins))]
        cost = [[end.cost(row[0]) for end in row[1:]] for row in rows]
        fits = float(np.mean([end.overflow_share <= 0 for row in rows for end in row[1:]]))
        return -torch.tensor(cost, dtype=torch.float32).T, fits

    def _timed(self, trials: Sequence[Trial]) -> list[Any]:
        began = time.perf_counter()
        ends = self._trials.run(trials)
        self._seconds += time.perf_counter() - began
        return ends

    def _advantage(self, batch: Batch, nodes: Tensor, rewards: Tensor) -> tuple[Tensor, Tensor]:
        """How much better each reward is than what was expected, and the loss of the value head, if there is one."""
        if self._policy.value is None:
            others = (rewards.sum(0) - rewards) / (len(rewards) - 1)
            advantage, loss = rewards - others, torch.zeros(())
            # Of each graph by itself: where some runs do not fit, rewards differ ten times as much as elsewhere.
            spread = rewards.std(0, correction=0)
        else:
            expected = (
                self._policy.value(batch.mean_of(nodes.T).T).squeeze(-1) - 1
            )  # at first it expects parity
            advantage, loss = rewards - expected.detach(), ((rewards - expected) ** 2).mean()
            advantage = advantage - advantage.mean()
            spread = advantage.std(correction=0)
        advantage = advantage / spread.clamp(min=_LEAST_SPREAD)
        return advantage.clamp(-_MOST_ADVANTAGE, _MOST_ADVANTAGE), loss

    def _step(self, loss: Tensor) -> None:
        if self._recipe.anneal:
            left = max(0.0, 1 - self.steps / self._total_steps)
            self._optimizer.param_groups[0]["lr"] = self._recipe.learning_rate * left
        self._optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(self._policy.parameters(), _MOST_GRADIENT)
        self._optimizer.step()
        self._updates += 1

    def _instance(self, problem: AnyProblem) -> Instance:
        return Instance.of(problem, self._recipe.groups, transfer_keys=self._recipe.transfer_keys)

    # --- validation

    def _validate(self) -> dict[str, float]:
        """What the most likely proposals gain over plain runs; keeps the weights that gain most."""
        rng = np.random.default_rng([self._seed, _VALIDATION])
        seeds = [int(rng.integers(2**63)) for _ in self._validation]
        pairs = list(zip(self._validation, seeds, strict=True))
        plain = self._plain_ends(pairs)
        ends = self._timed(
            [Trial(instance, seed, self._policy.propose(instance)) for instance, seed in pairs]
        )
        gains = np.array(
            [without.cost(without) - end.cost(without) for end, without in zip(ends, plain, strict=True)]
        )
        gain = float(gains.mean())
        if self._best_gain is None or gain > self._best_gain:
            self._best_gain, self._best = gain, self._policy.weights()
        line = {metrics.VALIDATION_GAIN.name: gain, metrics.BEST_VALIDATION_GAIN.name: self._best_gain}
        tasks = [instance.task for instance in self._validation]
        for task, metric in _GAINS.items():
            if task in tasks:
                line[metric.name] = float(
                    np.mean([g for g, t in zip(gains, tasks, strict=True) if t == task])
                )
        return line

    def _plain_ends(self, pairs: Sequence[tuple[Instance, int]]) -> list[Any]:
        """Runs without a proposal: always the same, so they are made once."""
        if not self._plain:
            self._plain = self._timed([Trial(instance, seed) for instance, seed in pairs])
        return self._plain

    # --- checkpoints

    def _write(self, folder: Path, identity: Mapping[str, Any]) -> None:
        state = {
            "updates": self._updates,
            "policy": dict(self._policy.state_dict()),
            "optimizer": self._optimizer.state_dict(),
            "best_gain": self._best_gain,
            "best": self._best,
        }
        write_tree(folder, _NAME, {"identity": dict(identity), "state": state})

    def _resume(self, folder: Path, identity: Mapping[str, Any]) -> None:
        tree = read_tree(folder, _NAME)
        there = tree.get("identity") if isinstance(tree, dict) else None
        if not isinstance(there, dict):
            raise OpgymError(f"{folder}: is no checkpoint of a training")
        for key, here in identity.items():
            if there.get(key) != here:
                raise OpgymError(
                    f"{folder}: is a checkpoint of another training: {key} is {there.get(key)!r:.200} there and "
                    f"{here!r:.200} here; go on with the same settings, or train in a new folder"
                )
        state = tree["state"]
        self._updates = state["updates"]
        self._policy.load_state_dict(state["policy"])
        self._optimizer.load_state_dict(state["optimizer"])
        self._best_gain, self._best = state["best_gain"], state["best"]


def _torch_seed(rng: np.random.Generator) -> int:
    return int(rng.integers(2**63))
