"""The plain sentences under the table, on results made by hand."""

from typing import Any

import numpy as np
import pytest

from opgym.agents import Result
from opgym.cli.console import finite
from opgym.cli.report import conclusions, json_row, peaks_text, ranked, values_text
from opgym.graphs import Cluster, GraphBuilder
from opgym.outcome import Outcome, Verdict
from opgym.problems import Bound, Placement, PlacementProblem

BOUND = Bound(1_000_000, "ns", "critical path")


def problem(spec: str = "2xP100") -> PlacementProblem:
    b = GraphBuilder("example", "one")
    b.op("Relu", outputs=[b.tensor(bytes=4)])
    return PlacementProblem(b.build(), Cluster.parse(spec))


def result(solver: str, value: float, verdict: Verdict = Verdict.OK, **details: Any) -> Result:
    share = 0.5 if verdict is Verdict.OUT_OF_MEMORY else 0.0
    return Result(
        solver, Placement(np.zeros(1, int)), Outcome(value, "ns", verdict, share, details), 3, 0.5, ()
    )


def sentences(*results: Result, spec: str = "2xP100", bound: Bound = BOUND) -> list[str]:
    return conclusions(ranked(results), problem(spec), bound)


def test_one_device_is_enough() -> None:
    found = sentences(result("single", 2_000_000), result("m-etf", 1_990_000), result("annealing", 1_985_000))
    assert found == [
        "One P100 is enough: no placement found beats it by more than 1 %.",
        "The best found is 1.99 times the lower bound (critical path, 1 ms): at most 49.6 % is left to gain.",
    ]


def test_one_device_is_not_enough_if_it_does_not_fit() -> None:
    found = sentences(
        result("single", 2_000_000, Verdict.OUT_OF_MEMORY),
        result("m-etf", 2_000_000),
        result("annealing", 2_000_000),
    )
    assert found[0] == "m-etf is enough: annealing finds nothing better."


def test_the_best_heuristic_is_enough() -> None:
    found = sentences(result("single", 3_000_000), result("m-etf", 2_000_000), result("annealing", 1_990_000))
    assert found[0] == "m-etf is enough: annealing gains under 1 %."


def test_search_pays() -> None:
    found = sentences(
        result("single", 3_000_000), result("m-etf", 2_500_000), result("metis", 2_000_000),
        result("annealing", 1_500_000), result("random", 1_000),
    )  # fmt: skip
    assert found[0] == "annealing is 25.0 % better than the best method without search, metis."


def test_the_bound_is_met() -> None:
    found = sentences(result("single", 3_000_000), result("m-etf", 1_000_000))
    assert found == ["Nothing can be better: m-etf meets the lower bound (critical path)."]


def test_on_one_device_nobody_is_told_that_one_is_enough() -> None:
    found = sentences(result("single", 2_000_000), spec="1xP100")
    assert found == [
        "The best found is 2.00 times the lower bound (critical path, 1 ms): at most 50.0 % is left to gain."
    ]


def test_nothing_fits() -> None:
    found = sentences(
        result("single", 2_000_000, Verdict.OUT_OF_MEMORY, over_capacity_bytes=3 * 2**20),
        result("m-etf", float("inf"), Verdict.COLOCATION_VIOLATED),
    )
    assert found == [
        "Nothing found fits into memory: the closest, single, is 3 MiB over on one device. "
        "Use more devices, devices with more memory, or a smaller batch."
    ]


def test_a_bound_of_zero_says_nothing() -> None:
    zero = Bound(0, "ns", "nothing")
    assert sentences(result("m-etf", 5), bound=zero) == []
    assert json_row(result("m-etf", 5), zero)["ratio_to_bound"] is None


def test_an_infeasible_row_has_no_value() -> None:
    row = json_row(result("m-etf", float("inf"), Verdict.WRONG_LENGTH), BOUND)
    assert (row["value"], row["ratio_to_bound"], row["verdict"]) == (None, None, "wrong_length")
    assert row["peak_bytes"] is None


@pytest.mark.parametrize(
    ("spec", "peaks", "text"),
    [
        ("4xP100", [412 * 2**20, 38 * 2**20, 2**19, 0], "412 / 38 / 0.5 / 0 MiB"),
        ("2xP100", [1023 * 2**20, 2**20], "1,023 / 1 MiB"),
        ("4xP100", [2**30, 2**20, 12, 100 * 2**30], "1 / <0.01 / <0.01 / 100 GiB"),
        ("2xP100", [0, 0], "0 / 0 B"),
        ("9xP100", [0] * 8 + [2**30], "1 GiB at most, on P100:8"),
    ],
)
def test_peaks(spec: str, peaks: list[int], text: str) -> None:
    assert peaks_text(peaks, Cluster.parse(spec).device_names) == text


@pytest.mark.parametrize(
    ("values", "unit", "texts"),
    [
        ([1_707_000, 5_749_123, float("inf")], "ns", ["1.707 ms", "5.749 ms", "-"]),
        ([0.5, 1500.0], "ms", ["500.000 µs", "1,500,000.000 µs"]),
        ([2**21, 2**31], "bytes", ["2.000 MiB", "2,048.000 MiB"]),
        ([float("inf")], "ns", ["-"]),
    ],
)
def test_a_column_of_values_has_one_unit(values: list[float], unit: str, texts: list[str]) -> None:
    assert values_text(values, unit) == texts


def test_json_data_is_finite_and_plain() -> None:
    data = {"a": np.array([1.0, np.inf]), "b": (np.int64(3), float("nan")), 4: [np.bool_(True)]}
    assert finite(data) == {"a": [1.0, None], "b": [3, None], "4": [True]}
