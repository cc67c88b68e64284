"""Files appear whole or not at all: written under a temporary name, then renamed."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


@contextmanager
def naming(path: str | os.PathLike[str]) -> Iterator[None]:
    """Lets an error of the system that names no file, such as that of a full disk, name this one."""
    try:
        yield
    except OSError as error:
        if error.filename is None and error.errno is not None:
            error.filename = os.fspath(path)
        raise


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
            dir=target.parent, prefix=f".{target.name}.", suffix=".tmp", delete=False
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
