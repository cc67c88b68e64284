"""Networks for small devices: MobileNet 1 to 3 and EfficientNet."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial

from torch import Tensor, nn

from ..registry import definition
from .layers import Activation, Classifier, Residual, SqueezeExcitation, conv_norm
from .workload import Entry, image_workloads


def rounded(channels: float, divisor: int = 8) -> int:
    """The nearest multiple of a divisor that is not more than a tenth below."""
    near = max(divisor, int(channels + divisor / 2) // divisor * divisor)
    return near + divisor if near < 0.9 * channels else near


class MobileNetV1(Classifier):
    """Depthwise and pointwise convolutions in turn."""

    STEPS = (
        (64, 1),
        (128, 2),
        (128, 1),
        (256, 2),
        (256, 1),
        (512, 2),
        *((512, 1),) * 5,
        (1024, 2),
        (1024, 1),
    )

    def __init__(self) -> None:
        features = nn.Sequential(conv_norm(3, 32, 3, 2))
        channels = 32
        for outputs, stride in self.STEPS:
            features.append(
                nn.Sequential(
                    conv_norm(channels, channels, 3, stride, groups=channels), conv_norm(channels, outputs, 1)
                )
            )
            channels = outputs
        super().__init__(features, channels)


def inverted(
    inputs: int,
    outputs: int,
    *,
    hidden: int,
    kernel: int = 3,
    stride: int = 1,
    squeeze: int = 0,
    activation: Activation = nn.ReLU6,
    gate: Activation = nn.Sigmoid,
    inner: Activation = nn.ReLU,
) -> nn.Module:
    """Inverted residual block: widen, depthwise, squeeze and excite (``squeeze`` channels), narrow."""
    layers = nn.Sequential()
    if hidden != inputs:
        layers.append(conv_norm(inputs, hidden, 1, activation=activation))
    layers.append(conv_norm(hidden, hidden, kernel, stride, groups=hidden, activation=activation))
    if squeeze:
        layers.append(SqueezeExcitation(hidden, squeeze, inner, gate))
    layers.append(conv_norm(hidden, outputs, 1, activation=None))
    return Residual(layers) if stride == 1 and inputs == outputs else layers


class MobileNetV2(Classifier):
    """Inverted residual blocks; rows are (expansion, channels, repeats, stride)."""

    ROWS = (
        (1, 16, 1, 1),
        (6, 24, 2, 2),
        (6, 32, 3, 2),
        (6, 64, 4, 2),
        (6, 96, 3, 1),
        (6, 160, 3, 2),
        (6, 320, 1, 1),
    )

    def __init__(self) -> None:
        features = nn.Sequential(conv_norm(3, 32, 3, 2, activation=nn.ReLU6))
        channels = 32
        for expansion, outputs, repeats, stride in self.ROWS:
            for index in range(repeats):
                step = stride if index == 0 else 1
                features.append(inverted(channels, outputs, hidden=expansion * channels, stride=step))
                channels = outputs
        features.append(conv_norm(channels, 1280, 1, activation=nn.ReLU6))
        super().__init__(features, 1280)


#: Kernel, hidden and output channels, whether to squeeze, whether hard swish, stride.
Row = tuple[int, int, int, bool, bool, int]

MOBILENET_V3_LARGE: tuple[Row, ...] = (
    (3, 16, 16, False, False, 1), (3, 64, 24, False, False, 2), (3, 72, 24, False, False, 1),
    (5, 72, 40, True, False, 2), (5, 120, 40, True, False, 1), (5, 120, 40, True, False, 1),
    (3, 240, 80, False, True, 2), (3, 200, 80, False, True, 1), (3, 184, 80, False, True, 1),
    (3, 184, 80, False, True, 1), (3, 480, 112, True, True, 1), (3, 672, 112, True, True, 1),
    (5, 672, 160, True, True, 2), (5, 960, 160, True, True, 1), (5, 960, 160, True, True, 1),
)  # fmt: skip
MOBILENET_V3_SMALL: tuple[Row, ...] = (
    (3, 16, 16, True, False, 2), (3, 72, 24, False, False, 2), (3, 88, 24, False, False, 1),
    (5, 96, 40, True, True, 2), (5, 240, 40, True, True, 1), (5, 240, 40, True, True, 1),
    (5, 120, 48, True, True, 1), (5, 144, 48, True, True, 1), (5, 288, 96, True, True, 2),
    (5, 576, 96, True, True, 1), (5, 576, 96, True, True, 1),
)  # fmt: skip


class MobileNetV3(nn.Module):
    """Searched inverted blocks with hard activations; the last layers come after the pooling."""

    def __init__(self, rows: tuple[Row, ...], hidden: int, classes: int = 1000) -> None:
        super().__init__()
        features = nn.Sequential(conv_norm(3, 16, 3, 2, activation=nn.Hardswish))
        channels = 16
        for kernel, wide, outputs, squeeze, hard, stride in rows:
            features.append(
                inverted(
                    channels,
                    outputs,
                    hidden=wide,
                    kernel=kernel,
                    stride=stride,
                    squeeze=rounded(wide / 4) if squeeze else 0,
                    activation=nn.Hardswish if hard else nn.ReLU,
                    gate=nn.Hardsigmoid,
                )
            )
            channels = outputs
        features.append(conv_norm(channels, 6 * channels, 1, activation=nn.Hardswish))
        self.features = features
        self.mix = nn.Sequential(nn.Linear(6 * channels, hidden), nn.Hardswish())
        self.head = nn.Linear(hidden, classes)

    def forward(self, images: Tensor, labels: Tensor | None = None) -> Tensor:
        logits = self.head(self.mix(self.features(images).mean((2, 3))))
        return logits if labels is None else nn.functional.cross_entropy(logits, labels)


class EfficientNet(Classifier):
    """Compound scaling of a searched network; rows are (expansion, channels, repeats, stride, kernel)."""

    ROWS = (
        (1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 40, 2, 2, 5), (6, 80, 3, 2, 3),
        (6, 112, 3, 1, 5), (6, 192, 4, 2, 5), (6, 320, 1, 1, 3),
    )  # fmt: skip

    def __init__(self, width: float, depth: float) -> None:
        channels = rounded(32 * width)
        features = nn.Sequential(conv_norm(3, channels, 3, 2, activation=nn.SiLU))
        for expansion, base, repeats, stride, kernel in self.ROWS:
            outputs = rounded(base * width)
            for index in range(math.ceil(depth * repeats)):
                features.append(
                    inverted(
                        channels,
                        outputs,
                        hidden=expansion * channels,
                        kernel=kernel,
                        stride=stride if index == 0 else 1,
                        squeeze=max(1, channels // 4),
                        activation=nn.SiLU,
                        inner=nn.SiLU,
                    )
                )
                channels = outputs
        last = rounded(1280 * width)
        features.append(conv_norm(channels, last, 1, activation=nn.SiLU))
        super().__init__(features, last)


@definition(family="mobilenet-v1", source="own", licence="Apache-2.0")
def mobilenet_v1() -> Iterator[Entry]:
    """Howard et al. 2017, "MobileNets: efficient convolutional neural networks for mobile vision applications"."""
    yield from image_workloads("mobilenet-v1", MobileNetV1, batch=64)


@definition(family="mobilenet-v2", source="own", licence="Apache-2.0")
def mobilenet_v2() -> Iterator[Entry]:
    """Sandler et al. 2018, "MobileNetV2: inverted residuals and linear bottlenecks"."""
    yield from image_workloads("mobilenet-v2", MobileNetV2, batch=64)


@definition(family="mobilenet-v3", source="own", licence="Apache-2.0")
def mobilenet_v3() -> Iterator[Entry]:
    """Howard et al. 2019, "Searching for MobileNetV3"."""
    yield from image_workloads("mobilenet-v3-large", partial(MobileNetV3, MOBILENET_V3_LARGE, 1280), batch=64)
    yield from image_workloads("mobilenet-v3-small", partial(MobileNetV3, MOBILENET_V3_SMALL, 1024), batch=64)


@definition(family="efficientnet", source="own", licence="Apache-2.0")
def efficientnet() -> Iterator[Entry]:
    """Tan and Le 2019, "EfficientNet: rethinking model scaling for convolutional neural networks"; drop-connect
    left out.
    """
    for name, width, depth, size in (("b0", 1.0, 1.0, 224), ("b3", 1.2, 1.4, 300), ("b7", 2.0, 3.1, 600)):
        yield from image_workloads(
            f"efficientnet-{name}",
            partial(EfficientNet, width, depth),
            batch=32 if name != "b7" else 4,
            size=size,
            width=width,
            depth=depth,
        )
