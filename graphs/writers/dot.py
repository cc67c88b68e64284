"""A graph, and a placement if there is one, in the DOT language of Graphviz.

Render with ``dot -Tsvg graph.dot -o graph.svg``; past a few hundred ops ``sfdp`` is faster.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..atomic import write_text
from ..cluster import Cluster
from ..graph import Graph
from ..units import format_bytes

#: Fills of the devices, repeated past the last one: light enough for black text.
FILLS = ("#a6cee3", "#fdbf6f", "#b2df8a", "#cab2d6", "#fb9a99", "#ffff99", "#e0c8a8", "#c7e9e4")


def dot_text(
    graph: Graph, cluster: Cluster | None = None, device: NDArray[np.integer[Any]] | None = None
) -> str:
    """The graph as DOT: a node per op, an edge per read of a produced tensor, labelled with its size.

    Args:
        graph: The graph.
        cluster: Names the devices in the tooltips; needed only with ``device``.
        device: Device of each op, ``[ops] int``: nodes are filled by device, edges between devices are bold.
    """
    lines = [
        f"digraph {_quoted(graph.name or 'graph')} {{",
        "  rankdir=TB;",
        '  node [shape=box, style="rounded,filled", fillcolor="#f4f4f4", fontname="Helvetica", fontsize=10];',
        '  edge [fontname="Helvetica", fontsize=8, color="#555555"];',
    ]
    names = cluster.device_names if cluster is not None else ()
    for op in range(graph.num_ops):
        title, kind = graph.op_names[op], graph.kind(op)
        label = f"{title}\n{kind}" if title and title != kind else kind
        attributes = f"label={_quoted(label)}"
        if device is not None:
            home = int(device[op])
            where = names[home] if home < len(names) else f"device {home}"
            attributes += f', fillcolor="{FILLS[home % len(FILLS)]}", tooltip={_quoted(where)}'
        lines.append(f"  n{op} [{attributes}];")
    for source, reader, tensor in zip(*(part.tolist() for part in graph.edges), strict=True):
        label = format_bytes(int(graph.tensor_bytes[tensor]))
        crossing = device is not None and device[source] != device[reader]
        style = ', penwidth=2, color="#c0392b"' if crossing else ""
        lines.append(f"  n{source} -> n{reader} [label={_quoted(label)}{style}];")
    return "\n".join([*lines, "}", ""])


def write_dot(
    path: str | os.PathLike[str],
    graph: Graph,
    cluster: Cluster | None = None,
    device: NDArray[np.integer[Any]] | None = None,
) -> None:
    """Writes :func:`dot_text` atomically."""
    write_text(path, dot_text(graph, cluster, device))


def _quoted(text: str) -> str:
    """A double-quoted DOT string: quotes and backslashes of a name must not end it or form an escape."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\r", " ").replace("\0", " ")
    return '"' + escaped.replace("\n", "\\n") + '"'
