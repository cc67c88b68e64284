"""What learners are tuned on, and from what: problems of each stage, and options to choose from.

No graph here is of a family that tests are about; stages and the check share none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...datasets import load
from ...graphs import Cluster
from ...problems import PlacementProblem, SchedulingProblem


@dataclass(frozen=True)
class Instance:
    """One problem: a graph, and a cluster to place it on or nothing to order it for memory."""

    graph: str
    cluster: str = ""

    def problem(self) -> PlacementProblem | SchedulingProblem:
        """Loads the graph and poses the problem."""
        graph = load(self.graph)
        return (
            PlacementProblem(graph, Cluster.parse(self.cluster)) if self.cluster else SchedulingProblem(graph)
        )


@dataclass(frozen=True)
class Stage:
    """One round of the search.

    Attributes:
        instances: Problems, used by this stage only.
        seeds: Seeds of each setting on each problem.
        keep: How many settings stay.
    """

    instances: tuple[Instance, ...]
    seeds: int
    keep: int


@dataclass(frozen=True)
class Plan:
    """What the settings are for, and on what they are tried.

    Attributes:
        agents: Learners that it is for.
        evaluations: Budget of each run.
        environment: Options of the environment that all settings share; ``None``: these learners play in none.
        stages: On training graphs.
        check: The comparison on validation graphs.
        choices: Options of this environment to choose from.
        n_steps: Lengths of rollouts to choose from, in steps of each environment; empty: there are none.
    """

    agents: tuple[str, ...]
    evaluations: int
    environment: Mapping[str, Any] | None
    stages: tuple[Stage, ...]
    check: Stage
    choices: Mapping[str, Sequence[Any]]
    n_steps: Sequence[int]


def _instances(cluster: str, *graphs: str) -> tuple[Instance, ...]:
    return tuple(Instance(f"zoo/{graph}", cluster) for graph in graphs)


_TWO, _FOUR = "2xP100", "4xP100"
_TWO_NVLINK, _FOUR_NVLINK = "2xP100@nvlink", "4xP100@nvlink"
_PLAYERS = ("maskable-ppo", "ppo", "a2c", "dqn")
PLANS: Mapping[str, Plan] = {
    "placement": Plan(
        _PLAYERS,
        500,
        {"groups": "metis:64"},
        (
            Stage(
                _instances(_TWO, "xla-gru-lm-1l-train", "fractalnet-4-train")
                + _instances(_FOUR, "transformer-3l-train"),
                1,
                2,
            ),
            Stage(
                _instances(_TWO, "vdvae-8-train")
                + _instances(_FOUR, "swin-v2-8-train", "universal-transformer-6-train"),
                1,
                1,
            ),
        ),
        Stage(
            _instances(_TWO, "mobilevit-v2-2-4-3-train", "timm-ecaresnet26t-train")
            + _instances(_FOUR, "deberta-v2-12l-train", "roformer-12l-train"),
            1,
            1,
        ),
        {"reward": ("terminal", "dense")},
        (64, 128),
    ),
    "scheduling": Plan(
        _PLAYERS,
        100,
        {},
        (
            Stage(_instances("", "capsnet-3-train", "deepfm-24-train", "xla-vae-64-train"), 1, 2),
            Stage(_instances("", "mmoe-8e-2t-train", "ggnn-5-train", "univnet-c32-infer"), 1, 1),
        ),
        Stage(
            _instances(
                "",
                "nerf-4-train",
                "xla-pinn-burgers-4-train",
                "timm-beit-base-patch16-224-infer",
                "ghostnet-infer",
            ),
            1,
            1,
        ),
        {"reward": ("terminal", "dense"), "slots": (8, 16)},
        (64, 128),
    ),
    "ops": Plan(
        ("gdp", "hdp", "placeto"),
        1_000,
        None,
        (
            Stage(
                _instances(_TWO, "gru-lm-1l-train")
                + _instances(_TWO_NVLINK, "timm-tresnet-m-train")
                + _instances(_FOUR, "rhn-5-train")
                + _instances(_FOUR_NVLINK, "transformer-3l-train"),
                1,
                3,
            ),
            Stage(
                _instances(_TWO, "dpn-92-train")
                + _instances(_TWO_NVLINK, "universal-transformer-10-train")
                + _instances(_FOUR, "gpt2-small-train")
                + _instances(_FOUR_NVLINK, "gru-lm-3l-train"),
                1,
                1,
            ),
        ),
        Stage(
            _instances(_TWO, "ghostnet-train")
            + _instances(_TWO_NVLINK, "timm-mobilevit-xxs-train")
            + _instances(_FOUR, "bytenet-10-train", "tiramisu-103-train")
            + _instances(_FOUR_NVLINK, "m2m-100-4l-train", "longformer-6l-train"),
            1,
            1,
        ),
        {},
        (),
    ),
}

_NETWORK = {"num_envs": (8, 16), "learning_rate": (1e-3, 3e-3), "anneal": (False, True)}
_ON_POLICY = {"ent_coef": (0.0, 1e-2), "gae_lambda": (0.95, 1.0)}
_CLIPPED = {
    **_NETWORK,
    **_ON_POLICY,
    "batch_size": (64, 128),
    "n_epochs": (4, 8),
    "clip_range": (0.2, 0.3),
}
#: Options to choose from, by learner.
CHOICES: Mapping[str, Mapping[str, Sequence[Any]]] = {
    "ppo": _CLIPPED,
    "maskable-ppo": _CLIPPED,
    "a2c": {**_NETWORK, **_ON_POLICY, "normalize_advantage": (False, True), "use_rms_prop": (False, True)},
    "dqn": {
        **_NETWORK,
        "batch_size": (64, 128),
        "gradient_steps": (1, 2),
        "target_update_interval": (300, 1_000),
        "exploration_final_eps": (0.01, 0.05),
        "exploration_fraction": (0.2, 0.5),
    },
    "gdp": {
        "learning_rate": (1e-4, 3e-4, 1e-3),
        "entropy": (1e-4, 3e-4, 1e-3),
        "samples": (4, 8, 16),
        "epochs": (1, 2, 4),
        "clip": (0.1, 0.2, 0.3),
        "layers": (1, 2),
        "rounds": (1, 2),
        "segment": (64, 128, 256),
        "head_gain": (0.3, 1.0),
    },
    "hdp": {
        "learning_rate": (3e-3, 3e-2, 1e-1),
        "noise": (0.0, 0.5),
        "samples": (4, 8),
        "groupings": (1, 4),
        "entropy": (0.0, 1e-2),
        "width": (128, 512),
        "temperature": (1.0, 10.0),
        "most_logit": (1.0, 5.0),
    },
    "placeto": {
        "learning_rate": (3e-4, 1e-3, 3e-3),
        "entropy": (1e-3, 1e-2, 3e-2),
        "samples": (2, 4),
        "groups": ("metis:32", "metis:64"),
        "discount": (0.9, 0.95, 1.0),
        "rounds": (3, 8),
    },
}
