"""What from_torch takes, what it leaves alone, what it refuses and in which words."""

import subprocess
import sys

import pytest
import torch
from torch import nn

from opgym.errors import ImportFailedError, MissingExtraError, UnknownIdError
from opgym.graphs import ROLES
from opgym.graphs.readers import from_torch

from .torch_graphs import kinds, named


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


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("factor", torch.tensor(3))

    def forward(self, x):
        return x * self.factor.item()


class Elsewhere(nn.Module):
    def __init__(self):
        super().__init__()
        self.tables = [torch.ones(4, device="meta")]

    def forward(self, x):
        return x * self.tables[0]


class Sparse(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(4, 4, sparse=True)

    def forward(self, x):
        return self.embedding(x.long())


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
        (Branching(), {}, ["Branching", "value of a tensor", "line", "test_torch_inputs.py"]),
        (Picking(), {"train": False}, ["depends on values", "where"]),
        (Scaled(), {"train": False}, ["value of a tensor", ".item()", "line"]),
        (Elsewhere(), {"train": False}, ["another device", "buffers"]),
        (Sparse(), {}, ["sparse=False"]),
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


def test_without_torch_the_error_names_the_extra(monkeypatch):
    for name in [n for n in sys.modules if n.startswith("opgym.graphs.readers.torch")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtraError, match=r"opgym\[zoo\]"):
        from_torch(nn.Linear(4, 4), torch.zeros(2, 4))
