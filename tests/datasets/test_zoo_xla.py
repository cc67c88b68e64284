"""Definitions in JAX that XLA compiles: the table, small programs beside JAX itself, networks beside their formulas."""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
from collections import Counter
from functools import cache, partial
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from opgym.cli.app import app
from opgym.datasets.zoo.models.xla import generative, language, science, vision
from opgym.datasets.zoo.models.xla.net import Net, cross_entropy
from opgym.datasets.zoo.models.xla.program import COMPILER_OPTIONS, Program, ids, programs, reals
from opgym.datasets.zoo.registry import MODELS, variants
from opgym.graphs import peak_of_order, save
from opgym.graphs.graph import ROLES
from opgym.graphs.readers import Imported
from opgym.graphs.readers.hlo import read_hlo_text

jax = pytest.importorskip("jax", reason="compiles with XLA: pip install jax")
jnp = jax.numpy

PACKAGE = f"{MODELS}.xla"
VARIANTS = variants(PACKAGE)
#: Families that the zoo has from here alone.
OWN_FAMILIES = {
    "mlp", "lenet", "min-gru", "vae", "gns", "pinn", "shallow-water", "molecular-dynamics", "gaussian-mixture",
    "k-means", "conjugate-gradient", "sinkhorn", "maml", "hamiltonian-monte-carlo", "kalman-filter",
}  # fmt: skip


def noise(*shape: int, seed: int = 0) -> Any:
    return jnp.asarray(np.random.default_rng(seed).standard_normal(shape, np.float32))


def words(below: int, *shape: int, seed: int = 0) -> Any:
    return jnp.asarray(np.random.default_rng(seed).integers(below, size=shape, dtype=np.int32))


def seeded(network: Any, *data: Any) -> dict[str, Any]:
    """Small random weights of a network for given inputs, by path."""
    net = Net(None, {}, train=False)
    jax.eval_shape(lambda *arrays: network(net, *arrays), *data)
    return {path: 0.3 * noise(*shape, seed=i) for i, (path, shape) in enumerate(net.shapes.items())}


def ran(network: Any, weights: dict[str, Any], *data: Any) -> Any:
    # In one program: op by op, XLA would compile each of them by itself, which takes longer.
    return jax.jit(lambda weights, *data: network(Net(weights, {}, train=False), *data))(weights, *data)


def small(network: Any, mode: str = "train", **options: Any) -> Program:
    return next(programs("small", network, batch=2, modes=(mode,), **options))[1]  # type: ignore[arg-type]


PERCEPTRON = small(
    partial(vision.mlp, depth=3, classes=5), inputs=(reals(8, 6, 6, 3),), targets=(ids(8),), optimizer="adam"
)


@cache
def compiled(program: Program) -> tuple[Imported, str, Any]:
    """The graph, the text that it is from, and what JAX knows of the program."""
    executable = program.lowered().compile(dict(COMPILER_OPTIONS))
    text = executable.as_text()
    return read_hlo_text(text, strict=True), text, executable.cost_analysis()


