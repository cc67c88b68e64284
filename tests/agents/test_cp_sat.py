"""CP-SAT proves what trying everything finds, and its models leave no run of the simulator out."""

from __future__ import annotations

import os
import signal
import sys
import threading
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

from opgym import agents, datasets
from opgym.agents.exact.cp_sat import engine
from opgym.agents.exact.cp_sat.order_model import OrderModel, ancestors, free_triples
from opgym.agents.exact.cp_sat.placement_model import PlacementModel, horizon_ns
from opgym.errors import InvalidProblemError, MissingExtraError
from opgym.graphs import Cluster, Graph, GraphBuilder
from opgym.graphs.cluster import CHANNELS
from opgym.problems import Budget, Objective, Order, PlacementProblem, SchedulingProblem

from ..problems.exhaustive_orders import all_orders, least_peak
from ..problems.instances import accelerator, cpu, dag, problem
from ..problems.random_problems import random_placement, random_problem
from ..reference.strategies import graphs
from .edge_cases import EDGE_CASES
from .exhaustive_placement import best_value

SIMULATED = ("step_time", "peak_memory")


def plain_solver():
    """CP-SAT on one thread; one that caught signals would leave Ctrl-C without Python's handler."""
    solver = engine.load().CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.catch_sigint_signal = False
    return solver


def optimum_of_model(graph: Graph) -> tuple[int, np.ndarray]:
    """Least peak by the model alone: no search before it, no bound, a hint that may be poor."""
    scheduling = SchedulingProblem(graph)
    model = OrderModel(scheduling, engine.load())
    high = int(graph.tensor_bytes.sum() + graph.op_workspace_bytes.sum())
    solver = plain_solver()
    status = solver.solve(model.instance(0, high, scheduling.ops, minimise=True))
    assert status == engine.load().OPTIMAL
    return round(solver.objective_value) * model.unit_bytes, model.order(solver)


# --- Orders -------------------------------------------------------------------------------------------


@settings(max_examples=120, deadline=None)
@given(graphs(max_ops=7).filter(lambda graph: not graph.is_variable.all()))
def test_the_model_of_orders_equals_the_best_of_all_orders(graph):
    """In place or not, with outputs, workspaces, variables, updates, zero sizes, tensors that nobody reads."""
    least = least_peak(graph)
    value, order = optimum_of_model(graph)
    assert value == least
    assert SchedulingProblem(graph).evaluate(Order(order)).value == least


@settings(max_examples=40, deadline=None)
@given(graphs(max_ops=5).filter(lambda graph: not graph.is_variable.all()))
def test_every_order_is_a_solution_of_the_model_with_its_own_peak(graph):
    scheduling = SchedulingProblem(graph)
    model = OrderModel(scheduling, engine.load())
    for order in [np.array(order, np.int32) for order in all_orders(graph)][:6]:
        peak = int(scheduling.evaluate(Order(order)).value)
        instance = model.instance(0, peak, order, minimise=True)
        solver = plain_solver()
        solver.parameters.fix_variables_to_their_hinted_value = True
        assert solver.solve(instance) == engine.load().OPTIMAL
        assert solver.objective_value * model.unit_bytes == peak
        assert model.order(solver).tolist() == order.tolist()


@pytest.mark.parametrize("family", ["er", "ba", "ws", "sbm", "layered", "cells", "fork-join"])
def test_proves_the_same_optimum_as_the_program_over_down_sets(family):
    scheduling = SchedulingProblem(datasets.load(f"synthetic/{family}?n=40&seed=2000000"))
    result = agents.make("cp-sat").solve(scheduling)
    other = agents.make("dp-order").solve(scheduling)
    assert result.proven_optimal
    assert other.proven_optimal
    assert result.outcome.value == result.bound == other.outcome.value


@pytest.mark.parametrize("start_evaluations", [1, 2_000])
def test_improves_on_what_it_starts_from(start_evaluations):
    """Searched for long or for a single evaluation, the proof ends at the same peak."""
    scheduling = SchedulingProblem(datasets.load("synthetic/layered?n=50&seed=2000003"))
    result = agents.make("cp-sat", start_evaluations=start_evaluations).solve(scheduling)
    assert result.proven_optimal
    assert result.outcome.value == agents.make("dp-order").solve(scheduling).outcome.value
    if start_evaluations == 1:  # the start was the program order
        assert result.outcome.value < scheduling.reference_bytes
        assert result.evaluations > 1


