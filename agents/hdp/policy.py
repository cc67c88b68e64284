"""HDP's policy: a grouper, and a placer of groups."""

from __future__ import annotations

from torch import nn

from ..networks.policy import PolicyNetwork
from .grouper import Grouper
from .sequence import SequencePlacer
from .shape import Shape


class Policy(PolicyNetwork):
    """Puts ops into groups, and groups on devices.

    Untrained, all matrices are uniform by Glorot and Bengio (2010), and gates of memory begin open, as in the released
    code.

    Args:
        shape: Its shape.
    """

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.grouper = Grouper(shape)
        self.placer = SequencePlacer(shape)
        for name, weight in self.named_parameters():
            if weight.dim() > 1:
                nn.init.xavier_uniform_(weight)
            else:
                nn.init.zeros_(weight)
                if "bias_ih" in name:  # of the gates in, keep, new, out
                    nn.init.ones_(weight[len(weight) // 4 : len(weight) // 2])
