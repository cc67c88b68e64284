"""Docstrings of learners that list every option, wherever it is defined."""

from __future__ import annotations

import inspect
from typing import TypeVar

_T = TypeVar("_T", bound=type)

_HEADING = "\n\nAttributes:\n"


def lists_all_options(learner: _T) -> _T:
    """Class decorator: adds to the docstring what the bases say of all learners, and their options behind its own."""
    if learner.__doc__ is None:  # python -OO
        return learner
    family, all_families = learner.__module__.rpartition(".")[0], __name__.rpartition(".")[0]
    texts = _texts(learner, family)
    about = [text.partition(_HEADING)[0] for text in texts]
    shared = _texts(learner, all_families)
    options = [text.partition(_HEADING)[2] for text in (*texts, *shared)]
    # The last base of a family, or the one that families share, goes on to say how all of them solve.
    common = (about if len(about) > 1 else [shared[0].partition(_HEADING)[0]])[-1].partition("\n\n")[2]
    learner.__doc__ = f"{about[0]}\n\n{common}{_HEADING}" + "\n".join(filter(None, options))
    return learner


def _texts(learner: type, package: str) -> list[str]:
    """Docstrings of a class and of those of its bases that are in a package."""
    return [
        inspect.cleandoc(c.__doc__)
        for c in learner.__mro__
        if c.__module__.startswith(f"{package}.") and c.__doc__
    ]
