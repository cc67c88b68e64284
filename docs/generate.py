"""Writes the pages of docs/ that come from docstrings (one per environment, the solvers, the metrics), from the zoo,
and from reference lines.

    python docs/generate.py

``tests/test_docs.py`` fails where a page is stale.
"""

import hashlib
import inspect
import json
import re
from collections.abc import Callable
from functools import partial
from importlib import import_module
from math import floor
from pathlib import Path
from statistics import geometric_mean

import opgym.agents
from opgym.agents.metrics import CUSTOM, EPISODIC_RETURN, METRICS, POLICY_LOSS
from opgym.agents.registry import solver_class
from opgym.datasets import suite, zoo
from opgym.datasets.reference import Line, lines
from opgym.datasets.zoo.datasheet import croissant, families_table
from opgym.datasets.zoo.manifest import MANIFEST
from opgym.datasets.zoo.statistics import statistics
from opgym.envs import ENTRY_POINTS, VECTOR_ENTRY_POINTS
from opgym.problems import PlacementProblem, SchedulingProblem
from opgym.runs.reproduce.gdp.page import with_gdp_results
from opgym.runs.reproduce.learner_results import with_tables
from opgym.runs.reproduce.regal.page import with_results
from opgym.runs.tracking import JsonlTracker, LogLine
from opgym.runs.tracking.console import ConsoleTracker
from opgym.runs.tracking.tensorboard import TensorBoardTracker
from opgym.runs.tracking.wandb import WandbTracker

FOLDER = Path(__file__).parent
NOTICE = "<!-- Made by docs/generate.py from docstrings; edit those. -->\n\n"

DATASHEET = """
**Why.** The real graphs of REGAL (372 TensorFlow graphs) and the workloads of GDP were never published. These
are for the same uses: placing ops on devices, ordering them for memory, and testing learned methods on
architectures that they have not seen.

**What a graph is.** One step. Training: forward pass, loss, backward pass and optimizer. Inference: the forward
pass. At level `aten` an op is an operator of PyTorch, whose own autograd made the backward pass; at level `hlo` it is
an instruction of a program that XLA has compiled, fusions among them, in the order of XLA's schedule. Views are aliases
of their storage and no ops; operators with several outputs have several tensors; a parameter of a training graph has a
`variable` op as its home, and the update that writes it is in the same colocation group; an op's layer is the
path of the module that it came from. A program of XLA takes parameters as inputs and returns new ones, so it has
no variables. Flops and bytes come from formulas of our own. [How a module is
read](importing.md).

**What is not in it.** No weights, no data, nothing about people. At level `aten` nothing is fused, and no memory
format is chosen, as a compiler would do; elementwise ops are marked, and what they cost is what they cost alone.

**Gaps against the papers.** Sizes of GDP's workloads are not public, so batch, width and length are ours, in
each graph's configuration (`opgym datasets show`). GDP and REGAL used TensorFlow graphs, whose ops are others.
Which networks REGAL's graphs were is unknown.

**Rebuilding.** `opgym datasets build --check` makes the same bytes with: {made_with}.

## Families

"""


def environment_page(environment_id: str) -> tuple[str, str]:
    """File name and text of an environment's page."""
    manual, batch = (
        inspect.getdoc(getattr(import_module(module), name)) or ""
        for points in (ENTRY_POINTS, VECTOR_ENTRY_POINTS)
        for module, _, name in [points[environment_id].partition(":")]
    )
    file_name = re.sub(r"(?<!^)(?=[A-Z])", "_", environment_id.removesuffix("-v0")).lower() + ".md"
    return file_name, (f"{NOTICE}# {environment_id}\n\n{manual}\n\n## Native batches\n\n{_markdown(batch)}\n")


def solvers_page() -> tuple[str, str]:
    """File name and text of the page of solvers."""
    text = [NOTICE + "# Solvers\n"]
    text.append(
        "`opgym.agents.make(NAME, **options).solve(problem, Budget(evaluations=..., seconds=...), rng)` returns\n"
        "the best solution, its outcome, what was spent and the curve of best values. Every evaluation counts,\n"
        "those of starting points included, and the budget is never exceeded. Anytime solvers improve until it\n"
        "is spent.\n"
    )
    for title, problem_type in (("Placement", PlacementProblem), ("Scheduling", SchedulingProblem)):
        solvers = [solver_class(name) for name in opgym.agents.names(problem_type)]
        if not solvers:
            continue
        text.append(f"## {title}\n")
        for solver in solvers:
            anytime = " (anytime)" if solver.anytime else ""
            manual = inspect.getdoc(solver) or ""
            text.append(f"### `{solver.name}`{anytime}\n\n{_markdown(manual)}\n")
    return "solvers.md", "\n".join(text)


