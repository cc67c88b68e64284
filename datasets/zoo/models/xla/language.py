"""Models of token sequences in JAX: transformers, mixtures of experts, recurrent networks, dilated convolutions."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from ...registry import definition
from .late import jnp, lax, nn
from .net import Net, cross_entropy
from .program import Entry, ids, programs, token_programs

if TYPE_CHECKING:
    from jax import Array


def _told(logits: Array, targets: Array | None) -> Array:
    return logits if targets is None else cross_entropy(logits, targets)


def bert(
    net: Net, text: Array, targets: Array | None = None, *, layers: int, width: int, vocabulary: int
) -> Array:
    """Normalisation after each half of a layer; words are told from the table that they were read from."""
    table = net.weight("embedding", vocabulary, width)
    x = net.layer_norm(table[text] + net.weight("positions", 512, width)[: text.shape[1]])
    for _ in range(layers):
        with net.scope("layer"):
            x = net.layer_norm(x + net.attention(x, width // 64))
            x = net.layer_norm(x + net.perceptron(x, 4 * width))
    x = net.layer_norm(nn.gelu(net.dense(x, width)))
    return _told(x @ table.T + net.weight("bias", vocabulary), targets)


def gpt2(
    net: Net, text: Array, targets: Array | None = None, *, layers: int, width: int, vocabulary: int
) -> Array:
    """Causal attention, normalisation before each half of a layer."""
    table = net.weight("embedding", vocabulary, width)
    x = table[text] + net.weight("positions", 1024, width)[: text.shape[1]]
    for _ in range(layers):
        with net.scope("layer"):
            x = x + net.attention(net.layer_norm(x), width // 64, causal=True)
            x = x + net.perceptron(net.layer_norm(x), 4 * width)
    return _told(net.layer_norm(x) @ table.T, targets)


def transformer(
    net: Net,
    source: Array,
    shifted: Array,
    targets: Array | None = None,
    *,
    layers: int,
    width: int,
    vocabulary: int,
) -> Array:
    """Encoder and decoder with sinusoids as positions and one table for all words."""
    table = net.weight("embedding", vocabulary, width)

    def embedded(text: Array) -> Array:
        place = jnp.arange(text.shape[1], dtype=jnp.float32)[:, None]
        angle = place * jnp.exp(jnp.arange(0, width, 2) * (-math.log(10_000.0) / width))
        return table[text] * math.sqrt(width) + jnp.concatenate([jnp.sin(angle), jnp.cos(angle)], -1)

    x = embedded(source)
    for _ in range(layers):
        with net.scope("encoder"):
            x = net.layer_norm(x + net.attention(x, width // 64))
            x = net.layer_norm(x + net.perceptron(x, 4 * width, nn.relu))
    y = embedded(shifted)
    for _ in range(layers):
        with net.scope("decoder"):
            y = net.layer_norm(y + net.attention(y, width // 64, causal=True))
            y = net.layer_norm(y + net.attention(y, width // 64, context=x))
            y = net.layer_norm(y + net.perceptron(y, 4 * width, nn.relu))
    return _told(y @ table.T, targets)


def _relative_buckets(queries: int, keys: int, *, both_ways: bool) -> Array:
    """T5's 32 buckets of distances: exact ones near by, then wider and wider ones up to 128."""
    distance = jnp.arange(keys)[None, :] - jnp.arange(queries)[:, None]
    buckets = 16 if both_ways else 32
    offset = jnp.where(distance > 0, buckets, 0) if both_ways else 0
    distance = jnp.abs(distance) if both_ways else jnp.maximum(-distance, 0)
    exact = buckets // 2
    scale = (buckets - exact) / math.log(128 / exact)
    far = exact + (jnp.log(jnp.maximum(distance, 1) / exact) * scale).astype(jnp.int32)
    return offset + jnp.where(distance < exact, distance, jnp.minimum(far, buckets - 1))


def t5(
    net: Net,
    source: Array,
    shifted: Array,
    targets: Array | None = None,
    *,
    layers: int,
    width: int,
    vocabulary: int,
) -> Array:
    """Encoder and decoder without biases, whose scores know how far words are apart."""
    table, heads = net.weight("embedding", vocabulary, width), width // 64

    def relative(length: int, *, both_ways: bool) -> Array:
        rows = net.weight("relative_bias", 32, heads)
        return rows[_relative_buckets(length, length, both_ways=both_ways)].transpose(2, 0, 1)

    x = table[source]
    with net.shared("encoder"):
        near = relative(source.shape[1], both_ways=True)
        for _ in range(layers):
            with net.scope("block"):
                x = x + net.attention(net.rms_norm(x), heads, scores_bias=near, bias=False)
                x = x + net.perceptron(net.rms_norm(x), 4 * width, nn.relu, bias=False)
        x = net.rms_norm(x)
    y = table[shifted]
    with net.shared("decoder"):
        near = relative(shifted.shape[1], both_ways=False)
        for _ in range(layers):
            with net.scope("block"):
                y = y + net.attention(net.rms_norm(y), heads, causal=True, scores_bias=near, bias=False)
                y = y + net.attention(net.rms_norm(y), heads, context=x, bias=False)
                y = y + net.perceptron(net.rms_norm(y), 4 * width, nn.relu, bias=False)
        y = net.rms_norm(y)
    return _told(y @ table.T / math.sqrt(width), targets)


