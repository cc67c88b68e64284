"""What a report says of a section, as plain data."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...statistics import (
    LEAST_CLUSTERS,
    Interval,
    bootstrap_interquartile_mean,
    geometric_mean,
    performance_profile,
    probability_of_improvement,
)
from ..evaluate.result_tables import FAILED, NOT_APPLICABLE
from .sections import Section

#: A run within this factor of the best is as good as it for most purposes.
CLOSE = 1.01
#: Points of a curve.
POINTS = 100
#: Largest factor of a profile.
MOST_FACTOR = 10.0
QUARTILES = (0.25, 0.5, 0.75)

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class AnytimeCurve:
    """How good the best solution so far is, over problems.

    Attributes:
        spent: What had been spent, ``[points] float``.
        ratio: Quartiles over problems of the ratio to the best, the median over seeds standing for each problem,
            ``[3, points] float``; infinity where too few problems have a solution.
    """

    spent: Floats
    ratio: Floats


def document(section: Section) -> dict[str, Any]:
    """All figures of a section.

    Returns:
        ``suite``, ``population``, ``objective``, ``budget``, ``seconds_limit``; ``problems``, ``clusters``,
        ``left_out``, ``without_best_known``, ``solved_by_all``; ``agents``, ``pairs``, ``rows``, ``profile``. Intervals
        are ``{estimate, low, high, clusters}``, whose ends are ``None`` below ``LEAST_CLUSTERS`` clusters.
    """
    ranks = ranking(section)
    return {
        "suite": section.suite,
        "population": section.population,
        "objective": section.objective,
        "budget": section.budget,
        "seconds_limit": section.seconds_limit,
        "problems": len(section.problems),
        "clusters": len(set(section.clusters)),
        "left_out": section.left_out,
        "without_best_known": sum(problem.best_known is None for problem in section.problems),
        "solved_by_all": int(solved_by_all(section).sum()),
        "agents": [_agent(section, position, ranks) for position in range(len(section.agents))],
        "pairs": _pairs(section),
        "rows": _rows(section, ranks),
        "profile": _profile(section),
    }


# --- Winners ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Rank:
    """Who is best on one problem.

    Attributes:
        best: Position of the agent with the lowest median over seeds; ``None`` where nobody has a solution.
        ties: Positions of all agents whose seeds overlap with those of the best, itself included.
    """

    best: int | None
    ties: tuple[int, ...]


def ranking(section: Section) -> list[Rank]:
    """The best of each problem, and who cannot be told from it.

    The spread of an agent's seeds is its noise: where the worst seed of the best agent is not better than the best seed
    of another one, the two are tied.
    """
    ranks = []
    for problem in range(len(section.problems)):
        runs = [values[problem] for values in section.values]
        medians = [_median(values) for values in runs]
        best = int(np.argmin(medians))
        if np.isinf(medians[best]):
            ranks.append(Rank(None, ()))
            continue
        worst = runs[best].max()
        ties = [
            agent
            for agent, values in enumerate(runs)
            if np.isfinite(values.min()) and (agent == best or values.min() <= worst)
        ]
        ranks.append(Rank(best, tuple(ties)))
    return ranks


def _rows(section: Section, ranks: list[Rank]) -> list[dict[str, Any]]:
    rows = []
    for position, (problem, rank) in enumerate(zip(section.problems, ranks, strict=True)):
        labels = [section.agents[agent].label for agent in rank.ties]
        rows.append(
            {
                "problem": problem.name,
                "unit": problem.unit,
                "bound": problem.bound,
                "best_known": problem.best_known,
                "winner": labels[0] if len(labels) == 1 else None,
                "tied": labels if len(labels) > 1 else [],
                "median": {
                    agent.label: _median(values[position])
                    for agent, values in zip(section.agents, section.values, strict=True)
                },
                "median_ratio": {
                    agent.label: _median(ratios[position])
                    for agent, ratios in zip(section.agents, section.ratios, strict=True)
                },
            }
        )
    return rows


# --- Agents -------------------------------------------------------------------------------------------------


def _agent(section: Section, position: int, ranks: list[Rank]) -> dict[str, Any]:
    agent, ratios = section.agents[position], section.ratios[position]
    solved = solved_by_all(section)
    mean = bootstrap_interquartile_mean(ratios, section.clusters)
    return {
        "agent": agent.label,
        "name": agent.name,
        "options": agent.options,
        "seeds": list(agent.seeds),
        "deterministic": agent.deterministic,
        "feasible": float(np.isfinite(ratios).mean()),
        "interquartile_mean": _told(mean),
        "geometric_mean": geometric_mean(ratios[solved])
        if solved.any() and (ratios[solved] > 0).all()
        else None,
        "close": float(performance_profile(ratios, [CLOSE])[0]),
        "wins": sum(rank.ties == (position,) for rank in ranks),
        "ties": sum(position in rank.ties and len(rank.ties) > 1 for rank in ranks),
        "evaluations": typical(section.column(position, "evaluations")),
        "seconds": typical(section.column(position, "seconds")),
        "not_applicable": section.count(position, "verdict", NOT_APPLICABLE),
        "failed": section.count(position, "verdict", FAILED),
        "trained_before": section.trained_before(position),
        "trained_on_these": section.trained_on_these(position),
    }


def solved_by_all(section: Section) -> NDArray[np.bool_]:
    """Problems with positive ratios of every run of every agent; those that solve none at all are not asked.

    Returns:
        ``[problems] bool``.
    """
    solved = [(np.isfinite(ratios) & (ratios > 0)).all(axis=1) for ratios in section.ratios]
    asked = [each for each, ratios in zip(solved, section.ratios, strict=True) if np.isfinite(ratios).any()]
    found: NDArray[np.bool_] = np.all(asked or solved, axis=0)
    return found


def _pairs(section: Section) -> list[dict[str, Any]]:
    """For every two agents how often the first is better."""
    return [
        {
            "first": section.agents[a].label,
            "second": section.agents[b].label,
            "first_is_better": _told(
                probability_of_improvement(section.values[a], section.values[b], section.clusters)
            ),
        }
        for a in range(len(section.agents))
        for b in range(a + 1, len(section.agents))
    ]


def _told(interval: Interval) -> dict[str, Any]:
    """An interval without ends where too few clusters are behind it."""
    found = asdict(interval)
    return found | {"low": None, "high": None} if interval.clusters < LEAST_CLUSTERS else found


def _profile(section: Section) -> dict[str, Any]:
    """Shares of runs within factors of the best."""
    finite = np.concatenate([ratios[np.isfinite(ratios)] for ratios in section.ratios])
    least = max(min(1.0, finite.min(initial=1.0)), 1 / MOST_FACTOR)
    most = max(min(MOST_FACTOR, finite.max(initial=1.0)), 1.1)
    # Differences are where the factor is near 1.
    above = np.geomspace(1e-3, most - 1, POINTS)
    above[-1] = most - 1
    factors = np.unique([least, 1.0, *(1 + above)])
    return {
        "factor": factors.tolist(),
        "share": {
            agent.label: performance_profile(ratios, factors).tolist()
            for agent, ratios in zip(section.agents, section.ratios, strict=True)
        },
    }


# --- Curves -------------------------------------------------------------------------------------------------


def anytime_curves(section: Section, against: str) -> list[AnytimeCurve]:
    """The curve of each agent.

    Args:
        section: What is compared.
        against: ``"evaluations"`` or ``"seconds"``.
    """
    column = ("evaluations", "seconds").index(against)
    used = [section.column(agent, against) for agent in range(len(section.agents))]
    most = max((float(np.nanmax(spent)) for spent in used if np.isfinite(spent).any()), default=1.0)
    points = [point for rows in section.curves for row in rows for curve in row for point in curve]
    least = max(min((point[column] for point in points), default=1.0), 1e-6)
    spent = np.geomspace(least, max(most, 2 * least), POINTS)
    if against == "evaluations":
        spent = np.unique(np.round(spent))
    curves = []
    for rows in section.curves:
        ratio = np.empty((len(rows), len(spent)))
        for problem, row in enumerate(rows):
            values = np.array([_best_so_far(curve, column, spent) for curve in row])
            best = section.best[problem]
            ratio[problem] = Section.ratio(np.quantile(values, 0.5, axis=0, method="inverted_cdf"), best)
        # Without interpolation: between a value and none there is nothing.
        curves.append(AnytimeCurve(spent, np.quantile(ratio, QUARTILES, axis=0, method="inverted_cdf")))
    return curves


def _best_so_far(curve: list[tuple[int, float, float]], column: int, spent: Floats) -> Floats:
    """The best value that a run had when so much was spent; infinity before its first."""
    at = np.array([point[column] for point in curve])
    values = np.array([np.inf, *(point[2] for point in curve)])
    return values[np.searchsorted(at, spent, side="right")]


def _median(values: Floats) -> float:
    return float(np.median(values))


def typical(values: Floats) -> float | None:
    """The median of what is known."""
    known = values[~np.isnan(values)]
    return float(np.median(known)) if known.size else None
