"""What is known of every graph that has an id, without a look into it where that can be avoided."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from . import example, onnx_light, synthetic, zoo
from .zoo.topology import topology_hash

#: Families of the models in the onnx package; a family of the zoo has the same name and the same split.
_ONNX_LIGHT_FAMILIES = {
    "bvlc_alexnet": "alexnet",
    "densenet121": "densenet",
    "inception_v1": "googlenet",
    "inception_v2": "inception-v3",
    "resnet50": "resnet",
    "shufflenet": "shufflenet-v1",
    "squeezenet": "squeezenet",
    "vgg19": "vgg",
    "zfnet512": "alexnet",
}


@dataclass(frozen=True)
class Listing:
    """One graph.

    Attributes:
        id: What ``datasets.load`` takes.
        ops: Number of ops.
        tensors: Number of tensors.
        topology: Hash of op kinds and edges, sizes ignored.
        family: Architecture; ``"synthetic"`` for generated ones.
        level: What an op is.
        source: Where its definition is from.
        split: ``"train"``, ``"validation"`` or ``"test"``.
    """

    id: str
    ops: int
    tensors: int
    topology: str
    family: str
    level: str
    source: str
    split: str


def catalogue(ids: list[str]) -> Iterator[Listing]:
    """What is known of each id of ``datasets.ids()``; those outside the zoo are read for it."""
    for id in ids:
        if id.startswith(zoo.PREFIX):
            row = zoo.entry(id)
            yield Listing(
                id, row.ops, row.tensors, row.topology, row.family, row.level, row.source, row.split
            )
        else:
            yield _looked_at(id)


def _looked_at(id: str) -> Listing:
    if id.startswith(synthetic.PREFIX):
        graph = synthetic.load(id)
        family, source, split = "synthetic", "own", "train"  # the ids that are listed have seed 0
    elif id.startswith(onnx_light.PREFIX):
        graph = onnx_light.read(id).graph
        family = onnx_family(id)
        source, split = "onnx", onnx_split(family)
    else:
        graph = example.load(id)
        family, source, split = "example", "own", "train"
    topology = topology_hash(graph)
    return Listing(id, graph.num_ops, graph.num_tensors, topology, family, graph.level, source, split)


def onnx_family(id: str) -> str:
    """The family of a graph of the onnx package."""
    name = id.removeprefix(onnx_light.PREFIX)
    return _ONNX_LIGHT_FAMILIES.get(name, name)


def onnx_split(family: str) -> str:
    """The split of a family of the onnx package: that of the zoo's family of the same name; else the test's."""
    entries = zoo.manifest().entries.values()
    return next((entry.split for entry in entries if entry.family == family), "test")
