"""Adversarial networks and normalising flows: DCGAN, StyleGAN2, Glow, RealNVP."""

from __future__ import annotations

import math
from functools import partial
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .layers import conv_norm


class DCGAN(nn.Module):
    """One step's losses of generator and discriminator, on the same fake images."""

    def __init__(self, levels: int, channels: int = 64) -> None:
        super().__init__()
        widths = [channels * 2**level for level in range(levels)]
        generator = nn.Sequential(
            nn.ConvTranspose2d(100, widths[-1], 4), nn.BatchNorm2d(widths[-1]), nn.ReLU()
        )
        for a, b in zip(reversed(widths[1:]), reversed(widths[:-1]), strict=True):
            generator.extend([nn.ConvTranspose2d(a, b, 4, 2, 1), nn.BatchNorm2d(b), nn.ReLU()])
        generator.extend([nn.ConvTranspose2d(channels, 3, 4, 2, 1), nn.Tanh()])
        discriminator = nn.Sequential(nn.Conv2d(3, channels, 4, 2, 1), nn.LeakyReLU(0.2))
        for a, b in pairwise(widths):
            discriminator.append(conv_norm(a, b, 4, 2, padding=1, activation=partial(nn.LeakyReLU, 0.2)))
        discriminator.append(nn.Conv2d(widths[-1], 1, 4))
        self.generator, self.discriminator = generator, discriminator

    def forward(self, noise: Tensor, images: Tensor | None = None) -> Tensor:
        fakes = self.generator(noise[:, :, None, None])
        if images is None:
            return fakes
        real = F.softplus(-self.discriminator(images)).mean()
        fake = F.softplus(self.discriminator(fakes.detach())).mean()
        return real + fake + F.softplus(-self.discriminator(fakes)).mean()


class ModulatedConvolution(nn.Module):
    """Convolution whose weights are scaled per sample by a style and normalised again (StyleGAN2)."""

    def __init__(self, inputs: int, outputs: int, kernel: int, *, demodulate: bool = True) -> None:
        super().__init__()
        self.demodulate = demodulate
        self.weight = nn.Parameter(torch.zeros(outputs, inputs, kernel, kernel))
        self.style = nn.Linear(512, inputs)
        self.bias = nn.Parameter(torch.zeros(outputs, 1, 1))

    def forward(self, features: Tensor, latent: Tensor) -> Tensor:
        batch, inputs, height, width = features.shape
        weights = self.weight * self.style(latent)[:, None, :, None, None]
        if self.demodulate:
            weights = weights * torch.rsqrt(weights.square().sum((2, 3, 4), keepdim=True) + 1e-8)
        outputs, kernel = self.weight.shape[0], self.weight.shape[2]
        mixed = F.conv2d(
            features.reshape(1, batch * inputs, height, width),
            weights.reshape(batch * outputs, inputs, kernel, kernel),
            padding=kernel // 2,
            groups=batch,
        )
        return mixed.reshape(batch, outputs, height, width) + self.bias


