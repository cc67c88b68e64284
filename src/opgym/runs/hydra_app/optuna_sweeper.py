"""Optuna as Hydra's sweeper: trials of hyper-parameters, each a few runs with the same seeds.

The space is on the command line: ``agent.options.learning_rate='tag(log, interval(1e-5, 1e-2))'``,
``env.num_envs=8,16,32``, ``agent.options.epochs='range(2, 10)'``. The value of a trial is the mean score of its runs;
lower is better. The study is a journal in the folder of the sweep, from which ``resume=true`` goes on.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hydra.core.override_parser.types import IntervalSweep, Override, RangeSweep, Transformer
from hydra.plugins.sweeper import Sweeper
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig

from ...errors import InvalidProblemError, InvalidRunError, MissingExtraError
from .launchers.base import SweepLauncher
from .plugin import PluginKind, last_of_each, no_values, target
from .sweep import Sweep

if TYPE_CHECKING:
    import optuna

STUDY = "study.journal"
#: Bounds of the settings: a trial's sampler is seeded with the sum, which numpy takes below 2**32.
MOST_TRIALS, MOST_SEED = 1_000_000, 2**31 - 1


@dataclass
class OptunaSettings:
    """How to search.

    Attributes:
        trials: How many, those of interrupted sweeps included.
        parallel: Trials that are drawn at once, before any of them has a value.
        seeds: Of the runs of each trial.
        sampler_seed: Of the search.
    """

    _target_: str = target("OptunaSweeper")
    trials: int = 20
    parallel: int = 1
    seeds: list[int] = field(default_factory=lambda: [0])
    sampler_seed: int = 0


class OptunaSweeper(Sweeper):
    """Searches hyper-parameters with Optuna's tree-structured Parzen estimator."""

    def __init__(self, trials: int, parallel: int, seeds: Sequence[int], sampler_seed: int) -> None:
        for name, value in (("trials", trials), ("parallel", parallel)):
            if not 1 <= value <= MOST_TRIALS:
                raise InvalidProblemError(f"hydra.sweeper.{name} = {value}; expected 1 .. {MOST_TRIALS}")
        if not 0 <= sampler_seed <= MOST_SEED:
            raise InvalidProblemError(
                f"hydra.sweeper.sampler_seed = {sampler_seed}; expected 0 .. {MOST_SEED}"
            )
        if not seeds or len(set(seeds)) < len(seeds):
            raise InvalidProblemError(
                f"hydra.sweeper.seeds = {list(seeds)}; expected different seeds, at least one"
            )
        self._trials, self._parallel, self._seeds, self._sampler_seed = (
            trials,
            parallel,
            tuple(seeds),
            sampler_seed,
        )

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        """Takes what Hydra knows, and makes the launcher."""
        from hydra.core.plugins import Plugins

        self._context, self._config = hydra_context, config
        assert isinstance(task_function, Sweep)
        self._sweep = task_function
        self._launcher = Plugins.instance().instantiate_launcher(
            hydra_context=hydra_context, task_function=task_function, config=config
        )

    def sweep(self, arguments: list[str]) -> None:
        """Runs trials until there are enough of them.

        Raises:
            InvalidProblemError: Nothing to search.
            InvalidRunError: There is a study already, and it is not to be resumed.
        """
        _require_optuna()
        overrides = last_of_each(self._context.config_loader, arguments)
        space = {
            override.get_key_element(): _distribution(override)
            for override in overrides
            if override.is_sweep_override()
        }
        if not space:
            raise InvalidProblemError(
                "hydra/sweeper=optuna has nothing to search; give a range, e.g. "
                "agent.options.learning_rate='tag(log, interval(1e-5, 1e-2))'"
            )
        if any(key.lstrip("+") == "seed" for key in space):
            raise InvalidProblemError("seed=... is no hyper-parameter; use hydra.sweeper.seeds=[0,1,2]")
        fixed = [
            f"{override.get_key_element()}={override.get_value_element_as_str()}"
            for override in overrides
            if not override.is_sweep_override() and override.key_or_group not in ("seed", "resume")
        ]
        self._check(space, fixed)
        study = self._open(space)
        while True:
            done = [trial for trial in study.trials if trial.state.is_finished()]
            batch = self._next(study, space, self._trials - len(done))
            if not batch:
                break
            self._run(study, batch, fixed)
            self._report(study)
        self._report(study)

    def _check(self, space: dict[str, Any], fixed: list[str]) -> None:
        """Refuses what some trial would be refused for, before there is a study.

        Raises:
            OpgymError: The settings of a trial are wrong.
        """
        if not isinstance(self._launcher, SweepLauncher):
            return
        first = {key: _ends(distribution)[0] for key, distribution in space.items()}
        trials = [first]
        for key, distribution in space.items():
            trials += [{**first, key: value} for value in _ends(distribution)[1:]]
        jobs = [self._job(fixed, trial, self._seeds[0]) for trial in trials]
        jobs += [self._job(fixed, first, seed) for seed in self._seeds[1:]]
        self._launcher.check(jobs)

    def _job(self, fixed: list[str], params: Mapping[str, Any], seed: int) -> list[str]:
        chosen = [f"{key}={_written(value)}" for key, value in params.items()]
        return [*fixed, *chosen, f"seed={seed}", "resume=true"]

    def _open(self, space: dict[str, Any]) -> optuna.Study:
        import optuna
        from optuna.storages import JournalStorage
        from optuna.storages.journal import JournalFileBackend

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        folder = Path(str(self._config.hydra.sweep.dir))
        path = folder / STUDY
        if path.exists() and not self._config.resume:
            raise InvalidRunError(
                f"{path} holds the study of an earlier sweep; resume=true goes on with it, name=... starts another"
            )
        folder.mkdir(parents=True, exist_ok=True)
        study = optuna.create_study(
            storage=JournalStorage(JournalFileBackend(str(path))),
            study_name="opgym",
            direction="minimize",
            load_if_exists=True,
        )
        for trial in study.trials:
            if trial.distributions.keys() != space.keys():
                raise InvalidRunError(
                    f"{path} is about {', '.join(sorted(trial.distributions))}, and this sweep about "
                    f"{', '.join(sorted(space))}; give it another name=..."
                )
        return study

    def _next(self, study: optuna.Study, space: dict[str, Any], left: int) -> list[optuna.trial.FrozenTrial]:
        """The next trials: those that were interrupted, then new ones."""
        import optuna

        running = [t for t in study.trials if t.state == optuna.trial.TrialState.RUNNING]
        if running:
            return running
        first = len(study.trials)
        for number in range(first, first + min(left, self._parallel)):
            # The state of a sampler is not in the study: one for each trial, so that an interrupted search draws
            # what it would have drawn.
            study.sampler = optuna.samplers.TPESampler(seed=self._sampler_seed + number, constant_liar=True)
            study.ask(space)
        return study.trials[first:]

    def _run(self, study: optuna.Study, batch: list[optuna.trial.FrozenTrial], fixed: list[str]) -> None:
        """Runs trials and tells what they came to."""
        import optuna

        # Trials of the same parameters are the same runs: those of earlier ones are finished, and within the batch
        # the first one stands for all.
        begin = len(self._sweep.rows)
        first_job: dict[str, int] = {}
        jobs: list[list[str]] = []
        for trial in batch:
            if str(trial.params) not in first_job:
                first_job[str(trial.params)] = begin + len(jobs)
                jobs += [self._job(fixed, trial.params, seed) for seed in self._seeds]
        self._launcher.launch(jobs, initial_job_idx=begin)
        for trial in batch:
            first = first_job[str(trial.params)]
            scores = [self._sweep.row(first + i).score for i in range(len(self._seeds))]
            values = [score for score in scores if score is not None and math.isfinite(score)]
            if len(values) == len(scores):
                study.tell(trial.number, math.fsum(values) / len(values))
            else:
                study.tell(trial.number, state=optuna.trial.TrialState.FAIL)

    def _report(self, study: optuna.Study) -> None:
        finished = [trial for trial in study.trials if trial.value is not None]
        outcome: dict[str, Any] = {"trials": len(study.trials), "failed": len(study.trials) - len(finished)}
        if finished:
            best = min(finished, key=lambda trial: (trial.value, trial.number))
            outcome |= {
                "best_trial": best.number,
                "best_value": best.value,
                "best": {key.lstrip("+"): value for key, value in best.params.items()},
            }
        self._sweep.outcome = outcome
        self._sweep.write()


