"""Ladder variational autoencoder, VQ-VAE and the U-Net of diffusion models."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .attention import attend, sinusoids


class SwishBlock(nn.Module):
    """Residual block of the deep hierarchical autoencoders: narrow, two 3 x 3, widen; GELU first."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        middle = max(inputs // 4, 1)
        layers = nn.Sequential()
        for a, b, kernel in (
            (inputs, middle, 1),
            (middle, middle, 3),
            (middle, middle, 3),
            (middle, outputs, 1),
        ):
            layers.extend([nn.GELU(), nn.Conv2d(a, b, kernel, padding=kernel // 2)])
        self.layers = layers
        self.residual = inputs == outputs

    def forward(self, features: Tensor) -> Tensor:
        return features + self.layers(features) if self.residual else self.layers(features)


class LadderVAE(nn.Module):
    """Encoder from fine to coarse, decoder back; every decoder block has its own latent variables.

    Args:
        blocks: Blocks at each resolution, the finest (32 x 32) first.
        width: Channels.
    """

    def __init__(self, blocks: tuple[int, ...], width: int) -> None:
        super().__init__()
        self.width = width
        self.input = nn.Conv2d(3, width, 3, padding=1)
        self.encoder = nn.ModuleList(
            nn.Sequential(*(SwishBlock(width, width) for _ in range(n))) for n in blocks
        )
        self.start = nn.Parameter(torch.zeros(1, width, 32 >> (len(blocks) - 1), 32 >> (len(blocks) - 1)))
        self.priors, self.posteriors, self.projections, self.blocks = (
            nn.ModuleList(nn.ModuleList(make() for _ in range(n)) for n in reversed(blocks))
            for make in (
                lambda: SwishBlock(width, 32 + width),
                lambda: SwishBlock(2 * width, 32),
                lambda: nn.Conv2d(16, width, 1),
                lambda: SwishBlock(width, width),
            )
        )
        self.output = nn.Conv2d(width, 3, 1)

    def forward(self, images: Tensor, noise: Tensor) -> Tensor:
        """Negative evidence lower bound; ``noise`` [batch, latent channels of all blocks, 32, 32]."""
        encoded = []
        features = self.input(images)
        for level, block in enumerate(self.encoder):
            features = block(features if level == 0 else F.avg_pool2d(features, 2))
            encoded.append(features)
        state = self.start.expand(images.shape[0], -1, -1, -1)
        divergence = images.new_zeros(images.shape[0])
        used = 0
        groups = zip(self.priors, self.posteriors, self.projections, self.blocks, strict=True)
        for level, group in enumerate(groups):
            seen = encoded.pop()
            if level > 0:
                state = F.interpolate(state, scale_factor=2.0)
            side = state.shape[2]
            for prior, posterior, project, block in zip(*(part.children() for part in group), strict=True):
                own_mean, own_scale, extra = torch.split(prior(state), [16, 16, self.width], 1)
                mean, scale = posterior(torch.cat([state, seen], 1)).chunk(2, 1)
                drawn = mean + torch.exp(scale) * noise[:, used : used + 16, :side, :side]
                used += 16
                ratio = torch.exp(2 * scale) + (mean - own_mean).square()
                terms = own_scale - scale - 0.5 + 0.5 * ratio * torch.exp(-2 * own_scale)
                divergence = divergence + terms.sum((1, 2, 3))
                state = block(state + extra + project(drawn))
        distance = (self.output(state) - images).abs().sum((1, 2, 3))
        return (distance + divergence).mean()


class VQVAE(nn.Module):
    """Convolutional autoencoder whose code vectors come from a table; straight-through gradients."""

    def __init__(self, levels: int, blocks: int, width: int = 128, entries: int = 512) -> None:
        super().__init__()
        encoder, decoder = nn.Sequential(), nn.Sequential(nn.Conv2d(64, width, 3, padding=1))
        for level in range(levels):
            encoder.extend([nn.Conv2d(3 if level == 0 else width, width, 4, 2, 1), nn.ReLU()])
        for _ in range(blocks):
            encoder.append(ReluBlock(width))
            decoder.append(ReluBlock(width))
        encoder.append(nn.Conv2d(width, 64, 1))
        for level in range(levels):
            decoder.extend(
                [nn.ReLU(), nn.ConvTranspose2d(width, 3 if level == levels - 1 else width, 4, 2, 1)]
            )
        self.encoder, self.decoder = encoder, decoder
        self.codes = nn.Embedding(entries, 64)

    def forward(self, images: Tensor) -> Tensor:
        """Reconstruction, codebook and commitment loss."""
        encoded = self.encoder(images)
        flat = encoded.permute(0, 2, 3, 1).reshape(-1, 64)
        table = self.codes.weight
        distances = flat.square().sum(1, keepdim=True) - 2 * flat @ table.t() + table.square().sum(1)
        codes = self.codes(distances.argmin(1)).reshape(encoded.permute(0, 2, 3, 1).shape).permute(0, 3, 1, 2)
        through = encoded + (codes - encoded).detach()
        match = (codes - encoded.detach()).square().mean() + 0.25 * (encoded - codes.detach()).square().mean()
        return F.mse_loss(self.decoder(through), images) + match


class ReluBlock(nn.Module):
    """ReLU, 3 x 3, ReLU, 1 x 1, added to the input."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.ReLU(), nn.Conv2d(width, width // 2, 3, padding=1), nn.ReLU(), nn.Conv2d(width // 2, width, 1)
        )

    def forward(self, features: Tensor) -> Tensor:
        return features + self.layers(features)


class TimedBlock(nn.Module):
    """Residual block that is told the time (DDPM)."""

    def __init__(self, inputs: int, outputs: int, time: int) -> None:
        super().__init__()
        self.first = nn.Sequential(
            nn.GroupNorm(32, inputs), nn.SiLU(), nn.Conv2d(inputs, outputs, 3, padding=1)
        )
        self.time = nn.Sequential(nn.SiLU(), nn.Linear(time, outputs))
        self.second = nn.Sequential(
            nn.GroupNorm(32, outputs), nn.SiLU(), nn.Conv2d(outputs, outputs, 3, padding=1)
        )
        self.shortcut = nn.Conv2d(inputs, outputs, 1) if inputs != outputs else nn.Identity()

    def forward(self, features: Tensor, time: Tensor) -> Tensor:
        hidden = self.first(features) + self.time(time)[:, :, None, None]
        return self.shortcut(features) + self.second(hidden)


class PixelAttention(nn.Module):
    """Self-attention of all pixels."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.norm = nn.GroupNorm(32, channels)
        self.query_key_value = nn.Conv2d(channels, 3 * channels, 1)
        self.output = nn.Conv2d(channels, channels, 1)

    def forward(self, features: Tensor) -> Tensor:
        parts = self.query_key_value(self.norm(features)).flatten(2).transpose(1, 2)
        mixed = attend(*parts.chunk(3, 2)).transpose(1, 2).reshape(features.shape)
        return features + self.output(mixed)


class DiffusionUNet(nn.Module):
    """U-Net that predicts the noise in an image.

    Args:
        channels: Of the finest level.
        multiples: Channels of each level over those.
        blocks: Residual blocks per level on the way down.
        attention: Levels with attention.
    """

    def __init__(
        self, channels: int, multiples: tuple[int, ...], blocks: int, attention: tuple[int, ...]
    ) -> None:
        super().__init__()
        self.channels = channels
        time = 4 * channels
        self.time = nn.Sequential(nn.Linear(channels, time), nn.SiLU(), nn.Linear(time, time))
        self.input = nn.Conv2d(3, channels, 3, padding=1)
        self.down, self.down_attention, self.shrink = nn.ModuleList(), nn.ModuleList(), nn.ModuleList()
        width, skips = channels, [channels]
        for level, multiple in enumerate(multiples):
            for _ in range(blocks):
                self.down.append(TimedBlock(width, multiple * channels, time))
                width = multiple * channels
                self.down_attention.append(PixelAttention(width) if level in attention else nn.Identity())
                skips.append(width)
            if level < len(multiples) - 1:
                self.shrink.append(nn.Conv2d(width, width, 3, 2, 1))
                skips.append(width)
        self.before, self.middle, self.after = (
            TimedBlock(width, width, time),
            PixelAttention(width),
            TimedBlock(width, width, time),
        )
        self.up, self.up_attention, self.enlarge = nn.ModuleList(), nn.ModuleList(), nn.ModuleList()
        for level in range(len(multiples) - 1, -1, -1):
            for _ in range(blocks + 1):
                self.up.append(TimedBlock(width + skips.pop(), multiples[level] * channels, time))
                width = multiples[level] * channels
                self.up_attention.append(PixelAttention(width) if level in attention else nn.Identity())
            if level > 0:
                self.enlarge.append(nn.Conv2d(width, width, 3, padding=1))
        self.output = nn.Sequential(nn.GroupNorm(32, width), nn.SiLU(), nn.Conv2d(width, 3, 3, padding=1))

    def forward(self, images: Tensor, times: Tensor, noise: Tensor | None = None) -> Tensor:
        table = sinusoids(1000, self.channels, images)
        time = self.time(table[times])
        features = self.input(images)
        skips = [features]
        per_level = len(self.down) // (len(self.shrink) + 1)
        for index, (block, look) in enumerate(zip(self.down, self.down_attention, strict=True)):
            features = look(block(features, time))
            skips.append(features)
            if (index + 1) % per_level == 0 and index + 1 < len(self.down):
                features = self.shrink[index // per_level](features)
                skips.append(features)
        features = self.after(self.middle(self.before(features, time)), time)
        for index, (block, look) in enumerate(zip(self.up, self.up_attention, strict=True)):
            features = look(block(torch.cat([features, skips.pop()], 1), time))
            if (index + 1) % (per_level + 1) == 0 and index + 1 < len(self.up):
                features = self.enlarge[index // (per_level + 1)](F.interpolate(features, scale_factor=2.0))
        predicted = self.output(features)
        return predicted if noise is None else F.mse_loss(predicted, noise)
