"""Programs of science and statistics in JAX: simulations, inference, graphs, derivatives of derivatives."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from ...registry import definition
from .late import jax, jnp, nn
from .net import Net, cross_entropy, squared_error
from .program import Entry, ids, programs, reals

if TYPE_CHECKING:
    from jax import Array


def graph_attention(
    net: Net,
    nodes: Array,
    senders: Array,
    receivers: Array,
    labels: Array | None = None,
    *,
    layers: int,
    heads: int,
    width: int,
    classes: int,
) -> Array:
    """Nodes take from their neighbours in shares that a softmax over each node's edges gives."""
    count = len(nodes)
    x = nodes
    for layer in range(layers):
        features = classes if layer + 1 == layers else width
        with net.scope("layer"):
            y = net.dense(x, heads * features, bias=False).reshape(count, heads, features)
            score = nn.leaky_relu(
                (y * net.weight("kernel_to", heads, features)).sum(-1)[receivers]
                + (y * net.weight("kernel_from", heads, features)).sum(-1)[senders]
            )
            score = jnp.exp(score - jax.ops.segment_max(score, receivers, count)[receivers])
            share = score / jax.ops.segment_sum(score, receivers, count)[receivers]
            y = jax.ops.segment_sum(share[..., None] * y[senders], receivers, count)
            x = y.mean(1) if layer + 1 == layers else nn.elu(y.reshape(count, -1))
    return x if labels is None else cross_entropy(x, labels)


def graph_simulator(
    net: Net,
    nodes: Array,
    edges: Array,
    senders: Array,
    receivers: Array,
    accelerations: Array | None = None,
    *,
    steps: int,
    width: int,
) -> Array:
    """Encodes particles and their relations, passes messages, decodes accelerations."""

    def encoded(x: Array) -> Array:
        return net.layer_norm(net.dense(nn.relu(net.dense(nn.relu(net.dense(x, width)), width)), width))

    x, e = encoded(nodes), encoded(edges)
    for _ in range(steps):
        with net.scope("step"):
            message = encoded(jnp.concatenate([e, x[senders], x[receivers]], -1))
            gathered = jax.ops.segment_sum(message, receivers, len(x))
            e, x = e + message, x + encoded(jnp.concatenate([x, gathered], -1))
    found = net.dense(nn.relu(net.dense(x, width)), 2)
    return found if accelerations is None else squared_error(found, accelerations)


def burgers(net: Net, points: Array, start: Array, *, layers: int, width: int) -> Array:
    """How far a network is from solving Burgers' equation inside and from its initial state at time 0."""

    def solution(time: Array, place: Array) -> Array:
        with net.shared("solution"):
            x = jnp.stack([time, place], -1)
            for _ in range(layers):
                x = jnp.tanh(net.dense(x, width))
            return net.dense(x, 1)[..., 0]

    def residual(time: Array, place: Array) -> Array:
        by_time, by_place = jax.grad(solution, (0, 1))(time, place)
        bend = jax.grad(jax.grad(solution, 1), 1)(time, place)
        return by_time + solution(time, place) * by_place - 0.01 / math.pi * bend

    inside = jax.vmap(residual)(points[:, 0], points[:, 1])
    begun = solution(jnp.zeros(len(start)), start)
    return (inside**2).mean() + squared_error(begun, -jnp.sin(math.pi * start))


def shallow_water(net: Net, height: Array, *, steps: int) -> Array | tuple[Array, Array, Array]:
    """Waves on a periodic grid, by centred differences and three-stage Runge-Kutta.

    In training, the starting height is what is learned, from what is seen at the end.
    """
    first = net.weight("parameters_height", *height.shape) if net.train else height

    def slope(x: Array, axis: int) -> Array:
        return (jnp.roll(x, -1, axis) - jnp.roll(x, 1, axis)) / 2

    def spread(x: Array) -> Array:
        return sum((jnp.roll(x, way, axis) for axis in (0, 1) for way in (-1, 1)), -4 * x)

    def changes(h: Array, u: Array, v: Array) -> tuple[Array, Array, Array]:
        depth = 1 + h
        return (
            -slope(depth * u, 1) - slope(depth * v, 0),
            -u * slope(u, 1) - v * slope(u, 0) - slope(h, 1) + 0.1 * v + 0.02 * spread(u),
            -u * slope(v, 1) - v * slope(v, 0) - slope(h, 0) - 0.1 * u + 0.02 * spread(v),
        )

    state = (first, jnp.zeros_like(first), jnp.zeros_like(first))
    for index in range(steps):
        with jax.named_scope(f"step_{index}"):
            ahead = state
            for share in (1 / 3, 1 / 2, 1):
                moved = changes(*ahead)
                h, u, v = (x + 0.2 * share * dx for x, dx in zip(state, moved, strict=True))
                ahead = h, u, v
            state = ahead
    return squared_error(state[0], height) if net.train else state


