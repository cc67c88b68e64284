"""A file that only grows, by whole records."""

from __future__ import annotations

import os
from pathlib import Path


class AppendFile:
    """Records that reach the operating system one by one, so that a killed process leaves at most one torn.

    Args:
        path: Made if absent.
        size: How much of it stays, in bytes.

    Raises:
        OSError: It cannot be opened for writing.
    """

    def __init__(self, path: Path, *, size: int = 0) -> None:
        self.path, self._size = path, size
        self._descriptor: int | None = os.open(
            path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666
        )
        os.ftruncate(self._descriptor, size)

    def append(self, record: bytes) -> None:
        """Writes a record, whole or not at all.

        Raises:
            OSError: It cannot be written, as when the disk is full; the records before it stay.
            ValueError: The file is closed.
        """
        if self._descriptor is None:
            raise ValueError(f"{self.path} is closed")
        written = 0
        try:
            while written < len(
                record
            ):  # less is written where the disk fills up; the next call then says so
                written += os.write(self._descriptor, record[written:])
        except OSError as error:
            os.ftruncate(self._descriptor, self._size)
            raise explained(error, self.path) from error
        self._size += len(record)

    def sync(self) -> None:
        """Waits for the disk."""
        if self._descriptor is not None:
            try:
                os.fsync(self._descriptor)
            except OSError as error:
                raise explained(error, self.path) from error

    def close(self) -> None:
        """Closes it; a second time does nothing."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def explained(error: OSError, path: Path) -> OSError:
    """The same error, which names the file and says what to do."""
    reason = error.strerror or str(error)
    return OSError(
        error.errno,
        f"{reason}; what was logged before is kept; put it right and go on with resume=true",
        str(path),
    )
