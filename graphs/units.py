"""Times and sizes as people write them."""

from __future__ import annotations

import math

_TIMES = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns"))
_SIZES = ((2.0**40, "TiB"), (2.0**30, "GiB"), (2.0**20, "MiB"), (2.0**10, "KiB"), (1.0, "B"))


def format_ns(value_ns: float) -> str:
    """A time, e.g. ``"12.4 ms"``; ``"-"`` where there is none (infinity, NaN)."""
    return _format(value_ns, _TIMES, 4)


def format_bytes(value_bytes: float) -> str:
    """A size in binary units, e.g. ``"312 MiB"``; ``"-"`` where there is none (infinity, NaN)."""
    return _format(value_bytes, _SIZES, 3)


def format_value(value: float, unit: str) -> str:
    """The value of an outcome in its unit (``"ns"``, ``"ms"`` or ``"bytes"``)."""
    return format_bytes(value) if unit == "bytes" else format_ns(value * 1e6 if unit == "ms" else value)


def size_unit(largest_bytes: float) -> tuple[float, str]:
    """Bytes per unit, and the unit, for numbers up to ``largest_bytes`` side by side."""
    return _unit(largest_bytes, _SIZES, 3)


def value_unit(smallest: float, unit: str) -> tuple[float, str]:
    """What to divide values of an outcome by, and the unit that leaves at least 1 of the smallest."""
    if unit == "bytes":
        return _unit(smallest, _SIZES, 3)
    per_unit = 1e6 if unit == "ms" else 1.0
    scale, name = _unit(smallest * per_unit, _TIMES, 4)
    return scale / per_unit, name


def significant(number: float, digits: int) -> str:
    """A number with some significant digits, never in scientific notation: ``"1,010"``, ``"7.12"``."""
    text = f"{number:.{digits}g}"
    return f"{float(text):,.0f}" if "e+" in text else text


def _format(value: float, scales: tuple[tuple[float, str], ...], digits: int) -> str:
    if not math.isfinite(value):
        return "-"
    scale, unit = _unit(abs(value), scales, digits)
    return f"{significant(value / scale, digits)} {unit}"


def _unit(value: float, scales: tuple[tuple[float, str], ...], digits: int) -> tuple[float, str]:
    """The largest unit that leaves at least 1; 999.96 is printed as 1,000 and belongs to the next one."""
    return next((s for s in scales if float(f"{value / s[0]:.{digits}g}") >= 1), scales[-1])
