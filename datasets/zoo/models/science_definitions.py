"""Which graphs of the networks of ``science`` and ``representation`` the zoo has."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from ..registry import definition
from .representation import CLIP, ConvolutionalSeq2Seq, HighwayNetwork, MemoryNetwork, SimSiam
from .science import ConvLSTM, Evoformer, NBeats, PointNet
from .workload import Entry, ids, image_workloads, reals, workloads


@definition(family="pointnet", source="own", licence="Apache-2.0")
def pointnet() -> Iterator[Entry]:
    """Qi et al. 2017, "PointNet: deep learning on point sets for 3D classification and segmentation"; dropout left
    out.
    """
    for name, parts in (("classes", 0), ("parts", 50)):
        yield from workloads(
            f"pointnet-{name}",
            partial(PointNet, parts),
            inputs=(reals(32, 3, 1024),),
            targets=(ids(50, 32, 1024) if parts else ids(40, 32),),
            batch=32,
            points=1024,
        )


@definition(family="evoformer", source="own", licence="Apache-2.0")
def evoformer() -> Iterator[Entry]:
    """Jumper et al. 2021, "Highly accurate protein structure prediction with AlphaFold": the trunk's blocks over 64
    sequences of 96 residues, one protein; dropout left out.
    """
    for blocks in (2, 8, 24):
        yield from workloads(
            f"evoformer-{blocks}",
            partial(Evoformer, blocks, 256, 128),
            inputs=(ids(23, 64, 96),),
            targets=(ids(64, 96, 96), ids(23, 64, 96)),
            batch=1,
            blocks=blocks,
            sequences=64,
            residues=96,
        )


@definition(family="convlstm", source="own", licence="Apache-2.0")
def convolutional_lstm() -> Iterator[Entry]:
    """Shi et al. 2015, "Convolutional LSTM network: a machine learning approach for precipitation nowcasting"."""
    for layers, frames in ((2, 5), (3, 10), (1, 15)):
        yield from workloads(
            f"convlstm-{layers}l",
            partial(ConvLSTM, layers, 64, frames),
            inputs=(reals(8, frames, 16, 16, 16),),
            targets=(reals(8, frames, 16, 16, 16),),
            batch=8,
            layers=layers,
            frames=frames,
        )


@definition(family="n-beats", source="own", licence="Apache-2.0")
def n_beats() -> Iterator[Entry]:
    """Oreshkin et al. 2020, "N-BEATS: neural basis expansion analysis for interpretable time series forecasting":
    generic blocks, shared within a stack or not; what stays unexplained has a small share in the loss.
    """
    for stacks, blocks, shared in ((10, 1, False), (30, 1, False), (4, 6, True)):
        yield from workloads(
            f"n-beats-{stacks}x{blocks}",
            partial(NBeats, stacks, blocks, 120, 24, shared=shared),
            inputs=(reals(1024, 120),),
            targets=(reals(1024, 24),),
            batch=1024,
            stacks=stacks,
            blocks=blocks,
            shared=shared,
        )


@definition(family="clip", source="own", licence="Apache-2.0")
def clip() -> Iterator[Entry]:
    """Radford et al. 2021, "Learning transferable visual models from natural language supervision": patches of 32,
    the mean of the patches as image feature.
    """
    for layers, width in ((4, 512), (12, 768)):
        yield from workloads(
            f"clip-{layers}",
            partial(CLIP, layers, width, 49408),
            inputs=(reals(32, 3, 224, 224), ids(49408, 32, 77)),
            targets=(ids(32, 32),),
            batch=32,
            layers=layers,
            width=width,
        )


@definition(family="simsiam", source="own", licence="Apache-2.0")
def simsiam() -> Iterator[Entry]:
    """Chen and He 2021, "Exploring simple siamese representation learning", on ResNet-18 and 34."""
    for depth in (18, 34):
        yield from workloads(
            f"simsiam-{depth}",
            partial(SimSiam, depth),
            inputs=(reals(32, 3, 224, 224), reals(32, 3, 224, 224)),
            batch=32,
            modes=("train",),
            depth=depth,
        )


@definition(family="memory-network", source="own", licence="Apache-2.0")
def memory_network() -> Iterator[Entry]:
    """Sukhbaatar et al. 2015, "End-to-end memory networks": adjacent weight tying, bags of words."""
    for hops in (6, 12):
        yield from workloads(
            f"memory-network-{hops}",
            partial(MemoryNetwork, hops, 150, 10000, 100),
            inputs=(ids(10000, 32, 100, 12), ids(10000, 32, 12)),
            targets=(ids(10000, 32),),
            batch=32,
            modes=("train", "infer") if hops > 6 else ("train",),
            hops=hops,
            sentences=100,
        )


@definition(family="convs2s", source="own", licence="Apache-2.0")
def convolutional_seq2seq() -> Iterator[Entry]:
    """Gehring et al. 2017, "Convolutional sequence to sequence learning", without weight normalisation."""
    for layers, width in ((4, 256), (15, 512)):
        yield from workloads(
            f"convs2s-{layers}",
            partial(ConvolutionalSeq2Seq, layers, width, 32000, 40),
            inputs=(ids(32000, 32, 40), ids(32000, 32, 40)),
            targets=(ids(32000, 32, 40),),
            batch=32,
            modes=("train", "infer") if layers > 4 else ("train",),
            layers=layers,
            width=width,
            length=40,
        )


@definition(family="highway", source="own", licence="Apache-2.0")
def highway_network() -> Iterator[Entry]:
    """Srivastava et al. 2015, "Training very deep networks": fully connected highway layers."""
    for layers in (20, 50):
        network = partial(HighwayNetwork, layers, 512)
        yield from image_workloads(
            f"highway-{layers}", network, batch=128, size=32, classes=10, layers=layers
        )
