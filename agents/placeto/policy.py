"""Placeto's policy: from a graph with a placement, and a group of it, to a distribution over devices for that group."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from ..networks.policy import PolicyNetwork
from .instance import Instance
from .shape import Shape

#: Fields of a group beside where it is: run time, bytes, whether it is the current one, whether it was visited.
_FIELDS = 4


class Aggregator(nn.Module):
    """What a set of groups says: ``relu(g(sum of relu(f(x))))`` (Addanki et al. 2019).

    Args:
        width: Numbers per group.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.said = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
        self.heard = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())


class Messages(Aggregator):
    """Message passing along one direction of the edges; all its steps have the same weights.

    ``x <- g(sum over neighbours of f(x)) + x_0``, x_0 being what is known of a group itself, as in the released code:
    with as many steps as the longest path is long, it hears of all groups from which one leads to it.

    Args:
        width: Numbers per group.
        rounds: Steps.
    """

    def __init__(self, width: int, rounds: int) -> None:
        super().__init__(width)
        self.rounds = rounds

    def forward(self, own: Tensor, weights: Tensor) -> Tensor:
        """New groups, ``[groups, states, width]``.

        Args:
            own: What is known of each itself, ``[groups, states, width]``.
            weights: Of whom a group hears, ``[groups, groups]``.
        """
        hears = (weights.sum(dim=1) > 0)[:, None, None]
        groups = own
        for _ in range(self.rounds):
            # the states of a group are columns of one matrix: all of them take a single product
            arrived = (weights @ self.said(groups).flatten(1)).view_as(own)
            groups = own + self.heard(arrived) * hears
        return groups


class Pool(Aggregator):
    """What the groups around a group say, however far away they are."""

    def forward(self, groups: Tensor, weights: Tensor) -> Tensor:
        """What they say together, ``[states, width]``.

        Args:
            groups: ``[groups, states, width]``.
            weights: Of whom is heard in each state, ``[states, groups]``.
        """
        heard: Tensor = self.heard(torch.einsum("sg,gsw->sw", weights, self.said(groups)))
        return heard


class Policy(PolicyNetwork):
    """Says where a group belongs, given where the others are.

    Args:
        shape: Its shape.
    """

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        width = shape.width
        self.embed = nn.Sequential(
            nn.Linear(_FIELDS + shape.devices, width), nn.ReLU(),
            nn.Linear(width, width), nn.ReLU(),
            nn.Linear(width, width),
        )  # fmt: skip
        self.down, self.up = Messages(width, shape.rounds), Messages(width, shape.rounds)
        both = 2 * width
        self.ancestors, self.descendants, self.parallel = Pool(both), Pool(both), Pool(both)
        self.head = nn.Sequential(
            nn.Linear(4 * both, 8 * both), nn.ReLU(),
            nn.Linear(8 * both, 4 * both), nn.ReLU(),
            nn.Linear(4 * both, shape.devices),
        )  # fmt: skip
        for layer in self.modules():
            if isinstance(layer, nn.Linear):
                nn.init.xavier_uniform_(layer.weight)
                nn.init.zeros_(layer.bias)

    def forward(self, graph: Instance, device: Tensor, current: Tensor) -> Tensor:
        """Logarithms of probabilities, ``[states, devices]``; -inf where the current group may not run.

        Args:
            graph: The problem.
            device: Of each group in each state, ``[groups, states] int64``.
            current: The group that is placed in each state, ``[states] int64``; earlier ones have been visited.
        """
        own = self.embed(self._fields(graph, device, current))
        groups = torch.cat([self.down(own, graph.parents), self.up(own, graph.children)], dim=2)
        around = [
            self.ancestors(groups, graph.ancestors[current]),
            self.descendants(groups, graph.descendants[current]),
            self.parallel(groups, graph.parallel[current]),
            groups[current, torch.arange(len(current), device=current.device)],
        ]
        logits = self.head(torch.cat(around, dim=1)).masked_fill(~graph.allowed[current], -torch.inf)
        return functional.log_softmax(logits, dim=1)

    def _fields(self, graph: Instance, device: Tensor, current: Tensor) -> Tensor:
        """What is known of each group in each state, ``[groups, states, 4 + devices]``."""
        groups, states = device.shape
        index = torch.arange(groups, device=device.device)[:, None]
        there = torch.arange(graph.allowed.shape[1], device=device.device)
        marks = torch.stack([index == current, index < current], dim=2)
        fixed = graph.fields[:, None, :].expand(groups, states, 2)
        return torch.cat([fixed, marks.float(), (device[:, :, None] == there).float()], dim=2)
