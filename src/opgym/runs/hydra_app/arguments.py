"""The command line of an application: Hydra's, with values of opgym quoted where Hydra's grammar needs that."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from ...errors import InvalidProblemError
from .application import GROUPS, Application

#: Keys of Hydra that may name classes: Hydra itself looks them up among known plugins.
_PLUGINS = ("launcher", "sweeper")
_QUOTES, _BRACKETS = "'\"", "[]{}()"


def parse(
    application: Application[Any], argv: Sequence[str]
) -> tuple[argparse.ArgumentParser, argparse.Namespace]:
    """Hydra's own options, and the overrides.

    Raises:
        InvalidProblemError: An unknown option, or an override that cannot be read, or names something to be run.
    """
    from hydra._internal.utils import get_args_parser

    parser = get_args_parser()
    parser.prog = f"opgym {application.name}"
    parser.exit_on_error = False
    parser.allow_abbrev = False

    def refuse(message: str) -> NoReturn:
        raise InvalidProblemError(f"{message}; see: opgym {application.name} --help")

    parser.error = refuse  # type: ignore[method-assign]
    if "--version" in argv:  # argparse would print Hydra's, and end the process
        refuse("the version is that of the whole program: opgym --version")
    try:
        arguments = parser.parse_intermixed_args(list(argv))
    except argparse.ArgumentError as error:
        refuse(str(error))
    _refuse_options(arguments, refuse)
    arguments.overrides = [_settled(application, readable(text)) for text in arguments.overrides]
    return parser, arguments


def _refuse_options(arguments: argparse.Namespace, refuse: Callable[[str], NoReturn]) -> None:
    """Refuses options of Hydra that have no meaning here, or none in what is asked for."""
    for option in ("config_path", "config_name"):
        if getattr(arguments, option) is not None:
            refuse(
                f"--{option.replace('_', '-')} would replace the settings of opgym; --config-dir adds groups of yours"
            )
    if arguments.shell_completion:
        refuse("Hydra completes scripts, and this is a command; see opgym --install-completion")
    if arguments.experimental_rerun is not None:
        refuse("--experimental-rerun is about runs of Hydra; resume=true goes on with those of opgym")
    if arguments.run and arguments.multirun:
        refuse("--run is about one run and --multirun about many; leave one of them out")
    if arguments.cfg is None:
        for option in ("package", "resolve"):
            if getattr(arguments, option):
                refuse(f"--{option} needs --cfg, which shows settings")


def readable(override: str) -> str:
    """An override that Hydra can read: ids such as ``synthetic/ws?n=100&seed=0`` get the quotes that they need.

    Raises:
        InvalidProblemError: It cannot be read, or would name something to be run.
    """
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from hydra.errors import HydraException

    refuse_targets(override)
    parser = OverridesParser.create()
    key, equals, value = override.partition("=")
    candidates = [override]
    inner = value[1:-1] if value.startswith("[") and value.endswith("]") else value
    if equals and not any(mark in inner for mark in _QUOTES + _BRACKETS):
        quoted = ",".join(map(_quoted, inner.split(",")))
        candidates.append(f"{key}={quoted if inner is value else f'[{quoted}]'}")
    reason = ""
    for candidate in candidates:
        try:
            parser.parse_override(candidate)
        except HydraException as error:
            reason = reason or str(error).splitlines()[0]
        else:
            return candidate
    if not equals:
        raise InvalidProblemError(f"{override!r} is no setting; expected KEY=VALUE or GROUP=NAME")
    raise InvalidProblemError(
        f"{override!r} cannot be read ({reason}); quote the value for Hydra and the whole for the shell, "
        f"e.g. '{key}=\"...\"'"
    )


def _quoted(value: str) -> str:
    """A value as Hydra can read it, in quotes where it needs some."""
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from hydra.errors import HydraException

    try:
        OverridesParser.create().parse_override(f"key={value}")
    except HydraException:
        return f'"{value}"'
    return value


def refuse_targets(override: str) -> None:
    """Refuses what would make Hydra run something of the user's choice.

    Raises:
        InvalidProblemError: Saying what to use instead.
    """
    if "_target_" in override or override.lstrip("+~").startswith(("hydra.callbacks", "hydra/callbacks")):
        raise InvalidProblemError(
            f"{override!r}: settings never name code; agents, environments and launchers are chosen by their names, "
            "and packages add agents through the entry-point group opgym.solvers"
        )


def refuse_composed_targets(config: Any) -> None:
    """Refuses composed settings that name code.

    Raises:
        InvalidProblemError: Naming the key.
    """
    from omegaconf import OmegaConf

    plain = OmegaConf.to_container(config, resolve=False)
    assert isinstance(plain, dict)
    hydra = dict(plain.get("hydra") or {})
    callbacks = hydra.get("callbacks") or {}
    for key in _PLUGINS:
        settings = hydra.get(key)
        if not isinstance(settings, dict):
            raise InvalidProblemError(f"hydra.{key} = {settings!r}; choose one by hydra/{key}=NAME")
        hydra[key] = {k: v for k, v in settings.items() if k != "_target_"}
    found = _first_target({**plain, "hydra": hydra})
    if found is not None or callbacks:
        raise InvalidProblemError(f"{found or 'hydra.callbacks'}: settings never name code to run")


def _first_target(value: Any, path: str = "") -> str | None:
    children = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    for key, child in children:
        full = f"{path}.{key}" if path else str(key)
        if key == "_target_":
            return full
        found = _first_target(child, full)
        if found is not None:
            return found
    return None


def _settled(application: Application[Any], override: str) -> str:
    """An override as Hydra must be given it: settings are closed, but for options that their owner checks.

    Raises:
        InvalidProblemError: It removes a setting, or chooses something else than a member of a group, or several of a
            group that has one.
    """
    if override.startswith("~"):
        raise InvalidProblemError(f"{override!r}: settings cannot be removed; set another value, or null")
    override = override.lstrip("+")
    key, _, value = override.partition("=")
    if key in GROUPS and key not in application.several and value.startswith("["):
        raise InvalidProblemError(
            f"{override!r}: expected one {key}; a sweep over several is -m {key}={value.strip('[]')}"
        )
    if key in GROUPS or key.partition("/")[0] == "hydra":
        _refuse_no_names(override, several=key in application.several)
    if any(key.startswith(f"{section}.") for section in application.open_keys):
        return f"++{override}"
    return override


def _refuse_no_names(override: str, *, several: bool) -> None:
    """Refuses to choose from a group by anything but names, for which Hydra has no words.

    Raises:
        InvalidProblemError: It is no name, and no list of names where several may be chosen.
    """
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from hydra.core.override_parser.types import ChoiceSweep, Glob, QuotedString

    value: Any = OverridesParser.create().parse_override(override)._value
    choices: list[Any] = value.list if isinstance(value, ChoiceSweep) else [value]
    for choice in choices:
        names = choice if isinstance(choice, list) and several else [choice]
        if isinstance(choice, dict):
            continue  # settings of the group, which are checked as such
        if not all(isinstance(name, str | QuotedString | Glob) for name in names):
            none = "; logger=[] chooses none" if several else ", or leave it out"
            raise InvalidProblemError(f"{override!r}: expected a name{none}")
