"""Small problems and policies, for tests."""

from typing import Any

import torch

from opgym.agents.hdp.hdp import Hdp
from opgym.agents.hdp.policy import Policy
from opgym.agents.hdp.reinforce import Recipe, Reinforce
from opgym.graphs import GraphBuilder
from opgym.problems import PlacementProblem

from ...problems.instances import accelerator, cpu, problem

SMALL: dict[str, Any] = {"width": 6, "grouper_width": 5, "kind_width": 3, "groups": 4, "devices": 3}
RECIPE = Recipe(4, 2, 1e-2, 0.0, 0.0, 0, 0.9, 1.0)


def policy_for(p: PlacementProblem, seed: int = 0, spread: float = 1.0, **options: Any) -> Policy:
    """A policy with random weights, times a factor."""
    policy = Policy.untrained(Hdp(weights="none", **{**SMALL, **options}).network([p]), seed)
    with torch.no_grad():
        for weight in policy.parameters():
            weight.mul_(spread)
    return policy


def placer_for(p: PlacementProblem, recipe: Recipe = RECIPE, **options: Any) -> Reinforce:
    return Reinforce(policy_for(p, **options), recipe, "cpu")


def picky() -> PlacementProblem:
    """Six ops in a row: some run on the CPU alone, some nowhere else than on accelerators, two share a device."""
    b = GraphBuilder("picky")
    x = b.tensor(bytes=1, role="input")
    for i in range(6):
        y, z = b.tensor(shape=(2 + i, 3)), b.tensor(shape=(7,))
        unsupported = {1: ["cpu"], 2: ["accelerator"], 4: ["cpu"]}.get(i, [])
        b.op(
            f"Kind{i % 2}",
            inputs=[x],
            outputs=[y, z],
            unsupported=unsupported,
            group="pair" if i in (0, 5) else None,
        )
        x = y
    return problem(b.build(), (accelerator(), cpu(), accelerator()), "step_time", [10] * 6)


def two_ops() -> PlacementProblem:
    """Two ops that have nothing to do with each other."""
    b = GraphBuilder("two")
    for kind in ("Left", "Right"):
        b.op(kind, outputs=[b.tensor(bytes=1)])
    return problem(b.build(), (accelerator(), accelerator()), "step_time", [10, 10])
