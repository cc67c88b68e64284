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
    texts = [
        inspect.cleandoc(c.__doc__)
        for c in learner.__mro__
        if c.__module__.startswith(learner.__module__.rpartition(".")[0]) and c.__doc__
    ]
    about = [text.partition(_HEADING)[0] for text in texts]
    options = [text.partition(_HEADING)[2] for text in texts]
    # The last base, which is that of all learners, goes on to say how they solve.
    common = about[-1].partition("\n\n")[2]
    learner.__doc__ = f"{about[0]}\n\n{common}{_HEADING}" + "\n".join(filter(None, options))
    return learner
