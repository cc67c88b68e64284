"""Files appear whole or not at all: written under a temporary name, then renamed."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Opens a temporary file beside ``path``; it takes that name when the block ends without an error.

    Raises:
        OSError: The folder is missing or not writable, or the disk is full; ``path`` is as it was before.
    """
    target = Path(path)
    with tempfile.NamedTemporaryFile(
        dir=target.parent, prefix=f".{target.name}.", suffix=".tmp", delete=False
    ) as f:
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
