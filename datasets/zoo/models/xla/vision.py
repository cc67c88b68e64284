"""Image classifiers in JAX."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from ...registry import definition
from .late import jnp, nn
from .net import Net, cross_entropy, max_pool, mean_pool
from .program import Entry, image_programs

if TYPE_CHECKING:
    from jax import Array


def _classified(net: Net, features: Array, classes: int, labels: Array | None) -> Array:
    """Logits by one linear layer, or their loss."""
    logits = net.dense(features, classes)
    return logits if labels is None else cross_entropy(logits, labels)


def _conv_norm(net: Net, x: Array, features: int, kernel: int = 3, stride: int = 1, groups: int = 1) -> Array:
    return net.batch_norm(net.conv(x, features, kernel, stride=stride, groups=groups, bias=False))


def mlp(net: Net, images: Array, labels: Array | None = None, *, depth: int, classes: int) -> Array:
    """Linear layers with ReLU."""
    x = images.reshape(len(images), -1)
    for _ in range(depth):
        x = nn.relu(net.dense(x, 1024))
    return _classified(net, x, classes, labels)


def lenet(net: Net, images: Array, labels: Array | None = None, *, classes: int) -> Array:
    """Two convolutions and three linear layers."""
    x = images
    for features in (6, 16):
        x = max_pool(jnp.tanh(net.conv(x, features, 5, padding="VALID")))
    x = x.reshape(len(x), -1)
    for features in (120, 84):
        x = jnp.tanh(net.dense(x, features))
    return _classified(net, x, classes, labels)


def resnet(
    net: Net, images: Array, labels: Array | None = None, *, blocks: tuple[int, ...], classes: int
) -> Array:
    """Residual blocks of two convolutions."""
    x = max_pool(nn.relu(_conv_norm(net, images, 64, 7, 2)), 3)
    for stage, count in enumerate(blocks):
        for index in range(count):
            with net.scope("block"):
                width, stride = 64 * 2**stage, 2 if stage and not index else 1
                y = nn.relu(_conv_norm(net, x, width, 3, stride))
                y = _conv_norm(net, y, width)
                x = nn.relu(y + (x if x.shape == y.shape else _conv_norm(net, x, width, 1, stride)))
    return _classified(net, x.mean((1, 2)), classes, labels)


def bottleneck_resnet_v2(
    net: Net, images: Array, labels: Array | None = None, *, blocks: tuple[int, ...], classes: int
) -> Array:
    """Bottlenecks with normalisation and ReLU before each convolution."""
    x = max_pool(net.conv(images, 64, 7, stride=2, bias=False), 3)
    for stage, count in enumerate(blocks):
        for index in range(count):
            with net.scope("block"):
                width, stride = 64 * 2**stage, 2 if stage and not index else 1
                before = nn.relu(net.batch_norm(x))
                if not index:
                    x = net.conv(before, 4 * width, 1, stride=stride, bias=False)
                y = nn.relu(_conv_norm(net, before, width, 1))
                y = nn.relu(_conv_norm(net, y, width, 3, stride))
                x = x + net.conv(y, 4 * width, 1, bias=False)
    return _classified(net, nn.relu(net.batch_norm(x)).mean((1, 2)), classes, labels)


def wide_resnet(
    net: Net, images: Array, labels: Array | None = None, *, depth: int, wider: int, classes: int
) -> Array:
    """Basic pre-activation blocks, few and wide."""
    x = net.conv(images, 16, bias=False)
    for stage in range(3):
        for index in range((depth - 4) // 6):
            with net.scope("block"):
                width, stride = 16 * wider * 2**stage, 2 if stage and not index else 1
                before = nn.relu(net.batch_norm(x))
                if not index:
                    x = net.conv(before, width, 1, stride=stride, bias=False)
                y = nn.relu(_conv_norm(net, before, width, 3, stride))
                x = x + net.conv(y, width, bias=False)
    return _classified(net, nn.relu(net.batch_norm(x)).mean((1, 2)), classes, labels)


def densenet(
    net: Net,
    images: Array,
    labels: Array | None = None,
    *,
    blocks: tuple[int, ...],
    growth: int,
    classes: int,
) -> Array:
    """Every layer reads all layers of its block before it; bottlenecks and compression by a half."""
    x = max_pool(nn.relu(_conv_norm(net, images, 2 * growth, 7, 2)), 3)
    for stage, count in enumerate(blocks):
        for _ in range(count):
            with net.scope("layer"):
                y = net.conv(nn.relu(net.batch_norm(x)), 4 * growth, 1, bias=False)
                y = net.conv(nn.relu(net.batch_norm(y)), growth, bias=False)
                x = jnp.concatenate([x, y], -1)
        if stage + 1 < len(blocks):
            with net.scope("transition"):
                x = net.conv(nn.relu(net.batch_norm(x)), x.shape[-1] // 2, 1, bias=False)
                x = mean_pool(x)
    return _classified(net, nn.relu(net.batch_norm(x)).mean((1, 2)), classes, labels)


#: Widths of GoogLeNet's modules: 1 x 1; 1 x 1 and 3 x 3; 1 x 1 and 5 x 5; 1 x 1 after pooling.
_INCEPTION = (
    ((64, 96, 128, 16, 32, 32), (128, 128, 192, 32, 96, 64)),
    ((192, 96, 208, 16, 48, 64), (160, 112, 224, 24, 64, 64), (128, 128, 256, 24, 64, 64),
     (112, 144, 288, 32, 64, 64), (256, 160, 320, 32, 128, 128)),
    ((256, 160, 320, 32, 128, 128), (384, 192, 384, 48, 128, 128)),
)  # fmt: skip


def googlenet(net: Net, images: Array, labels: Array | None = None, *, classes: int) -> Array:
    """Nine inception modules, without the auxiliary classifiers and local response normalisation."""
    x = max_pool(nn.relu(net.conv(images, 64, 7, stride=2)), 3)
    x = nn.relu(net.conv(nn.relu(net.conv(x, 64, 1)), 192))
    for stage in _INCEPTION:
        x = max_pool(x, 3)
        for one, narrow3, three, narrow5, five, pool in stage:
            with net.scope("inception"):
                ways = (
                    net.conv(x, one, 1),
                    net.conv(nn.relu(net.conv(x, narrow3, 1)), three),
                    net.conv(nn.relu(net.conv(x, narrow5, 1)), five, 5),
                    net.conv(max_pool(x, 3, 1), pool, 1),
                )
                x = nn.relu(jnp.concatenate(ways, -1))
    return _classified(net, x.mean((1, 2)), classes, labels)


def mobilenet_v1(net: Net, images: Array, labels: Array | None = None, *, classes: int) -> Array:
    """Depthwise and pointwise convolutions in turn."""
    x = nn.relu(_conv_norm(net, images, 32, 3, 2))
    for width, stride in ((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *[(512, 1)] * 5,
                          (1024, 2), (1024, 1)):  # fmt: skip
        with net.scope("block"):
            x = nn.relu(_conv_norm(net, x, x.shape[-1], 3, stride, x.shape[-1]))
            x = nn.relu(_conv_norm(net, x, width, 1))
    return _classified(net, x.mean((1, 2)), classes, labels)


def mobilenet_v2(net: Net, images: Array, labels: Array | None = None, *, classes: int) -> Array:
    """Inverted residuals with linear bottlenecks."""
    x = nn.relu6(_conv_norm(net, images, 32, 3, 2))
    for expansion, width, count, first in ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2),
                                           (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)):  # fmt: skip
        for index in range(count):
            with net.scope("block"):
                hidden, stride = expansion * x.shape[-1], first if not index else 1
                y = nn.relu6(_conv_norm(net, x, hidden, 1)) if expansion > 1 else x
                y = nn.relu6(_conv_norm(net, y, hidden, 3, stride, hidden))
                y = _conv_norm(net, y, width, 1)
                x = x + y if x.shape == y.shape else y
    x = nn.relu6(_conv_norm(net, x, 1280, 1))
    return _classified(net, x.mean((1, 2)), classes, labels)


def convnext(net: Net, images: Array, labels: Array | None = None, *, classes: int) -> Array:
    """Depthwise 7 x 7 convolutions and perceptrons with scaled residuals; the tiny one."""
    x = images
    for stage, (count, width) in enumerate(zip((3, 3, 9, 3), (96, 192, 384, 768), strict=True)):
        with net.scope("down"):
            if stage:
                x = net.conv(net.layer_norm(x), width, 2, stride=2)
            else:
                x = net.layer_norm(net.conv(x, width, 4, stride=4))
        for _ in range(count):
            with net.scope("block"):
                y = net.perceptron(net.layer_norm(net.conv(x, width, 7, groups=width)), 4 * width)
                x = x + net.weight("scale", width) * y
    return _classified(net, net.layer_norm(x.mean((1, 2))), classes, labels)


def mlp_mixer(
    net: Net, images: Array, labels: Array | None = None, *, layers: int, width: int, classes: int
) -> Array:
    """Perceptrons over places and over channels in turn."""
    x = net.conv(images, width, 16, stride=16)
    x = x.reshape(len(x), -1, width)
    for _ in range(layers):
        with net.scope("block"):
            y = net.perceptron(net.layer_norm(x).transpose(0, 2, 1), width // 2)
            x = x + y.transpose(0, 2, 1)
            x = x + net.perceptron(net.layer_norm(x), 4 * width)
    return _classified(net, net.layer_norm(x).mean(1), classes, labels)


def vit(
    net: Net, images: Array, labels: Array | None = None, *, layers: int, width: int, classes: int
) -> Array:
    """A transformer over patches of 16 x 16 pixels and one class token."""
    patches = net.conv(images, width, 16, stride=16).reshape(len(images), -1, width)
    token = jnp.broadcast_to(net.weight("token", 1, 1, width), (len(images), 1, width))
    x = jnp.concatenate([token, patches], 1)
    x = x + net.weight("positions", x.shape[1], width)
    for _ in range(layers):
        with net.scope("block"):
            x = x + net.attention(net.layer_norm(x), width // 64)
            x = x + net.perceptron(net.layer_norm(x), 4 * width)
    return _classified(net, net.layer_norm(x)[:, 0], classes, labels)


@definition(family="mlp", source="jax", licence="Apache-2.0")
def multilayer_perceptrons() -> Iterator[Entry]:
    """Rumelhart et al. 1986, "Learning representations by back-propagating errors": 30 layers for 28 x 28 images."""
    yield from image_programs(
        "mlp-30", partial(mlp, depth=30), size=28, classes=10, batch=128, optimizer="adam", modes=("train",),
        layers=30, width=1024,
    )  # fmt: skip


@definition(family="lenet", source="jax", licence="Apache-2.0")
def lenets() -> Iterator[Entry]:
    """LeCun et al. 1998, "Gradient-based learning applied to document recognition": LeNet-5 with maximum pooling."""
    yield from image_programs(
        "lenet-5", lenet, size=32, classes=10, batch=128, optimizer="adam", modes=("train",)
    )


@definition(family="resnet", source="jax", licence="Apache-2.0")
def resnets() -> Iterator[Entry]:
    """He et al. 2016, "Deep residual learning for image recognition": ResNet-18."""
    yield from image_programs("resnet-18", partial(resnet, blocks=(2, 2, 2, 2)), layers=18)


@definition(family="resnet-v2", source="jax", licence="Apache-2.0")
def resnets_v2() -> Iterator[Entry]:
    """He et al. 2016, "Identity mappings in deep residual networks", 50 layers, and its wide relative: Zagoruyko and
    Komodakis 2016, "Wide residual networks" (28 layers, 10 times as wide, for 32 x 32 images).
    """
    yield from image_programs("resnet-v2-50", partial(bottleneck_resnet_v2, blocks=(3, 4, 6, 3)), layers=50)
    yield from image_programs(
        "wide-resnet-28-10", partial(wide_resnet, depth=28, wider=10), size=32, classes=10, batch=128, layers=28,
        wider=10,
    )  # fmt: skip


@definition(family="densenet", source="jax", licence="Apache-2.0")
def densenets() -> Iterator[Entry]:
    """Huang et al. 2017, "Densely connected convolutional networks": DenseNet-BC-121."""
    yield from image_programs(
        "densenet-121", partial(densenet, blocks=(6, 12, 24, 16), growth=32), layers=121, growth=32
    )


@definition(family="googlenet", source="jax", licence="Apache-2.0")
def googlenets() -> Iterator[Entry]:
    """Szegedy et al. 2015, "Going deeper with convolutions"."""
    yield from image_programs("googlenet", googlenet)


@definition(family="mobilenet-v1", source="jax", licence="Apache-2.0")
def mobilenets_v1() -> Iterator[Entry]:
    """Howard et al. 2017, "MobileNets: efficient convolutional neural networks for mobile vision applications"."""
    yield from image_programs("mobilenet-v1", mobilenet_v1)


@definition(family="mobilenet-v2", source="jax", licence="Apache-2.0")
def mobilenets_v2() -> Iterator[Entry]:
    """Sandler et al. 2018, "MobileNetV2: inverted residuals and linear bottlenecks"."""
    yield from image_programs("mobilenet-v2", mobilenet_v2)


@definition(family="convnext", source="jax", licence="Apache-2.0")
def convnexts() -> Iterator[Entry]:
    """Liu et al. 2022, "A ConvNet for the 2020s": tiny; stochastic depth left out."""
    yield from image_programs("convnext-tiny", convnext, optimizer="adam")


@definition(family="mlp-mixer", source="jax", licence="Apache-2.0")
def mlp_mixers() -> Iterator[Entry]:
    """Tolstikhin et al. 2021, "MLP-Mixer: an all-MLP architecture for vision": B/16."""
    yield from image_programs(
        "mlp-mixer-base", partial(mlp_mixer, layers=12, width=768), optimizer="adam", layers=12, width=768
    )


@definition(family="vit", source="jax", licence="Apache-2.0")
def vision_transformers() -> Iterator[Entry]:
    """Dosovitskiy et al. 2021, "An image is worth 16x16 words": base."""
    yield from image_programs(
        "vit-base", partial(vit, layers=12, width=768), optimizer="adam", layers=12, width=768
    )
