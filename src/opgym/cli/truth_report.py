"""What ``opgym reproduce memory-truth``, ``step-time-truth`` and ``ranking-robustness`` print."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .console import new_table, show, stdout


def show_memory_truth(document: Mapping[str, Any]) -> None:
    """A table of networks and orders, one of torch's own steps, and what follows."""
    runs = new_table(
        {"network": "left", "order": "left", "simulated, MB": "right", "measured, MB": "right", "ratio": "right",
         "above resident": "right", "peak at": "left"},
        title="Peak memory of a training step, simulated and measured; ratio is measured over simulated",
    )  # fmt: skip
    for row in document["rows"]:
        for line in row["orders"]:
            runs.add_row(
                row["network"],
                line["order"],
                _megabytes(line["simulated_bytes"]),
                _megabytes(line["measured_bytes"]),
                f"{line['ratio']:.4f}",
                f"{line['step_ratio']:.4f}",
                line["peak_kind"],
            )
    show(runs)
    own = new_table(
        {"network": "left", "ops": "right", "simulated, MB": "right", "by torch, MB": "right", "ratio": "right",
         "above resident": "right", "tau": "right", "pairs": "right"},
        title="Program order beside torch's own step; tau of the orders above",
    )  # fmt: skip
    for row in document["rows"]:
        by_torch = row["by_torch"]
        own.add_row(
            row["network"],
            str(row["ops"]),
            _megabytes(row["orders"][0]["simulated_bytes"]),
            _megabytes(by_torch["measured_bytes"]),
            f"{by_torch['ratio']:.4f}",
            f"{by_torch['step_ratio']:.4f}",
            _tau(row["tau"]),
            str(row["ranked_pairs"]),
        )
    show(own)
    console = stdout()
    for sentence in conclusions(document["summary"]):
        console.print(sentence)


def conclusions(summary: Mapping[str, Any]) -> list[str]:
    """What the tables show, in sentences."""
    errors = {key: _percent(summary[key]) for key in ("peaks", "steps", "without_workspaces", "by_torch")}
    missed = summary["ranking_missed_by"]
    return [
        f"{summary['exact']} of {summary['runs']} peaks are right to the byte, "
        f"{summary['exact_without_workspaces']} without the workspaces of kernels.",
        f"The largest error of a peak is {errors['peaks']}: the bar of {100 * summary['tolerance']:.0f} % is "
        f"{'met' if summary['peaks_met'] else 'missed'}. Above what is resident it is {errors['steps']}, without "
        f"workspaces {errors['without_workspaces']}.",
        f"{summary['ranked_pairs']} pairs of orders of {summary['ranked_networks']} networks differ; the least tau is "
        f"{_tau(summary['least_tau'])}, without workspaces {_tau(summary['least_tau_without_workspaces'])}: the bar "
        f"of {summary['min_tau']:.1f} is {'missed by ' + ', '.join(missed) if missed else 'met'}.",
        f"Torch's own steps differ by at most {errors['by_torch']}.",
    ]


