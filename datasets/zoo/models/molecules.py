"""Networks over molecules: message passing with edge networks, and SchNet."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..registry import definition
from .attention import feed_forward
from .graph_networks import summed
from .layers import GRUCell
from .workload import Entry, ids, reals, workloads


class MessagePassing(nn.Module):
    """Edge networks make a matrix per bond; gated update; set-to-set readout without order (MPNN).

    Args:
        steps: Rounds of messages.
        readouts: Steps of the readout.
        hidden: Width of a state.
        graphs: Molecules in a batch, all of equal size.
    """

    def __init__(self, steps: int, readouts: int, hidden: int, graphs: int) -> None:
        super().__init__()
        self.steps, self.readouts, self.hidden, self.graphs = steps, readouts, hidden, graphs
        self.input = nn.Linear(14, hidden)
        self.matrix = nn.Sequential(nn.Linear(5, 128), nn.ReLU(), nn.Linear(128, hidden * hidden))
        self.update = GRUCell(hidden, hidden)
        self.ask = GRUCell(2 * hidden, hidden)
        self.head = feed_forward(2 * hidden, hidden, nn.ReLU)
        self.value = nn.Linear(2 * hidden, 1)

    def forward(
        self, atoms: Tensor, bonds: Tensor, senders: Tensor, receivers: Tensor, values: Tensor | None = None
    ) -> Tensor:
        state = self.input(atoms)
        matrices = self.matrix(bonds).reshape(-1, self.hidden, self.hidden)
        for _ in range(self.steps):
            messages = torch.bmm(matrices, state[senders].unsqueeze(2)).squeeze(2)
            state = self.update(summed(messages, receivers, state.shape[0]), state)
        sets = state.reshape(self.graphs, -1, self.hidden)
        query = state.new_zeros(self.graphs, self.hidden)
        answer = state.new_zeros(self.graphs, 2 * self.hidden)
        for _ in range(self.readouts):
            query = self.ask(answer, query)
            weights = torch.softmax(torch.bmm(sets, query.unsqueeze(2)), 1)
            answer = torch.cat([query, (weights * sets).sum(1)], 1)
        predicted = self.value(self.head(answer)).squeeze(1)
        return predicted if values is None else F.mse_loss(predicted, values)


class ContinuousFilter(nn.Module):
    """Interaction block of SchNet: filters from distances, sums over neighbours, shifted softplus."""

    def __init__(self, width: int, centres: int) -> None:
        super().__init__()
        self.input = nn.Linear(width, width, bias=False)
        self.filter = nn.Sequential(
            nn.Linear(centres, width), nn.Softplus(), nn.Linear(width, width), nn.Softplus()
        )
        self.output = nn.Sequential(nn.Linear(width, width), nn.Softplus(), nn.Linear(width, width))

    def forward(self, atoms: Tensor, distances: Tensor, senders: Tensor, receivers: Tensor) -> Tensor:
        messages = self.input(atoms)[senders] * (self.filter(distances) - 0.6931)
        return atoms + self.output(summed(messages, receivers, atoms.shape[0]))


class SchNet(nn.Module):
    """Interaction blocks and a sum of atom-wise energies."""

    def __init__(self, blocks: int, width: int, molecules: int) -> None:
        super().__init__()
        self.molecules = molecules
        self.atoms = nn.Embedding(100, width)
        self.blocks = nn.ModuleList(ContinuousFilter(width, 300) for _ in range(blocks))
        self.energy = nn.Sequential(nn.Linear(width, width // 2), nn.Softplus(), nn.Linear(width // 2, 1))

    def forward(
        self,
        atoms: Tensor,
        places: Tensor,
        senders: Tensor,
        receivers: Tensor,
        energies: Tensor | None = None,
    ) -> Tensor:
        apart = places[senders] - places[receivers]
        distance = torch.sqrt((apart * apart).sum(1, keepdim=True) + 1e-12)
        centres = 0.1 * torch.arange(300, device=places.device, dtype=places.dtype)
        expanded = torch.exp(-10 * (distance - centres).square())
        features = self.atoms(atoms)
        for block in self.blocks:
            features = block(features, expanded, senders, receivers)
        predicted = self.energy(features).reshape(self.molecules, -1).sum(1)
        return predicted if energies is None else F.mse_loss(predicted, energies)


@definition(family="mpnn", source="own", licence="Apache-2.0")
def message_passing() -> Iterator[Entry]:
    """Gilmer et al. 2017, "Neural message passing for quantum chemistry": 64 molecules of 18 atoms; gated units
    in the readout.
    """
    for steps, readouts in ((3, 3), (6, 12)):
        yield from workloads(
            f"mpnn-{steps}-{readouts}",
            partial(MessagePassing, steps, readouts, 64, 64),
            inputs=(reals(1152, 14), reals(2432, 5), ids(1152, 2432), ids(1152, 2432)),
            targets=(reals(64),),
            batch=64,
            steps=steps,
            readouts=readouts,
        )


@definition(family="schnet", source="own", licence="Apache-2.0")
def schnet() -> Iterator[Entry]:
    """Schuett et al. 2018, "SchNet: a continuous-filter convolutional neural network for modeling quantum
    interactions": 32 molecules of 18 atoms.
    """
    for blocks in (3, 6):
        yield from workloads(
            f"schnet-{blocks}",
            partial(SchNet, blocks, 64, 32),
            inputs=(ids(100, 576), reals(576, 3), ids(576, 9792), ids(576, 9792)),
            targets=(reals(32),),
            batch=32,
            modes=("train", "infer") if blocks > 3 else ("train",),
            blocks=blocks,
        )
