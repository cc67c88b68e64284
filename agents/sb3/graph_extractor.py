"""What a policy sees of a whole graph: an SB3 features extractor for ``observation="dict"`` of both environments."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from torch import Tensor, nn

from ...errors import InvalidProblemError
from .message_passing import GraphNetwork, Graphs, mean_of, rows_of, squashed

#: The part of an observation that no step changes: in every observation of a single environment, or given once.
STATIC_KEYS = ("nodes", "node_mask", "edges", "edge_features", "edge_mask")
#: Index of the graph, in observations without the static part.
GRAPH_KEY = "graph"

Observation = Mapping[str, Tensor]


class GraphExtractor(BaseFeaturesExtractor, ABC):
    """Features of a decision from the whole graph, by rounds of messages along its edges.

    The length of the features depends neither on the graph nor on padding, and no weight belongs to a node: weights
    trained on some graphs fit any others with as many devices, or slots. Nodes may be numbered in any way.

    Args:
        observation_space: Of the environment, with the static keys or, instead of them, ``graph``.
        static: The static keys of observations without them, each ``[graphs, ...]``; not part of the weights.
        width: Numbers per node.
        rounds: Rounds of messages: how many edges away a node sees.

    Raises:
        InvalidProblemError: An observation of something else, or static arrays missing or given twice.
    """

    #: Keys, beside the static ones or ``graph``, that an observation must have.
    keys: tuple[str, ...]

    def __init__(
        self,
        observation_space: spaces.Dict,
        static: Mapping[str, NDArray[Any]] | None = None,
        *,
        width: int = 64,
        rounds: int = 2,
    ) -> None:
        in_observation = GRAPH_KEY not in observation_space.spaces
        self._check(observation_space, static, in_observation)
        super().__init__(observation_space, self._num_features(observation_space, width))
        self._static_in_observation = in_observation
        for key, array in (static or {}).items():
            self.register_buffer(f"static_{key}", torch.from_numpy(np.array(array)), persistent=False)
        parts = observation_space.spaces if static is None else {k: static[k] for k in STATIC_KEYS}
        node_fields, edge_fields = (parts[key].shape[-1] for key in ("nodes", "edge_features"))  # type: ignore[index]
        self.network = GraphNetwork(
            node_fields, self._num_changing(observation_space), edge_fields, width, rounds
        )

    def _check(self, space: spaces.Dict, static: Mapping[str, Any] | None, in_observation: bool) -> None:
        static_keys = STATIC_KEYS if in_observation else (GRAPH_KEY,)
        missing = [key for key in (*self.keys, *static_keys) if key not in space.spaces]
        if missing:
            raise InvalidProblemError(
                f"{type(self).__name__} needs observations with {', '.join(missing)}, got only "
                f"{', '.join(space.spaces)}"
            )
        if in_observation and static is not None:
            raise InvalidProblemError("the observations bring the static arrays, they must not be given too")
        if not in_observation and (static is None or set(STATIC_KEYS) - set(static)):
            raise InvalidProblemError(
                f"observations without the graph itself need static arrays: {', '.join(STATIC_KEYS)}"
            )

    def _graphs(self, observation: Observation) -> tuple[Graphs, Tensor]:
        """The graphs, and which of them each element of the batch is about, ``[batch] int64``."""
        if self._static_in_observation:
            parts = {key: observation[key] for key in STATIC_KEYS}
            graph = torch.arange(len(parts["nodes"]), device=parts["nodes"].device)
        else:
            parts = {key: self.get_buffer(f"static_{key}") for key in STATIC_KEYS}
            graph = observation[GRAPH_KEY][:, 0].long()
        number = self.network.fixed.weight.dtype
        graphs = Graphs(
            parts["nodes"].to(number),
            parts["node_mask"] > 0,
            parts["edges"].long(),
            parts["edge_features"].to(number),
            parts["edge_mask"] > 0,
        )
        return graphs, graph

    def forward(self, observation: Observation) -> Tensor:
        """Features, ``[batch, features]``.

        Args:
            observation: By key, each ``[batch, ...]``; whole numbers may come as floats, as SB3 gives them.
        """
        number = self.network.fixed.weight.dtype
        graphs, graph = self._graphs(observation)
        nodes = self.network(graphs, graph, self._changing(observation).to(number))
        return self._read(observation, nodes, graphs.node_mask[graph].to(number))

    @staticmethod
    @abstractmethod
    def _num_changing(space: spaces.Dict) -> int:
        """Fields of a node that change."""

    @staticmethod
    @abstractmethod
    def _num_features(space: spaces.Dict, width: int) -> int:
        """Length of the features."""

    @abstractmethod
    def _changing(self, observation: Observation) -> Tensor:
        """Fields of nodes that change, ``[batch, nodes, changing fields]``."""

    @abstractmethod
    def _read(self, observation: Observation, nodes: Tensor, is_node: Tensor) -> Tensor:
        """Features from embedded nodes.

        Args:
            observation: By key, each ``[batch, ...]``.
            nodes: ``[batch, nodes, width]``, 0 in padding.
            is_node: 1: a node, 0: padding, ``[batch, nodes]``.
        """


class PlacementExtractor(GraphExtractor):
    """For ``GraphPlacement-v0``: of the group to decide, of each device with what is on it, of the whole graph.

    ``[width + devices * width / 2 + width + 1]``: embedding of the group to decide (0 where there is none); of each
    device, from its fields and the mean of the groups on it and the group to decide, by one network for all devices;
    mean of all groups; progress.
    """

    keys = ("placement", "devices", "current", "progress")

    def __init__(
        self,
        observation_space: spaces.Dict,
        static: Mapping[str, NDArray[Any]] | None = None,
        *,
        width: int = 64,
        rounds: int = 2,
    ) -> None:
        super().__init__(observation_space, static, width=width, rounds=rounds)
        self._devices, fields = _shape(observation_space, "devices")
        self.device = nn.Sequential(
            nn.Linear(fields + 2 * width, width), nn.ReLU(), nn.Linear(width, width // 2), nn.ReLU()
        )

    @staticmethod
    def _num_changing(space: spaces.Dict) -> int:
        return _shape(space, "devices")[0] + 2

    @staticmethod
    def _num_features(space: spaces.Dict, width: int) -> int:
        return 2 * width + _shape(space, "devices")[0] * (width // 2) + 1

    def _changing(self, observation: Observation) -> Tensor:
        """Whether a group is on each device, whether it is undecided, whether it is to be decided now."""
        placement, current = observation["placement"].long(), observation["current"].long()
        on_device = placement.unsqueeze(2) == torch.arange(-1, self._devices, device=placement.device)
        nodes = torch.arange(placement.shape[1], device=placement.device)
        return torch.cat([on_device, (current == nodes).unsqueeze(2)], dim=2)

    def _read(self, observation: Observation, nodes: Tensor, is_node: Tensor) -> Tensor:
        group = rows_of(nodes, observation["current"].long())[:, 0]
        devices = torch.arange(self._devices, device=nodes.device).reshape(1, -1, 1)
        placed = (observation["placement"].long().unsqueeze(1) == devices) * is_node.unsqueeze(1)
        fields = squashed(observation["devices"].to(nodes.dtype))
        about_group = group.unsqueeze(1).expand(-1, self._devices, -1)
        rows = self.device(torch.cat([fields, mean_of(nodes, placed), about_group], dim=2))
        whole = mean_of(nodes, is_node.unsqueeze(1))[:, 0]
        progress = observation["progress"].to(nodes.dtype)
        return torch.cat([group, rows.flatten(1), whole, progress], dim=1)


class SchedulingExtractor(GraphExtractor):
    """For ``OpScheduling-v0`` with slots: of the op in each slot, of the whole graph, of what is ready.

    ``[slots * width / 4 + 2 * width + global fields]``: of each slot, from the embedding of its op and the means, by
    one network for all slots (0 where there is no op); mean of all ops and of the ready ones; the global fields.
    """

    keys = ("status", "figures", "globals", "slots")
    _STATUSES = (0, 1, 2)

    def __init__(
        self,
        observation_space: spaces.Dict,
        static: Mapping[str, NDArray[Any]] | None = None,
        *,
        width: int = 64,
        rounds: int = 2,
    ) -> None:
        super().__init__(observation_space, static, width=width, rounds=rounds)
        (num_globals,) = _shape(observation_space, "globals")
        self.slot = nn.Sequential(
            nn.Linear(3 * width + num_globals, width), nn.ReLU(), nn.Linear(width, width // 4), nn.ReLU()
        )

    @staticmethod
    def _num_changing(space: spaces.Dict) -> int:
        return len(SchedulingExtractor._STATUSES) + _shape(space, "figures")[1] + 1

    @staticmethod
    def _num_features(space: spaces.Dict, width: int) -> int:
        return _shape(space, "slots")[0] * (width // 4) + 2 * width + _shape(space, "globals")[0]

    def _changing(self, observation: Observation) -> Tensor:
        """Status, one field each; ``CHANGING_FIELDS``; 1 in the first slot, less in later ones, 0 in none."""
        status, figures, slots = (
            observation["status"].long(),
            observation["figures"],
            observation["slots"].long(),
        )
        statuses = status.unsqueeze(2) == torch.tensor(self._STATUSES, device=status.device)
        count = slots.shape[1]
        weight = torch.arange(count, 0, -1, device=figures.device, dtype=figures.dtype) / count
        # Empty slots (-1) write into a node behind the last one, which is cut off.
        places = figures.new_zeros(len(figures), figures.shape[1] + 1)
        places = places.scatter(1, slots % places.shape[1], weight.expand(len(figures), -1))[:, :-1]
        return torch.cat([statuses.to(figures.dtype), figures, places.unsqueeze(2)], dim=2)

    def _read(self, observation: Observation, nodes: Tensor, is_node: Tensor) -> Tensor:
        slots, ready = observation["slots"].long(), observation["status"].long() == 1
        global_fields = squashed(observation["globals"].to(nodes.dtype))
        means = mean_of(nodes, torch.stack([is_node, ready.to(nodes.dtype)], dim=1)).flatten(1)
        context = torch.cat([means, global_fields], dim=1)
        ops = rows_of(nodes, slots)
        rows = self.slot(torch.cat([ops, context.unsqueeze(1).expand(-1, slots.shape[1], -1)], dim=2))
        rows = rows * (slots >= 0).unsqueeze(2)
        return torch.cat([rows.flatten(1), context], dim=1)


def _shape(space: spaces.Dict, key: str) -> tuple[int, ...]:
    shape = space[key].shape
    assert shape is not None
    return shape


def graph_extractor(space: spaces.Space[Any]) -> type[GraphExtractor]:
    """The extractor for an environment's observations.

    Raises:
        InvalidProblemError: There is none for them.
    """
    if isinstance(space, spaces.Dict):
        for extractor in (PlacementExtractor, SchedulingExtractor):
            if set(extractor.keys) <= set(space.spaces):
                return extractor
    keys = sorted(space.spaces) if isinstance(space, spaces.Dict) else [type(space).__name__]
    raise InvalidProblemError(
        'the graph policy needs observation="dict" (of OpScheduling-v0 with action="slot"), not observations '
        f"of {', '.join(keys)}"
    )
