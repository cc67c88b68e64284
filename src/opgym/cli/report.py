"""What solvers found, as a table, as plain sentences and as JSON rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..graphs.units import format_bytes, format_value, size_unit, value_unit
from ..outcome import Outcome, Verdict
from .console import new_table, show, stdout

if TYPE_CHECKING:
    from rich.table import Table

    from ..agents import Result
    from ..problems import Bound, Placement, PlacementProblem, SchedulingProblem

#: Differences below this share are not worth a word.
NEGLIGIBLE = 0.01
#: Peaks of more devices than this are summed up.
MOST_PEAKS = 8


def ranked(results: Sequence[Result[Any]]) -> list[Result[Any]]:
    """Best first; of equal ones the cheaper solver, which ran first."""
    return sorted(results, key=lambda result: result.outcome.sort_key)


def tightest_bound(problem: PlacementProblem | SchedulingProblem, results: Sequence[Result[Any]]) -> Bound:
    """The highest value that nobody can beat: the problem's bound, or a higher one that a solver proved.

    What a solver proved above a value that another one reached holds within its own search space only, and is left
    out. Of placements, what any solver says of its own search space is, but for those whose proofs are of all.
    """
    from ..conf import make_agent
    from ..problems import Bound, PlacementProblem

    reached = min((result.outcome.value for result in results if result.outcome.ok), default=0.0)
    tightest = problem.lower_bound()
    for result in results:
        if isinstance(problem, PlacementProblem) and not make_agent(result.solver).proves:
            continue
        if result.bound is not None and tightest.value < result.bound <= reached:
            tightest = Bound(result.bound, tightest.unit, f"proven by {result.solver}")
    return tightest


def ratio_to_bound(outcome: Outcome, bound: Bound) -> float | None:
    """Value / bound; ``None`` where one of them says nothing."""
    return outcome.value / bound.value if bound.value > 0 and math.isfinite(outcome.value) else None


def plain_value(value: float, unit: str) -> float | int | None:
    """The value for JSON: whole nanoseconds and bytes are integers, what is not finite is ``None``."""
    if not math.isfinite(value):
        return None
    return int(value) if unit in ("ns", "bytes") else value


def json_row(result: Result[Any], bound: Bound) -> dict[str, Any]:
    """One solver's result as plain data."""
    outcome = result.outcome
    return {
        "solver": result.solver,
        "value": plain_value(outcome.value, outcome.unit),
        "unit": outcome.unit,
        "verdict": outcome.verdict.value,
        "ratio_to_bound": ratio_to_bound(outcome, bound),
        "bound": bound.value,
        "peak_bytes": outcome.details.get("peak_bytes"),
        "seconds": result.seconds,
        "evaluations": result.evaluations,
        "proven_optimal": result.proven_optimal,
        "note": result.note,
    }


def show_results(results: Sequence[Result[Any]], grid: Table, sentences: Sequence[str]) -> None:
    """Prints the table, what to conclude from it, and what solvers remark."""
    show(grid)
    console = stdout()
    for sentence in sentences:
        console.print(sentence)
    for result in results:
        if result.note:
            console.print(f"{result.solver}: {result.note}", style="dim")


def row_style(position: int, outcome: Outcome) -> str:
    """Style of the row at a position of the ranking."""
    return "red" if not outcome.ok else "bold green" if position == 0 else ""


def table(
    results: Sequence[Result[Placement]], problem: PlacementProblem, bound: Bound, *, narrow: bool = False
) -> Table:
    """The results, best first.

    Args:
        results: Best first.
        problem: What was solved.
        bound: A value that nothing can beat.
        narrow: Whether to leave out what a terminal of 80 columns has no room for: the peaks of all
            devices but the fullest, and evaluations.
    """
    graph = problem.graph
    title = (
        f"{graph.name or 'graph'} ({graph.num_ops:,} ops) on {problem.cluster.name}: "
        f"{problem.objective.value}, at least {format_value(bound.value, bound.unit)} ({bound.name})"
    )
    columns = {
        "solver": "left",
        "value": "right",
        "x bound": "right",
        "largest peak" if narrow else "peak memory per device": "right" if narrow else "wrap",
        "verdict": "left",
        "evaluations": "right",
        "seconds": "right",
    }
    if narrow:
        del columns["evaluations"]
    grid = new_table(columns, title)
    values = values_text([result.outcome.value for result in results], bound.unit)
    for position, (result, value) in enumerate(zip(results, values, strict=True)):
        outcome = result.outcome
        ratio = ratio_to_bound(outcome, bound)
        peaks = outcome.details.get("peak_bytes")
        cells = {
            "solver": result.solver,
            "value": value,
            "x bound": "-" if ratio is None else f"{ratio:.3f}",
            "largest peak": "-" if peaks is None else format_bytes(max(peaks)),
            "peak memory per device": peaks_text(peaks, problem.cluster.device_names),
            "verdict": outcome.verdict.value + (", optimal" if outcome.ok and result.proven_optimal else ""),
            "evaluations": f"{result.evaluations:,}",
            "seconds": f"{result.seconds:.2f}",
        }
        grid.add_row(*(cells[column] for column in columns), style=row_style(position, outcome))
    return grid


