"""opgym's own placer as a learner."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from ...problems import PlacementProblem
from ..networks.documentation import lists_all_options
from ..networks.placing.learner import PlacementLearner
from ..networks.shelf import Shelf
from ..registry import register
from ..search.options import at_least, at_most_one
from .shape import Shape

#: Weights that come with the package.
SHELF = Shelf(
    Path(__file__).with_name("weights"),
    dict.fromkeys(("gdp-plus-100", "gdp-plus-anneal", "gdp-plus-finetune"), "gdp-plus"),
)


@register
@lists_all_options
@dataclass(frozen=True)
class GdpPlus(PlacementLearner):
    """opgym's own: plays ``GraphPlacement-v0``, placing groups of ops one after the other, and learns by PPO.

    At most ``groups`` stretches of layers are decided, in the order of their first op. Of each device the policy sees
    what the environment does: when the group could start there, what it would have to wait for, what memory is left. A
    network of messages between groups says how much they like to be together. No device has a number, so one policy
    serves any cluster, and devices that are alike are treated alike. Placements of an update are compared with each
    other.

    Attributes:
        epochs: Steps of the optimizer in an update.
        clip: PPO: how far the ratio of a decision's probabilities may move before it stops to count.
        devices: Most devices that it is used for.
        groups: Most decisions about a graph.
        width: Numbers per group in the network.
        rounds: Of messages between groups.
        heads: Ways in which a group likes to be where others are.
    """

    samples: int = 16
    entropy: float = 1e-2
    epochs: int = 1
    clip: float = 0.2
    devices: int = 16
    groups: int = 256
    width: int = 64
    rounds: int = 2
    heads: int = 4

    name: ClassVar[str] = "gdp-plus"
    summary: ClassVar[str] = "opgym's own: a policy for any cluster places groups of ops one after the other"
    shelf: ClassVar[Shelf] = SHELF
    network_type = Shape

    @classmethod
    def trained_as(cls) -> type[PlacementLearner]:
        """All rungs of the ladder have the weights of ``gdp-plus``."""
        return GdpPlus

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(2, samples=self.samples)  # one is compared with the others
        at_least(1, most=1024, epochs=self.epochs)
        at_most_one(clip=self.clip)

    def network(self, problems: Sequence[PlacementProblem]) -> Shape:
        return Shape(self.devices, self.groups, self.width, self.rounds, self.heads)

    @classmethod
    def policy_type(cls) -> Any:
        from .policy import Policy

        return Policy

    def placer(self, policy: Any, network: Shape) -> Any:
        from .ppo import Ppo, Recipe

        recipe = Recipe(self.samples, self.epochs, self.clip, self.learning_rate, self.entropy)
        return Ppo(policy, network, recipe, self.device)
