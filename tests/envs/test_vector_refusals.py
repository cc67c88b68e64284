"""What every native batch refuses, with which words, and leaves as it was: sizes, actions, states of others, copies."""

import copy
import pickle
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest

from opgym.envs import GraphPlacementVectorEnv, OpSchedulingVectorEnv
from opgym.envs.vector import NativeVectorEnv
from opgym.errors import InvalidProblemError, InvalidSolutionError

from .instances import random_graph
from .vector_twins import expect_equal, expect_same_steps

BATCHES = {"placement": GraphPlacementVectorEnv, "scheduling": OpSchedulingVectorEnv}
each_batch = pytest.mark.parametrize("make", BATCHES.values(), ids=BATCHES)
Make = Callable[..., NativeVectorEnv]


@each_batch
@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"num_envs": 2**62}, "num_envs=4611686018427387904; expected at most 65,536, the number of slots"),
        ({"num_envs": 10**30}, "expected at most 65,536"),
        ({"num_envs": 2.0}, "num_envs=2.0; expected a positive integer"),
        ({"threads": 2**31}, "threads=2147483648; expected at most 1,024, how many step"),
        ({"threads": None}, "threads=None; expected a positive integer"),
        ({"pad_to": (2**40, 9), "observation": "dict"}, "pad_to=1099511627776; expected at most 16,777,216"),
        ({"pad_to": (99, 2**40), "observation": "dict"}, "expected at most 67,108,864, the edges"),
        ({"pad_to": 99, "observation": "dict"}, r"pad_to=99; expected \(nodes, edges\)"),
        ({"pad_to": (99, 9.5), "observation": "dict"}, "pad_to=9.5; expected a positive integer, the edges"),
        ({"graph": 3}, "graph=3; expected a Graph, an id"),
        ({"graph": [random_graph(0), None, {}]}, r"graph=\{\}; expected a Graph, an id"),
        ({"graph": None, "problem": 3}, "problem=3; expected a (Placement|Scheduling)Problem"),
        (
            {"graph": None, "problem": [random_graph(0)]},
            r"problem=Graph\(.*; expected a (Placement|Scheduling)P",
        ),
    ],
)
def test_arguments_past_all_bounds(make: Make, given: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidProblemError, match=message):
        make(**{"num_envs": 2, "graph": random_graph(0), **given})


@each_batch
@pytest.mark.parametrize("seed", ["7", 1.5, [1.5, 2], [-1, 2], -1, {0: 1}, [[1, 2], [3, 4]], [1, [2, 3]]])
def test_what_is_no_seed(make: Make, seed: Any) -> None:
    envs = make(2, random_graph(0))
    with pytest.raises(InvalidSolutionError, match=r"seed.*; expected an integer"):
        envs.reset(seed=seed)


@each_batch
@pytest.mark.parametrize("actions", [0, None, [0], [0, 1, 2], np.zeros((3, 2), int), np.array(1), []])
def test_another_number_of_actions(make: Make, actions: Any) -> None:
    envs = make(2, random_graph(0))
    envs.reset(seed=0)
    before = envs.state()
    with pytest.raises(InvalidSolutionError, match="given; expected one for each of 2 slots"):
        envs.step(actions)
    expect_equal(envs.state(), before, "state")


@each_batch
def test_a_step_before_the_first_reset(make: Make) -> None:
    envs = make(2, random_graph(0))
    for call in (lambda: envs.step([0, 0]), envs.state):
        with pytest.raises(gymnasium.error.ResetNeeded):
            call()


@each_batch
@pytest.mark.parametrize(
    "mask", [[True, False], np.array([1, 0]), np.ones(3, np.bool_), np.zeros(2, np.bool_)]
)
def test_wrong_masks_of_resets(make: Make, mask: Any) -> None:
    envs = make(2, random_graph(0))
    envs.reset(seed=0)
    with pytest.raises(InvalidSolutionError, match="reset_mask"):
        envs.reset(options={"reset_mask": mask})


