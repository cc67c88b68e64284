"""Tables of stored evaluations in docs/sb3.md: what each agent finds on each problem, seed by seed.

The rows are those of ``opgym evaluate``, without what depends on the clock. ``python docs/generate.py`` writes the
tables anew, and a test holds them against the rows.

    python -m opgym.runs.reproduce.learner_results docs/results/NAME.jsonl FOLDER [FOLDER ...]

stores the rows of one or several folders of ``opgym evaluate``.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import InvalidDatasetError
from ...outcome import Verdict
from ..evaluate.result_tables import RESULTS, read_table

#: What is stored of each run.
COLUMNS = (
    "suite", "row", "agent", "options", "seed", "budget", "verdict", "value", "unit", "best_known",
    "ratio_to_best_known", "evaluations",
)  # fmt: skip
_TABLE = re.compile(r"(<!-- table: (?P<name>[\w-]+) -->\n).*?(<!-- end of table -->)", re.DOTALL)


def store(results: Iterable[Mapping[str, Any]], path: Path) -> None:
    """Writes rows of an evaluation, one JSON object a line.

    Args:
        results: Rows of the table of results.
        path: The file.
    """
    lines = [json.dumps({column: row[column] for column in COLUMNS}, allow_nan=False) for row in results]
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def stored(path: Path) -> list[dict[str, Any]]:
    """Reads what :func:`store` wrote.

    Raises:
        InvalidDatasetError: A line is no such row.
    """
    rows = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        row = json.loads(line)
        if not isinstance(row, dict) or row.keys() != set(COLUMNS):
            raise InvalidDatasetError(f"{path}:{number}: expected the columns {', '.join(COLUMNS)}")
        rows.append(row)
    return rows


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Agents by problems, as Markdown: mean multiple of the best known value over seeds, and the lowest and the highest
    of them; of several problems, the geometric mean of these means.

    A handful of seeds is too few for an interval. An agent that draws no random number has one run; ``-`` where an
    agent does not apply, or finds nothing that fits with one of the seeds. Agents stand in the order of their geometric
    mean over problems, those that lack one last.
    """
    problems = list(dict.fromkeys(row["row"] for row in rows))
    agents = list(dict.fromkeys(row["agent"] for row in rows))
    cells = {(agent, problem): _ratios(rows, agent, problem) for agent in agents for problem in problems}

    def mean_of(agent: str) -> float:
        values = [cells[agent, problem] for problem in problems]
        if not all(values):
            return float("inf")
        return float(np.exp(np.mean([np.log(np.mean(each)) for each in values])))

    several = len(problems) > 1
    head = ["agent", *(f"`{_short(problem)}`" for problem in problems), *["geometric mean"] * several]
    lines = [_line(head), "|---|" + "--:|" * (len(head) - 1)]
    for agent in sorted(agents, key=mean_of):
        mean = mean_of(agent)
        texts = [_text(cells[agent, problem]) for problem in problems]
        lines.append(_line([f"`{agent}`", *texts, *["-" if np.isinf(mean) else f"{mean:.3f}"] * several]))
    return "\n".join(lines) + "\n"


def with_tables(page: str, folder: Path) -> str:
    """A page with its tables made anew from rows.

    Args:
        page: Text with ``<!-- table: NAME -->`` and ``<!-- end of table -->`` around each table.
        folder: Where the rows are, ``NAME.jsonl``.
    """

    def made(match: re.Match[str]) -> str:
        return f"{match[1]}{table(stored(folder / (match['name'] + '.jsonl')))}{match[3]}"

    return _TABLE.sub(made, page)


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _ratios(rows: Sequence[Mapping[str, Any]], agent: str, problem: str) -> list[float]:
    """Multiples of the best known value, by seed; none if one of the runs has none."""
    found = [row for row in rows if row["agent"] == agent and row["row"] == problem]
    good = [float(row["ratio_to_best_known"]) for row in found if row["verdict"] == Verdict.OK.value]
    return good if len(good) == len(found) else []


def _text(ratios: Sequence[float]) -> str:
    if not ratios:
        return "-"
    if len(ratios) == 1:
        return f"{ratios[0]:.3f}"
    return f"{np.mean(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f})"


def _short(problem: str) -> str:
    """The graph and the cluster of a row's name."""
    graph, _, rest = problem.removeprefix("zoo/").partition(" on ")
    cluster = rest.partition(":")[0]
    return graph if cluster == "one device" else f"{graph} on {cluster}"


def _main(path: str, *folders: str) -> None:
    rows: list[dict[str, Any]] = []
    for folder in folders:
        columns = read_table(folder, RESULTS)
        rows += [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    store(rows, Path(path))


if __name__ == "__main__":
    _main(*sys.argv[1:])
