"""Which graphs are not independent of each other: copies, sizes and twins of one architecture."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from . import example, onnx_light, synthetic, zoo
from .catalogue import onnx_family


@dataclass(frozen=True)
class Relatives:
    """Where a graph belongs.

    Attributes:
        family: Architecture of a real graph, family of generators of a random one; ``"example"``; empty for a file.
        twins: What must not be counted twice: the group of families of a real graph whose members resemble each
            other, or the graph itself. Augmented copies belong to what they are copies of.
    """

    family: str
    twins: str


def relatives(graph: str) -> Relatives:
    """The relatives of a graph.

    Args:
        graph: Its id or path.

    Raises:
        UnknownIdError: No such graph in the zoo.
    """
    base = graph.partition("#")[0]
    if base.startswith(zoo.PREFIX):
        entry = zoo.entry(base)
        return Relatives(entry.family, entry.group)
    if base.startswith(synthetic.PREFIX):
        return Relatives(base.removeprefix(synthetic.PREFIX).partition("?")[0], base)
    if base.startswith(onnx_light.PREFIX):
        family = onnx_family(base)
        return Relatives(family, _groups().get(family, family))
    return Relatives("example" if base.startswith(example.PREFIX) else "", base)


@cache
def _groups() -> dict[str, str]:
    return {entry.family: entry.group for entry in zoo.manifest().entries.values()}
