"""GDP's placement network: segment-recurrent attention over ops in topological order, and the superposition gate."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional


class SegmentAttention(nn.Module):
    """Attention of each op to its segment and to the one before, without any position (Zhou et al. 2019, section 3.2).

    As in Transformer-XL (Dai et al. 2019) the segment before is what the layer below has left of it, and no gradient
    flows into it. All segments are computed at once: what a layer reads of the segment before comes from the layer
    below, never from itself. Time and memory grow linearly with the number of ops.

    Args:
        width: Numbers per op.
        heads: Of attention.
        segment: Ops of a segment.
    """

    def __init__(self, width: int, heads: int, segment: int) -> None:
        super().__init__()
        self.heads, self.segment = heads, segment
        self.query = nn.Linear(width, width)
        self.key_value = nn.Linear(width, 2 * width)
        self.out = nn.Linear(width, width)

    def forward(self, ops: Tensor) -> Tensor:
        """What each op hears, ``[ops, width]``, from ops in topological order."""
        count, width = ops.shape
        segment = min(self.segment, count)
        segments = -(-count // segment)
        filled = functional.pad(ops, (0, 0, 0, segments * segment - count)).view(segments, segment, width)
        before = torch.cat([torch.zeros_like(filled[:1]), filled[:-1].detach()])
        query = self._split(self.query(filled))
        key, value = (
            self._split(part) for part in self.key_value(torch.cat([before, filled], dim=1)).chunk(2, dim=-1)
        )
        heard = functional.scaled_dot_product_attention(
            query, key, value, attn_mask=_visible(count, segments, segment, ops.device)
        )
        joined = heard.transpose(1, 2).reshape(segments * segment, width)[:count]
        out: Tensor = self.out(joined)
        return out

    def _split(self, rows: Tensor) -> Tensor:
        """``[segments, rows, width] -> [segments, heads, rows, width / heads]``."""
        segments, count, width = rows.shape
        return rows.view(segments, count, self.heads, width // self.heads).transpose(1, 2)


def _visible(count: int, segments: int, segment: int, device: torch.device) -> Tensor:
    """Which rows of the segment before and of its own are ops, ``[segments, 1, 1, 2 x segment] bool``."""
    first = torch.arange(segments, device=device)[:, None] * segment - segment
    position = first + torch.arange(2 * segment, device=device)
    return ((position >= 0) & (position < count))[:, None, None]


class Superposition(nn.Module):
    """The gate that lets one network serve many graphs: what a layer reads is multiplied by what is known of the graph.

    ``x' = layer(c(x_0) * x)`` (Zhou et al. 2019, section 3.4), x_0 being what the graph network says. Untrained it is
    near 1, so that it changes nothing.

    Args:
        width: Numbers per op.
        whole_graph: Whether x_0 is the mean over the graph (Zhou et al. 2020, GO), or each op's own.
    """

    def __init__(self, width: int, *, whole_graph: bool) -> None:
        super().__init__()
        self.whole_graph = whole_graph
        self.condition = nn.Linear(width, width)
        with torch.no_grad():
            self.condition.weight.mul_(0.1)
            self.condition.bias.zero_()

    def forward(self, ops: Tensor, embedded: Tensor) -> Tensor:
        """Gated inputs, ``[ops, width]``."""
        known = embedded.mean(0, keepdim=True) if self.whole_graph else embedded
        return ops * (2 * torch.sigmoid(self.condition(known)))


class PlacementLayer(nn.Module):
    """Attention and a small network, each behind a gate.

    Args:
        width: Numbers per op.
        heads: Of attention.
        segment: Ops of a segment.
        attention: Whether there is attention.
        superposition: ``"op"``, ``"graph"`` or ``"none"``.
    """

    def __init__(self, width: int, heads: int, segment: int, *, attention: bool, superposition: str) -> None:
        super().__init__()
        self.attention = SegmentAttention(width, heads, segment) if attention else None
        self.gate = (
            None if superposition == "none" else Superposition(width, whole_graph=superposition == "graph")
        )
        self.inner = nn.Sequential(nn.Linear(width, 2 * width), nn.ReLU(), nn.Linear(2 * width, width))
        self.norm_attention = nn.LayerNorm(width) if attention else None
        self.norm_inner = nn.LayerNorm(width)

    def forward(self, ops: Tensor, embedded: Tensor) -> Tensor:
        """New ops, ``[ops, width]``.

        Args:
            ops: From the layer below.
            embedded: What the graph network says of them, ``[ops, width]``.
        """
        gated = ops if self.gate is None else self.gate(ops, embedded)
        if self.attention is not None and self.norm_attention is not None:
            gated = self.norm_attention(gated + self.attention(gated))
        changed: Tensor = self.norm_inner(gated + self.inner(gated))
        return changed