def test_definitions_are_listed_without_jax_and_torch():
    code = (
        "import sys\nfrom opgym.datasets.zoo.registry import variants\n"
        f"assert len(variants({PACKAGE!r})) == {len(VARIANTS)}\n"
        "assert not {'jax', 'jaxlib', 'torch'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_every_graph_says_where_it_is_from_and_how_it_is_made():
    for name, variant in VARIANTS.items():
        assert (variant.definition.source, variant.definition.licence) == ("jax", "Apache-2.0")
        assert re.fullmatch(r"xla-.+-(train|infer)", name)
        assert name == variant.build.name
        assert re.search(r"\b(19|20)\d\d\b", variant.definition.reference), name
        assert json.loads(json.dumps(variant.configuration)) == dict(variant.configuration)
        assert variant.configuration["batch"] >= 1
        assert ("optimizer" in variant.configuration) == name.endswith("-train")
    families = Counter(variant.definition.family for variant in VARIANTS.values())
    assert len(families) >= 35
    assert max(families.values()) <= 4


def test_families_are_those_of_the_same_architecture_elsewhere():
    pytest.importorskip("torch")
    elsewhere = {
        v.definition.family
        for v in variants().values()
        if not v.definition.function.__module__.startswith(PACKAGE)
    }
    assert {v.definition.family for v in VARIANTS.values()} - elsewhere <= OWN_FAMILIES


@pytest.mark.parametrize("mode", ["train", "infer"])
def test_order_of_the_graph_is_xlas_schedule(mode):
    program = PERCEPTRON if mode == "train" else small(PERCEPTRON.network, "infer", inputs=PERCEPTRON.inputs)
    imported, text, _ = compiled(program)
    assert text.splitlines()[0].count("is_scheduled=true") == 1
    entry = text[text.index("\nENTRY ") :]
    scheduled = re.findall(
        r"^  (?:ROOT )?%([\w.\-]+) = (?:\(.*?\)|\S+) ([a-z][a-z\-]*)\(", entry, re.MULTILINE
    )
    unworked = {"parameter", "constant", "bitcast", "tuple", "get-tuple-element"}
    assert [name for name, opcode in scheduled if opcode not in unworked] == list(imported.graph.op_names)
    assert Counter(opcode for _, opcode in scheduled if opcode in unworked) == imported.report.folded
    assert imported.graph.level == "hlo"
    assert "the order of the instructions is XLA's own schedule" in imported.report.notes


def test_parameters_outputs_and_flops_are_those_of_jax():
    graph, cost = PERCEPTRON().graph, compiled(PERCEPTRON)[2]
    assert graph == compiled(PERCEPTRON)[0].graph
    weights, statistics, state, data = PERCEPTRON.arguments()
    layers = [(108, 1024), (1024, 1024), (1024, 1024), (1024, 5)]
    assert sum(math.prod(w.shape) for w in weights.values()) == sum((i + 1) * o for i, o in layers)
    assert statistics == {}
    kept = jax.tree.leaves([weights, state])
    assert graph.tensor_bytes[graph.tensor_role == ROLES.index("parameter")].sum() == sum(
        leaf.size * leaf.dtype.itemsize for leaf in kept
    )
    results = jax.eval_shape(PERCEPTRON.step, weights, statistics, state, data)
    outputs = np.flatnonzero(graph.tensor_is_output)
    assert Counter(graph.shape(t) for t in outputs) == Counter(
        leaf.shape for leaf in jax.tree.leaves(results)
    )
    assert int(graph.op_flops.sum()) == pytest.approx(cost["flops"], rel=0.02)


def test_batch_statistics_are_state_and_convolutions_cost_what_xla_says():
    program = small(
        partial(vision.wide_resnet, depth=10, wider=1, classes=4), inputs=(reals(4, 16, 16, 3),), targets=(ids(4),),
        optimizer="momentum",
    )  # fmt: skip
    weights, statistics, state, data = program.arguments()
    assert len(statistics) == 2 * sum(path.endswith("scale") for path in weights)
    value, _, updated, _ = jax.eval_shape(program.step, weights, statistics, state, data)
    assert value.shape == ()
    assert updated == statistics
    imported, _, cost = compiled(program)
    graph = imported.graph
    held = graph.tensor_bytes[graph.tensor_role == ROLES.index("parameter")].sum()
    assert held == sum(4 * leaf.size for leaf in jax.tree.leaves([weights, statistics, state]))
    # XLA does not count products with padding, which are a good part of 3 x 3 windows over 4 x 4 pixels.
    assert 1 <= int(graph.op_flops.sum()) / cost["flops"] < 1.3


def test_schedule_shows_xlas_order_and_the_graph_names_no_source(tmp_path):
    graph = compiled(PERCEPTRON)[0].graph
    assert not [name for name in (*graph.op_names, *graph.tensor_names, *graph.layers) if ".py" in name]
    assert {"dense_0", "dense_3", "optimizer"} <= set(graph.layers)
    save(graph, tmp_path / "model.npz")
    arguments = [
        "schedule",
        str(tmp_path / "model.npz"),
        "--solver",
        "program-order",
        "--solver",
        "dfs",
        "--json",
    ]
    shown = CliRunner().invoke(app, arguments)
    assert shown.exit_code == 0, shown.output
    rows = {row["solver"]: row for row in json.loads(shown.stdout)}
    assert rows["program-order"]["value"] == peak_of_order(graph, np.arange(graph.num_ops))


#: Builds a program on the processors that are allowed and prints the sha256 of its file.
_BUILD = """
import hashlib, os, sys
if sys.argv[2] == "one" and hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:1])
from opgym.datasets.zoo.registry import variants
from opgym.graphs.storage import to_bytes
for name in sys.argv[3:]:
    graph = variants(sys.argv[1])[name].build().graph
print(hashlib.sha256(to_bytes(graph)).hexdigest())
"""


@pytest.mark.slow
def test_same_bytes_on_one_processor_and_after_another_program():
    def built(processors: str, *names: str) -> str:
        command = [sys.executable, "-c", _BUILD, PACKAGE, processors, *names]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    assert built("all", "xla-resnet-18-train") == built("one", "xla-lenet-5-train", "xla-resnet-18-train")


#: Parameters in thousands, as the papers or their authors' published models have them.
PUBLISHED = {
    "xla-bert-base-infer": 109_514,
    "xla-convnext-tiny-infer": 28_589,
    "xla-ddpm-32-infer": 35_746,
    "xla-densenet-121-infer": 7_979,
    "xla-gpt2-small-infer": 124_440,
    "xla-lenet-5-train": 62.006,  # of grey images 61.706
    "xla-mlp-mixer-base-infer": 59_880,
    "xla-mobilenet-v1-infer": 4_232,
    "xla-mobilenet-v2-infer": 3_505,
    "xla-resnet-18-infer": 11_690,
    "xla-resnet-v2-50-infer": 25_549,
    "xla-t5-small-infer": 60_507,
    "xla-vit-base-infer": 86_568,
    "xla-wide-resnet-28-10-infer": 36_479,
}


@pytest.mark.parametrize(("name", "thousands"), PUBLISHED.items())
def test_parameters_are_as_published(name, thousands):
    weights = VARIANTS[name].build.arguments()[0]
    count = sum(math.prod(weight.shape) for weight in weights.values())
    assert count / 1000 == pytest.approx(thousands, rel=1e-3)


@pytest.mark.parametrize(
    "network",
    [
        partial(language.gpt2, layers=1, width=64),
        partial(language.lstm_model, layers=2, width=8),
        partial(language.gru_model, layers=1, width=8),
        partial(language.minimal_gru, layers=2, width=8),
    ],
    ids=["gpt2", "lstm", "gru", "minimal-gru"],
)
def test_language_models_do_not_see_later_words(network):
    network = partial(network, vocabulary=11)
    text = words(11, 2, 6)
    other = text.at[:, 4:].set((text[:, 4:] + 1) % 11)
    weights = seeded(network, text)
    jitted = jax.jit(partial(ran, network))
    before, after = jitted(weights, text), jitted(weights, other)
    assert before.shape == (2, 6, 11)
    np.testing.assert_allclose(before[:, :4], after[:, :4], rtol=1e-4, atol=1e-5)
    assert not np.allclose(before[:, 4:], after[:, 4:])


@pytest.mark.slow
def test_wavenet_sees_its_receptive_field():
    network = partial(language.wavenet, stacks=1, layers=3, channels=4, levels=5)
    samples = words(5, 1, 20)
    other = samples.at[0, 10].set((samples[0, 10] + 1) % 5)
    weights = seeded(network, samples)
    weights = {path: w + path.endswith("bias") for path, w in weights.items()}  # so that every ReLU is open
    changed = (ran(network, weights, samples) != ran(network, weights, other)).any(-1)[0]
    # The first convolution and dilations 1, 2 and 4 reach 1 + 1 + 2 + 4 samples ahead.
    assert np.flatnonzero(changed).tolist() == list(range(10, 19))


def test_parallel_scan_equals_the_recurrence():
    keep, add = jax.nn.sigmoid(noise(2, 9, 3)), noise(2, 9, 3, seed=1)
    state, states = np.zeros((2, 3)), []
    for step in range(9):
        state = np.asarray(keep[:, step]) * state + np.asarray(add[:, step])
        states.append(state)
    np.testing.assert_allclose(jax.jit(language.recurrence)(keep, add), np.stack(states, 1), atol=1e-5)


def test_relative_buckets_are_those_of_t5():
    causal = np.asarray(language._relative_buckets(300, 300, both_ways=False))
    assert causal[5].tolist()[:7] == [5, 4, 3, 2, 1, 0, 0]
    assert causal[16, 0] == 16
    assert causal[299, 0] == 31
    both = np.asarray(language._relative_buckets(300, 300, both_ways=True))
    assert (both[0, 1], both[1, 0], both[0, 299], both[299, 0]) == (17, 1, 31, 15)


def test_experts_are_the_chosen_ones_while_they_have_room():
    def network(net: Net, x: Any) -> Any:
        return language._switch(net, x, 2, 6)

    x = noise(1, 8, 4)
    weights = seeded(network, x)
    found = ran(network, weights, x)[0]
    router = next(w for path, w in weights.items() if "dense" in path)
    inner, outer = (next(w for path, w in weights.items() if path.endswith(end)) for end in ("_in", "_out"))
    room = {0: 5, 1: 5}
    for token, row in zip(x[0], found, strict=True):
        shares = jax.nn.softmax(token @ router)
        expert = int(shares.argmax())
        room[expert] -= 1
        expected = shares[expert] * (jax.nn.relu(token @ inner[expert]) @ outer[expert])
        np.testing.assert_allclose(row, expected if room[expert] >= 0 else 0 * expected, atol=1e-5)


@pytest.mark.slow
def test_adversaries_learn_from_their_own_losses():
    network = generative.adversarial_networks
    noises, images = noise(2, 100), noise(2, 64, 64, 3)
    net = Net(None, {}, train=True)
    jax.eval_shape(lambda *data: network(net, *data), noises, images)
    weights = {path: 0.05 * noise(*shape, seed=i) for i, (path, shape) in enumerate(net.shapes.items())}
    statistics = {path: jnp.zeros(shape) for path, shape in net.statistic_shapes.items()}

    def loss(given: dict[str, Any], pictures: Any) -> Any:
        return network(Net(given, statistics, train=True), noises, pictures)

    gradient, other = (jax.grad(loss)(weights, pictures) for pictures in (images, 2 * images))
    for path in ("generator.dense_0.kernel", "generator.conv_transpose_3.kernel"):
        assert np.abs(gradient[path]).max() > 0
        np.testing.assert_array_equal(gradient[path], other[path])  # true images are nothing to the generator
    scale = "generator.conv_transpose_3.bias"
    moved = {**weights, scale: weights[scale] + 0.1}
    assert not np.array_equal(jax.grad(loss)(moved, images)["discriminator.conv_0.bias"],
                              gradient["discriminator.conv_0.bias"])  # fmt: skip


@pytest.mark.slow
def test_flow_gives_the_determinant_of_its_jacobian():
    network = partial(generative.flow, couplings=3, width=8)
    x = noise(1, 4)
    weights = seeded(network, x)
    jacobian = jax.jacobian(lambda row: ran(network, weights, row[None])[0][0])(x[0])
    determinant = ran(network, weights, x)[1][0]
    np.testing.assert_allclose(determinant, np.linalg.slogdet(jacobian)[1], rtol=1e-4)


def test_physics_informed_loss_is_that_of_finite_differences():
    network = partial(science.burgers, layers=1, width=4)
    points, start = jax.nn.sigmoid(noise(3, 2)), noise(5)
    weights = seeded(network, points, start)

    def solution(time: float, place: float) -> float:
        x = jnp.tanh(
            jnp.stack([time, place]) @ weights["solution.dense_0.kernel"] + weights["solution.dense_0.bias"]
        )
        return float((x @ weights["solution.dense_1.kernel"] + weights["solution.dense_1.bias"])[0])

    step, total = 3e-2, 0.0
    for time, place in points.tolist():
        here, left, right = (solution(time, place + d) for d in (0, -step, step))
        by_time = (solution(time + step, place) - solution(time - step, place)) / (2 * step)
        bend = (left - 2 * here + right) / step**2
        total += (by_time + here * (right - left) / (2 * step) - 0.01 / math.pi * bend) ** 2 / 3
    begun = np.mean([(solution(0.0, p) + math.sin(math.pi * p)) ** 2 for p in start.tolist()])
    assert float(ran(network, weights, points, start)) == pytest.approx(total + begun, rel=1e-2)


def test_waves_keep_their_water():
    height = 0.05 * noise(8, 8)
    with jax.disable_jit():  # XLA takes far longer to optimise this one
        h, u, v = ran(partial(science.shallow_water, steps=5), {}, height)
    assert float(h.sum()) == pytest.approx(float(height.sum()), abs=1e-4)
    assert np.abs(u).max() > 1e-3
    assert np.abs(v).max() > 1e-3


@pytest.mark.slow
def test_atoms_keep_their_energy_and_momentum():
    grid = np.stack(np.meshgrid(*[np.arange(3) * 1.2] * 3), -1).reshape(-1, 3)
    x, v = jnp.asarray(grid, jnp.float32), 0.1 * noise(27, 3)
    weights = {"parameters_size": jnp.float32(1), "parameters_depth": jnp.float32(1)}
    after, velocity = ran(partial(science.molecular_dynamics, steps=20), weights, x, v)

    def energy(x: Any, v: Any) -> float:
        apart = x[:, None] - x[None]
        squared = np.asarray((apart**2).sum(-1))[np.triu_indices(27, 1)].astype(np.float64)
        return float((4 * (squared**-6 - squared**-3)).sum() + (np.asarray(v) ** 2).sum() / 2)

    assert energy(after, velocity) == pytest.approx(energy(x, v), rel=1e-3)
    np.testing.assert_allclose(velocity.sum(0), v.sum(0), atol=1e-3)
    assert np.abs(after - x).max() > 1e-3


@pytest.mark.slow
def test_mixtures_and_means_find_two_clusters():
    points = jnp.concatenate([noise(200, 2) * 0.1 + 1, noise(100, 2, seed=1) * 0.1 - 1])
    begin = jnp.asarray([[0.3, 0.1], [-0.3, -0.1]])
    means, nearest = ran(partial(science.k_means, steps=4), {}, points, begin)
    np.testing.assert_allclose(means, [points[:200].mean(0), points[200:].mean(0)], atol=1e-5)
    assert nearest.tolist() == [0] * 200 + [1] * 100
    weight, means, variance = ran(partial(science.gaussian_mixture, steps=20), {}, points, begin)
    np.testing.assert_allclose(weight, [2 / 3, 1 / 3], atol=1e-3)
    np.testing.assert_allclose(means, [points[:200].mean(0), points[200:].mean(0)], atol=1e-3)
    np.testing.assert_allclose(variance, [points[:200].var(0), points[200:].var(0)], atol=1e-3)


def test_conjugate_gradients_solve():
    right = noise(4, 4)
    weights = {"parameters_field": jnp.zeros((4, 4))}
    found = ran(partial(science.conjugate_gradient, steps=12), weights, right)
    around = sum(jnp.roll(found, way, axis) for axis in (0, 1) for way in (-1, 1))
    np.testing.assert_allclose(4.1 * found - around, right, atol=1e-4)


@pytest.mark.slow
def test_transport_has_its_marginals():
    network = partial(science.sinkhorn, targets=3, steps=30)
    points = 0.3 * noise(5, 2)
    plan = jax.jit(partial(ran, network))(seeded(network, points), points)
    np.testing.assert_allclose(plan.sum(0), [1 / 3] * 3, rtol=1e-3)
    np.testing.assert_allclose(plan.sum(1), [1 / 5] * 5, rtol=1e-2)


def test_filter_equals_the_joint_gaussian():
    seen, moves = noise(4), 0.5 * noise(2, 2)
    means, spread = ran(partial(science.kalman_filter, width=2), {"parameters_transition": moves}, seen)
    # All states and observations are one Gaussian; the last state given all observations follows from it.
    a = np.asarray(moves, np.float64)
    states = [a @ a.T + 0.1 * np.eye(2)]
    for _ in range(3):
        states.append(a @ states[-1] @ a.T + 0.1 * np.eye(2))
    cross = [(np.linalg.matrix_power(a, 3 - i) @ states[i])[:, 0] for i in range(4)]
    joint = np.array(
        [
            [(np.linalg.matrix_power(a, abs(i - j)) @ states[min(i, j)])[0, 0] for j in range(4)]
            for i in range(4)
        ]
    )
    gain = np.linalg.solve(joint + 0.5 * np.eye(4), np.stack(cross)).T
    np.testing.assert_allclose(means[-1], gain @ np.asarray(seen), atol=1e-5)
    np.testing.assert_allclose(spread, states[-1] - gain @ np.stack(cross), atol=1e-5)


@pytest.mark.slow
def test_attention_over_edges_equals_dense_attention():
    network = partial(science.graph_attention, layers=1, heads=2, width=3, classes=3)
    nodes, senders, receivers = noise(4, 5), jnp.asarray([0, 1, 2, 3, 0, 2]), jnp.asarray([0, 1, 2, 3, 1, 1])
    weights = seeded(network, nodes, senders, receivers)
    found = ran(network, weights, nodes, senders, receivers)
    y = (nodes @ weights["layer_0.dense_0.kernel"]).reshape(4, 2, 3)
    to, source = ((y * weights[f"layer_0.kernel_{end}"]).sum(-1) for end in ("to", "from"))
    score = jax.nn.leaky_relu(to[:, None] + source[None])
    linked = jnp.zeros((4, 4), bool).at[receivers, senders].set(True)
    share = jax.nn.softmax(jnp.where(linked[..., None], score, -jnp.inf), axis=1)
    np.testing.assert_allclose(found, jnp.einsum("rsh,shf->rhf", share, y).mean(1), atol=1e-5)


def test_cross_entropy_of_even_odds():
    assert float(cross_entropy(jnp.zeros((3, 4)), words(4, 3))) == pytest.approx(math.log(4))
