"""Files of what ``opgym reproduce regal`` measured: a line that says what, then one for each graph."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ....datasets.suites import POPULATIONS
from ....errors import InvalidDatasetError
from ....graphs.atomic import write_text
from ...row_file import is_number, is_whole
from .methods import AGENT, BASELINE, SEEDED_AGENT
from .tasks import PARTS, TASKS

FORMAT = "opgym.regal-results/1"
_Check = Callable[[Any], bool]


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


def _is_value(value: Any) -> bool:
    """Of a run, or the best known: ``None`` where there is none; gains are shares of it."""
    return value is None or (is_number(value) and value > 0)


def _is_list(value: Any, check: _Check) -> bool:
    return isinstance(value, list) and bool(value) and all(map(check, value))


def _one_of(*known: str) -> _Check:
    return lambda value: isinstance(value, str) and value in known


#: What each key holds, in words, and whether a value is that.
_Fields = Mapping[str, tuple[str, _Check]]
_METHOD: _Fields = MappingProxyType(
    {
        "name": ("a text", _is_text),
        "solver": ("a text", _is_text),
        "evaluations": ("a whole number or null", lambda value: value is None or is_whole(value)),
        "kind": ("the kind of a column", _one_of(BASELINE, AGENT, SEEDED_AGENT)),
        "published": ("true or false", _is_flag),
        "random": ("true or false", _is_flag),
        "long": ("true or false", _is_flag),
        "training_of": ("a text", _is_text),
        "training": ("a text", _is_text),
        "digest": ("a text", _is_text),
    }
)
_HEAD: _Fields = MappingProxyType(
    {
        "format": (FORMAT, _one_of(FORMAT)),
        "task": (f"one of {', '.join(TASKS)}", _one_of(*TASKS)),
        "part": (f"one of {', '.join(PARTS)}", _one_of(*PARTS)),
        "suite_version": ("a whole number", is_whole),
        "reference_version": ("a whole number or null", lambda value: value is None or is_whole(value)),
        "seeds": ("a list of whole numbers", lambda value: _is_list(value, is_whole)),
        "methods": ("a list of columns", lambda value: _is_list(value, lambda item: isinstance(item, dict))),
    }
)
_GRAPH: _Fields = MappingProxyType(
    {
        "graph": ("a text", _is_text),
        "population": (f"one of {', '.join(POPULATIONS)}", _one_of(*POPULATIONS)),
        "twins": ("a text", _is_text),
        "ops": ("a whole number", is_whole),
        "best_known": ("a number above 0 or null", _is_value),
        "columns": ("a column by its name", lambda value: isinstance(value, dict)),
    }
)
_COLUMN: _Fields = MappingProxyType(
    {
        "values": ("a list of numbers above 0 and nulls", lambda value: _is_list(value, _is_value)),
        "evaluations": ("a number", is_number),
        "seconds": ("a number", is_number),
    }
)


def store(document: Mapping[str, Any], path: Path) -> None:
    """Writes what ``regal.run`` returns of a task."""
    head = {"format": FORMAT, **{key: document[key] for key in _HEAD if key != "format"}}
    rows = [head, *document["graphs"]]
    write_text(path, "".join(json.dumps(_whole(row), allow_nan=False) + "\n" for row in rows))


def stored(path: Path) -> dict[str, Any]:
    """Reads what :func:`store` wrote.

    Raises:
        InvalidDatasetError: It is no such file, or something in it is not what tables are made of; with the line.
    """
    try:
        first, *others = path.read_text(encoding="utf-8").splitlines()
    except ValueError:
        raise InvalidDatasetError(f"{path}: no results of opgym reproduce regal") from None
    head = _parsed(first)
    if not isinstance(head, dict) or head.get("format") != FORMAT:
        raise InvalidDatasetError(f"{path}: no results of opgym reproduce regal, or of another version")
    _require(head, _HEAD, f"{path}:1")
    methods: dict[str, Mapping[str, Any]] = {}
    for position, method in enumerate(head["methods"]):
        _require(method, _METHOD, f"{path}:1: methods[{position}]")
        if method["name"] in methods:
            raise InvalidDatasetError(f"{path}:1: two columns are called {method['name']!r:.80}")
        methods[method["name"]] = method
    graphs: dict[str, dict[str, Any]] = {}
    lengths: dict[str, int] = {}
    for number, line in enumerate(others, 2):
        graph, where = _parsed(line), f"{path}:{number}"
        _require(graph, _GRAPH, where)
        if graphs.setdefault(graph["graph"], graph) is not graph:
            raise InvalidDatasetError(f"{where}: {graph['graph']!r:.80} is there twice")
        for name, column in graph["columns"].items():
            if name not in methods:
                raise InvalidDatasetError(
                    f"{where}: columns has {name!r:.80}, which is not among the methods"
                )
            _require(column, _COLUMN, f"{where}: column {name!r:.80}")
            most = len(head["seeds"]) if methods[name]["random"] else 1
            count = len(column["values"])
            if count > most or lengths.setdefault(name, count) != count:
                raise InvalidDatasetError(
                    f"{where}: column {name!r:.80} has {count} values; expected {lengths.get(name, most)}, one for "
                    "each seed that it was run with, on every graph as many"
                )
    return {**{key: head[key] for key in _HEAD if key != "format"}, "graphs": list(graphs.values())}


def _parsed(line: str) -> Any:
    """What a line holds; ``None``: no JSON."""
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _require(value: Any, fields: _Fields, where: str) -> None:
    """Refuses what does not have exactly these keys, each with what it is to hold."""
    if not isinstance(value, dict) or value.keys() != set(fields):
        raise InvalidDatasetError(f"{where}: expected {', '.join(fields)}")
    for key, (words, holds) in fields.items():
        if not holds(value[key]):
            raise InvalidDatasetError(f"{where}: {key} = {value[key]!r:.80}; expected {words}")


def _whole(value: Any) -> Any:
    """Whole numbers without a point: values are bytes or nanoseconds."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, Mapping):
        return {key: _whole(item) for key, item in value.items()}
    return [_whole(item) for item in value] if isinstance(value, list) else value
