"""Which graphs of densely connected networks the zoo has."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from torch import nn

from ..registry import definition
from .dense import DenseNet, DualPathNetwork, FractalNet, Tiramisu, Tree
from .layers import Classifier, conv_norm
from .workload import Entry, ids, image_workloads, reals, workloads


class DeepLayerAggregation(Classifier):
    """Four trees of the given heights; from the second on, roots also read the tree's input."""

    def __init__(self, levels: tuple[int, ...], widths: tuple[int, ...]) -> None:
        features = nn.Sequential(conv_norm(3, 16, 7), conv_norm(16, 16), conv_norm(16, 32, 3, 2))
        channels = 32
        for index, (height, width) in enumerate(zip(levels, widths, strict=True)):
            features.append(Tree(height, channels, width, 2, with_input=index > 0))
            channels = width
        super().__init__(features, channels)


@definition(family="densenet", source="own", licence="Apache-2.0")
def densenet() -> Iterator[Entry]:
    """Huang et al. 2017, "Densely connected convolutional networks": DenseNet-BC."""
    for depth, blocks in ((121, (6, 12, 24, 16)), (169, (6, 12, 32, 32)), (201, (6, 12, 48, 32))):
        yield from image_workloads(f"densenet-{depth}", partial(DenseNet, blocks), depth=depth, growth=32)


@definition(family="tiramisu", source="own", licence="Apache-2.0")
def tiramisu() -> Iterator[Entry]:
    """Jegou et al. 2017, "The one hundred layers Tiramisu": FC-DenseNet56, 67 and 103; dropout left out."""
    for depth, layers, growth in (
        (56, (4, 4, 4, 4, 4, 4), 12),
        (67, (5, 5, 5, 5, 5, 5), 16),
        (103, (4, 5, 7, 10, 12, 15), 16),
    ):
        yield from workloads(
            f"tiramisu-{depth}",
            partial(Tiramisu, layers, growth),
            inputs=(reals(3, 3, 224, 224),),
            targets=(ids(11, 3, 224, 224),),
            batch=3,
            depth=depth,
            growth=growth,
            image=224,
        )


@definition(family="dpn", source="own", licence="Apache-2.0")
def dual_path_network() -> Iterator[Entry]:
    """Chen et al. 2017, "Dual path networks": DPN-92 and, with its blocks fewer, DPN-68-like depths."""
    for name, blocks in (("92", (3, 4, 20, 3)), ("small", (3, 4, 12, 3))):
        network = partial(DualPathNetwork, blocks, (16, 32, 24, 128))
        yield from image_workloads(f"dpn-{name}", network, blocks=list(blocks))


@definition(family="fractalnet", source="own", licence="Apache-2.0")
def fractalnet() -> Iterator[Entry]:
    """Larsson et al. 2017, "FractalNet: ultra-deep neural networks without residuals"; drop-path left out."""
    for columns, widths in ((3, (64, 128, 256, 512)), (4, (64, 128, 256, 512, 512))):
        yield from image_workloads(
            f"fractalnet-{columns}",
            partial(FractalNet, columns, widths, 100),
            batch=64,
            size=32,
            classes=100,
            columns=columns,
        )


@definition(family="dla", source="own", licence="Apache-2.0")
def deep_layer_aggregation() -> Iterator[Entry]:
    """Yu et al. 2018, "Deep layer aggregation": trees of basic blocks; DLA-34 and taller trees."""
    for name, levels in (("34", (1, 2, 2, 1)), ("60", (1, 2, 3, 1)), ("102", (1, 3, 4, 1))):
        network = partial(DeepLayerAggregation, levels, (64, 128, 256, 512))
        yield from image_workloads(f"dla-{name}", network, levels=list(levels))
