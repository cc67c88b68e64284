"""Whether heuristics still find what reference lines say: ``opgym datasets verify --full``."""

from __future__ import annotations

from ...datasets.reference import Line
from .reference import Problem, Search, heuristic_names, run_search


def wrong_heuristics(problem: Problem, line: Line) -> list[str]:
    """Runs the heuristics of a line again; where they find something else than it says."""
    wrong = []
    if set(line.heuristics) != set(heuristic_names(type(problem))):
        wrong.append(f"has columns of other heuristics than there are: {', '.join(sorted(line.heuristics))}")
    for name in heuristic_names(type(problem)):
        if name not in line.heuristics:
            continue
        result = run_search(problem, Search(name), None)
        found = None if result is None or not result.outcome.ok else float(result.outcome.value)
        if found != line.heuristics[name]:
            wrong.append(f"{name} finds {found}; the line says {line.heuristics[name]}")
    return wrong
