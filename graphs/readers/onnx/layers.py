"""The layer that a node belongs to, from the paths in which exporters write the modules of a model."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from onnx import NodeProto

from ..layers import named_depth, shared_depth

#: Where torch's newer exporter keeps the module path of a node, as a Python list of qualified names.
_TORCH_SCOPES = "pkg.torch.onnx.name_scopes"


def module_path(node: NodeProto) -> tuple[str, ...]:
    """Names of the modules around a node, outermost first; empty where the file does not tell."""
    for entry in node.metadata_props:
        if entry.key == _TORCH_SCOPES:
            return _from_scopes(entry.value)
    name = node.name
    return tuple(part for part in name.split("/")[:-1] if part) if isinstance(name, str) else ()


def _from_scopes(text: str) -> tuple[str, ...]:
    try:
        scopes = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        return ()
    if not isinstance(scopes, list) or len(scopes) < 2 or not isinstance(scopes[-2], str):
        return ()
    return tuple(part for part in scopes[-2].split(".") if part)


def layers_of(paths: Sequence[tuple[str, ...]]) -> list[str | None]:
    """Layers of nodes with these module paths.

    What all paths share says nothing and is cut off. The rest ends at its first numbered module, so that the
    parts of a block are one layer (``encoder/layer.3/attention/self`` is in ``encoder/layer.3``).

    Args:
        paths: Module path of each node; empty where unknown.

    Returns:
        For each node the name of its layer, ``None`` where unknown.
    """
    shared = shared_depth(paths)
    return [
        "/".join(path[shared:depth]) or None for path, depth in zip(paths, named_depth(paths), strict=True)
    ]
