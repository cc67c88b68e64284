"""``opgym info``, ``solvers``, ``benchmark simulator``."""

import re
from collections.abc import Callable
from importlib import metadata
from typing import Any

import numpy as np
import pytest

from opgym import agents
from opgym.cli.info import installation
from opgym.problems import SchedulingProblem

from .conftest import Run


def test_info_knows_packages_and_extras(
    monkeypatch: pytest.MonkeyPatch, rows: Callable[..., Any], opgym: Run
) -> None:
    requirements = [
        "numpy>=2.0",
        'matplotlib>=3.10; extra == "plot"',
        "opgym[plot,agents]; extra == 'dev'",
        'no-such-package>=1; extra == "dev"',
        'numpy>=1; extra == "dev"',
    ]
    monkeypatch.setattr(metadata, "requires", lambda name: requirements)
    facts = rows("info")
    assert facts == installation()
    packages = {package["name"]: package for package in facts["packages"]}
    assert set(packages) == {"numpy", "matplotlib", "no-such-package"}
    assert packages["numpy"] == {"name": "numpy", "version": np.__version__, "extra": None}
    assert packages["no-such-package"] == {"name": "no-such-package", "version": None, "extra": "dev"}
    assert re.search(r"no-such-package +not installed +dev", opgym("info").stdout)


def test_info_names_the_machine(rows: Callable[..., Any]) -> None:
    facts = rows("info")
    assert facts["opgym"] == metadata.version("opgym")
    assert facts["cpus"] >= 1
    assert facts["core"].startswith("_core")
    assert facts["python"].split()[1].count(".") == 2


def test_solvers(rows: Callable[..., Any], opgym: Run) -> None:
    found = rows("solvers")
    placers, schedulers = agents.names(), agents.names(SchedulingProblem)
    assert [row["name"] for row in found] == [*placers, *(name for name in schedulers if name not in placers)]
    by_name = {row["name"]: row for row in found}
    assert {name for name, row in by_name.items() if "placement" in row["problems"]} == set(placers)
    assert {name for name, row in by_name.items() if "order" in row["problems"]} == set(schedulers)
    assert by_name["post-order"]["objectives"] == []
    assert by_name["dp"]["objectives"] == ["max_load"]
    annealing = next(row for row in found if row["name"] == "annealing")
    assert annealing["anytime"] is True
    assert "step_time" in annealing["objectives"]
    text = opgym("solvers").stdout
    assert all(row["name"] in text for row in found)


def test_benchmark_rows_pass_through(
    monkeypatch: pytest.MonkeyPatch, rows: Callable[..., Any], opgym: Run
) -> None:
    """The measuring itself has its own tests; here it is replaced, as it takes a minute."""
    from opgym.benchmark import simulator

    row = {"case": "a case", "ops": 1000, "devices": 4, "ns_per_op": 80.25,
           "ratio_to_topological_sort": 20.0, "ratio_to_reference": None, "bar": 30.0, "within_bar": True}  # fmt: skip
    monkeypatch.setattr(simulator, "run", lambda progress: [row])
    assert rows("benchmark", "simulator") == [row]
    assert re.search(
        r"a case +1,000 +4 +80\.2 +20\.00 +- +30\.00 +yes", opgym("benchmark", "simulator").stdout
    )
