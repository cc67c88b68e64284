"""Readers: a file or an object in, a graph and an import report out.

:func:`read` looks at what a file holds, not at what it is called. Each format's reader is loaded when it is
needed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ...errors import ImportFailedError, MissingExtraError, unknown_id
from .report import Imported, ImportReport, Origin

if TYPE_CHECKING:
    import networkx
    from torch import nn

    from .onnx.options import FlopRule, ShapeSpec
    from .torch import Example, Loss, Optimizer

__all__ = ["ImportReport", "Imported", "Origin", "from_networkx", "from_torch", "read", "read_npz"]

_SUBGRAPH_POLICIES = ("opaque", "inline", "reject")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
#: What may stand before a text: space, and comments of HLO and of protobuf's text format.
_COMMENT = re.compile(rb"\s+|//[^\n]*|/\*.*?\*/|#(?!\w+ = )[^\n]*", re.DOTALL)
_COST_GRAPH = re.compile(rb"(?:node|cost)\s*:?\s*[{<]")
_STABLE_HLO = re.compile(rb"module\s*(?:@|attributes|\{)|#\w+ = |func\.func")
_HEAD_BYTES = 4096


def read(
    path: str | os.PathLike[str],
    *,
    dims: Mapping[str, int] | None = None,
    subgraphs: str = "opaque",
    strict: bool = False,
    trust: str | None = None,
    shapes: Mapping[str, ShapeSpec] | None = None,
    costs: Mapping[str, FlopRule] | None = None,
) -> Imported:
    """Reads an ONNX model, HLO text, a CostGraphDef, a dnn-partitioning JSON or a saved graph.

    Args:
        path: The file; its content decides what it is.
        dims: Sizes of dynamic dimensions by name or ``"INPUT:AXIS"`` (ONNX only).
        subgraphs: ``"opaque"``, ``"inline"`` or ``"reject"``: what to do with If, Loop and Scan (ONNX) and
            with loops and branches (HLO, where ``"inline"`` keeps them as one op too).
        strict: Refuse what lacks a shape or a cost.
        trust: ``"declared"`` or ``"inferred"``: which shape to believe in a contradiction (ONNX only).
        shapes: Shapes of tensors that the file does not tell (ONNX only).
        costs: Flops of ops by kind (ONNX and HLO).

    Raises:
        ImportFailedError: The file is absent, damaged, or of none of these formats, or an option does not
            apply.
        UnknownIdError: An unknown subgraph policy, dimension, tensor or kind.
    """
    if subgraphs not in _SUBGRAPH_POLICIES:
        raise unknown_id("subgraph policy", str(subgraphs), list(_SUBGRAPH_POLICIES))
    form = _format(path)
    if form == "onnx":
        from .onnx import read_onnx

        return read_onnx(
            path, dims=dims, subgraphs=subgraphs, strict=strict, trust=trust, shapes=shapes, costs=costs
        )
    for name, given in (("dims", dims), ("trust", trust), ("shapes", shapes)):
        if given:
            raise ImportFailedError(
                f"{path}: {name} is given ({given!r}) and the file is no ONNX model; leave it out"
            )
    if form == "hlo":
        from .hlo import read_hlo

        return read_hlo(path, subgraphs=subgraphs, strict=strict, costs=costs)
    if costs:
        raise ImportFailedError(
            f"{path}: costs is given ({costs!r}) and the file is no ONNX model or HLO text; leave it out"
        )
    if form == "cost-graph":
        from .cost_graph import read_cost_graph

        return read_cost_graph(path, strict=strict)
    if form == "npz":
        return read_npz(path)
    from .dnn_partitioning import read_dnn_partitioning

    return read_dnn_partitioning(path)


def _format(path: str | os.PathLike[str]) -> str:
    """What a file is, by its first bytes; ``"onnx"`` where nothing else fits.

    Raises:
        ImportFailedError: It cannot be read, is empty, or is the text of another kind of program.
    """
    head = _head(path)
    if head.startswith(b"PK\x03\x04"):
        return "npz"
    text, begins = head.removeprefix(_BYTE_ORDER_MARK), 0
    # One by one: repeats of such groups are wrong before Python 3.11.5.
    while comment := _COMMENT.match(text, begins):
        begins = comment.end()
    text = text[begins:]
    if text[:1] in (b"{", b"["):
        return "dnn-partitioning"
    if text.startswith(b"HloModule"):
        return "hlo"
    if _COST_GRAPH.match(text):
        return "cost-graph"
    if _STABLE_HLO.match(text):
        raise ImportFailedError(
            f"{path}: is StableHLO or another MLIR text; expected HLO text, which JAX prints by "
            "lower(...).compile().as_text(), or unoptimised by lower(...).as_text(dialect='hlo')"
        )
    return "onnx"


def read_npz(path: str | os.PathLike[str]) -> Imported:
    """Reads a graph that ``opgym.graphs.save`` wrote.

    Raises:
        ImportFailedError: The file is absent, damaged, too large, or of another format or version.
    """
    from ..storage import load

    graph = load(path)
    report = ImportReport(
        os.fspath(path), "npz", graph.level, graph.num_ops, graph.num_tensors, graph.fingerprint
    )
    return Imported(graph, report)


def from_networkx(graph: networkx.DiGraph, **options: str) -> Imported:
    """See :func:`opgym.graphs.readers.networkx.from_networkx`."""
    from .networkx import from_networkx as convert

    return convert(graph, **options)


def from_torch(
    module: nn.Module,
    example_inputs: Example,
    *,
    train: bool = True,
    optimizer: Optimizer | None = "sgd",
    loss: Loss | None = None,
    name: str = "",
    batch: int | None = None,
) -> Imported:
    """See :func:`opgym.graphs.readers.torch.from_torch`.

    Raises:
        MissingExtraError: torch is not installed.
    """
    try:
        from .torch import from_torch as record
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] != "torch":
            raise
        raise MissingExtraError(
            "from_torch needs the package torch, which is not installed: pip install 'opgym[zoo]'"
        ) from error
    return record(module, example_inputs, train=train, optimizer=optimizer, loss=loss, name=name, batch=batch)


def _head(path: str | os.PathLike[str]) -> bytes:
    """The first bytes of a file.

    Raises:
        ImportFailedError: It is absent, a folder, empty or unreadable.
    """
    try:
        if Path(path).is_dir():
            raise ImportFailedError(f"{path}: is a folder; expected a model file")
        with open(path, "rb") as f:
            head = f.read(_HEAD_BYTES)
    except FileNotFoundError:
        raise ImportFailedError(f"{path}: no such file") from None
    except (OSError, ValueError) as error:
        raise ImportFailedError(f"{path}: cannot be read ({error})") from error
    if not head:
        raise ImportFailedError(
            f"{path}: is empty; expected an ONNX model, HLO text, a CostGraphDef, a dnn-partitioning JSON "
            "or a graph .npz"
        )
    return head
