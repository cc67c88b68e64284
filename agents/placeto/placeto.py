"""Placeto as published."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from ...errors import InvalidProblemError, unknown_id
from ...problems import PlacementProblem
from ...problems.grouping import assign
from ..networks.documentation import lists_all_options
from ..networks.placing.learner import PlacementLearner
from ..networks.shelf import Shelf
from ..registry import register
from ..search.options import at_least, at_most_one, of_type
from .coarse import MOST_GROUPS
from .shape import Shape

#: Weights that come with the package.
SHELF = Shelf(Path(__file__).with_name("weights"))
#: Rewards: of every step, by how much it improved the placement; or of the last alone, for what came out.
REWARDS = ("improvement", "final")
#: Where an episode begins: with everything on one device, or each group on a random one.
STARTS = ("single", "random")
_METIS = re.compile(r"metis:(\d+)")
_MOST = 2**20


@register
@lists_all_options
@dataclass(frozen=True)
class Placeto(PlacementLearner):
    """Placeto (Addanki et al. 2019): visits the groups of a placement one by one, moves each, learns by REINFORCE.

    An episode visits every group once, in the order of first ops; a sample is an episode. Every placement on the way is
    an evaluation, except one that was tried before in the update. Updates read the returns of every step, so they are
    few and large: one costs up to ``samples`` times the number of groups.

    Ours: groups are METIS parts (the paper merges ops until few are left), and one that no device may run as a whole is
    split; what a group reads of a later one is ignored, as contracted groups may form cycles; the run time is counted
    in runs of all work on the fastest single device; what does not fit into memory costs 10 such runs or more (in the
    paper a penalty for the excess is added to the run time).

    Attributes:
        groups: What is placed as one: ``"metis:64"``, ``"layer"`` or ``"op"``; 2,048 groups at most.
        start: Where episodes begin: ``"single"``, with everything on the fastest device, or ``"random"``, in every
            update anew. The most likely placement of ``"random"`` begins with one that is drawn once and for all.
        reward: ``"improvement"``: by how much each step improved the run time; ``"final"``: the run time in the
            end, and placements on the way are not evaluated.
        discount: What a reward is worth a step earlier; the paper has 1.
        baseline_window: Updates on a graph, the present one included, of which the mean return of a step is what its
            returns are compared with.
        standardise: Whether advantages are taken over their root mean square in the update, and cut off at three of it;
            ours, so that ``entropy`` means the same for every graph. The paper takes them as they are.
        entropy_updates: Updates in which ``entropy`` falls to 0, evenly; 0: it stays.
        devices: Most devices that the policy chooses among.
        width: Numbers per group and direction in the network.
        rounds: Steps of message passing in each direction.
        aggregate: What is made of what several groups say: their ``"sum"``, as published, or their ``"mean"``.
    """

    samples: int = 4
    groups: str = "metis:64"
    start: str = "single"
    reward: str = "improvement"
    discount: float = 1.0
    baseline_window: int = 10
    standardise: bool = True
    entropy_updates: int = 0
    devices: int = 8
    width: int = 16
    rounds: int = 8
    aggregate: str = "sum"

    name: ClassVar[str] = "placeto"
    summary: ClassVar[str] = "a graph network improves a placement group by group, and learns by REINFORCE"
    shelf: ClassVar[Shelf] = SHELF
    network_type = Shape

    def __post_init__(self) -> None:
        super().__post_init__()
        of_type(str, "'metis:64', 'layer' or 'op'", groups=self.groups)
        parts = _METIS.fullmatch(self.groups)
        if parts is not None:
            at_least(1, most=MOST_GROUPS, **{"parts of METIS": int(parts[1])})
        elif self.groups not in ("layer", "op"):
            raise unknown_id("groups", self.groups, ["metis:64", "layer", "op"])
        for option, value, known in (("start", self.start, STARTS), ("reward", self.reward, REWARDS)):
            if value not in known:
                raise unknown_id(option, str(value), list(known))
        at_most_one(discount=self.discount)
        at_least(1, most=_MOST, baseline_window=self.baseline_window)
        of_type(bool, "true or false", standardise=self.standardise)
        at_least(0, most=_MOST, entropy_updates=self.entropy_updates)

    def skip_reason(self, problem: PlacementProblem) -> str | None:
        """Why not to try it: as of all placers, or there are too many groups, or none of the kind that it places."""
        reason = super().skip_reason(problem)
        if reason is not None or self.groups not in ("layer", "op"):
            return reason
        try:
            groups = int(assign(problem, self.groups).max(initial=-1)) + 1
        except InvalidProblemError as error:
            return str(error)
        if groups > MOST_GROUPS:
            return f"places at most {MOST_GROUPS} groups, and there are {groups} by {self.groups!r}; use 'metis:64'"
        return None

    def network(self, problems: Sequence[PlacementProblem]) -> Shape:
        return Shape(self.devices, self.width, self.rounds, self.aggregate)

    @classmethod
    def policy_type(cls) -> Any:
        from .policy import Policy

        return Policy

    def placer(self, policy: Any, network: Shape) -> Any:
        from .reinforce import Recipe, Reinforce

        recipe = Recipe(
            self.groups, self.samples, self.start, self.reward, self.discount, self.baseline_window,
            self.standardise, self.learning_rate, self.entropy, self.entropy_updates,
        )  # fmt: skip
        return Reinforce(policy, network, recipe, self.device)
