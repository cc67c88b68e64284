"""A beginning of an order once more: slow, from the rules alone, by brute force on the graph."""

from opgym.graphs import Graph


class NaiveOrder:
    """Ops that have run; every figure anew from their set."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.done: list[int] = []
        self.ready_since: dict[int, int] = {}
        self._note_ready()

    def run(self, op: int) -> None:
        self.done.append(op)
        self._note_ready()

    def _note_ready(self) -> None:
        for op in self.ready():
            self.ready_since.setdefault(op, len(self.done))

    def producers(self, op: int) -> set[int]:
        """Ops to run from which an op reads."""
        found = {int(self.graph.tensor_producer[tensor]) for tensor in self.graph.inputs(op)} - {-1}
        return {producer for producer in found if not self.graph.is_variable[producer]}

    def ready(self) -> list[int]:
        return [
            op
            for op in range(self.graph.num_ops)
            if not self.graph.is_variable[op] and op not in self.done and self.producers(op) <= set(self.done)
        ]

    def missing_readers(self, tensor: int, done: list[int]) -> set[int]:
        return {int(op) for op in self.graph.consumers(tensor)} - set(done)

    def takes_memory(self, tensor: int) -> bool:
        """Whether a tensor is allocated when its op runs."""
        producer = int(self.graph.tensor_producer[tensor])
        return (
            producer >= 0 and not self.graph.is_variable[producer] and self.graph.op_update_of[producer] < 0
        )

    def live(self, done: list[int]) -> int:
        """Bytes after some ops have run."""
        total = 0
        for op in done:
            for tensor in self.graph.outputs(op):
                kept = self.graph.tensor_is_output[tensor] or self.missing_readers(tensor, done)
                if self.takes_memory(tensor) and kept:
                    total += int(self.graph.tensor_bytes[tensor])
        return total

    def allocated(self, op: int) -> int:
        return sum(int(self.graph.tensor_bytes[t]) for t in self.graph.outputs(op) if self.takes_memory(t))

    def needed(self, op: int) -> int:
        """Bytes that an op adds when it starts."""
        graph, outputs = self.graph, self.graph.outputs(op)
        workspace = int(graph.op_workspace_bytes[op])
        if graph.in_place and graph.op_elementwise[op] and len(outputs) == 1 and graph.op_update_of[op] < 0:
            for tensor in graph.inputs(op).tolist():
                if (
                    self.takes_memory(tensor)
                    and not graph.tensor_is_output[tensor]
                    and graph.tensor_bytes[tensor] == graph.tensor_bytes[outputs[0]]
                    and self.missing_readers(tensor, self.done) == {op}
                ):
                    return workspace
        return workspace + self.allocated(op)

    def net(self, op: int) -> int:
        """Net bytes freed."""
        return self.live(self.done) - self.live([*self.done, op])

    def last_uses(self, op: int) -> int:
        return sum(
            self.takes_memory(tensor)
            and not self.graph.tensor_is_output[tensor]
            and self.graph.tensor_bytes[tensor] > 0
            and self.missing_readers(tensor, self.done) == {op}
            for tensor in self.graph.inputs(op).tolist()
        )

    def unlocks(self, op: int) -> int:
        return sum(
            self.producers(other) - set(self.done) == {op}
            for other in range(self.graph.num_ops)
            if not self.graph.is_variable[other]
        )

    def waited(self, op: int) -> int:
        return len(self.done) - self.ready_since[op]

    def ranked(self) -> list[int]:
        """Ready ops by net bytes freed, most first, then by index."""
        return sorted(self.ready(), key=lambda op: (-self.net(op), op))

    def slots(self, count: int) -> list[int]:
        """Ops in slots, by the rule in the manual."""
        ranked, ready = self.ranked(), self.ready()
        if len(ready) <= count:
            return ranked
        openers = [op for op in ranked if self.unlocks(op)][: (count - 1) // 2]
        first = [op for op in ready if op not in openers][: (count + 2) // 4]
        others = [op for op in ranked if op not in openers + first][: count - len(openers) - len(first)]
        return [op for op in ranked if op in openers + first + others]


def greedy_order(graph: Graph) -> list[int]:
    """Always the ready op of best rank among all of them."""
    naive = NaiveOrder(graph)
    while ready := naive.ranked():
        naive.run(ready[0])
    return naive.done
