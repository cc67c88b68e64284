"""The policy: which device the next group goes to, when all groups before it have one."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from ..networks.policy import PolicyNetwork
from .instance import DEVICE_WIDTH, EDGE_WIDTH, GROUP_WIDTH, Instance
from .shape import Shape

#: Numbers of a head.
_HEAD_WIDTH = 16
#: Most that one group likes to be where another is.
_MOST_LIKING = 4.0


class Known(NamedTuple):
    """What the policy knows of a problem before anything is decided.

    Attributes:
        group: Of each group, ``[groups, width]``.
        liking: How much a group, when it is decided, likes to be where an earlier one is, ``[heads, groups, earlier
            groups]``; 0 for itself and for later ones.
    """

    group: Tensor
    liking: Tensor


class MessageLayer(nn.Module):
    """Groups hear what they read from and what reads from them, and keep what they were.

    Args:
        width: Numbers per group.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.from_writer = nn.Linear(width + EDGE_WIDTH, width)
        self.from_reader = nn.Linear(width + EDGE_WIDTH, width)
        self.update = nn.Linear(3 * width, width)
        self.norm = nn.LayerNorm(width)

    def forward(self, groups: Tensor, graph: Instance) -> Tensor:
        """New groups from groups, ``[groups, width]``."""
        heard = [
            _gathered(says(torch.cat([groups[end], graph.edge], dim=1)), other, len(groups))
            for says, end, other in (
                (self.from_writer, graph.writer, graph.reader),
                (self.from_reader, graph.reader, graph.writer),
            )
        ]
        changed: Tensor = self.norm(groups + functional.relu(self.update(torch.cat([groups, *heard], dim=1))))
        return changed


class Policy(PolicyNetwork):
    """Scores devices for one group after the other; devices that are alike are treated alike.

    A device is scored by what the environment says of it for this group (``DEVICE_FIELDS``), by how much the group
    likes the groups that are there, by the mean of both over all devices, and by the group itself. So the number of
    devices is anything, and what they are comes from the times and bytes that they have.

    Args:
        shape: Its shape.
    """

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        width, self.heads = shape.width, shape.heads
        self.read = nn.Linear(GROUP_WIDTH, width)
        self.rounds = nn.ModuleList(MessageLayer(width) for _ in range(shape.rounds))
        self.asks = nn.Linear(width, shape.heads * _HEAD_WIDTH)
        self.offers = nn.Linear(width, shape.heads * _HEAD_WIDTH)
        self.of_group = nn.Linear(width, width)
        self.of_device = nn.Linear(DEVICE_WIDTH + shape.heads, width, bias=False)
        self.of_all = nn.Linear(DEVICE_WIDTH + shape.heads, width, bias=False)
        self.inner = nn.Linear(width, width)
        self.score = nn.Linear(width, 1)
        with torch.no_grad():
            self.score.weight.mul_(0.1)  # untrained, all devices are about as good
            self.score.bias.zero_()

    def known(self, graph: Instance) -> Known:
        """What there is to know before anything is decided."""
        groups = functional.relu(self.read(graph.group))
        for layer in self.rounds:
            groups = layer(groups, graph)
        asks, offers = self._split(self.asks(groups)), self._split(self.offers(groups))
        liking = torch.tanh(asks @ offers.transpose(1, 2) / math.sqrt(_HEAD_WIDTH)) * _MOST_LIKING
        # The more groups there are, the less each of them counts.
        count = torch.arange(1, len(groups) + 1, device=groups.device).sqrt()
        return Known(self.of_group(groups), liking.tril(-1) / count[:, None])

    def scores(self, own: Tensor, devices: Tensor, liked: Tensor) -> Tensor:
        """Scores of devices for groups, ``[..., devices]``; of a softmax the logits.

        Args:
            own: What is known of each group, ``[..., width]``.
            devices: What the environment says of each device, ``[..., devices, DEVICE_WIDTH]``.
            liked: How much it likes the groups that are there, ``[..., devices, heads]``.
        """
        said = torch.cat([devices, liked], dim=-1)
        together = own.unsqueeze(-2) + self.of_device(said) + self.of_all(said.mean(-2, keepdim=True))
        scores: Tensor = self.score(functional.relu(self.inner(functional.relu(together)))).squeeze(-1)
        return scores

    def forward(self, graph: Instance, devices: Tensor, legal: Tensor, chosen: Tensor) -> Tensor:
        """Logarithms of the probabilities of devices in whole placements, group by group.

        Args:
            graph: The problem.
            devices: What the environment said of each device when a group was decided, ``[placements, groups, devices,
                DEVICE_WIDTH]``.
            legal: Where the group may run, ``[placements, groups, devices] bool``.
            chosen: Device of each group, ``[placements, groups] int64``.

        Returns:
            ``[placements, groups, devices]``; very small where a group may not run.
        """
        known = self.known(graph)
        there = functional.one_hot(chosen, devices.shape[2]).to(known.liking.dtype)
        liked = torch.einsum("hij,bjd->bidh", known.liking, there)
        return log_probabilities(self.scores(known.group.expand(len(chosen), -1, -1), devices, liked), legal)

    def _split(self, rows: Tensor) -> Tensor:
        """``[groups, heads x numbers] -> [heads, groups, numbers]``."""
        return rows.view(len(rows), self.heads, _HEAD_WIDTH).transpose(0, 1)


def log_probabilities(scores: Tensor, legal: Tensor) -> Tensor:
    """Logarithms of probabilities, from scores; as good as never where it is not legal, but finite."""
    return functional.log_softmax(scores.masked_fill(~legal, -1e9), dim=-1)


def _gathered(said: Tensor, at: Tensor, groups: int) -> Tensor:
    """What each group hears: the sum over the square root of how many say something, ``[groups, width]``."""
    heard = said.new_zeros(groups, said.shape[1]).index_add(0, at, functional.relu(said))
    return heard / torch.bincount(at, minlength=groups).clamp(min=1).sqrt()[:, None]