def zoo_page() -> tuple[str, str]:
    """File name and text of the zoo's datasheet."""
    manifest = zoo.manifest()
    figures = statistics(manifest, zoo.FOLDER)
    made_with = ", ".join(f"{name} {version}" for name, version in figures["built_with"].items())
    ops = figures["ops"]
    return "zoo.md", (
        "<!-- Made by docs/generate.py from the manifest and docs/generate.py itself. -->\n\n"
        "# Datasheet of the zoo\n\n"
        f"Dataset version {figures['dataset_version']}: {figures['graphs']} graphs of {figures['families']} families "
        f"({figures['groups']} when twins\nare counted once), {ops['least']:,} to {ops['most']:,} ops (median "
        f"{ops['median']:,}), {figures['bytes'] / 1e6:.1f} MB. [What belongs to it](datasets.md#the-zoo),\n"
        "[suites](datasets.md#suites), [metadata in Croissant](zoo_croissant.json).\n\n"
        + _counted("by level", figures["by_level"])
        + _counted("by split", figures["by_split"])
        + _counted("by kind of step", figures["by_mode"])
        + _counted("by source", figures["by_source"])
        + _counted("built and kept out", figures["dropped"])
        + DATASHEET.format(made_with=made_with)
        + families_table(manifest)
        + "\n"
    )


def croissant_file() -> tuple[str, str]:
    """File name and text of the zoo's metadata."""
    sha256 = hashlib.sha256((zoo.FOLDER / MANIFEST).read_bytes()).hexdigest()
    return "zoo_croissant.json", json.dumps(croissant(zoo.manifest(), sha256), indent=1) + "\n"


def _counted(what: str, counts: dict[str, int]) -> str:
    return f"- {what}: {', '.join(f'{name} {count}' for name, count in counts.items()) or 'none'}\n"


def _markdown(docstring: str) -> str:
    """A Google-style docstring, its sections as bold headings and its fields as a list."""
    text = re.sub(r":\w+:`~?([^`]+)`", r"`\1`", docstring)
    text = re.sub(r"(?<!`)``(?!`)", "`", text)  # but not a fence
    lines = []
    in_fields = False
    for line in text.splitlines():
        if line in ("Args:", "Attributes:", "Raises:"):
            in_fields = True
            lines += [f"**{'Options' if line == 'Attributes:' else line[:-1]}**", ""]
        elif in_fields and re.match(r"    \S", line):
            lines.append(re.sub(r"^    (\w+):", r"- `\1`:", line))
        elif in_fields and line.startswith("     "):
            lines.append("  " + line.strip())
        else:
            in_fields = in_fields and not line.strip()
            lines.append(line)
    return "\n".join(lines)


def memory_order_page() -> tuple[str, str]:
    """File name and text of the reference lines of ``memory-order``, row by row."""
    rows, known = suite("memory-order"), lines("memory-order")
    assert rows.screening is not None
    table, ratios = [], []
    for row in rows.rows:
        line = known[row.name]
        of_three, best, heuristic = line.heuristics["best-of-three"], line.best, line.best_heuristic
        assert best is not None
        assert of_three is not None
        assert heuristic is not None
        ratios.append(best.value / of_three)
        proof = (
            line.bound_by
            if line.proven
            else f"open: at least {floor(line.bound / best.value * 1e4) / 1e4:.4f}"
        )
        table.append(
            f"| `{row.graph}` | {row.part} | {line.ops:,} | {best.value:,.0f} | {best.found_by} | "
            f"{heuristic / best.value:.3f} | {of_three / best.value:.3f} | {proof} |"
        )
    proven = sum(line.proven for line in known)
    text = "\n".join(
        (
            "# The suite memory-order, row by row",
            "",
            f"Rule: {rows.rule}. {len(rows.rows)} of {len(rows.screening.candidates)} candidates are "
            f"rows ({rows.screening.acceptance_rate:.1%}). Searched by {rows.screening.method}. Reference "
            f"version {known.reference_version}, which may come from longer searches than the screening; the file says "
            "of each value what found it, within which limits.",
            "",
            "Peaks are dynamic bytes; what stands beside them are multiples of the best known peak, and a bound that "
            "equals it proves it. XLA's heuristic is the best of its three list schedules "
            "([`best-of-three`](solvers.md)).",
            "",
            "| graph | part | ops | best known peak | by | best heuristic | XLA's best of three | optimum proven by |",
            "|---|---|--:|--:|---|--:|--:|---|",
            *table,
            "",
            f"Over the {len(ratios)} rows, the best known peak is {sum(ratios) / len(ratios):.3f} of XLA's best of "
            f"three on average ({min(ratios):.3f} to {max(ratios):.3f}); {proven} optima are proven.",
            "",
            "`opgym datasets reference memory-order` measures it [again](datasets.md#reference-lines).",
            "",
        )
    )
    return "memory_order.md", NOTICE + text


