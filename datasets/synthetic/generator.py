"""From an id to a graph: the id is parsed, the family draws who reads whom, sizes and times are drawn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from ...errors import ImportFailedError, unknown_id
from ...graphs import Graph
from ...graphs.edge_list import graph_from_edges
from ...graphs.readers import Imported, ImportReport
from . import cells, fork_join, layered, regal
from .costs import COSTS, DEVICE_CLASS, FLOPS_PER_NS, SyntheticCost, draw_bytes, draw_times
from .family import Family
from .parameters import Parameter, Values, Whole, WholeOrSpan
from .random_bits import Int64, Stream
from .splits import LAST_SEED

PREFIX = "synthetic/"
#: Part of every id and of every stream's name; a change of what an id gives raises it.
GENERATOR_VERSION = 1
LEVEL = "synthetic"

FAMILIES: Mapping[str, Family] = MappingProxyType(
    {
        family.name: family
        for family in (*regal.FAMILIES, *layered.FAMILIES, *cells.FAMILIES, *fork_join.FAMILIES)
    }
)
_SEED = Whole("seed", "0", "which of the family's graphs; it decides the split", 0, LAST_SEED)
_VERSION = Whole("version", str(GENERATOR_VERSION), "of the generators", GENERATOR_VERSION, GENERATOR_VERSION)


@dataclass(frozen=True)
class _Request:
    """What an id asks for."""

    family: Family
    values: Values

    @property
    def canonical_id(self) -> str:
        """The id with every parameter, in a fixed order."""
        written = (f"{p.name}={p.write(self.values[p.name])}" for p in parameters_of(self.family.name))
        return f"{PREFIX}{self.family.name}?{'&'.join(written)}"


def ids() -> list[str]:
    """One id of each family, e.g. ``synthetic/er?n=100&seed=0``; any other parameters may be asked for."""
    return [f"{PREFIX}{name}?n=100&seed=0" for name in FAMILIES]


def parameters_of(family: str) -> tuple[Parameter, ...]:
    """The parameters that an id of a family may have, in canonical order."""
    low, high = FAMILIES[family].ops
    n = WholeOrSpan("n", "50-200", "ops; of a span the seed draws one", low, high)
    return (n, *FAMILIES[family].parameters, COSTS, _SEED, _VERSION)


def load(id: str) -> Graph:
    """Draws a graph.

    Args:
        id: ``synthetic/<family>?<parameter>=<value>&...``; what is left out has its default.

    Raises:
        UnknownIdError: An unknown family, parameter or word, with the nearest ones.
        ImportFailedError: A value that the parameter may not have, or a parameter without a value or given
            twice.
    """
    return _draw(_parse(id))[0]


def read(id: str) -> Imported:
    """Draws a graph with the times of its ops and a report; see :func:`load`."""
    request = _parse(id)
    graph, time_ns = _draw(request)
    report = ImportReport(
        source=id,
        format="synthetic",
        level=LEVEL,
        ops=graph.num_ops,
        tensors=graph.num_tensors,
        fingerprint=graph.fingerprint,
        notes=(
            f"drawn by synthetic generator version {GENERATOR_VERSION} as {request.canonical_id} "
            f"({request.family.meaning})",
            f"op times are drawn with the graph and hold on class {DEVICE_CLASS!r} (cluster 2xREGAL); "
            f"elsewhere the roofline of their flops ({FLOPS_PER_NS} per ns of those times) and bytes holds",
        ),
    )
    return Imported(graph, report, costs=SyntheticCost({DEVICE_CLASS: time_ns}))


def _parse(id: str) -> _Request:
    name, question, query = id.removeprefix(PREFIX).partition("?")
    if name not in FAMILIES:
        raise unknown_id("synthetic family", PREFIX + name, [PREFIX + known for known in FAMILIES])
    owner = PREFIX + name
    parameters = {parameter.name: parameter for parameter in parameters_of(name)}
    given: dict[str, str] = {}
    for part in query.split("&") if question else ():
        key, equals, text = part.partition("=")
        if not equals or not text:
            raise ImportFailedError(f"{owner}: {part[:40]!r}; expected PARAMETER=VALUE, e.g. n=100")
        if key not in parameters:
            raise unknown_id(f"parameter of {owner}", key, list(parameters))
        if key in given:
            raise ImportFailedError(f"{owner}: {key} is given twice, as {given[key]!r} and {text[:40]!r}")
        given[key] = text
    values = {key: p.read(given.get(key, p.default), owner) for key, p in parameters.items()}
    return _Request(FAMILIES[name], values)


def _draw(request: _Request) -> tuple[Graph, Int64]:
    """The graph and the time of each op, ``[ops] int64`` ns."""
    family, values = request.family, request.values
    prefix = f"opgym.synthetic/{GENERATOR_VERSION}/{family.name}/{values['seed']}"

    def stream(purpose: str) -> Stream:
        return Stream(f"{prefix}/{purpose}")

    span: range = values["n"]
    ops = span[0] + int(stream("ops").below(len(span), 1)[0])
    topology = family.draw(ops, values, stream)
    size = draw_bytes(topology, stream)
    layers = int(topology.op_layer[-1]) + 1 if topology.op_layer is not None else 0
    graph = graph_from_edges(
        topology.source,
        topology.target,
        tensor_bytes=size,
        flops=size,  # replaced below: work is a matter of time, and that of the bytes accessed
        level=LEVEL,
        name=request.canonical_id,
        kinds=topology.kinds,
        op_kind=topology.op_kind,
        layers=[f"{topology.layer_name}{number}" for number in range(layers)],
        op_layer=topology.op_layer,
    )
    time_ns = draw_times(values["costs"], graph.op_accessed_bytes, stream("costs"))
    return replace(graph, op_flops=time_ns * FLOPS_PER_NS), time_ns
