"""What ``regal-plus`` was asked to reach on random graphs of the test, and whether it does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .table import PAPER

AGENT, POPULATION = "regal-plus", "synthetic"
#: Columns with as many evaluations that it has to beat.
_RIVALS = ("brkga-tuned-5k", "idrs-5k", "key-search-5k")


@dataclass(frozen=True)
class Bar:
    """One thing that was asked for before anything was measured.

    Attributes:
        text: In words.
        task: Of ``opgym reproduce regal``.
        metric: What is compared.
        least: What it has to exceed, as a share.
        clearly: Whether the whole interval has to.
    """

    text: str
    task: str
    metric: str
    least: float = 0.0
    clearly: bool = True

    def held_by(self, line: Mapping[str, Any]) -> bool:
        """Whether a measured figure reaches it."""
        reached = line["low"] if self.clearly else line["value"]
        return reached is not None and reached > self.least


BARS = (
    Bar("memory-1: better than `brkga-5k` by more than the paper's 3.56 %, clearly", "memory-1", "improvement",
        PAPER["improvement"]),
    Bar("memory-1: by 6 % (aim)", "memory-1", "improvement", 0.06, clearly=False),
    *(Bar(f"memory-1: clearly better than `{other}`", "memory-1", f"improvement_over:{other}") for other in _RIVALS),
    Bar("memory-2: better than `brkga-5k` by 8 % (aim)", "memory-2", "improvement", 0.08, clearly=False),
    *(Bar(f"memory-2: clearly better than `{other}`", "memory-2", f"improvement_over:{other}") for other in _RIVALS),
)  # fmt: skip


def rows(lines: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[tuple[str, str, str]]:
    """Each bar, what was measured in per cent with its interval, and whether it is held.

    Args:
        lines: Of each task that is measured, what is reported of it.
    """
    found = []
    for bar in BARS:
        measured = [
            line
            for line in lines.get(bar.task, ())
            if (line["task"], line["method"], line["metric"])
            == (f"{bar.task}/{POPULATION}", AGENT, bar.metric)
        ]
        if not measured:
            found.append((bar.text, "-", "not measured yet"))
            continue
        [line] = measured
        interval = "" if line["low"] is None else f" [{100 * line['low']:.1f}, {100 * line['high']:.1f}]"
        found.append((bar.text, f"{100 * line['value']:.1f}{interval}", "yes" if bar.held_by(line) else "no"))
    return found