#: Columns of the table of heuristics, under shorter names where they are long.
PLACERS = {
    "single": "single", "human-expert": "human", "metis": "METIS", "m-topo": "m-TOPO", "critical-path": "list",
    "m-etf": "m-ETF", "heft": "HEFT", "m-sct": "m-SCT",
}  # fmt: skip


def gdp_page() -> tuple[str, str]:
    """File name and text of the reference lines of ``gdp``, row by row."""
    rows, known = suite("gdp"), lines("gdp")
    values, heuristics = [], []
    for row in rows.rows:
        line = known[row.name]
        best, heuristic, gap = line.best, line.best_heuristic, line.gap
        assert best is not None
        assert heuristic is not None
        assert gap is not None
        place = f"`{row.graph.removeprefix('zoo/').removesuffix('-train')}` on {row.cluster}"
        names = [name for name, value in line.heuristics.items() if value == heuristic]
        annealed = (line.annealing[count] for count in (100, 5_000))
        values.append(
            f"| {place} | {line.ops:,} | {best.value / 1e6:.2f} | {best.found_by}, {best.evaluations:,} | "
            f"{line.searched:,} | {line.bound / best.value:.3f} | {PLACERS[names[0]]} | {gap:.2%} | "
            + " | ".join(_times(value, best.value) for value in annealed)
            + f" | {row.role} |"
        )
        heuristics.append(
            f"| {place} | " + " | ".join(_times(line.heuristics[name], best.value) for name in PLACERS) + " |"
        )
    found = list(known)
    wide = sum(line.gap is not None and line.gap > 0.1 for line in found)
    tasks = sum(row.role == "task" for row in rows.rows)
    annealed_best = sum(line.best is not None and line.best.value == line.annealing[5_000] for line in found)
    text = "\n".join(
        (
            "# The suite gdp, row by row",
            "",
            f"GDP's workloads as training graphs, on as many P100 as in the papers, over PCIe and NVLink: "
            f"{len(rows.rows)} rows. Reference version {known.reference_version}. No row was chosen by what a solver "
            "makes of it. Every heuristic honours colocation.",
            "",
            f"**On {wide} of {len(found)} rows the best heuristic is more than 10 % above the best known step time.** "
            f"{tasks} rows are a `task`, {len(rows.rows) - tasks} a `control`: there the best heuristic is less than "
            "2 % above the best known.",
            "",
            "Bound and annealing are multiples of the best known step time, which stands with the searches and the "
            "evaluations that found it, one search after the other; searched are the "
            "evaluations of all searches. The bound is the work of all devices or the "
            "critical path, whichever is longer; where it is far away, nobody knows how much is left.",
            "",
            f"On {annealed_best} rows nothing better is known than what annealing finds with 5,000 evaluations, "
            "although longer searches went on from there. Best known values of large graphs are from few searches: a "
            "column near 1 may say as much about them as about the column.",
            "",
            "| row | ops | best known ms | by | searched | bound | best heuristic | above best known | annealing 100 "
            "| annealing 5,000 | role |",
            "|---|--:|--:|---|--:|--:|---|--:|--:|--:|---|",
            *values,
            "",
            "## Geometric means",
            "",
            "Multiples of the best known step time, over the rows where the column is feasible:",
            "",
            "| column | all | PCIe | NVLink |",
            "|---|--:|--:|--:|",
            *_geometric_means(found),
            "",
            "## Heuristics",
            "",
            "Multiples of the best known step time; `-` where memory does not suffice, or the solver does not apply "
            "(m-SCT solves linear programs, and not of graphs as large). What they are: [solvers](solvers.md).",
            "",
            "| row | " + " | ".join(PLACERS.values()) + " |",
            "|---|" + "--:|" * len(PLACERS),
            *heuristics,
            "",
            "## Again",
            "",
            "```sh",
            "opgym datasets verify                                # evaluates every best known placement",
            "opgym datasets reference gdp --rows inception --out lines --json",
            "python -m opgym.datasets.suites.recipes              # roles",
            "```",
            "",
            "[What reference lines are, and how a better value is published](datasets.md#reference-lines).",
            "",
        )
    )
    return "gdp.md", NOTICE.replace("docstrings; edit those", "reference lines") + text


def _times(value: float | None, of: float) -> str:
    return "-" if value is None else f"{value / of:.3f}"


