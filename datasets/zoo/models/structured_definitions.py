"""Which graphs of the networks of ``structured`` the zoo has."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from ..registry import definition
from .structured import (
    CapsuleNetwork,
    NeuralODE,
    NeuralTuringMachine,
    PointerNetwork,
    TensorNetwork,
    TreeLSTM,
    random_tree,
)
from .workload import Entry, ids, image_workloads, reals, workloads


@definition(family="tree-lstm", source="own", licence="Apache-2.0")
def tree_lstm() -> Iterator[Entry]:
    """Tai et al. 2015, "Improved semantic representations from tree-structured long short-term memory networks":
    binary, over random trees with stated seeds.
    """
    for leaves, seed in ((20, 0), (60, 1), (150, 2)):
        yield from workloads(
            f"tree-lstm-{leaves}",
            partial(TreeLSTM, random_tree(leaves, seed), 300, 20000),
            inputs=(ids(20000, 32, leaves),),
            targets=(ids(5, 32, 2 * leaves - 1),),
            batch=32,
            leaves=leaves,
            seed=seed,
        )


@definition(family="rntn", source="own", licence="Apache-2.0")
def tensor_network() -> Iterator[Entry]:
    """Socher et al. 2013, "Recursive deep models for semantic compositionality over a sentiment treebank", over
    random trees with stated seeds.
    """
    for leaves, seed in ((24, 3), (80, 4)):
        yield from workloads(
            f"rntn-{leaves}",
            partial(TensorNetwork, random_tree(leaves, seed), 32, 20000),
            inputs=(ids(20000, 32, leaves),),
            targets=(ids(5, 32, 2 * leaves - 1),),
            batch=32,
            leaves=leaves,
            seed=seed,
        )


@definition(family="pointer-network", source="own", licence="Apache-2.0")
def pointer_network() -> Iterator[Entry]:
    """Vinyals et al. 2015, "Pointer networks": tours through random points; soft pointers feed the decoder."""
    for points in (10, 50):
        yield from workloads(
            f"pointer-network-{points}",
            partial(PointerNetwork, points, 256),
            inputs=(reals(128, points, 2),),
            targets=(ids(points, 128, points),),
            batch=128,
            points=points,
        )


@definition(family="ntm", source="own", licence="Apache-2.0")
def neural_turing_machine() -> Iterator[Entry]:
    """Graves et al. 2014, "Neural Turing machines": the copy task, 128 locations of 20 numbers."""
    for length in (20, 41):
        yield from workloads(
            f"ntm-{length}",
            partial(NeuralTuringMachine, 9, 100, 128, 20),
            inputs=(reals(32, length, 9),),
            targets=(reals(32, length, 9),),
            batch=32,
            length=length,
        )


@definition(family="neural-ode", source="own", licence="Apache-2.0")
def neural_ode() -> Iterator[Entry]:
    """Chen et al. 2018, "Neural ordinary differential equations": fixed steps of Runge-Kutta, gradients through
    the solver.
    """
    for steps in (2, 6, 16):
        network = partial(NeuralODE, steps, 64)
        yield from image_workloads(
            f"neural-ode-{steps}", network, batch=128, size=32, classes=10, steps=steps
        )


@definition(family="capsnet", source="own", licence="Apache-2.0")
def capsule_network() -> Iterator[Entry]:
    """Sabour et al. 2017, "Dynamic routing between capsules", for 32 x 32 images."""
    for routings in (3, 6):
        network = partial(CapsuleNetwork, routings)
        yield from image_workloads(
            f"capsnet-{routings}",
            network,
            batch=32,
            size=32,
            classes=10,
            modes=("train",),
            routings=routings,
        )
