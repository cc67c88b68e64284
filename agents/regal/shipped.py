"""Weights that come with the package, one folder each."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from ...errors import OpgymError, unknown_id
from ..saved import AGENT_FILE

if TYPE_CHECKING:
    from .base import ProposalLearner
    from .learned import Learned

#: Values of the option ``weights`` that are no name.
SHIPPED, NONE = "shipped", "none"
FOLDER = Path(__file__).with_name("weights")
_ABLATIONS = "ablations"
#: How names of further trainings of an agent end.
_SEED = re.compile(r"-seed[0-9]+$")


def weight_names(*, ablations: bool = False) -> list[str]:
    """Names of all weights that come with the package, those of one agent together, what it uses by itself first.

    Args:
        ablations: Whether those are among them that only show what an ingredient is worth, ``"ablations/NAME"``.
    """
    names = [file.parent.name for file in FOLDER.glob(f"*/{AGENT_FILE}")]
    if ablations:
        names += [
            f"{_ABLATIONS}/{file.parent.name}" for file in (FOLDER / _ABLATIONS).glob(f"*/{AGENT_FILE}")
        ]
    return sorted(names, key=lambda name: (_SEED.sub("", name), name))


def folder_of(weights: str, learner: str) -> Path | None:
    """Where weights are.

    Args:
        weights: The option: ``"shipped"``, a name, or a folder.
        learner: Name of the learner, whose own shipped weights have the same name.

    Returns:
        ``None`` if none are shipped for the learner.

    Raises:
        UnknownIdError: No such weights, with the nearest names.
    """
    if weights == SHIPPED:
        return FOLDER / learner if (FOLDER / learner / AGENT_FILE).is_file() else None
    if weights in weight_names(ablations=True):
        return FOLDER / weights
    if (Path(weights) / AGENT_FILE).is_file():
        return Path(weights)
    raise unknown_id(
        "weights (a name, or the folder of a saved agent)",
        weights,
        [SHIPPED, NONE, *weight_names(ablations=True)],
    )


@lru_cache(maxsize=16)
def learned_of(kind: type[ProposalLearner], folder: Path) -> Learned:
    """What a saved agent has learned; read once."""
    learned = kind.load(folder).learned
    if learned is None:
        raise OpgymError(f"{folder}: holds no weights")
    return learned
