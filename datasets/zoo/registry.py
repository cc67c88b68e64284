"""Definitions of zoo graphs: functions that say which graphs exist and how each is built.

A definition is a generator in a module of ``datasets/zoo/models``. It yields names and builders and does no
work itself; a builder runs later, in a process of its own:

>>> from opgym.datasets.zoo.registry import definition
>>> @definition(family="alexnet", source="own", licence="Apache-2.0")  # doctest: +SKIP
... def alexnet():
...     for batch in (32, 128):
...         name = f"alexnet-b{batch}-train"
...         yield name, partial(train_graph, AlexNet, batch=batch), {"batch": batch, "classes": 1000}
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import pkgutil
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...errors import InvalidDatasetError, OpgymError
from ...graphs.readers import Imported

#: Where the definitions of the shipped zoo are.
MODELS = f"{__package__}.models"

FAMILY = re.compile(r"[a-z][a-z0-9_-]*")
NAME = re.compile(r"[a-z0-9][a-z0-9._-]*-(train|infer)")

#: Runs once, without arguments, and returns the graph; it must give the same graph every time.
Build = Callable[[], Imported]
#: What a definition yields: the name, the builder and, where there is something to say, the configuration.
Yielded = tuple[str, Build] | tuple[str, Build, Mapping[str, Any]]


@dataclass(frozen=True)
class Variant:
    """One graph that a definition offers.

    Attributes:
        name: Unique in the zoo; the id is ``zoo/<name>``. Ends in ``-train`` or ``-infer``.
        build: Builds it.
        configuration: What distinguishes it, for people: plain JSON values. ``batch`` is known to the
            manifest.
        definition: What offers it.
    """

    name: str
    build: Build
    configuration: Mapping[str, Any]
    definition: Definition


@dataclass(frozen=True)
class Definition:
    """A family's function, with what holds for all its graphs.

    Attributes:
        family: Architecture; splits never divide a family. Several definitions may share one.
        source: Where the code of the model is from: ``"own"``, or a package and its version's owner, e.g.
            ``"transformers"``.
        licence: SPDX identifier of that code.
        workload: A workload of the papers (GDP's list): neither the near-copy rule nor the cap per family
            applies.
        function: The generator.
    """

    family: str
    source: str
    licence: str
    workload: bool
    function: Callable[[], Iterable[Yielded]] = field(repr=False)

    @property
    def reference(self) -> str:
        """First paragraph of the function's docstring, or of its module's."""
        text = inspect.getdoc(self.function) or inspect.getdoc(sys.modules[self.function.__module__]) or ""
        return " ".join(text.split("\n\n")[0].split())

    def variants(self) -> Iterator[Variant]:
        """The graphs that it offers.

        Raises:
            InvalidDatasetError: It yields something else than names and builders.
        """
        offered = self.function()
        if not isinstance(offered, Iterable):
            raise InvalidDatasetError(
                f"family {self.family!r}: {self.function.__qualname__} returns {offered!r:.60}; expected a generator"
            )
        for item in offered:
            parts = item if isinstance(item, tuple) and len(item) in (2, 3) else (item, None)
            name, build, configuration = parts if len(parts) == 3 else (*parts, {})
            named = isinstance(name, str) and NAME.fullmatch(name)
            if not named or not callable(build) or not isinstance(configuration, Mapping):
                raise InvalidDatasetError(
                    f"family {self.family!r} offers {name!r:.80}; expected a name in lower-case letters, digits, '-', "
                    "'_' and '.' that ends in -train or -infer, with a function that builds the graph and, where "
                    "there is something to say, a configuration"
                )
            yield Variant(name, build, dict(configuration), self)


_definitions: dict[tuple[str, str], Definition] = {}


def definition(
    *, family: str, source: str, licence: str, workload: bool = False
) -> Callable[[Callable[[], Iterable[Yielded]]], Callable[[], Iterable[Yielded]]]:
    """Registers a generator of ``(name, build)`` or ``(name, build, configuration)``.

    Args:
        family: Architecture in lower case, e.g. ``"rnnlm"``.
        source: ``"own"``, or the package that defines the model.
        licence: SPDX identifier of the definition's code.
        workload: Whether it is one of the papers' workloads (see :class:`Definition`).

    Raises:
        InvalidDatasetError: A family that is no lower-case word.
    """
    if not FAMILY.fullmatch(family):
        raise InvalidDatasetError(
            f"family {family!r}; expected lower-case letters, digits, '-' and '_', e.g. 'rnnlm'"
        )

    def register(function: Callable[[], Iterable[Yielded]]) -> Callable[[], Iterable[Yielded]]:
        key = (function.__module__, function.__qualname__)
        _definitions[key] = Definition(family, source, licence, workload, function)
        return function

    return register


def variants(origin: str = MODELS) -> dict[str, Variant]:
    """All graphs that a package of definitions offers, by name; our own first, modules by name, the rest as
    it is written.

    Args:
        origin: A package (each of its modules is imported), a module, or the path of a Python file.

    Raises:
        InvalidDatasetError: Two definitions offer the same name, or the origin is missing or fails.
        ImportError: A package that the definitions need is not installed.
    """
    try:
        return _variants(_import(origin))
    except (OpgymError, ImportError):
        raise
    except (Exception, SystemExit) as error:  # whatever somebody's code does
        raise InvalidDatasetError(
            f"{origin}: its definitions cannot be read ({type(error).__name__}: {error})"
        ) from error


def _variants(modules: Collection[str]) -> dict[str, Variant]:
    found: dict[str, Variant] = {}
    for (module, _), entry in sorted(
        _definitions.items(), key=lambda item: (item[1].source != "own", item[0][0])
    ):
        if module not in modules:
            continue
        for variant in entry.variants():
            if variant.name in found:
                other = found[variant.name].definition
                raise InvalidDatasetError(
                    f"{variant.name!r} is offered by {entry.function.__qualname__} and by "
                    f"{other.function.__qualname__}; names are unique"
                )
            found[variant.name] = variant
    return found


def _import(origin: str) -> set[str]:
    """Imports the modules of an origin and returns their names."""
    if origin.endswith(".py"):
        return {_import_file(Path(origin))}
    if not all(part.isidentifier() for part in origin.split(".")):
        raise InvalidDatasetError(
            f"{origin!r} is no origin of definitions; expected a Python file (.py) or the dotted name of a package"
        )
    package = importlib.import_module(origin)
    names = {origin}
    for info in pkgutil.walk_packages(getattr(package, "__path__", []), f"{origin}."):
        importlib.import_module(info.name)
        names.add(info.name)
    return names


def _import_file(path: Path) -> str:
    name = f"opgym_definitions_{path.stem}"
    for key in [
        key for key in _definitions if key[0] == name
    ]:  # of another file, or of this one before a change
        del _definitions[key]
    spec = importlib.util.spec_from_file_location(name, path.resolve())
    if spec is None or spec.loader is None or not path.is_file():
        raise InvalidDatasetError(f"{path}: no such file; expected a Python file with @definition functions")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return name
