"""``OpScheduling-v0``: decide in which order one device runs its ops."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from ...errors import InvalidSolutionError
from ...graphs import Graph
from ...outcome import Outcome
from ...problems import Order, SchedulingProblem
from ..actions import read_choice
from ..arguments import one_of, shortened
from ..environment import ProblemEnv
from ..observers import Observer, warn_of_large_rollouts
from ..rewards import dense_reward, terminal_reward
from .arguments import ACTIONS, REWARDS, read_observation, read_problem, read_slots
from .ending import final_info, return_of
from .layout import READY
from .observation import DictObserver, GraphObserver, NodeObserver, Tables
from .types import SchedulingState
from .viewer import Picture


class OpSchedulingEnv(ProblemEnv[SchedulingState]):
    """Order the ops of a computation graph on one device, for the lowest peak of memory.

    ## Description
    A device runs the ops of a graph one after the other. An op's outputs are allocated when it starts and
    held until the last op that reads them has ended; its workspace is held while it runs. So the order
    decides how much memory is needed at the worst moment. Each step picks the op that runs next, among the
    *ready* ones: those that read nothing that is still to be written. What is resident from start to end
    (parameters, inputs, constants, variables) is the same for every order and does not count; variables do
    not run. Updates write into their variable, and in graphs that allow it an elementwise op writes over an
    input that it reads last.

    Peaks are exactly those of `SchedulingProblem.evaluate`, step by step. A step costs microseconds, for
    graphs of any size.

    ## Action Space
    By `action=`:

    - `"slot"` (default): `Discrete(slots)`, 16 slots unless `slots=` says otherwise. Up to 16 ready ops are
      all in slots. Of more, the slots hold the 7 best ranked *openers* (ops that some other op still waits
      for alone), of the others the 4 that come first in the program order, and of those left the best
      ranked (of k slots, (k - 1) // 2 and (k + 2) // 4). *Rank* is by net bytes freed (bytes that are freed
      when the op ends - bytes of its outputs), most first, then by position in the program order; the ops
      stand in the slots in this order. So slot 0 is the choice of the greedy list scheduler, and the
      program order can be played as well (from 2 slots on), whatever the graph.
    - `"op"`: `Discrete(nodes)`, any ready op. Nodes are the ops that are no variables, in the program order
      (`problem.ops[node]` is the graph's index; the same where there are no variables).

    `info["action_mask"]` (int8) and `action_masks()` (bool) say which slots hold an op, or which ops are
    ready, 1 for legal. Before the end at least one entry is 1; after it all are, as any action is ignored.

    Actions are integers of any kind, numpy's included, or arrays of one integer. Anything else (an empty
    slot, an op that is not ready, a negative number, a float, `None`) never raises: **the first legal
    action is taken** (slot 0, or the ready op of lowest index) and `info["illegal_actions"]` counts it.

    What slots hide: an order that is known beforehand is followed as far as 16 slots allow, and the peak of
    what was played is divided by its own. Geometric mean (largest), and the share of steps at which the
    next op of the order had no slot, from `python -m opgym.envs.scheduling.truncation`; all graphs but the
    first are `synthetic/`, and *searched* is the best of the other three after 20,000 moves of single ops:

    | graphs | program order | greedy | depth first | searched |
    |---|---|---|---|---|
    | 9 x `onnx-light/*` | 1.000 (1.000), 0% | 1.000 (1.000), 0% | 1.000 (1.000), 0% | 1.000 (1.000), 0% |
    | 20 x `er` | 1.000 (1.000), 0% | 1.000 (1.000), 0% | 1.000 (1.000), 5% | 1.001 (1.011), 22% |
    | 20 x `ba` | 1.000 (1.000), 0% | 1.000 (1.000), 0% | 1.000 (1.000), 25% | 1.051 (1.244), 47% |
    | 20 x `ws` | 1.000 (1.000), 0% | 1.000 (1.000), 0% | 0.999 (1.000), 15% | 1.022 (1.162), 26% |
    | 20 x `sbm` | 1.000 (1.000), 0% | 1.000 (1.000), 0% | 1.000 (1.000), 0% | 1.000 (1.000), 0% |
    | 20 x `layered` | 1.000 (1.000), 0% | 1.000 (1.000), 0% | 1.000 (1.000), 0% | 1.000 (1.000), 0% |
    | 20 x `cells` | 1.000 (1.000), 0% | 1.000 (1.000), 0% | 1.000 (1.000), 0% | 1.000 (1.000), 0% |
    | 20 x `fork-join` | 1.000 (1.000), 0% | 1.000 (1.000), 0% | 1.000 (1.000), 0% | 1.000 (1.000), 0% |
    | 3 x `er?n=1000&p=0.01` | 1.000 (1.000), 0% | 1.000 (1.000), 0% | 1.000 (1.000), 47% | 1.003 (1.013), 97% |
    | 3 x `ba?n=1000` | 1.000 (1.000), 0% | 1.000 (1.000), 0% | 0.913 (0.929), 90% | 0.996 (1.016), 97% |
    | 3 x `ws?n=1000` | 1.000 (1.000), 0% | 1.000 (1.000), 0% | 1.045 (1.094), 87% | 1.170 (1.226), 97% |
    | 3 x `layered?n=1000&width=32` | 1.000 (1.000), 0% | 1.000 (1.000), 0% | 1.000 (1.000), 5% | 0.988 (1.000), 83% |

    Nothing is lost to the greedy and the program order. The best orders of wide graphs lose some: give
    those more slots (with 64 the last four rows of *searched* are 1.000, 0.975, 1.033 and 1.000), or
    `action="op"`.

    ## Observation Space
    By `observation=`; every observation is made of fresh arrays. Bytes are in units of the *reference*, the
    peak of the program order.

    - `"node"` (default, only with `action="slot"`): `Box`, `float32 [slots * 17 + 6]`, of one length for
      any graph: the fixed, then the changing fields of slot 0, of slot 1, ...; the global fields.
    - `"dict"` (default with `action="op"`): the whole graph, flat and padded, for policies with several
      inputs:

    | key | dtype | shape | meaning |
    |---|---|---|---|
    | `nodes` | float32 | [nodes, 9] | fixed fields; 0 in padding |
    | `node_mask` | int8 | [nodes] | 1: an op, 0: padding |
    | `status` | int8 | [nodes] | 0: waits for others, 1: ready, 2: has run; -1: padding |
    | `figures` | float32 | [nodes, 8] | changing fields of ready ops; 0 for others |
    | `edges` | int32 | [2, edges] | writing op, reading op; 0 in padding |
    | `edge_features` | float32 | [edges, 3] | edge fields |
    | `edge_mask` | int8 | [edges] | 1: an edge, 0: padding |
    | `slots` | int32 | [slots] | node of each slot; -1: none (not with `action="op"`) |
    | `globals` | float32 | [6] | global fields |

    - `"graph"`: `gymnasium.spaces.Graph`; a node is an op, `float32 [26]`: its fixed fields, its changing
      fields (0 unless it is ready), the status fields, the global fields; an edge carries the edge fields.
      Without edges both edge arrays are `None`.

    Fixed fields (of an op):

    | field | bounds | unit | meaning |
    |---|---|---|---|
    | `occupied` | 0 .. 1 | flag | there is an op; everything is 0 where there is none |
    | `allocated` | 0 .. 1 | reference | bytes of its outputs |
    | `workspace` | 0 .. 1 | reference | bytes that it holds only while it runs |
    | `kept` | 0 .. 1 | reference | bytes of its outputs that stay to the end |
    | `position` | 0 .. 1 | share | its position in the program order / the last position |
    | `depth` | 0 .. 1 | share | ops on the longest path before it / on the longest path |
    | `height` | 0 .. 1 | share | ops on the longest path from it on / on the longest path |
    | `parents` | 0 .. 1 | log share | log(1 + ops it reads from) / log(1 + ops) |
    | `children` | 0 .. 1 | log share | log(1 + ops that read from it) / log(1 + ops) |

    Changing fields (of a ready op):

    | field | bounds | unit | meaning |
    |---|---|---|---|
    | `net` | -1 .. 1 | reference | net bytes freed: freed - allocated |
    | `net_relative` | -1 .. 1 | share | net bytes freed / the largest such size among those shown |
    | `freed` | 0 .. 2 | reference | bytes freed when it ends: what it reads last, what nobody reads |
    | `needed` | 0 .. 1 | reference | bytes taken when it starts: workspace, and outputs not in place |
    | `rise` | 0 .. 1 | reference | what the peak rises by if it runs now: minus the dense reward |
    | `last_uses` | 0 .. 1 | share | tensors that it reads last / most that any op reads |
    | `unlocks` | 0 .. 1 | share | ops that miss only it / most readers of any op |
    | `waited` | 0 .. 1 | share | steps since it became ready / ops |

    Global fields:

    | field | bounds | unit | meaning |
    |---|---|---|---|
    | `live` | 0 .. 16 | reference | bytes live now |
    | `peak` | 0 .. 16 | reference | the peak so far |
    | `bound` | 0 .. 1 | reference | largest footprint of an op: no order has a lower peak |
    | `progress` | 0 .. 1 | share | of the ops, those that have run |
    | `ready` | 0 .. 1 | log share | log(1 + ready ops) / log(1 + ops) |
    | `hidden` | 0 .. 1 | share | of the ready ops, those that are no legal action now |

    Status fields (of a node of `"graph"`):

    | field | bounds | unit | meaning |
    |---|---|---|---|
    | `is_ready` | 0 .. 1 | flag | every op that it reads from has run, and it has not |
    | `is_done` | 0 .. 1 | flag | it has run |
    | `slot` | 0 .. 1 | share | (slots - its slot) / slots; 0: none, and with action="op" |

    Edge fields:

    | field | bounds | unit | meaning |
    |---|---|---|---|
    | `bytes` | 0 .. 1 | reference | bytes of the tensors that the reader reads from the writer |
    | `split_bytes` | 0 .. 1 | reference | the same, each tensor divided by its number of readers |
    | `log_bytes` | 0 .. 1 | log share | log2(1 + those bytes) / 63 |

    `net` makes the vector sufficient: the linear policy that picks the slot of the largest one (the first
    of several) is greedy list scheduling by freed bytes; the one that picks the smallest `position` is the
    program order.

    ## Rewards
    The return is **-(peak / reference)**: the peak of the order against that of the program order, so -1 is
    the program order and less is worse.

    - `reward="dense"` (default): -(what the peak rises by / reference) at every step.
    - `reward="terminal"`: 0 until the last step, which gives it all.

    Use a discount of 1.

    ## Starting State
    Nothing has run. Nothing is random, and `reset` has no options.

    ## Episode End
    Terminated when every op has run: after as many steps as there are ops. Never truncated. A step after
    the end gives the last observation again, reward 0, `terminated`, a warning, and changes nothing.

    ## Information
    - `action_mask`: see above.
    - `illegal_actions`: how many actions of this episode were replaced.
    - at the end `outcome` (the `Outcome`, with value, unit, verdict and details), `peak_bytes` (int, its
      value: without what is resident), `resident_bytes` (int), `order` (tuple of ints: the graph's index of
      each op, in the order in which they ran).

    Beside `reset` and `step`: `action_masks()`, `fork()` (a copy of the state: a few flat arrays) and
    `restore(state)`, `order`, `ready_ops`, `slot_ops`, `live_bytes`, `peak_bytes`, `num_ops`, `num_slots`,
    `reference`, `problem`.

    ## Arguments
    ```python
    import gymnasium, opgym
    env = gymnasium.make("OpScheduling-v0", graph="synthetic/cells?n=200&seed=1", reward="terminal")
    ```

    | argument | default | meaning |
    |---|---|---|
    | `graph` | `"synthetic/ws?n=100&seed=0"` | a `Graph`, an id of `opgym.datasets`, or the path of a model |
    | `problem` | | a ready `SchedulingProblem`, instead of a graph |
    | `action` | `"slot"` | `"slot"` or `"op"` |
    | `slots` | 16 | with `action="slot"`: how many |
    | `observation` | `"node"` | `"node"`, `"dict"` or `"graph"`; `"dict"` with `action="op"` |
    | `reward` | `"dense"` | `"dense"` or `"terminal"` |
    | `pad_to` | exact | for `"dict"`: `(nodes, edges)`, so that several graphs share one space |
    | `render_mode` | `None` | `"rgb_array"` or `"ansi"` |

    ## References
    [1] B. H. Ahn, J. Lee, J. M. Lin, H.-P. Cheng, J. Hou, H. Esmaeilzadeh, "Ordering chaos: memory-aware
    scheduling of irregularly wired neural networks for edge devices", MLSys 2020.
    [2] A. Paliwal, F. Gimeno, V. Nair, Y. Li, M. Lubin, P. Kohli, O. Vinyals, "Reinforced genetic algorithm
    learning for optimizing computation graphs", ICLR 2020.
    [3] R. Sethi, "Complete register allocation problems", SIAM Journal on Computing 4, 1975.

    ## Version History
    * v0: Initial version (opgym 0.1.0), on version 1 of the simulator's semantics.
    """

    def __init__(
        self,
        graph: Graph | str | Path | None = None,
        *,
        problem: SchedulingProblem | None = None,
        action: str = "slot",
        slots: int | None = None,
        observation: str | None = None,
        reward: str = "dense",
        pad_to: tuple[int, int] | None = None,
        render_mode: str | None = None,
    ) -> None:
        self.problem = read_problem(problem, graph)
        self.action = one_of("action", action, ACTIONS)
        self.num_slots = read_slots(action, slots)
        kind, pad_to = read_observation(action, observation, pad_to)
        self._reward = dense_reward if one_of("reward", reward, REWARDS) == "dense" else terminal_reward
        self.render_mode = None if render_mode is None else one_of(
            "render mode", render_mode, tuple(self.metadata["render_modes"])
        )  # fmt: skip

        self._tables = Tables(self.problem, self.num_slots)
        self._view, self.reference = self._tables.view, self._tables.reference
        self._observer = _build_observer(kind, self._tables, pad_to)
        self.observation_space = self._observer.space
        nodes = self.num_ops if pad_to is None else pad_to[0]
        self._num_actions = self.num_slots or nodes
        self.action_space = spaces.Discrete(self._num_actions)
        #: Of so many occupied slots, ``[slots + 1, slots] int8``.
        self._slot_masks = np.tri(self.num_slots + 1, self.num_slots, -1, dtype=np.int8)

    # --- the Gymnasium interface

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Starts an episode: nothing has run. Nothing is random, and there are no options."""
        super().reset(seed=seed)
        partial = self._view.start()
        state = self._state = SchedulingState(partial, partial.best(self.num_slots))
        return self._observer.observe(state), self._info(state)

    def _advance(self, state: SchedulingState, action: Any) -> None:
        partial = state.partial
        partial.run(self._read_node(state, action))
        state.slots = partial.best(self.num_slots)
        state.potential = self._view.potential(partial)
        if partial.over:
            state.over = True
            state.outcome = self.problem.evaluate(Order(self.order))

    def _read_node(self, state: SchedulingState, action: Any) -> int:
        """The node that an action chooses; the first legal one if it is illegal."""
        choice, partial = read_choice(action), state.partial
        if self.num_slots:
            if choice is not None and 0 <= choice < len(state.slots):
                return state.slots[choice]
            first = state.slots[0]
        else:
            if choice is not None and 0 <= choice < self.num_ops and partial.is_ready(choice):
                return choice
            first = partial.first_ready
        state.illegal_actions += 1
        return first

    # --- beyond Gymnasium

    @property
    def num_ops(self) -> int:
        """Number of ops to order: decisions of an episode."""
        return self._tables.num_nodes

    @property
    def order(self) -> NDArray[np.int32]:
        """Ops that have run, in order, by the graph's index, ``[steps] int32``."""
        return self._tables.op[self._current().partial.order]

    @property
    def ready_ops(self) -> NDArray[np.int32]:
        """All ops that may run next, in order of rank, by the graph's index, ``[ready] int32``."""
        return self._tables.op[np.array(self._current().partial.ranked(), np.intp)]

    @property
    def slot_ops(self) -> NDArray[np.int32]:
        """The op of each slot that holds one, by the graph's index, ``[occupied slots] int32``."""
        return self._tables.op[np.array(self._current().slots, np.intp)]

    @property
    def live_bytes(self) -> int:
        """Dynamic memory now."""
        return self._current().partial.live_bytes

    @property
    def peak_bytes(self) -> int:
        """The most dynamic memory so far."""
        return self._current().partial.peak_bytes

    # --- judging and describing

    def _return_of(self, state: SchedulingState, outcome: Outcome) -> float:
        return return_of(self._tables, outcome)

    def _mask(self, state: SchedulingState) -> NDArray[np.int8]:
        if state.over:
            return np.ones(self._num_actions, np.int8)
        if self.num_slots:
            return np.array(self._slot_masks[len(state.slots)], np.int8)
        mask = np.zeros(self._num_actions, np.int8)
        mask[: self.num_ops] = state.partial.status == READY
        return mask

    def _info(self, state: SchedulingState) -> dict[str, Any]:
        info: dict[str, Any] = {"action_mask": self._mask(state), "illegal_actions": state.illegal_actions}
        if state.outcome is not None:
            op = self._tables.op[state.partial.order]
            info |= final_info(self._tables, state.outcome, op, state.partial.peak_bytes)
        return info

    def _picture(self, state: SchedulingState) -> Picture:
        return Picture(self.problem, state, self._program_bytes)

    @cached_property
    def _program_bytes(self) -> NDArray[np.int64]:
        """Memory while each op of the program order runs, ``[ops] int64``."""
        partial = self._view.start()
        for node in range(self.num_ops):
            partial.run(node)
        return partial.used_bytes

    def _refuse_foreign(self, state: SchedulingState) -> None:
        if not isinstance(state, SchedulingState):
            raise InvalidSolutionError(f"the state is {shortened(state)}; expected what fork() gives")
        partial = state.partial
        nodes, slots = partial.num_nodes, len(state.slots)
        if nodes != self.num_ops or slots != min(partial.num_ready, self.num_slots):
            raise InvalidSolutionError(
                f"the state is about {nodes} ops to order, {slots} of them in slots; this environment has "
                f"{self.num_ops} ops and {self.num_slots} slots"
            )
        if not self._view.is_about(partial) or state.slots != partial.best(self.num_slots):
            raise InvalidSolutionError(
                "the state is about other ops, tensors between them or slots than those of this environment, "
                f"graph {self.problem.graph.name!r}"
            )


def _build_observer(kind: str, tables: Tables, pad_to: tuple[int, int] | None) -> Observer[SchedulingState]:
    observer: Observer[SchedulingState]
    if kind == "node":
        observer = NodeObserver(tables)
    elif kind == "dict":
        observer = DictObserver(tables, pad_to)
    else:
        observer = GraphObserver(tables)
    warn_of_large_rollouts(kind, observer.nbytes, "or action='slot' with observation='node'")
    return observer
