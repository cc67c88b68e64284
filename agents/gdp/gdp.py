"""GDP as published."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from ...errors import unknown_id
from ...problems import PlacementProblem
from ..networks.documentation import lists_all_options
from ..networks.placing.learner import PlacementLearner
from ..networks.placing.ops import kinds_of
from ..networks.shelf import Shelf
from ..registry import register
from ..search.options import at_least, at_most_one
from .shape import Shape

#: Weights that come with the package.
SHELF = Shelf(Path(__file__).with_name("weights"), {"gdp": "gdp-unseen-family"})
#: Of what the ratio of probabilities is taken: the whole placement, or each unit's device.
RATIOS = ("graph", "op")


@register
@lists_all_options
@dataclass(frozen=True)
class Gdp(PlacementLearner):
    """GDP (Zhou et al. 2019): a graph network and segment-recurrent attention place every op, and learn by PPO.

    Attributes:
        epochs: Steps of the optimizer in an update.
        clip: PPO: how far a ratio of probabilities may move before it stops to count.
        ratio: PPO: of the whole placement's probabilities, ``"graph"``, or of each unit's, ``"op"``.
        devices: Most devices that the policy chooses among.
        width: Numbers per op in the network.
        rounds: Layers of the graph network.
        layers: Of attention.
        heads: Of attention.
        segment: Ops of a segment; each attends to its own and to the one before.
        attention: Whether ops attend to each other.
        superposition: What the gate of each layer is fed with: ``"op"``, each op's embedding, ``"graph"``, their mean
            (Zhou et al. 2020, "GO"), ``"none"``: there is no gate.
        head_gain: Spread of the untrained preferences among devices.
    """

    epochs: int = 1
    clip: float = 0.2
    ratio: str = "graph"
    devices: int = 8
    width: int = 64
    rounds: int = 1
    layers: int = 2
    heads: int = 4
    segment: int = 128
    attention: bool = True
    superposition: str = "op"
    head_gain: float = 1.0

    name: ClassVar[str] = "gdp"
    summary: ClassVar[str] = "a graph network and attention place every op at once, and learn by PPO"
    shelf: ClassVar[Shelf] = SHELF
    network_type = Shape

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(1, most=1024, epochs=self.epochs)
        at_most_one(clip=self.clip)
        if self.ratio not in RATIOS:
            raise unknown_id("ratio", str(self.ratio), list(RATIOS))

    def network(self, problems: Sequence[PlacementProblem]) -> Shape:
        return Shape(
            kinds_of([problem.graph for problem in problems]),
            self.devices,
            self.width,
            self.rounds,
            self.layers,
            self.heads,
            self.segment,
            self.attention,
            self.superposition,
            self.head_gain,
        )

    @classmethod
    def policy_type(cls) -> Any:
        from .policy import Policy

        return Policy

    def placer(self, policy: Any, network: Shape) -> Any:
        from .ppo import Ppo, Recipe

        recipe = Recipe(self.samples, self.epochs, self.clip, self.ratio, self.learning_rate, self.entropy)
        return Ppo(policy, network, recipe, self.device)