@pytest.mark.parametrize("effort", [0.0, 0.02, 0.3])
def test_a_bound_under_limits_holds_and_the_start_is_not_lost(effort):
    scheduling = SchedulingProblem(datasets.load("synthetic/ws?n=50&seed=2000001"))
    least = agents.make("dp-order").solve(scheduling)
    assert least.proven_optimal
    result = agents.make("cp-sat", effort=effort).solve(scheduling)
    search = agents.make("order-search").solve(scheduling, Budget(evaluations=20_000))
    assert scheduling.lower_bound().value <= result.bound <= least.outcome.value <= result.outcome.value
    assert result.outcome.value <= search.outcome.value
    assert result.proven_optimal == (result.bound == result.outcome.value)
    if effort == 0.0:
        assert not result.proven_optimal


def test_refutations_raise_the_bound_where_the_optimum_stays_open():
    scheduling = SchedulingProblem(datasets.load("synthetic/er?n=60&seed=2000001"))
    result = agents.make("cp-sat", effort=0.5).solve(scheduling)
    least = agents.make("dp-order").solve(scheduling)
    assert least.proven_optimal
    assert not result.proven_optimal
    assert 1.2 * scheduling.lower_bound().value < result.bound <= least.outcome.value <= result.outcome.value


@pytest.mark.parametrize("seconds", [0.0, 0.3, 1.0])
def test_seconds_are_a_limit(seconds):
    scheduling = SchedulingProblem(datasets.load("synthetic/ws?n=70&seed=2000002"))
    result = agents.make("cp-sat").solve(scheduling, Budget(seconds=seconds))
    assert result.seconds < seconds + 60  # no more than a model that is built on a slow machine
    assert result.bound <= result.outcome.value <= scheduling.reference_bytes


@pytest.mark.parametrize("evaluations", [1, 2, 3, 50])
def test_evaluations_are_a_limit_and_what_is_left_open_is_not_claimed(evaluations):
    scheduling = SchedulingProblem(datasets.load("synthetic/layered?n=50&seed=2000003"))
    least = agents.make("dp-order").solve(scheduling).outcome.value
    result = agents.make("cp-sat").solve(scheduling, Budget(evaluations=evaluations))
    assert 1 <= result.evaluations <= evaluations
    assert result.bound <= least <= result.outcome.value
    assert not result.proven_optimal or result.outcome.value == least


def test_an_interrupt_ends_the_search_and_is_heard():
    scheduling = SchedulingProblem(datasets.load("synthetic/er?n=90&seed=2000000"))
    solver = agents.make("cp-sat", effort=100.0, start_evaluations=100)
    timer = threading.Timer(2.0, os.kill, (os.getpid(), signal.SIGINT))
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
    try:
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            solver.solve(scheduling)
    finally:
        signal.signal(signal.SIGINT, before)


def test_the_same_seed_gives_the_same_order():
    scheduling = SchedulingProblem(datasets.load("synthetic/layered?n=40&seed=2000000"))
    one, two = (agents.make("cp-sat").solve(scheduling, rng=np.random.default_rng(3)) for _ in range(2))
    assert one.solution.op.tolist() == two.solution.op.tolist()
    assert (one.bound, one.evaluations) == (two.bound, two.evaluations)


def test_several_workers_prove_the_same():
    scheduling = SchedulingProblem(datasets.load("synthetic/layered?n=40&seed=2000000"))
    result = agents.make("cp-sat", workers=2).solve(scheduling)
    assert result.proven_optimal
    assert result.outcome.value == agents.make("dp-order").solve(scheduling).outcome.value


