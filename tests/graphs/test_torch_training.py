"""Training graphs of small modules: gradients, updates, and states with a home."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint

from opgym.graphs import DIRECTIONS, ROLES, VARIABLE, Cluster, Simulator, peak_of_order
from opgym.graphs.readers import from_torch

from .torch_graphs import Perceptron, kinds, named, ops_of


def test_training_a_linear_layer_with_sgd():
    module = nn.Linear(4, 2)
    graph = from_torch(module, torch.zeros(3, 4), loss=lambda y: y.sum()).graph
    assert graph.level == "aten-train"
    # Gradient of the sum: ones, expanded to [3, 2] without bytes. The bias gets its sum over the batch.
    assert kinds(graph, "forward") == ["addmm", "sum"]
    assert kinds(graph, "backward") == ["ones_like", "mm", "sum"]
    assert kinds(graph, "update") == ["add", "add"]
    weight, bias = graph.tensor_producer[named(graph, "weight")], graph.tensor_producer[named(graph, "bias")]
    assert graph.is_variable[[weight, bias]].all()
    updates = ops_of(graph, "add")
    assert graph.op_update_of[updates].tolist() == [weight, bias]
    assert graph.op_group[updates].tolist() == graph.op_group[[weight, bias]].tolist()
    assert graph.op_group[weight] != graph.op_group[bias]
    # Multiply by the rate and add: 2 flops per element; reads the parameter and its gradient, writes it.
    assert graph.op_flops[updates].tolist() == [2 * 8, 2 * 2]
    assert graph.op_accessed_bytes[updates].tolist() == [3 * 32, 3 * 8]
    # Outputs: the loss and the new parameters.
    outputs = np.flatnonzero(graph.tensor_is_output)
    producers = graph.tensor_producer[outputs].tolist()
    assert producers == [ops_of(graph, "sum")[0], *updates]
    # What runs: y (24), loss (4), its gradient (4), those of weight (32) and bias (8); updates cost nothing.
    # Live at the last gradient: loss, gradient of the loss, both others.
    run = [v for v in range(graph.num_ops) if not graph.is_variable[v]]
    assert run == sorted(run)
    assert peak_of_order(graph, np.arange(graph.num_ops)) == 4 + 4 + 32 + 8


def test_adam_keeps_two_moments_at_the_parameter():
    graph = from_torch(nn.Linear(4, 2, bias=False), torch.zeros(3, 4), optimizer="adam").graph
    home = ops_of(graph, VARIABLE)
    assert len(home) == 1
    assert [graph.tensor_names[t] for t in graph.outputs(home[0])] == [
        "weight",
        "weight.exp_avg",
        "weight.exp_avg_sq",
    ]
    assert graph.tensor_bytes[list(graph.outputs(home[0]))].tolist() == [32, 32, 32]
    update = [v for v in range(graph.num_ops) if DIRECTIONS[graph.op_direction[v]] == "update"]
    assert [graph.kind(v) for v in update] == ["lerp", "mul", "addcmul", "sqrt", "div", "add", "addcdiv"]
    assert (graph.op_group[update] == graph.op_group[home[0]]).all()
    in_place = [graph.kind(v) for v in update if graph.op_update_of[v] == home[0]]
    assert in_place == ["lerp", "mul", "addcmul", "addcdiv"]
    assert (graph.op_update_of[[v for v in update if graph.kind(v) in ("sqrt", "div", "add")]] == -1).all()
    # Only what is left in the three storages survives, not what was there in between.
    survivors = [graph.kind(graph.tensor_producer[t]) for t in np.flatnonzero(graph.tensor_is_output)]
    assert sorted(survivors) == ["addcdiv", "addcmul", "lerp", "mean"]


class Names(TorchDispatchMode):
    """Kinds of the operators that torch executes."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.seen.append(func._schema.name.removeprefix("aten::").rstrip("_"))
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize(("optimizer", "real"), [("sgd", torch.optim.SGD), ("adam", torch.optim.Adam)])
def test_update_rules_are_those_of_torch(optimizer, real):
    weight = nn.Parameter(torch.ones(3))
    weight.grad = torch.ones(3)
    by_torch = real([weight], foreach=False)
    by_torch.step()
    with Names() as names:
        by_torch.step()
    graph = from_torch(nn.Linear(4, 2, bias=False), torch.zeros(3, 4), optimizer=optimizer).graph
    arithmetic = {"lerp", "mul", "addcmul", "sqrt", "div", "add", "addcdiv"}
    ours = kinds(graph, "update")
    seen = [kind for kind in names.seen if kind in arithmetic]
    assert seen[-len(ours) :] == ours
    assert len(seen) - len(ours) == (optimizer == "adam")  # its counter of steps


