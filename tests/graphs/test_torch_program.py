"""Recorded steps run again on real tensors, in any order: the graph knows every dependency that there is."""

import copy
import gc

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from opgym.errors import InvalidSolutionError
from opgym.graphs import DIRECTIONS, ROLES, Graph, peak_of_order
from opgym.graphs.readers import from_torch
from opgym.graphs.readers.torch import Program, executable


class Convolutions(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(8)
        self.grouped = nn.Conv2d(8, 8, 3, padding=1, groups=4)
        self.head = nn.Linear(8, 5)

    def forward(self, x):
        y = F.relu(self.norm(self.stem(x)), inplace=True)
        y = F.max_pool2d(torch.cat([y, y * 2], 1)[:, ::2] + self.norm(self.grouped(y)), 2)
        return F.silu(self.head(y.mean((2, 3))))


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(11, 6)
        self.lstm = nn.LSTM(6, 6, num_layers=2)
        self.output = nn.Linear(6, 11)
        self.output.weight = nn.Parameter(self.embedding.weight.detach().clone())
        self.embedding.weight = self.output.weight

    def forward(self, ids):
        h, _ = self.lstm(self.embedding(ids[:, :-1]).transpose(0, 1))
        return F.cross_entropy(self.output(h).transpose(0, 1).flatten(0, 1), ids[:, 1:].flatten())


class Writing(nn.Module):
    """Writes into parts of tensors, through views, and into a buffer."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.randn(4))
        self.register_buffer("seen", torch.zeros(3, 4))

    def forward(self, x):
        y = torch.zeros(3, 4)
        y[0] = x * self.scale
        y[1:].copy_(x.expand(2, 4)).mul_(self.scale)
        y.t()[2].add_(1)
        self.seen[1] += x
        return (y * torch.ones_like(y.exp()) + self.seen).sum()


CASES = [
    pytest.param(Convolutions, lambda: torch.randn(2, 3, 8, 8), id="convolutions"),
    pytest.param(Recurrent, lambda: torch.randint(11, (3, 5)), id="recurrent"),
    pytest.param(lambda: nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True), lambda: torch.randn(2, 5, 8),
                 id="transformer"),
    pytest.param(Writing, lambda: torch.randn(4), id="writing"),
]  # fmt: skip


def random_order(graph: Graph, rng: np.random.Generator) -> list[int]:
    """A random legal order with the updates of parameters last, as nothing reads a parameter after them."""
    key = rng.random(graph.num_ops) + 2 * (graph.op_direction == DIRECTIONS.index("update"))
    key += graph.op_update_of >= 0
    parents: list[set[int]] = [set() for _ in range(graph.num_ops)]
    for producer, consumer, _ in zip(*graph.edges, strict=True):
        parents[consumer].add(int(producer))
    order: dict[int, None] = {}
    while len(order) < graph.num_ops:
        ready = [v for v in range(graph.num_ops) if v not in order and parents[v] <= order.keys()]
        order[min(ready, key=lambda v: key[v])] = None
    return list(order)


def contents(program: Program, module: nn.Module, x: torch.Tensor) -> dict[int, torch.Tensor]:
    """Copies of the module's tensors and the input, and moments of zeros, where the program expects them."""
    state, graph = module.state_dict(), program.graph
    given = {}
    for tensor in program.given:
        name = graph.tensor_names[tensor]
        if ROLES[graph.tensor_role[tensor]] == "input":
            given[tensor] = x.clone()
        elif ".exp_avg" in name:
            given[tensor] = torch.zeros_like(state[name.rsplit(".", 1)[0]])
        else:
            given[tensor] = state[name].clone()
    return given


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
@pytest.mark.parametrize(("module", "example"), CASES)
def test_any_order_computes_what_torch_computes(module, example, optimizer):
    torch.manual_seed(0)
    net, x = module().train(), example()
    program = executable(net, x, optimizer=optimizer)
    assert program.graph == from_torch(net, x, optimizer=optimizer).graph
    start = copy.deepcopy(net)
    by_torch = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam}[optimizer](net.parameters(), lr=1e-3)
    result = net(x)
    loss = result if result.dim() == 0 else result.mean()
    loss.backward()
    by_torch.step()
    rng = np.random.default_rng(1)
    orders = [range(program.graph.num_ops), *(random_order(program.graph, rng) for _ in range(3))]
    names = program.graph.tensor_names
    for order in orders:
        given = contents(program, start, x)
        outputs = program.run(order, given)
        scalars = [t for t, value in outputs.items() if value.dim() == 0 and value.is_floating_point()]
        assert any(torch.allclose(outputs[t], loss) for t in scalars)
        after = net.state_dict()
        for tensor, value in given.items():  # written in place
            if names[tensor] in after:
                expected = after[names[tensor]]
                if torch.is_floating_point(expected):
                    assert torch.allclose(value, expected, atol=1e-6), names[tensor]
                elif "num_batches" in names[tensor]:
                    assert value == expected


@pytest.mark.parametrize(("module", "example"), CASES)
def test_the_bytes_held_are_those_of_the_graph(module, example, monkeypatch):
    net, x = module().train(), example()
    program = executable(net, x)
    graph = program.graph
    held_bytes: list[int] = []
    run_one = Program._run

    def measured(self, op, call, held):
        run_one(self, op, call, held)
        held_bytes.append(sum({s.data_ptr(): s.nbytes() for s in held.values()}.values()))

    monkeypatch.setattr(Program, "_run", measured)
    rng = np.random.default_rng(2)
    for order in (range(graph.num_ops), random_order(graph, rng), random_order(graph, rng)):
        given = contents(program, net, x)
        before = sum(t.untyped_storage().nbytes() for t in given.values())
        held_bytes.clear()
        program.run(order, given)
        assert max(held_bytes) - before == peak_of_order(graph, np.array(order))


def test_memory_is_given_back_without_the_garbage_collector():
    """An op that writes in place must leave nothing behind: its tensors are freed when their last reader is done."""
    net, x = nn.Linear(4, 4), torch.randn(3, 4)
    program = executable(net, x, optimizer="adam")
    given = contents(program, net, x)
    gc.collect()
    gc.disable()
    try:
        outputs = program.run(range(program.graph.num_ops), given)
        assert gc.collect() == 0
    finally:
        gc.enable()
    assert outputs


def test_an_order_that_reads_what_is_not_there():
    net, x = nn.Sequential(nn.Linear(4, 2), nn.Tanh()), torch.randn(3, 4)
    program = executable(net, x, train=False)
    given = contents(program, net, x)
    with pytest.raises(InvalidSolutionError, match="op 1 reads tensor 3, which is not there"):
        program.run([1, 0], given)
    (result,) = program.run([0, 1], given).values()
    assert torch.allclose(result, net(x))
