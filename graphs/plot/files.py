"""From a drawing to a picture file; matplotlib is loaded here and nowhere before."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import MissingExtraError, OpgymError
from ..atomic import atomic_write
from . import layout

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Suffixes of picture files.
FORMATS = (".svg", ".png", ".pdf")


def require_picture_path(path: str | os.PathLike[str]) -> None:
    """Refuses what could not be written as a picture, before any work is done.

    Raises:
        OpgymError: The suffix names no picture format.
        MissingExtraError: matplotlib is not installed.
    """
    if Path(path).suffix.lower() not in FORMATS:
        expected = ", ".join(FORMATS)
        raise OpgymError(f"picture {os.fspath(path)!r}; expected a name that ends in one of {expected}")
    _import_matplotlib()


def drawn(path: str | os.PathLike[str] | None, draw: Callable[[], Figure]) -> Figure:
    """Draws in the style of the house, and writes the picture atomically if there is a path.

    Raises:
        OpgymError: The suffix names no picture format.
        MissingExtraError: matplotlib is not installed.
    """
    if path is not None:
        require_picture_path(path)
    matplotlib = _import_matplotlib()
    with matplotlib.rc_context(layout.STYLE):
        figure = draw()
        if path is not None:
            kind = Path(path).suffix.lower()[1:]
            stamp = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {"Software": None}}[kind]
            with atomic_write(path) as f:
                figure.savefig(f, format=kind, dpi=200, metadata=stamp)
    return figure


def _import_matplotlib() -> Any:
    try:
        import matplotlib
    except ImportError as error:
        raise MissingExtraError(
            "a picture needs matplotlib, which is not installed; run: pip install 'opgym[plot]'"
        ) from error
    return matplotlib
