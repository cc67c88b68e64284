"""``opgym reproduce memory-truth``, ``step-time-truth`` and ``ranking-robustness``: the simulator beside reality."""

from __future__ import annotations

from typing import Annotated

import typer

from .console import complain, print_json
from .problem import JsonOption
from .progress import counting_bar
from .workers import WorkersOption, cores


def memory_truth(
    quick: Annotated[
        bool, typer.Option("--quick", help="Three networks, and a shorter search for the good order.")
    ] = False,
    workers: WorkersOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compare simulated peaks with bytes that torch really allocates, order by order (a minute of CPU time).

    Example:

    ```sh
    opgym reproduce memory-truth --quick
    ```

    Training steps of eleven small networks of the zoo run on the CPU, op by op, in program order, the order that
    order-search finds, those of heuristics, a random one and the worst of 100 random ones; torch's profiler
    records every block that its allocator hands out. Besides, each step runs by torch's autograd and optimizer, which
    know nothing of the graph. Needs torch (extra zoo).

    The bars: no peak off by more than 5 %, which ends the command with an error (exit code 1), and orders ranked
    alike: Kendall's tau of at least 0.9 over orders whose peaks differ by more than 2 %.
    """
    from ..runs.reproduce.memory_truth import run

    with counting_bar("networks") as progress:
        document = run(quick=quick, workers=workers or cores(), progress=progress)
    if as_json:
        print_json(document)
    else:
        from .truth_report import show_memory_truth

        show_memory_truth(document)
    if not document["summary"]["peaks_met"]:
        complain("a simulated peak is further from the measured one than 5 %")
        raise typer.Exit(1)


def step_time_truth(
    quick: Annotated[bool, typer.Option("--quick", help="One network, and fewer repetitions.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Compare simulated step times with measured ones on two cores, placement by placement (4 minutes).

    Example:

    ```sh
    opgym reproduce step-time-truth --quick
    ```

    Training steps of four small networks run on two processes, each bound to a core, under twenty placements each;
    tensors move through shared memory. The simulator gets the time that each op took when one process ran the step,
    and the link as it was measured. What every placement computes is compared with what one process computes. Nothing
    else should run on the machine meanwhile. Needs torch (extra zoo), Linux and two cores.

    The bar: Kendall's tau of at least 0.8 between simulated and measured times of a network's placements; a
    network that misses it ends the command with an error (exit code 1).
    """
    from ..runs.reproduce.step_time_truth import run

    with counting_bar("networks") as progress:
        document = run(quick=quick, progress=progress)
    if as_json:
        print_json(document)
    else:
        from .truth_report import show_step_time_truth

        show_step_time_truth(document)
    if missed := document["summary"]["ranking_missed_by"]:
        complain(f"placements are ranked less alike than tau = 0.8: {', '.join(missed)}")
        raise typer.Exit(1)


def ranking_robustness(
    quick: Annotated[bool, typer.Option("--quick", help="Rows of up to 4,000 ops.")] = False,
    workers: WorkersOption = None,
    as_json: JsonOption = False,
) -> None:
    """Rank the heuristics on suite gdp under changed models, beside the default ones (80 s of CPU time).

    Example:

    ```sh
    opgym reproduce ranking-robustness --quick
    ```

    Launch overheads of 2 to 20 us, links of twice and half the bandwidth, kinds of ops that reach 50 to 100 % of the
    roofline, and all four models of channels. Kendall's tau compares the order of the solvers with that under
    the default model: once solved anew, and once with the placements of the default model.
    """
    from ..runs.reproduce.robustness import run
    from .truth_report import show_robustness

    with counting_bar("rows") as progress:
        document = run(quick=quick, workers=workers or cores(), progress=progress)
    if as_json:
        print_json(document)
    else:
        show_robustness(document)
