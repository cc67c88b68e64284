"""Images to images: EDSR, RCAN, RDN, CycleGAN."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..registry import definition
from .layers import Residual, SqueezeExcitation
from .workload import Entry, reals, workloads


class Enlarging(nn.Module):
    """A body on the small grid, then sub-pixel convolutions; absolute error.

    Args:
        body: From ``width`` channels to as many.
        width: Channels.
        scale: 2 or 4.
    """

    def __init__(self, body: nn.Module, width: int, scale: int) -> None:
        super().__init__()
        self.input = nn.Conv2d(3, width, 3, padding=1)
        self.body = body
        self.after = nn.Conv2d(width, width, 3, padding=1)
        enlarge = nn.Sequential()
        for _ in range(scale // 2):
            enlarge.extend([nn.Conv2d(width, 4 * width, 3, padding=1), nn.PixelShuffle(2)])
        self.enlarge = enlarge
        self.output = nn.Conv2d(width, 3, 3, padding=1)

    def forward(self, images: Tensor, sharp: Tensor | None = None) -> Tensor:
        features = self.input(images)
        enlarged = self.output(self.enlarge(features + self.after(self.body(features))))
        return enlarged if sharp is None else F.l1_loss(enlarged, sharp)


def plain_pair(width: int, *, attention: bool) -> nn.Sequential:
    """Two convolutions, and channel attention if asked."""
    layers = nn.Sequential(
        nn.Conv2d(width, width, 3, padding=1), nn.ReLU(), nn.Conv2d(width, width, 3, padding=1)
    )
    if attention:
        layers.append(SqueezeExcitation(width, width // 16))
    return layers


def edsr(blocks: int, width: int) -> Enlarging:
    """Residual blocks without normalisation."""
    body = nn.Sequential(*(Residual(plain_pair(width, attention=False)) for _ in range(blocks)))
    return Enlarging(body, width, 4)


def rcan(groups: int, blocks: int, width: int) -> Enlarging:
    """Residual groups of residual blocks with channel attention."""
    body = nn.Sequential()
    for _ in range(groups):
        group = nn.Sequential(*(Residual(plain_pair(width, attention=True)) for _ in range(blocks)))
        group.append(nn.Conv2d(width, width, 3, padding=1))
        body.append(Residual(group))
    return Enlarging(body, width, 4)


class ResidualDense(nn.Module):
    """Blocks of densely connected convolutions, each fused and added; all blocks' results are fused again."""

    def __init__(self, blocks: int, layers: int, width: int, growth: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            nn.ModuleList(nn.Conv2d(width + index * growth, growth, 3, padding=1) for index in range(layers))
            for _ in range(blocks)
        )
        self.fuse = nn.ModuleList(nn.Conv2d(width + layers * growth, width, 1) for _ in range(blocks))
        self.gather = nn.Conv2d(blocks * width, width, 1)

    def forward(self, features: Tensor) -> Tensor:
        results = []
        for layers, fuse in zip(self.layers, self.fuse, strict=True):
            parts = [features]
            for layer in layers.children():
                parts.append(F.relu(layer(torch.cat(parts, 1))))
            features = features + fuse(torch.cat(parts, 1))
            results.append(features)
        return self.gather(torch.cat(results, 1))


def rdn(blocks: int, layers: int) -> Enlarging:
    """Residual dense network, 64 channels, growth 64."""
    return Enlarging(ResidualDense(blocks, layers, 64, 64), 64, 2)


class Translator(nn.Module):
    """CycleGAN's generator: two halvings, residual blocks, two doublings, instance normalisation."""

    def __init__(self, blocks: int) -> None:
        super().__init__()
        layers = nn.Sequential(nn.ReflectionPad2d(3), *self.step(nn.Conv2d(3, 64, 7)))
        for a, b in ((64, 128), (128, 256)):
            layers.extend(self.step(nn.Conv2d(a, b, 3, 2, 1)))
        for _ in range(blocks):
            body = nn.Sequential(
                nn.ReflectionPad2d(1),
                *self.step(nn.Conv2d(256, 256, 3)),
                nn.ReflectionPad2d(1),
                nn.Conv2d(256, 256, 3),
            )
            layers.append(Residual(body.append(nn.InstanceNorm2d(256))))
        for a, b in ((256, 128), (128, 64)):
            layers.extend(self.step(nn.ConvTranspose2d(a, b, 3, 2, 1, 1)))
        layers.extend([nn.ReflectionPad2d(3), nn.Conv2d(64, 3, 7), nn.Tanh()])
        self.layers = layers

    @staticmethod
    def step(convolution: nn.Conv2d | nn.ConvTranspose2d) -> list[nn.Module]:
        """A convolution, instance normalisation and ReLU."""
        return [convolution, nn.InstanceNorm2d(convolution.out_channels), nn.ReLU()]

    def forward(self, images: Tensor) -> Tensor:
        return self.layers(images)


