"""Everything that is known of one graph."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from typing import Any

from ..graphs import ROLES
from . import ids, read, zoo
from .catalogue import catalogue
from .zoo.topology import topology_hash


def describe(id: str) -> dict[str, Any]:
    """What is known of an id or file, as plain data; see ``opgym datasets show``.

    Raises:
        UnknownIdError: With the nearest ids.
        ImportFailedError: The file cannot be read.
    """
    imported = read(id)
    graph = imported.graph
    document: dict[str, Any] = {
        "id": id, "ops": graph.num_ops, "tensors": graph.num_tensors, "topology": topology_hash(graph),
        "level": graph.level,
    }  # fmt: skip
    if id in ids():
        document |= asdict(next(catalogue([id])))
    role = ROLES.index("parameter")
    kinds = Counter(graph.kinds[kind] for kind in graph.op_kind.tolist())
    document |= {
        "fingerprint": graph.fingerprint,
        "parameter_bytes": int(graph.tensor_bytes[graph.tensor_role == role].sum()),
        "flops": int(graph.op_flops.sum()),
        "kinds": dict(sorted(kinds.items(), key=lambda item: (-item[1], item[0]))),
        "notes": list(imported.report.notes),
    }
    if id.startswith(zoo.PREFIX):
        row = zoo.entry(id)
        document |= {key: getattr(row, key) for key in ("sha256", "licence", "reference", "batch")}
        document |= {"configuration": dict(row.configuration)}
        document.pop("notes")  # they say the same, for people who import a model
    return document
