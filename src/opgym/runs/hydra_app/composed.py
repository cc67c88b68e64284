"""Settings that Hydra has composed, as plain data."""

from __future__ import annotations

from typing import Any


def plain_settings(config: Any) -> dict[str, Any]:
    """The settings of a run, without those of Hydra; every reference is replaced by what it refers to.

    Raises:
        OmegaConfBaseException: A reference to nothing, or a setting without a value.
    """
    from omegaconf import OmegaConf

    plain = OmegaConf.to_container(config, resolve=False)
    assert isinstance(plain, dict)
    plain.pop("hydra", None)
    resolved = OmegaConf.to_container(OmegaConf.create(plain), resolve=True, throw_on_missing=True)
    assert isinstance(resolved, dict)
    return {str(key): value for key, value in resolved.items()}