def molecular_dynamics(net: Net, positions: Array, velocities: Array, *, steps: int) -> Any:
    """Atoms in a periodic box, by velocity Verlet; forces are gradients of Lennard-Jones energies.

    In training, size and depth of the potential are learned from where the atoms should be at rest.
    """
    size, depth, box = net.weight("parameters_size"), net.weight("parameters_depth"), 10.0
    pairs = ~jnp.eye(len(positions), dtype=bool)

    def energy(x: Array) -> Array:
        apart = x[:, None] - x[None]
        apart = apart - box * jnp.round(apart / box)
        squared = jnp.where(pairs, (apart**2).sum(-1), 1.0)
        sixth = (size**2 / squared) ** 3
        return 2 * depth * jnp.where(pairs, sixth**2 - sixth, 0.0).sum()

    def force(x: Array) -> Array:
        return -jax.grad(energy)(x)

    x, v, f = positions, velocities, force(positions)
    for index in range(steps):
        with jax.named_scope(f"step_{index}"):
            v = v + 0.0005 * f
            x = x + 0.001 * v
            f = force(x)
            v = v + 0.0005 * f
    return squared_error(x, positions) if net.train else (x, v)


def gaussian_mixture(net: Net, points: Array, means: Array, *, steps: int) -> tuple[Array, Array, Array]:
    """Expectation maximisation of a mixture with variances of its own for each axis."""
    count, width = means.shape
    weight, variance = jnp.full(count, 1 / count), jnp.ones((count, width))
    for index in range(steps):
        with jax.named_scope(f"step_{index}"):
            apart = (points[:, None] - means) ** 2 / variance
            score = jnp.log(weight) - (apart + jnp.log(2 * math.pi * variance)).sum(-1) / 2
            share = nn.softmax(score)
            mass = share.sum(0)
            means = share.T @ points / mass[:, None]
            variance = share.T @ points**2 / mass[:, None] - means**2 + 1e-6
            weight = mass / len(points)
    return weight, means, variance


def k_means(net: Net, points: Array, means: Array, *, steps: int) -> tuple[Array, Array]:
    """Lloyd's algorithm; a mean without points stays where it was."""
    nearest = jnp.zeros(len(points), jnp.int32)
    for index in range(steps):
        with jax.named_scope(f"step_{index}"):
            distance = (means**2).sum(-1) - 2 * points @ means.T
            nearest = distance.argmin(-1)
            mass = jax.ops.segment_sum(jnp.ones(len(points)), nearest, len(means))[:, None]
            total = jax.ops.segment_sum(points, nearest, len(means))
            means = jnp.where(mass > 0, total / jnp.maximum(mass, 1), means)
    return means, nearest


def conjugate_gradient(net: Net, right: Array, *, steps: int) -> Array:
    """Solves a Poisson equation with a learned coefficient; in training for a flat answer."""
    coefficient = jnp.exp(net.weight("parameters_field", *right.shape))

    def applied(x: Array) -> Array:
        total = 0.1 * x
        for axis in (0, 1):
            there = jnp.roll(x, -1, axis) - x
            along = (coefficient + jnp.roll(coefficient, -1, axis)) / 2 * there
            total = total - along + jnp.roll(along, 1, axis)
        return total

    x, rest = jnp.zeros_like(right), right
    way, size = rest, (rest * rest).sum()
    for index in range(steps):
        with jax.named_scope(f"step_{index}"):
            moved = applied(way)
            length = size / (way * moved).sum()
            x, rest = x + length * way, rest - length * moved
            size, before = (rest * rest).sum(), size
            way = rest + size / before * way
    return x.var() if net.train else x


def sinkhorn(net: Net, points: Array, *, targets: int, steps: int) -> Array:
    """Cost of moving points to learned ones with entropic regularisation, in logarithms."""
    places = net.weight("parameters_places", targets, points.shape[-1])
    cost = ((points[:, None] - places[None]) ** 2).sum(-1)
    scaled = -cost / 0.1
    rows, columns = jnp.zeros(len(points)), jnp.zeros(targets)
    for index in range(steps):
        with jax.named_scope(f"step_{index}"):
            rows = -nn.logsumexp(scaled + columns[None], axis=1) - math.log(len(points))
            columns = -nn.logsumexp(scaled + rows[:, None], axis=0) - math.log(targets)
    plan = jnp.exp(scaled + rows[:, None] + columns[None])
    return (plan * cost).sum() if net.train else plan


