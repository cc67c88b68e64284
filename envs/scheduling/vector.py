"""The native batch of ``OpScheduling-v0``: many episodes that step in one call of the core."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from gymnasium import spaces
from gymnasium.vector import AutoresetMode

from ..._core import SchedulingBatch
from ...graphs import Graph
from ...problems import Order, SchedulingProblem
from ..arguments import one_of
from ..observers import nbytes_of, warn_of_large_rollouts
from ..vector import NativeVectorEnv
from ..vector_arguments import each, read_num_envs, read_threads, refuse_what_is_not_native
from ..vector_observation import Shown
from .arguments import ACTIONS, REWARDS, read_observation, read_problem, read_slots
from .ending import final_info, return_of
from .observation import Tables, changing_spaces, node_space, padded_graph


class OpSchedulingVectorEnv(NativeVectorEnv):
    """Many episodes of ``OpScheduling-v0``, stepped together in the core.

    ```python
    import gymnasium, opgym
    envs = gymnasium.make_vec("OpScheduling-v0", num_envs=64, graph="synthetic/ws?n=1000&seed=0")
    ```

    Equal to Gymnasium's ``SyncVectorEnv`` of single environments, bit by bit, in everything that ``reset`` and
    ``step`` return, and more than ten times as fast; see :class:`~opgym.envs.OpSchedulingEnv` for what they
    mean. `opgym benchmark envs` measures it: [speed](batches.md#speed).

    Beside Gymnasium's interface there are ``action_masks()``; ``state()``, everything that is needed to go on
    exactly, in another process too, as plain arrays, and ``restore(state)``; ``graph``, the index of the graph that
    each slot is about; ``static``, see ``observation``. Actions of a wrong kind count as illegal; a wrong number of
    them is an error.

    Arguments are those of the single environment, but for these:

    Args:
        num_envs: Number of slots.
        graph: As for the single environment, or a sequence of such: slot i decides about graph i mod n.
        problem: A ready problem, or a sequence of such.
        action: As for the single environment; ``"op"``: there are as many actions as the largest graph has ops.
        slots: As for the single environment.
        observation: ``"node"`` or ``"dict"``. Of a dict, what never changes is given once, in the attribute
            ``static``, ``[graphs, ...]`` by key; an observation holds the rest (``status``, ``figures``,
            ``globals``, ``slots``), and the index of its graph in ``graph``, ``int32 [1]``.
        reward: As for the single environment.
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
        *,
        problem: Sequence[SchedulingProblem] | SchedulingProblem | None = None,
        action: str = "slot",
        slots: int | None = None,
        observation: str | None = None,
        reward: str = "dense",
        pad_to: tuple[int, int] | None = None,
        draw: str = "slot",
        autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
        threads: int = 1,
        render_mode: str | None = None,
    ) -> None:
        if problem is not None:
            problems = [read_problem(p, each(graph)[0]) for p in each(problem)]
        else:
            problems = [read_problem(None, g) for g in each(graph)]
        self.action = one_of("action", action, ACTIONS)
        self.num_slots = read_slots(action, slots)
        kind, pad_to = read_observation(action, observation, pad_to)
        refuse_what_is_not_native("observation", kind, "graph")
        refuse_what_is_not_native("render_mode", render_mode, render_mode)
        dense = one_of("reward", reward, REWARDS) == "dense"
        self._tables = [Tables(p, self.num_slots) for p in problems]

        most_nodes = max(tables.num_nodes for tables in self._tables)
        shown = Shown(node_space(self.num_slots))
        if kind == "dict":
            most_edges = max(1, *(len(tables.edges) for tables in self._tables))
            pad_to = pad_to or (most_nodes, most_edges)
            most_nodes = pad_to[0]
            shown = Shown.of_graphs(
                [padded_graph(tables, pad_to) for tables in self._tables],
                changing_spaces(most_nodes, self.num_slots),
            )
            warn_of_large_rollouts(kind, nbytes_of(shown.space), "or action='slot' with observation='node'")
        core = SchedulingBatch(
            [tables.view for tables in self._tables],
            read_num_envs(num_envs),
            padded_nodes=most_nodes,
            dense=dense,
            threads=read_threads(threads),
        )
        super().__init__(
            num_envs,
            core,
            [tables.num_nodes for tables in self._tables],
            shown,
            spaces.Discrete(self.num_slots or most_nodes),
            autoreset_mode=autoreset_mode,
            draw=draw,
        )
        self._batch = core

    def _decided_about(self) -> Iterable[bytes]:
        return (tables.problem.graph.fingerprint.encode() for tables in self._tables)

    def _judge(self, slots: list[int]) -> list[tuple[float, dict[str, Any]]]:
        return [self._judge_one(slot) for slot in slots]

    def _judge_one(self, slot: int) -> tuple[float, dict[str, Any]]:
        tables = self._tables[self.graph[slot]]
        op = tables.op[self._batch.decisions(slot)]
        outcome = tables.problem.evaluate(Order(op))
        return return_of(tables, outcome), final_info(tables, outcome, op, self._batch.peak_bytes(slot))
