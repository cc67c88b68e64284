"""What a learner needs beside the core of opgym."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec

from ...errors import MissingExtraError


def require_packages(name: str, packages: Sequence[str]) -> None:
    """Refuses to go on without what extra ``train`` brings.

    Args:
        name: Of the learner.
        packages: That it needs, by the names that they are imported by.

    Raises:
        MissingExtraError: With the names of the packages.
    """
    missing = [package for package in packages if find_spec(package) is None]
    if missing:
        raise MissingExtraError(
            f"agent {name!r} needs {', '.join(missing)}, which is not installed; run: pip install 'opgym[train]'"
        )
