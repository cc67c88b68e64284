"""How a learner of proposals solves one problem, trained or not."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from ....problems import AnyProblem, Evaluator
from ...networks.isolation import isolated
from ...search.native import evaluations_left
from ...solver import Remark
from ..learned import Learned
from .instance import Instance, proposal_of
from .policy import Batch, Policy
from .reinforce import new_policy

if TYPE_CHECKING:
    from ..regal import ReinforceLearner


def solve_trained(
    learner: ReinforceLearner,
    learned: Learned,
    problem: AnyProblem,
    evaluator: Evaluator[Any],
    rng: np.random.Generator,
) -> Remark:
    """One forward pass, then one run of BRKGA."""
    instance = Instance.of(problem, learner.groups, transfer_keys=learner.transfer_keys)
    with isolated(1, "cpu"):
        bins = Policy.of(learned.network, learned.weights).propose(instance)
    proposal = proposal_of(instance, bins, learned.initial)
    return replace(learner.brkga(), proposal=proposal)._search(problem, evaluator, rng)


def solve_untrained(
    learner: ReinforceLearner, problem: AnyProblem, evaluator: Evaluator[Any], rng: np.random.Generator
) -> Remark:
    """Learns on one problem: draws proposals, tries each with a short run of BRKGA, and goes where it was good."""
    instance = Instance.of(problem, learner.groups, transfer_keys=learner.transfer_keys)
    tried, proven = 0, False
    with isolated(1, "cpu"):
        policy = new_policy(learner.network(), int(rng.integers(2**31)))
        optimizer = torch.optim.Adam(policy.parameters(), lr=learner.learning_rate)
        generator = torch.Generator().manual_seed(int(rng.integers(2**63)))
        batch, samples = Batch.of([instance]), max(2, learner.samples)
        while True:
            nodes = policy.encoder(batch.graphs)
            with torch.no_grad():
                bins = policy.heads.sample(nodes, batch.two_devices, samples, generator)
            run_seed, ends = int(rng.integers(2**63)), []  # common random numbers
            for sample in bins.numpy():
                left = evaluations_left(evaluator, learner.evaluations)
                if proven or evaluator.exhausted or left == 0:
                    return Remark(
                        f"untrained: {'1 proposal' if tried == 1 else f'{tried} proposals'}", proven
                    )
                most = learner.evaluations_per_sample
                run = replace(learner.brkga(), proposal=proposal_of(instance, sample, learner.initial))
                with evaluator.share(most if left is None else min(left, most)) as own:
                    remark = run._search(problem, own, np.random.default_rng(run_seed))
                tried, proven = tried + 1, remark.proven_optimal
                ends.append((2, 0.0, 0.0) if own.best_outcome is None else own.best_outcome.sort_key)
            log_prob, _ = policy.heads.log_prob(nodes, batch.two_devices, bins)
            optimizer.zero_grad()
            (-_by_rank(ends) * batch.mean_of(log_prob).squeeze(-1)).mean().backward()  # type: ignore[no-untyped-call]
            optimizer.step()


def _by_rank(ends: list[tuple[int, float, float]]) -> Tensor:
    """Advantages by rank, from 1 for the best to -1; equal ends have equal ones."""
    distinct = sorted(set(ends))
    rank = torch.tensor([distinct.index(end) for end in ends], dtype=torch.float32)
    return (rank.mean() - rank) / max(1, len(distinct) - 1)
