"""The peak of a given order on one device, worked by hand, on both implementations."""

import pytest

from opgym.benchmark import reference_simulator
from opgym.graphs import order_peak

from .case import Case


@pytest.fixture(
    params=[reference_simulator.peak_of_order, order_peak.peak_of_order], ids=["reference", "core"]
)
def peak(request):
    """An implementation: (case, names of ops in order) -> peak."""

    def of(case: Case, names: str) -> int:
        graph = case.build()
        return request.param(graph, [graph.op_names.index(name) for name in names.split()])

    return of


def two_branches() -> Case:
    """Two branches that each make something large out of a small thing and reduce it."""
    case = Case()
    case.op("root", "", {"r": 1})
    case.op("grow1", "r", {"large1": 10})
    case.op("grow2", "r", {"large2": 20})
    case.op("reduce1", "large1", {"small1": 2})
    case.op("reduce2", "large2", {"small2": 3})
    case.op("join", "small1 small2", {"out": 1})
    return case


def test_the_order_decides_the_peak(peak):
    case = two_branches()
    # grow2 last: r and both large ones. Depth first: 1 + 20 + 3 at reduce2, and later 3 + 10 + 2.
    assert peak(case, "root grow1 grow2 reduce1 reduce2 join") == 1 + 10 + 20 + 2 - 1
    assert peak(case, "root grow2 reduce2 grow1 reduce1 join") == 1 + 20 + 3
    assert peak(case, "root grow1 reduce1 grow2 reduce2 join") == 2 + 20 + 3


def test_the_moment_of_the_peak_is_the_run_of_an_op(peak):
    case = Case()
    case.op("a", "", {"x": 10}, workspace=5)
    case.op("b", "x", {"y": 4}, workspace=2)
    assert peak(case, "a b") == 16
    case.rows[0].workspace = 7
    assert peak(case, "a b") == 17


def test_outputs_and_unread_tensors(peak):
    case = Case()
    case.op("a", "", {"x": 10, "unread": 90})
    case.op("b", "x", {"y": 4})
    case.op("c", "y", {"z": 1})
    assert peak(case, "a b c") == 100
    case.output("unread")
    assert peak(case, "a b c") == 104
    case.output("x", "y")
    assert peak(case, "a b c") == 105


def test_resident_bytes_are_apart(peak):
    case = Case()
    case.source("s", 1000)
    case.variable("w", 500)
    case.op("a", "s w", {"x": 10})
    case.op("step", "x w", {"w'": 500}, updates="w", workspace=3)
    assert peak(case, "a step") == 13


def test_a_variable_may_be_listed_anywhere_or_not_at_all(peak):
    case = Case()
    case.variable("w", 500)
    case.op("a", "w", {"x": 10})
    case.op("b", "x")
    for order in ("a b", "w a b", "a w b", "a b w"):
        assert peak(case, order) == 10


def test_in_place(peak):
    case = Case(in_place=True)
    case.op("a", "", {"x": 10})
    case.op("b", "x", {"y": 10}, elementwise=True)
    case.op("other", "x")
    assert peak(case, "a b other") == 20
    assert peak(case, "a other b") == 10


@pytest.mark.parametrize(
    "order", ["root", "root root grow1 grow2 reduce1 reduce2 join", "grow1 root grow2 reduce1 reduce2 join"]
)
def test_what_is_no_topological_order_of_all_ops_is_refused(peak, order):
    with pytest.raises(ValueError, match="order"):
        peak(two_branches(), order)


@pytest.mark.parametrize("order", [[0, 1, 2, 3, 4, 6], [-1, 0, 1, 2, 3, 4], []])
@pytest.mark.parametrize("implementation", [reference_simulator.peak_of_order, order_peak.peak_of_order])
def test_unknown_ops_are_refused(implementation, order):
    with pytest.raises(ValueError, match="order"):
        implementation(two_branches().build(), order)
