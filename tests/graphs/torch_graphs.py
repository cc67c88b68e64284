"""Helpers to look at graphs of torch modules."""

import torch.nn.functional as F
from torch import nn

from opgym.graphs import DIRECTIONS, VARIABLE, Graph


def kinds(graph: Graph, direction: str | None = None) -> list[str]:
    """Kinds of all ops but variables, in program order."""
    wanted = range(len(DIRECTIONS)) if direction is None else [DIRECTIONS.index(direction)]
    return [
        graph.kind(v)
        for v in range(graph.num_ops)
        if graph.op_direction[v] in wanted and graph.kind(v) != VARIABLE
    ]


def ops_of(graph: Graph, kind: str) -> list[int]:
    return [v for v in range(graph.num_ops) if graph.kind(v) == kind]


def named(graph: Graph, name: str) -> int:
    """The tensor of a name."""
    return graph.tensor_names.index(name)


class Perceptron(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 8)
        self.second = nn.Linear(8, 2, bias=False)

    def forward(self, x):
        return self.second(F.relu(self.first(x)))
