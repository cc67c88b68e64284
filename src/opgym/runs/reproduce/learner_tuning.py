"""Tunes learners on training graphs: ``opgym reproduce learner-tuning``.

A learner that is not trained learns on the problem it is asked to solve, within the budget. How well it does depends on
its settings, so they are searched at random in stages: every stage tries the settings that the one before kept on other
graphs, with the same seeds for all. What wins is compared with the learner's defaults on validation graphs, which no
stage has seen. No graph here is of a family that tests are about.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...agents import make
from ...datasets import load
from ...errors import InvalidProblemError, unknown_id
from ...graphs import Cluster
from ...problems import Budget, PlacementProblem, SchedulingProblem
from ...statistics import clustered_mean
from ..parallel import in_order
from ..row_file import RowFile

#: Raised when what a row holds changes its meaning: rows of other versions are measured anew.
ROW_VERSION = 1
#: Settings that are drawn for the first stage, beside the defaults of the learner.
SETTINGS = 8

Setting = Mapping[str, Any]


@dataclass(frozen=True)
class Instance:
    """One problem: a graph, and a cluster to place it on or nothing to order it for memory."""

    graph: str
    cluster: str = ""

    def problem(self) -> PlacementProblem | SchedulingProblem:
        """Loads the graph and poses the problem."""
        graph = load(self.graph)
        return (
            PlacementProblem(graph, Cluster.parse(self.cluster)) if self.cluster else SchedulingProblem(graph)
        )


@dataclass(frozen=True)
class Stage:
    """One round of the search.

    Attributes:
        instances: Problems, used by this stage only.
        seeds: Seeds of each setting on each problem.
        keep: How many settings stay.
    """

    instances: tuple[Instance, ...]
    seeds: int
    keep: int


@dataclass(frozen=True)
class Plan:
    """What the settings are for, and on what they are tried.

    Attributes:
        evaluations: Budget of each run.
        environment: Options of the environment that all settings share.
        stages: On training graphs.
        check: The comparison on validation graphs.
        choices: Options of this environment to choose from.
        n_steps: Lengths of rollouts to choose from, in steps of each environment.
    """

    evaluations: int
    environment: Mapping[str, Any]
    stages: tuple[Stage, ...]
    check: Stage
    choices: Mapping[str, Sequence[Any]]
    n_steps: Sequence[int]


def _instances(cluster: str, *graphs: str) -> tuple[Instance, ...]:
    return tuple(Instance(f"zoo/{graph}", cluster) for graph in graphs)


_TWO, _FOUR = "2xP100", "4xP100"
PLANS: Mapping[str, Plan] = {
    "placement": Plan(
        500,
        {"groups": "metis:64"},
        (
            Stage(
                _instances(_TWO, "xla-gru-lm-1l-train", "fractalnet-4-train")
                + _instances(_FOUR, "transformer-3l-train"),
                1,
                2,
            ),
            Stage(
                _instances(_TWO, "vdvae-8-train")
                + _instances(_FOUR, "swin-v2-8-train", "universal-transformer-6-train"),
                1,
                1,
            ),
        ),
        Stage(
            _instances(_TWO, "mobilevit-v2-2-4-3-train", "timm-ecaresnet26t-train")
            + _instances(_FOUR, "deberta-v2-12l-train", "roformer-12l-train"),
            1,
            1,
        ),
        {"reward": ("terminal", "dense")},
        (64, 128),
    ),
    "scheduling": Plan(
        100,
        {},
        (
            Stage(_instances("", "capsnet-3-train", "deepfm-24-train", "xla-vae-64-train"), 1, 2),
            Stage(_instances("", "mmoe-8e-2t-train", "ggnn-5-train", "univnet-c32-infer"), 1, 1),
        ),
        Stage(
            _instances(
                "",
                "nerf-4-train",
                "xla-pinn-burgers-4-train",
                "timm-beit-base-patch16-224-infer",
                "ghostnet-infer",
            ),
            1,
            1,
        ),
        {"reward": ("terminal", "dense"), "slots": (8, 16)},
        (64, 128),
    ),
}

_NETWORK = {"num_envs": (8, 16), "learning_rate": (1e-3, 3e-3), "anneal": (False, True)}
_ON_POLICY = {"ent_coef": (0.0, 1e-2), "gae_lambda": (0.95, 1.0)}
_CLIPPED = {
    **_NETWORK,
    **_ON_POLICY,
    "batch_size": (64, 128),
    "n_epochs": (4, 8),
    "clip_range": (0.2, 0.3),
}
#: Options to choose from, by learner.
CHOICES: Mapping[str, Mapping[str, Sequence[Any]]] = {
    "ppo": _CLIPPED,
    "maskable-ppo": _CLIPPED,
    "a2c": {**_NETWORK, **_ON_POLICY, "normalize_advantage": (False, True), "use_rms_prop": (False, True)},
    "dqn": {
        **_NETWORK,
        "batch_size": (64, 128),
        "gradient_steps": (1, 2),
        "target_update_interval": (300, 1_000),
        "exploration_final_eps": (0.01, 0.05),
        "exploration_fraction": (0.2, 0.5),
    },
}
#: A2C updates after every rollout but once: its rollouts are shorter by this factor.
_SHORTER = {"a2c": 4}


def draw(agent: str, plan: Plan, count: int, seed: int = 0) -> list[dict[str, Any]]:
    """Different settings, each option drawn by itself.

    Args:
        agent: Name of the learner.
        plan: What they are for.
        count: How many.
        seed: Of the draw.

    Raises:
        UnknownIdError: Nothing is known about what to tune of this learner.
    """
    if agent not in CHOICES:
        raise unknown_id("learner to tune", agent, list(CHOICES))
    choices: dict[str, Sequence[Any]] = dict(CHOICES[agent])
    if agent != "dqn":
        choices["n_steps"] = tuple(steps // _SHORTER.get(agent, 1) for steps in plan.n_steps)
    rng = np.random.default_rng(seed)
    found: list[dict[str, Any]] = []
    while len(found) < count:
        drawn: dict[str, Any] = {
            name: values[int(rng.integers(len(values)))] for name, values in choices.items()
        }
        chosen = {name: values[int(rng.integers(len(values)))] for name, values in plan.choices.items()}
        setting = {"environment": {**plan.environment, **chosen}, **drawn}
        if setting not in found:
            found.append(setting)
    return found


@dataclass(frozen=True)
class Trial:
    """One run of a learner.

    Attributes:
        agent: Name of the learner.
        setting: Its options, as JSON data.
        instance: The problem.
        seed: Of the run.
        evaluations: Its budget.
    """

    agent: str
    setting: Setting
    instance: Instance
    seed: int
    evaluations: int

    @property
    def key(self) -> dict[str, Any]:
        """What a stored row must share to stand for this trial, as JSON data."""
        return {"version": ROW_VERSION, **asdict(self), "setting": _plain(self.setting)}


def measure(trial: Trial) -> dict[str, Any]:
    """Runs a trial.

    Returns:
        The row: ``trial`` and ``value``, the best that was found.
    """
    solver = make(trial.agent, **trial.setting)
    rng = np.random.default_rng(trial.seed)
    found = solver.solve(trial.instance.problem(), Budget(evaluations=trial.evaluations), rng)
    return {"trial": trial.key, "value": float(found.outcome.value), "seconds": round(found.seconds, 2)}


def run(
    agent: str,
    plan: Plan,
    *,
    settings: int = SETTINGS,
    rows_path: Path | None = None,
    workers: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, Any]:
    """Searches settings and checks what wins.

    Args:
        agent: Name of the learner.
        plan: On what.
        settings: How many are drawn.
        rows_path: File of rows, of earlier runs too; ``None``: nothing is stored.
        workers: Processes; the result does not depend on how many.
        progress: Told how many of how many runs are done.

    Returns:
        ``agent``, ``evaluations``, ``runs``, ``tuned`` (options), ``stages`` (for each: instances, settings, and the
        kept ones with their mean gain over the defaults) and ``check`` (gain over the defaults, with intervals, by
        instance and of all).

    Raises:
        InvalidProblemError: Fewer than one setting.
    """
    if settings < 1:
        raise InvalidProblemError(f"{settings} settings to draw; expected at least 1")
    untuned: Setting = {"environment": dict(plan.environment)}
    chosen: list[Setting] = [*draw(agent, plan, settings)]
    lab = _Laboratory(agent, plan.evaluations, RowFile(rows_path), workers, progress)
    lab.announce(plan, settings)
    report = []
    for stage in plan.stages:
        gains = _gains(lab.values(stage, [untuned, *chosen])).mean(axis=(1, 2))[1:]
        best = np.argsort(-gains, kind="stable")[: stage.keep]
        report.append(
            {
                "instances": [asdict(instance) for instance in stage.instances],
                "seeds": stage.seeds,
                "settings": len(chosen),
                "kept": [{"setting": _plain(chosen[i]), "gain": float(gains[i])} for i in best.tolist()],
            }
        )
        chosen = [chosen[i] for i in best.tolist()]
    check = _gains(lab.values(plan.check, [untuned, chosen[0]]))[1]
    return {
        "agent": agent,
        "evaluations": plan.evaluations,
        "runs": lab.total,
        "tuned": _plain(chosen[0]),
        "stages": report,
        "check": _check(plan.check, check),
    }


def _gains(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """1 - value / value of the first setting with the same seed, ``[settings, instances, seeds]``."""
    return 1 - values / values[:1]


def _check(stage: Stage, gains: NDArray[np.float64]) -> list[dict[str, Any]]:
    names = [instance.graph for instance in stage.instances]
    seeds = gains.shape[1]
    lines = [
        {"graph": name, **asdict(clustered_mean(gains[i], np.arange(seeds)))} for i, name in enumerate(names)
    ]
    everything = clustered_mean(gains.ravel(), np.repeat(names, seeds))
    return [*lines, {"graph": "all", **asdict(everything)}]


class _Laboratory:
    """Measures trials that no row stands for yet."""

    def __init__(
        self,
        agent: str,
        evaluations: int,
        file: RowFile,
        workers: int,
        progress: Callable[[int, int], None] | None,
    ) -> None:
        self._agent, self._evaluations = agent, evaluations
        self._file, self._workers = file, workers
        self._progress = progress or (lambda done, total: None)
        self._done = self.total = 0

    def announce(self, plan: Plan, settings: int) -> None:
        """Tells how much there is to do; the defaults run beside the settings."""
        for stage in (*plan.stages, plan.check):
            self.total += len(stage.instances) * stage.seeds * (1 + settings)
            settings = min(settings, stage.keep)
        self._progress(0, self.total)

    def values(self, stage: Stage, settings: Sequence[Setting]) -> NDArray[np.float64]:
        """The value of each setting on each instance by each seed, ``[settings, instances, seeds]``."""
        trials = [
            Trial(self._agent, setting, instance, seed, self._evaluations)
            for setting in settings
            for instance in stage.instances
            for seed in range(stage.seeds)
        ]
        missing = [trial for trial in trials if self._stored(trial) is None]
        self._count(len(trials) - len(missing))
        for row in in_order(measure, missing, self._workers):
            self._file.append(row)
            self._count(1)
        values = [self._stored(trial) for trial in trials]
        return np.array(values, np.float64).reshape(len(settings), len(stage.instances), stage.seeds)

    def _count(self, more: int) -> None:
        self._done += more
        self._progress(self._done, self.total)

    def _stored(self, trial: Trial) -> float | None:
        key = trial.key
        return next((row["value"] for row in self._file.rows if row.get("trial") == key), None)


def _plain(value: Any) -> Any:
    """As JSON data."""
    if isinstance(value, Mapping):
        return {name: _plain(item) for name, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value


def as_yaml(document: Mapping[str, Any], command: str) -> str:
    """The tuned settings as a file of ``conf/agent/``."""
    gain, low, high = (100 * document["check"][-1][key] for key in ("estimate", "low", "high"))
    lines = [
        f"# Tuned on training graphs by `{command}`, {document['evaluations']} evaluations a run.",
        f"# Validation graphs: values {gain:.1f} % [{low:.1f}, {high:.1f}] below those of the defaults.",
        f"solver: {document['agent']}",
        "options:",
    ]
    for name, value in document["tuned"].items():
        if isinstance(value, Mapping):
            lines += [f"  {name}:", *(f"    {key}: {item}" for key, item in value.items())]
        else:
            lines.append(f"  {name}: {value if not isinstance(value, bool) else str(value).lower()}")
    return "\n".join(lines) + "\n"
