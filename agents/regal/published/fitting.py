"""Training of a learner of proposals, with a monitor that logs and keeps checkpoints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from ....problems import AnyProblem
from ...learner import Monitor
from ...networks.isolation import isolated
from ..training import identity_of
from ..trials import Trials
from .policy import Policy
from .reinforce import Recipe, Reinforce, new_policy

if TYPE_CHECKING:
    from ..regal import ReinforceLearner

_FORMAT = "opgym.training.regal/1"


def fit(
    learner: ReinforceLearner,
    problems: Sequence[AnyProblem],
    validation: Sequence[AnyProblem],
    steps: int,
    seed: int,
    monitor: Monitor | None,
) -> tuple[Mapping[str, NDArray[Any]], int, float | None]:
    """Trains a learner; see its ``fit``.

    Returns:
        Weights, the proposals tried, and the gain on the validation problems, if there are any.
    """
    before = learner.learned
    network = before.network if before else learner.network()
    recipe = Recipe(
        network, learner.initial, learner.graphs, learner.samples, learner.learning_rate, learner.anneal,
        learner.entropy, learner.validate_every, learner.groups, learner.transfer_keys,
    )  # fmt: skip
    identity = identity_of(_FORMAT, learner, network, problems, validation, steps, seed)
    runs = Trials(learner.brkga(), learner.evaluations_per_run, threads=learner.threads)
    with isolated(1, "cpu"), runs:
        policy = Policy.of(network, before.weights) if before else new_policy(network, seed)
        training = Reinforce(recipe, policy, problems, validation, runs, steps, seed)
        training.run(identity, monitor)
        weights, gain = training.result
    return weights, training.steps, gain
