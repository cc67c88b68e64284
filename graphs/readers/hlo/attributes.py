"""Reads the attributes that costs depend on: lists of axes, windows, the axes of a convolution."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from math import gcd

_INT = re.compile(r"-?\d{1,18}")
_LABELS = re.compile(r"([0-9bf?]+)_([0-9io?]+)->([0-9bf?]+)")


class BadAttributeError(ValueError):
    """An attribute is missing or is not what its instruction needs."""


@dataclass(frozen=True, slots=True)
class Window:
    """A window that moves over each of its dimensions.

    Attributes:
        size: Taps.
        stride: Step between two places.
        pad_low: Elements before the first; negative ones cut the input.
        base_dilation: Distance of neighbouring elements of the input (``lhs_dilate``).
        dilation: Distance of neighbouring taps (``rhs_dilate``).
    """

    size: tuple[int, ...]
    stride: tuple[int, ...]
    pad_low: tuple[int, ...]
    base_dilation: tuple[int, ...]
    dilation: tuple[int, ...]

    def taps(self, axis: int, places: int) -> int:
        """Products along one axis: taps at all places, those between the elements of a dilated input left out.

        Padding counts as elements do.
        """
        size, base = self.size[axis], self.base_dilation[axis]
        if base == 1:
            return places * size
        return _solutions(places, size, self.stride[axis], self.dilation[axis], self.pad_low[axis], base)


def _solutions(places: int, taps: int, stride: int, dilation: int, offset: int, base: int) -> int:
    """Pairs ``i < places``, ``k < taps`` with ``i * stride + k * dilation = offset`` modulo ``base``."""
    common = gcd(dilation, base)
    shared = gcd(stride, common)
    if offset % shared:
        return 0
    # places that allow a solution are i = first + j * step
    step = common // shared
    first = offset // shared * pow(stride // shared, -1, step) % step if step > 1 else 0
    count = max(0, -(-(places - first) // step))
    # there k is (start + j * slope) modulo the period, and every further period
    period = base // common
    inverse = pow(dilation // common, -1, period) if period > 1 else 0
    start = (offset - stride * first) // common * inverse % period
    slope = -(stride // shared) * inverse % period
    whole, rest = divmod(taps, period)
    within = _floor_sum(count, period, slope, start) - _floor_sum(count, period, slope, start - rest)
    return count * whole + within


def _floor_sum(count: int, divisor: int, slope: int, start: int) -> int:
    """Sum of ``(slope * j + start) // divisor`` for ``j < count``, in logarithmic time."""
    total = 0
    sign = 1
    while count > 0:
        quotient, slope = divmod(slope, divisor)
        total += sign * quotient * (count * (count - 1) // 2)
        quotient, start = divmod(start, divisor)
        total += sign * quotient * count
        last = slope * (count - 1) + start
        if last < divisor:
            break
        # count the lattice points below the line along the other axis
        rows = last // divisor
        total += sign * count * rows
        sign = -sign
        count, divisor, slope, start = rows, slope, divisor, divisor - start - 1 + slope
    return total


def ints(attributes: Mapping[str, str], key: str) -> tuple[int, ...]:
    """A list of whole numbers such as ``{0,1}``; empty where it is absent.

    Raises:
        BadAttributeError: It is no such list.
    """
    text = attributes.get(key)
    if text is None:
        return ()
    inner = text.strip().removeprefix("{").removesuffix("}").strip()
    parts = [part.strip() for part in inner.split(",")] if inner else []
    if any(_INT.fullmatch(part) is None for part in parts):
        raise BadAttributeError(f"{key}={text[:60]!r} is no list of whole numbers")
    return tuple(int(part) for part in parts)


def axes(attributes: Mapping[str, str], key: str, rank: int) -> tuple[int, ...]:
    """A list of different axes of a shape of so many axes.

    Raises:
        BadAttributeError: It names another one, or one twice.
    """
    found = ints(attributes, key)
    if any(not 0 <= axis < rank for axis in found) or len(set(found)) < len(found):
        raise BadAttributeError(f"{key}={attributes[key][:60]!r} of a shape of {rank} axes")
    return found


def whole(attributes: Mapping[str, str], key: str, default: int) -> int:
    """A number of at least 1.

    Raises:
        BadAttributeError: It is none.
    """
    text = attributes.get(key)
    if text is None:
        return default
    if _INT.fullmatch(text) is None or int(text) < 1:
        raise BadAttributeError(f"{key}={text[:60]!r}; expected a number of at least 1")
    return int(text)


def window(attributes: Mapping[str, str]) -> Window:
    """The window of a convolution or a pooling; one without dimensions where it is absent.

    Raises:
        BadAttributeError: It is malformed.
    """
    text = attributes.get("window")
    fields: dict[str, list[str]] = {}
    if text is not None:
        for word in text.strip("{} ").split():
            key, _, values = word.partition("=")
            fields[key] = values.split("x")
    try:
        size = [int(v[:18]) for v in fields.get("size", [])]
        rank = len(size)
        stride = [int(v[:18]) for v in fields.get("stride", ["1"] * rank)]
        pad = [int(v.split("_")[0][:18]) for v in fields.get("pad", ["0_0"] * rank)]
        base = [int(v[:18]) for v in fields.get("lhs_dilate", ["1"] * rank)]
        dilation = [int(v[:18]) for v in fields.get("rhs_dilate", ["1"] * rank)]
    except ValueError:
        raise BadAttributeError(f"window={(text or '')[:60]!r} is malformed") from None
    if any(len(values) != rank for values in (stride, pad, base, dilation)):
        raise BadAttributeError(f"window={(text or '')[:60]!r} has lists of different lengths")
    if any(v < 0 for v in size) or any(v < 1 for v in (*stride, *base, *dilation)):
        raise BadAttributeError(f"window={(text or '')[:60]!r} has a size, stride or dilation that is none")
    return Window(tuple(size), tuple(stride), tuple(pad), tuple(base), tuple(dilation))


def dim_labels(attributes: Mapping[str, str]) -> tuple[str, str, str]:
    """Labels of the axes of input, kernel and output of a convolution, e.g. ``b01f``, ``01io``, ``b01f``.

    Raises:
        BadAttributeError: They are missing or malformed.
    """
    text = attributes.get("dim_labels", "")
    match = _LABELS.fullmatch(text)
    if match is None:
        raise BadAttributeError(f"dim_labels={text[:60]!r}; expected labels such as b01f_01io->b01f")
    left, kernel, out = match.groups()
    for labels, pair in ((left, "bf"), (kernel, "io"), (out, "bf")):
        if any(labels.count(label) != 1 for label in pair) or len(set(labels) - {"?"}) < len(
            labels.replace("?", "")
        ):
            raise BadAttributeError(f"dim_labels={text[:60]!r} name an axis twice or leave one out")
    return left, kernel, out
