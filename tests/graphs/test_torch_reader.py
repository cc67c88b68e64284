"""Graphs of small modules whose ops, tensors and peaks are worked out by hand."""

import subprocess
import sys

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint

from opgym.errors import ImportFailedError, UnknownIdError
from opgym.graphs import DIRECTIONS, ROLES, VARIABLE, Graph, peak_of_order
from opgym.graphs.readers import from_torch


def kinds(graph: Graph, direction: str | None = None) -> list[str]:
    """Kinds of all ops but variables, in program order."""
    wanted = range(len(DIRECTIONS)) if direction is None else [DIRECTIONS.index(direction)]
    return [
        graph.kind(v)
        for v in range(graph.num_ops)
        if graph.op_direction[v] in wanted and graph.kind(v) != VARIABLE
    ]


def ops_of(graph: Graph, kind: str) -> list[int]:
    return [v for v in range(graph.num_ops) if graph.kind(v) == kind]


def named(graph: Graph, name: str) -> int:
    """The tensor of a name."""
    return graph.tensor_names.index(name)


class Perceptron(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 8)
        self.second = nn.Linear(8, 2, bias=False)

    def forward(self, x):
        return self.second(F.relu(self.first(x)))


def test_inference_of_a_perceptron():
    imported = from_torch(Perceptron(), torch.zeros(3, 4), train=False)
    graph = imported.graph
    assert (graph.level, graph.name) == ("aten-infer", "Perceptron")
    assert kinds(graph) == ["addmm", "relu", "mm"]
    assert graph.layers == ("first", "second")
    assert [graph.layers[i] if i >= 0 else None for i in graph.op_layer] == ["first", None, "second"]
    # Parameters have no producer; t() of a weight is another name of it.
    roles = {graph.tensor_names[t]: ROLES[graph.tensor_role[t]] for t in range(4)}
    assert roles == {
        "x": "input",
        "first.bias": "parameter",
        "first.weight": "parameter",
        "second.weight": "parameter",
    }
    assert (graph.tensor_producer[:4] == -1).all()
    assert graph.op_flops.tolist() == [2 * 3 * 4 * 8 + 24, 24, 2 * 3 * 8 * 2]
    size = {"x": 48, "hidden": 96, "first.weight": 128, "first.bias": 32, "second.weight": 64, "y": 24}
    assert graph.op_accessed_bytes.tolist() == [48 + 128 + 32 + 96, 96 + 96, 96 + 64 + 24]
    assert graph.tensor_bytes[4:].tolist() == [size["hidden"], size["hidden"], size["y"]]
    assert np.flatnonzero(graph.tensor_is_output).tolist() == [6]
    assert graph.op_elementwise.tolist() == [False, True, False]
    assert peak_of_order(graph, np.arange(3)) == 96 + 96
    assert imported.report.folded == {"t": 2}
    assert imported.report.format == "torch"


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


def test_a_layer_ends_at_its_first_numbered_module():
    module = nn.Sequential()
    module.encoder = nn.Sequential(nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4)), nn.Linear(4, 4))
    module.head = nn.Linear(4, 2)
    graph = from_torch(module, torch.zeros(1, 4), train=False).graph
    assert graph.layers == ("encoder.0", "encoder.1", "head")
    assert graph.op_names[0] == "encoder.0.0.addmm"


def test_views_and_parts_share_a_storage():
    class Parts(nn.Module):
        def forward(self, x):
            a, b = x.exp().chunk(2, dim=1)
            return (a.reshape(-1) * b.transpose(0, 1).reshape(-1)).view(2, 3)

    imported = from_torch(Parts(), torch.zeros(2, 6), train=False)
    graph = imported.graph
    # A reshape that has to move elements is a clone; chunk, view and transpose are none.
    assert kinds(graph) == ["exp", "clone", "clone", "mul"]
    exp = graph.outputs(0)[0]
    assert graph.consumers(exp).tolist() == [1, 2]
    # Each clone reads its half of the 48 bytes and writes 24.
    assert graph.op_accessed_bytes.tolist() == [96, 24 + 24, 24 + 24, 3 * 24]
    assert graph.tensor_is_output.tolist() == [False] * 4 + [True]
    assert imported.report.folded["_unsafe_view"] + imported.report.folded["view"] >= 2


def test_ops_with_several_outputs():
    class Best(nn.Module):
        def forward(self, x):
            values, indices = torch.topk(x, 2, dim=1)
            mean, _ = x.max(dim=1)
            return values.sum(), indices, mean

    graph = from_torch(Best(), torch.zeros(4, 10), train=False).graph
    assert kinds(graph) == ["topk", "max", "sum"]
    topk, largest = graph.outputs(0), graph.outputs(1)
    assert [graph.dtype(t) for t in topk] == ["float32", "int64"]
    assert graph.tensor_bytes[list(topk)].tolist() == [4 * 2 * 4, 4 * 2 * 8]
    assert graph.tensor_is_output[list(topk)].tolist() == [False, True]
    assert graph.tensor_is_output[list(largest)].tolist() == [True, False]


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
    # Reads the row and what is there already; touches one row of it.
    assert set(graph.inputs(write)) == {graph.outputs(homes["keys"])[0], named(graph, "x")}
    assert graph.tensor_bytes[graph.outputs(write)[0]] == 128
    assert graph.op_accessed_bytes[write] == 16 + 16 + 16
    total = ops_of(graph, "sum")[0]
    assert graph.inputs(total).tolist() == [graph.outputs(write)[0]]
    assert module.keys.device.type == "cpu"
    assert module.last.shape == (4,)


