"""Training and use of a learner that expects where ops stand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ....problems import AnyProblem, Evaluator
from ...learner import Monitor
from ...networks.isolation import isolated
from ...solver import Remark
from ..learned import Learned
from ..training import identity_of
from ..trials import Trials
from .expert_iteration import ExpertIteration, Recipe, new_policy
from .improvement import Improver
from .instance import Instance
from .policy import Policy

if TYPE_CHECKING:
    from ..regal_plus import RegalPlus

_FORMAT = "opgym.training.regal-plus/1"


def fit(
    learner: RegalPlus,
    problems: Sequence[AnyProblem],
    validation: Sequence[AnyProblem],
    steps: int,
    seed: int,
    monitor: Monitor | None,
) -> tuple[Mapping[str, NDArray[Any]], int, float | None]:
    """Trains a learner; see its ``fit``.

    Returns:
        Weights, the searches that were made, and the gain on the validation problems, if there are any.
    """
    before = learner.learned
    network = before.network if before else learner.network()
    improver = Improver(
        learner.samples, learner.flips, learner.moves, learner.search_evaluations, learner.temperature,
        learner.reconcile, learner.lessons,
    )  # fmt: skip
    recipe = Recipe(
        learner.placing(), improver, learner.graphs, learner.nearness, learner.distilled, learner.policy_gradient,
        learner.learning_rate, learner.validate_every, learner.groups, learner.transfer_keys,
    )  # fmt: skip
    identity = identity_of(_FORMAT, learner, network, problems, validation, steps, seed)
    runs = Trials(learner.brkga(), learner.evaluations_per_run, threads=learner.threads)
    with isolated(1, "cpu"), runs, ThreadPoolExecutor(learner.threads) as pool:
        policy = Policy.of(network, before.weights) if before else new_policy(network, seed)
        training = ExpertIteration(recipe, policy, problems, validation, runs, pool, steps, seed)
        training.run(identity, monitor)
        weights, gain = training.result
    return weights, training.steps, gain


def solve(
    learner: RegalPlus,
    learned: Learned,
    problem: AnyProblem,
    evaluator: Evaluator[Any],
    rng: np.random.Generator,
) -> Remark:
    """One forward pass, then one run of BRKGA."""
    instance = Instance.of(problem, learner.groups, transfer_keys=learner.transfer_keys)
    with isolated(1, "cpu"):
        expected = Policy.of(learned.network, learned.weights).expects(instance)
    proposal = learner.placing().proposal(instance.encoding, expected)
    return replace(learner.brkga(), proposal=proposal)._search(problem, evaluator, rng)
