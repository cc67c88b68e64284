"""``opgym benchmark``: how fast this machine runs the hot parts."""

from __future__ import annotations

import sys
from contextlib import nullcontext

import typer

from .console import new_table, print_json, show, stderr
from .problem import JsonOption

benchmark_app = typer.Typer(no_args_is_help=True, help="Measure the hot parts on this machine.")


@benchmark_app.callback()
def benchmark() -> None:
    """Measure the hot parts on this machine."""


@benchmark_app.command("simulator")
def simulator(as_json: JsonOption = False) -> None:
    """Measure the event simulator against graph sorts and a plain Python implementation (under 100 s).

    Example:

    ```sh
    opgym benchmark simulator --json
    ```

    Times are CPU times of one thread, taken in turn so that a noisy machine hurts all alike; judge by the
    ratios.
    --json prints a list of {case, ops, devices, ns_per_op, ratio_to_topological_sort, ratio_to_reference},
    with the bar that the design sets (a ratio; milliseconds for the one large evaluation) and whether it holds.
    """
    from ..benchmark.simulator import run

    with stderr().status("measuring") if sys.stderr.isatty() else nullcontext() as status:
        rows = run(None if status is None else lambda case: status.update(f"measuring: {case}"))
    if as_json:
        print_json(rows)
        return
    numbers = ("ops", "dev", "ns/op", "x sort", "reference / ours", "bar", "held")
    grid = new_table({"case": "left"} | dict.fromkeys(numbers, "right"))
    for row in rows:
        grid.add_row(
            row["case"],
            f"{row['ops']:,}",
            str(row["devices"]),
            f"{row['ns_per_op']:.1f}",
            _number(row["ratio_to_topological_sort"]),
            _number(row["ratio_to_reference"]),
            _number(row["bar"]),
            {True: "yes", False: "no", None: "-"}[row["within_bar"]],
        )
    show(grid)


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"