def show_step_time_truth(document: Mapping[str, Any]) -> None:
    """A table of placements, one of networks, and what follows."""
    runs = new_table(
        {"network": "left", "placement": "left", "simulated": "right", "default": "right", "measured": "right",
         "fastest": "right", "ratio": "right", "sends": "right", "MB": "right"},
        title="Step time in ms on two cores; ratio is measured over simulated",
    )  # fmt: skip
    for row in document["rows"]:
        for line in row["placements"]:
            runs.add_row(
                row["network"],
                line["placement"],
                *(_milliseconds(line[key]) for key in ("own_ns", "default_ns", "measured_ns", "fastest_ns")),
                f"{line['measured_ns'] / line['own_ns']:.3f}",
                str(line["sends"]),
                f"{line['sent_bytes'] / 1e6:.1f}",
            )
    show(runs)
    near = new_table(
        {"network": "left", "ops": "right", "op, us": "right", "tau": "right", "> 2 %": "right", "fastest": "right",
         "default": "right", "free": "right", "error": "right", "largest": "right"},
        title="Tau of simulated and measured times, also by other models of transfers; op and error are medians",
    )  # fmt: skip
    gains = new_table(
        {"network": "left", "best by simulation": "left", "simulated": "right", "measured": "right", "loss": "right",
         "contention": "right"},
        title="Speed-up over one device; loss is that over the fastest placement when measured",
    )  # fmt: skip
    for row in document["rows"]:
        own, best = row["own"], row["best"]
        near.add_row(
            row["network"],
            str(row["ops"]),
            f"{row['median_op_ns'] / 1e3:.0f}",
            *(_tau(own[key]) for key in ("tau", "tau_apart", "tau_fastest")),
            *(_tau(row[model]["tau"]) for model in ("default", "free")),
            *(f"{100 * own[key]:.1f} %" for key in ("median_error", "largest_error")),
        )
        gains.add_row(
            row["network"],
            best["placement"],
            *(f"{best[key]:.2f}" for key in ("simulated_speedup", "measured_speedup")),
            *(f"{100 * share:.1f} %" for share in (best["loss"], row["contention"])),
        )
    show(near)
    show(gains)
    console = stdout()
    for sentence in step_time_conclusions(document):
        console.print(sentence)


def step_time_conclusions(document: Mapping[str, Any]) -> list[str]:
    """What the tables show, in sentences."""
    summary, machine = document["summary"], document["machine"]
    missed = summary["ranking_missed_by"]
    difference = summary["largest_difference"]
    links = [row["link"] for row in document["rows"]]
    copies, signals = (max(link[key] for link in links) / 1e3 for key in ("copy_ns", "signal_ns"))
    return [
        f"The least tau is {_tau(summary['least_tau'])}, by the default model {_tau(summary['least_tau_default'])}: "
        f"the bar of {summary['min_tau']:.1f} is {'missed by ' + ', '.join(missed) if missed else 'met'}.",
        f"The largest error of a step time is {_percent(summary)}.",
        f"All {summary['runs']} placements compute what one process computes, "
        + (f"to within {difference:.1g} of a tensor's largest number." if difference else "bit by bit."),
        f"When both cores run the whole step, ops take at most {100 * summary['largest_contention']:.1f} % longer.",
        f"Sending costs up to {copies:.1f} us and {min(link['bytes_per_second'] for link in links) / 1e9:.1f} GB/s, "
        f"hearing of it {signals:.1f} us. Processor: {machine['processor']}; torch {machine['torch']}.",
    ]


def show_robustness(document: Mapping[str, Any]) -> None:
    """A table of changes, for solvers that know the changed model and for placements of the default one."""
    for how, title in (("solved", "solved anew"), ("kept", "placements of the default model")):
        grid = new_table(
            {"change": "left", "mean tau": "right", "apart": "right", "least": "right", "same winner": "right",
             "mean loss": "right", "largest": "right"},
            title=f"Order of heuristics on {len(document['rows'])} rows of {document['suite']}, {title}",
        )  # fmt: skip
        for line in document["changes"]:
            if found := line[how]:
                grid.add_row(
                    line["change"],
                    _tau(found["mean_tau"]),
                    _tau(found["mean_tau_apart"]),
                    _tau(found["least_tau"]),
                    f"{100 * found['same_winner']:.0f} %",
                    f"{100 * found['mean_loss']:.1f} %",
                    f"{100 * found['largest_loss']:.1f} %",
                )
        show(grid)
    stdout().print(
        f"Apart: solvers that differ by more than {100 * document['margin']:.0f} %. Loss: the default model's "
        "winner over the changed model's."
    )


def _tau(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _percent(error: Mapping[str, Any]) -> str:
    return f"{100 * error['largest_error']:.2f} % ({error['where']})"


def _milliseconds(time_ns: int) -> str:
    return f"{time_ns / 1e6:.2f}"


def _megabytes(count: int) -> str:
    return f"{count / 1e6:.3f}"
