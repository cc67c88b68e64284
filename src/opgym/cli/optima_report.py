"""What ``opgym reproduce optima`` prints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .console import new_table, show, stdout


def show_optima(document: Mapping[str, Any]) -> None:
    """A table of the graphs, one of the solvers, and what follows."""
    from ..runs.reproduce.optima import trivial

    graphs = new_table(
        {"graph": "left", "ops": "right", "bytes": "right", "proven by": "left", "s": "right", "program": "right",
         "beam": "right", "search": "right"},
        title="Least peaks, and ratios to them: program order, beam and order-search",
    )  # fmt: skip
    for row in document["rows"]:
        least = row["best_bytes"]
        ratios = [f"{row['values'][name] / least:.3f}" if least else "-" for name in _SHOWN]
        if trivial(row):
            ratios[0] = "trivial"
        provers = dict.fromkeys("bound" if name.startswith("bound") else name for name in row["proven_by"])
        by = ", ".join(provers) or f"open, {row['bound_bytes'] / least:.3f} of it"
        graphs.add_row(row["graph"], str(row["ops"]), str(least), by, f"{row['seconds']:.1f}", *ratios)
    show(graphs)

    summary = document["summary"]
    solvers = new_table(
        {"solver": "left", "optimal": "right", "where not trivial": "right", "mean ratio": "right", "worst": "right"},
        title=f"At {document['evaluations']:,} evaluations (or as named); ratios to the optimum where not trivial",
    )  # fmt: skip
    for line in summary["solvers"]:
        solvers.add_row(
            line["solver"],
            _share(line["reached"]),
            _share(line["reached_where_not_trivial"]),
            _ratio(line["mean_ratio"]),
            _ratio(line["worst_ratio"]),
        )
    show(solvers)
    console = stdout()
    for sentence in conclusions(summary):
        console.print(sentence)


def conclusions(summary: Mapping[str, Any]) -> list[str]:
    """What the tables show, in sentences."""
    real, reached = summary["real_from_100_ops"], summary["beam_or_order_search"]
    return [
        f"{summary['proven']} of {summary['graphs']} optima are proven, {summary['by_graph_bound']} of them by a bound "
        f"of the graph and {summary['confirmed']} by two solvers; {summary['trivial']} are trivial.",
        f"Real graphs with 100 ops and more: {real['proven']} of {real['graphs']} proven.",
        *(
            f"{who} reaches the optimum on {_share(reached[key]['reached'])} of the proven graphs, on "
            f"{_share(reached[key]['reached_where_not_trivial'])} of those that are not trivial."
            for who, key in (
                ("Beam or order-search", "short"),
                ("Beam or order-search at its own 200,000 evaluations", "long"),
            )
        ),
    ]


_SHOWN = ("program-order", "beam", "order-search")


def _share(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.0f} %"


def _ratio(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
