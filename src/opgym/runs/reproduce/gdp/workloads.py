"""The problems of ``opgym reproduce gdp``: GDP's workloads, held-out ones, and an unscreened sample."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from .... import datasets
from ....datasets.reference import lines
from ....datasets.suites import Row
from ....errors import InvalidProblemError
from ...evaluate.cases import Case, cases_of_suite

SUITE, UNSCREENED = "gdp", "placement-unscreened"
#: Where there is most to learn: these rows, over PCIe, get several seeds. (The study that found them had NASNet, which
#: the suite has not: AmoebaNet stands for it.)
CORE = (
    "rnnlm-2l", "rnnlm-4l", "gnmt-2l", "gnmt-4l", "gnmt-8l", "transformer-xl-4l", "inception-v3-b32", "amoebanet-a",
)  # fmt: skip
#: Rows of the ablations, over PCIe: one of each kind of network, and all of them core rows.
ABLATED = ("rnnlm-4l", "gnmt-4l", "transformer-xl-4l", "inception-v3-b32")
#: The protocol whose graphs are held out, whatever was trained on.
HELD_OUT = "unseen-size"
SEEDS = (0, 1, 2)
PCIE, NVLINK = "PCIe", "NVLink"


@dataclass(frozen=True)
class Workload:
    """One row of a suite.

    Attributes:
        case: The problem, with what is known of it.
        ops: Of its graph.
    """

    case: Case
    ops: int

    @property
    def row(self) -> Row:
        """The row of the suite."""
        return self.case.row

    @property
    def name(self) -> str:
        """What stored rows call it."""
        return self.row.name

    @property
    def graph(self) -> str:
        """Its graph without what all graphs of the suite have in their names."""
        return self.row.graph.removeprefix("zoo/").removesuffix("-train")

    @property
    def label(self) -> str:
        """What tables call it."""
        return f"{self.graph} on {self.row.cluster}"

    @property
    def brief(self) -> str:
        """The same where there is little room, with a star where hardly anything is to be gained."""
        return f"{self.graph}, {self.row.cluster.partition('x')[0]} {self.link}{' *' * self.control}"

    @property
    def link(self) -> str:
        """What connects its devices."""
        return NVLINK if self.row.cluster.endswith("@nvlink") else PCIE

    @property
    def core(self) -> bool:
        """Whether it gets several seeds."""
        return self.case.suite == SUITE and self.link == PCIE and self.graph in CORE

    @property
    def control(self) -> bool:
        """Whether hardly anything is to be gained there."""
        return self.row.role == "control"

    def seeds(self, most: int) -> tuple[int, ...]:
        """Seeds of what draws random numbers.

        Args:
            most: Of rows with several.
        """
        return SEEDS[: most if self.core else 1]


@cache
def workloads() -> tuple[Workload, ...]:
    """All rows of GDP's workloads."""
    return _of_suite(SUITE)


@cache
def held_out() -> tuple[Workload, ...]:
    """Rows whose graphs both protocols hold out."""
    test = set(datasets.protocol(HELD_OUT).test)
    return tuple(workload for workload in workloads() if workload.row.graph in test)


@cache
def ablated() -> tuple[Workload, ...]:
    """Rows of the ablations."""
    return tuple(w for w in workloads() if w.graph in ABLATED and w.link == PCIE)


@cache
def unscreened() -> tuple[Workload, ...]:
    """The test of a sample of the zoo at which nobody looked before."""
    return _of_suite(UNSCREENED, "test")


def chosen(found: Sequence[Workload], texts: Sequence[str]) -> list[Workload]:
    """Those whose name has one of some texts in it; all without a text."""
    return [each for each in found if not texts or any(text in each.name for text in texts)]


def require_rows(texts: Sequence[str]) -> None:
    """Refuses a text that no row has in its name.

    Raises:
        InvalidProblemError: Naming it.
    """
    for text in texts:
        if not chosen((*workloads(), *unscreened()), (text,)):
            raise InvalidProblemError(
                f"no row of {SUITE}, and none of the test of {UNSCREENED}, has {text!r:.100} in its name; "
                f"`opgym datasets list --suite {SUITE}` lists them"
            )


def _of_suite(suite: str, part: str | None = None) -> tuple[Workload, ...]:
    known = lines(suite)
    return tuple(Workload(case, known[case.row.name].ops) for case in cases_of_suite(suite, part=part))
