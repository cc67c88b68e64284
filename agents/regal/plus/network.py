"""The network of our own policy: messages along edges, and attention by how ops are related."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from ...networks.policy import PolicyNetwork
from ..task import FIELDS
from .batch import ATTENTION_KINDS, Batch, View
from .shape import Shape
from .structure import EDGE_WEIGHTS, NODE_FIELDS

#: What it says of an op: logit and spread of its position, and the logit of device 1.
OUTPUTS = 3
#: Untrained, a position is a little narrower than the uniform distribution.
_SPREAD = -1.0


class Layer(nn.Module):
    """One round: each op hears from its neighbours in both directions, then attends to four kinds of ops.

    Messages of a direction are summed twice, in equal shares and by the bytes that a reader accounts for. A quarter of
    the heads each attends to what runs before the op, what runs behind it, what is unrelated, and everything.

    Args:
        width: Numbers per op, a multiple of 4.
        messages: Whether it hears from neighbours; else it hears only itself.
    """

    def __init__(self, width: int, *, messages: bool) -> None:
        super().__init__()
        self.messages = messages
        self.norm = nn.LayerNorm(width)
        if messages:
            self.forwards = nn.Linear(width, width)
            self.backwards = nn.Linear(width, width)
        heard = 1 + 2 * len(EDGE_WEIGHTS) * messages
        self.update = nn.Sequential(nn.Linear(heard * width, width), nn.GELU(), nn.Linear(width, width))
        self.norm_attention = nn.LayerNorm(width)
        self.attend = nn.Linear(width, 3 * width)
        self.attended = nn.Linear(width, width)

    def forward(self, nodes: Tensor, batch: Batch) -> Tensor:
        """New ops from ops, ``[nodes, width]``."""
        seen = self.norm(nodes)
        heard = [seen]
        if self.messages:
            heard += [
                _heard(functional.gelu(self.forwards(seen)), batch.to_reader),
                _heard(functional.gelu(self.backwards(seen)), batch.to_writer),
            ]
        nodes = nodes + self.update(torch.cat(heard, dim=1))
        changed: Tensor = nodes + self.attended(self._attention(self.norm_attention(nodes), batch))
        return changed

    def _attention(self, nodes: Tensor, batch: Batch) -> Tensor:
        heads = self.attend(nodes).view(len(nodes), 3, ATTENTION_KINDS, -1).permute(2, 1, 0, 3)
        found = [
            torch.cat([_seen(view, *head) for view in views])
            for head, views in zip(heads, batch.views, strict=True)
        ]
        return torch.cat(found, dim=1)


def _seen(view: View, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """What the ops of a view find in those that they see, ``[ops, width of a head]``."""
    mask = None if view.mask is None else view.mask[None, None]
    query, key, value = query[None, None, view.ops], key[view.seen][None, None], value[view.seen][None, None]
    # of less than four dimensions there is no fast kernel
    found: Tensor = functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)
    return found.squeeze((0, 1))


def _heard(messages: Tensor, sums: Tensor) -> Tensor:
    """Sums of messages into each op, one for each weight, ``[nodes, weights * width]``."""
    heard: Tensor = torch.sparse.mm(sums, messages)
    return heard.view(-1, len(messages), messages.shape[1]).transpose(0, 1).reshape(len(messages), -1)


class PositionNetwork(PolicyNetwork):
    """From graphs to where each op is expected to stand, how sure that is, and on which device.

    Args:
        shape: Its shape; each round has weights of its own.
    """

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        width = shape.width
        self.embed = nn.Sequential(
            nn.Linear(len(NODE_FIELDS) + FIELDS, width), nn.GELU(), nn.Linear(width, width)
        )
        self.layers = nn.ModuleList(Layer(width, messages=shape.messages) for _ in range(shape.layers))
        self.head = nn.Sequential(
            nn.LayerNorm(width), nn.Linear(width, width), nn.GELU(), nn.Linear(width, OUTPUTS)
        )

    def forward(self, batch: Batch) -> Tensor:
        """Logit of the mean position, of the share of its largest variance, and of device 1, ``[nodes, 3]``."""
        nodes = self.embed(batch.nodes)
        for layer in self.layers:
            nodes = layer(nodes, batch)
        found: Tensor = self.head(nodes) + torch.tensor([0.0, _SPREAD, 0.0])
        return found