def _switch(net: Net, x: Array, experts: int, hidden: int) -> Array:
    """Sends each token to one expert, as far as that has room for a quarter more than its share."""
    width = x.shape[-1]
    tokens = x.reshape(-1, width)
    room = 5 * len(tokens) // (4 * experts)
    with net.scope("experts"):
        shares = nn.softmax(net.dense(tokens, experts, bias=False))
        chosen = nn.one_hot(shares.argmax(-1), experts)
        place = (jnp.cumsum(chosen, 0) * chosen).astype(jnp.int32) - 1
        sent = nn.one_hot(place, room)  # nothing where the place is outside
        given = jnp.einsum("tec,td->ecd", sent, tokens)
        inner = nn.relu(given @ net.weight("kernel_in", experts, width, hidden))
        answers = inner @ net.weight("kernel_out", experts, hidden, width)
        mixed = jnp.einsum("tec,te,ecd->td", sent, shares, answers)
    return mixed.reshape(x.shape)


def switch_transformer(
    net: Net,
    text: Array,
    targets: Array | None = None,
    *,
    layers: int,
    width: int,
    experts: int,
    vocabulary: int,
) -> Array:
    """A causal transformer with experts in each second layer."""
    table = net.weight("embedding", vocabulary, width)
    x = table[text] + net.weight("positions", text.shape[1], width)
    for layer in range(layers):
        with net.scope("layer"):
            x = x + net.attention(net.layer_norm(x), width // 64, causal=True)
            y = net.layer_norm(x)
            x = x + (
                _switch(net, y, experts, 4 * width) if layer % 2 else net.perceptron(y, 4 * width, nn.relu)
            )
    return _told(net.layer_norm(x) @ table.T, targets)


def lstm_model(
    net: Net, text: Array, targets: Array | None = None, *, layers: int, width: int, vocabulary: int
) -> Array:
    """Layers of an LSTM, unrolled."""
    steps = list(jnp.moveaxis(net.embed(text, vocabulary, width), 1, 0))
    for layer in range(layers):
        hidden = memory = jnp.zeros((len(text), width))
        for index, x in enumerate(steps):
            with net.shared(f"lstm_{layer}"):
                hidden, memory = net.lstm(x, hidden, memory)
            steps[index] = hidden
    return _told(net.dense(jnp.stack(steps, 1), vocabulary), targets)


def gru_model(
    net: Net, text: Array, targets: Array | None = None, *, layers: int, width: int, vocabulary: int
) -> Array:
    """Gated recurrent layers, unrolled."""
    steps = list(jnp.moveaxis(net.embed(text, vocabulary, width), 1, 0))
    for layer in range(layers):
        hidden = jnp.zeros((len(text), width))
        for index, x in enumerate(steps):
            with net.shared(f"gru_{layer}"):
                hidden = net.gru(x, hidden)
            steps[index] = hidden
    return _told(net.dense(jnp.stack(steps, 1), vocabulary), targets)


def recurrence(keep: Array, add: Array) -> Array:
    """States of ``state = keep * state + add`` along the second axis, from zero, by a scan of logarithmic depth."""

    def joined(before: tuple[Array, Array], after: tuple[Array, Array]) -> tuple[Array, Array]:
        return before[0] * after[0], before[1] * after[0] + after[1]

    states: Array = lax.associative_scan(joined, (keep, add), axis=1)[1]
    return states


def minimal_gru(
    net: Net, text: Array, targets: Array | None = None, *, layers: int, width: int, vocabulary: int
) -> Array:
    """Recurrences that are linear in their state, each as a parallel scan."""

    x = net.embed(text, vocabulary, width)
    for _ in range(layers):
        with net.scope("layer"):
            y = net.layer_norm(x)
            gate, fresh = nn.sigmoid(net.dense(y, width)), net.dense(y, width)
            x = x + recurrence(1 - gate, gate * fresh)
            x = x + net.perceptron(net.layer_norm(x), 4 * width)
    return _told(net.dense(net.layer_norm(x), vocabulary), targets)


def wavenet(
    net: Net,
    samples: Array,
    targets: Array | None = None,
    *,
    stacks: int,
    layers: int,
    channels: int,
    levels: int,
) -> Array:
    """Dilated causal convolutions with gates; every layer adds to what the head reads."""

    def causal(x: Array, features: int, dilation: int) -> Array:
        return net.conv(
            jnp.pad(x, ((0, 0), (dilation, 0), (0, 0))), features, 2, dilation=dilation, padding="VALID"
        )

    x = causal(net.embed(samples, levels, channels), channels, 1)
    skips: Array = jnp.zeros_like(x)
    for layer in range(stacks * layers):
        with net.scope("layer"):
            content, gate = jnp.split(causal(x, 2 * channels, 2 ** (layer % layers)), 2, -1)
            y = jnp.tanh(content) * nn.sigmoid(gate)
            skips = skips + net.conv(y, channels, 1)
            x = x + net.conv(y, channels, 1)
    return _told(net.conv(nn.relu(net.conv(nn.relu(skips), channels, 1)), levels, 1), targets)


@definition(family="bert", source="jax", licence="Apache-2.0")
def berts() -> Iterator[Entry]:
    """Devlin et al. 2019, "BERT: pre-training of deep bidirectional transformers": base; dropout left out."""
    yield from token_programs(
        "bert-base", partial(bert, layers=12, width=768), batch=16, length=128, vocabulary=30_522,
        layers=12, width=768,
    )  # fmt: skip


@definition(family="gpt2", source="jax", licence="Apache-2.0")
def gpts() -> Iterator[Entry]:
    """Radford et al. 2019, "Language models are unsupervised multitask learners": GPT-2 small; dropout left out."""
    yield from token_programs(
        "gpt2-small", partial(gpt2, layers=12, width=768), batch=8, length=512, vocabulary=50_257,
        layers=12, width=768,
    )  # fmt: skip


@definition(family="transformer", source="jax", licence="Apache-2.0")
def transformers() -> Iterator[Entry]:
    """Vaswani et al. 2017, "Attention is all you need": base; dropout left out."""
    yield from programs(
        "transformer-base", partial(transformer, layers=6, width=512, vocabulary=32_000),
        inputs=(ids(32, 64), ids(32, 64)), targets=(ids(32, 64),), batch=32, optimizer="adam",
        layers=6, width=512, length=64, vocabulary=32_000,
    )  # fmt: skip


@definition(family="t5", source="jax", licence="Apache-2.0")
def t5s() -> Iterator[Entry]:
    """Raffel et al. 2020, "Exploring the limits of transfer learning with a unified text-to-text transformer": small,
    with scaled scores; dropout left out.
    """
    yield from programs(
        "t5-small", partial(t5, layers=6, width=512, vocabulary=32_128),
        inputs=(ids(16, 128), ids(16, 128)), targets=(ids(16, 128),), batch=16, optimizer="adam",
        layers=6, width=512, length=128, vocabulary=32_128,
    )  # fmt: skip


@definition(family="switch-transformer", source="jax", licence="Apache-2.0")
def mixtures_of_experts() -> Iterator[Entry]:
    """Fedus et al. 2022, "Switch Transformers": 8 experts in each second of 8 layers; no balancing loss."""
    yield from token_programs(
        "switch-8l-8e", partial(switch_transformer, layers=8, width=512, experts=8), batch=8, length=128,
        vocabulary=32_000, layers=8, width=512, experts=8,
    )  # fmt: skip


@definition(family="rnnlm", source="jax", licence="Apache-2.0")
def lstm_models() -> Iterator[Entry]:
    """Zaremba et al. 2014, "Recurrent neural network regularization": the medium model, 20 words at a time; dropout
    left out.
    """
    yield from token_programs(
        "lstm-lm-2l", partial(lstm_model, layers=2, width=650), batch=20, length=20, vocabulary=10_000,
        optimizer="sgd", layers=2, width=650,
    )  # fmt: skip


@definition(family="gru-lm", source="jax", licence="Apache-2.0")
def gru_models() -> Iterator[Entry]:
    """Cho et al. 2014, "Learning phrase representations using RNN encoder-decoder": its units as a language model."""
    yield from token_programs(
        "gru-lm-1l", partial(gru_model, layers=1, width=512), batch=32, length=24, vocabulary=10_000,
        layers=1, width=512,
    )  # fmt: skip


@definition(family="min-gru", source="jax", licence="Apache-2.0")
def minimal_grus() -> Iterator[Entry]:
    """Feng et al. 2024, "Were RNNs all we needed?": minimal gated units, trained by parallel scans."""
    yield from token_programs(
        "min-gru-4l", partial(minimal_gru, layers=4, width=384), batch=16, length=256, vocabulary=256,
        layers=4, width=384,
    )  # fmt: skip


@definition(family="wavenet", source="jax", licence="Apache-2.0")
def wavenets() -> Iterator[Entry]:
    """Van den Oord et al. 2016, "WaveNet: a generative model for raw audio": 2 stacks of 9 layers."""
    yield from programs(
        "wavenet-2x9", partial(wavenet, stacks=2, layers=9, channels=64, levels=256),
        inputs=(ids(4, 2048),), targets=(ids(4, 2048),), batch=4, optimizer="adam",
        stacks=2, layers=9, channels=64, samples=2048, levels=256,
    )  # fmt: skip
