"""Learned agents that ``opgym reproduce regal`` puts beside the baselines: shipped ones, and those of one's own."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ....agents import Learner, Solver, is_learner, names
from ....agents.networks.saved import WEIGHTS_FILE
from ....agents.networks.shelf import NONE
from ....agents.regal.base import SHELF, ProposalLearner
from ....agents.registry import solver_class
from ....agents.saved import AGENT_FILE, load, saved_in
from ....conf import agent, agent_names
from ....errors import InvalidProblemError, unknown_id
from ...evaluate.contestants import Contestant, is_solver
from .methods import AGENT, SEEDED_AGENT, Method, starts_of

_TRAINING = re.compile(r"(?P<stem>.+?)-seed[0-9]+")
_NAME = re.compile(r"(?P<name>[\w.-]+)=(?P<given>.+)", re.DOTALL)
_DIGITS = 12


def learned_methods(given: Sequence[str]) -> list[Method]:
    """Columns of learned agents.

    Args:
        given: Each the name of a solver, of stored settings or of weights that come with the package, or the folder of
            a saved learner or of its training; ``NAME=`` before it says what tables call it. Names that differ in an
            ending ``-seedN`` only are trainings of one agent.

    Raises:
        UnknownIdError: No such agent, with the nearest names.
        InvalidProblemError: One is given twice, learns nothing, has learned nothing, or is damaged.
    """
    methods: list[Method] = []
    for text in given:
        method = _method(text)
        for other in methods:
            if method.name == other.name or method.key == other.key:
                what = "share a name" if method.name == other.name else "are the same"
                raise InvalidProblemError(f"agents {other.name!r} and {method.name!r} {what}; give each once")
        methods.append(method)
    return methods


def seeded(method: Method, devices: int) -> Method | None:
    """A learned agent with heuristics' solutions in its first generation.

    ``None`` where it takes none, and for further trainings of an agent, which show how far trainings are apart.
    """
    if method.name != method.training_of or not hasattr(method.solvers[0].make(), "starts"):
        return None
    name = f"{method.name} seeded"
    return replace(method, name=name, kind=SEEDED_AGENT, starts=starts_of(devices), training_of="")


def _method(text: str) -> Method:
    name, given = text, text
    named = _NAME.fullmatch(text)
    if named is not None and not Path(text).exists():
        name, given = named["name"], named["given"]
    contestant = _contestant(name, given)
    solver = contestant.make()
    if not isinstance(solver, Learner):
        raise InvalidProblemError(f"agent {given!r} ({solver.name}) learns nothing: no column for it")
    if not solver.trained:
        raise InvalidProblemError(
            f"agent {given!r} has learned nothing; train it (opgym train agent={solver.name}) and give the folder"
        )
    stem, weights = _TRAINING.fullmatch(name), _named_weights(solver)
    return Method(
        name,
        (contestant,),
        kind=AGENT,
        training_of=stem["stem"] if stem else name,
        training=weights or _digest_of(_saved_in(contestant)) or contestant.digest,
        weights=weights,
    )


def _contestant(name: str, given: str) -> Contestant:
    """What is given, under a name."""
    if is_solver(given):
        return Contestant.of({"solver": given, "name": name})
    if saved_in(Path(given)) is not None:
        return replace(Contestant.of(given), name=name)
    if given in agent_names() or given.endswith(".yaml"):
        return Contestant.of_solver(name, agent(given))
    if given in SHELF.names(
        ablations=True
    ):  # as whoever names them uses them, whatever their training had as options
        solver = load(os.fspath(SHELF.folder_of(given, "") or "")).name
        return Contestant.of({"solver": solver, "options": {"weights": given}, "name": name})
    if os.sep in given or Path(given).exists():
        raise InvalidProblemError(f"agent {given!r}: no folder with {AGENT_FILE}, and none of a training")
    learners = [solver for solver in names() if is_learner(solver_class(solver))]
    raise unknown_id("agent", given, [*learners, *SHELF.names(ablations=True)])


def _named_weights(solver: Solver[Any, Any]) -> str:
    """Digest of the weights that an option of a learner names, and does not hold; empty for others."""
    if not isinstance(solver, ProposalLearner) or solver.learned is not None or solver.weights == NONE:
        return ""
    return _digest_of(SHELF.folder_of(solver.weights, solver.name))


def _saved_in(contestant: Contestant) -> Path | None:
    """The folder of a saved learner; ``None`` for one that is named."""
    return None if contestant.given.startswith("{") else saved_in(Path(contestant.given))


def _digest_of(folder: Path | None) -> str:
    """Of the weights in the folder of a saved learner; empty where there are none."""
    if folder is None or not (folder / WEIGHTS_FILE).is_file():
        return ""
    return hashlib.sha256((folder / WEIGHTS_FILE).read_bytes()).hexdigest()[:_DIGITS]
