"""``opgym solvers`` and ``opgym datasets``: what can be named on the command line."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from .console import new_table, print_json, show
from .problem import JsonOption

datasets_app = typer.Typer(no_args_is_help=True, help="Graphs that can be named by an id.")


def solvers(as_json: JsonOption = False) -> None:
    """List the solvers: what each does, and for which objectives.

    Example:

    ```sh
    opgym solvers --json
    ```

    --json prints a list of {name, summary, objectives, anytime}; an anytime solver improves until its
    budget is spent. Packages register more under the entry-point group "opgym.solvers".
    """
    from ..agents.registry import names, solver_class
    from ..problems import Objective

    rows: list[dict[str, Any]] = [
        {
            "name": name,
            "summary": solver_class(name).summary,
            "objectives": [o.value for o in Objective if o in getattr(solver_class(name), "objectives", ())],
            "anytime": solver_class(name).anytime,
        }
        for name in names()
    ]
    if as_json:
        print_json(rows)
        return
    grid = new_table({"solver": "left", "what it does": "wrap", "objectives": "wrap", "stops": "left"})
    for row in rows:
        everything = len(row["objectives"]) == len(Objective)
        objectives = "all" if everything else ", ".join(row["objectives"])
        grid.add_row(
            row["name"], row["summary"], objectives, "at its budget" if row["anytime"] else "by itself"
        )
    show(grid)


@datasets_app.command("list")
def list_datasets(
    contains: Annotated[str, typer.Argument(metavar="[TEXT]", help="Only ids that contain this.")] = "",
    as_json: JsonOption = False,
) -> None:
    """List the ids of graphs.

    Example:

    ```sh
    opgym datasets list onnx-light
    ```

    --json prints a list of {id}.
    """
    from .. import datasets

    ids = [name for name in datasets.ids() if contains in name]
    if as_json:
        print_json([{"id": name} for name in ids])
        return
    for name in ids:
        print(name)
