"""Which graphs of acting networks the zoo has."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from ..registry import definition
from .agents import AlphaZero, DecisionTransformer, Impala, MuZero, RecurrentReplay, WorldModel
from .workload import Entry, ids, reals, workloads


@definition(family="alphazero", source="own", licence="Apache-2.0")
def alphazero() -> Iterator[Entry]:
    """Silver et al. 2018, "A general reinforcement learning algorithm that masters chess, shogi and Go through
    self-play", and Silver et al. 2017 for Go: 19 and 39 blocks, and a small one.
    """
    for blocks, width, board in ((6, 128, 9), (19, 256, 19), (39, 256, 19)):
        yield from workloads(
            f"alphazero-{blocks}",
            partial(AlphaZero, blocks, width, board),
            inputs=(reals(64, 17, board, board),),
            targets=(reals(64, board * board + 1), reals(64)),
            batch=64,
            modes=("train", "infer") if blocks > 6 else ("train",),
            blocks=blocks,
            board=board,
        )


@definition(family="muzero", source="own", licence="Apache-2.0")
def muzero() -> Iterator[Entry]:
    """Schrittwieser et al. 2020, "Mastering Atari, Go, chess and shogi by planning with a learned model": 5 imagined
    moves.
    """
    for blocks, board in ((3, 9), (16, 19)):
        yield from workloads(
            f"muzero-{blocks}",
            partial(MuZero, blocks, 128, board, 5),
            inputs=(
                reals(32, 17, board, board),
                ids(board * board, 32, 5),
                reals(32, 6, board * board),
                reals(32, 6),
                reals(32, 5),
            ),
            batch=32,
            modes=("train",),
            blocks=blocks,
            moves=5,
        )


@definition(family="r2d2", source="own", licence="Apache-2.0")
def recurrent_replay() -> Iterator[Entry]:
    """Kapturowski et al. 2019, "Recurrent experience replay in distributed reinforcement learning"; one-step
    targets, no burn-in.
    """
    for steps in (20, 80):
        yield from workloads(
            f"r2d2-{steps}",
            partial(RecurrentReplay, steps),
            inputs=(reals(16, steps, 4, 84, 84), ids(18, 16, steps), reals(16, steps)),
            batch=16,
            modes=("train",),
            steps=steps,
        )


@definition(family="impala", source="own", licence="Apache-2.0")
def impala() -> Iterator[Entry]:
    """Espeholt et al. 2018, "IMPALA: scalable distributed deep-RL with importance weighted actor-learner
    architectures": the deep network, unrolls of 20 and 60 steps.
    """
    for steps in (20, 60):
        yield from workloads(
            f"impala-{steps}",
            partial(Impala, steps),
            inputs=(reals(8, steps, 3, 72, 96), ids(9, 8, steps), reals(8, steps), reals(8, steps)),
            batch=8,
            modes=("train",),
            steps=steps,
        )


@definition(family="dreamer", source="own", licence="Apache-2.0")
def dreamer() -> Iterator[Entry]:
    """Hafner et al. 2020, "Dream to control: learning behaviors by latent imagination": the world model over 10 and
    50 steps.
    """
    for steps in (10, 50):
        yield from workloads(
            f"dreamer-{steps}",
            partial(WorldModel, steps),
            inputs=(reals(10, steps, 3, 64, 64), reals(10, steps, 6), reals(10, steps, 30), reals(10, steps)),
            batch=10,
            modes=("train",),
            steps=steps,
        )


@definition(family="decision-transformer", source="own", licence="Apache-2.0")
def decision_transformer() -> Iterator[Entry]:
    """Chen et al. 2021, "Decision Transformer: reinforcement learning via sequence modeling"."""
    for layers, width, steps in ((3, 128, 20), (6, 256, 30)):
        yield from workloads(
            f"decision-transformer-{layers}",
            partial(DecisionTransformer, layers, width, 4, steps),
            inputs=(reals(64, steps, 1), reals(64, steps, 17), reals(64, steps, 6), ids(1000, 64, steps)),
            targets=(reals(64, steps, 6),),
            batch=64,
            modes=("train", "infer") if layers > 3 else ("train",),
            layers=layers,
            steps=steps,
        )
