"""Drawing of decisions from preferences, and the noise that makes them explore."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


def drawn(logits: Tensor, generator: torch.Generator) -> Tensor:
    """Draws by probabilities that are the softmax of logits, ``[..., choices] -> [...] int64``.

    The largest of logits and Gumbel noise is drawn with those probabilities (Gumbel 1954).
    """
    uniform = torch.empty_like(logits).uniform_(generator=generator)
    return uniform.log_().neg_().log_().neg_().add_(logits).argmax(-1)


@dataclass(frozen=True, eq=False)
class Noise:
    """Normal noise in preferences.

    Attributes:
        values: Of each preference, in units of how far preferences are from 0; ``None``: there is none.
    """

    values: Tensor | None = None

    @classmethod
    def of(cls, shape: tuple[int, ...], share: float, generator: torch.Generator) -> Noise:
        """Noise for preferences of a shape, a share of what they are."""
        if share == 0:
            return cls()
        return cls(torch.empty(shape, device=generator.device).normal_(std=share, generator=generator))

    def at(self, steps: slice) -> Noise:
        """That of some steps, ``[placements, steps, choices]``."""
        return self if self.values is None else Noise(self.values[:, steps])

    def added(self, logits: Tensor, spread: Tensor) -> Tensor:
        """Preferences with noise.

        Args:
            logits: ``[..., choices]``.
            spread: How far from 0 they are; no gradient flows into it.
        """
        return logits if self.values is None else logits + self.values * spread.detach()
