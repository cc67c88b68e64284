"""One training in one folder, which says at any time how far it came, and from which it can be gone on with.

The folder holds ``config.yaml`` (before the first step), ``metrics.jsonl`` and what other loggers write,
``checkpoints/``, ``agent/`` (the trained agent) and, once the run is finished, ``result.json``.
"""

from __future__ import annotations

import math
import random
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ...agents import make
from ...agents.learner import Learner, is_learner
from ...agents.registry import frozen, names, solver_class
from ...agents.saved import AGENT_FOLDER
from ...errors import InvalidProblemError, InvalidRunError, OpgymError
from ...problems import Budget
from .. import run_folder
from ..run_folder import (
    Progress,
    discard,
    locked,
    progress_of,
    read_result,
    require_fresh,
    write_config,
    write_folder,
    write_result,
)
from .config import LEARNED, TrainConfig
from .generated_problems import pose_validation
from .problems import PROBLEM_TYPES, NamedProblem, pose

FORMAT, VERSION = "opgym.run", 1
CHECKPOINTS = "checkpoints"
#: Settings of the run that a learner takes under these names, where it has such an option.
_ENVIRONMENT, _NUM_ENVS, _THREADS, _DEVICE = "environment", "num_envs", "threads", "device"


@dataclass(frozen=True)
class TrainResult:
    """What a training came to, which ``result.json`` holds.

    Attributes:
        value: Of the best solution that the trained agent found; of several problems, the mean score.
        unit: Of the value; of several problems, ``"x reference"``.
        verdict: Of that solution; of several problems, the first that is not ``"ok"``.
        reference: Value that returns are divided by; of several problems 1.
        ratio_to_reference: ``value / reference``.
        score: Mean over problems of ``value / reference``, with a penalty where a solution is infeasible; lower is
            better, and always finite.
        problems: One entry for each problem that the trained agent was tried on, those that weights were chosen by or
            else those of the training, with name, value, unit, verdict, reference, ratio_to_reference, score and
            evaluations.
        agent: The learner.
        environment: Id of the environment.
        steps: Of the environment, that it learned from.
        seed: Of all randomness.
        seconds: Of the process that finished the run.
    """

    value: float
    unit: str
    verdict: str
    reference: float
    ratio_to_reference: float
    score: float
    problems: list[dict[str, Any]]
    agent: str
    environment: str
    steps: int
    seed: int
    seconds: float

    def to_json(self) -> dict[str, Any]:
        """The document of ``result.json``."""
        return {"format": FORMAT, "version": VERSION, **asdict(self)}

    @classmethod
    def load(cls, folder: Path) -> TrainResult:
        """The result of a finished run.

        Raises:
            InvalidRunError: There is none, or it is damaged.
        """
        document = read_result(folder)
        expected = {field.name for field in fields(cls)} | {"format", "version"}
        if document.get("format") != FORMAT or document.get("version") != VERSION:
            raise InvalidRunError(f"{folder}: result.json is no {FORMAT!r} of version {VERSION}")
        if document.keys() != expected:
            odd = sorted(document.keys() ^ expected)
            raise InvalidRunError(f"{folder}: result.json lacks, or should not have, {', '.join(odd)}")
        for key, fits in _RESULT_FIELDS.items():
            if not fits(document[key]):
                raise InvalidRunError(f"{folder}: result.json: {key} = {document[key]!r:.100} is damaged")
        return cls(**{key: value for key, value in document.items() if key not in ("format", "version")})


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _are_problems(value: Any) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and all(
            isinstance(row, dict)
            and row.keys() == _PROBLEM_FIELDS.keys()
            and all(fits(row[key]) for key, fits in _PROBLEM_FIELDS.items())
            for row in value
        )
    )


_PROBLEM_FIELDS: dict[str, Callable[[Any], bool]] = {
    "problem": _is_text, "value": _is_number, "unit": _is_text, "verdict": _is_text, "reference": _is_number,
    "ratio_to_reference": _is_number, "score": _is_number, "evaluations": _is_count,
}  # fmt: skip
_RESULT_FIELDS: dict[str, Callable[[Any], bool]] = {
    "value": _is_number, "unit": _is_text, "verdict": _is_text, "reference": _is_number,
    "ratio_to_reference": _is_number, "score": _is_number, "problems": _are_problems, "agent": _is_text,
    "environment": _is_text, "steps": _is_count, "seed": _is_count, "seconds": _is_number,
}  # fmt: skip