def _geometric_means(found: list[Line]) -> list[str]:
    """Rows of the table of geometric means."""

    def mean(column: Callable[[Line], float | None], chosen: list[Line]) -> str:
        ratios = [
            value / line.best.value
            for line in chosen
            if line.best is not None and (value := column(line)) is not None
        ]
        return f"{geometric_mean(ratios):.3f} ({len(ratios)})" if ratios else "-"

    columns: dict[str, Callable[[Line], float | None]] = {
        name: partial(lambda solver, line: line.heuristics[solver], solver)
        for solver, name in PLACERS.items()
    }
    columns["**best heuristic**"] = lambda line: line.best_heuristic
    columns["annealing 100"] = lambda line: line.annealing[100]
    columns["annealing 5,000"] = lambda line: line.annealing[5_000]
    columns["bound"] = lambda line: line.bound
    nvlink = [line for line in found if "@nvlink" in line.problem]
    pcie = [line for line in found if "@nvlink" not in line.problem]
    return [
        f"| {name} | " + " | ".join(mean(column, chosen) for chosen in (found, pcie, nvlink)) + " |"
        for name, column in columns.items()
    ]


TRACKERS = {
    "jsonl": JsonlTracker,
    "tensorboard": TensorBoardTracker,
    "wandb": WandbTracker,
    "console": ConsoleTracker,
}


def metrics_page() -> tuple[str, str]:
    """File name and text of the page of metrics and of where they go."""
    sections: dict[str, list[str]] = {}
    for metric in METRICS:
        section, _, _ = metric.name.partition("/")
        clock = " Depends on the clock." if metric.timed else ""
        sections.setdefault(section, []).append(
            f"| `{metric.name}` | {metric.unit} | {metric.meaning}{clock} |"
        )
    text = [
        NOTICE.replace("docstrings; edit those", "agents/metrics.py and docstrings; edit those")
        + "# Metrics",
        "",
        "What a training logs, after every update of its learner. A name means the same for every learner, and each",
        "logs those that it has. The x-axis is always steps of the environment, over all of its episodes. Two",
        "trainings with the same seed log the same, but for what depends on the clock. A learner of your own may log",
        f"more, under names that begin with `{CUSTOM}/`; any other name is an error.",
        "",
    ]
    for section, rows in sections.items():
        text += [f"## {section}", "", "| name | unit | meaning |", "|---|---|---|", *rows, ""]
    text += [
        "## Where they go",
        "",
        "`opgym train logger=[jsonl,tensorboard]`: any of these, and several at once. Ctrl-C closes all of them",
        "properly. Where the disk is full, the training ends with a message; what was logged before stays readable.",
        "",
    ]
    for name, tracker in TRACKERS.items():
        manual = (inspect.getdoc(tracker) or "").partition("\n\nArgs:")[0]
        text += [f"### `{name}`", "", _markdown(manual), ""]
        if name == "jsonl":
            example = LogLine(4096, 1.234, {EPISODIC_RETURN.name: -1.25, POLICY_LOSS.name: float("nan")})
            text += [_markdown(inspect.getdoc(LogLine.to_json) or "").partition("\n\n")[2], ""]
            text += ["```json", example.to_json(), "```", ""]
            text += [
                "`pandas.read_json(path, lines=True)` reads it; so does `opgym.runs.tracking.read_log(path)`.",
                "",
            ]
    return "metrics.md", "\n".join(text)


def learners_page() -> tuple[str, str]:
    """File name and text of the page of learners: its tables made anew from stored rows, the rest as it is."""
    name = "sb3.md"
    return name, with_tables((FOLDER / name).read_text(encoding="utf-8"), FOLDER / "results")


def regal_page() -> tuple[str, str]:
    """File name and text of the page of REGAL: its results made anew from stored values, the rest as it is."""
    name = "regal_results.md"
    return name, with_results((FOLDER / name).read_text(encoding="utf-8"), FOLDER / "results")


def gdp_results_page() -> tuple[str, str]:
    """File name and text of the page of GDP: its results made anew from stored runs, the rest as it is."""
    name = "gdp_results.md"
    return name, with_gdp_results((FOLDER / name).read_text(encoding="utf-8"))


def pages() -> dict[str, str]:
    """Text of every generated page, by file name."""
    made = (
        solvers_page(), zoo_page(), croissant_file(), memory_order_page(), gdp_page(), metrics_page(), learners_page(),
        regal_page(), gdp_results_page(),
    )  # fmt: skip
    return dict([*(environment_page(i) for i in ENTRY_POINTS), *made])


if __name__ == "__main__":
    for name, text in pages().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
        print(f"wrote docs/{name}")
