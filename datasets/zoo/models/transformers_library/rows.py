"""What rows of the tables share: depths, kinds of inputs, losses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from torch import Tensor
from torch.nn import functional as F

from ..layers import token_loss
from ..workload import Input, Optimizer, ids, reals
from .architecture import Architecture, Size


def nested(dotted: str, value: Any) -> dict[str, Any]:
    """``{"a": {"b": value}}`` of ``"a.b"``."""
    *outer, name = dotted.split(".")
    result: dict[str, Any] = {name: value}
    for key in reversed(outer):
        result = {key: result}
    return result


def depths(*names: str, train: Iterable[int] = (), infer: Iterable[int] = ()) -> tuple[Size, ...]:
    """Graphs of several depths.

    Args:
        names: Settings that get the depth, with dots for inner configurations.
        train: Depths of training graphs.
        infer: Depths of inference graphs.
    """
    sizes = []
    for mode, numbers in (("train", train), ("infer", infer)):
        for number in numbers:
            settings: dict[str, Any] = {}
            for name in names:
                outer, _, inner = name.partition(".")
                settings[outer] = {**settings.get(outer, {}), **nested(inner, number)} if inner else number
            sizes.append(Size(f"{number}l", mode, settings))  # type: ignore[arg-type]
    return tuple(sizes)


def words(
    family: str,
    model: str,
    reference: str,
    sizes: tuple[Size, ...],
    *,
    vocabulary: int,
    batch: int = 1,
    length: int = 256,
    optimizer: Optimizer = "sgd",
    inputs: Mapping[str, Input] | None = None,
    classes: int | None = None,
    **settings: Any,
) -> Architecture:
    """A model of one sequence of ids, trained to give an id (or one of some classes) at each position."""
    return Architecture(
        family,
        model,
        reference,
        inputs={"input_ids": ids(vocabulary, batch, length), **(inputs or {})},
        targets={"labels": ids(classes or vocabulary, batch, length)},
        sizes=sizes,
        optimizer=optimizer,
        settings=settings,
    )


def translation(
    family: str,
    model: str,
    reference: str,
    sizes: tuple[Size, ...],
    *,
    vocabulary: int,
    batch: int = 2,
    length: int = 128,
    written: int = 128,
    optimizer: Optimizer = "sgd",
    **settings: Any,
) -> Architecture:
    """An encoder of ids with a decoder of ids."""
    return Architecture(
        family,
        model,
        reference,
        inputs={
            "input_ids": ids(vocabulary, batch, length),
            "decoder_input_ids": ids(vocabulary, batch, written),
        },
        targets={"labels": ids(vocabulary, batch, written)},
        sizes=sizes,
        optimizer=optimizer,
        settings=settings,
    )


def images(
    family: str,
    model: str,
    reference: str,
    sizes: tuple[Size, ...],
    *,
    batch: int = 16,
    size: int = 224,
    classes: int = 1000,
    optimizer: Optimizer = "sgd",
    **settings: Any,
) -> Architecture:
    """A classifier of images."""
    return Architecture(
        family,
        model,
        reference,
        inputs={"pixel_values": reals(batch, 3, size, size)},
        targets={"labels": ids(classes, batch)},
        sizes=sizes,
        optimizer=optimizer,
        settings={"num_labels": classes, **settings},
    )


def sound(
    family: str,
    model: str,
    reference: str,
    sizes: tuple[Size, ...],
    *,
    letters: int,
    frames: int,
    inputs: Mapping[str, Input],
    optimizer: Optimizer = "sgd",
    **settings: Any,
) -> Architecture:
    """A recogniser of speech that gives a letter per frame; letters are aligned with frames."""
    batch = next(iter(inputs.values())).shape[0]
    return Architecture(
        family,
        model,
        reference,
        inputs=inputs,
        targets={"letters": ids(letters, batch, frames)},
        loss=aligned,
        sizes=sizes,
        optimizer=optimizer,
        settings={"vocab_size": letters, **settings},
    )


def aligned(output: Any, targets: Mapping[str, Tensor]) -> Tensor:
    """Cross-entropy of one letter per frame."""
    return token_loss(output.logits, targets["letters"])


def matched(output: Any, targets: Mapping[str, Tensor]) -> Tensor:
    """Detection with queries matched beforehand: cross-entropy of classes, absolute differences of boxes."""
    return token_loss(output.logits, targets["objects"]) + 5 * F.l1_loss(output.pred_boxes, targets["boxes"])


def masked(output: Any, targets: Mapping[str, Tensor]) -> Tensor:
    """Segmentation with queries matched beforehand: cross-entropy of classes and of each query's mask."""
    masks = F.binary_cross_entropy_with_logits(output.masks_queries_logits, targets["masks"])
    return token_loss(output.class_queries_logits, targets["objects"]) + masks


def depth(output: Any, targets: Mapping[str, Tensor]) -> Tensor:
    """Absolute differences of depths."""
    return F.l1_loss(output.predicted_depth, targets["depth"])


def contrasted(output: Any, targets: Mapping[str, Tensor]) -> Tensor:
    """Cross-entropy of matching images and texts, in both directions."""
    pairs = targets["pairs"]
    images, texts = output.logits_per_image, output.logits_per_text
    return (F.cross_entropy(images, pairs) + F.cross_entropy(texts, pairs)) / 2


def stated(output: Any, targets: Mapping[str, Tensor]) -> Tensor:
    """The network's own loss, which needs no targets beside its arguments."""
    return output.loss
