"""``opgym train``: trains an agent, or a sweep of agents."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .console import UNSOUND, complain, new_table, note, print_json, show

if TYPE_CHECKING:
    from ..runs.hydra_app import Done, Sweep

#: Arguments go on to Hydra as they are.
PASSED_ON = {"allow_extra_args": True, "ignore_unknown_options": True}


def train(
    context: typer.Context,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the result as one JSON document and nothing else.")
    ] = False,
) -> None:
    """Train an agent on graphs, or a sweep of many trainings.

    Examples:

    ```sh
    opgym train agent=ppo problem.graph=zoo/rnnlm-2l-train problem.cluster=4xP100
    opgym train env=scheduling problem.suite=memory-order problem.rows=3 trainer.steps=200000 seed=1
    opgym train experiment=regal trainer.steps=100000
    opgym train debug=tiny
    opgym train -m agent=ppo,a2c seed=0,1,2
    opgym train -m agent=ppo,a2c seed=0,1,2 resume=true
    ```

    Arguments are GROUP=NAME, which chooses a file of settings, and KEY=VALUE, which changes one of them.

    Groups: `agent` (a learner of `opgym solvers`: a2c, dqn, gas, gdp, gdp-plus, gdp-plus-100, gdp-plus-anneal,
    gdp-plus-finetune, hdp, maskable-ppo, placeto, ppo, regal, regal-plus; or settings of one), `env` (placement,
    scheduling), `problem` (default, regal, gdp-batch, unseen-family, unseen-size, tiny), `trainer` (default), `logger`
    (jsonl, console, tensorboard, wandb; several: `logger=[jsonl,wandb]`), `experiment` and `debug` (presets of several
    groups), `hydra/launcher` (joblib, ray, submitit, basic) and `hydra/sweeper` (basic, optuna).

    Keys: `agent.options.*`, `env.options.*`, `env.num_envs`, `problem.{graph, cluster, objective, capacity_bytes}` or
    `problem.{suite, part, rows}` or `problem.{suites, part, rows, validation}` or `problem.{protocol, clusters,
    most_ops, part, rows, validation}`, `trainer.{steps, checkpoint_steps, checkpoint_minutes, evaluations, threads,
    device}`, `seed`, `name`, `runs`, `resume`.

    Hydra's options: `-m` runs every combination of values with commas, `--cfg job` prints the settings and runs
    nothing, `--info` says where they come from, `--hydra-help` lists the rest.

    A run has a folder of its own below `runs/`, named after what is run: config.yaml, metrics.jsonl, checkpoints/,
    agent/ (the trained agent, for `opgym evaluate`) and result.json. A folder that holds a run is never touched,
    unless `resume=true`: then what is finished stays, and what was interrupted goes on from its last checkpoint.

    --json prints the result: {value, unit, verdict, ratio_to_reference, score, problems, ...}; of a sweep its jobs;
    with --cfg the settings.
    The exit code is 2 for wrong settings and for a folder in which another process works, and 1 where a training
    failed; in a sweep the others finish.
    """
    from ..runs.train.app import TrainApplication

    run(TrainApplication(), context.args, as_json=as_json, say=_say)


def run(application: Any, arguments: list[str], *, as_json: bool, say: Any) -> None:
    """Runs an application of Hydra, and prints what came of it.

    Args:
        application: The command.
        arguments: Of the command line.
        as_json: Whether to print JSON.
        say: Prints the result of a single run for people, given what was done.

    Raises:
        typer.Exit: The run, or a job of the sweep, failed.
    """
    from ..runs.hydra_app import RunFailed, run_app

    try:
        done = run_app(application, arguments, show_data=print_json if as_json else None)
    except RunFailed as failure:
        complain(f"{failure.folder}: {type(failure.error).__name__}: {failure.error}")
        note(
            f"the traceback is in {failure.folder / 'error.txt'}; resume=true goes on from the last checkpoint"
        )
        raise typer.Exit(UNSOUND) from None
    if done is None:
        return
    if done.sweep is None:
        if as_json:
            print_json({"folder": str(done.folder), **(done.result or {})})
        else:
            say(done)
        return
    if as_json:
        print_json({"folder": str(done.folder), **done.sweep.to_json()})
    else:
        show_sweep(done.folder, done.sweep)
    if done.sweep.failures:
        raise typer.Exit(UNSOUND)


def show_sweep(folder: Path, sweep: Sweep) -> None:
    """Prints the jobs of a sweep as a table."""
    table = new_table(
        {
            "job": "left",
            "state": "left",
            "value": "right",
            "x reference": "right",
            "verdict": "left",
            "note": "wrap",
        }
    )
    for row in sweep.rows:
        value = row.result.get("value")
        ratio = row.result.get("ratio_to_reference")
        table.add_row(
            row.folder,
            row.state,
            "" if value is None else f"{value:,.6g} {row.result.get('unit', '')}".rstrip(),
            "" if ratio is None else f"{ratio:.4f}",
            str(row.result.get("verdict", "")),
            row.error[:160],
        )
    show(table)
    if sweep.outcome:
        best = ", ".join(f"{key}={value}" for key, value in sweep.outcome.get("best", {}).items())
        if best:
            print(f"best of {sweep.outcome['trials']} trials: {sweep.outcome['best_value']:.6g} with {best}")
    if sweep.failures:
        complain(f"{len(sweep.failures)} of {len(sweep.rows)} jobs failed; resume=true tries those again")
    note(f"everything is in {folder}")


def _say(done: Done) -> None:
    from ..graphs.units import format_value

    result = done.result or {}
    note(f"{'finished before: ' if done.skipped else ''}{done.folder}")
    for problem in result.get("problems", []):
        ratio = problem["ratio_to_reference"]
        value = format_value(problem["value"], problem["unit"])
        print(f"{problem['problem']}: {value}, {ratio:.4f} x reference, {problem['verdict']}")
    if len(result.get("problems", [])) > 1:
        print(f"mean score: {result['score']:.4f}")
