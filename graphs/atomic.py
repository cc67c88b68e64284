"""Files appear whole or not at all: written under a temporary name, then renamed."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

#: Of temporary files.
_SUFFIX = ".tmp"


@contextmanager
def naming(path: str | os.PathLike[str]) -> Iterator[None]:
    """Lets an error of the system that names no file, or a temporary one beside it, name this one."""
    try:
        yield
    except OSError as error:
        if error.errno is not None and (error.filename is None or _is_temporary(error.filename, Path(path))):
            error.filename = os.fspath(path)
            del error.filename2  # of a renaming; None would be shown
        raise


def _is_temporary(name: object, target: Path) -> bool:
    """Whether it is what :func:`atomic_write` calls a file that shall become ``target``."""
    return isinstance(name, str) and Path(name).name.startswith(f".{target.name}.") and name.endswith(_SUFFIX)


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Opens a temporary file beside ``path``; it takes that name when the block ends without an error.

    Raises:
        OSError: The folder is missing or not writable, or the disk is full; it names a file, and ``path`` is as it was
            before.
    """
    target = Path(path)
    with (
        naming(target),
        tempfile.NamedTemporaryFile(
            dir=target.parent, prefix=f".{target.name}.", suffix=_SUFFIX, delete=False
        ) as f,
    ):
        try:
            yield f
            f.flush()
            # mkstemp makes private files; a result file gets the permissions that open() would have given it.
            mask = os.umask(0)
            os.umask(mask)
            os.chmod(f.name, 0o666 & ~mask)
            os.replace(f.name, target)
        except BaseException:
            Path(f.name).unlink(missing_ok=True)
            raise


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Writes UTF-8 text atomically."""
    with atomic_write(path) as f:
        f.write(text.encode("utf-8", "backslashreplace"))