def test_writing_in_place_makes_a_new_tensor():
    class InPlace(nn.Module):
        def forward(self, x):
            y = torch.empty(4, 4)
            y.zero_()
            y[1] = x
            return torch.relu_(y)

    imported = from_torch(InPlace(), torch.zeros(4), train=False)
    graph = imported.graph
    # Nobody needs what empty() gives; a write to a part needs the rest.
    assert kinds(graph) == ["zero", "copy", "relu"]
    assert graph.inputs(0).tolist() == []
    assert set(graph.inputs(1)) == {named(graph, "x"), graph.outputs(0)[0]}
    assert imported.report.folded["empty"] == 1


def test_tensors_of_a_shape_do_not_keep_what_they_are_like():
    class Like(nn.Module):
        def forward(self, x):
            return torch.zeros_like(x.exp()) + x.new_ones(2)

    graph = from_torch(Like(), torch.zeros(2), train=False).graph
    assert kinds(graph) == ["zeros_like", "new_ones", "add"]


def test_grouped_convolutions():
    class Grouped(nn.Module):
        def __init__(self):
            super().__init__()
            self.depthwise = nn.Conv2d(6, 6, 3, padding=1, groups=6, bias=False)
            self.point = nn.Conv2d(6, 4, 1)

        def forward(self, x):
            return self.point(self.depthwise(x))

    graph = from_torch(Grouped(), torch.zeros(2, 6, 5, 5)).graph
    depthwise, point = ops_of(graph, "convolution")
    out = 2 * 6 * 25
    assert graph.op_flops[depthwise] == 2 * out * 9
    assert graph.op_flops[point] == 2 * (2 * 4 * 25) * 6 + 2 * 4 * 25
    to_point, to_depthwise = ops_of(graph, "convolution_backward")
    assert graph.op_flops[to_point] == 2 * 2 * (2 * 4 * 25) * 6 + 2 * 4 * 25
    # The input needs no gradient.
    assert graph.op_flops[to_depthwise] == 2 * out * 9
    assert [graph.layers[graph.op_layer[v]] for v in (to_point, to_depthwise)] == ["point", "depthwise"]
    # Results that were not asked for are none.
    assert len(graph.outputs(to_point)) == 3
    assert len(graph.outputs(to_depthwise)) == 1


def test_an_unrolled_cell():
    class Unrolled(nn.Module):
        def __init__(self):
            super().__init__()
            self.cell = nn.LSTMCell(4, 8)
            self.steps = 3

        def forward(self, x):
            h = c = x.new_zeros(2, 8)
            for t in range(self.steps):
                h, c = self.cell(x[:, t], (h, c))
            return h

    graph = from_torch(Unrolled(), torch.zeros(2, 3, 4)).graph
    forward = kinds(graph, "forward")
    # Per step: two products with their biases, and one sum of both; three sigmoids and two tanh; the state.
    assert forward.count("addmm") == 6
    assert forward.count("sigmoid") == 9
    assert forward.count("tanh") == 6
    assert forward.count("mul") == 9
    assert forward.count("add") == 6
    # The weights are used three times: two sums of gradients each.
    assert kinds(graph, "backward").count("add") >= 4 * 2
    assert kinds(graph, "update") == ["add"] * 4
    assert set(graph.layers) == {"cell"}


def test_the_layers_of_torch_are_recorded_in_portable_operators():
    lstm = from_torch(nn.LSTM(4, 8, num_layers=2), torch.zeros(3, 2, 4)).graph
    assert not any("mkldnn" in kind for kind in lstm.kinds)
    assert kinds(lstm, "forward").count("sigmoid") == 2 * 3 * 3
    block = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    graph = from_torch(block, torch.zeros(2, 5, 8), train=False).graph
    assert "_scaled_dot_product_flash_attention_for_cpu" in graph.kinds
    assert "_transformer_encoder_layer_fwd" not in graph.kinds


def test_dropout_in_training_and_at_inference():
    module = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.1))
    graph = from_torch(module, torch.zeros(2, 4)).graph
    dropout = ops_of(graph, "native_dropout")[0]
    assert [graph.dtype(t) for t in graph.outputs(dropout)] == ["float32", "bool"]
    assert kinds(graph, "backward").count("native_dropout_backward") == 1
    assert kinds(from_torch(module, torch.zeros(2, 4), train=False).graph) == ["addmm"]


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


