"""From a row of numbers for each op to Beta distributions of its genes, quantised."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

from .instance import BINS, DECISIONS

#: Mean and variance share of the uniform distribution.
_UNIFORM = (0.5, 1 / 3)
#: Untrained heads look at an op a little only, so that what they prefer is near the uniform distribution.
_SMALL = 0.1
#: Decisions about affinities, which nobody asks of an op that has one device.
_OF_AFFINITIES = DECISIONS - 2


class BetaHeads(nn.Module):
    """A distribution over 16 means and 16 variances for each Beta distribution of an op.

    Decisions of an op are made one after the other: mean and variance of the affinity to device 0, of that to device
    1, of the priority. Ops are independent of each other, given their rows.

    Args:
        width: Numbers per op.
        autoregressive: Whether a decision sees the earlier ones of its op.
        spread: Untrained, the heads prefer what is near the uniform distribution: standard deviation of that
            preference. (Uniform bins would be the proposals of ``idrs``, which are worse than none.)
    """

    def __init__(self, width: int, *, autoregressive: bool = True, spread: float = 0.25) -> None:
        super().__init__()
        self.hidden = nn.Linear(width, width)
        self.out = nn.ModuleList(nn.Linear(width, BINS) for _ in range(DECISIONS))
        self.earlier = (
            nn.ModuleList(nn.Embedding(BINS, width) for _ in range(DECISIONS - 1)) if autoregressive else None
        )
        middle = (torch.arange(BINS) + 0.5) / BINS
        with torch.no_grad():
            for decision, head in enumerate(self.out):
                assert isinstance(head, nn.Linear)
                head.weight.mul_(_SMALL)
                head.bias.copy_(-((middle - _UNIFORM[decision % 2]) ** 2) / (2 * spread**2))
            for table in self.earlier or ():
                assert isinstance(table, nn.Embedding)
                table.weight.mul_(_SMALL)

    def sample(self, nodes: Tensor, two_devices: Tensor, samples: int, generator: torch.Generator) -> Tensor:
        """Draws bins, ``[samples, nodes, 6] int64``.

        Args:
            nodes: ``[nodes, width]``.
            two_devices: Which ops have affinities, ``[nodes] bool``; bins of others are 0.
            samples: How many to draw.
            generator: Source of randomness.
        """
        drawn = torch.rand((samples, len(nodes), DECISIONS, 1), generator=generator)

        def draw(decision: int, logits: Tensor) -> Tensor:
            rising = functional.softmax(logits, dim=-1).cumsum(-1)
            return (rising < drawn[..., decision, :]).sum(-1).clamp(max=BINS - 1)

        return self._decided(nodes, two_devices, draw)

    def greedy(self, nodes: Tensor, two_devices: Tensor) -> Tensor:
        """The most likely bins, one decision after the other, ``[nodes, 6] int64``."""
        return self._decided(nodes, two_devices, lambda decision, logits: logits.argmax(-1))

    def log_prob(self, nodes: Tensor, two_devices: Tensor, bins: Tensor) -> tuple[Tensor, Tensor]:
        """Of given bins, the logarithm of their probability and the entropy of the decisions.

        Args:
            nodes: ``[nodes, width]``.
            two_devices: Which ops have affinities, ``[nodes] bool``.
            bins: ``[..., nodes, 6] int64``.

        Returns:
            Sums over the decisions of each op, in nats, each ``[..., nodes]``.
        """
        total = torch.zeros(bins.shape[:-1], dtype=nodes.dtype)
        entropy = torch.zeros_like(total)
        context = self.hidden(nodes).expand(*bins.shape[:-1], -1)
        for decision in range(DECISIONS):
            asked = _asked(decision, two_devices)
            log_probs = functional.log_softmax(self.out[decision](functional.relu(context)), dim=-1)
            chosen = log_probs.gather(-1, bins[..., decision, None]).squeeze(-1)
            total = total + chosen * asked
            entropy = entropy - (log_probs.exp() * log_probs).sum(-1) * asked
            context = self._behind(context, decision, bins[..., decision], asked)
        return total, entropy

    def _decided(self, nodes: Tensor, two_devices: Tensor, choose: Callable[[int, Tensor], Tensor]) -> Tensor:
        context, bins = self.hidden(nodes), []
        for decision in range(DECISIONS):
            asked = _asked(decision, two_devices)
            chosen = choose(decision, self.out[decision](functional.relu(context))) * asked.long()
            bins.append(chosen)
            context = self._behind(context, decision, chosen, asked)
        return torch.stack(bins, dim=-1)

    def _behind(self, context: Tensor, decision: int, chosen: Tensor, asked: Tensor) -> Tensor:
        """What the next decision sees."""
        if self.earlier is None or decision == DECISIONS - 1:
            return context
        behind: Tensor = context + self.earlier[decision](chosen) * asked[:, None]
        return behind


def decisions_of(two_devices: Tensor) -> Tensor:
    """How many decisions are asked of each op, ``[nodes] float32``."""
    return torch.where(two_devices, float(DECISIONS), float(DECISIONS - _OF_AFFINITIES))


def _asked(decision: int, two_devices: Tensor) -> Tensor:
    """Whether a decision is asked of each op, ``[nodes] float32``."""
    return (
        two_devices.float()
        if decision < _OF_AFFINITIES
        else torch.ones_like(two_devices, dtype=torch.float32)
    )
