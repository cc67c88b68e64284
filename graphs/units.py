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


def _format(value: float, scales: tuple[tuple[float, str], ...], digits: int) -> str:
    """Some significant digits in the largest unit that leaves at least 1."""
    if not math.isfinite(value):
        return "-"
    # 999.96 rounds to 1,000 of a unit and belongs to the next one: compare what will be printed.
    scale, unit = next((s for s in scales if float(f"{abs(value) / s[0]:.{digits}g}") >= 1), scales[-1])
    text = f"{value / scale:.{digits}g}"
    return f"{float(text):,.0f} {unit}" if "e" in text else f"{text} {unit}"
