"""``opgym benchmark``: how fast this machine runs the hot parts."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

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

    with _status() as measuring:
        rows = run(measuring)
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
            _held(row["within_bar"]),
        )
    show(grid)


@benchmark_app.command("search")
def search(as_json: JsonOption = False) -> None:
    """Measure the searches against public packages around the same evaluation (under 100 s).

    Example:

    ```sh
    opgym benchmark search --json
    ```

    BRKGA against brkga-mp-ipr and pymoo, annealing against simanneal and against computing each peak anew
    (`pip install 'opgym[peers]'`). Seconds are CPU times of one thread; a ratio is the peer's time per
    evaluation over ours, so that a slow peer can spend fewer of them.

    --json prints a list of {case, ops, devices, evaluations, seconds, peer, ratio_to_peer}, with the peer's
    evaluations, the best peaks of both, the bars that the design sets and whether they hold.
    """
    from ..benchmark.search import run

    with _status() as measuring:
        rows = run(measuring)
    if as_json:
        print_json(rows)
        return
    numbers = ("ops", "dev", "evaluations", "seconds", "bar", "peer / ours", "bar ", "held")
    grid = new_table({"case": "left"} | dict.fromkeys(numbers, "right"))
    for row in rows:
        grid.add_row(
            row["case"],
            f"{row['ops']:,}",
            str(row["devices"]),
            f"{row['evaluations']:,}",
            f"{row['seconds']:.3f}",
            _number(row["bar_seconds"]),
            f"{row['ratio_to_peer']:.1f}",
            _number(row["bar_ratio"]),
            _held(row["within_bar"]),
        )
    show(grid)


@benchmark_app.command("envs")
def envs(as_json: JsonOption = False) -> None:
    """Measure the environments: single ones, Gymnasium's batches of them, native batches (under 100 s).

    Example:

    ```sh
    opgym benchmark envs --json
    ```

    Steps per second of CPU time of one thread, the best of several turns, on a graph of 1,000 ops; all play the same
    legal actions, drawn beforehand, and ends and resets count. A native batch is compared with Gymnasium's
    SyncVectorEnv of as many single environments; 1 env: the single one, through `gymnasium.make` without its passive
    checker.

    --json prints a list of {env, observation, num_envs, ops, steps_per_second, ratio_to_sync}, with
    SyncVectorEnv's steps per second, the bars that the design sets and whether they hold; a ratio is null for
    the single environment.
    """
    from ..benchmark.envs import run

    with _status() as measuring:
        rows = run(measuring)
    if as_json:
        print_json(rows)
        return
    numbers = ("envs", "ops", "steps/s", "bar", "sync's", "x sync", "bar ", "held")
    grid = new_table({"env": "left", "observation": "left"} | dict.fromkeys(numbers, "right"))
    for row in rows:
        grid.add_row(
            row["env"],
            row["observation"],
            str(row["num_envs"]),
            f"{row['ops']:,}",
            _count(row["steps_per_second"]),
            _count(row["bar_steps_per_second"]),
            _count(row["sync_steps_per_second"]),
            _number(row["ratio_to_sync"]),
            _number(row["bar_ratio"]),
            _held(row["within_bar"]),
        )
    show(grid)


@benchmark_app.command("proposals")
def proposals(as_json: JsonOption = False) -> None:
    """Measure learned proposals on graphs of 2,000 ops: the whole solve, and the network in it (under 100 s).

    Example:

    ```sh
    opgym benchmark proposals --json
    ```

    Seconds are CPU times of one thread, from the problem to the solution, with 5,000 evaluations of BRKGA; the network
    is the forward pass alone, features of the graph belong to the rest. Held: under 3 s, under 0.2 of it the network.

    --json prints a list of {agent, task, graph, ops, edges, seconds, network_seconds, network_share}, with the bars
    that the design sets and whether they hold.
    """
    from ..benchmark.proposals import run

    with _status() as measuring:
        rows = run(measuring)
    if as_json:
        print_json(rows)
        return
    numbers = ("ops", "edges", "seconds", "network, s", "share", "held")
    grid = new_table({"agent": "left", "task": "left", "graph": "left"} | dict.fromkeys(numbers, "right"))
    for row in rows:
        grid.add_row(
            row["agent"],
            row["task"],
            row["graph"],
            f"{row['ops']:,}",
            f"{row['edges']:,}",
            _number(row["seconds"]),
            _number(row["network_seconds"]),
            _number(row["network_share"]),
            _held(row["within_bar"]),
        )
    show(grid)


@contextmanager
def _status() -> Iterator[Callable[[str], None] | None]:
    """A line on stderr that says what is measured; ``None`` where nobody would see it."""
    if not sys.stderr.isatty():
        yield None
        return
    with stderr().status("measuring") as status:
        yield lambda case: status.update(f"measuring: {case}")


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _count(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}"


def _held(within_bar: bool | None) -> str:
    return {True: "yes", False: "no", None: "-"}[within_bar]
