"""Names of everything that a training logs; docs/metrics.md is made from this list."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ..errors import unknown_id


@dataclass(frozen=True)
class Metric:
    """What a name means.

    Attributes:
        name: Section and name, ``section/name``.
        unit: Of the value.
        meaning: In one sentence or two.
        timed: Whether the clock has a part in it: two trainings with the same seed agree on all others.
    """

    name: str
    unit: str
    meaning: str
    timed: bool = False


#: A metric of somebody's own learner begins with this section, and is not in the list.
CUSTOM = "custom"

EPISODIC_RETURN = Metric(
    "charts/episodic_return", "reward", "Mean sum of rewards of the episodes that ended since the last line."
)
EPISODIC_LENGTH = Metric(
    "charts/episodic_length", "steps", "Mean number of steps of the episodes that ended since the last line."
)
EPISODES = Metric("charts/episodes", "episodes", "Episodes that have ended since the training began.")
VALUE = Metric(
    "charts/value",
    "unit of the objective",
    "Mean value of the objective over the feasible episodes that ended since the last line; less is better.",
)
FEASIBLE_SHARE = Metric(
    "charts/feasible_share",
    "share",
    "Of the episodes that ended since the last line (of REGAL, runs of BRKGA with proposals; of placers, placements), "
    "those with a feasible end.",
)
BEST_VALUE = Metric(
    "charts/best_value",
    "unit of the objective",
    "Least value of the objective that any feasible episode of the training has reached. Of trainings on one "
    "problem only: values of several are not comparable.",
)
RATIO_TO_REFERENCE = Metric(
    "charts/ratio_to_reference",
    "ratio",
    "Best value over the reference value of the problem, mean over the problems that have a feasible episode yet; "
    "below 1 is better than the reference.",
)
ILLEGAL_ACTIONS = Metric(
    "charts/illegal_actions",
    "actions",
    "Actions outside the mask in the episodes that ended since the last line.",
)
LEARNING_RATE = Metric("charts/learning_rate", "1", "Step size of the optimizer in the last update.")
EXPLORATION_RATE = Metric(
    "charts/exploration_rate", "probability", "Probability of a random action (epsilon of DQN)."
)
UPDATES = Metric("charts/updates", "updates", "Gradient steps since the training began.")
STEPS_PER_SECOND = Metric(
    "charts/steps_per_second",
    "steps/s",
    "Steps of the environment per second of wall time since the last line, learning included.",
    timed=True,
)
ENVIRONMENT_SHARE = Metric(
    "time/environment_share",
    "share",
    "Of the wall time since the last line, what was spent within the environment.",
    timed=True,
)
POLICY_LOSS = Metric(
    "losses/policy", "1", "Loss of the policy, mean over the minibatches of the last update."
)
VALUE_LOSS = Metric(
    "losses/value",
    "squared return",
    "Loss of the value function, mean over the minibatches of the last update.",
)
ENTROPY = Metric(
    "losses/entropy",
    "nats",
    "Entropy of the policy over legal actions (of REGAL: over the bins of a decision), mean over the decisions of the "
    "last update; falls as it becomes certain.",
)
TOTAL_LOSS = Metric(
    "losses/total",
    "1",
    "What the optimizer minimised: the weighted sum of the losses, of the last minibatch.",
)
APPROXIMATE_KL = Metric(
    "losses/approximate_kl",
    "nats",
    "Divergence between the policies before and after the last update, by the estimator (r - 1) - log r.",
)
CLIP_FRACTION = Metric(
    "losses/clip_fraction",
    "share",
    "Of the steps of the last update, those whose ratio PPO's objective clipped.",
)
EXPLAINED_VARIANCE = Metric(
    "losses/explained_variance",
    "share",
    "1 - Var[return - value] / Var[return] over the steps of the last update: 1 is perfect, below 0 is worse than "
    "a constant.",
)
TD_LOSS = Metric(
    "losses/td",
    "1",
    "Loss of the temporal differences of Q, mean over the minibatches of the last update.",
)
REWARD = Metric(
    "charts/reward",
    "1",
    "Mean reward of what the last update has tried. Of REGAL, minus what runs of BRKGA with proposals cost, over the "
    "value of a run without from the same random numbers: -1 is parity; what does not fit into memory costs 0.25 and "
    "its overflow more. Of placers, minus the square root of the value over that of a single device; -10 for what does "
    "not fit.",
)
POSITION_LOSS = Metric(
    "losses/position",
    "nats",
    "Minus the logarithm of the density that is expected where each op of a good solution stands, mean over ops of the "
    "last update.",
)
DEVICE_LOSS = Metric(
    "losses/device",
    "nats",
    "Cross entropy of the devices of good solutions, mean over ops of the last update.",
)
POSITION_ERROR = Metric(
    "charts/position_error",
    "share",
    "Distance between where an op is expected in the order and where the search of the last update puts it, over the "
    "length of the order, mean over ops.",
)
VALIDATION_POSITION_ERROR = Metric(
    "charts/validation_position_error",
    "share",
    "The same over validation problems, of which nothing is learned.",
)
DEVICE_ACCURACY = Metric(
    "charts/device_accuracy",
    "share",
    "Of the ops of problems on two devices, those whose likelier device is that of the search of the last update.",
)
DRAWN_OVER_FOUND = Metric(
    "charts/drawn_over_found",
    "1",
    "Value of solutions drawn from the policy over the value of what the search makes of them, mean.",
)
VALIDATION_GAIN = Metric(
    "charts/validation_gain",
    "share",
    "By how much the most likely proposals make runs of BRKGA cheaper, as a share of the value of a run without, mean "
    "over validation problems; of placers, 1 - the geometric mean of the values of the most likely placements over "
    "those of a single device, what does not fit counting 100. Logged with the updates after which it was measured.",
)
VALIDATION_GAIN_MEMORY_1 = Metric(
    "charts/validation_gain_peak_memory_1", "share", "The same over problems of peak memory on one device."
)
VALIDATION_GAIN_MEMORY_2 = Metric(
    "charts/validation_gain_peak_memory_2", "share", "The same over problems of peak memory on two devices."
)
VALIDATION_GAIN_TIME_2 = Metric(
    "charts/validation_gain_step_time_2", "share", "The same over problems of step time on two devices."
)
BEST_VALIDATION_GAIN = Metric(
    "charts/best_validation_gain",
    "share",
    "The largest validation gain so far: that of the weights which the training would return.",
)
METRICS: tuple[Metric, ...] = (
    EPISODIC_RETURN, EPISODIC_LENGTH, EPISODES, VALUE, FEASIBLE_SHARE, BEST_VALUE, RATIO_TO_REFERENCE,
    ILLEGAL_ACTIONS, LEARNING_RATE, EXPLORATION_RATE, UPDATES, STEPS_PER_SECOND, ENVIRONMENT_SHARE,
    POLICY_LOSS, VALUE_LOSS, ENTROPY, TOTAL_LOSS, APPROXIMATE_KL, CLIP_FRACTION, EXPLAINED_VARIANCE,
    TD_LOSS, REWARD, VALIDATION_GAIN, VALIDATION_GAIN_MEMORY_1, VALIDATION_GAIN_MEMORY_2, VALIDATION_GAIN_TIME_2,
    BEST_VALIDATION_GAIN, POSITION_LOSS, DEVICE_LOSS, POSITION_ERROR, VALIDATION_POSITION_ERROR, DEVICE_ACCURACY,
    DRAWN_OVER_FOUND,
)  # fmt: skip

#: The names of all metrics, and of those in which the clock has a part.
NAMES = frozenset(metric.name for metric in METRICS)
TIMED = frozenset(metric.name for metric in METRICS if metric.timed)


def check_names(names: Iterable[str]) -> None:
    """Refuses names that nobody has explained.

    Raises:
        UnknownIdError: Neither in the list nor in section ``custom``, with the nearest names.
    """
    for name in names:
        if name not in NAMES and not name.startswith(f"{CUSTOM}/"):
            raise unknown_id(f"metric (one of your own begins with {CUSTOM}/)", name, sorted(NAMES))