def test_ancestors_are_those_over_all_paths():
    graph = dag({0: [], 1: [0], 2: [0], 3: [1, 2], 4: [3], 5: []})
    parents, closed = ancestors(SchedulingProblem(graph))
    assert {(int(v), int(u)) for v, u in np.argwhere(parents)} == {(1, 0), (2, 0), (3, 1), (3, 2), (4, 3)}
    assert {int(u) for u in np.flatnonzero(closed[4])} == {0, 1, 2, 3}
    assert free_triples(closed) == 1  # 1, 2 and 5
    assert free_triples(ancestors(SchedulingProblem(dag({v: [] for v in range(6)})))[1]) == 20


def test_graphs_that_make_too_large_a_model_are_refused():
    wide = SchedulingProblem(dag({v: [] for v in range(200)}))  # 200 * 199 * 198 / 6 triples
    assert "1313400 triples" in agents.make("cp-sat").skip_reason(wide)
    chain = SchedulingProblem(dag({v: [v - 1] if v else [] for v in range(1001)}))
    assert "1001 ops" in agents.make("cp-sat").skip_reason(chain)
    with pytest.raises(InvalidProblemError, match=r"cp-sat.*1001 ops"):
        agents.make("cp-sat").solve(chain)


# --- Placements ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("objective", SIMULATED)
@pytest.mark.parametrize("seed", range(60))
def test_every_run_of_the_simulator_is_a_solution_of_the_model(seed, objective):
    """With its devices, its starts and its transfers; the model sees at most its value."""
    rng = np.random.default_rng([seed, 1])
    posed = random_problem(rng, Objective(objective), max_ops=10, channel=CHANNELS[seed % 4], idle=0.2)
    if posed.graph.in_place:
        posed = PlacementProblem(
            replace(posed.graph, in_place=False), posed.cluster, posed.objective, posed.costs
        )
    longest_ns = horizon_ns(posed)
    fitting = 0
    model = PlacementModel(posed, engine.load(), with_memory=True, horizon_ns=longest_ns)
    for _ in range(8):
        placement = random_placement(rng, posed, crowded=bool(rng.integers(2)))
        run = posed.simulate(placement, timeline=True)
        outcome = posed.judge(run)
        assert run.makespan_ns <= longest_ns
        if not outcome.ok:
            continue
        fitting += 1
        instance = model.instance(0, int(outcome.value), (placement, run.timeline), minimise=True)
        solver = plain_solver()
        solver.parameters.fix_variables_to_their_hinted_value = True
        assert solver.solve(instance) == engine.load().OPTIMAL
        if objective == "step_time":
            assert solver.objective_value == outcome.value
        again = model.placement(solver)
        assert again.device.tolist() == placement.device.tolist()
    if seed == 0:
        assert fitting


@pytest.mark.parametrize("channel", CHANNELS)
@pytest.mark.parametrize("objective", SIMULATED)
@pytest.mark.parametrize("case", EDGE_CASES)
def test_the_bound_of_tiny_placements_holds_and_what_is_proven_is_best(case, objective, channel):
    """Best over all device maps and orders."""
    posed = with_channel(EDGE_CASES[case](objective), channel)
    best = best_value(posed)
    result = agents.make("cp-sat", start_evaluations=200).solve(posed)
    if not result.outcome.ok:
        assert best == float("inf")
        return
    assert posed.lower_bound().value <= result.bound <= best
    assert result.bound <= result.outcome.value
    assert result.proven_optimal == (result.bound == result.outcome.value)
    assert result.outcome.value <= best


@pytest.mark.parametrize("objective", SIMULATED)
@pytest.mark.parametrize("seed", range(24))
def test_the_bound_of_random_placements_holds(seed, objective):
    """Variables, updates, groups, workspaces, memory that binds; against all device maps and orders."""
    rng = np.random.default_rng([seed, 2])
    posed = random_problem(rng, Objective(objective), max_ops=4, channel=CHANNELS[seed % 4], idle=0.1)
    solver = agents.make("cp-sat", start_evaluations=100)
    if len(posed.cluster) > 3 or solver.skip_reason(posed) is not None:
        devices = posed.cluster.devices[:3]
        part = np.ix_(range(len(devices)), range(len(devices)))
        links = posed.cluster.latency_ns[part], posed.cluster.bytes_per_second[part]
        cluster = Cluster(devices, *links, posed.cluster.channel)
        graph = replace(posed.graph, in_place=False)
        try:
            posed = PlacementProblem(graph, cluster, posed.objective, posed.costs)
        except InvalidProblemError:  # an op fits only where it may no longer go
            return
    best = best_value(posed)
    result = solver.solve(posed)
    if best == float("inf"):
        assert not result.outcome.ok
        return
    assert result.bound <= best
    assert result.bound <= result.outcome.value
    if result.proven_optimal:
        assert result.outcome.value <= best


