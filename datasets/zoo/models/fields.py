"""Optical flow by recurrent updates (RAFT) and scenes as radiance fields (NeRF)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..registry import definition
from .layers import Residual
from .workload import Entry, reals, workloads


class RAFT(nn.Module):
    """All-pairs correlation, looked up around the current flow by a convolutional recurrent update.

    Args:
        iterations: Updates of the flow.
        width: Channels of the hidden state.
    """

    def __init__(self, iterations: int, width: int = 96) -> None:
        super().__init__()
        self.iterations, self.width = iterations, width
        self.features = self.encoder(128)
        self.context = self.encoder(2 * width)
        self.of_correlation = nn.Sequential(nn.Conv2d(81, 96, 1), nn.ReLU())
        self.of_flow = nn.Sequential(
            nn.Conv2d(2, 64, 7, padding=3), nn.ReLU(), nn.Conv2d(64, 32, 3, padding=1), nn.ReLU()
        )
        inputs = width + 96 + 32 + 2
        self.update, self.reset, self.candidate = (
            nn.Conv2d(width + inputs, width, 3, padding=1) for _ in range(3)
        )
        self.flow = nn.Sequential(
            nn.Conv2d(width, 128, 3, padding=1), nn.ReLU(), nn.Conv2d(128, 2, 3, padding=1)
        )

    @staticmethod
    def encoder(outputs: int) -> nn.Sequential:
        """Residual encoder to an eighth of the size."""
        layers = nn.Sequential(nn.Conv2d(3, 32, 7, 2, 3), nn.InstanceNorm2d(32), nn.ReLU())
        for a, b, stride in ((32, 32, 1), (32, 64, 2), (64, 96, 2)):
            body = nn.Sequential(
                nn.Conv2d(a, b, 3, stride, 1),
                nn.InstanceNorm2d(b),
                nn.ReLU(),
                nn.Conv2d(b, b, 3, 1, 1),
                nn.InstanceNorm2d(b),
            )
            shortcut = nn.Conv2d(a, b, 1, stride) if stride > 1 else None
            layers.append(Residual(body, shortcut, nn.ReLU()))
        return layers.append(nn.Conv2d(96, outputs, 1))

    def forward(self, first: Tensor, second: Tensor, motion: Tensor | None = None) -> Tensor:
        left, right = self.features(first), self.features(second)
        batch, channels, rows, columns = left.shape
        pairs = left.flatten(2).transpose(1, 2) @ right.flatten(2) / channels**0.5
        volume = pairs.reshape(batch * rows * columns, 1, rows, columns)
        hidden, context = self.context(first).chunk(2, 1)
        hidden, context = torch.tanh(hidden), F.relu(context)
        down, across = torch.arange(rows, device=left.device), torch.arange(columns, device=left.device)
        grid = torch.stack([across.expand(rows, columns), down[:, None].expand(rows, columns)]).to(left.dtype)
        reach = torch.arange(-4, 5, device=left.device).to(left.dtype)
        window = torch.stack([reach.expand(9, 9), reach[:, None].expand(9, 9)], 2)
        extent = torch.stack([across[-1], down[-1]]).to(left.dtype)
        flow = left.new_zeros(batch, 2, rows, columns)
        losses = []
        for _ in range(self.iterations):
            flow = flow.detach()
            centres = (grid + flow).permute(0, 2, 3, 1).reshape(-1, 1, 1, 2) + window
            seen = F.grid_sample(volume, 2 * centres / extent - 1, align_corners=True)
            correlation = seen.reshape(batch, rows, columns, 81).permute(0, 3, 1, 2)
            inputs = torch.cat([context, self.of_correlation(correlation), self.of_flow(flow), flow], 1)
            joined = torch.cat([hidden, inputs], 1)
            update, reset = torch.sigmoid(self.update(joined)), torch.sigmoid(self.reset(joined))
            candidate = torch.tanh(self.candidate(torch.cat([reset * hidden, inputs], 1)))
            hidden = (1 - update) * hidden + update * candidate
            flow = flow + self.flow(hidden)
            if motion is not None:
                losses.append(
                    (8 * F.interpolate(flow, scale_factor=8.0, mode="bilinear") - motion).abs().mean()
                )
        return torch.stack(losses).sum() if losses else flow


class NeRF(nn.Module):
    """A perceptron of encoded places and directions, and the colours that rays gather, coarse and fine.

    Args:
        layers: Of the perceptron; its input joins again in the middle.
        samples: Places per ray.
    """

    def __init__(self, layers: int, samples: int) -> None:
        super().__init__()
        self.samples = samples
        widths = [63] + [256 + 63 * (index == layers // 2) for index in range(1, layers)]
        self.networks = nn.ModuleList(
            nn.ModuleList(nn.Linear(width, 256) for width in widths) for _ in range(2)
        )
        self.density = nn.ModuleList(nn.Linear(256, 1) for _ in range(2))
        self.colour = nn.ModuleList(
            nn.Sequential(nn.Linear(256 + 27, 128), nn.ReLU(), nn.Linear(128, 3), nn.Sigmoid())
            for _ in range(2)
        )

    @staticmethod
    def encoded(values: Tensor, powers: int) -> Tensor:
        """The values beside their sines and cosines at doubling frequencies."""
        parts = [values]
        for power in range(powers):
            parts += [torch.sin(2.0**power * values), torch.cos(2.0**power * values)]
        return torch.cat(parts, -1)

    def render(
        self, which: int, origins: Tensor, directions: Tensor, depths: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Colours and weights of the samples."""
        places = self.encoded(origins[:, None] + depths[:, :, None] * directions[:, None], 10)
        layers = list(list(self.networks)[which].children())
        features = places
        for index, layer in enumerate(layers):
            features = F.relu(
                layer(torch.cat([features, places], 2) if index == len(layers) // 2 else features)
            )
        density = F.relu(self.density[which](features)).squeeze(2)
        seen = self.encoded(directions, 4)[:, None].expand(-1, self.samples, -1)
        colours = self.colour[which](torch.cat([features, seen], 2))
        steps = F.pad(depths[:, 1:] - depths[:, :-1], (0, 1), value=1.0)
        passed = torch.exp(-torch.cumsum(F.pad(density * steps, (1, -1)), 1))
        weights = passed * (1 - torch.exp(-density * steps))
        return (weights.unsqueeze(2) * colours).sum(1), weights

    def forward(self, origins: Tensor, directions: Tensor, colours: Tensor | None = None) -> Tensor:
        line = torch.arange(self.samples, device=origins.device, dtype=origins.dtype) / self.samples
        depths = (2 + 4 * line).expand(origins.shape[0], -1)
        coarse, weights = self.render(0, origins, directions, depths)
        share = torch.cumsum(weights.detach() + 1e-5, 1)
        nearest = torch.searchsorted(
            (share / share[:, -1:]).contiguous(), line.expand_as(depths).contiguous()
        )
        fine_depths = depths.gather(1, nearest.clamp(max=self.samples - 1))
        fine, _ = self.render(1, origins, directions, fine_depths)
        return fine if colours is None else F.mse_loss(coarse, colours) + F.mse_loss(fine, colours)


@definition(family="raft", source="own", licence="Apache-2.0")
def raft() -> Iterator[Entry]:
    """Teed and Deng 2020, "RAFT: recurrent all-pairs field transforms for optical flow": one level of correlation,
    bilinear enlarging of the flow.
    """
    for iterations in (4, 12):
        yield from workloads(
            f"raft-{iterations}",
            partial(RAFT, iterations),
            inputs=(reals(2, 3, 256, 320), reals(2, 3, 256, 320)),
            targets=(reals(2, 2, 256, 320),),
            batch=2,
            iterations=iterations,
        )


@definition(family="nerf", source="own", licence="Apache-2.0")
def nerf() -> Iterator[Entry]:
    """Mildenhall et al. 2020, "NeRF: representing scenes as neural radiance fields for view synthesis": coarse and
    fine, the fine samples at the coarse weights' quantiles.
    """
    for layers, samples in ((4, 64), (8, 64)):
        yield from workloads(
            f"nerf-{layers}",
            partial(NeRF, layers, samples),
            inputs=(reals(1024, 3), reals(1024, 3)),
            targets=(reals(1024, 3),),
            batch=1024,
            layers=layers,
            samples=samples,
        )
