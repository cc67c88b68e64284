"""The settings of one training: what ``opgym train`` composes, and ``config.yaml`` in a run's folder holds."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from ...agents.search.options import MOST_THREADS
from ...errors import InvalidProblemError

# Hydra validates overrides against these classes. Its types know no unions: fields of several types are Any here,
# and are checked where they are used.

#: Settings that change where a run lies, how it is watched or on how many cores it runs, and not what it is.
OUTSIDE = ("logger", "name", "runs", "resume")
#: As ``problem.validation``: weights are chosen by the problems that are learned from.
LEARNED = "learned"
_DIGEST_LENGTH = 8
#: More steps, or solutions, than any training can take; names of checkpoints have as many digits.
_MOST_STEPS = 10**12 - 1


@dataclass
class AgentConfig:
    """Which agent, and its options.

    Attributes:
        solver: A name of ``opgym solvers``; to be trained, that of a learner.
        options: Fields of its class, by name.
    """

    solver: str
    options: dict[str, Any] = field(default_factory=dict)


@dataclass
class EnvConfig:
    """The environment that the agent learns in.

    Attributes:
        id: ``"GraphPlacement-v0"`` or ``"OpScheduling-v0"``.
        num_envs: Episodes that run at the same time; ``None``: as many as the agent's settings say.
        options: Arguments of the environment, but for those that pose its problem; they go before those of the
            agent's settings.
    """

    id: str
    num_envs: int | None = None
    options: dict[str, Any] = field(default_factory=dict)


@dataclass
class ProblemConfig:
    """What to learn on: graphs, or rows of a suite.

    Attributes:
        graph: An id of ``opgym datasets list``, the path of a model, or a list of those; ``None``: the environment's
            own default.
        cluster: Devices, e.g. ``"4xP100"``; ``None``: the environment's own default, or what a file brings.
        objective: ``"step_time"``, ``"peak_memory"``, ``"max_load"`` or ``"latency"``.
        capacity_bytes: Memory of each device, where it is not what the cluster has.
        suite: Name of a suite, instead of the four above.
        part: Of the suite: ``"train"``, ``"validation"`` or ``"test"``.
        rows: Of that part: how many from its beginning, or a list of positions or of graphs; ``None``: all.
        suites: Names of suites instead of all of the above: ``rows`` are then random graphs of the part, which a rule
            makes, and each is a problem of every suite.
        protocol: Name of a hold-out protocol instead of all of the above, which says what one pre-training may learn
            from; ``rows`` is then how many problems.
        clusters: With ``protocol``, on which devices: a list, of which each graph of the zoo gets two in turn.
        most_ops: With ``protocol``, of the largest graph; ``None``: there is no limit.
        validation: Random graphs of the validation part of ``suites``, as ``rows``, or so many problems of
            ``protocol``, by which the learner chooses among its weights, and which the trained agent is evaluated on;
            ``"learned"``: the very problems that it learns from; ``None``: none.
    """

    graph: Any = None
    cluster: str | None = None
    objective: str | None = None
    capacity_bytes: int | None = None
    suite: str | None = None
    part: str = "train"
    rows: Any = None
    suites: Any = None
    protocol: str | None = None
    clusters: Any = None
    most_ops: int | None = None
    validation: Any = None


@dataclass
class TrainerConfig:
    """How long to train, and what to do on the way.

    Attributes:
        steps: Steps of the environment, over all of its episodes.
        checkpoint_steps: A checkpoint after so many steps ...
        checkpoint_minutes: ... or so many minutes, whatever comes first; ``None``: not by this measure.
        evaluations: Solutions that the trained agent may try on each problem in the end.
        threads: Of PyTorch.
        device: Of PyTorch: ``"cpu"``, ``"cuda"``, ``"auto"``.
    """

    steps: int = 100_000
    checkpoint_steps: int | None = 20_000
    checkpoint_minutes: float | None = 5.0
    evaluations: int = 32
    threads: int = 1
    device: str = "cpu"


@dataclass
class TrainConfig:
    """One training.

    Attributes:
        agent: What learns.
        env: What it learns in.
        problem: What it learns on.
        trainer: How long.
        logger: Where metrics go: the options of each logger, by its name.
        seed: Of all randomness: the same seed gives the same bytes.
        name: Of the run's folder; ``None``: one that says what is run.
        runs: Folder of all runs.
        resume: Whether to go on with a run that was interrupted, and to leave one that is finished.
    """

    agent: AgentConfig
    env: EnvConfig
    problem: ProblemConfig = field(default_factory=ProblemConfig)
    trainer: TrainerConfig = field(default_factory=TrainerConfig)
    logger: dict[str, dict[str, Any] | None] = field(default_factory=dict)
    seed: int = 0
    name: str | None = None
    runs: str = "runs"
    resume: bool = False

    def __post_init__(self) -> None:
        for what, given, least, most in (
            ("seed", self.seed, 0, 2**31 - 1),
            ("env.num_envs", self.env.num_envs, 1, _MOST_STEPS),
            ("trainer.steps", self.trainer.steps, 1, _MOST_STEPS),
            ("trainer.evaluations", self.trainer.evaluations, 1, _MOST_STEPS),
            ("trainer.threads", self.trainer.threads, 1, MOST_THREADS),
            ("trainer.checkpoint_steps", self.trainer.checkpoint_steps, 1, _MOST_STEPS),
        ):
            if given is not None and given < least:
                raise InvalidProblemError(f"{what} = {given}; expected at least {least}")
            if given is not None and given > most:
                raise InvalidProblemError(f"{what} = {given}; expected at most {most}")
        for what, given in _leaves(asdict(self)):
            if isinstance(given, float) and not math.isfinite(given):
                raise InvalidProblemError(f"{what} = {given}; expected a finite number, or null")
        minutes = self.trainer.checkpoint_minutes
        if minutes is not None and not minutes > 0:
            raise InvalidProblemError(
                f"trainer.checkpoint_minutes = {minutes}; expected more than 0, or null"
            )

    @property
    def identity(self) -> dict[str, Any]:
        """Everything that says what is run, as JSON data; two runs with one identity are the same run."""
        settings = {key: value for key, value in asdict(self).items() if key not in OUTSIDE}
        for key in ("checkpoint_steps", "checkpoint_minutes"):
            del settings["trainer"][key]
        return settings

    @property
    def folder_name(self) -> str:
        """Says what is run: agent, environment, problem and seed, and a digest of all settings.

        Several suites and protocols say by themselves what is asked, so with them no environment is named.
        """
        alone = self.problem.suites is not None or self.problem.protocol is not None
        environment = [] if alone else [self.env.id.partition("-")[0]]
        parts = [
            self.agent.solver,
            *environment,
            _label(self.problem),
            f"seed{self.seed}",
            digest(self.identity),
        ]
        return "_".join(parts)

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> TrainConfig:
        """The settings from plain data of the right shape."""
        parts = dict(document)
        sections = {
            "agent": AgentConfig, "env": EnvConfig, "problem": ProblemConfig, "trainer": TrainerConfig,
        }  # fmt: skip
        for key, section in sections.items():
            parts[key] = section(**parts[key])
        return cls(**parts)


def _leaves(value: Any, at: str = "") -> Iterator[tuple[str, Any]]:
    """Every setting that is no group or list of others, by its full key."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _leaves(inner, f"{at}.{key}" if at else str(key))
    elif isinstance(value, list | tuple):
        for position, inner in enumerate(value):
            yield from _leaves(inner, f"{at}[{position}]")
    else:
        yield at, value


def digest(value: Any) -> str:
    """A few letters that differ where values do."""
    text = json.dumps(value, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGEST_LENGTH]


def _label(problem: ProblemConfig) -> str:
    """A short name of the problem for people."""
    if problem.protocol is not None:
        return _plain(problem.protocol)
    if problem.suites is not None:
        suites = problem.suites if isinstance(problem.suites, list | tuple) else [problem.suites]
        return _plain("+".join(map(str, suites)))
    if problem.suite is not None:
        return _plain(f"{problem.suite}-{problem.part}")
    graphs = problem.graph if isinstance(problem.graph, list) and problem.graph else [problem.graph]
    first = "default" if graphs[0] is None else str(graphs[0]).partition("?")[0].rpartition("/")[2]
    more = f"+{len(graphs) - 1}" if len(graphs) > 1 else ""
    return _plain(first.removesuffix(".onnx").removesuffix(".npz") or "graph") + more


def _plain(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9.-]+", "-", text)[:40].strip("-.") or "graph"
