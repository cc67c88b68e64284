"""Files that a command is asked to write: refused before the work, not after it."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from ..graphs.readers import Imported

#: Options whose files are pictures.
_PICTURES = ("--plot", "--map")


def require_files(model: str, paths: Mapping[str, Path | None]) -> None:
    """Refuses files that a command could not write about a model, or had better not.

    Args:
        model: The file or the id that the command reads.
        paths: Option and file; ``--plot`` and ``--map`` are pictures.

    Raises:
        typer.BadParameter: Naming the option, the path and the reason.
        OpgymError: The picture has no known format.
    """
    require_distinct(paths)
    for picture in filter(None, map(paths.get, _PICTURES)):
        from ..graphs.plot import require_picture_path

        require_picture_path(picture)
    for option, path in paths.items():
        if path is None:
            continue
        require_writable(path, option)
        if path.exists() and os.path.exists(model) and os.path.samefile(path, model):
            raise typer.BadParameter(f"{path} is the model itself; give another name", param_hint=option)


def require_no_weights(imported: Imported, paths: Mapping[str, Path | None]) -> None:
    """Refuses files that hold the weights of the model.

    Raises:
        typer.BadParameter: Naming the option and the path.
    """
    given = {option: path for option, path in paths.items() if path is not None and path.exists()}
    if not given or imported.origin is None:
        return
    from ..graphs.writers.onnx import weight_files

    weights = weight_files(imported)
    for option, path in given.items():
        if any(map(path.samefile, weights)):
            raise typer.BadParameter(
                f"{path} holds weights of the model; give another name", param_hint=option
            )


def require_writable(path: Path, option: str) -> None:
    """Refuses a file that could not be written.

    Raises:
        typer.BadParameter: Naming the option, the path and the reason.
    """
    if path.exists() and not path.is_file():
        kind = "a folder" if path.is_dir() else "not a regular file"
        raise typer.BadParameter(f"{path} is {kind}; give the name of a file", param_hint=option)
    _require_folder(path.parent, path, option)


def require_folder(path: Path, option: str) -> None:
    """Makes a folder (with its parents), and refuses one that cannot be made or written into.

    Raises:
        typer.BadParameter: Naming the option, the path and the reason.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise typer.BadParameter(f"{path} cannot be made: {error.strerror}", param_hint=option) from None
    _require_folder(path, path, option)


def require_distinct(paths: Mapping[str, Path | None]) -> None:
    """Refuses two outputs under one name.

    Raises:
        typer.BadParameter: Naming both options.
    """
    seen: dict[str, str] = {}
    for option, path in paths.items():
        if path is None:
            continue
        other = seen.setdefault(os.path.realpath(path), option)
        if other != option:
            raise typer.BadParameter(f"{path} is already the file of {other}", param_hint=option)


def _require_folder(folder: Path, path: Path, option: str) -> None:
    if not folder.is_dir():
        raise typer.BadParameter(f"{path}: there is no folder {folder}; make it first", param_hint=option)
    try:
        # Trying is the only test that holds for read-only file systems and for the superuser too.
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise typer.BadParameter(f"{path} cannot be written: {error.strerror}", param_hint=option) from None
