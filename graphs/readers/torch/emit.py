"""From recorded nodes to a :class:`Graph`: states get homes, what nobody uses is left out."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from ....errors import ImportFailedError, InvalidGraphError
from ...builder import GraphBuilder
from ...graph import VARIABLE, Graph
from ..layers import named_depth
from .step import Step
from .tape import Node, State, Storage, Version, dtype_name


@dataclass(frozen=True)
class Emitted:
    """A graph and what it lacks.

    Attributes:
        graph: The graph.
        missing_cost: Ops without a cost formula, by kind.
        unused: Ops left out as nobody uses what they compute, by kind.
        unread: Parameters that no op reads.
        nodes: The node of each op; ``None`` for variables.
        tensors: What each tensor of the graph holds.
        index: Tensor of the graph for every version, in-place results without one included.
    """

    graph: Graph
    missing_cost: Counter[str]
    unused: Counter[str]
    unread: tuple[str, ...]
    nodes: tuple[Node | None, ...]
    tensors: tuple[Version, ...]
    index: dict[Version, int]


def emit(step: Step, level: str, name: str, *, train: bool) -> Emitted:
    """Builds the graph.

    Args:
        step: What was recorded.
        level: Of the graph.
        name: Of the graph.
        train: Whether every parameter has a home, or only what the step changes.

    Raises:
        ImportFailedError: No ops are left, or a figure is too large.
    """
    return _Emitter(step, level, name, train).run()


class _Emitter:
    def __init__(self, step: Step, level: str, name: str, train: bool) -> None:
        self.step = step
        self.builder = GraphBuilder(level, name)
        self.homed = [s for s in step.states if s.changed or (train and s.is_parameter)]
        self.handles: dict[Version, int] = {}
        self.home_op: dict[State, int] = {}
        self.group = {state: state for state in self.homed}
        self.nodes: list[Node | None] = []
        self.outputs: list[list[Version]] = []

    def run(self) -> Emitted:
        for state in self.homed:
            for version in state.versions:
                version.storage.current.is_output |= version.storage.current is not version
        nodes = self.step.recorder.nodes
        alive = self._alive(nodes)
        kept = [node for node, used in zip(nodes, alive, strict=True) if used]
        if not kept:
            raise ImportFailedError("the module does no work: there is nothing to decide")
        for node in kept:
            self._unite(node)
        self._layers = self._name_layers(kept)
        try:
            for version in self.step.inputs:
                self._source(version)
            for node in kept:
                self._emit(node)
            for version in self.step.outputs:  # one that is an input or a parameter as it was
                self._source(version)
            graph = self.builder.build()
        except InvalidGraphError as error:
            raise ImportFailedError(str(error)) from error
        return Emitted(
            graph,
            Counter(node.kind for node in kept if node.flops is None),
            Counter(node.kind for node, used in zip(nodes, alive, strict=True) if not used),
            tuple(s.name for s in self.step.states if s.is_parameter and s.versions[0] not in self.handles),
            tuple(self.nodes),
            *self._index(),
        )

    def _index(self) -> tuple[tuple[Version, ...], dict[Version, int]]:
        """Versions by the numbers that the graph gives them: sources, then outputs by op and slot."""
        by_handle: dict[int, Version] = {}
        for version, handle in self.handles.items():
            by_handle.setdefault(handle, version)
        written = [v for outputs in self.outputs for v in outputs]
        produced = set(written)
        tensors = [v for v in by_handle.values() if v not in produced] + written
        position = {self.handles[v]: i for i, v in enumerate(tensors)}
        return tuple(tensors), {v: position[handle] for v, handle in self.handles.items()}

    def _alive(self, nodes: list[Node]) -> list[bool]:
        """Whether each node's result is used, directly or not, by an output or a changed state."""
        alive = [False] * len(nodes)
        wanted = [v for v in self.step.outputs if v.producer >= 0]
        wanted += [
            v.storage.current
            for state in self.homed
            for v in state.versions
            if v.storage.current.producer >= 0
        ]
        for version in wanted:
            alive[version.producer] = True
        for i in range(len(nodes) - 1, -1, -1):
            if alive[i]:
                for version in nodes[i].reads:
                    if version.producer >= 0:
                        alive[version.producer] = True
        return alive

    def _root(self, state: State) -> State:
        while self.group[state] is not state:
            state = self.group[state]
        return state

    def _unite(self, node: Node) -> None:
        """States that one op writes to share a device."""
        states = _states_written(node)
        for other in states[1:]:
            self.group[self._root(other)] = self._root(states[0])

    def _name_layers(self, nodes: list[Node]) -> dict[tuple[str, ...], str | None]:
        paths = sorted({n.path for n in nodes} | {s.path for s in self.homed})
        return {
            path: ".".join(path[:depth]) or None
            for path, depth in zip(paths, named_depth(paths), strict=True)
        }

    def _emit(self, node: Node) -> None:
        for version in node.reads:
            self._source(version)
        states = _states_written(node)
        for state in states:
            self._home(state)
        owner = node.home or (states[0] if states else None)
        in_place = [s for s in node.rewritten if s.state in self.group]
        # An op that writes nothing but one state's storage is its update. One that writes more writes the state
        # on the way, as batch normalisation does its statistics: what it leaves there is the variable's tensor.
        updates = len(in_place) == len(node.writes) == 1
        outputs = []
        for version in node.writes:
            if version.storage in in_place and not updates:
                self.handles[version] = self._first(version.storage)
            else:
                outputs.append(version)
        self.nodes.append(node)
        self.outputs.append(outputs)
        self.builder.op(
            node.kind,
            inputs=[self.handles[v] for v in node.reads],
            outputs=[self._tensor(version) for version in outputs],
            flops=node.flops or 0,
            accessed_bytes=node.accessed_bytes,
            group=self._root(owner).name if owner is not None else None,
            layer=self._layers[node.path],
            direction=node.direction,
            update_of=self.home_op[states[0]] if updates else None,
            elementwise=node.elementwise,
            name=".".join((*node.path, node.kind)),
        )

    def _source(self, version: Version) -> None:
        """Declares what was there before the step, as a tensor or as the home of a state."""
        if version in self.handles or version.producer >= 0:
            return
        state = version.storage.state
        if state is not None and state in self.group:
            self._home(state)
        else:
            self._tensor(version)

    def _home(self, state: State) -> None:
        if state in self.home_op:
            return
        self.nodes.append(None)
        self.outputs.append(state.versions)
        self.home_op[state] = self.builder.op(
            VARIABLE,
            outputs=[self._tensor(version) for version in state.versions],
            group=self._root(state).name,
            layer=self._layers[state.path],
            name=state.name,
        )

    def _first(self, storage: Storage) -> int:
        """The variable's own tensor of a storage."""
        assert storage.state is not None
        return next(self.handles[v] for v in storage.state.versions if v.storage is storage)

    def _tensor(self, version: Version) -> int:
        handle = self.builder.tensor(
            bytes=version.storage.bytes,
            dtype=dtype_name(version.layout.dtype),
            shape=version.layout.size,
            role=version.role,
            is_output=version.is_output,
            name=version.name,
        )
        self.handles[version] = handle
        return handle


def _states_written(node: Node) -> list[State]:
    return list(dict.fromkeys(s.state for s in node.rewritten if s.state is not None))