def with_channel(posed: PlacementProblem, channel: str) -> PlacementProblem:
    cluster = posed.cluster
    changed = Cluster(cluster.devices, cluster.latency_ns, cluster.bytes_per_second, channel, cluster.name)
    return PlacementProblem(posed.graph, changed, posed.objective, posed.costs)


def test_proves_that_nothing_fits():
    result = agents.make("cp-sat").solve(EDGE_CASES["memory_nowhere"]("step_time"))
    assert not result.outcome.ok
    assert not result.proven_optimal
    assert result.note == "proven: nothing fits"


def test_a_schedule_that_no_list_schedule_attains_gives_a_bound_and_no_proof():
    """Waiting would do better: op 2 starts at once, and op 1, for whose result the other device waits, is late.

    Op 0 takes 1 ns on the CPU; op 1 (1 ns), and before it, if started at once, op 2 (10 ns) run on the accelerator;
    op 3 reads op 1 and takes 20 ns on the CPU. Waiting: 0, 1, then 3 beside 2, 22 ns. A list schedule: 1 + 10 + 20.
    """
    graph = dag(
        {0: [], 1: [0], 2: [], 3: [1]},
        unsupported={0: "accelerator", 1: "cpu", 2: "cpu", 3: "accelerator"},
    )
    posed = problem(
        graph, (cpu(), accelerator()), "step_time", [1, 1, 10, 20], [1, 1, 10, 20], channel="free"
    )
    result = agents.make("cp-sat").solve(posed)
    assert (result.bound, result.outcome.value) == (22, 31)
    assert best_value(posed) == 31
    assert not result.proven_optimal


def test_peak_memory_of_in_place_graphs_and_other_objectives_are_refused():
    posed = problem(dag({0: [], 1: [0]}), (accelerator(),) * 2, "peak_memory", [1, 1])
    b = GraphBuilder("test", in_place=True)
    x, y = b.tensor(bytes=4), b.tensor(bytes=4)
    b.op("Relu", outputs=[x])
    b.op("Relu", inputs=[x], outputs=[y], elementwise=True)
    in_place = problem(b.build(), (accelerator(),) * 2, "peak_memory", [1, 1])
    solver = agents.make("cp-sat")
    assert solver.skip_reason(posed) is None
    assert "in place" in solver.skip_reason(in_place)
    assert "max_load" in solver.skip_reason(problem(posed.graph, (accelerator(),) * 2, "max_load", [1, 1]))
    many = problem(dag({v: [] for v in range(61)}), (accelerator(),) * 2, "step_time", [1] * 61)
    assert "61 ops on 2 devices" in solver.skip_reason(many)


# --- The extra ----------------------------------------------------------------------------------------


def test_says_which_extra_is_missing(monkeypatch):
    scheduling = SchedulingProblem(dag({0: [], 1: [0]}))
    monkeypatch.setattr(engine, "find_spec", lambda name: None)
    assert "opgym[solvers]" in agents.make("cp-sat").skip_reason(scheduling)
    with pytest.raises(InvalidProblemError, match=r"cp-sat.*opgym\[solvers\]"):
        agents.make("cp-sat").solve(scheduling)
    monkeypatch.setitem(sys.modules, "ortools.sat.python", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'opgym\[solvers\]'"):
        engine.load()


@pytest.mark.parametrize("options", [{"workers": 0}, {"effort": -1.0}, {"start_evaluations": 0}])
def test_impossible_options_are_refused(options):
    with pytest.raises(InvalidProblemError, match=next(iter(options))):
        agents.make("cp-sat", **options)
