"""The command line of an application: Hydra's, with values of opgym quoted where Hydra's grammar needs that."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
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

    def refuse(message: str) -> NoReturn:
        raise InvalidProblemError(f"{message}; see: opgym {application.name} --help")

    parser.error = refuse  # type: ignore[method-assign]
    try:
        arguments = parser.parse_intermixed_args(list(argv))
    except argparse.ArgumentError as error:
        refuse(str(error))
    arguments.overrides = [_settled(application, readable(text)) for text in arguments.overrides]
    return parser, arguments


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
        hydra[key] = {k: v for k, v in (hydra.get(key) or {}).items() if k != "_target_"}
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
        InvalidProblemError: It removes a setting, or chooses several members of a group that has one.
    """
    if override.startswith("~"):
        raise InvalidProblemError(f"{override!r}: settings cannot be removed; set another value, or null")
    override = override.lstrip("+")
    key, _, value = override.partition("=")
    if key in GROUPS and key not in application.several and value.startswith("["):
        raise InvalidProblemError(
            f"{override!r}: expected one {key}; a sweep over several is -m {key}={value.strip('[]')}"
        )
    if any(key.startswith(f"{section}.") for section in application.open_keys):
        return f"++{override}"
    return override
