"""Tunes learners on training graphs: ``opgym reproduce learner-tuning``.

A learner that is not trained learns on the problem it is asked to solve, within the budget. How well it does depends on
its settings, so they are searched at random in stages: every stage tries the settings that the one before kept on other
graphs, with the same seeds for all. What wins is compared with the learner's defaults on validation graphs, which no
stage has seen. No graph here is of a family that tests are about.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ...agents import make
from ...errors import InvalidProblemError, unknown_id
from ...outcome import Verdict
from ...problems import Budget
from ..row_file import RowFile
from .learner_plans import CHOICES, Instance, Plan, Stage
from .staged_search import Floats, Laboratory, Setting, gain_text, gains, mean_gain, search

#: Raised when what a row holds changes its meaning: rows of other versions are measured anew.
ROW_VERSION = 2
#: Settings that are drawn for the first stage, beside the defaults of the learner.
SETTINGS = 8
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
        InvalidProblemError: There are fewer different settings.
    """
    if agent not in plan.agents:
        raise unknown_id("learner to tune", agent, list(plan.agents))
    choices: dict[str, Sequence[Any]] = dict(CHOICES[agent])
    if plan.n_steps and agent != "dqn":
        choices["n_steps"] = tuple(steps // _SHORTER.get(agent, 1) for steps in plan.n_steps)
    most = math.prod(map(len, (*choices.values(), *plan.choices.values())))
    if count > most:
        raise InvalidProblemError(f"{count:,} settings to draw; there are {most:,} different ones")
    rng = np.random.default_rng(seed)
    found: list[dict[str, Any]] = []
    while len(found) < count:
        drawn: dict[str, Any] = {
            name: values[int(rng.integers(len(values)))] for name, values in choices.items()
        }
        chosen = {name: values[int(rng.integers(len(values)))] for name, values in plan.choices.items()}
        setting = {**_within(plan, **chosen), **drawn}
        if setting not in found:
            found.append(setting)
    return found


def _within(plan: Plan, **chosen: Any) -> dict[str, Any]:
    """The option that says in which environment a learner plays, if it plays in one."""
    return {} if plan.environment is None else {"environment": {**plan.environment, **chosen}}


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
        The row: ``trial``, and ``value`` and ``verdict`` of the best that was found.
    """
    solver = make(trial.agent, **trial.setting)
    rng = np.random.default_rng(trial.seed)
    found = solver.solve(trial.instance.problem(), Budget(evaluations=trial.evaluations), rng)
    outcome = found.outcome
    return {
        "trial": trial.key,
        "value": float(outcome.value) if math.isfinite(outcome.value) else None,
        "verdict": outcome.verdict.value,
        "seconds": round(found.seconds, 2),
    }


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
        kept ones with their mean gain over the defaults) and ``check`` (gain over the defaults by graph, and the mean
        of all, which has an interval where there are graphs enough for one).

    Raises:
        InvalidProblemError: Fewer than one setting.
    """
    if settings < 1:
        raise InvalidProblemError(f"{settings} settings to draw; expected at least 1")
    untuned: Setting = _within(plan)
    chosen: list[Setting] = [*draw(agent, plan, settings)]
    total = _total(plan, settings)
    lab: Laboratory[Trial] = Laboratory(measure, RowFile(rows_path), workers, total, progress)

    def values(stage: Stage, tried: Sequence[Setting]) -> Floats:
        trials = [
            Trial(agent, setting, instance, seed, plan.evaluations)
            for setting in tried
            for instance in stage.instances
            for seed in range(stage.seeds)
        ]
        found = [_value(row) for row in lab.rows(trials)]
        return np.array(found).reshape(len(tried), len(stage.instances), stage.seeds)

    rounds = list(search(untuned, chosen, plan.stages, values))
    tuned = rounds[-1].settings[0]
    return {
        "agent": agent,
        "evaluations": plan.evaluations,
        "runs": total,
        "tuned": _plain(tuned),
        "stages": [
            {
                "instances": [asdict(instance) for instance in stage.instances],
                "seeds": stage.seeds,
                **_plain(kept.document()),
            }
            for stage, kept in zip(plan.stages, rounds, strict=True)
        ],
        "check": _check(plan.check, gains(values(plan.check, [untuned, tuned]))[1]),
    }


def _total(plan: Plan, settings: int) -> int:
    """How many runs there are; the defaults run beside the settings."""
    total = 0
    for stage in (*plan.stages, plan.check):
        total += len(stage.instances) * stage.seeds * (1 + settings)
        settings = min(settings, stage.keep)
    return total


def _value(row: Mapping[str, Any]) -> float:
    """What a row counts as: a value that does not count, out of memory say, is no value."""
    return float(row["value"]) if row["verdict"] == Verdict.OK.value else math.inf


def _check(stage: Stage, found: Floats) -> list[dict[str, Any]]:
    """Gains graph by graph, the mean over seeds, and that of all."""
    names = [instance.graph for instance in stage.instances]
    lines = [
        {"graph": name, "gain": float(mean)} for name, mean in zip(names, found.mean(axis=1), strict=True)
    ]
    return [*lines, {"graph": "all", **mean_gain(found.ravel(), np.repeat(names, stage.seeds))}]


def _plain(value: Any) -> Any:
    """As JSON data."""
    if isinstance(value, Mapping):
        return {name: _plain(item) for name, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value


def as_yaml(document: Mapping[str, Any], command: str) -> str:
    """The tuned settings as a file of ``conf/agent/``."""
    *graphs, everything = document["check"]
    lines = [
        f"# Tuned on training graphs by `{command}`, {document['evaluations']} evaluations a run.",
        f"# Validation graphs: values {gain_text(everything)} below those of the defaults on average;",
        f"# graph by graph {', '.join(gain_text({'estimate': line['gain']}) for line in graphs)}.",
        f"solver: {document['agent']}",
        "options:",
    ]
    for name, value in document["tuned"].items():
        if isinstance(value, Mapping):
            lines += [f"  {name}:", *(f"    {key}: {item}" for key, item in value.items())]
        else:
            lines.append(f"  {name}: {value if not isinstance(value, bool) else str(value).lower()}")
    return "\n".join(lines) + "\n"
