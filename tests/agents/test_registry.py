"""Solvers by name, ours and those of other packages."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from typing import ClassVar

import numpy as np
import pytest

from opgym import agents
from opgym.agents import registry
from opgym.errors import OpgymError, UnknownIdError
from opgym.problems import Placement

from .edge_cases import EDGE_CASES


@dataclass(frozen=True)
class EverythingOnDevice(agents.PlacementSolver):
    """A solver as another package would bring it."""

    device: int = 0

    name: ClassVar[str] = "everything-on-device"
    summary: ClassVar[str] = "for the tests"

    def _search(self, problem, evaluator, rng):
        evaluator.evaluate(Placement(np.full(problem.graph.num_ops, self.device)))
        return agents.Remark("as told")


class NoSolver:
    name = "no-solver"


@pytest.fixture
def installed(monkeypatch):
    """Makes entry points appear as if packages that have them were installed."""

    def install(**values: str) -> None:
        points = [EntryPoint(name, value, registry.ENTRY_POINT_GROUP) for name, value in values.items()]
        monkeypatch.setattr(
            registry, "entry_points", lambda *, group: points if group == registry.ENTRY_POINT_GROUP else []
        )
        monkeypatch.setattr(registry, "_registry", dict(registry._registry))
        registry._load_all.cache_clear()

    yield install
    monkeypatch.undo()
    registry._load_all.cache_clear()


def test_our_solvers_are_known_by_their_names():
    assert agents.names() == [
        "single", "random", "human-expert", "metis", "m-topo", "critical-path", "m-etf", "heft", "m-sct",
        "partition-dfs", "dp", "cp-sat", "annealing", "annealing-metis", "brkga", "idrs", "pair-annealing", "ppo",
        "maskable-ppo", "a2c", "dqn", "regal", "gas", "regal-plus", "gdp", "hdp",
        "placeto", "gdp-plus", "gdp-plus-100", "gdp-plus-anneal", "gdp-plus-finetune",
    ]  # fmt: skip


def test_solvers_are_known_without_their_heavy_packages():
    code = (
        "import sys, opgym.agents as a; a.names(); print({'torch', 'ortools', 'matplotlib'} & {*sys.modules})"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout == "set()\n"


def test_a_solver_of_another_package_registers(installed):
    installed(theirs=f"{__name__}:EverythingOnDevice")
    assert agents.names()[-1] == "everything-on-device"
    assert registry.family("everything-on-device") == ""
    result = agents.make("everything-on-device", device=1).solve(EDGE_CASES["no_edges"]("step_time"))
    assert result.solver == "everything-on-device"
    assert result.solution.device.tolist() == [1] * 5
    assert (result.outcome.value, result.note) == (15, "as told")


def test_a_solver_has_the_family_of_its_folder():
    families = {name: registry.family(name) for name in ("metis", "post-order", "dp", "annealing", "beam")}
    assert families == {
        "metis": "heuristics", "post-order": "heuristics", "dp": registry.EXACT,
        "annealing": "search", "beam": "search",
    }  # fmt: skip
    with pytest.raises(UnknownIdError):
        registry.family("no-such-solver")


def test_what_is_no_solver_is_refused(installed):
    installed(theirs=f"{__name__}:NoSolver")
    with pytest.raises(OpgymError, match=r"entry point 'theirs' in 'opgym.solvers' is no Solver class"):
        agents.names()


def test_two_solvers_of_one_name_are_refused():
    @dataclass(frozen=True)
    class Impostor(EverythingOnDevice):
        name: ClassVar[str] = "m-etf"

    with pytest.raises(OpgymError, match=r"two solvers are named 'm-etf': .*m_etf and .*test_registry"):
        agents.register(Impostor)


def test_registering_the_same_class_again_changes_nothing():
    before = agents.names()
    assert agents.register(registry.solver_class("m-etf")) is registry.solver_class("m-etf")
    assert agents.names() == before


@pytest.mark.parametrize(
    ("given", "nearest"), [("m-eft", "m-etf"), ("Annealing", "annealing"), ("critical_path", "critical-path")]
)
def test_an_unknown_name_suggests_the_nearest(given, nearest):
    with pytest.raises(UnknownIdError, match=f"unknown solver '{given}'; did you mean .*{nearest}"):
        agents.make(given)


def test_a_name_like_no_other_lists_what_is_known():
    with pytest.raises(
        UnknownIdError, match=r"unknown solver 'zzzz'; known: .*annealing.*gdp.* and [1-9][0-9]* more$"
    ):
        agents.make("zzzz")


def test_an_unknown_option_suggests_the_nearest():
    with pytest.raises(
        UnknownIdError, match="unknown option of solver 'annealing' 'evaluation'; did you mean evaluations"
    ):
        agents.make("annealing", evaluation=3)


def test_options_are_fields():
    assert agents.make("annealing", evaluations=7, temperature=0.1).temperature == 0.1
    assert agents.make("annealing") == agents.make("annealing")


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("annealing", {"evaluations": 0}, "evaluations = 0; expected a whole number, 1 or more"),
        ("annealing-metis", {"temperature": -1.0}, "temperature = -1.0; expected a finite share"),
        ("annealing", {"temperature": float("nan")}, "temperature = nan; expected a finite share"),
        ("random", {"evaluations": -3}, "-3 evaluations; expected at least 1"),
    ],
)
def test_impossible_options_are_refused(name, options, message):
    with pytest.raises(OpgymError, match=message):
        agents.make(name, **options)


def test_options_of_a_file_have_tuples_for_lists_however_deep():
    assert registry.frozen({"a": [1, [2, {"b": [3]}]], "c": "d"}) == {"a": (1, (2, {"b": (3,)})), "c": "d"}
