"""Which graphs of detectors the zoo has."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from ..registry import definition
from .detection import SSD, RetinaNet, YOLOv3
from .pyramids import DETR, EfficientDet, StackedHourglass
from .workload import Entry, ids, reals, workloads


@definition(family="retinanet", source="own", licence="Apache-2.0")
def retinanet() -> Iterator[Entry]:
    """Lin et al. 2017, "Focal loss for dense object detection"; anchors are assigned beforehand."""
    for depth in (50, 101):
        places = 9 * (64 * 64 + 32 * 32 + 16 * 16 + 8 * 8 + 4 * 4)
        yield from workloads(
            f"retinanet-{depth}",
            partial(RetinaNet, depth),
            inputs=(reals(2, 3, 512, 512),),
            targets=(reals(2, places, 80), reals(2, places, 4)),
            batch=2,
            image=512,
            depth=depth,
        )


@definition(family="yolo-v3", source="own", licence="Apache-2.0")
def yolo_v3() -> Iterator[Entry]:
    """Redmon and Farhadi 2018, "YOLOv3: an incremental improvement", and one with fewer residual blocks; boxes are
    assigned beforehand.
    """
    for name, repeats in (("", (1, 2, 8, 8, 4)), ("-short", (1, 1, 3, 3, 2))):
        yield from workloads(
            f"yolo-v3{name}",
            partial(YOLOv3, repeats),
            inputs=(reals(8, 3, 416, 416),),
            targets=(reals(8, 10647, 85),),
            batch=8,
            image=416,
            blocks=list(repeats),
        )


@definition(family="ssd", source="own", licence="Apache-2.0")
def ssd() -> Iterator[Entry]:
    """Liu et al. 2016, "SSD: single shot multibox detector": SSD300 on VGG-16, without its scaled norm."""
    yield from workloads(
        "ssd-300",
        SSD,
        inputs=(reals(16, 3, 300, 300),),
        targets=(ids(21, 16, 8732), reals(16, 8732, 4)),
        batch=16,
        image=300,
    )


@definition(family="efficientdet", source="own", licence="Apache-2.0")
def efficientdet() -> Iterator[Entry]:
    """Tan et al. 2020, "EfficientDet: scalable and efficient object detection": D0, and the pyramid and heads of
    D2 on the same backbone.
    """
    places = 9 * (64 * 64 + 32 * 32 + 16 * 16 + 8 * 8 + 4 * 4)
    for name, layers, channels, depth in (("d0", 3, 64, 3), ("d0-deep", 5, 112, 4)):
        yield from workloads(
            f"efficientdet-{name}",
            partial(EfficientDet, layers, channels, depth),
            inputs=(reals(4, 3, 512, 512),),
            targets=(reals(4, places, 90), reals(4, places, 4)),
            batch=4,
            image=512,
            pyramid_layers=layers,
            channels=channels,
        )


@definition(family="detr", source="own", licence="Apache-2.0")
def detr() -> Iterator[Entry]:
    """Carion et al. 2020, "End-to-end object detection with transformers"; learned positions, auxiliary losses,
    queries matched beforehand; dropout left out.
    """
    for layers in (3, 6):
        yield from workloads(
            f"detr-{layers}",
            partial(DETR, layers, 640),
            inputs=(reals(2, 3, 640, 640),),
            targets=(ids(92, 2, 100), reals(2, 100, 4)),
            batch=2,
            image=640,
            layers=layers,
        )


@definition(family="hourglass", source="own", licence="Apache-2.0")
def stacked_hourglass() -> Iterator[Entry]:
    """Newell et al. 2016, "Stacked hourglass networks for human pose estimation"."""
    for stacks in (2, 4, 8):
        yield from workloads(
            f"hourglass-{stacks}",
            partial(StackedHourglass, stacks),
            inputs=(reals(6, 3, 256, 256),),
            targets=(reals(6, 16, 64, 64),),
            batch=6,
            image=256,
            stacks=stacks,
        )