@each_batch
def test_a_state_right_after_a_reset_is_of_its_own_graphs_alone(make: Make) -> None:
    """Nothing is decided then, so that only the fingerprint tells."""
    graphs = [random_graph(seed) for seed in range(3)]
    envs = make(2, graphs[:2])
    envs.reset(seed=0)
    state = envs.state()
    for others in ([graphs[0], graphs[2]], [graphs[1], graphs[0]], graphs, graphs[0]):
        other = make(2, others)
        with pytest.raises(InvalidSolutionError, match="of environments about something else"):
            other.restore(state)
    make(2, graphs[:2], autoreset_mode="SameStep", draw="episode").restore(state)


def test_a_state_is_of_its_own_kind_of_environment_clusters_and_groups() -> None:
    graph = random_graph(0)
    envs = GraphPlacementVectorEnv(2, graph)
    envs.reset(seed=0)
    state = envs.state()
    others: list[NativeVectorEnv] = [
        OpSchedulingVectorEnv(2, graph),
        GraphPlacementVectorEnv(2, graph, "2xV100"),
        GraphPlacementVectorEnv(2, graph, objective="peak_memory"),
        GraphPlacementVectorEnv(2, graph, groups="metis:3"),
    ]
    for other in others:
        with pytest.raises(InvalidSolutionError, match="of environments about something else"):
            other.restore(state)
    GraphPlacementVectorEnv(2, graph, reward="dense", observation="dict").restore(state)


@each_batch
def test_damaged_states(make: Make) -> None:
    envs = make(2, random_graph(0))
    envs.reset(seed=0)
    envs.step([0, 0])
    state = envs.state()
    with pytest.raises(InvalidSolutionError, match="the state has 2 slots; these environments have 3"):
        make(3, random_graph(0)).restore(state)
    for given in (None, 3, [], "state"):
        with pytest.raises(InvalidSolutionError, match=r"the state is .*; expected arrays by key"):
            envs.restore(given)  # type: ignore[arg-type]

    def words(place: int, value: int) -> dict[str, Any]:
        generators = state["generators"].copy()
        generators[1, place] = value
        return {"generators": generators}

    even = int(state["generators"][1, 3]) - 1
    for change, message in (
        (words(4, 2), "no state of a PCG64 generator"),
        (words(5, 2**32), "no state of a PCG64 generator"),
        (words(3, even), "its increment is odd"),
        ({"illegal_actions": np.array([0, -1])}, r"\[0, -1\] illegal actions"),
        ({"graph": [0, 0]}, "'graph' of the state is list"),
        ({"decisions": None}, "'decisions' of the state is NoneType"),
        ({"decision_ptr": [[0], [1, 2]]}, "'decision_ptr' of the state is list"),
        ({"fingerprint": state["fingerprint"][:-1]}, r"'fingerprint' of the state is uint8 \(31,\)"),
    ):
        with pytest.raises(InvalidSolutionError, match=message):
            envs.restore(state | change)
    expect_equal(envs.state(), state, "state")  # refused before anything has changed


@each_batch
@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_batch_is_not_copied(make: Make, copied: Callable[[Any], Any]) -> None:
    with pytest.raises(
        InvalidProblemError, match=r"neither copied nor pickled.*restore\(\) there what state\(\)"
    ):
        copied(make(2, random_graph(0)))


@each_batch
@pytest.mark.parametrize("observation", ["node", "dict"])
def test_what_is_written_into_arrays_that_were_returned_changes_nothing(make: Make, observation: str) -> None:
    envs, twin = (make(3, random_graph(0), observation=observation) for _ in range(2))
    envs.reset(), twin.reset()
    for _ in range(60):
        ours, expected = envs.step([0, 1, 2]), twin.step([0, 1, 2])
        expect_same_steps([ours], [expected])
        for part in (ours[0].values() if isinstance(ours[0], dict) else [ours[0]], ours[1:4]):
            for array in part:
                array[...] = 1
        for key in ("action_mask", "_action_mask", "illegal_actions", "_illegal_actions"):
            ours[4][key][...] = 0
