"""What from_torch records, against torch itself: another tracer, and real tensors."""

import gc
from collections import Counter
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.func import functional_call, functionalize, grad_and_value
from torch.fx.experimental.proxy_tensor import make_fx
from torch.profiler import ProfilerActivity, profile
from torch.utils._python_dispatch import TorchDispatchMode

from opgym.graphs import VARIABLE, Graph, peak_of_order
from opgym.graphs.readers import from_torch
from opgym.graphs.readers.torch.schemas import traits_of


class Convolutions(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, padding=1, bias=False)
        self.grouped = nn.Conv2d(8, 8, 3, padding=1, groups=4)
        self.up = nn.ConvTranspose2d(8, 4, 2, stride=2)
        self.head = nn.Linear(4, 5)

    def forward(self, x):
        y = F.leaky_relu(self.stem(x))
        y = F.max_pool2d(torch.cat([y, y * 2], 1)[:, ::2] + self.grouped(y), 2)
        return self.head(self.up(y).mean((2, 3)))


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(11, 4)
        self.cell = nn.LSTMCell(4, 6)
        self.output = nn.Linear(6, 11)

    def forward(self, ids):
        h = c = torch.zeros(ids.shape[0], 6)
        losses = []
        for t in range(ids.shape[1] - 1):
            h, c = self.cell(self.embedding(ids[:, t]), (h, c))
            losses.append(F.cross_entropy(self.output(h), ids[:, t + 1]))
        return torch.stack(losses).mean()


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(8)
        self.project = nn.Linear(8, 24)
        self.mix = nn.Linear(8, 8)

    def forward(self, x):
        q, k, v = (
            part.unflatten(-1, (2, 4)).transpose(1, 2) for part in self.project(self.norm(x)).chunk(3, -1)
        )
        weights = torch.softmax(q @ k.mT / 2, -1)
        values, _ = torch.topk(weights @ v, 3, dim=-1)
        return (
            x
            + self.mix(F.gelu(F.scaled_dot_product_attention(q, k, v)).transpose(1, 2).flatten(2))
            * values.mean()
        )


CASES = [
    pytest.param(Convolutions, lambda: torch.randn(2, 3, 8, 8), id="convolutions"),
    pytest.param(Recurrent, lambda: torch.randint(11, (3, 5)), id="recurrent"),
    pytest.param(Attention, lambda: torch.randn(2, 5, 8), id="attention"),
]


def by_make_fx(module: nn.Module, x: torch.Tensor) -> Counter[str]:
    """Kinds of ops that do work in the graph that make_fx gives of loss and gradients.

    torch.func differentiates so that it could do so again, for which some operators (group_norm, silu) have no
    fused gradient; the modules here use none of them.
    """
    mode = FakeTensorMode()
    parameters = {name: mode.from_tensor(p.detach()) for name, p in module.named_parameters()}

    def step(parameters: dict[str, torch.Tensor], x: torch.Tensor) -> Any:
        def loss(parameters: dict[str, torch.Tensor]) -> torch.Tensor:
            result = functional_call(module, parameters, (x,))
            return result if result.dim() == 0 else result.mean()

        return grad_and_value(loss)(parameters)

    with mode:
        traced = make_fx(functionalize(step, remove="mutations"), tracing_mode="fake")(
            parameters, mode.from_tensor(x)
        )
    calls = [node for node in traced.graph.nodes if isinstance(node.target, torch._ops.OpOverload)]
    return Counter(
        traits_of(node.target).kind for node in calls if traits_of(node.target).view_of is None and node.users
    )


def by_us(graph: Graph) -> Counter[str]:
    return Counter(graph.kind(v) for v in range(graph.num_ops) if graph.kind(v) != VARIABLE)


@pytest.mark.parametrize(("module", "example"), CASES)
def test_the_ops_are_those_that_make_fx_finds(module, example):
    net, x = module(), example()
    assert by_us(from_torch(net, x, optimizer=None).graph) == by_make_fx(net, x)


class AliasCheck(TorchDispatchMode):
    """Compares what schemas say about views and writes with what real tensors do."""

    def __init__(self) -> None:
        super().__init__()
        self.views = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        traits = traits_of(func)
        inputs = list(tensors((args, kwargs or {})))
        before = {id(t): t._version for t in inputs}
        result = func(*args, **(kwargs or {}))
        held = {t.untyped_storage().data_ptr() for t in inputs if t.numel()}
        for output in tensors(result):
            shares = output.untyped_storage().data_ptr() in held
            if output.numel():
                assert shares == (traits.view_of is not None or bool(traits.written)), func
            self.views += shares
        written = [t for i in traits.written for t in tensors(args[i])] if traits.written else []
        for t in inputs:
            if t._version != before[id(t)]:
                assert any(t is w for w in written) or traits.renames, func
        return result


def tensors(value: Any) -> list[torch.Tensor]:
    return [leaf for leaf in torch.utils._pytree.tree_leaves(value) if isinstance(leaf, torch.Tensor)]


@pytest.mark.parametrize(("module", "example"), CASES)
def test_views_share_memory_and_nothing_else_does(module, example):
    net, x = module(), example()
    with AliasCheck() as check:
        result = net(x)
        (result if result.dim() == 0 else result.mean()).backward()
        with torch.no_grad():
            for parameter in net.parameters():
                parameter.add_(parameter.grad, alpha=-0.1)
    assert check.views > 10


def eager_peak_bytes(module: nn.Module, x: torch.Tensor) -> int:
    """Most bytes that torch holds at once, beyond what it held before, in a step with plain SGD."""

    def step() -> torch.Tensor:
        result = module(x)
        loss = result if result.dim() == 0 else result.mean()
        parameters = list(module.parameters())
        gradients = torch.autograd.grad(loss, parameters)
        with torch.no_grad():
            for parameter, gradient in zip(parameters, gradients, strict=True):
                parameter.add_(gradient, alpha=-1e-3)
        return loss

    step()  # what is made once and kept is no part of a step
    gc.collect()
    gc.disable()
    try:
        with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
            loss = step()
    finally:
        gc.enable()
    assert loss.isfinite()
    events = [e for e in profiler.profiler.kineto_results.events() if e.name() == "[memory]"]
    held = np.cumsum([e.nbytes() for e in sorted(events, key=lambda e: e.start_ns())])
    return int(held.max())


@pytest.mark.parametrize(
    ("module", "example"),
    [
        pytest.param(Convolutions, lambda: torch.randn(8, 3, 64, 64), id="convolutions"),
        pytest.param(Recurrent, lambda: torch.randint(11, (64, 20)), id="recurrent"),
        pytest.param(Attention, lambda: torch.randn(16, 64, 8), id="attention"),
    ],
)
def test_the_peak_in_program_order_is_what_torch_allocates(module, example):
    net, x = module(), example()
    graph = from_torch(net, x).graph
    ours, real = int(peak_of_order(graph, np.arange(graph.num_ops))), eager_peak_bytes(net, x)
    # Torch also holds the workspace of a kernel for a while; and it adds up gradients in place where it may.
    assert 0.95 * real <= ours <= 1.01 * real