def patch_judge() -> nn.Sequential:
    """Says of every patch whether it is real."""
    layers = nn.Sequential(nn.Conv2d(3, 64, 4, 2, 1), nn.LeakyReLU(0.2))
    for a, b, stride in ((64, 128, 2), (128, 256, 2), (256, 512, 1)):
        layers.extend([nn.Conv2d(a, b, 4, stride, 1), nn.InstanceNorm2d(b), nn.LeakyReLU(0.2)])
    return layers.append(nn.Conv2d(512, 1, 4, 1, 1))


class CycleGAN(nn.Module):
    """Two translators and two judges: adversarial, cycle and judges' losses of one step."""

    def __init__(self, blocks: int) -> None:
        super().__init__()
        self.to_second, self.to_first = Translator(blocks), Translator(blocks)
        self.first_judge, self.second_judge = patch_judge(), patch_judge()

    def forward(self, first: Tensor, second: Tensor) -> Tensor:
        second_fake, first_fake = self.to_second(first), self.to_first(second)
        cycle = F.l1_loss(self.to_first(second_fake), first) + F.l1_loss(self.to_second(first_fake), second)
        loss = 10 * cycle
        for judge, real, fake in (
            (self.first_judge, first, first_fake),
            (self.second_judge, second, second_fake),
        ):
            judged = (1 - judge(real)).square().mean() + judge(fake.detach()).square().mean()
            loss = loss + (1 - judge(fake)).square().mean() + 0.5 * judged
        return loss


@definition(family="edsr", source="own", licence="Apache-2.0")
def enhanced_deep_super_resolution() -> Iterator[Entry]:
    """Lim et al. 2017, "Enhanced deep residual networks for single image super-resolution": the baseline of 16
    blocks, and 32 blocks of 256 channels.
    """
    for blocks, width in ((16, 64), (32, 256)):
        yield from enlarging(f"edsr-{blocks}", partial(edsr, blocks, width), 4, blocks=blocks, width=width)


@definition(family="rcan", source="own", licence="Apache-2.0")
def residual_channel_attention() -> Iterator[Entry]:
    """Zhang et al. 2018, "Image super-resolution using very deep residual channel attention networks"."""
    for groups, blocks in ((3, 6), (10, 20)):
        network = partial(rcan, groups, blocks, 64)
        yield from enlarging(f"rcan-{groups}x{blocks}", network, 4, groups=groups, blocks=blocks)


@definition(family="rdn", source="own", licence="Apache-2.0")
def residual_dense_network() -> Iterator[Entry]:
    """Zhang et al. 2018, "Residual dense network for image super-resolution"."""
    for blocks, layers in ((6, 4), (16, 8)):
        network = partial(rdn, blocks, layers)
        yield from enlarging(f"rdn-{blocks}x{layers}", network, 2, blocks=blocks, layers=layers)


def enlarging(
    name: str, network: Callable[[], Enlarging], scale: int, **configuration: Any
) -> Iterator[Entry]:
    """Graphs of a network that enlarges 48 x 48 images."""
    yield from workloads(
        name,
        network,
        inputs=(reals(16, 3, 48, 48),),
        targets=(reals(16, 3, 48 * scale, 48 * scale),),
        batch=16,
        modes=("train", "infer"),
        scale=scale,
        **configuration,
    )


@definition(family="cyclegan", source="own", licence="Apache-2.0")
def cyclegan() -> Iterator[Entry]:
    """Zhu et al. 2017, "Unpaired image-to-image translation using cycle-consistent adversarial networks": all
    losses in one step, 6 and 9 blocks.
    """
    for blocks, size in ((6, 128), (9, 256)):
        yield from workloads(
            f"cyclegan-{blocks}",
            partial(CycleGAN, blocks),
            inputs=(reals(1, 3, size, size), reals(1, 3, size, size)),
            batch=1,
            modes=("train",),
            blocks=blocks,
            image=size,
        )
