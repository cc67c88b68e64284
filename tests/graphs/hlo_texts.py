"""Small HLO modules, written by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from opgym.graphs import Graph, peak_of_order
from opgym.graphs.readers import Imported
from opgym.graphs.readers.hlo import read_hlo_text

DATA = Path(__file__).parent / "data"
SCHEDULED = ", is_scheduled=true"
ADD = """%add (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %sum = f32[] add(%a, %b)
}
"""


def module(entry: str, functions: str = "", attributes: str = "") -> str:
    """A module with these lines as its entry."""
    lines = "\n".join(f"  {line.strip()}" for line in entry.strip().splitlines())
    return f"HloModule test{attributes}\n\n{functions}\nENTRY %main {{\n{lines}\n}}\n"


def imported(entry: str, functions: str = "", attributes: str = "", **options: object) -> Imported:
    """Such a module, read."""
    return read_hlo_text(module(entry, functions, attributes), **options)  # type: ignore[arg-type]


def flops(entry: str, functions: str = "", **options: object) -> int:
    """Flops of the last op of such a module."""
    return int(imported(entry, functions, **options).graph.op_flops[-1])


def op(graph: Graph, name: str) -> int:
    """The op of a name."""
    return graph.op_names.index(name)


def reads(graph: Graph, name: str) -> list[str]:
    """Names of the tensors that an op reads."""
    return [graph.tensor_names[t] for t in graph.inputs(op(graph, name))]


def writes(graph: Graph, name: str) -> list[str]:
    """Names of the tensors that an op writes."""
    return [graph.tensor_names[t] for t in graph.outputs(op(graph, name))]


def peak(graph: Graph) -> int:
    """Peak of the program order, without what is resident."""
    return int(peak_of_order(graph, np.arange(graph.num_ops)))
