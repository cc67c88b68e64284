"""Which graphs of recommenders the zoo has."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from torch import nn

from ..registry import definition
from .recommenders import (
    DLRM,
    CompressedInteractions,
    CrossNetwork,
    FactorizationMachine,
    FactorizationNetwork,
    InteractingLayers,
    InterestNetwork,
    MultiGateExperts,
)
from .workload import Entry, ids, reals, workloads

BATCH = 2048


def click_workloads(
    name: str, network: Callable[[], nn.Module], features: int, targets: int = 0, **configuration: Any
) -> Iterator[Entry]:
    """Graphs of a network over categorical features alone."""
    return workloads(
        name,
        network,
        inputs=(ids(10, BATCH, features),),
        targets=(reals(BATCH, targets) if targets else reals(BATCH),),
        batch=BATCH,
        modes=("train", "infer"),
        features=features,
        **configuration,
    )


def factorized(
    features: int, width: int, hidden: tuple[int, ...], other: Callable[[], nn.Module]
) -> FactorizationNetwork:
    """A network with its other part made at the same time, on the same device."""
    return FactorizationNetwork(features, width, hidden, other())


@definition(family="dlrm", source="own", licence="Apache-2.0")
def dlrm() -> Iterator[Entry]:
    """Naumov et al. 2019, "Deep learning recommendation model for personalization and recommendation systems":
    26 categorical and 13 dense features, and one with 60; tables smaller than in production.
    """
    for features, width in ((26, 64), (60, 128)):
        yield from workloads(
            f"dlrm-{features}",
            partial(DLRM, features, width, (512, 256), (512, 256)),
            inputs=(reals(BATCH, 13), ids(10, BATCH, features)),
            targets=(reals(BATCH),),
            batch=BATCH,
            features=features,
            width=width,
        )


@definition(family="deepfm", source="own", licence="Apache-2.0")
def deepfm() -> Iterator[Entry]:
    """Guo et al. 2017, "DeepFM: a factorization-machine based neural network for CTR prediction"."""
    for features, hidden in ((39, (400, 400, 400)), (24, (512, 512, 256, 256, 128, 64))):
        network = partial(factorized, features, 16, hidden, FactorizationMachine)
        yield from click_workloads(f"deepfm-{features}", network, features, width=16)


@definition(family="dcn-v2", source="own", licence="Apache-2.0")
def dcn_v2() -> Iterator[Entry]:
    """Wang et al. 2021, "DCN V2: improved deep & cross network": parallel, 3 and 6 cross layers."""
    for features, layers in ((39, 3), (30, 6)):
        other = partial(CrossNetwork, 32 * features, layers)
        network = partial(factorized, features, 32, (768, 768), other)
        yield from click_workloads(f"dcn-v2-{layers}", network, features, width=32, cross_layers=layers)


@definition(family="xdeepfm", source="own", licence="Apache-2.0")
def xdeepfm() -> Iterator[Entry]:
    """Lian et al. 2018, "xDeepFM: combining explicit and implicit feature interactions"."""
    for features, layers in ((39, 3), (26, 5)):
        other = partial(CompressedInteractions, features, 100, layers)
        network = partial(factorized, features, 10, (400, 400), other)
        yield from click_workloads(f"xdeepfm-{layers}", network, features, width=10, interactions=layers)


@definition(family="autoint", source="own", licence="Apache-2.0")
def autoint() -> Iterator[Entry]:
    """Song et al. 2019, "AutoInt: automatic feature interaction learning via self-attentive neural networks"."""
    for features, layers in ((39, 3), (23, 6)):
        other = partial(InteractingLayers, features, 32, 2, layers)
        network = partial(factorized, features, 32, (400, 400), other)
        yield from click_workloads(f"autoint-{layers}", network, features, width=32, attention_layers=layers)


@definition(family="din", source="own", licence="Apache-2.0")
def deep_interest_network() -> Iterator[Entry]:
    """Zhou et al. 2018, "Deep interest network for click-through rate prediction", 50 past items; ReLU in the
    place of Dice.
    """
    for contexts in (12, 24):
        yield from workloads(
            f"din-{contexts}",
            partial(InterestNetwork, 60000, 32, contexts),
            inputs=(
                ids(60000, BATCH, 50),
                ids(1000, BATCH, 50),
                ids(60000, BATCH),
                ids(1000, BATCH),
                ids(10, BATCH, contexts),
            ),
            targets=(reals(BATCH),),
            batch=BATCH,
            contexts=contexts,
            history=50,
        )


@definition(family="mmoe", source="own", licence="Apache-2.0")
def multi_gate_mixture_of_experts() -> Iterator[Entry]:
    """Ma et al. 2018, "Modeling task relationships in multi-task learning with multi-gate mixture-of-experts"."""
    for experts, tasks in ((8, 2), (16, 6)):
        network = partial(MultiGateExperts, 30, 16, experts, tasks)
        yield from click_workloads(
            f"mmoe-{experts}e-{tasks}t", network, 30, tasks, experts=experts, tasks=tasks
        )
