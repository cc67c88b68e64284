"""``GraphPlacement-v0``: decide on which device each group of ops runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import ArrayLike, NDArray

from ..._core import PlacementEstimate
from ...errors import InvalidSolutionError
from ...graphs import Cluster, CostModel, Graph
from ...outcome import Outcome
from ...problems import Objective, Placement, PlacementProblem
from ..actions import read_choice, read_choices
from ..arguments import one_of, shortened
from ..environment import ProblemEnv
from ..observers import Observer, warn_of_large_rollouts
from ..rewards import Reward, dense_reward, terminal_reward
from . import viewer
from .arguments import (
    INITIALS,
    MODES,
    REWARDS,
    read_groups,
    read_initial,
    read_observation,
    read_priority,
    read_problem,
    read_steps,
)
from .ending import final_info
from .observation import DictObserver, GraphObserver, NodeObserver
from .reward import improvement_reward, score
from .tables import Tables
from .types import PlacementState


class GraphPlacementEnv(ProblemEnv[PlacementState]):
    """Place the ops of a computation graph on the devices of a cluster, for the shortest step.

    ## Description
    A compiler has a graph of ops and a cluster of devices, and decides on which device each op runs. Work
    that is spread runs in parallel, but tensors that cross devices take time, and memory is limited.
    Decisions are about *groups* of ops: ops that must share a device (colocation groups) always share a
    group, and larger groups keep large graphs playable. Groups are numbered, and decided, in the order of
    their first op. At the end the whole placement runs in the deterministic event simulator; `order` says
    by which priorities each device picks its ops.

    There are three games (`mode`):

    - `"sequential"`: one decision per group, for good.
    - `"one_shot"`: all groups at once, an episode of one step.
    - `"refine"`: a whole placement is given, one group after the other stays or moves, and the placement is
      judged again after every move (the game of Placeto [1]).

    ## Action Space
    `Discrete(devices)`: the device of the current group (in `refine`, its present device keeps it there).
    In `one_shot` `MultiDiscrete([devices] * nodes)`: the device of every group; entries beside padding are
    ignored.

    `info["action_mask"]` (int8) and `action_masks()` (bool) say which devices allow every op of the group,
    1 for allowed: `[devices]`, or `[nodes * devices]`, group by group, in `one_shot`. Before the end at
    least one entry per group is 1; after it all are, as any action is ignored. Memory is not masked:
    running out of it is a verdict.

    Actions are integers of any kind, numpy's included, or arrays of one integer. Anything else (a device
    that does not exist or is masked, a negative number, a float, `None`, in `one_shot` an array of another
    length) never raises: **the group goes to its lowest allowed device** and `info["illegal_actions"]`
    counts it.

    ## Observation Space
    By `observation=`; every observation is made of fresh arrays. Times are in units of the *reference* (the
    time of all work on the fastest single device) or of the *mean block* (the reference / number of
    groups), clipped.

    - `"node"` (default, not in `one_shot`): `Box`, `float32 [devices * 15 + 22 + 1]`, of one length for any
      graph on as many devices: the device fields of device 0, of device 1, ...; the group fields; the
      progress.
    - `"dict"` (default in `one_shot`): the whole graph, flat and padded, for policies with several inputs:

    | key | dtype | shape | meaning |
    |---|---|---|---|
    | `nodes` | float32 | [nodes, 22 + 2 * devices] | group fields; cost, then allowed, on each device |
    | `node_mask` | int8 | [nodes] | 1: a group, 0: padding |
    | `placement` | int32 | [nodes] | device of each group; -1: not decided yet, or padding |
    | `edges` | int32 | [2, edges] | writing group, reading group; 0 in padding |
    | `edge_features` | float32 | [edges, 3] | edge fields |
    | `edge_mask` | int8 | [edges] | 1: an edge, 0: padding |
    | `devices` | float32 | [devices, 15] | device fields |
    | `current` | int32 | [1] | group to decide; -1: none |
    | `progress` | float32 | [1] | share of the episode's decisions that are taken |

    - `"graph"`: `gymnasium.spaces.Graph`; a node is a group, `float32 [24 + 18 * devices]`: as `nodes`
      above, then whether it is on each device, whether it is to decide now, the device fields of every
      device (0 for all other groups), the progress; an edge carries the edge fields. Without edges both
      edge arrays are `None`.

    Device fields (of each device, about the current group; those about a group are 0 where none is to
    decide):

    | field | bounds | unit | meaning |
    |---|---|---|---|
    | `start_delay` | 0 .. 16 | mean block | earliest start here - smallest over allowed devices |
    | `finish_delay` | 0 .. 16 | mean block | earliest finish here - smallest over allowed devices |
    | `cost` | 0 .. 16 | mean block | time of the group here |
    | `transfer` | 0 .. 16 | mean block | summed durations of the transfers it would wait for here |
    | `start` | 0 .. 16 | reference | earliest start here |
    | `busy_until` | 0 .. 16 | reference | time from which the device is free |
    | `bytes_to_move` | 0 .. 1 | share | of the bytes it reads from groups decided before, those not here |
    | `parents` | 0 .. 1 | share | of its parents decided before, those here |
    | `children` | 0 .. 1 | share | of its children that have a device, those here |
    | `free_memory` | -1 .. 1 | share | of the capacity, what is free now |
    | `free_memory_after` | -1 .. 1 | share | of the capacity, what is free while the group runs here |
    | `free_memory_least` | -1 .. 1 | share | of the capacity, the least that has been free so far |
    | `current` | 0 .. 1 | flag | the group is here now (refine); 0 while it has no device |
    | `lock` | 0 .. 1 | flag | the only device that all ops of the group allow, colocated ones included |
    | `allowed` | 0 .. 1 | flag | the group may run here: the action mask |

    Group fields (0 in `"node"` after the end):

    | field | bounds | unit | meaning |
    |---|---|---|---|
    | `rank` | 0 .. 1 | share | longest path from its most urgent op to the end / critical path |
    | `depth` | 0 .. 1 | share | longest path to its first ready op / critical path |
    | `slack` | 0 .. 1 | share | least slack of its ops / critical path; 0 on the critical path |
    | `layer` | -1 .. 1 | share | first layer of its ops / last layer; -1: no layer is known |
    | `forward` | 0 .. 1 | share | of its work that is forward; 0 or 1 for a single op |
    | `backward` | 0 .. 1 | share | of its work that is backward; 0 or 1 for a single op |
    | `update` | 0 .. 1 | share | of its work that is update; 0 or 1 for a single op |
    | `variable` | 0 .. 1 | share | of its work of variable kinds; all 0: another kind |
    | `recurrent` | 0 .. 1 | share | of its work of recurrent kinds; all 0: another kind |
    | `convolution` | 0 .. 1 | share | of its work of convolution kinds; all 0: another kind |
    | `normalization` | 0 .. 1 | share | of its work of normalization kinds; all 0: another kind |
    | `matrix` | 0 .. 1 | share | of its work of matrix kinds; all 0: another kind |
    | `reduction` | 0 .. 1 | share | of its work of reduction kinds; all 0: another kind |
    | `movement` | 0 .. 1 | share | of its work of movement kinds; all 0: another kind |
    | `elementwise` | 0 .. 1 | share | of its work of elementwise kinds; all 0: another kind |
    | `ops` | 0 .. 1 | log share | log(1 + its ops) / log(1 + ops of the graph) |
    | `work` | 0 .. 16 | mean block | time of the group on the fastest allowed device |
    | `send` | 0 .. 16 | mean block | mean time to send each of its outputs once |
    | `resident` | 0 .. 1 | share | parameters, inputs, variables it needs / smallest capacity |
    | `fan_in` | 0 .. 1 | log share | log(1 + its parents) / log(1 + groups) |
    | `fan_out` | 0 .. 1 | log share | log(1 + its children) / log(1 + groups) |
    | `late_parents` | 0 .. 1 | share | of its parents, those decided after it (groups may form cycles) |
    | `progress` | 0 .. 1 | share | of the episode's decisions, those taken |

    Edge fields:

    | field | bounds | unit | meaning |
    |---|---|---|---|
    | `bytes` | 0 .. 1 | log share | log2(1 + bytes that cross, each tensor once) / 63 |
    | `send` | 0 .. 16 | mean block | mean time to send them |
    | `late` | 0 .. 1 | flag | the reader is decided before the writer |

    "Earliest" is by an estimate that is cheap to extend: a device runs its groups in decision order, each
    as a block whose ops run back to back; a block starts as soon as its device is free and every tensor
    arrives in time for the first op that reads it. Transfers occupy the channels of the cluster's model. A
    parent that is decided later is ignored. Free memory follows the decided groups in decision order. In
    `refine` the estimate holds the groups visited in the current pass. `start_delay` makes the vector
    sufficient: the policy that picks the smallest one (the lowest device of several) is earliest-start list
    scheduling in decision order.

    ## Rewards
    The return is **-(value / reference)**: the value of the placement against that of all work on the
    fastest single device that may run every op, whatever its capacity. An infeasible end (out of memory)
    returns -(value / reference + 2 + overflow share), the overflow share being bytes over capacity /
    capacity on the worst device.

    - `reward="terminal"` (default): 0 until the last step.
    - `reward="dense"`: what the step took off a potential, and at the last step the difference to the real
      return. The potential is the estimate of the objective: the end of the last block (`step_time`,
      `latency`), the largest memory (`peak_memory`), the busiest device (`max_load`), / reference. Both
      rewards have the same return.
    - In `refine` (default there `"dense"`): by how much the step improved value / reference, penalties
      included; the return is (initial value - final value) / reference. `"terminal"` gives it all at the
      last step.

    Use a discount of 1.

    ## Starting State
    Nothing is placed. In `refine` every group is where `initial` puts it: on the fastest single device (a
    group that may not run there on its fastest allowed device), on a device drawn for each group from the
    allowed ones with the seed of `reset`, or as given. Nothing else is random. `reset` has no options.

    ## Episode End
    Terminated when the last group is decided (`refine`: after `steps` decisions). Never truncated. A step
    after the end gives the last observation again, reward 0, `terminated`, a warning, and changes nothing.

    ## Information
    - `action_mask`: see above.
    - `illegal_actions`: how many decisions of this episode were replaced.
    - `outcome` (at the end; in `refine` always): the `Outcome`, with value, unit, verdict and details.
    - at the end `step_time_ns` (int), `peak_bytes` (int64 [devices]), `device` (tuple of ints: the device
      of each op).

    Beside `reset` and `step`: `action_masks()`, `fork()` (a copy of the state, in microseconds) and
    `restore(state)`, `device`, `groups`, `num_groups`, `reference`, `problem`.

    ## Arguments
    ```python
    import gymnasium, opgym
    env = gymnasium.make("GraphPlacement-v0", graph="example/two-branch", cluster="4xP100", mode="refine")
    ```

    | argument | default | meaning |
    |---|---|---|
    | `graph` | `"example/rnn-train"` | a `Graph`, an id of `opgym.datasets`, or the path of a model |
    | `cluster` | `"2xP100"` | a `Cluster` or its text; a file that describes its own cluster brings it |
    | `objective` | `"step_time"` | `"step_time"`, `"peak_memory"`, `"max_load"` or `"latency"` |
    | `costs` | roofline | a cost model; a file that brings measured times uses them |
    | `problem` | | a ready `PlacementProblem`, instead of the four above |
    | `mode` | `"sequential"` | `"sequential"`, `"one_shot"` or `"refine"` |
    | `groups` | by size | `"op"` (up to 2,000 ops), `"metis:256"` (above), `"layer"`, or a label per op |
    | `observation` | `"node"` | `"node"`, `"dict"` or `"graph"`; `"dict"` in `one_shot` |
    | `reward` | `"terminal"` | `"terminal"` or `"dense"`; `"dense"` in `refine` |
    | `order` | `"critical_path"` | at the end, by upward rank under the placement; or `"program"` |
    | `initial` | `"single"` | in `refine`: `"single"`, `"random"`, a `Placement`, or a device per op |
    | `steps` | one pass | in `refine`: decisions of an episode; past the last group a new pass begins |
    | `pad_to` | exact | for `"dict"`: `(nodes, edges)`, so that several graphs share one space |
    | `render_mode` | `None` | `"rgb_array"` or `"ansi"` |

    ## References
    [1] R. Addanki, S. Bojja Venkatakrishnan, S. Gupta, H. Mao, M. Alizadeh, "Placeto: learning
    generalizable device placement algorithms for distributed machine learning", NeurIPS 2019.
    [2] A. Mirhoseini, H. Pham, Q. V. Le, et al., "Device placement optimization with reinforcement
    learning", ICML 2017.
    [3] A. Y. Ng, D. Harada, S. Russell, "Policy invariance under reward transformations: theory and
    application to reward shaping", ICML 1999.

    ## Version History
    * v0: Initial version (opgym 0.1.0), on version 1 of the simulator's semantics.
    """

    def __init__(
        self,
        graph: Graph | str | Path | None = None,
        cluster: Cluster | str | None = None,
        objective: Objective | str | None = None,
        costs: CostModel | None = None,
        *,
        problem: PlacementProblem | None = None,
        mode: str = "sequential",
        groups: str | ArrayLike | None = None,
        observation: str | None = None,
        reward: str | None = None,
        order: str = "critical_path",
        initial: str | Placement | NDArray[Any] | None = None,
        steps: int | None = None,
        pad_to: tuple[int, int] | None = None,
        render_mode: str | None = None,
    ) -> None:
        self.problem = read_problem(problem, graph, cluster, objective, costs)
        self.mode = one_of("mode", mode, MODES)
        kind, pad_to = read_observation(mode, observation, pad_to)
        self.render_mode = None if render_mode is None else one_of(
            "render mode", render_mode, tuple(self.metadata["render_modes"])
        )  # fmt: skip
        self._priority = read_priority(self.problem, order)
        self.groups = read_groups(self.problem, groups)
        self._total_steps = read_steps(mode, steps, initial, int(self.groups.max()) + 1)
        self._tables = Tables(self.problem, self.groups, self._total_steps)
        self._blocks, self._reference = self._tables.blocks, self._tables.reference
        self._start = self._read_start(initial)
        self._start_outcome: Outcome | None = None
        self._reward = self._read_reward(reward)

        self._observer = self._read_observer(kind, pad_to)
        self.observation_space = self._observer.space
        nodes = pad_to[0] if pad_to is not None else self.num_groups
        devices = len(self.problem.cluster)
        if mode == "one_shot":
            self.action_space: spaces.Space[Any] = spaces.MultiDiscrete([devices] * nodes)
        else:
            self.action_space = spaces.Discrete(devices)
        self._masks = self._blocks.allowed.astype(np.int8)
        self._whole_mask = np.ones(nodes * devices, np.int8)
        self._whole_mask[: self._masks.size] = self._masks.ravel()
        self._lowest_allowed: list[int] = self._blocks.allowed.argmax(axis=1).tolist()
        self._state: PlacementState | None = None

    # --- the Gymnasium interface

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Starts an episode; see the class for what it starts from. There are no options."""
        super().reset(seed=seed)
        state = PlacementState(
            mode=self.mode,
            device=np.full(self.num_groups, -1, np.int8),
            step=0,
            group=-1 if self.mode == "one_shot" else 0,
            estimate=PlacementEstimate(self._tables.core),
        )
        if self.mode == "refine":
            self._put_everything(state)
        self._state = state
        return self._observer.observe(state), self._info(state)

    # --- beyond Gymnasium

    @property
    def num_groups(self) -> int:
        """Number of groups that are decided about."""
        return self._blocks.num_groups

    @property
    def reference(self) -> float:
        """What values are divided by, in the unit of the objective."""
        return self._reference.value

    @property
    def device(self) -> NDArray[np.int64]:
        """Device of each op so far, ``[ops] int64``; -1: not decided."""
        return self._current().device.astype(np.int64)[self.groups]

    # --- the three games

    def _advance(self, state: PlacementState, action: Any) -> None:
        if self.mode == "sequential":
            self._decide(state, action)
        elif self.mode == "one_shot":
            self._decide_all(state, action)
        else:
            self._revise(state, action)

    def _return_of(self, state: PlacementState, outcome: Outcome) -> float:
        return state.baseline - score(outcome, self.reference)

    def _decide(self, state: PlacementState, action: Any) -> None:
        """``sequential``: the group goes to the chosen device, for good."""
        self._put(state, state.group, read_choice(action))
        state.step += 1
        state.over = state.step == self.num_groups
        state.group = -1 if state.over else state.step
        state.potential = state.estimate.potential
        if state.over:
            state.outcome = self._evaluate(state)

    def _decide_all(self, state: PlacementState, action: Any) -> None:
        """``one_shot``: every group goes to its device at once; what stands beside padding is ignored."""
        choices = read_choices(action, len(self._whole_mask) // len(self.problem.cluster))
        for group in range(self.num_groups):
            self._put(state, group, choices[group])
        state.step, state.over = 1, True
        state.outcome = self._evaluate(state)

    def _revise(self, state: PlacementState, action: Any) -> None:
        """``refine``: the group stays or moves, and the whole placement is judged again if it moved."""
        group, before = state.group, state.device[state.group]
        self._put(state, group, read_choice(action))
        if state.device[group] != before:
            state.outcome = self._evaluate(state)
            state.potential = score(state.outcome, self.reference)
        state.step += 1
        state.over = state.step == self._total_steps
        state.group = -1 if state.over else state.step % self.num_groups
        if state.group == 0:  # a new pass: the estimate follows the decision order from its beginning
            state.estimate = PlacementEstimate(self._tables.core)

    def _put(self, state: PlacementState, group: int, device: int | None) -> None:
        """Puts a group on a device; on its lowest allowed one if the choice is illegal."""
        if device is None or not 0 <= device < len(self.problem.cluster) or not self._masks[group, device]:
            device = self._lowest_allowed[group]
            state.illegal_actions += 1
        state.device[group] = device
        state.estimate.append(group, device)

    def _put_everything(self, state: PlacementState) -> None:
        """The initial placement of ``refine``."""
        if self._start is None:
            draw = self.np_random.random(self.num_groups)
            count = self._blocks.allowed.sum(axis=1)
            nth = np.floor(draw * count).astype(np.int64)  # which of its allowed devices
            device = (np.cumsum(self._blocks.allowed, axis=1) > nth[:, None]).argmax(axis=1)
            state.device = device.astype(np.int8)
            state.outcome = self._evaluate(state)
        else:
            state.device = self._start.astype(np.int8)
            self._start_outcome = self._start_outcome or self._evaluate(state)
            state.outcome = self._start_outcome
        state.baseline = state.potential = score(state.outcome, self.reference)

    # --- judging and describing

    def _solution(self, state: PlacementState) -> Placement | None:
        """The placement of all ops, if every group has a device."""
        if state.outcome is None and not state.over:
            return None
        return self._placement(state)

    def _placement(self, state: PlacementState) -> Placement:
        """The devices of all ops, in the order that the environment was made with."""
        return Placement(state.device.astype(np.int64)[self.groups], self._priority)

    def _evaluate(self, state: PlacementState) -> Outcome:
        return self.problem.evaluate(self._placement(state))

    def _mask(self, state: PlacementState) -> NDArray[np.int8]:
        """Legal actions of a state; all of them after the end, when any action is ignored."""
        if self.mode == "one_shot":
            return np.ones_like(self._whole_mask) if state.over else self._whole_mask.copy()
        return (
            np.ones(len(self.problem.cluster), np.int8)
            if state.group < 0
            else self._masks[state.group].copy()
        )

    def _info(self, state: PlacementState) -> dict[str, Any]:
        info: dict[str, Any] = {"action_mask": self._mask(state), "illegal_actions": state.illegal_actions}
        if state.outcome is not None:
            info["outcome"] = state.outcome
        if state.over and state.outcome is not None:
            info |= final_info(self.problem, state.outcome, self._placement(state))
        return info

    def _picture(self, state: PlacementState) -> viewer.Picture:
        return viewer.Picture(self.problem, self._blocks, state, self._total_steps, self._solution(state))

    def _refuse_foreign(self, state: PlacementState) -> None:
        if not isinstance(state, PlacementState):
            raise InvalidSolutionError(f"the state is {shortened(state)}; expected what fork() gives")
        if (len(state.device), state.estimate.num_devices) != (self.num_groups, len(self.problem.cluster)):
            raise InvalidSolutionError(
                f"the state is about {len(state.device)} groups on {state.estimate.num_devices} devices; "
                f"this environment has {self.num_groups} on {len(self.problem.cluster)}"
            )
        if state.mode != self.mode:
            raise InvalidSolutionError(
                f"the state is of mode {state.mode!r}; that of this environment is {self.mode!r}"
            )
        if not state.estimate.is_about(self._tables.core):
            raise InvalidSolutionError(
                f"the state is about other groups, costs or devices than those of this environment, graph "
                f"{self.problem.graph.name!r} on {self.problem.cluster.name!r}"
            )

    # --- arguments that need more than a look

    def _read_start(self, initial: str | Placement | NDArray[Any] | None) -> NDArray[np.int64] | None:
        """Device of each group at the start of ``refine``, ``[groups] int64``; ``None`` where it is drawn."""
        if self.mode != "refine":
            return None
        if isinstance(initial, str) and one_of("initial placement", initial, INITIALS) == "random":
            return None
        if initial is None or isinstance(initial, str):
            # The fastest single device; for a group that may not run there, its fastest allowed one.
            allowed = self._blocks.allowed
            cost = np.where(
                allowed, np.array(self._blocks.cost_ns, np.float64).reshape(allowed.shape), np.inf
            )
            home = self._reference.device[self._blocks.first_op]
            groups = np.arange(self.num_groups)
            return np.asarray(np.where(allowed[groups, home], home, cost.argmin(axis=1)), np.int64)
        return read_initial(self.problem, self._blocks, initial)

    def _read_reward(self, reward: str | None) -> Reward:
        chosen = one_of("reward", reward or ("dense" if self.mode == "refine" else "terminal"), REWARDS)
        if chosen == "terminal":
            return terminal_reward
        return improvement_reward if self.mode == "refine" else dense_reward

    def _read_observer(self, kind: str, pad_to: tuple[int, int] | None) -> Observer[PlacementState]:
        tables = self._tables
        observer: Observer[PlacementState]
        if kind == "node":
            observer = NodeObserver(tables)
        elif kind == "dict":
            observer = DictObserver(tables, pad_to)
        else:
            observer = GraphObserver(tables)
        warn_of_large_rollouts(
            kind, observer.nbytes, "coarser groups such as groups='metis:64', or observation='node'"
        )
        return observer
