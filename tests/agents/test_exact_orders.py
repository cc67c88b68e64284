"""The exact order program finds what trying everything finds, and claims no more than it has proven."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

from opgym import _core, agents, datasets
from opgym.errors import InvalidProblemError, OpgymError
from opgym.graphs import Graph, GraphBuilder
from opgym.graphs.core_graph import core_graph
from opgym.graphs.order_peak import peak_of_order
from opgym.problems import Budget, Objective, SchedulingProblem
from opgym.problems.checker import check

from ..problems.exhaustive_orders import least_peak
from ..problems.random_problems import random_problem
from ..reference.strategies import graphs

MAX_BYTES = 2**24


def program_of(graph: Graph, *, max_bytes: int = MAX_BYTES) -> _core.OrderProgram:
    """A program that is told nothing but the order of the ops in the graph."""
    return _core.OrderProgram(core_graph(graph), SchedulingProblem(graph).ops, 0, max_bytes)


def run(program: _core.OrderProgram) -> None:
    while not program.over:
        program.run(10**6, 1.0)


def comb(teeth: int, *, outputs: bool = False) -> Graph:
    """Chains of a large and a small tensor, joined at the end: tooth by tooth, one large tensor is live at a time."""
    b = GraphBuilder("comb")
    small = []
    for _ in range(teeth):
        large = b.tensor(bytes=100)
        b.op("open", outputs=[large])
        small.append(b.tensor(bytes=1, is_output=outputs))
        b.op("close", inputs=[large], outputs=[small[-1]])
    b.op("join", inputs=small, outputs=[b.tensor(bytes=1, is_output=True)])
    return b.build()


@settings(max_examples=150, deadline=None)
@given(graphs(max_ops=7).filter(lambda graph: not graph.is_variable.all()))
def test_equals_the_best_of_all_orders(graph):
    """In place or not, with outputs, workspaces, variables, updates, zero sizes, tensors that nobody reads."""
    least = least_peak(graph)
    program = program_of(graph)
    run(program)
    assert program.proven
    assert (program.lower, program.upper) == (least, least)
    assert peak_of_order(graph, program.best_order) == least


@pytest.mark.parametrize("seed", range(150))
def test_the_solver_equals_the_best_of_all_orders(seed):
    rng = np.random.default_rng([seed, 8])
    problem = SchedulingProblem(random_problem(rng, Objective.PEAK_MEMORY, max_ops=8).graph)
    result = agents.make("dp-order").solve(problem)
    assert result.outcome.value == result.bound == least_peak(problem.graph)
    assert result.proven_optimal
    assert check(problem, result.solution) == result.outcome


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("family", ["er", "ba", "ws", "sbm", "layered", "cells", "fork-join"])
def test_equals_a_beam_that_drops_nothing(family, in_place):
    """Another proof, layer by layer; with few sizes, so that many buffers are taken over, and workspaces."""
    for seed in range(3):
        graph = datasets.load(f"synthetic/{family}?n=28&seed={seed}")
        if in_place:
            draw = np.random.default_rng(seed).choice
            graph = replace(
                graph,
                in_place=True,
                op_elementwise=draw([False, True], graph.num_ops),
                op_workspace_bytes=draw([0, 0, 5], graph.num_ops),
                tensor_bytes=draw([4, 6, 6, 9], graph.num_tensors),
                tensor_is_output=draw([False, False, False, True], graph.num_tensors),
            )
        beam = agents.make("beam", width=30_000).solve(SchedulingProblem(graph))
        program = program_of(graph)
        run(program)
        assert beam.proven_optimal
        assert program.proven
        assert program.upper == beam.outcome.value


@pytest.mark.parametrize("teeth", [1, 2, 40, 400])
def test_a_comb_is_closed_tooth_by_tooth(teeth):
    program = program_of(comb(teeth))
    run(program)
    assert program.proven
    assert program.upper == 100 + teeth
    kept = program_of(comb(teeth, outputs=True))
    run(kept)
    assert kept.proven
    assert kept.upper == max(100 + teeth, 1 + teeth)


def test_in_place_saves_only_at_the_last_reader():
    """Two elementwise readers of one tensor: the second one takes it over, whichever that is."""

    def two_readers(in_place: bool) -> Graph:
        b = GraphBuilder("readers", in_place=in_place)
        x = b.tensor(bytes=10)
        b.op("op", outputs=[x])
        ends = [b.tensor(bytes=10) for _ in range(2)]
        for end in ends:
            b.op("relu", inputs=[x], outputs=[end], elementwise=True)
        b.op("add", inputs=ends, outputs=[b.tensor(bytes=1)])
        return b.build()

    for in_place, least in ((False, 30), (True, 21)):
        program = program_of(two_readers(in_place))
        run(program)
        assert program.upper == program.lower == least


@pytest.mark.parametrize(
    ("name", "peak"),
    [
        ("onnx-light/densenet121", 8_429_568),
        ("onnx-light/inception_v1", 6_422_528),
        ("onnx-light/inception_v2", 6_422_528),
        ("onnx-light/resnet50", 9_633_792),
        ("onnx-light/shufflenet", 2_885_120),
        ("synthetic/er?n=50&seed=1", 575_339_202),
        ("synthetic/ba?n=100&seed=0", 1_877_197_878),
        ("synthetic/ws?n=50&seed=0", 792_500_306),
        ("synthetic/sbm?n=100&seed=1", 1_027_261_050),
        ("synthetic/layered?n=100&seed=2", 909_689_634),
        ("synthetic/cells?n=200&seed=0", 508_488_768),
        ("synthetic/fork-join?n=200&seed=1", 501_598_053),
    ],
)
def test_known_optima(name, peak):
    problem = SchedulingProblem(datasets.load(name))
    result = agents.make("dp-order").solve(problem)
    assert result.proven_optimal
    assert result.outcome.value == result.bound == peak


def test_bounds_hold_and_only_rise():
    """Stopped at any moment, the bounds enclose the optimum."""
    graph = datasets.load("synthetic/er?n=60&seed=0")
    program = program_of(graph)
    lower, upper = program.lower, program.upper
    while not program.over:
        program.run(2000, 1.0)
        assert lower <= program.lower <= 821_739_349 <= program.upper <= upper
        assert peak_of_order(graph, program.best_order) == program.upper
        lower, upper = program.lower, program.upper
    assert lower == upper


def test_without_memory_it_ends_with_a_bound():
    graph = datasets.load("synthetic/ws?n=80&seed=1")
    bounds = []
    for max_bytes in (1, 10_000, 100_000):
        program = program_of(graph, max_bytes=max_bytes)
        run(program)
        assert not program.proven
        assert program.lower <= 1_009_994_048 <= program.upper
        bounds.append(program.lower)
    assert bounds == sorted(bounds)


def test_a_budget_of_evaluations_ends_it_with_a_bound():
    problem = SchedulingProblem(datasets.load("synthetic/er?n=150&seed=0"))
    one, two = (agents.make("dp-order").solve(problem, Budget(evaluations=n)) for n in (200, 2_000))
    assert one.evaluations <= 200
    assert not two.proven_optimal
    assert problem.lower_bound().value <= one.bound <= two.bound < two.outcome.value <= one.outcome.value
    again = agents.make("dp-order").solve(problem, Budget(evaluations=2_000))
    assert (again.bound, again.note, again.outcome) == (two.bound, two.note, two.outcome)


def test_a_budget_of_seconds_ends_it_with_a_bound():
    problem = SchedulingProblem(datasets.load("synthetic/er?n=150&seed=0"))
    result = agents.make("dp-order").solve(problem, Budget(seconds=0.4))
    assert result.seconds < 30
    assert not result.proven_optimal
    assert result.bound is not None
    assert problem.lower_bound().value <= result.bound < result.outcome.value


@pytest.mark.parametrize("evaluations", [1, 2, 7, 50])
def test_a_budget_of_evaluations_is_kept(evaluations):
    problem = SchedulingProblem(datasets.load("synthetic/er?n=50&seed=0"))
    result = agents.make("dp-order").solve(problem, Budget(evaluations=evaluations))
    assert result.evaluations <= evaluations
    assert result.bound is not None
    assert result.bound <= 484_946_442 <= result.outcome.value
    assert result.proven_optimal == (result.bound == result.outcome.value)


def test_the_same_seed_takes_the_same_course():
    problem = SchedulingProblem(datasets.load("synthetic/er?n=60&seed=0"))
    one, other = (agents.make("dp-order").solve(problem, rng=np.random.default_rng(3)) for _ in range(2))
    assert one.note == other.note
    assert one.evaluations == other.evaluations
    assert np.array_equal(one.solution.op, other.solution.op)


def test_wrong_options_are_refused():
    with pytest.raises(InvalidProblemError, match="max_bytes = 0; expected a whole number, 1 or more"):
        agents.make("dp-order", max_bytes=0)
    with pytest.raises(OpgymError, match="state"):
        agents.make("dp-order", states=3)
