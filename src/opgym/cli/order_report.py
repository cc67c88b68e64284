"""What solvers of orders found: the table, plain sentences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..graphs.units import format_bytes
from .console import new_table
from .report import left_to_gain, percent, ratio_to_bound, row_style, search_or_rule, values_text

if TYPE_CHECKING:
    from rich.table import Table

    from ..agents import Result
    from ..problems import Bound, Order, SchedulingProblem


def order_table(
    results: Sequence[Result[Order]], problem: SchedulingProblem, bound: Bound, *, narrow: bool = False
) -> Table:
    """The results, best first.

    Args:
        results: Best first.
        problem: What was solved.
        bound: The tightest bound.
        narrow: Whether to leave out what a terminal of 80 columns has no room for: evaluations, and the ratio to
            the program's order.
    """
    graph = problem.graph
    title = (
        f"{graph.name or 'graph'} ({len(problem.ops):,} ops) on one device: dynamic peak of memory, at least "
        f"{format_bytes(bound.value)} ({bound.name}); {format_bytes(problem.resident_bytes)} are resident beside it"
    )
    columns = {
        "solver": "left", "peak": "right", "x bound": "right", "x program order": "right", "verdict": "left",
        "evaluations": "right", "seconds": "right",
    }  # fmt: skip
    if narrow:
        del columns["evaluations"], columns["x program order"]
    grid = new_table(columns, title)
    values = values_text([result.outcome.value for result in results], problem.unit)
    for position, (result, value) in enumerate(zip(results, values, strict=True)):
        outcome = result.outcome
        ratio = ratio_to_bound(outcome, bound)
        known = outcome.ok and problem.reference_bytes > 0
        cells = {
            "solver": result.solver,
            "peak": value,
            "x bound": "-" if ratio is None else f"{ratio:.3f}",
            "x program order": f"{outcome.value / problem.reference_bytes:.3f}" if known else "-",
            "verdict": _verdict(result, bound),
            "evaluations": f"{result.evaluations:,}",
            "seconds": f"{result.seconds:.2f}",
        }
        grid.add_row(*(cells[column] for column in columns), style=row_style(position, outcome))
    return grid


def _verdict(result: Result[Order], bound: Bound) -> str:
    """The verdict, with what is proven."""
    text = result.outcome.verdict.value
    if not result.outcome.ok:
        return text
    if result.proven_optimal or result.outcome.value <= bound.value:
        return f"{text}, optimal"
    return text if result.bound is None else f"{text}, at least {format_bytes(result.bound)}"


def order_conclusions(
    results: Sequence[Result[Order]], problem: SchedulingProblem, bound: Bound
) -> list[str]:
    """What a reader should take away, in sentences.

    Args:
        results: Best first, at least one.
        problem: What was solved.
        bound: The tightest bound.
    """
    from ..agents.registry import HEURISTICS, family
    from ..conf import make_agent

    best = results[0]
    if not best.outcome.ok:
        return [f"No order found is legal: the closest, {best.solver}, is {best.outcome.verdict.value}."]
    reference = problem.reference_bytes
    if best.outcome.value >= reference:
        sentences = ["The order of the program is as good as any that was found."]
    else:
        share = percent(1 - best.outcome.value / reference)
        sentences = [
            f"{best.solver} needs {share} less than the order of the program, {format_bytes(reference)}."
        ]
    feasible = [result for result in results if result.outcome.ok]
    families = {result.solver: family(make_agent(result.solver).name) for result in feasible}
    rules = [result for result in feasible if families[result.solver] == HEURISTICS]
    searches = [r for r in feasible if families[r.solver] != HEURISTICS and r.solver != "random-order"]
    if rules and searches and best.outcome.value < reference:
        sentences.append(search_or_rule(searches[0], rules[0]))
    ratio = ratio_to_bound(best.outcome, bound)
    if best.proven_optimal or best.outcome.value <= bound.value:
        sentences.append(f"Nothing can be better: {_proof(results, problem, bound)}.")
    elif ratio is not None:
        sentences.append(left_to_gain(ratio, bound))
    return sentences


def _proof(results: Sequence[Result[Order]], problem: SchedulingProblem, bound: Bound) -> str:
    """Why the best value is the optimum."""
    if results[0].outcome.value <= problem.lower_bound().value:
        return f"the peak is the lower bound ({problem.lower_bound().name})"
    return bound.name
