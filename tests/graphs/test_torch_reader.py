"""Graphs of small modules whose ops, tensors and peaks are worked out by hand."""

import numpy as np
import torch
from torch import nn

from opgym.graphs import ROLES, peak_of_order
from opgym.graphs.readers import from_torch

from .torch_graphs import Perceptron, kinds, named, ops_of


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


def test_writing_to_a_given_output():
    class Given(nn.Module):
        def forward(self, x):
            y, z = torch.zeros(2, 4), torch.zeros(4)
            torch.exp(x, out=z)
            torch.neg(x, out=y[1])
            return y, z

    graph = from_torch(Given(), torch.zeros(4), train=False).graph
    # What was in z is not needed; one row of y stays.
    assert kinds(graph) == ["zeros", "exp", "neg"]
    exp, neg = 1, 2
    assert graph.inputs(exp).tolist() == [named(graph, "x")]
    assert set(graph.inputs(neg)) == {named(graph, "x"), graph.outputs(0)[0]}
    assert graph.op_accessed_bytes[[exp, neg]].tolist() == [16 + 16, 16 + 16]
    assert [graph.tensor_bytes[graph.outputs(v)[0]] for v in (exp, neg)] == [16, 32]


def test_a_tensor_that_is_given_the_storage_of_another():
    class Set(nn.Module):
        def forward(self, x):
            y = torch.zeros(4)
            y.set_(x.exp())
            return y.sin()

    graph = from_torch(Set(), torch.zeros(4), train=False).graph
    assert kinds(graph) == ["exp", "sin"]


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


def test_forward_under_inference_mode_is_recorded_op_by_op():
    class Decorated(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(4, 4)

        @torch.inference_mode()
        def forward(self, x):
            return self.linear(x).reshape(-1).to(torch.float64)

    assert kinds(from_torch(Decorated(), torch.zeros(3, 4), train=False).graph) == ["addmm", "_to_copy"]
