"""Inception-v3, with factorised convolutions and the auxiliary classifier."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from torch import Tensor, nn
from torch.nn import functional as F

from ..registry import definition
from .layers import Concatenated, conv_norm
from .workload import Entry, image_workloads


def pooled(inputs: int, outputs: int) -> nn.Sequential:
    """The branch of average pooling."""
    return nn.Sequential(nn.AvgPool2d(3, 1, 1), conv_norm(inputs, outputs, 1))


def grid_35(inputs: int, pool: int) -> Concatenated:
    """Block of the 35 x 35 grid (figure 5 of the paper; 5 x 5 kept as one convolution)."""
    return Concatenated(
        conv_norm(inputs, 64, 1),
        nn.Sequential(conv_norm(inputs, 48, 1), conv_norm(48, 64, 5)),
        nn.Sequential(conv_norm(inputs, 64, 1), conv_norm(64, 96), conv_norm(96, 96)),
        pooled(inputs, pool),
    )


def reduction_35(inputs: int) -> Concatenated:
    """From 35 x 35 to 17 x 17."""
    return Concatenated(
        conv_norm(inputs, 384, 3, 2, padding=0),
        nn.Sequential(conv_norm(inputs, 64, 1), conv_norm(64, 96), conv_norm(96, 96, 3, 2, padding=0)),
        nn.MaxPool2d(3, 2),
    )


def grid_17(middle: int) -> Concatenated:
    """Block of the 17 x 17 grid (figure 6): 7 x 7 as 1 x 7 and 7 x 1."""
    return Concatenated(
        conv_norm(768, 192, 1),
        nn.Sequential(
            conv_norm(768, middle, 1), conv_norm(middle, middle, (1, 7)), conv_norm(middle, 192, (7, 1))
        ),
        nn.Sequential(
            conv_norm(768, middle, 1),
            conv_norm(middle, middle, (7, 1)),
            conv_norm(middle, middle, (1, 7)),
            conv_norm(middle, middle, (7, 1)),
            conv_norm(middle, 192, (1, 7)),
        ),
        pooled(768, 192),
    )


def reduction_17() -> Concatenated:
    """From 17 x 17 to 8 x 8."""
    return Concatenated(
        nn.Sequential(conv_norm(768, 192, 1), conv_norm(192, 320, 3, 2, padding=0)),
        nn.Sequential(
            conv_norm(768, 192, 1),
            conv_norm(192, 192, (1, 7)),
            conv_norm(192, 192, (7, 1)),
            conv_norm(192, 192, 3, 2, padding=0),
        ),
        nn.MaxPool2d(3, 2),
    )


def split_3x3() -> Concatenated:
    """1 x 3 beside 3 x 1."""
    return Concatenated(conv_norm(384, 384, (1, 3)), conv_norm(384, 384, (3, 1)))


def grid_8(inputs: int) -> Concatenated:
    """Block of the 8 x 8 grid (figure 7)."""
    return Concatenated(
        conv_norm(inputs, 320, 1),
        nn.Sequential(conv_norm(inputs, 384, 1), split_3x3()),
        nn.Sequential(conv_norm(inputs, 448, 1), conv_norm(448, 384), split_3x3()),
        pooled(inputs, 192),
    )


class InceptionV3(nn.Module):
    """The network of section 6; the auxiliary classifier sits on the last 17 x 17 grid.

    Args:
        auxiliary: Whether training adds 0.3 times the auxiliary loss.
        classes: Number of classes.
    """

    def __init__(self, *, auxiliary: bool = True, classes: int = 1000) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            conv_norm(3, 32, 3, 2, padding=0),
            conv_norm(32, 32, 3, padding=0),
            conv_norm(32, 64),
            nn.MaxPool2d(3, 2),
            conv_norm(64, 80, 1),
            conv_norm(80, 192, 3, padding=0),
            nn.MaxPool2d(3, 2),
        )
        self.grid_35 = nn.Sequential(grid_35(192, 32), grid_35(256, 64), grid_35(288, 64), reduction_35(288))
        self.grid_17 = nn.Sequential(grid_17(128), grid_17(160), grid_17(160), grid_17(192))
        self.reduction = reduction_17()
        self.grid_8 = nn.Sequential(grid_8(1280), grid_8(2048))
        self.head = nn.Linear(2048, classes)
        self.auxiliary = (
            nn.Sequential(
                nn.AvgPool2d(5, 3),
                conv_norm(768, 128, 1),
                conv_norm(128, 768, 5, padding=0),
                nn.AdaptiveAvgPool2d(1),
                nn.Flatten(),
                nn.Linear(768, classes),
            )
            if auxiliary
            else None
        )

    def forward(self, images: Tensor, labels: Tensor | None = None) -> Tensor:
        middle = self.grid_17(self.grid_35(self.stem(images)))
        logits = self.head(self.grid_8(self.reduction(middle)).mean((2, 3)))
        if labels is None:
            return logits
        loss = F.cross_entropy(logits, labels)
        if self.auxiliary is not None:
            loss = loss + 0.3 * F.cross_entropy(self.auxiliary(middle), labels)
        return loss


@definition(family="inception-v3", source="own", licence="Apache-2.0", workload=True)
def inception_v3() -> Iterator[Entry]:
    """Inception-v3 of GDP (Zhou et al. 2019), batch 32 and 64, after Szegedy et al. 2016, "Rethinking the
    Inception architecture for computer vision": 299 x 299 images, with the auxiliary classifier.
    """
    for batch in (32, 64):
        yield from image_workloads(
            f"inception-v3-b{batch}",
            partial(InceptionV3, auxiliary=True),
            batch=batch,
            size=299,
            modes=("train",),
            auxiliary=True,
        )


@definition(family="inception-v3", source="own", licence="Apache-2.0")
def inception_v3_plain() -> Iterator[Entry]:
    """Inception-v3 (Szegedy et al. 2016) without the auxiliary classifier."""
    yield from image_workloads(
        "inception-v3-plain", partial(InceptionV3, auxiliary=False), size=299, auxiliary=False
    )
