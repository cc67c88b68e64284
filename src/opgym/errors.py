"""The errors of opgym: a message says what was given, what was expected and what to do.

Every error a user can cause derives from :class:`OpgymError`; the command line prints its message and exits with 2,
or with 1 where something ran and failed (:class:`ExecutionFailedError`).
"""


class OpgymError(Exception):
    """Base of all errors that opgym raises on purpose."""


class InvalidGraphError(OpgymError, ValueError):
    """A computation graph breaks a rule: a cycle, two producers of one tensor, a negative size."""


class InvalidClusterError(OpgymError, ValueError):
    """A cluster, device profile or link is unknown or impossible."""


class InvalidCostError(OpgymError, ValueError):
    """A cost table does not fit the graph, or holds NaN or a negative time."""


class InvalidSolutionError(OpgymError, ValueError):
    """A solution or solution file cannot be read at all (a readable but illegal one gets a verdict instead)."""


class InvalidProblemError(OpgymError, ValueError):
    """A problem cannot be posed: no device can hold the largest op, an objective does not exist."""


class ImportFailedError(OpgymError, ValueError):
    """A model file cannot be turned into a graph."""


class InvalidDatasetError(OpgymError, ValueError):
    """A manifest or a suite is damaged, or a definition of a dataset's graph breaks a rule."""


class InvalidRunError(OpgymError, ValueError):
    """A file of a training's folder is damaged, or of another training than the one that goes on."""


class ExecutionFailedError(OpgymError, RuntimeError):
    """Something that was to run for real did not, or did not end in time."""


class RunInUseError(OpgymError, RuntimeError):
    """Another process works in the folder of a run: bad input, as another folder would do."""


class UnknownIdError(OpgymError, KeyError):
    """An id (dataset, solver, profile, link) does not exist; the message suggests the nearest ones."""

    def __str__(self) -> str:  # KeyError would print the message's repr
        return str(self.args[0]) if self.args else ""


class MissingExtraError(OpgymError, ImportError):
    """An optional package is not installed; the message names the extra that brings it."""


#: Most ids that a message lists.
_MOST_SHOWN = 20


def unknown_id(what: str, given: str, known: list[str]) -> UnknownIdError:
    """Builds the error for an unknown id, with the nearest known ones.

    Args:
        what: What kind of id it is, e.g. ``"solver"``.
        given: The id that was asked for.
        known: All ids that exist.
    """
    import difflib

    lower = {name.lower(): name for name in known}
    near = [lower[name] for name in difflib.get_close_matches(given.lower(), list(lower), n=3, cutoff=0.5)]
    if near:
        hint = f"did you mean {' or '.join(near)}?"
    else:
        shown = sorted(known)[:_MOST_SHOWN]
        hint = f"known: {', '.join(shown)}" + (
            f" and {len(known) - len(shown)} more" if len(known) > len(shown) else ""
        )
    return UnknownIdError(f"unknown {what} {given!r}; {hint}")
