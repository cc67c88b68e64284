"""HDP's placer: reads groups one after the other, and says the device of one after the other."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from .attention import energies
from .drawing import Noise, drawn
from .grouped import group_fields
from .shape import Shape


@dataclass(frozen=True, eq=False)
class Read:
    """Groups, as the placer has read them.

    Attributes:
        hidden: Where the decoder begins, ``[placements, width]``.
        cell: Likewise.
        heard: What it attends to, ``[placements, groups, width]``.
    """

    hidden: Tensor
    cell: Tensor
    heard: Tensor

    def repeated(self, times: int) -> Read:
        """Each so many times, one after the other."""
        return Read(*(
            each[:, None].expand(-1, times, *each.shape[1:]).reshape(-1, *each.shape[1:])
            for each in (self.hidden, self.cell, self.heard)
        ))  # fmt: skip


class SequencePlacer(nn.Module):
    """A bidirectional LSTM reads groups; another one with attention places them (Mirhoseini et al. 2018, section 3).

    What the decoder hears at each step is the device of the group before. It attends to all groups.

    Args:
        shape: Shape of the policy.
    """

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        width = shape.width
        self._temperature, self._most_logit = shape.temperature, shape.most_logit
        self.encoder = nn.LSTM(group_fields(shape), width // 2, batch_first=True, bidirectional=True)
        self.key = nn.Linear(width, width, bias=False)
        self.query = nn.Linear(width, width, bias=False)
        self.energy = nn.Parameter(torch.empty(width, 1))
        #: Of each device, and of what is heard before the first group.
        self.device = nn.Embedding(shape.devices + 1, width)
        self.decoder = nn.LSTM(width, width, batch_first=True)
        self.head = nn.Linear(2 * width, shape.devices, bias=False)

    def read(self, groups: Tensor) -> Read:
        """Reads groups, ``[groupings, groups, fields]``."""
        heard, (hidden, cell) = self.encoder(groups)
        return Read(hidden.transpose(0, 1).flatten(1), cell.transpose(0, 1).flatten(1), self.key(heard))

    def log_probabilities(self, read: Read, allowed: Tensor, device: Tensor, noise: Noise) -> Tensor:
        """Logarithms of the probabilities of devices at each step of placements, ``[placements, groups, devices]``.

        Args:
            read: Groups.
            allowed: Devices of groups, ``[placements, groups, devices] bool``; the others get -inf.
            device: Of each group, ``[placements, groups] int64``; each step hears those before it.
            noise: Of preferences.
        """
        before = functional.pad(device[:, :-1], (1, 0), value=allowed.shape[2])
        hidden, _ = self.decoder(
            self.device(before), (read.hidden[None].contiguous(), read.cell[None].contiguous())
        )
        return self._says(hidden, read, allowed, noise.at(slice(None)))

    @torch.no_grad()
    def place(self, read: Read, allowed: Tensor, noise: Noise, generator: torch.Generator | None) -> Tensor:
        """Places groups one after the other, ``[placements, groups] int64``.

        Args:
            read: Groups.
            allowed: Devices of groups, ``[placements, groups, devices] bool``.
            noise: Of preferences.
            generator: Draws devices; ``None``: the most likely device is taken at each step.
        """
        hidden, cell = read.hidden, read.cell
        ((of_input, of_hidden, *biases),) = self.decoder.all_weights
        # What the decoder makes of the device before is the same at each step.
        heard = functional.linear(self.device.weight, of_input, biases[0] + biases[1])
        before = torch.full((len(hidden),), allowed.shape[2], device=hidden.device)
        chosen = []
        for step in range(allowed.shape[1]):
            gates = heard[before] + hidden @ of_hidden.T
            into, keep, new, out = gates.chunk(4, dim=1)
            cell = keep.sigmoid() * cell + into.sigmoid() * new.tanh()
            hidden = out.sigmoid() * cell.tanh()
            at = slice(step, step + 1)
            says = self._says(hidden[:, None], read, allowed[:, at], noise.at(at))[:, 0]
            before = says.argmax(1) if generator is None else drawn(says, generator)
            chosen.append(before)
        return torch.stack(chosen, dim=1)

    def _says(self, hidden: Tensor, read: Read, allowed: Tensor, noise: Noise) -> Tensor:
        """Logarithms of probabilities, ``[placements, steps, devices]``, from ``hidden [placements, steps, width]``."""
        energy = energies(self.query(hidden), read.heard, self.energy[:, 0])
        attended = energy.softmax(2) @ read.heard
        logits = self.head(torch.cat([hidden, attended], dim=2)) / self._temperature
        if self._most_logit > 0:
            logits = logits.tanh() * self._most_logit
        square = torch.where(allowed, logits, 0).square().sum(2, keepdim=True)
        noisy = noise.added(logits, (square / allowed.sum(2, keepdim=True)).sqrt())
        return functional.log_softmax(noisy.masked_fill(~allowed, -torch.inf), dim=2)
