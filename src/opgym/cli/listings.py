"""``opgym solvers``: what can be named on the command line."""

from __future__ import annotations

from typing import Any

from .console import new_table, print_json, show
from .problem import JsonOption


def solvers(as_json: JsonOption = False) -> None:
    """List the solvers: what each does, and for which problems and objectives.

    Example:

    ```sh
    opgym solvers --json
    ```

    Solvers of placements are for opgym place, those of orders for opgym schedule.

    --json prints a list of {name, summary, problems, objectives, anytime}; problems are "placement" and
    "order", objectives those of placements, and an anytime solver improves until its budget is spent.
    Packages register more under the entry-point group "opgym.solvers".
    """
    from ..agents.registry import names, solver_class
    from ..problems import Objective, PlacementProblem, SchedulingProblem

    problems = {"placement": names(PlacementProblem), "order": names(SchedulingProblem)}
    rows: list[dict[str, Any]] = [
        {
            "name": name,
            "summary": solver_class(name).summary,
            "problems": [problem for problem, solvers in problems.items() if name in solvers],
            "objectives": [
                objective.value
                for objective in Objective
                if name in problems["placement"]
                and objective in getattr(solver_class(name), "objectives", ())
            ],
            "anytime": solver_class(name).anytime,
        }
        for name in dict.fromkeys(name for solvers in problems.values() for name in solvers)
    ]
    if as_json:
        print_json(rows)
        return
    grid = new_table({"solver": "left", "what it does": "wrap", "decides": "wrap", "stops": "left"})
    for row in rows:
        grid.add_row(
            row["name"], row["summary"], _decides(row), "at its budget" if row["anytime"] else "by itself"
        )
    show(grid)


def _decides(row: dict[str, Any]) -> str:
    """Problems of a solver, with the objectives where it cannot do all."""
    from ..problems import Objective

    every = len(row["objectives"]) in (0, len(Objective))
    return ", ".join(row["problems"]) + ("" if every else f": {', '.join(row['objectives'])}")
