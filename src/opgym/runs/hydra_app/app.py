"""From a command line to a run or a sweep: Hydra composes, opgym checks, runs and says what went wrong."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...errors import InvalidRunError, MissingExtraError, OpgymError
from ..run_folder import Progress
from ..train.config import digest
from .application import Application
from .arguments import parse, refuse_composed_targets
from .sweep import Sweep, write_error


class RunFailed(Exception):
    """A run ended with an error that is none of its settings; the traceback is in its folder.

    Attributes:
        folder: Of the run.
        error: What went wrong.
    """

    def __init__(self, folder: Path, error: Exception) -> None:
        super().__init__(f"{folder}: {type(error).__name__}: {error}")
        self.folder, self.error = folder, error


@dataclass(frozen=True)
class Done:
    """What a command line did.

    Attributes:
        folder: Of the run, or of the sweep.
        result: Of the run; ``None``: a sweep.
        sweep: The jobs of the sweep; ``None``: a run.
        skipped: Whether the run was finished before.
    """

    folder: Path
    result: dict[str, Any] | None = None
    sweep: Sweep | None = None
    skipped: bool = False


def run_app(application: Application[Any], argv: Sequence[str], *, quiet: bool = False) -> Done | None:
    """Does what a command line says.

    Args:
        application: The command.
        argv: Its arguments: Hydra's options, and overrides.
        quiet: Whether jobs of a sweep that finish are not said on stderr; those that fail always are.

    Returns:
        What was done; ``None``: something was shown.

    Raises:
        OpgymError: Wrong settings, with the nearest right ones.
        RunFailed: The run itself failed.
        OSError: Its folder cannot be written.
    """
    try:
        import hydra
    except ImportError:
        raise MissingExtraError(f"opgym {application.name} needs Hydra: pip install 'opgym[train]'") from None
    from hydra._internal.hydra import Hydra
    from hydra._internal.utils import create_config_search_path
    from hydra.core.config_search_path import SearchPathQuery
    from hydra.core.global_hydra import GlobalHydra

    from .groups import CONFIGURATION, register

    hydra.version.setbase("1.3")
    parser, arguments = parse(application, argv)
    for option in ("config_path", "config_name"):
        if getattr(arguments, option) is not None:
            raise InvalidRunError(
                f"--{option.replace('_', '-')} would replace the settings of opgym; --config-dir adds groups of yours"
            )
    register(application)
    _register_names(application)
    GlobalHydra.instance().clear()
    search_path = create_config_search_path(f"pkg://{CONFIGURATION}")
    # Groups of one command, such as its experiments, lie in a folder of its name.
    search_path.prepend(
        "command", f"pkg://{CONFIGURATION}.{application.name}", anchor=SearchPathQuery(provider="schema")
    )
    if arguments.config_dir is not None:
        own = Path(arguments.config_dir).absolute()
        if not own.is_dir():
            raise InvalidRunError(f"--config-dir {own}: there is no such folder")
        search_path.prepend("own", f"file://{own}", anchor=SearchPathQuery(provider="schema"))
    engine = Hydra.create_main_hydra2(application.name, search_path)
    handlers = list(logging.root.handlers)
    try:
        return _Engine(engine, application, quiet).do(parser, arguments)
    finally:
        logging.root.handlers[:] = handlers  # Hydra's help writes through one of its own
        GlobalHydra.instance().clear()


class _Engine:
    """Hydra, for one command line."""

    def __init__(self, engine: Any, application: Application[Any], quiet: bool) -> None:
        self._engine, self._application, self._quiet = engine, application, quiet

    def do(self, parser: Any, arguments: Any) -> Done | None:
        """Shows, runs or sweeps."""
        overrides: list[str] = arguments.overrides
        if arguments.hydra_help:
            arguments.overrides = []  # the help is about Hydra alone
            self._engine.hydra_help(self._application.name, parser, arguments)
            return None
        if arguments.cfg:
            self._compose(overrides, multirun=arguments.multirun)
            self._engine.show_cfg(
                self._application.name, overrides, arguments.cfg, arguments.package, arguments.resolve
            )
            return None
        if arguments.info is not None:
            self._compose(overrides, multirun=arguments.multirun)
            self._engine.show_info(arguments.info, config_name=self._application.name, overrides=overrides)
            return None
        if arguments.shell_completion:
            self._engine.shell_completion(self._application.name, overrides)
            return None
        if arguments.multirun:
            return self._sweep(overrides)
        return self._run(overrides)

    def _run(self, overrides: list[str]) -> Done:
        from omegaconf import OmegaConf

        config = self._compose(overrides, multirun=False)
        folder = Path(self._resolved(config, "hydra.run.dir"))
        document = OmegaConf.to_container(config, resolve=False)
        assert isinstance(document, dict)
        del document["hydra"]
        try:
            plain = OmegaConf.to_container(OmegaConf.create(document), resolve=True, throw_on_missing=True)
        except Exception as error:
            raise self._explained(error) from None
        assert isinstance(plain, dict)
        settings = self._application.read({str(key): value for key, value in plain.items()})
        progress = self._application.prepare(settings, folder)
        if progress is Progress.FINISHED:
            return Done(folder, self._application.result(folder), skipped=True)
        try:
            return Done(folder, self._application.run(settings, folder))
        except (OpgymError, OSError, MemoryError):
            raise
        except Exception as error:
            write_error(folder, error)
            raise RunFailed(folder, error) from error

    def _sweep(self, overrides: list[str]) -> Done:
        from hydra._internal.callbacks import Callbacks
        from hydra.core.plugins import Plugins
        from hydra.types import HydraContext

        config = self._compose(overrides, multirun=True)
        folder = Path(self._resolved(config, "hydra.sweep.dir"))
        sweep = Sweep(self._application, quiet=self._quiet)
        context = HydraContext(config_loader=self._engine.config_loader, callbacks=Callbacks())
        try:
            sweeper = Plugins.instance().instantiate_sweeper(
                config=config, hydra_context=context, task_function=sweep
            )
            sweeper.sweep(arguments=list(config.hydra.overrides.task))
        except (OpgymError, OSError, MemoryError):
            raise
        except Exception as error:
            raise self._explained(error) from error
        return Done(folder, sweep=sweep)

    def _compose(self, overrides: list[str], *, multirun: bool) -> Any:
        from hydra.types import RunMode

        mode = RunMode.MULTIRUN if multirun else RunMode.RUN
        try:
            config = self._engine.compose_config(
                config_name=self._application.name,
                overrides=[*overrides, f"hydra.mode={mode.name}"],
                run_mode=mode,
                with_log_configuration=False,
            )
        except Exception as error:
            raise self._explained(error) from None
        refuse_composed_targets(config)
        return config

    def _resolved(self, config: Any, key: str) -> str:
        from omegaconf import OmegaConf

        try:
            return str(OmegaConf.select(config, key, throw_on_missing=True))
        except Exception as error:
            raise self._explained(error) from None

    def _explained(self, error: Exception) -> Exception:
        """The error of opgym for one of Hydra; whatever else it is stays itself."""
        from hydra.errors import HydraException
        from omegaconf.errors import OmegaConfBaseException

        from .application import GROUPS
        from .mistakes import explained

        cause: BaseException | None = error
        while cause is not None:
            if isinstance(cause, OpgymError):
                return cause
            cause = cause.__cause__ or cause.__context__
        if isinstance(error, HydraException | OmegaConfBaseException):
            return explained(error, list(GROUPS), self._engine.config_loader.get_group_options)
        return error


def _register_names(application: Application[Any]) -> None:
    """Makes the names of folders known to the settings."""
    from omegaconf import DictConfig, OmegaConf

    def settings_of(root: DictConfig) -> Any:
        plain = OmegaConf.to_container(root, resolve=False)
        assert isinstance(plain, dict)
        plain.pop("hydra", None)
        resolved = OmegaConf.to_container(OmegaConf.create(plain), resolve=True, throw_on_missing=True)
        return application.read(resolved)  # type: ignore[arg-type]

    def job_name(*, _root_: DictConfig) -> str:
        return application.folder_name(settings_of(_root_))

    def run_name(*, _root_: DictConfig) -> str:
        settings = settings_of(_root_)
        return str(settings.name or application.folder_name(settings))

    def sweep_name(*, _root_: DictConfig) -> str:
        if _root_.name is not None:
            return str(_root_.name)
        skipped = tuple(f"{key}{mark}" for key in application.outside for mark in "=.")
        told = [o for o in _root_.hydra.overrides.task if not o.lstrip("+~").startswith(skipped)]
        sweeper = str(_root_.hydra.sweeper._target_)
        return f"{application.name}-sweep_{digest([sorted(told), sweeper])}"

    for name, resolver in (("job", job_name), ("run", run_name), ("sweep", sweep_name)):
        OmegaConf.register_new_resolver(f"opgym.{name}", resolver, replace=True)
