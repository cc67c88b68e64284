"""``opgym reproduce learner-tuning``: settings of learners, searched on training graphs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from .console import new_table, note, print_json, show
from .problem import JsonOption
from .progress import counting_bar
from .workers import WorkersOption, cores


def learner_tuning(
    environment: Annotated[
        str,
        typer.Argument(metavar="ENV", help="`placement`, `scheduling`, or `ops`: placers that play in none."),
    ],
    agent: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="`maskable-ppo`, `ppo`, `a2c`, `dqn`; with `ops` `gdp`, `hdp`, `placeto`."
        ),
    ] = "maskable-ppo",
    settings: Annotated[int, typer.Option(min=1, metavar="N", help="Settings to draw.")] = 8,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Folder for rows and settings; a run goes on with what is there. Default: AGENT-ENV-tuning.",
        ),
    ] = None,
    workers: WorkersOption = None,
    as_json: JsonOption = False,
) -> None:
    """Tune a learner on training graphs, for one environment (about 15 minutes of CPU time).

    Examples:

    ```sh
    opgym reproduce learner-tuning placement --agent maskable-ppo
    opgym reproduce learner-tuning ops --agent gdp --settings 12
    ```

    Draws settings, tries them on three or four training graphs, the best ones on as many others, and compares what wins
    with the defaults of the learner on validation graphs; in every run the learner learns on one problem from 500
    evaluations (placement), 100 (order) or 1,000 (ops). The settings that come with opgym were found so (docs/sb3.md).
    The folder gets rows.jsonl (one line per run, as soon as it is done), tuning.json (what --json prints) and the
    settings as AGENT-ENV.yaml, which `--solver` and `agents=` read.
    """
    from ..errors import unknown_id
    from ..graphs.atomic import write_text
    from ..runs.reproduce.learner_plans import PLANS
    from ..runs.reproduce.learner_tuning import as_yaml, run
    from ..runs.reproduce.staged_search import gain_text
    from .reproduce import as_json_text
    from .targets import require_folder

    if environment not in PLANS:
        raise unknown_id("environment to tune for", environment, list(PLANS))
    name = f"{agent}-{environment}"
    folder = out or Path(f"{name}-tuning")
    require_folder(folder, "--out")
    command = f"opgym reproduce learner-tuning {environment} --agent {agent}"
    with counting_bar("runs") as progress:
        document = run(
            agent,
            PLANS[environment],
            settings=settings,
            rows_path=folder / "rows.jsonl",
            workers=workers or cores(),
            progress=progress,
        )
    write_text(folder / "tuning.json", as_json_text(document))
    write_text(folder / f"{name}.yaml", as_yaml(document, command))
    if as_json:
        print_json(document)
        return
    grid = new_table({"option": "left", "tuned": "right"}, title=name)
    for option, value in document["tuned"].items():
        grid.add_row(option, _text(value))
    show(grid)
    grid = new_table({"graph": "left", "gain": "right"}, title="Over the defaults, on validation graphs")
    *graphs, everything = document["check"]
    for line in graphs:
        grid.add_row(line["graph"], gain_text({"estimate": line["gain"]}))
    grid.add_row(everything["graph"], gain_text(everything))
    show(grid)
    note(f"{document['runs']} runs; settings: {folder / name}.yaml")


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name}={_text(item)}" for name, item in value.items())
    return str(value)
