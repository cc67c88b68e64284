"""Settings that Hydra has composed, as plain data."""

from __future__ import annotations

from typing import Any


def plain_settings(config: Any) -> dict[str, Any]:
    """The settings of a run, without those of Hydra; every reference is replaced by what it refers to.

    Raises:
        OmegaConfBaseException: A reference to nothing or to a value of another type, or a setting without a value.
    """
    from omegaconf import OmegaConf

    own = OmegaConf.masked_copy(config, [key for key in config if key != "hydra"])
    plain = OmegaConf.to_container(own, resolve=True, throw_on_missing=True)
    assert isinstance(plain, dict)
    return {str(key): value for key, value in plain.items()}
