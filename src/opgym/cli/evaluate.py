"""``opgym evaluate``: compares agents at an equal number of evaluations."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .console import UNSOUND, complain, new_table, note, print_json, show

if TYPE_CHECKING:
    from ..runs.report.sections import Section


def evaluate(
    context: typer.Context,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the result as one JSON document and nothing else.")
    ] = False,
) -> None:
    """Compare agents on the rows of a suite, or on problems of your own, at an equal number of evaluations.

    Examples:

    ```sh
    opgym evaluate suite=gdp agents=[m-etf,annealing] budget=500 rows=3
    opgym evaluate suite=memory-order part=test roles=[task] agents=[best-of-three,order-search] seeds=5
    opgym evaluate problem.graph=zoo/rnnlm-2l-train problem.cluster=4xP100 agents=[heft,runs/ppo] budget=200
    opgym evaluate debug=tiny
    ```

    Arguments are KEY=VALUE, and GROUP=NAME, which chooses a file of settings.

    `agents`: names of `opgym solvers`, settings of conf/agent or files of settings (.yaml), folders of saved learners
    or of the trainings that made them, and `{solver: NAME, options: {...}, name: TEXT}`.

    What on: `suite`, and of it `part`, `roles`, `rows` (how many from the beginning, or a list of positions or graphs)
    and `protocol` (held-out graphs of unseen-family or unseen-size; `part=train` gives its others); or
    `problem.{graph, cluster, objective, capacity_bytes}`.

    How much: `budget` is the most evaluations of each agent on each problem, `seeds` how many (or a list), `seconds` a
    limit of wall time for agents that no number of evaluations stops. An agent that draws no random number runs once.

    Other keys: `workers`, `name`, `runs`, `resume`. Groups: `suite`, `problem`, `experiment`, `debug`. `-m` runs every
    combination of values with commas, `--cfg job` prints the settings and runs nothing.

    Solutions are judged again before they are stored, by the problem and by an independent checker. A folder below
    `runs/` gets rows.jsonl (each run as soon as it is done), results.parquet and curves.parquet; `opgym report FOLDER`
    compares them. A folder that holds a run is never touched, unless `resume=true` and its settings are the same: then
    only what is missing, or failed, is run, and a table that was lost is made again from the rows.

    --json prints {folder, results}, results a list of the rows of results.parquet. The exit code is 2 for wrong
    settings and for a folder in which another process works, and 1 where a run failed (the others finish) or no agent
    applied to any problem.
    """
    from ..runs.evaluate.app import EvaluationFailedError
    from ..runs.hydra_app import RunFailed, run_app
    from .train import show_sweep
    from .watched_evaluation import WatchedEvaluation

    try:
        done = run_app(WatchedEvaluation(), context.args, show_data=print_json if as_json else None)
    except EvaluationFailedError as error:
        _say(error.folder, error.evaluated.results, as_json=as_json)
        complain(str(error))
        raise typer.Exit(UNSOUND) from None
    except RunFailed as failure:
        complain(f"{failure.folder}: {type(failure.error).__name__}: {failure.error}")
        raise typer.Exit(UNSOUND) from None
    if done is None:
        return
    if done.sweep is None:
        assert done.result is not None
        _say(done.folder, done.result["results"], as_json=as_json)
        return
    if as_json:
        print_json({"folder": str(done.folder), **done.sweep.to_json()})
    else:
        show_sweep(done.folder, done.sweep)
    if done.sweep.failures:
        raise typer.Exit(UNSOUND)


def _say(folder: Path, results: list[dict[str, Any]], *, as_json: bool) -> None:
    if as_json:
        print_json({"folder": str(folder), "results": results})
        return
    from ..runs.report.sections import read_sections

    for section in read_sections([folder]):
        _show(section)
    note(f"rows and tables: {folder}; compare them: opgym report {folder} --out DIR")


def _show(section: Section) -> None:
    """A line for each agent, best first."""
    import numpy as np

    from ..runs.report.numbers import CLOSE, typical
    from ..runs.report.sections import effort_text
    from ..statistics import interquartile_mean, performance_profile

    known = all(problem.best_known is not None for problem in section.problems)
    title = f"{section.suite or 'own problems'}: {section.objective}, {len(section.problems)} {section.population} "
    grid = new_table(
        {
            "agent": "wrap", "seeds": "right", f"x best {'known' if known else 'here'}": "right",
            f"within {CLOSE - 1:.0%}": "right", "feasible": "right", "evaluations": "right", "seconds": "right",
        },
        f"{title}graphs, {effort_text(section.budget, section.seconds_limit)} (IQM over runs)",
    )  # fmt: skip
    means = [float(interquartile_mean(ratios.ravel())) for ratios in section.ratios]
    for position in np.argsort(means, kind="stable"):
        agent, ratios = section.agents[position], section.ratios[position]
        spent = [typical(section.column(position, what)) for what in ("evaluations", "seconds")]
        grid.add_row(
            agent.label + (" †" if section.trained_before(position) else ""),
            "draws none" if agent.deterministic else str(len(agent.seeds)),
            "-" if np.isinf(means[position]) else f"{means[position]:.4f}",
            f"{performance_profile(ratios, [CLOSE])[0]:.0%}",
            f"{np.isfinite(ratios).mean():.0%}",
            "-" if spent[0] is None else f"{spent[0]:,.0f}",
            "-" if spent[1] is None else f"{spent[1]:.3g}",
        )
    show(grid)
    trained = [position for position in range(len(section.agents)) if section.trained_before(position)]
    if trained:
        counts = {section.agents[position].label: section.trained_on_these(position) for position in trained}
        told = [
            f"{label} on {'unknown' if count is None else f'{count} of these'} graphs"
            for label, count in counts.items()
            if count != 0
        ]
        print("; ".join(["† trained before, outside of this budget", *told]))