def test_without_an_optimizer_gradients_are_outputs():
    graph = from_torch(Perceptron(), torch.zeros(3, 4), optimizer=None).graph
    assert "update" not in {DIRECTIONS[d] for d in graph.op_direction}
    outputs = [graph.tensor_names[t] for t in np.flatnonzero(graph.tensor_is_output)]
    assert sorted(n for n in outputs if n) == ["first.bias.grad", "first.weight.grad", "second.weight.grad"]
    assert len(ops_of(graph, VARIABLE)) == 3


def test_backward_ops_have_the_layer_of_the_op_whose_gradient_they_compute():
    graph = from_torch(Perceptron(), torch.zeros(3, 4)).graph
    layers = [graph.layers[i] if i >= 0 else None for i in graph.op_layer]
    backward = [
        (graph.kind(v), layers[v])
        for v in range(graph.num_ops)
        if DIRECTIONS[graph.op_direction[v]] == "backward"
    ]
    assert backward == [
        ("ones_like", None),
        ("div", None),
        ("mm", "second"),
        ("mm", "second"),
        ("threshold_backward", None),
        ("mm", "first"),
        ("sum", "first"),
    ]
    updates = {layers[v] for v in range(graph.num_ops) if DIRECTIONS[graph.op_direction[v]] == "update"}
    assert updates == {"first", "second"}


def test_a_tied_weight_has_one_home_and_the_sum_of_its_gradients():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(10, 4)
            self.output = nn.Linear(4, 10, bias=False)
            self.output.weight = self.embedding.weight

        def forward(self, ids):
            return self.output(self.embedding(ids))

    module = Tied()
    graph = from_torch(module, torch.zeros(2, 3, dtype=torch.long)).graph
    home = ops_of(graph, VARIABLE)
    assert [graph.op_names[v] for v in home] == ["embedding.weight"]
    weight = graph.outputs(home[0])[0]
    assert graph.tensor_bytes[weight] == 160
    assert {graph.kind(v) for v in graph.consumers(weight)} == {"embedding", "mm", "add"}
    assert kinds(graph, "backward").count("embedding_dense_backward") == 1
    assert kinds(graph, "backward").count("add") == 1
    assert kinds(graph, "update") == ["add"]
    assert module.output.weight is module.embedding.weight


