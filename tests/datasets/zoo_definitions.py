"""A file of definitions for tests: small graphs that need no torch, some of which break rules."""

import os
import time
from collections.abc import Iterator
from functools import partial

from opgym.datasets.zoo.registry import definition
from opgym.errors import InvalidGraphError
from opgym.graphs import GraphBuilder
from opgym.graphs.readers import Imported, ImportReport


def chain(length: int, width: int, kinds: tuple[str, ...], level: str = "test") -> Imported:
    """``length`` ops in a row, their kinds in turn."""
    b = GraphBuilder(level=level)
    x = b.tensor(shape=(width,), role="input")
    for i in range(length):
        y = b.tensor(shape=(width,), is_output=i == length - 1)
        b.op(
            kinds[i % len(kinds)],
            inputs=[x],
            outputs=[y],
            flops=width,
            layer=f"layer{i // 10}",
            name=f"op{i}",
        )
        x = y
    graph = b.build()
    report = ImportReport("test", "test", level, graph.num_ops, graph.num_tensors, graph.fingerprint)
    return Imported(graph, report)


@definition(family="chain", source="own", licence="Apache-2.0")
def chains() -> Iterator[tuple]:
    """Chains of three kinds.

    Not a part of the reference.
    """
    for length in (100, 150, 225):
        build = partial(chain, length, 8, ("Conv", "BatchNorm", "Relu"))
        yield f"chain-{length}-infer", build, {"batch": 8, "length": length, "shape": (1, 2)}
    yield "chain-wide-infer", partial(chain, 100, 99, ("Conv", "BatchNorm", "Relu"))
    yield "chain-short-infer", partial(chain, 99, 8, ("Conv", "BatchNorm", "Relu"))


@definition(family="twin", source="own", licence="MIT")
def twin() -> Iterator[tuple]:
    """The kinds of a chain in other numbers."""
    yield "twin-infer", partial(chain, 500, 8, ("Conv", "BatchNorm", "Relu"))


@definition(family="mlp", source="own", licence="Apache-2.0", workload=True)
def mlp() -> Iterator[tuple]:
    """Two batch sizes of one workload."""
    for batch in (32, 64):
        yield f"mlp-b{batch}-train", partial(chain, 120, batch, ("MatMul", "Relu")), {"batch": batch}


def refuse() -> Imported:
    raise InvalidGraphError("this graph has a cycle")


def crash() -> Imported:
    os._exit(7)


def hang() -> Imported:
    time.sleep(600)
    raise AssertionError


@definition(family="broken", source="own", licence="Apache-2.0")
def broken() -> Iterator[tuple]:
    """Everything that can go wrong."""
    yield "refused-infer", refuse
    yield "raises-infer", partial(int, "x")
    yield "crashes-infer", crash
    yield "hangs-infer", hang
