"""From a command line to a run or a sweep: Hydra composes, opgym checks, runs and says what went wrong."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...errors import InvalidProblemError, InvalidRunError, MissingExtraError, OpgymError
from ..run_folder import Progress
from ..train.config import digest
from .application import GROUPS, Application, require_folder
from .arguments import parse, refuse_composed_targets
from .composed import plain_settings
from .mistakes import UnreadableSettingsError, broken_file, composing, explained
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


def run_app(
    application: Application[Any], argv: Sequence[str], *, show_data: Callable[[Any], None] | None = None
) -> Done | None:
    """Does what a command line says.

    Args:
        application: The command.
        argv: Its arguments: Hydra's options, and overrides.
        show_data: Given settings, as JSON data, instead of their YAML on stdout; then what has only text is refused,
            and jobs of a sweep that finish are not said on stderr (those that fail always are).

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
    register(application)
    _register_names(application)
    GlobalHydra.instance().clear()
    search_path = create_config_search_path(f"pkg://{CONFIGURATION}")
    # Groups of one command, such as its experiments, lie in a folder of its name.
    search_path.prepend(
        "command", f"pkg://{CONFIGURATION}.{application.name}", anchor=SearchPathQuery(provider="schema")
    )
    own = None if arguments.config_dir is None else Path(arguments.config_dir).absolute()
    if own is not None:
        if not own.is_dir():
            raise InvalidRunError(f"--config-dir {own}: there is no such folder")
        search_path.prepend("own", f"file://{own}", anchor=SearchPathQuery(provider="schema"))
    engine = Hydra.create_main_hydra2(application.name, search_path)
    handlers = list(logging.root.handlers)
    try:
        return _Engine(engine, application, own, show_data).do(parser, arguments)
    finally:
        logging.root.handlers[:] = handlers  # Hydra's help writes through one of its own
        GlobalHydra.instance().clear()


class _Engine:
    """Hydra, for one command line."""

    def __init__(
        self,
        engine: Any,
        application: Application[Any],
        own: Path | None,
        show_data: Callable[[Any], None] | None,
    ) -> None:
        self._engine, self._application, self._own, self._show_data = engine, application, own, show_data

    def do(self, parser: Any, arguments: Any) -> Done | None:
        """Shows, runs or sweeps."""
        from omegaconf import OmegaConf

        overrides: list[str] = arguments.overrides
        if self._show_data is not None and (arguments.hydra_help or arguments.info is not None):
            raise InvalidProblemError("--hydra-help and --info print text; leave out --json, or use --cfg")
        if arguments.hydra_help:
            arguments.overrides = []  # the help is about Hydra alone
            self._engine.hydra_help(self._application.name, parser, arguments)
            return None
        if arguments.cfg:
            with self._explaining():
                config = self._compose(overrides, multirun=arguments.multirun)
                if arguments.resolve:
                    OmegaConf.set_readonly(config.hydra, None)
                    OmegaConf.resolve(config)
                self._show(self._engine.get_sanitized_cfg(config, arguments.cfg), arguments)
            return None
        if arguments.info is not None:
            with self._explaining():
                self._compose(overrides, multirun=arguments.multirun)
                self._engine.show_info(
                    arguments.info, config_name=self._application.name, overrides=overrides
                )
            return None
        if arguments.multirun:
            return self._sweep(overrides)
        return self._run(overrides)

    def _show(self, settings: Any, arguments: Any) -> None:
        """Shows settings, or the part of them that is asked for."""
        from omegaconf import Container, OmegaConf

        package = None if arguments.package == "_global_" else arguments.package
        shown = settings if package is None else OmegaConf.select(settings, package)
        if shown is None:
            raise InvalidProblemError(f"--package {package!r}: there are no such settings")
        if self._show_data is not None:
            data = isinstance(shown, Container)
            self._show_data(OmegaConf.to_container(shown, enum_to_str=True) if data else shown)
            return
        if package is not None:
            print(f"# @package {package}")
        print(OmegaConf.to_yaml(shown) if isinstance(shown, Container) else shown, end="")

    def _run(self, overrides: list[str]) -> Done:
        with self._explaining():
            config = self._compose(overrides, multirun=False)
            folder = Path(self._resolved(config, "hydra.run.dir"))
            settings = self._application.settings(plain_settings(config))
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

        sweep = Sweep(self._application, quiet=self._show_data is not None)
        context = HydraContext(config_loader=self._engine.config_loader, callbacks=Callbacks())
        with self._explaining():
            config = self._compose(overrides, multirun=True)
            folder = Path(self._resolved(config, "hydra.sweep.dir"))
            sweeper = Plugins.instance().instantiate_sweeper(
                config=config, hydra_context=context, task_function=sweep
            )
            sweeper.sweep(arguments=list(config.hydra.overrides.task))
        return Done(folder, sweep=sweep)

    def _compose(self, overrides: list[str], *, multirun: bool) -> Any:
        from hydra.types import RunMode

        mode = RunMode.MULTIRUN if multirun else RunMode.RUN
        with composing():
            config = self._engine.compose_config(
                config_name=self._application.name,
                overrides=[*overrides, f"hydra.mode={mode.name}"],
                run_mode=mode,
                with_log_configuration=False,
            )
        refuse_composed_targets(config)
        return config

    def _resolved(self, config: Any, key: str) -> str:
        from omegaconf import OmegaConf

        folder = str(OmegaConf.select(config, key, throw_on_missing=True))
        if not folder.strip():
            raise InvalidRunError(f"{key} = {folder!r}; expected a folder")
        return folder

    @contextmanager
    def _explaining(self) -> Iterator[None]:
        """Raises the error of opgym for one of Hydra; whatever else it is stays itself."""
        try:
            yield
        except Exception as error:
            found = self._explained(error)
            if isinstance(found, UnreadableSettingsError) and self._own is not None:
                found = broken_file(self._own) or found
            if found is None or found is error:
                raise
            raise found from error

    def _explained(self, error: Exception) -> OpgymError | None:
        from hydra.errors import HydraException
        from omegaconf.errors import OmegaConfBaseException

        cause: BaseException | None = error
        while cause is not None:
            if isinstance(cause, OpgymError):
                return cause
            cause = cause.__cause__ or cause.__context__
        if isinstance(error, HydraException | OmegaConfBaseException):
            return explained(error, list(GROUPS), self._engine.config_loader.get_group_options)
        return None


def _register_names(application: Application[Any]) -> None:
    """Makes the names of folders known to the settings."""
    from omegaconf import DictConfig, OmegaConf

    def settings_of(root: DictConfig) -> Any:
        return application.settings(plain_settings(root))

    def job_name(*, _root_: DictConfig) -> str:
        return application.folder_name(settings_of(_root_))

    def run_name(*, _root_: DictConfig) -> str:
        settings = settings_of(_root_)
        return str(settings.name or application.folder_name(settings))

    def sweep_name(*, _root_: DictConfig) -> str:
        require_folder(_root_.name, _root_.runs)
        if _root_.name is not None:
            return str(_root_.name)
        skipped = tuple(f"{key}{mark}" for key in application.outside for mark in "=.")
        told = [o for o in _root_.hydra.overrides.task if not o.lstrip("+~").startswith(skipped)]
        sweeper = str(_root_.hydra.sweeper._target_)
        return f"{application.name}-sweep_{digest([sorted(told), sweeper])}"

    for name, resolver in (("job", job_name), ("run", run_name), ("sweep", sweep_name)):
        OmegaConf.register_new_resolver(f"opgym.{name}", resolver, replace=True)
