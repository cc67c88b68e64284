"""With JAX installed: programs that it compiles now, beside what XLA says of them.

``pip install jax && pytest -rP tests/graphs/test_hlo_jax.py`` prints one line per program.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from opgym.graphs import peak_of_order
from opgym.graphs.readers.hlo import read_hlo_text

jax = pytest.importorskip("jax", reason="compares with XLA itself: pip install jax")
jnp = jax.numpy

Program = tuple[Callable[..., Any], list[tuple[int, ...]], tuple[int, ...]]


def _convolve(x: Any, kernel: Any, stride: int = 1, groups: int = 1) -> Any:
    return jax.lax.conv_general_dilated(
        x, kernel, (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"),
        feature_group_count=groups,
    )  # fmt: skip


def _perceptron(weights: list[Any], x: Any) -> Any:
    for weight in weights[:-1]:
        x = jnp.tanh(x @ weight)
    return x @ weights[-1]


def _u_net(weights: list[Any], x: Any) -> Any:
    a = jax.nn.relu(_convolve(x, weights[0]))
    b = jax.nn.relu(_convolve(a, weights[1], stride=2))
    c = jnp.repeat(jnp.repeat(b, 2, axis=1), 2, axis=2)
    return _convolve(jnp.concatenate([a, c], axis=-1), weights[2])


def _separable(weights: list[Any], x: Any) -> Any:
    for depthwise, pointwise in zip(weights[::2], weights[1::2], strict=True):
        x = jax.nn.relu(_convolve(_convolve(x, depthwise, groups=x.shape[-1]), pointwise))
    return x.mean((1, 2))


def _attention(weights: list[Any], x: Any) -> Any:
    for query, key, value, output in zip(*(weights[i::4] for i in range(4)), strict=True):
        scores = jnp.einsum("bqd,bkd->bqk", x @ query, x @ key) / 8
        x = x + jax.nn.softmax(scores) @ (x @ value) @ output
    return x


def _recurrent(weights: list[Any], x: Any) -> Any:
    def cell(state: Any, step: Any) -> tuple[Any, Any]:
        state = jnp.tanh(state @ weights[0] + step @ weights[1])
        return state, state

    return jax.lax.scan(cell, jnp.zeros((x.shape[1], weights[0].shape[0]), x.dtype), x)[1]


PROGRAMS: dict[str, Program] = {
    "perceptron": (_perceptron, [(64, 128), (128, 128), (128, 10)], (32, 64)),
    "u-net": (_u_net, [(3, 3, 3, 16), (3, 3, 16, 32), (3, 3, 48, 3)], (2, 32, 32, 3)),
    "separable": (
        _separable,
        [(3, 3, 1, 16), (1, 1, 16, 32), (3, 3, 1, 32), (1, 1, 32, 10)],
        (2, 16, 16, 16),
    ),
    "attention": (_attention, [(64, 64)] * 8, (2, 32, 64)),
    "recurrent": (_recurrent, [(48, 48), (32, 48)], (20, 4, 32)),
}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("train", [False, True], ids=["forward", "step"])
def test_peak_and_flops_are_near_xlas(name: str, train: bool) -> None:
    forward, weight_shapes, input_shape = PROGRAMS[name]

    def step(weights: list[Any], x: Any) -> Any:
        loss, gradient = jax.value_and_grad(lambda w: (forward(w, x) ** 2).mean())(weights)
        return loss, [w - 0.1 * g for w, g in zip(weights, gradient, strict=True)]

    weights = [jax.ShapeDtypeStruct(shape, jnp.float32) for shape in weight_shapes]
    x = jax.ShapeDtypeStruct(input_shape, jnp.float32)
    lowered = jax.jit(step if train else forward).lower(weights, x)
    compiled = lowered.compile()
    memory, cost = compiled.memory_analysis(), compiled.cost_analysis()
    graph = read_hlo_text(compiled.as_text(), strict=True).graph
    peak = int(peak_of_order(graph, np.arange(graph.num_ops)))
    peak_ratio = peak / (memory.temp_size_in_bytes + memory.output_size_in_bytes)
    flop_ratio = int(graph.op_flops.sum()) / cost["flops"]
    print(f"{name}: {graph.num_ops} ops, peak {peak_ratio:.3f} and flops {flop_ratio:.3f} of XLA's")
    assert 0.85 < peak_ratio < 1.25
    if name == "recurrent":  # XLA counts a turn of a loop once
        flop_ratio /= input_shape[0]
    assert 0.8 < flop_ratio < 1.25  # padding counts here and not there
    unoptimised = read_hlo_text(lowered.as_text(dialect="hlo"), strict=True)
    assert unoptimised.graph.num_ops >= graph.num_ops or name == "recurrent"
    assert all("unknown" not in loop for loop in unoptimised.report.subgraphs)
