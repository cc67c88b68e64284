"""Which graphs of segmentation networks the zoo has."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from torch import nn

from ..registry import definition
from .segmentation import DeepLabV3Plus, HRNet, PSPNet, SegFormer, SegNet
from .workload import Entry, Optimizer, ids, reals, workloads


def pixel_workloads(
    name: str,
    network: Callable[[], nn.Module],
    *,
    batch: int,
    size: int,
    classes: int,
    optimizer: Optimizer = "sgd",
    **configuration: Any,
) -> Iterator[Entry]:
    """Graphs of a network that gives every pixel a class."""
    yield from workloads(
        name,
        network,
        inputs=(reals(batch, 3, size, size),),
        targets=(ids(classes, batch, size, size),),
        batch=batch,
        optimizer=optimizer,
        image=size,
        classes=classes,
        **configuration,
    )


@definition(family="segnet", source="own", licence="Apache-2.0")
def segnet() -> Iterator[Entry]:
    """Badrinarayanan et al. 2017, "SegNet: a deep convolutional encoder-decoder architecture for image
    segmentation", and one of four levels.
    """
    for repeats in ((2, 2, 2, 2), (2, 2, 3, 3, 3)):
        network = partial(SegNet, repeats)
        name = f"segnet-{2 * sum(repeats)}"
        yield from pixel_workloads(name, network, batch=4, size=352, classes=11, repeats=list(repeats))


@definition(family="deeplab-v3-plus", source="own", licence="Apache-2.0")
def deeplab() -> Iterator[Entry]:
    """Chen et al. 2018, "Encoder-decoder with atrous separable convolution for semantic image segmentation", on
    ResNet-50 and 101 with output stride 8.
    """
    for depth, blocks in ((50, (3, 4, 6, 3)), (101, (3, 4, 23, 3))):
        network = partial(DeepLabV3Plus, blocks)
        yield from pixel_workloads(
            f"deeplab-v3-plus-{depth}", network, batch=4, size=512, classes=21, depth=depth
        )


@definition(family="pspnet", source="own", licence="Apache-2.0")
def pspnet() -> Iterator[Entry]:
    """Zhao et al. 2017, "Pyramid scene parsing network", on ResNet-50 and 101 with output stride 8; no auxiliary
    loss.
    """
    for depth, blocks in ((50, (3, 4, 6, 3)), (101, (3, 4, 23, 3))):
        network = partial(PSPNet, blocks)
        yield from pixel_workloads(f"pspnet-{depth}", network, batch=4, size=480, classes=21, depth=depth)


@definition(family="hrnet", source="own", licence="Apache-2.0")
def hrnet() -> Iterator[Entry]:
    """Wang et al. 2021, "Deep high-resolution representation learning for visual recognition": HRNet-W18 with
    basic blocks in its first stage, and one with fewer modules.
    """
    for name, modules in (("small", (1, 1, 1)), ("w18", (1, 4, 3))):
        network = partial(HRNet, modules, 18)
        yield from pixel_workloads(
            f"hrnet-{name}", network, batch=4, size=512, classes=19, modules=list(modules)
        )


@definition(family="segformer", source="own", licence="Apache-2.0")
def segformer() -> Iterator[Entry]:
    """Xie et al. 2021, "SegFormer: simple and efficient design for semantic segmentation with transformers": B0
    and B2; stochastic depth left out.
    """
    for name, depths, widths, decoder in (
        ("b0", (2, 2, 2, 2), (32, 64, 160, 256), 256),
        ("b2", (3, 4, 6, 3), (64, 128, 320, 512), 768),
    ):
        network = partial(SegFormer, depths, widths, decoder)
        yield from pixel_workloads(
            f"segformer-{name}",
            network,
            batch=4,
            size=512,
            classes=150,
            depths=list(depths),
        )
