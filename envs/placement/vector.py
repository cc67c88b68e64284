"""The native batch of ``GraphPlacement-v0``: many episodes that step in one call of the core."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode
from numpy.typing import ArrayLike

from ..._core import PlacementBatch
from ...errors import InvalidProblemError
from ...graphs import Cluster, CostModel, Graph
from ...problems import Objective, Placement, PlacementProblem
from ..arguments import one_of
from ..observers import nbytes_of, warn_of_large_rollouts
from ..vector import NativeVectorEnv
from ..vector_arguments import each, read_num_envs, read_threads, refuse_what_is_not_native
from ..vector_observation import Shown
from .arguments import MODES, REWARDS, read_groups, read_observation, read_priority, read_problem
from .ending import final_info, judge_legal
from .observation import changing_spaces, node_space, padded_graph
from .reward import score
from .tables import Tables


class GraphPlacementVectorEnv(NativeVectorEnv):
    """Many episodes of ``GraphPlacement-v0`` in mode ``"sequential"``, stepped together in the core.

    ```python
    import gymnasium, opgym
    envs = gymnasium.make_vec("GraphPlacement-v0", num_envs=64, graph="synthetic/layered?n=1000&seed=1")
    ```

    Equal to Gymnasium's ``SyncVectorEnv`` of single environments, bit by bit, in everything that ``reset`` and
    ``step`` return, and more than ten times as fast; see :class:`~opgym.envs.GraphPlacementEnv` for what they
    mean. Placements that end together are simulated together. ``opgym benchmark envs`` measures it.

    Beside Gymnasium's interface there are ``action_masks()``; ``state()``, everything that is needed to go on
    exactly, in another process too, as plain arrays, and ``restore(state)``; ``graph``, the index of the graph that
    each slot is about; ``static``, see ``observation``. Actions of a wrong kind count as illegal; a wrong number of
    them is an error.

    Arguments are those of the single environment, but for these:

    Args:
        num_envs: Number of slots.
        graph: As for the single environment, or a sequence of such: slot i decides about graph i mod n.
        cluster: As for the single environment; all graphs are on clusters of as many devices.
        problem: A ready problem, or a sequence of such.
        mode: ``"sequential"``; others need ``vectorization_mode="sync"``.
        groups: As for the single environment: one rule for all graphs, or a sequence with one for each.
        observation: ``"node"`` or ``"dict"``. Of a dict, what never changes is given once, in the attribute
            ``static``, ``[graphs, ...]`` by key; an observation holds the rest (``placement``, ``devices``,
            ``current``, ``progress``), and the index of its graph in ``graph``, ``int32 [1]``.
        pad_to: ``(nodes, edges)``; by default those of the largest graph.
        draw: ``"slot"``, or ``"episode"``: each episode draws its graph from the generator of its slot.
        autoreset_mode: Gymnasium's ``AutoresetMode``, or its name.
        threads: How many step; what they return does not depend on it, and few slots are fastest with one.
        render_mode: None; a batch draws nothing.
    """

    def __init__(
        self,
        num_envs: int = 1,
        graph: Sequence[Graph | str | Path] | Graph | str | Path | None = None,
        cluster: Cluster | str | None = None,
        objective: Objective | str | None = None,
        costs: CostModel | None = None,
        *,
        problem: Sequence[PlacementProblem] | PlacementProblem | None = None,
        mode: str = "sequential",
        groups: Sequence[str | ArrayLike] | str | ArrayLike | None = None,
        observation: str | None = None,
        reward: str | None = None,
        order: str = "critical_path",
        pad_to: tuple[int, int] | None = None,
        draw: str = "slot",
        autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
        threads: int = 1,
        render_mode: str | None = None,
    ) -> None:
        refuse_what_is_not_native("mode", one_of("mode", mode, MODES), "one_shot", "refine")
        kind, pad_to = read_observation(mode, observation, pad_to)
        refuse_what_is_not_native("observation", kind, "graph")
        refuse_what_is_not_native("render_mode", render_mode, render_mode)
        dense = one_of("reward", reward or "terminal", REWARDS) == "dense"
        if problem is not None:
            problems = [read_problem(p, each(graph)[0], cluster, objective, costs) for p in each(problem)]
        else:
            problems = [read_problem(None, g, cluster, objective, costs) for g in each(graph)]
        devices = _one_number_of_devices(problems)
        self._tables = [
            Tables(p, read_groups(p, rule))
            for p, rule in zip(problems, _groups_of_each(groups, len(problems)), strict=True)
        ]
        self._priorities = [read_priority(p, order) for p in problems]

        most_nodes = max(tables.blocks.num_groups for tables in self._tables)
        shown = Shown(node_space(devices))
        if kind == "dict":
            pad_to = pad_to or _largest(self._tables)
            most_nodes = pad_to[0]
            shown = Shown.of_graphs(
                [padded_graph(tables, pad_to) for tables in self._tables],
                changing_spaces(most_nodes, devices),
            )
            warn_of_large_rollouts(
                kind,
                nbytes_of(shown.space),
                "coarser groups such as groups='metis:64', or observation='node'",
            )
        self._threads = read_threads(threads)
        self._batch = PlacementBatch(
            [tables.core for tables in self._tables],
            read_num_envs(num_envs),
            most_nodes,
            dense,
            kind == "node",
            self._threads,
        )
        super().__init__(
            num_envs,
            self._batch,
            [tables.total_steps for tables in self._tables],
            shown,
            spaces.Discrete(devices),
            autoreset_mode=autoreset_mode,
            draw=draw,
        )

    def _decided_about(self) -> Iterable[bytes]:
        for tables in self._tables:
            problem = tables.problem
            yield problem.graph.fingerprint.encode()
            yield problem.cost_ns.tobytes()
            yield tables.blocks.group_of_op.tobytes()
            for name, part in sorted(tables.core.__getstate__().items()):
                yield name.encode()
                yield part.tobytes() if isinstance(part, np.ndarray) else repr(part).encode()

    def _judge(self, slots: list[int]) -> list[tuple[float, dict[str, Any]]]:
        ends: dict[int, tuple[float, dict[str, Any]]] = {}
        for graph in np.unique(self.graph[slots]).tolist():
            tables, priority = self._tables[graph], self._priorities[graph]
            chosen = [slot for slot in slots if self.graph[slot] == graph]
            device = np.array([self._batch.decisions(slot) for slot in chosen], np.uint8)
            device = device[:, tables.blocks.group_of_op]
            for slot, row, outcome in zip(
                chosen, device, judge_legal(tables.problem, device, priority, self._threads), strict=True
            ):
                # Written as in the single environment, whose baseline is 0.0: it decides between 0.0 and -0.0.
                episode_return = 0.0 - score(outcome, tables.reference.value)
                ends[slot] = episode_return, final_info(tables.problem, outcome, Placement(row, priority))
        return [ends[slot] for slot in slots]


def _one_number_of_devices(problems: list[PlacementProblem]) -> int:
    """How many devices every problem has.

    Raises:
        InvalidProblemError: They differ.
    """
    counts = [len(p.cluster) for p in problems]
    if len(set(counts)) > 1:
        raise InvalidProblemError(
            f"the graphs are on clusters of {min(counts)} to {max(counts)} devices; in a batch all are on as many"
        )
    return counts[0]


def _groups_of_each(
    groups: Sequence[str | ArrayLike] | str | ArrayLike | None, count: int
) -> list[str | ArrayLike | None]:
    """What to group each graph by.

    Raises:
        InvalidProblemError: Labels for another number of graphs.
    """
    if groups is None or isinstance(groups, str):
        return [groups] * count
    rules: list[Any] = list(groups) if isinstance(groups, (list, tuple)) else [groups]
    if any(np.ndim(rule) == 0 and not isinstance(rule, str) for rule in rules):  # labels of one graph
        rules = [groups]
    if len(rules) != count:
        raise InvalidProblemError(
            f"groups= for {len(rules)} graphs; there are {count}: give one rule for all, or one for each"
        )
    return rules


def _largest(tables: list[Tables]) -> tuple[int, int]:
    """Nodes and edges that every graph fits into."""
    nodes = max(t.blocks.num_groups for t in tables)
    return nodes, max(1, *(sum(map(len, t.blocks.parents)) for t in tables))
