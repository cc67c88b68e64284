"""Text files from anywhere, whole: the errors of reading them, before any format is looked at."""

from __future__ import annotations

import os
from pathlib import Path

from ...errors import ImportFailedError

#: A larger file is refused before it is read.
MAX_FILE_BYTES = 512 * 2**20


def read_text(path: str | os.PathLike[str], what: str) -> str:
    """The text of a UTF-8 file; a byte-order mark and any line ends are accepted.

    Args:
        path: The file.
        what: What it should be, for messages.

    Raises:
        ImportFailedError: It is absent, a folder, too large, or no text.
    """
    file = Path(path)
    try:
        if file.is_dir():
            raise ImportFailedError(f"{path}: is a folder; expected {what}")
        size = file.stat().st_size
        if size > MAX_FILE_BYTES:
            raise ImportFailedError(f"{path}: has {size} bytes; at most {MAX_FILE_BYTES} are read")
        text = file.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        raise ImportFailedError(f"{path}: no such file") from None
    except UnicodeDecodeError as problem:
        raise ImportFailedError(f"{path}: not UTF-8 text (byte {problem.start}); expected {what}") from None
    except (OSError, ValueError) as problem:
        raise ImportFailedError(f"{path}: cannot be read ({problem}); expected {what}") from None
    return text.replace("\r\n", "\n") if "\r" in text else text
