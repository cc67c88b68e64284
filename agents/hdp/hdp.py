"""HDP as published.

Where options come from. Numbers of groups, ``grouper_width``, ``width``, ``noise``, ``noise_updates`` and
``baseline_decay`` are those of the code that the authors released (``grappler/hierarchical_controller.py`` of
TensorFlow), ``learning_rate`` and ``most_gradient`` are there and cited from the paper, and so are the bound and the
temperature of preferences, which are both 1 in the code. One grouping with four placements of it in an update is cited
from the paper, too; the code tries a single placement. ``kind_width`` and ``entropy`` are ours: the code reads the
number of a kind, and has no entropy.

What else differs. Sizes and numbers of ops are read on scales near 1; as they are, as in the code, they settle the
group of about nine ops in ten before anything is learned. Each part of what is read of a group has a scale of its own,
and sizes stand behind the counts of kinds, not on top of them. All writers of an op are read like its readers; the code
keeps the last of them. The baseline begins with the first rewards, not with that of a failure, and failures count for
the whole of a search. The step size stays as it is until it is told to fall. What does not fit has the reward that it
has for all placers here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from ...errors import InvalidProblemError
from ...problems import PlacementProblem
from ..networks.documentation import lists_all_options
from ..networks.placing.learner import PlacementLearner
from ..networks.placing.ops import kinds_of
from ..networks.shelf import Shelf
from ..registry import register
from ..search.options import at_least, at_most_one, positive, share
from .shape import MOST_GROUPS, Shape, groups_for

#: Weights that come with the package.
SHELF = Shelf(Path(__file__).with_name("weights"))


@register
@lists_all_options
@dataclass(frozen=True)
class Hdp(PlacementLearner):
    """HDP (Mirhoseini et al. 2018): one network puts ops into groups, one puts the groups on devices; both learn.

    Attributes:
        groups: Groups that ops are put into; 0: 20 for each device of the largest cluster that it learns on, and at
            most 256.
        groupings: Groupings tried in an update, each with ``samples / groupings`` placements of its groups.
        noise: Noise of preferences, as a share of them, of both networks.
        noise_updates: Updates with noise.
        baseline_decay: Weight of earlier rewards in what rewards are compared with, when those of an update come.
        most_gradient: Norm to which gradients are shortened.
        devices: Most devices that the policy chooses among.
        kind_width: Numbers of the embedding of a kind of op.
        grouper_width: Hidden numbers of the network that makes groups.
        width: Numbers of a group in the network that places groups.
        temperature: What preferences among devices are divided by.
        most_logit: Bound of preferences among devices, which leaves every device a chance; 0: there is none.
    """

    samples: int = 4
    learning_rate: float = 0.1
    anneal: bool = False
    entropy: float = 0.0
    groups: int = 0
    groupings: int = 1
    noise: float = 0.5
    noise_updates: int = 750
    baseline_decay: float = 0.9
    most_gradient: float = 1.0
    devices: int = 8
    kind_width: int = 20
    grouper_width: int = 64
    width: int = 512
    temperature: float = 10.0
    most_logit: float = 5.0

    name: ClassVar[str] = "hdp"
    summary: ClassVar[str] = "one network groups ops, one places the groups, and both learn by REINFORCE"
    shelf: ClassVar[Shelf] = SHELF
    network_type = Shape

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(0, most=MOST_GROUPS, groups=self.groups)
        at_least(1, groupings=self.groupings)
        at_least(0, noise_updates=self.noise_updates)
        share(noise=self.noise)
        at_most_one(baseline_decay=self.baseline_decay)
        positive(most_gradient=self.most_gradient)
        if self.samples % self.groupings:
            raise InvalidProblemError(
                f"samples = {self.samples} is no multiple of groupings = {self.groupings}"
            )

    def network(self, problems: Sequence[PlacementProblem]) -> Shape:
        most = max((len(problem.cluster) for problem in problems), default=self.devices)
        return Shape(
            kinds_of([problem.graph for problem in problems]),
            self.devices,
            self.groups or groups_for(most),
            self.kind_width,
            self.grouper_width,
            self.width,
            self.temperature,
            self.most_logit,
        )

    @classmethod
    def policy_type(cls) -> Any:
        from .policy import Policy

        return Policy

    def placer(self, policy: Any, network: Shape) -> Any:
        from .reinforce import Recipe, Reinforce

        recipe = Recipe(
            self.samples,
            self.groupings,
            self.learning_rate,
            self.entropy,
            self.noise,
            self.noise_updates,
            self.baseline_decay,
            self.most_gradient,
        )
        return Reinforce(policy, recipe, self.device)
