"""REGAL as published, and its graph-as-sequence baseline."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..registry import register
from ..sb3.documentation import lists_all_options
from ..search.options import at_least
from .base import ProposalLearner
from .network import MESSAGES, SEQUENCE, Network


@register
@lists_all_options
@dataclass(frozen=True)
class Regal(ProposalLearner):
    """REGAL (Paliwal et al. 2020): a graph neural network proposes from where BRKGA draws its mutants.

    Attributes:
        rounds: Rounds of messages.
        edge_messages: Whether messages see the bytes of their edge.
    """

    rounds: int = 4
    edge_messages: bool = True

    name: ClassVar[str] = "regal"
    summary: ClassVar[str] = "brkga whose mutants are drawn where a graph neural network expects good keys"

    def network(self) -> Network:
        return Network(
            MESSAGES,
            self.width,
            self.rounds,
            self.edge_messages,
            self.autoregressive,
            self.baseline == "value",
        )


@register
@lists_all_options
@dataclass(frozen=True)
class GraphAsSequence(ProposalLearner):
    """REGAL with the graph as a sequence (Paliwal et al. 2020, baseline GAS): an LSTM over ops in topological order.

    The control of the graph neural network: everything else is the same.

    Attributes:
        layers: Of the LSTM.
    """

    layers: int = 1

    name: ClassVar[str] = "gas"
    summary: ClassVar[str] = "regal with a recurrent network over the ops instead of messages along edges"
    control: ClassVar[bool] = True

    def network(self) -> Network:
        at_least(1, layers=self.layers)
        return Network(
            SEQUENCE, self.width, self.layers, False, self.autoregressive, self.baseline == "value"
        )
