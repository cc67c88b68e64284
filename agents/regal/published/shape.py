"""The shape of the published policy; nothing here needs torch."""

from __future__ import annotations

from dataclasses import dataclass

from ....errors import unknown_id
from ...search.options import at_least, of_type

MESSAGES, SEQUENCE = "messages", "sequence"


@dataclass(frozen=True)
class Shape:
    """The shape of a policy.

    Attributes:
        encoder: ``"messages"`` along edges, or ``"sequence"``: an LSTM over ops in topological order.
        width: Numbers per op.
        rounds: Rounds of messages, or layers of the LSTM.
        edge_messages: Whether messages see the bytes of their edge.
        autoregressive: Whether a decision sees the earlier ones of its op.
        value_head: Whether it says what reward it expects.
    """

    encoder: str
    width: int
    rounds: int
    edge_messages: bool
    autoregressive: bool
    value_head: bool

    def __post_init__(self) -> None:
        if self.encoder not in (MESSAGES, SEQUENCE):
            raise unknown_id("encoder", str(self.encoder), [MESSAGES, SEQUENCE])
        at_least(2, most=4096, width=self.width)
        at_least(1, most=256, rounds=self.rounds)
        of_type(
            bool, "true or false", edge_messages=self.edge_messages, autoregressive=self.autoregressive,
            value_head=self.value_head,
        )  # fmt: skip
