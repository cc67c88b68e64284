"""Layers that make their own weights, for networks that are functions of a :class:`Net` and their inputs."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from .late import jax, jnp, lax, nn

if TYPE_CHECKING:
    from jax import Array

_EPSILON = 1e-5
_MOMENTUM = 0.9
#: Sizes of the two axes of images.
Pair = int | tuple[int, int]


class Net:
    """Where a network's layers find their weights.

    A network runs first without weights and tells by what it asks for which there are; then it runs with them.
    Scopes name weights and, through the names that JAX leaves in its programs, the layers of the graph.

    Args:
        weights: By path, e.g. ``block_3.dense_0.kernel``; ``None`` in the first run.
        statistics: Running means and variances by path.
        train: Normalise by the batch's own statistics and update the running ones.

    Attributes:
        shapes: Of the weights that were asked for.
        statistic_shapes: Of the running statistics that were asked for.
        updated: New values of the running statistics, in training.
    """

    def __init__(
        self, weights: Mapping[str, Array] | None, statistics: Mapping[str, Array], *, train: bool
    ) -> None:
        self.train = train
        self.shapes: dict[str, tuple[int, ...]] = {}
        self.statistic_shapes: dict[str, tuple[int, ...]] = {}
        self.updated: dict[str, Array] = {}
        self._weights = weights
        self._statistics = statistics
        self._frozen = False
        self._path: list[str] = []
        self._numbers: list[Counter[str]] = [Counter()]

    @contextmanager
    def shared(self, name: str) -> Iterator[None]:
        """A scope of that very name: whoever enters it again finds the same weights."""
        self._path.append(name)
        self._numbers.append(Counter())
        try:
            with jax.named_scope(name):
                yield
        finally:
            self._path.pop()
            self._numbers.pop()

    @contextmanager
    def scope(self, name: str) -> Iterator[None]:
        """A new scope, numbered among those of that name beside it."""
        number = self._numbers[-1][name]
        self._numbers[-1][name] += 1
        with self.shared(f"{name}_{number}"):
            yield

    def weight(self, name: str, *shape: int) -> Array:
        """A weight of the scope."""
        path = ".".join((*self._path, name))
        self.shapes[path] = shape
        if self._weights is None:
            return jnp.zeros(shape)
        found = self._weights[path]
        return lax.stop_gradient(found) if self._frozen else found

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """No gradient reaches the weights that are asked for here, and no running statistic changes."""
        self._frozen = True
        try:
            yield
        finally:
            self._frozen = False

    def dense(self, x: Array, features: int, *, bias: bool = True) -> Array:
        """A linear layer over the last axis."""
        with self.scope("dense"):
            y = x @ self.weight("kernel", x.shape[-1], features)
            return y + self.weight("bias", features) if bias else y

    def embed(self, ids: Array, vocabulary: int, features: int) -> Array:
        """Rows of a table."""
        with self.scope("embed"):
            return self.weight("embedding", vocabulary, features)[ids]

    def conv(
        self,
        x: Array,
        features: int,
        kernel: Pair = 3,
        *,
        stride: int = 1,
        groups: int = 1,
        dilation: int = 1,
        padding: str = "SAME",
        bias: bool = True,
    ) -> Array:
        """A convolution over two axes of images, or over one of sequences ``[batch, steps, channels]``."""
        axes = x.ndim - 2
        window = (kernel,) * axes if isinstance(kernel, int) else kernel
        layout = ("NHWC", "HWIO", "NHWC") if axes == 2 else ("NWC", "WIO", "NWC")
        with self.scope("conv"):
            weight = self.weight("kernel", *window, x.shape[-1] // groups, features)
            y = lax.conv_general_dilated(
                x, weight, (stride,) * axes, padding, rhs_dilation=(dilation,) * axes,
                dimension_numbers=layout, feature_group_count=groups,
            )  # fmt: skip
            return y + self.weight("bias", features) if bias else y

    def conv_transpose(self, x: Array, features: int, kernel: int = 4, *, stride: int = 2) -> Array:
        """A transposed convolution of images, which enlarges them by its stride."""
        with self.scope("conv_transpose"):
            weight = self.weight("kernel", kernel, kernel, x.shape[-1], features)
            y = lax.conv_transpose(
                x, weight, (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
            )
            return y + self.weight("bias", features)

    def batch_norm(self, x: Array) -> Array:
        """Normalises each channel over the batch."""
        width = x.shape[-1]
        axes = tuple(range(x.ndim - 1))
        with self.scope("norm"):
            mean, variance = self._statistic("mean", width), self._statistic("variance", width)
            if self.train:
                seen = x.mean(axes), x.var(axes)
                self._update("mean", mean, seen[0])
                self._update("variance", variance, seen[1])
                mean, variance = seen
            return self._affine((x - mean) * lax.rsqrt(variance + _EPSILON))

    def layer_norm(self, x: Array) -> Array:
        """Normalises each position over its channels."""
        with self.scope("norm"):
            variance = x.var(-1, keepdims=True)
            return self._affine((x - x.mean(-1, keepdims=True)) * lax.rsqrt(variance + _EPSILON))

    def rms_norm(self, x: Array) -> Array:
        """Scales each position to the same mean square."""
        with self.scope("norm"):
            scale = lax.rsqrt((x * x).mean(-1, keepdims=True) + _EPSILON)
            return x * scale * self.weight("scale", x.shape[-1])

    def group_norm(self, x: Array, groups: int = 8) -> Array:
        """Normalises groups of channels over the places of an image."""
        with self.scope("norm"):
            grouped = x.reshape(x.shape[0], -1, groups, x.shape[-1] // groups)
            mean = grouped.mean((1, 3), keepdims=True)
            variance = grouped.var((1, 3), keepdims=True)
            return self._affine(((grouped - mean) * lax.rsqrt(variance + _EPSILON)).reshape(x.shape))

    def attention(
        self,
        x: Array,
        heads: int,
        *,
        context: Array | None = None,
        causal: bool = False,
        scores_bias: Array | None = None,
        bias: bool = True,
    ) -> Array:
        """Attention of ``heads`` heads over ``x``, or over ``context``; ``bias`` is that of its linear layers."""
        width = x.shape[-1]
        source = x if context is None else context

        def split(values: Array) -> Array:
            return values.reshape(*values.shape[:2], heads, width // heads)

        with self.scope("attention"):
            query, key, value = (split(self.dense(of, width, bias=bias)) for of in (x, source, source))
            scores = jnp.einsum("bqhd,bkhd->bhqk", query, key) / math.sqrt(width // heads)
            if scores_bias is not None:
                scores = scores + scores_bias
            if causal:
                seen = jnp.tril(jnp.ones((x.shape[1], source.shape[1]), bool))
                scores = jnp.where(seen, scores, -1e9)
            mixed = jnp.einsum("bhqk,bkhd->bqhd", nn.softmax(scores), value)
            return self.dense(mixed.reshape(x.shape), width, bias=bias)

    def perceptron(
        self,
        x: Array,
        hidden: int,
        activation: Callable[[Array], Array] | None = None,
        *,
        bias: bool = True,
    ) -> Array:
        """Two linear layers that come back to the width of ``x``; between them GELU, if nothing else is told."""
        with self.scope("mlp"):
            y = (activation or nn.gelu)(self.dense(x, hidden, bias=bias))
            return self.dense(y, x.shape[-1], bias=bias)

    def lstm(self, x: Array, hidden: Array, memory: Array) -> tuple[Array, Array]:
        """One step of an LSTM: the new state and memory."""
        gates = self.dense(jnp.concatenate([x, hidden], -1), 4 * hidden.shape[-1])
        write, forget, content, show = jnp.split(gates, 4, -1)
        memory = nn.sigmoid(forget) * memory + nn.sigmoid(write) * jnp.tanh(content)
        return nn.sigmoid(show) * jnp.tanh(memory), memory

    def gru(self, x: Array, hidden: Array) -> Array:
        """One step of a gated recurrent unit: the new state."""
        width = hidden.shape[-1]
        update, reset, content = jnp.split(self.dense(x, 3 * width), 3, -1)
        kept_update, kept_reset, kept = jnp.split(self.dense(hidden, 3 * width), 3, -1)
        gate = nn.sigmoid(update + kept_update)
        fresh = jnp.tanh(content + nn.sigmoid(reset + kept_reset) * kept)
        return (1 - gate) * fresh + gate * hidden

    def _affine(self, x: Array) -> Array:
        return x * self.weight("scale", x.shape[-1]) + self.weight("bias", x.shape[-1])

    def _statistic(self, name: str, width: int) -> Array:
        path = ".".join((*self._path, name))
        self.statistic_shapes[path] = (width,)
        return jnp.zeros(width) if self._weights is None else self._statistics[path]

    def _update(self, name: str, old: Array, seen: Array) -> None:
        if self._frozen:
            return
        path = ".".join((*self._path, name))  # a layer that runs twice updates what it has updated
        self.updated[path] = _MOMENTUM * self.updated.get(path, old) + (1 - _MOMENTUM) * seen


def max_pool(x: Array, size: int = 2, stride: int = 2) -> Array:
    """Maxima of square windows of images."""
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, size, size, 1), (1, stride, stride, 1), "SAME")


def mean_pool(x: Array, size: int = 2) -> Array:
    """Means of adjoining squares of images."""
    batch, height, width, channels = x.shape
    return x.reshape(batch, height // size, size, width // size, size, channels).mean((2, 4))


def enlarged(x: Array, times: int = 2) -> Array:
    """Images with each pixel repeated."""
    return jnp.repeat(jnp.repeat(x, times, 1), times, 2)


def cross_entropy(logits: Array, labels: Array) -> Array:
    """Mean negative logarithm of the probability of the labels."""
    log = nn.log_softmax(logits)
    return -jnp.take_along_axis(log, labels[..., None], -1).mean()


def squared_error(x: Array, targets: Array) -> Array:
    """Mean squared difference."""
    return ((x - targets) ** 2).mean()