def meta_learning(net: Net, x: Array, y: Array, later_x: Array, later_y: Array, *, steps: int) -> Array:
    """Loss after some steps of gradient descent on each task, through which the gradient goes."""
    sizes = [(1, 40), (40,), (40, 40), (40,), (40, 1), (1,)]
    first = [net.weight(f"kernel_{index}", *size) for index, size in enumerate(sizes)]

    def loss(weights: list[Array], x: Array, y: Array) -> Array:
        for kernel, bias in zip(weights[:-2:2], weights[1:-2:2], strict=True):
            x = nn.relu(x @ kernel + bias)
        return squared_error(x @ weights[-2] + weights[-1], y)

    def adapted(x: Array, y: Array, later_x: Array, later_y: Array) -> Array:
        weights = first
        for index in range(steps):
            with jax.named_scope(f"step_{index}"):
                gradient = jax.grad(loss)(weights, x, y)
                weights = [w - 0.01 * g for w, g in zip(weights, gradient, strict=True)]
        return loss(weights, later_x, later_y)

    return jax.vmap(adapted)(x, y, later_x, later_y).mean()


def hamiltonian_monte_carlo(
    net: Net, features: Array, labels: Array, momenta: Array, uniform: Array, *, leaps: int
) -> Array:
    """Draws of the weights of a logistic regression, each by following an orbit and accepting its end or not."""

    def potential(weights: Array) -> Array:
        logits = features @ weights
        return (nn.softplus(logits) - labels * logits).sum() + (weights**2).sum() / 2

    weights, drawn = jnp.zeros(features.shape[-1]), []
    for index in range(len(momenta)):
        with jax.named_scope(f"draw_{index}"):
            (energy, slope), momentum = jax.value_and_grad(potential)(weights), momenta[index]
            start = energy + (momentum**2).sum() / 2
            moved = weights
            for _ in range(leaps):
                momentum = momentum - 0.005 * slope
                moved = moved + 0.01 * momentum
                energy, slope = jax.value_and_grad(potential)(moved)
                momentum = momentum - 0.005 * slope
            end = energy + (momentum**2).sum() / 2
            weights = jnp.where(jnp.log(uniform[index]) < start - end, moved, weights)
            drawn.append(weights)
    return jnp.stack(drawn)


def kalman_filter(net: Net, seen: Array, *, width: int) -> Array | tuple[Array, Array]:
    """Filters a row of observations; in training their negative log likelihood under a learned transition."""
    moves = net.weight("parameters_transition", width, width)
    mean, spread = jnp.zeros(width), jnp.eye(width)
    loss: Array = jnp.zeros(())
    found = []
    for index in range(len(seen)):
        with jax.named_scope(f"step_{index}"):
            mean, spread = moves @ mean, moves @ spread @ moves.T + 0.1 * jnp.eye(width)
            surprise, noise = seen[index] - mean[0], spread[0, 0] + 0.5
            loss = loss + (surprise**2 / noise + jnp.log(2 * math.pi * noise)) / 2
            gain = spread[:, 0] / noise
            mean, spread = mean + gain * surprise, spread - jnp.outer(gain, spread[0])
            found.append(mean)
    return loss if net.train else (jnp.stack(found), spread)


@definition(family="gat", source="jax", licence="Apache-2.0")
def attention_over_graphs() -> Iterator[Entry]:
    """Velickovic et al. 2018, "Graph attention networks": 3 layers of 8 heads; edges by segment sums."""
    nodes, edges = 2_708, 13_264
    yield from programs(
        "gat-3l", partial(graph_attention, layers=3, heads=8, width=32, classes=7),
        inputs=(reals(nodes, 1433), ids(edges), ids(edges)), targets=(ids(nodes),), batch=1,
        optimizer="adam", layers=3, heads=8, nodes=nodes, edges=edges,
    )  # fmt: skip


@definition(family="gns", source="jax", licence="Apache-2.0")
def simulators() -> Iterator[Entry]:
    """Sanchez-Gonzalez et al. 2020, "Learning to simulate complex physics with graph networks": 10 and 5 steps."""
    nodes, edges = 2_000, 20_000
    for steps in (10, 5):
        yield from programs(
            f"gns-{steps}", partial(graph_simulator, steps=steps, width=128),
            inputs=(reals(nodes, 30), reals(edges, 3), ids(edges), ids(edges)), targets=(reals(nodes, 2),),
            batch=1, optimizer="adam", steps=steps, width=128, nodes=nodes, edges=edges,
        )  # fmt: skip