def make_learner(config: TrainConfig) -> Learner[Any, Any]:
    """The untrained learner of a training.

    Raises:
        UnknownIdError: No such agent or option, with the nearest ones.
        InvalidProblemError: An agent that does not learn, or an option of an impossible value.
    """
    name, options = config.agent.solver, dict(config.agent.options)
    kind = solver_class(name)
    if not is_learner(kind):
        learners = [other for other in _solvers() if is_learner(solver_class(other))]
        raise InvalidProblemError(
            f"agent {name!r} does not learn, so there is nothing to train; learners: {', '.join(learners)}. "
            f"`opgym evaluate agents=[{name}]` runs it"
        )
    known: set[str] = {field.name for field in fields(kind)} if is_dataclass(kind) else set()
    if _ENVIRONMENT in known:
        # What is said of the environment goes before what the settings of an agent say of it.
        of_agent = options.get(_ENVIRONMENT) or {}
        if not isinstance(of_agent, Mapping):
            raise InvalidProblemError(
                f"agent.options.environment = {of_agent!r:.100}; expected options of the environment by name"
            )
        options[_ENVIRONMENT] = {**of_agent, **config.env.options}
    elif config.env.options:
        raise InvalidProblemError(
            f"agent {name!r} takes no options of its environment; leave env.options out"
        )
    if _NUM_ENVS in known and config.env.num_envs is not None:
        options[_NUM_ENVS] = config.env.num_envs
    for option, value in ((_THREADS, config.trainer.threads), (_DEVICE, config.trainer.device)):
        if option in known:
            options.setdefault(option, value)
    try:
        learner = make(name, **frozen(options))
    except (TypeError, ValueError) as error:
        if isinstance(error, InvalidProblemError):
            raise
        raise InvalidProblemError(f"agent {name!r}: {error}") from None
    assert isinstance(learner, Learner)
    return learner


def train(config: TrainConfig, folder: Path) -> TrainResult:
    """Trains an agent, evaluates it on its problems, and leaves everything in a folder.

    Args:
        config: What to train; with ``resume`` a finished run is left as it is, and an unfinished one goes on from its
            last checkpoint, to the same end as if it had never been interrupted.
        folder: Of the run; made if absent.

    Raises:
        RunInUseError: Another process works on it.
        InvalidRunError: The folder holds a run already, and it is not to be resumed, or has other settings.
        OpgymError: The settings are wrong.
        OSError: The folder cannot be written.
    """
    learner = make_learner(config)
    if require_place(config, folder) is Progress.FINISHED:
        return TrainResult.load(folder)
    problems = pose_for(learner, config)
    with locked(folder):
        progress = require_place(config, folder)  # another process may have been here
        if progress is Progress.FINISHED:
            return TrainResult.load(folder)
        if progress is not Progress.ABSENT:
            return _train(config, learner, problems, folder)
        write_config(folder, _stored(config))
        try:
            return _train(config, learner, problems, folder)
        except OpgymError:
            # Settings that nothing could be done with leave nothing that would be in the way of the right ones.
            if not (folder / CHECKPOINTS).exists():
                discard(folder)
            raise


def require_place(config: TrainConfig, folder: Path) -> Progress:
    """Refuses a folder that holds another run, or one that is not to be gone on with.

    Returns:
        How far the run in it came.

    Raises:
        InvalidRunError: Saying what is there, and what to do.
    """
    progress = progress_of(folder)
    if config.resume and progress is not Progress.ABSENT:
        require_same(config, folder)
    else:
        require_fresh(folder)
    return progress


def pose_for(learner: Learner[Any, Any], config: TrainConfig) -> list[NamedProblem]:
    """The problems of a training, which the learner can be trained on.

    Raises:
        OpgymError: They cannot be posed, or the learner refuses them, or the settings with them.
    """
    problems = pose(config.problem, config.env.id)
    validation = _chosen_by(config, problems)
    if validation and not learner.selects:
        raise InvalidProblemError(
            f"agent {learner.name!r} does not choose among its weights; leave problem.validation out"
        )
    require_applies(learner, [*problems, *validation])
    learner.check([named.problem for named in problems], seed=config.seed)
    return problems


def _chosen_by(config: TrainConfig, problems: list[NamedProblem]) -> list[NamedProblem]:
    """The problems that weights are chosen by, where that is asked for."""
    return problems if config.problem.validation == LEARNED else pose_validation(config.problem)


def _stored(config: TrainConfig) -> dict[str, Any]:
    """What ``config.yaml`` holds: the run, wherever it lies and however often it was started."""
    return {key: value for key, value in asdict(config).items() if key not in ("runs", "resume")}