def _require_optuna() -> None:
    try:
        import optuna  # noqa: F401
    except ImportError:
        raise MissingExtraError("hydra/sweeper=optuna needs Optuna: pip install 'opgym[train]'") from None


def _distribution(override: Override) -> Any:
    """What Optuna draws for a sweep of Hydra.

    Raises:
        InvalidProblemError: A range that Optuna does not know.
    """
    import optuna

    value = override.value()
    if isinstance(value, IntervalSweep):
        low, high, log = value.start, value.end, "log" in value.tags
        if low is None or high is None or not (math.isfinite(low) and math.isfinite(high) and low <= high):
            raise InvalidProblemError(
                f"{override.input_line}: a range from {low} to {high}; expected finite numbers, the smaller one first"
            )
        if log and not low > 0:
            raise InvalidProblemError(f"{override.input_line}: a range on a log scale begins above 0")
        if isinstance(low, int) and isinstance(high, int):
            return optuna.distributions.IntDistribution(low, high, log=log)
        return optuna.distributions.FloatDistribution(low, high, log=log)
    if isinstance(value, RangeSweep):
        values = list(value.range())
    else:
        values = list(override.sweep_iterator(transformer=Transformer.encode))
    if not values:
        raise no_values(override)
    return optuna.distributions.CategoricalDistribution(values)


def _ends(distribution: Any) -> list[Any]:
    """Every choice, or the ends of a range."""
    if hasattr(distribution, "choices"):
        return list(distribution.choices)
    return [distribution.low, distribution.high]


def _written(value: Any) -> str:
    return repr(value) if isinstance(value, float) else str(value)


PLUGIN = PluginKind("hydra/sweeper", "optuna", OptunaSweeper, OptunaSettings)
