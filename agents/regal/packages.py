"""What learners of proposals need beside the core of opgym."""

from __future__ import annotations

from importlib.util import find_spec

from ...errors import MissingExtraError

_PACKAGES = ("torch", "safetensors")


def require_packages(name: str) -> None:
    """Refuses to go on without what extra ``train`` brings.

    Raises:
        MissingExtraError: With the names of the packages.
    """
    missing = [package for package in _PACKAGES if find_spec(package) is None]
    if missing:
        raise MissingExtraError(
            f"agent {name!r} needs {', '.join(missing)}, which is not installed; run: pip install 'opgym[train]'"
        )
