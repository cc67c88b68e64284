"""Suites: named lists of problems, each a graph, a cluster and an objective; and what may be trained on.

>>> from opgym import datasets
>>> rows = datasets.suite("gdp").rows  # doctest: +SKIP
>>> rows[0].problem()  # doctest: +SKIP
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from ...errors import unknown_id
from .generated import Generated
from .hold_out import Protocol
from .problem_list import POPULATIONS, Row, Suite
from .screening import Candidate, Screening

#: Where the files are; each is named after what it holds.
FOLDER = Path(__file__).parent
SUITES, PROTOCOLS = FOLDER / "lists", FOLDER / "protocols"

__all__ = [
    "POPULATIONS",
    "PROTOCOLS",
    "SUITES",
    "Candidate",
    "Generated",
    "Protocol",
    "Row",
    "Screening",
    "Suite",
    "protocol",
    "protocol_names",
    "suite",
    "suite_names",
]


def suite_names() -> list[str]:
    """Names of all suites."""
    return sorted(path.stem for path in SUITES.glob("*.json"))


def protocol_names() -> list[str]:
    """Names of all hold-out protocols."""
    return sorted(path.stem for path in PROTOCOLS.glob("*.json"))


@cache
def suite(name: str) -> Suite:
    """A suite.

    Raises:
        UnknownIdError: With the nearest names.
        InvalidDatasetError: Its file is damaged.
    """
    if name not in suite_names():
        raise unknown_id("suite", name, suite_names())
    return Suite.load(SUITES / f"{name}.json")


@cache
def protocol(name: str) -> Protocol:
    """A hold-out protocol.

    Raises:
        UnknownIdError: With the nearest names.
        InvalidDatasetError: Its file is damaged.
    """
    if name not in protocol_names():
        raise unknown_id("hold-out protocol", name, protocol_names())
    return Protocol.load(PROTOCOLS / f"{name}.json")