def values_text(values: Sequence[float], unit: str) -> list[str]:
    """Values of one objective in one unit with as many decimals, so that a column can be read downwards."""
    scale, name = value_unit(min((v for v in values if math.isfinite(v) and v > 0), default=0.0), unit)
    return [f"{value / scale:,.3f} {name}" if math.isfinite(value) else "-" for value in values]


def peaks_text(peak_bytes: Sequence[int] | None, device_names: Sequence[str]) -> str:
    """Peak memory of each device in one unit, e.g. ``"412 / 388 / 0 / 0 MiB"``."""
    if peak_bytes is None:
        return "-"
    largest = max(peak_bytes)
    if len(peak_bytes) > MOST_PEAKS:
        device = list(peak_bytes).index(largest)
        return f"{format_bytes(largest)} at most, on {device_names[device]}"
    scale, unit = size_unit(largest)
    return f"{' / '.join(_short(peak / scale) for peak in peak_bytes)} {unit}"


def _short(number: float) -> str:
    """Three digits, or two decimals at most: ``"412"``, ``"38.1"``, ``"0.5"``; a little is ``"<0.01"``."""
    if 0 < number < 0.005:
        return "<0.01"
    text = f"{number:,.{0 if number >= 100 else 1 if number >= 10 else 2}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def conclusions(results: Sequence[Result[Placement]], problem: PlacementProblem, bound: Bound) -> list[str]:
    """What a reader should take away, in sentences.

    Args:
        results: Best first, at least one.
        problem: What was solved.
        bound: A value that nothing can beat.
    """
    best = results[0]
    if not best.outcome.ok:
        return [_nothing_feasible(best)]
    sentences = [_who_is_enough(results, problem)]
    ratio = ratio_to_bound(best.outcome, bound)
    if ratio is not None and ratio <= 1.0005:
        sentences.append(f"Nothing can be better: {best.solver} meets the lower bound ({bound.name}).")
    elif ratio is not None:
        sentences.append(left_to_gain(ratio, bound))
    return [sentence for sentence in sentences if sentence]


def left_to_gain(ratio: float, bound: Bound) -> str:
    """How far the best result is from the bound."""
    return (
        f"The best found is {ratio:.{2 if ratio >= 1.1 else 3}f} times the lower bound ({bound.name}, "
        f"{format_value(bound.value, bound.unit)}): at most {percent(1 - 1 / ratio)} is left to gain."
    )


def _nothing_feasible(best: Result[Placement]) -> str:
    outcome = best.outcome
    if outcome.verdict is Verdict.OUT_OF_MEMORY:
        over = outcome.details.get("over_capacity_bytes", 0)
        return (
            f"Nothing found fits into memory: the closest, {best.solver}, is {format_bytes(over)} over on "
            "one device. Use more devices, devices with more memory, or a smaller batch."
        )
    return f"Nothing found is feasible: the closest, {best.solver}, is {outcome.verdict.value}."


def _who_is_enough(results: Sequence[Result[Placement]], problem: PlacementProblem) -> str:
    """Whether one device, or a heuristic that needs no search, does as well as anything that was found."""
    feasible = [result for result in results if result.outcome.ok]
    best = feasible[0]
    if len(problem.cluster) > 1:
        single = next((result for result in feasible if result.solver == "single"), None)
        if single is not None and _gain(best, single) <= NEGLIGIBLE:
            device = problem.cluster.devices[int(single.solution.device[0])]
            return f"One {device.name} is enough: no placement found beats it by more than 1 %."
    searches = [result for result in feasible if _searches(result.solver)]
    rules = [
        result
        for result in feasible
        if not _searches(result.solver) and result.solver not in ("single", "random")
    ]
    if not searches or not rules:
        return ""
    return search_or_rule(searches[0], rules[0])


def search_or_rule(search: Result[Any], rule: Result[Any]) -> str:
    """Whether the best search is worth its time beside the best rule."""
    gain = _gain(search, rule)
    if gain <= 0:
        return f"{rule.solver} is enough: {search.solver} finds nothing better."
    if gain <= NEGLIGIBLE:
        return f"{rule.solver} is enough: {search.solver} gains under 1 %."
    return f"{search.solver} is {percent(gain)} better than the best method without search, {rule.solver}."


def _searches(solver: str) -> bool:
    """Whether a solver improves until its budget is spent (and is more than random tries)."""
    from ..conf import make_agent

    return make_agent(solver).anytime and solver != "random"


def _gain(ours: Result[Any], baseline: Result[Any]) -> float:
    """Improvement: 1 - ours / baseline."""
    return 1 - ours.outcome.value / baseline.outcome.value if baseline.outcome.value > 0 else 0.0


def percent(share: float) -> str:
    """A share with a decimal."""
    return f"{100 * share:.1f} %"