@definition(family="pinn", source="jax", licence="Apache-2.0")
def physics_informed() -> Iterator[Entry]:
    """Raissi et al. 2019, "Physics-informed neural networks": Burgers' equation, 8 layers and 4."""
    for layers in (8, 4):
        yield from programs(
            f"pinn-burgers-{layers}", partial(burgers, layers=layers, width=64),
            inputs=(reals(4096, 2), reals(256)), batch=4096, optimizer="adam", modes=("train",),
            layers=layers, width=64,
        )  # fmt: skip


@definition(family="shallow-water", source="jax", licence="Apache-2.0")
def waves() -> Iterator[Entry]:
    """Arakawa and Lamb 1977, "Computational design of the basic dynamical processes of the UCLA general circulation
    model", for the equations; centred differences here.

    There is no training step: XLA takes minutes to compile it.
    """
    yield from programs(
        "shallow-water", partial(shallow_water, steps=10), inputs=(reals(512, 512),), batch=1, modes=("infer",),
        grid=512, steps=10,
    )  # fmt: skip


@definition(family="molecular-dynamics", source="jax", licence="Apache-2.0")
def molecules() -> Iterator[Entry]:
    """Schoenholz and Cubuk 2020, "JAX, M.D.: a framework for differentiable physics": 512 Lennard-Jones atoms, all
    pairs.
    """
    yield from programs(
        "molecular-dynamics", partial(molecular_dynamics, steps=10), inputs=(reals(512, 3), reals(512, 3)),
        batch=1, optimizer="adam", atoms=512, steps=10,
    )  # fmt: skip


@definition(family="gaussian-mixture", source="jax", licence="Apache-2.0")
def mixtures() -> Iterator[Entry]:
    """Dempster et al. 1977, "Maximum likelihood from incomplete data via the EM algorithm": 12 steps."""
    yield from programs(
        "gaussian-mixture-12", partial(gaussian_mixture, steps=12), inputs=(reals(8192, 16), reals(32, 16)),
        batch=8192, modes=("infer",), parts=32, width=16, steps=12,
    )  # fmt: skip


@definition(family="k-means", source="jax", licence="Apache-2.0")
def clusters() -> Iterator[Entry]:
    """Lloyd 1982, "Least squares quantization in PCM": 20 steps."""
    yield from programs(
        "k-means-20", partial(k_means, steps=20), inputs=(reals(16_384, 32), reals(64, 32)), batch=16_384,
        modes=("infer",), parts=64, width=32, steps=20,
    )  # fmt: skip


@definition(family="conjugate-gradient", source="jax", licence="Apache-2.0")
def solvers() -> Iterator[Entry]:
    """Hestenes and Stiefel 1952, "Methods of conjugate gradients for solving linear systems": 20 steps on a grid."""
    yield from programs(
        "conjugate-gradient-20", partial(conjugate_gradient, steps=20), inputs=(reals(512, 512),), batch=1,
        grid=512, steps=20,
    )  # fmt: skip


@definition(family="sinkhorn", source="jax", licence="Apache-2.0")
def transport() -> Iterator[Entry]:
    """Cuturi 2013, "Sinkhorn distances: lightspeed computation of optimal transport": 20 rounds in logarithms."""
    yield from programs(
        "sinkhorn-20", partial(sinkhorn, targets=512, steps=20), inputs=(reals(1024, 8),), batch=1024,
        points=512, steps=20,
    )  # fmt: skip


@definition(family="maml", source="jax", licence="Apache-2.0")
def meta_learners() -> Iterator[Entry]:
    """Finn et al. 2017, "Model-agnostic meta-learning for fast adaptation of deep networks": sinusoids, 25 tasks of 10
    points, 5 inner steps, second order.
    """
    task = reals(25, 10, 1)
    yield from programs(
        "maml-5", partial(meta_learning, steps=5), inputs=(task, task, task, task), batch=25,
        optimizer="adam", modes=("train",), steps=5,
    )  # fmt: skip


@definition(family="hamiltonian-monte-carlo", source="jax", licence="Apache-2.0")
def samplers() -> Iterator[Entry]:
    """Neal 2011, "MCMC using Hamiltonian dynamics": 4 draws of 10 leaps for a logistic regression."""
    yield from programs(
        "hamiltonian-monte-carlo-4x10", partial(hamiltonian_monte_carlo, leaps=10),
        inputs=(reals(4096, 64), reals(4096), reals(4, 64), reals(4)), batch=4096, modes=("infer",),
        draws=4, leaps=10,
    )  # fmt: skip


@definition(family="kalman-filter", source="jax", licence="Apache-2.0")
def filters() -> Iterator[Entry]:
    """Kalman 1960, "A new approach to linear filtering and prediction problems": 40 observations of one number, a
    state of 16.
    """
    yield from programs(
        "kalman-filter-40", partial(kalman_filter, width=16), inputs=(reals(40),), batch=1, steps=40, width=16
    )
