"""Models of images and densities in JAX: autoencoders, adversarial networks, diffusion, flows, fields."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from ...registry import definition
from .late import jnp, lax, nn
from .net import Net, cross_entropy, enlarged, max_pool, squared_error
from .program import Entry, ids, programs, reals

if TYPE_CHECKING:
    from jax import Array


def unet(net: Net, images: Array, labels: Array | None = None, *, levels: int, classes: int) -> Array:
    """Convolutions down and up again, which read what was there on the way down."""

    def double(x: Array, width: int) -> Array:
        for _ in range(2):
            x = nn.relu(net.batch_norm(net.conv(x, width, bias=False)))
        return x

    x, passed = images, []
    for level in range(levels):
        with net.scope("down"):
            x = double(x, 64 * 2**level)
            passed.append(x)
            x = max_pool(x)
    with net.scope("bottom"):
        x = double(x, 64 * 2**levels)
    for level in reversed(range(levels)):
        with net.scope("up"):
            x = net.conv_transpose(x, 64 * 2**level, 2)
            x = double(jnp.concatenate([passed[level], x], -1), 64 * 2**level)
    logits = net.conv(x, classes, 1)
    return logits if labels is None else cross_entropy(logits, labels)


def variational_autoencoder(net: Net, images: Array, noise: Array) -> Array | tuple[Array, Array]:
    """Convolutions to 64 latent numbers and back; in training the loss, else images and latent means."""
    x = images
    with net.shared("encoder"):
        for width in (32, 64, 128, 256):
            x = nn.relu(net.batch_norm(net.conv(x, width, 4, stride=2)))
        mean, log_variance = jnp.split(net.dense(x.reshape(len(x), -1), 2 * noise.shape[-1]), 2, -1)
    latent = mean + jnp.exp(log_variance / 2) * noise
    with net.shared("decoder"):
        y = nn.relu(net.dense(latent, x[0].size)).reshape(x.shape)
        for width in (128, 64, 32):
            y = nn.relu(net.batch_norm(net.conv_transpose(y, width)))
        y = net.conv_transpose(y, 3)
    if not net.train:
        return nn.sigmoid(y), mean
    divergence = (mean**2 + jnp.exp(log_variance) - log_variance - 1).sum(-1).mean() / 2
    return ((y - images) ** 2).sum((1, 2, 3)).mean() + divergence


def adversarial_networks(net: Net, noise: Array, images: Array | None = None) -> Array:
    """A generator of 64 x 64 images and, in training, a discriminator; each learns from its own loss."""

    def generated() -> Array:
        x = nn.relu(net.batch_norm(net.dense(noise, 4 * 4 * 512).reshape(-1, 4, 4, 512)))
        for width in (256, 128, 64):
            x = nn.relu(net.batch_norm(net.conv_transpose(x, width)))
        return jnp.tanh(net.conv_transpose(x, 3))

    def judged(x: Array) -> Array:
        for level, width in enumerate((64, 128, 256, 512)):
            x = net.conv(x, width, 4, stride=2)
            if level:
                x = net.batch_norm(x)
            x = nn.leaky_relu(x, 0.2)
        return net.dense(x.reshape(len(x), -1), 1)

    with net.shared("generator"):
        fake = generated()
    if images is None:
        return fake
    # The discriminator's loss stops at the images, the generator's passes through weights that it does not change.
    with net.shared("discriminator"):
        real = judged(images)
    with net.shared("discriminator"):
        seen = judged(lax.stop_gradient(fake))
    with net.shared("discriminator"), net.frozen():
        fooled = judged(fake)
    return (nn.softplus(-real) + nn.softplus(seen) + nn.softplus(-fooled)).mean()


def diffusion_unet(
    net: Net, images: Array, steps: Array, noise: Array | None = None, *, width: int, levels: int
) -> Array:
    """Residual blocks that know the time, attention where images are small; tells the noise in the images."""
    place = jnp.exp(jnp.arange(0, width, 2) * (-math.log(10_000.0) / width))
    angle = steps[:, None] * place
    time = jnp.concatenate([jnp.sin(angle), jnp.cos(angle)], -1)
    time = net.dense(nn.silu(net.dense(time, 4 * width)), 4 * width)

    def residual(x: Array, features: int) -> Array:
        with net.scope("residual"):
            y = net.conv(nn.silu(net.group_norm(x)), features)
            y = y + net.dense(nn.silu(time), features)[:, None, None]
            y = net.conv(nn.silu(net.group_norm(y)), features)
            return y + (x if x.shape == y.shape else net.conv(x, features, 1))

    def attended(x: Array) -> Array:
        places = net.group_norm(x).reshape(len(x), -1, x.shape[-1])
        return x + net.attention(places, 1).reshape(x.shape)

    x = net.conv(images, width)
    passed = [x]
    for level in range(levels):
        for _ in range(2):
            x = residual(x, width * (1 + (level > 0)))
            x = attended(x) if level == 1 else x
            passed.append(x)
        if level + 1 < levels:
            x = net.conv(x, x.shape[-1], stride=2)
            passed.append(x)
    x = residual(attended(residual(x, x.shape[-1])), x.shape[-1])
    for level in reversed(range(levels)):
        for _ in range(3):
            x = residual(jnp.concatenate([x, passed.pop()], -1), width * (1 + (level > 0)))
            x = attended(x) if level == 1 else x
        if level:
            x = net.conv(enlarged(x), x.shape[-1])
    found = net.conv(nn.silu(net.group_norm(x)), 3)
    return found if noise is None else squared_error(found, noise)


def flow(net: Net, x: Array, *, couplings: int, width: int) -> Array | tuple[Array, Array]:
    """Affine couplings of vectors: in training the mean negative log likelihood, else latents and determinants."""
    determinant: Array = jnp.zeros(len(x))
    for _ in range(couplings):
        with net.scope("coupling"):
            still, moved = jnp.split(x, 2, -1)
            y = nn.relu(net.dense(nn.relu(net.dense(still, width)), width))
            scale, shift = jnp.split(net.dense(y, 2 * moved.shape[-1]), 2, -1)
            scale = jnp.tanh(scale)
            determinant = determinant + scale.sum(-1)
            x = jnp.concatenate([moved * jnp.exp(scale) + shift, still], -1)
    if not net.train:
        return x, determinant
    return ((x**2 + math.log(2 * math.pi)).sum(-1) / 2 - determinant).mean()


def neural_ode(net: Net, x: Array, labels: Array | None = None, *, steps: int, classes: int) -> Array:
    """A vector field that fixed steps of Runge-Kutta follow from 0 to 1."""

    def field(state: Array, time: float) -> Array:
        with net.shared("field"):
            clock = jnp.full((*state.shape[:-1], 1), time)
            y = jnp.tanh(net.dense(jnp.concatenate([state, clock], -1), 256))
            return net.dense(y, state.shape[-1])

    x, size = net.dense(x, 64), 1 / steps
    for index in range(steps):
        now = index * size
        first = field(x, now)
        second = field(x + size / 2 * first, now + size / 2)
        third = field(x + size / 2 * second, now + size / 2)
        fourth = field(x + size * third, now + size)
        x = x + size / 6 * (first + 2 * second + 2 * third + fourth)
    logits = net.dense(x, classes)
    return logits if labels is None else cross_entropy(logits, labels)


def radiance_field(
    net: Net,
    origins: Array,
    directions: Array,
    uniform: Array,
    colours: Array | None = None,
    *,
    coarse: int,
) -> Array:
    """Colours of rays: equal steps first, then finer ones where the coarse network saw something."""

    def encoded(x: Array, frequencies: int) -> Array:
        angles = x[..., None] * (2.0 ** jnp.arange(frequencies) * math.pi)
        waves = jnp.concatenate([jnp.sin(angles), jnp.cos(angles)], -1)
        return jnp.concatenate([x, waves.reshape(*x.shape[:-1], -1)], -1)

    def rendered(depths: Array, name: str) -> tuple[Array, Array]:
        points = origins[:, None] + depths[..., None] * directions[:, None]
        with net.shared(name):
            position = x = encoded(points, 10)
            for layer in range(8):
                x = nn.relu(net.dense(jnp.concatenate([x, position], -1) if layer == 5 else x, 256))
            density = nn.relu(net.dense(x, 1))[..., 0]
            view = jnp.broadcast_to(encoded(directions, 4)[:, None], (*points.shape[:2], 27))
            x = nn.relu(net.dense(jnp.concatenate([net.dense(x, 256), view], -1), 128))
            colour = nn.sigmoid(net.dense(x, 3))
        gaps = jnp.concatenate([depths[:, 1:] - depths[:, :-1], jnp.full((len(depths), 1), 1e10)], 1)
        opacity = 1 - jnp.exp(-density * gaps)
        clear = jnp.cumprod(1 - opacity + 1e-10, 1)
        weights = opacity * jnp.concatenate([jnp.ones_like(clear[:, :1]), clear[:, :-1]], 1)
        return (weights[..., None] * colour).sum(1), weights

    depths = jnp.broadcast_to(jnp.linspace(2.0, 6.0, coarse), (len(origins), coarse))
    first, weights = rendered(depths, "coarse")
    share = jnp.cumsum(weights / (weights.sum(1, keepdims=True) + 1e-5), 1)
    bin_of = (uniform[:, :, None] >= lax.stop_gradient(share)[:, None]).sum(-1).clip(0, coarse - 2)
    near = jnp.take_along_axis(depths, bin_of, 1)
    samples = jnp.concatenate([depths, near + uniform * 4 / coarse], 1)
    second, _ = rendered(jnp.sort(samples, 1), "fine")
    if colours is None:
        return second
    return squared_error(first, colours) + squared_error(second, colours)


@definition(family="unet", source="jax", licence="Apache-2.0")
def unets() -> Iterator[Entry]:
    """Ronneberger et al. 2015, "U-Net: convolutional networks for biomedical image segmentation", with padded
    convolutions and batch normalisation.
    """
    yield from programs(
        "unet-4", partial(unet, levels=4, classes=2), inputs=(reals(8, 256, 256, 3),),
        targets=(ids(8, 256, 256),), batch=8, optimizer="momentum", levels=4, image=256, classes=2,
    )  # fmt: skip


@definition(family="vae", source="jax", licence="Apache-2.0")
def autoencoders() -> Iterator[Entry]:
    """Kingma and Welling 2014, "Auto-encoding variational Bayes": four convolutions each way, 64 latent numbers."""
    yield from programs(
        "vae-64", variational_autoencoder, inputs=(reals(64, 64, 64, 3), reals(64, 64)), batch=64,
        optimizer="adam", modes=("train",), image=64, latent=64,
    )  # fmt: skip


@definition(family="dcgan", source="jax", licence="Apache-2.0")
def adversarial() -> Iterator[Entry]:
    """Radford et al. 2016, "Unsupervised representation learning with deep convolutional generative adversarial
    networks": both losses in one step.
    """
    yield from programs(
        "dcgan-64", adversarial_networks, inputs=(reals(64, 100),), targets=(reals(64, 64, 64, 3),), batch=64,
        optimizer="adam", modes=("train",), image=64, latent=100,
    )  # fmt: skip


@definition(family="ddpm", source="jax", licence="Apache-2.0")
def diffusion() -> Iterator[Entry]:
    """Ho et al. 2020, "Denoising diffusion probabilistic models": the U-Net for 32 x 32 images."""
    yield from programs(
        "ddpm-32", partial(diffusion_unet, width=128, levels=4), inputs=(reals(32, 32, 32, 3), reals(32)),
        targets=(reals(32, 32, 32, 3),), batch=32, optimizer="adam", image=32, width=128, levels=4,
    )  # fmt: skip


@definition(family="realnvp", source="jax", licence="Apache-2.0")
def flows() -> Iterator[Entry]:
    """Dinh et al. 2017, "Density estimation using real NVP": 12 couplings of vectors of 64 numbers."""
    yield from programs(
        "realnvp-12", partial(flow, couplings=12, width=256), inputs=(reals(512, 64),), batch=512,
        optimizer="adam", couplings=12, width=256,
    )  # fmt: skip


@definition(family="neural-ode", source="jax", licence="Apache-2.0")
def differential_equations() -> Iterator[Entry]:
    """Chen et al. 2018, "Neural ordinary differential equations": 8 fixed steps of Runge-Kutta, gradients through the
    solver.
    """
    yield from programs(
        "neural-ode-8", partial(neural_ode, steps=8, classes=10), inputs=(reals(128, 784),), targets=(ids(128),),
        batch=128, optimizer="adam", steps=8, classes=10,
    )  # fmt: skip


@definition(family="nerf", source="jax", licence="Apache-2.0")
def radiance_fields() -> Iterator[Entry]:
    """Mildenhall et al. 2020, "NeRF: representing scenes as neural radiance fields for view synthesis": 64 coarse and
    128 fine samples.
    """
    yield from programs(
        "nerf", partial(radiance_field, coarse=64),
        inputs=(reals(1024, 3), reals(1024, 3), reals(1024, 128)), targets=(reals(1024, 3),), batch=1024,
        optimizer="adam", coarse=64, fine=128,
    )  # fmt: skip