class StyleGAN2(nn.Module):
    """Mapping network, skip generator and residual discriminator; losses of one step as in DCGAN."""

    def __init__(self, size: int, channels: int) -> None:
        super().__init__()
        mapping = nn.Sequential()
        for _ in range(8):
            mapping.extend([nn.Linear(512, 512), nn.LeakyReLU(0.2)])
        self.mapping = mapping
        levels = int(math.log2(size)) - 2
        widths = [min(512, channels * 2 ** (levels - level)) for level in range(levels + 1)]
        self.constant = nn.Parameter(torch.zeros(1, widths[0], 4, 4))
        self.first = nn.ModuleList(
            ModulatedConvolution(widths[max(level - 1, 0)], width, 3) for level, width in enumerate(widths)
        )
        self.second = nn.ModuleList(ModulatedConvolution(width, width, 3) for width in widths)
        self.to_image = nn.ModuleList(ModulatedConvolution(width, 3, 1, demodulate=False) for width in widths)
        self.from_image = nn.Conv2d(3, widths[-1], 1)
        self.bodies, self.shortcuts = nn.ModuleList(), nn.ModuleList()
        for a, b in zip(reversed(widths[1:]), reversed(widths[:-1]), strict=True):
            self.bodies.append(
                nn.Sequential(
                    nn.Conv2d(a, a, 3, padding=1),
                    nn.LeakyReLU(0.2),
                    nn.Conv2d(a, b, 3, 2, 1),
                    nn.LeakyReLU(0.2),
                )
            )
            self.shortcuts.append(nn.Sequential(nn.AvgPool2d(2), nn.Conv2d(a, b, 1, bias=False)))
        self.judge = nn.Sequential(nn.Linear(16 * widths[0], 512), nn.LeakyReLU(0.2), nn.Linear(512, 1))

    def generate(self, noise: Tensor) -> Tensor:
        latent = self.mapping(noise * torch.rsqrt(noise.square().mean(1, keepdim=True) + 1e-8))
        features = self.constant.expand(noise.shape[0], -1, -1, -1)
        image: Tensor | None = None
        for first, second, to_image in zip(self.first, self.second, self.to_image, strict=True):
            if image is not None:
                features = F.interpolate(features, scale_factor=2.0, mode="bilinear")
                image = F.interpolate(image, scale_factor=2.0, mode="bilinear")
            features = F.leaky_relu(first(features, latent), 0.2)
            features = F.leaky_relu(second(features, latent), 0.2)
            colours = to_image(features, latent)
            image = colours if image is None else image + colours
        assert image is not None
        return image

    def discriminate(self, images: Tensor) -> Tensor:
        features = self.from_image(images)
        for body, shortcut in zip(self.bodies, self.shortcuts, strict=True):
            features = (body(features) + shortcut(features)) * 0.7071
        return self.judge(features.flatten(1))

    def forward(self, noise: Tensor, images: Tensor | None = None) -> Tensor:
        fakes = self.generate(noise)
        if images is None:
            return fakes
        real = F.softplus(-self.discriminate(images)).mean()
        fake = F.softplus(self.discriminate(fakes.detach())).mean()
        return real + fake + F.softplus(-self.discriminate(fakes)).mean()


class Coupling(nn.Module):
    """One step of Glow: activation norm, invertible 1 x 1 convolution, affine coupling.

    ``mixes`` is left out in RealNVP, whose steps swap the halves instead.
    """

    def __init__(self, channels: int, hidden: int, *, mixes: bool) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.zeros(channels, 1, 1))
        self.offset = nn.Parameter(torch.zeros(channels, 1, 1))
        self.mix = nn.Parameter(torch.zeros(channels, channels)) if mixes else None
        self.log_scale = nn.Parameter(torch.zeros(channels)) if mixes else None
        self.network = nn.Sequential(
            nn.Conv2d(channels // 2, hidden, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(hidden, hidden, 1),
            nn.ReLU(),
            nn.Conv2d(hidden, channels, 3, padding=1),
        )

    def forward(self, features: Tensor) -> tuple[Tensor, Tensor]:
        """The features and the logarithm of the determinant of each sample."""
        area = features.shape[2] * features.shape[3]
        features = (features + self.offset) * torch.exp(self.scale)
        determinant = area * self.scale.sum()
        if self.mix is not None and self.log_scale is not None:
            lower = torch.tril(self.mix, -1) + torch.eye(self.mix.shape[0], device=features.device)
            upper = torch.triu(self.mix, 1) + torch.diag(torch.exp(self.log_scale))
            features = F.conv2d(features, (lower @ upper)[:, :, None, None])
            determinant = determinant + area * self.log_scale.sum()
        first, second = features.chunk(2, 1)
        scale, offset = self.network(first).chunk(2, 1)
        scale = torch.sigmoid(scale + 2)
        second = (second + offset) * scale
        return torch.cat([second, first], 1), determinant + torch.log(scale).sum((1, 2, 3))


class Flow(nn.Module):
    """Levels of squeezing, coupling and splitting; the loss is the negative log-likelihood."""

    def __init__(self, levels: int, steps: int, hidden: int, *, mixes: bool) -> None:
        super().__init__()
        self.levels = nn.ModuleList()
        channels = 3
        for level in range(levels):
            channels *= 4
            self.levels.append(nn.ModuleList(Coupling(channels, hidden, mixes=mixes) for _ in range(steps)))
            channels = channels // 2 if level < levels - 1 else channels

    def forward(self, images: Tensor) -> Tensor:
        """Mean log-likelihood up to a constant, negated."""
        features, total = images, images.new_zeros(images.shape[0])
        for index, level in enumerate(self.levels):
            features = F.pixel_unshuffle(features, 2)
            for step in level.children():
                features, determinant = step(features)
                total = total + determinant
            if index < len(self.levels) - 1:
                features, done = features.chunk(2, 1)
                total = total - 0.5 * done.square().sum((1, 2, 3))
        return -(total - 0.5 * features.square().sum((1, 2, 3))).mean()