def test_batch_normalisation_writes_its_statistics_in_place():
    class Normalised(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = nn.BatchNorm2d(3)

        def forward(self, x):
            return self.norm(x)

    graph = from_torch(Normalised(), torch.zeros(2, 3, 4, 4)).graph
    homes = {graph.op_names[v]: v for v in ops_of(graph, VARIABLE)}
    assert set(homes) == {
        "norm.weight",
        "norm.bias",
        "norm.running_mean",
        "norm.running_var",
        "norm.num_batches_tracked",
    }
    norm = ops_of(graph, "native_batch_norm")[0]
    group = graph.op_group
    assert group[norm] == group[homes["norm.running_mean"]] == group[homes["norm.running_var"]]
    # Result, mean and 1/deviation; the running statistics stay where they are.
    assert graph.tensor_bytes[list(graph.outputs(norm))].tolist() == [2 * 3 * 16 * 4, 12, 12]
    count = next(
        v for v in ops_of(graph, "add") if graph.op_update_of[v] == homes["norm.num_batches_tracked"]
    )
    assert DIRECTIONS[graph.op_direction[count]] == "forward"
    assert group[count] == group[homes["norm.num_batches_tracked"]]
    evaluated = from_torch(Normalised(), torch.zeros(2, 3, 4, 4), train=False).graph
    assert VARIABLE not in evaluated.kinds
    sources = {evaluated.tensor_names[t]: ROLES[evaluated.tensor_role[t]] for t in range(5)}
    assert sources["norm.running_mean"] == "constant"
    assert sources["norm.weight"] == "parameter"


def test_state_that_inference_changes_has_a_home():
    class Cache(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("keys", torch.zeros(8, 4))
            self.register_buffer("last", torch.zeros(4))

        def forward(self, x):
            self.keys[3] = x
            self.last = x.exp()
            return self.keys.sum()

    module = Cache()
    graph = from_torch(module, torch.zeros(4), train=False).graph
    homes = {graph.op_names[v]: v for v in ops_of(graph, VARIABLE)}
    assert set(homes) == {"keys", "last"}
    copies = ops_of(graph, "copy")
    assert sorted(graph.op_update_of[copies].tolist()) == sorted(homes.values())
    write = next(v for v in copies if graph.op_update_of[v] == homes["keys"])
    # Needs what is there already; reads x and writes one row.
    assert set(graph.inputs(write)) == {graph.outputs(homes["keys"])[0], named(graph, "x")}
    assert graph.tensor_bytes[graph.outputs(write)[0]] == 128
    assert graph.op_accessed_bytes[write] == 16 + 16
    total = ops_of(graph, "sum")[0]
    assert graph.inputs(total).tolist() == [graph.outputs(write)[0]]
    assert module.keys.device.type == "cpu"
    assert module.last.shape == (4,)


def test_frozen_and_unused_parameters():
    class Partly(nn.Module):
        def __init__(self):
            super().__init__()
            self.frozen = nn.Linear(4, 4, bias=False).requires_grad_(False)
            self.trained = nn.Linear(4, 4, bias=False)
            self.unused = nn.Linear(4, 4)

        def forward(self, x):
            return self.trained(self.frozen(x))

    imported = from_torch(Partly(), torch.zeros(2, 4))
    graph = imported.graph
    homes = [graph.op_names[v] for v in ops_of(graph, VARIABLE)]
    assert homes == ["frozen.weight", "trained.weight"]
    assert kinds(graph, "update") == ["add"]
    assert any("unused.weight" in note and "no gradient" in note for note in imported.report.notes)
    assert any("unused.bias" in note and "not read" in note for note in imported.report.notes)


class Tripled(torch.autograd.Function):
    """A custom gradient in the old style, which torch.func refuses."""

    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 3


def test_custom_gradients():
    class Custom(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(4, 4)

        def forward(self, x):
            return Tripled.apply(self.linear(x))

    graph = from_torch(Custom(), torch.zeros(2, 4), loss=lambda y: y.sum()).graph
    assert kinds(graph, "forward") == ["addmm", "mul", "sum"]
    assert kinds(graph, "backward") == ["ones_like", "mul", "mm", "sum"]


def test_what_is_recomputed_belongs_to_the_backward_pass():
    class Recomputed(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.Linear(4, 4)
            self.second = nn.Linear(4, 4)

        def forward(self, x):
            return self.second(checkpoint(lambda x: self.first(x).sin(), x, use_reentrant=False))

    graph = from_torch(Recomputed(), torch.zeros(2, 4)).graph
    products = ops_of(graph, "addmm")
    assert [DIRECTIONS[graph.op_direction[v]] for v in products] == ["forward", "forward", "backward"]
    assert [graph.layers[graph.op_layer[v]] for v in products] == ["first", "second", "first"]
    # What the first layer gave is not kept: only its sine and the product made again are.
    assert len(graph.consumers(graph.outputs(products[0])[0])) == 1


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_states_are_resident_at_home_and_updates_cost_no_memory(optimizer):
    module = nn.Sequential(nn.Linear(64, 32, bias=False), nn.Linear(32, 16, bias=False))
    graph = from_torch(module, torch.zeros(8, 64), optimizer=optimizer).graph
    kept = {"sgd": 1, "adam": 3}[optimizer]
    first, second, x = 64 * 32 * 4, 32 * 16 * 4, 8 * 64 * 4
    placement = np.zeros(graph.num_ops, np.int64)
    alone = Simulator(graph, Cluster.parse("2xP100")).run(placement)
    assert alone.resident_bytes.tolist() == [kept * (first + second) + x, 0]
    # The second layer and everything about it on the other device.
    placement[graph.op_layer == graph.layers.index("1")] = 1
    groups = graph.op_group[graph.op_group >= 0]
    assert all(len(set(placement[graph.op_group == g])) == 1 for g in groups)
    split = Simulator(graph, Cluster.parse("2xP100")).run(placement)
    assert split.resident_bytes.tolist() == [kept * first + x, kept * second]
