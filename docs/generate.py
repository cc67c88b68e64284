"""Writes the pages of docs/ that come from docstrings: one per environment, and the solvers.

    python docs/generate.py

``tests/test_docs.py`` fails where a page is stale.
"""

import inspect
import re
from importlib import import_module
from pathlib import Path

import opgym.agents
from opgym.agents.registry import solver_class
from opgym.envs import ENTRY_POINTS
from opgym.problems import PlacementProblem, SchedulingProblem

FOLDER = Path(__file__).parent
NOTICE = "<!-- Made by docs/generate.py from docstrings; edit those. -->\n\n"


def environment_page(environment_id: str) -> tuple[str, str]:
    """File name and text of an environment's page."""
    module, _, name = ENTRY_POINTS[environment_id].partition(":")
    manual = inspect.getdoc(getattr(import_module(module), name)) or ""
    file_name = re.sub(r"(?<!^)(?=[A-Z])", "_", environment_id.removesuffix("-v0")).lower() + ".md"
    return file_name, f"{NOTICE}# {environment_id}\n\n{manual}\n"


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


def _markdown(docstring: str) -> str:
    """A Google-style docstring, its sections as bold headings and its fields as a list."""
    text = re.sub(r":\w+:`~?([^`]+)`", r"`\1`", docstring).replace("``", "`")
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


def pages() -> dict[str, str]:
    """Text of every generated page, by file name."""
    return dict([*(environment_page(i) for i in ENTRY_POINTS), solvers_page()])


if __name__ == "__main__":
    for name, text in pages().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
        print(f"wrote docs/{name}")