def require_same(config: TrainConfig, folder: Path) -> None:
    """Refuses to go on with a run of other settings.

    Raises:
        InvalidRunError: Naming what differs.
    """
    run_folder.require_same(folder, lambda stored: TrainConfig.from_json(stored).identity, config.identity)


def require_applies(learner: Learner[Any, Any], problems: Sequence[NamedProblem]) -> None:
    """Refuses problems that the learner does not solve.

    Raises:
        InvalidProblemError: Naming the problem and the reason.
    """
    for named in problems:
        reason = learner.skip_reason(named.problem)
        if reason is not None:
            raise InvalidProblemError(f"agent {learner.name!r} does not apply to {named.name}: {reason}")


def seed_everything(seed: int, threads: int) -> None:
    """Seeds what draws numbers without being told a seed; of PyTorch, too, where something has loaded it."""
    random.seed(seed)
    np.random.seed(seed % 2**32)  # noqa: NPY002 - of libraries that still use it
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.manual_seed(seed)
        torch.set_num_threads(threads)


def _train(
    config: TrainConfig, learner: Learner[Any, Any], problems: list[NamedProblem], folder: Path
) -> TrainResult:
    from ..tracking import make_tracker
    from .checkpoints import CheckpointStore, TrainingMonitor

    started = time.monotonic()
    seed_everything(config.seed, config.trainer.threads)
    store = CheckpointStore(folder / CHECKPOINTS, training=config.identity)
    single = problems[0] if len(problems) == 1 else None
    tracker = make_tracker(
        list(config.logger),
        folder,
        _stored(config),
        title=folder.name,
        total_steps=config.trainer.steps,
        resumed_from=store.resumed_from,
        reference=single.reference if single else None,
        unit=_unit(single) if single else "",
        wandb=config.logger.get("wandb"),
    )
    with tracker:
        monitor = TrainingMonitor(
            store,
            tracker,
            every_steps=config.trainer.checkpoint_steps,
            every_minutes=config.trainer.checkpoint_minutes,
        )
        validation = _chosen_by(config, problems)
        chosen_by = {"validation": [named.problem for named in validation]} if validation else {}
        trained = learner.fit(
            [named.problem for named in problems],
            steps=config.trainer.steps,
            seed=config.seed,
            monitor=monitor,
            **chosen_by,
        )
        write_folder(folder / AGENT_FOLDER, trained.save)
        steps = store.resumed_from or config.trainer.steps  # a learner takes its last rollout to the end
        result = _result(config, trained, validation or problems, steps, time.monotonic() - started)
        tracker.summary({key: value for key, value in result.to_json().items() if key != "problems"})
    write_result(folder, result.to_json())
    return result


def _result(
    config: TrainConfig,
    trained: Learner[Any, Any],
    problems: Sequence[NamedProblem],
    steps: int,
    seconds: float,
) -> TrainResult:
    """Evaluates the trained agent on every problem, each with a seed of its own."""
    rows: list[dict[str, Any]] = []
    budget = Budget(evaluations=config.trainer.evaluations)
    for position, named in enumerate(problems):
        found = trained.solve(named.problem, budget, np.random.default_rng([config.seed, position]))
        outcome = found.outcome
        rows.append(
            {
                "problem": named.name,
                "value": float(outcome.value),
                "unit": outcome.unit,
                "verdict": str(outcome.verdict),
                "reference": named.reference,
                "ratio_to_reference": float(outcome.value) / named.reference,
                "score": named.score(outcome),
                "evaluations": found.evaluations,
            }
        )
    score = math.fsum(row["score"] for row in rows) / len(rows)
    whole = rows[0]
    if len(rows) > 1:
        verdict = next((row["verdict"] for row in rows if row["verdict"] != "ok"), "ok")
        whole = {
            "value": score, "unit": "x reference", "verdict": verdict, "reference": 1.0, "ratio_to_reference": score,
        }  # fmt: skip
    return TrainResult(
        value=whole["value"], unit=whole["unit"], verdict=whole["verdict"], reference=whole["reference"],
        ratio_to_reference=whole["ratio_to_reference"], score=score, problems=rows, agent=trained.name,
        environment=config.env.id, steps=steps, seed=config.seed, seconds=seconds,
    )  # fmt: skip


def _unit(named: NamedProblem) -> str:
    problem = named.problem
    return problem.unit if hasattr(problem, "unit") else problem.objective.unit


def _solvers() -> list[str]:
    return sorted({name for problem_type in PROBLEM_TYPES.values() for name in names(problem_type)})
