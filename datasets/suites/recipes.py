"""How the suites that need no search are made of the zoo: a rule for each, and the same rows every time.

    python -m opgym.datasets.suites.recipes

writes their files anew. Whoever changes a rule or the zoo raises the versions here where rows change.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from ...graphs import Cluster
from ...problems import Objective, Placement, PlacementProblem, program_order
from .. import synthetic, zoo
from ..zoo.manifest import Entry
from ..zoo.topology import TWIN_DISTANCE, kind_shares, share_distance
from . import PROTOCOLS, SUITES
from .hold_out import Protocol
from .problem_list import Row, Suite
from .roles import with_roles

#: GDP's workloads and the numbers of devices that the papers use.
WORKLOADS: Mapping[str, int] = {
    "rnnlm-2l-train": 2, "rnnlm-4l-train": 4, "rnnlm-8l-train": 8,
    "gnmt-2l-train": 2, "gnmt-4l-train": 4, "gnmt-8l-train": 8,
    "transformer-xl-2l-train": 2, "transformer-xl-4l-train": 4, "transformer-xl-8l-train": 8,
    "inception-v3-b32-train": 2, "inception-v3-b64-train": 2,
    "amoebanet-a-train": 4, "wavenet-2x18-train": 2, "wavenet-4x36-train": 4,
}  # fmt: skip
#: What the papers hold out: other sizes of all but AmoebaNet stay in.
UNSEEN_SIZES = (
    "gnmt-8l-train", "rnnlm-2l-train", "transformer-xl-8l-train", "inception-v3-b64-train", "wavenet-2x18-train",
    "amoebanet-a-train",
)  # fmt: skip
_LINKS = ("", "@nvlink")
#: Kinds of op that look something up by an index: for rows where no GPU has a kernel for that.
_LOOKUPS = (
    "embedding", "embedding_dense_backward", "nll_loss2d_backward", "nll_loss2d_forward", "nll_loss_backward",
    "nll_loss_forward",
)  # fmt: skip
#: Capacity of a device, as a share of the peak of all work on one device.
_MEMORY_SHARE = 0.6
_UNSCREENED_GRAPHS = 100
_STRESS_OPS = 10_000
#: Versions of the reference lines whose gaps say which rows of a suite are tasks. Whoever raises one raises the version
#: of the suite where a role changes.
ROLES_BY: Mapping[str, int] = {"gdp": 1, "gdp-a100": 1, "gdp-hetero": 1, "gdp-memory": 1, "throughput": 1}
#: Memory that nothing fills: sizes of synthetic graphs grow with the number of readers.
_NO_LIMIT = 2**62


def gdp() -> Suite:
    """The papers' workloads on the papers' numbers of devices."""
    return Suite(
        "gdp", 1, "GDP's workloads on as many P100 as in the papers, over PCIe and NVLink",
        "fixed list; no screening",
        [
            _row(entry, f"{devices}xP100{link}", part="test")
            for entry, devices in _workloads()
            for link in _LINKS
        ],
    )  # fmt: skip


def gdp_a100() -> Suite:
    """The same on newer devices."""
    return Suite(
        "gdp-a100", 1, "GDP's workloads on as many A100, over PCIe and NVLink 3",
        "fixed list; no screening",
        [
            _row(entry, f"{devices}xA100{link}", part="test")
            for entry, devices in _workloads()
            for link in ("", "@nvlink3")
        ],
    )  # fmt: skip


def gdp_hetero() -> Suite:
    """The same on devices of two kinds."""
    rows = []
    for entry, devices in _workloads():
        beside_cpu = _row(entry, f"1xCPU+{devices}xP100", part="test")
        rows.append(replace(beside_cpu, unsupported={"P100": _LOOKUPS}))
        rows.append(_row(entry, f"{devices // 2}xP100+{devices // 2}xV100@nvlink", part="test"))
    return Suite(
        "gdp-hetero", 1, "GDP's workloads on devices of two kinds: a CPU beside P100s, and P100s beside V100s",
        "fixed list; beside a CPU, lookups by index (embeddings, the loss, and their gradients) run on it alone; no "
        "screening",
        rows,
    )  # fmt: skip


def gdp_memory() -> Suite:
    """The same where no device holds the whole step."""
    return Suite(
        "gdp-memory", 1, "GDP's workloads on P100s with too little memory for the whole step",
        f"capacity of each device: {_MEMORY_SHARE} of the peak of all work on one device in program order; "
        "no screening",
        [
            _row(entry, f"{devices}xP100{link}", part="test", capacity_bytes=_capacity(entry))
            for entry, devices in _workloads()
            for link in _LINKS
        ],
    )  # fmt: skip


def placement_unscreened() -> Suite:
    """A sample of the zoo that nobody has looked at."""
    drawn = sorted(zoo.manifest().entries.values(), key=lambda entry: _draw(entry.name))
    chosen = [entry for entry in drawn if not entry.workload][:_UNSCREENED_GRAPHS]
    return Suite(
        "placement-unscreened", 1, "a sample of the zoo on four P100, over PCIe and NVLink",
        f"the first {_UNSCREENED_GRAPHS} graphs by a hash of their names, workloads left out; no screening; "
        "parts are the zoo's splits",
        [
            _row(entry, f"4xP100{link}", part=entry.split)
            for entry in sorted(chosen, key=lambda entry: entry.name)
            for link in _LINKS
        ],
    )  # fmt: skip


def throughput() -> Suite:
    """Pipelines of inference."""
    drawn = sorted(zoo.manifest().entries.values(), key=lambda entry: _draw(f"throughput/{entry.name}"))
    chosen = [entry for entry in drawn if not entry.trains][:_UNSCREENED_GRAPHS]
    return Suite(
        "throughput", 1, "inference in a pipeline over four P100: time of the busiest stage",
        f"the first {_UNSCREENED_GRAPHS} inference graphs by a hash of their names; no screening; parts are the "
        "zoo's splits",
        [
            _row(entry, "4xP100", part=entry.split, objective=Objective.MAX_LOAD)
            for entry in sorted(chosen, key=lambda entry: entry.name)
        ],
    )  # fmt: skip


def stress() -> Suite:
    """The largest graphs."""
    large = [entry for entry in zoo.manifest().entries.values() if entry.ops >= _STRESS_OPS]
    rows = [
        _row(entry, "8xP100", part=entry.split)
        for entry in sorted(large, key=lambda entry: (entry.ops, entry.name))
    ]
    for family in synthetic.FAMILIES:
        most = synthetic.FAMILIES[family].ops[1]
        id = f"synthetic/{family}?n={most}&seed={synthetic.SEEDS['test'][0]}"
        graph = synthetic.load(id)
        if graph.num_ops >= _STRESS_OPS:
            row = Row(
                id, graph.fingerprint, "2xREGAL", Objective.STEP_TIME.value, _NO_LIMIT, "test", "unscreened"
            )
            rows.append(row)
    return Suite(
        "stress", 1, f"graphs of {_STRESS_OPS:,} ops and more",
        f"every graph of the zoo with at least {_STRESS_OPS} ops, and the largest of each synthetic family, "
        "whose devices have memory without limit; parts are the zoo's splits",
        rows,
    )  # fmt: skip


def unseen_size() -> Protocol:
    """Other sizes of what was trained on."""
    kept = [name for name in WORKLOADS if name not in UNSEEN_SIZES]
    return Protocol(
        "unseen-size", 1, "six workloads are held out at once; other sizes of five of them are trained on",
        _ids(kept), _ids(UNSEEN_SIZES),
    )  # fmt: skip


def unseen_family() -> Protocol:
    """No relative of what is tested was trained on."""
    entries = zoo.manifest().entries
    out = {entries[name].group for name in WORKLOADS}
    near = _families_near_workloads()
    kept = [name for name, entry in entries.items() if entry.group not in out and entry.family not in near]
    return Protocol(
        "unseen-family", 1,
        "held out at once: all families of GDP's workloads, their twins, and families with a graph like one of theirs",
        _ids(sorted(kept)), _ids(WORKLOADS),
    )  # fmt: skip


RECIPES: Sequence[Callable[[], Suite]] = (
    gdp, gdp_a100, gdp_hetero, gdp_memory, placement_unscreened, stress, throughput,
)  # fmt: skip
PROTOCOL_RECIPES: Sequence[Callable[[], Protocol]] = (unseen_family, unseen_size)


def write(suites: Path = SUITES, protocols: Path = PROTOCOLS) -> None:
    """Writes the files of all suites and protocols."""
    for folder in (suites, protocols):
        folder.mkdir(exist_ok=True)
    for recipe in RECIPES:
        made = recipe()
        if made.name in ROLES_BY:
            made = with_roles(made, ROLES_BY[made.name])
        made.save(suites / f"{made.name}.json")
    for protocol_recipe in PROTOCOL_RECIPES:
        protocol = protocol_recipe()
        protocol.save(protocols / f"{protocol.name}.json")


def _families_near_workloads() -> set[str]:
    """Families of which any graph, not only the mean, has the op kinds of a workload."""
    entries = [entry for entry in zoo.manifest().entries.values() if entry.trains]
    shares = {entry.name: kind_shares(zoo.read(entry.name).graph) for entry in entries}
    return {
        entry.family
        for entry in entries
        if any(
            entry.level == zoo.entry(name).level
            and share_distance(shares[entry.name], shares[name]) <= TWIN_DISTANCE
            for name in WORKLOADS
        )
    }


def _workloads() -> Iterator[tuple[Entry, int]]:
    for name, devices in WORKLOADS.items():
        yield zoo.entry(name), devices


def _row(
    entry: Entry,
    cluster: str,
    *,
    part: str,
    objective: Objective = Objective.STEP_TIME,
    capacity_bytes: int | None = None,
) -> Row:
    return Row(
        zoo.PREFIX + entry.name,
        entry.fingerprint,
        cluster,
        objective.value,
        capacity_bytes,
        part,
        "unscreened",
    )


def _capacity(entry: Entry) -> int:
    """A share of what the whole step takes on one device, in program order."""
    graph = zoo.read(entry.name).graph
    cluster = Cluster.parse("1xP100").with_capacity(_NO_LIMIT)
    problem = PlacementProblem(graph, cluster, Objective.PEAK_MEMORY)
    everything = Placement(np.zeros(graph.num_ops, np.int64), program_order(graph))
    return round(_MEMORY_SHARE * problem.evaluate(everything).value)


def _ids(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(zoo.PREFIX + name for name in names)


def _draw(text: str) -> bytes:
    return hashlib.sha256(f"opgym.suites/1/{text}".encode()).digest()


if __name__ == "__main__":
    write()
