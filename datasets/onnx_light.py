"""Real convolutional networks that come inside the onnx package; their weights are filled constants."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ..errors import ImportFailedError, unknown_id
from ..graphs.readers import Imported
from ..graphs.readers import read as read_file

PREFIX = "onnx-light/"
_FILE_PREFIX = "light_"


def ids() -> list[str]:
    """All ids of this family, e.g. ``onnx-light/resnet50``."""
    return [PREFIX + name for name in _files()]


def path(name: str) -> Path:
    """The file of a model.

    Args:
        name: One of :func:`ids`, with or without the prefix.

    Raises:
        UnknownIdError: With the nearest ids.
        ImportFailedError: The installed onnx comes without its models.
    """
    files = _files()
    if not files:
        raise ImportFailedError(
            f"{PREFIX}*: the installed onnx has no test models (onnx/backend/test/data/light)"
        )
    file = files.get(name.removeprefix(PREFIX))
    if file is None:
        raise unknown_id("dataset", PREFIX + name.removeprefix(PREFIX), ids())
    return file


def read(name: str, **options: Any) -> Imported:
    """Reads a model; ``options`` are those of ``opgym.graphs.readers.read``."""
    return read_file(path(name), **options)


@cache
def _files() -> dict[str, Path]:
    spec = find_spec("onnx")  # finds the package without importing it
    folders = spec.submodule_search_locations if spec is not None else None
    if not folders:
        return {}
    light = Path(next(iter(folders))) / "backend" / "test" / "data" / "light"
    return {f.stem.removeprefix(_FILE_PREFIX): f for f in sorted(light.glob(f"{_FILE_PREFIX}*.onnx"))}