def test_inputs_of_any_nesting_by_name_and_by_position():
    class Nested(nn.Module):
        def forward(self, x, states, *, scale, mask=None):
            h, c = states["h"], states["rest"][0]
            return x * scale + h + c if mask is None else x

    example = {
        "x": torch.zeros(2),
        "states": {"h": torch.zeros(2), "rest": (torch.zeros(2), 7)},
        "scale": 2.0,
    }
    graph = from_torch(Nested(), example, train=False).graph
    assert [graph.tensor_names[t] for t in range(3)] == ["x", "states.h", "states.rest.0"]
    assert kinds(graph) == ["mul", "add", "add"]


def test_batch_replaces_the_first_dimension():
    class Pair(nn.Module):
        def forward(self, x, y, table):
            return x.sum() + y.sum() + table.sum()

    example = (torch.zeros(2, 3), torch.zeros(2), torch.zeros(5, 4))
    graph = from_torch(Pair(), example, train=False, batch=7).graph
    assert [graph.shape(t) for t in range(3)] == [(7, 3), (7,), (5, 4)]


def test_where_the_tensors_live_does_not_matter_and_the_module_is_left_as_it_was():
    real = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.LSTM(4, 3)).eval()

    class First(nn.Module):
        def __init__(self, inner):
            super().__init__()
            self.inner = inner
            self.table = torch.ones(3)

        def forward(self, x):
            return self.inner(x)[0] * self.table

    module = First(real)
    before = {k: (id(v), v.clone()) for k, v in module.state_dict(keep_vars=True).items()}
    graph = from_torch(module, torch.zeros(5, 4)).graph
    with torch.device("meta"):
        elsewhere = First(nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.LSTM(4, 3)))
        x = torch.zeros(5, 4)
    assert from_torch(elsewhere, x).graph == graph
    for key, value in module.state_dict(keep_vars=True).items():
        assert id(value) == before[key][0]
        assert torch.equal(value, before[key][1])
    assert not any(m.training for m in real.modules())
    assert all(type(p) is nn.Parameter for p in module.parameters())
    assert module(torch.zeros(5, 4)).shape == (5, 3)
    assert ROLES[graph.tensor_role[named(graph, "table")]] == "constant"


def test_the_default_loss_is_the_mean_of_each_real_output():
    class Several(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(4, 4)

        def forward(self, x):
            y = self.linear(x)
            return {"y": y, "best": y.argmax(), "loss": y.sum()}

    imported = from_torch(Several(), torch.zeros(2, 4))
    assert kinds(imported.graph, "forward") == ["addmm", "sum", "mean", "add"]
    assert any("mean of each real output" in note for note in imported.report.notes)


SCRIPT = """
import torch
from torch import nn
from opgym.graphs.readers import from_torch
block = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
print(from_torch(block, torch.zeros(2, 5, 8), optimizer="adam").graph.fingerprint)
"""


def test_twice_and_in_two_processes_the_same_bytes():
    block = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    first = from_torch(block, torch.zeros(2, 5, 8), optimizer="adam").graph
    second = from_torch(block, torch.ones(2, 5, 8), optimizer="adam").graph
    assert first.fingerprint == second.fingerprint
    assert first.op_names == second.op_names
    other = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    assert other.stdout.strip() == first.fingerprint


class Branching(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x):
        y = self.linear(x)
        return y if y.sum() > 0 else -y


class Picking(nn.Module):
    def forward(self, x):
        return x[x > 0].sum()


class Whole(nn.Module):
    def forward(self, x):
        return (x * 2).long()


class Wrong(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(5, 4)

    def forward(self, x):
        return self.linear(x)


@pytest.mark.parametrize(
    ("module", "options", "words"),
    [
        (Branching(), {}, ["Branching", "value of a tensor", "line", "test_torch_reader.py"]),
        (Picking(), {"train": False}, ["depends on values", "where"]),
        (Whole(), {}, ["no tensor of real numbers", "loss=", "train=False"]),
        (Wrong(), {}, ["'linear'", "addmm", "RuntimeError"]),
        (nn.ReLU(), {}, ["no parameter requires a gradient", "train=False"]),
        (nn.Identity(), {"train": False}, ["nothing to decide"]),
        (nn.LazyLinear(3), {}, ["lazy", "call it once"]),
        (nn.Linear(4, 4), {"loss": lambda y: y}, ["float32[2, 4]", "one real number"]),
        (nn.Linear(4, 4), {"loss": lambda y: y.detach().sum()}, ["does not depend on any parameter"]),
        (nn.Linear(4, 4), {"loss": lambda y: y.sum(), "train": False}, ["no loss"]),
        (nn.Linear(4, 4), {"batch": 0}, ["batch=0", "1 or more"]),
    ],
)
def test_errors_that_teach(module, options, words):
    with pytest.raises(ImportFailedError) as caught:
        from_torch(module, torch.zeros(2, 4), **options)
    for word in words:
        assert word in str(caught.value), str(caught.value)


def test_wrong_arguments():
    with pytest.raises(UnknownIdError, match="did you mean adam"):
        from_torch(nn.Linear(4, 4), torch.zeros(2, 4), optimizer="adamw")
    with pytest.raises(ImportFailedError, match=r"torch\.nn\.Module"):
        from_torch(lambda x: x, torch.zeros(2, 4))
    with pytest.raises(ImportFailedError, match="example inputs are a int"):
        from_torch(nn.Linear(4, 4), 3)
