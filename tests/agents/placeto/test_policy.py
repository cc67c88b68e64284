"""Placeto's network against slow code of its definition."""

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("torch")

import torch

from opgym.agents.placeto.instance import Instance
from opgym.agents.placeto.policy import Policy
from opgym.agents.placeto.shape import Shape
from opgym.datasets import load
from opgym.errors import InvalidProblemError, UnknownIdError
from opgym.graphs import Cluster
from opgym.problems import PlacementProblem

from ..edge_cases import EDGE_CASES

SHAPE = Shape(devices=4, width=5, rounds=3, aggregate="sum")


def rnn():
    return PlacementProblem(load("example/rnn-train"), Cluster.parse("3xP100"))


def states(instance, count=6, seed=0):
    """Legal placements, and a group each."""
    rng = np.random.default_rng(seed)
    device = np.stack([instance.coarse.drawn(rng) for _ in range(count)], axis=1)
    return torch.from_numpy(device), torch.from_numpy(rng.integers(len(instance.coarse), size=count))


def naive(policy, instance, device, current, mean):
    """One state, group by group."""
    coarse, groups = instance.coarse, len(instance.coarse)

    def together(rows, like):
        rows = list(rows)
        total = sum(rows, torch.zeros_like(like))
        return total / max(1, len(rows)) if mean else total

    own = []
    for group in range(groups):
        one_hot = [float(device[group] == d) for d in range(SHAPE.devices)]
        marks = [float(group == current), float(group < current)]
        own.append(policy.embed(torch.tensor([*coarse.fields[group].tolist(), *marks, *one_hot])))
    directions = []
    for messages, heard in ((policy.down, coarse.reads), (policy.up, coarse.reads.T)):
        now = own
        for _ in range(SHAPE.rounds):
            new = []
            for group in range(groups):
                others = np.flatnonzero(heard[group])
                said = together((messages.said(now[other]) for other in others), own[0])
                new.append(own[group] + (messages.heard(said) if len(others) else 0))
            now = new
        directions.append(now)
    both = [torch.cat(pair) for pair in zip(*directions, strict=True)]
    before, behind = coarse.reached[current], coarse.reached[:, current]
    beside = ~before & ~behind & (np.arange(groups) != current)
    around = [
        pool.heard(together((pool.said(both[other]) for other in np.flatnonzero(which)), both[0]))
        for pool, which in (
            (policy.ancestors, before), (policy.descendants, behind), (policy.parallel, beside),
        )
    ]  # fmt: skip
    logits = policy.head(torch.cat([*around, both[current]]))
    return torch.log_softmax(logits.masked_fill(~instance.allowed[current], -torch.inf), 0)


@pytest.mark.parametrize("aggregate", ["sum", "mean"])
@pytest.mark.parametrize("groups", ["metis:9", "layer"])
def test_is_what_it_is_defined_to_be(groups, aggregate):
    shape = replace(SHAPE, aggregate=aggregate)
    instance, policy = Instance.of(rnn(), groups, shape), Policy.untrained(shape, 0)
    device, current = states(instance)
    found = policy(instance, device, current)
    for state in range(len(current)):
        expected = naive(policy, instance, device[:, state], int(current[state]), aggregate == "mean")
        assert torch.allclose(found[state], expected, atol=1e-4)


@pytest.mark.parametrize("case", ["cpu_and_accelerators", "colocated_and_unsupported", "one_op", "no_edges"])
def test_probabilities_are_of_devices_where_a_group_may_run(case):
    instance, policy = Instance.of(EDGE_CASES[case]("step_time"), "op", SHAPE), Policy.untrained(SHAPE, 0)
    device, current = states(instance, 20)
    says = policy(instance, device, current).detach()
    assert torch.allclose(says.exp().sum(1), torch.ones(20), atol=1e-6)
    allowed = np.zeros((len(instance.coarse), SHAPE.devices), bool)
    allowed[:, : instance.coarse.allowed.shape[1]] = instance.coarse.allowed
    assert ((says.numpy() > -np.inf) == allowed[current.numpy()]).all()


def test_groups_are_known_by_what_they_do_and_not_by_their_number():
    """Two groups that look alike and have the same around them are placed alike."""
    instance = Instance.of(EDGE_CASES["nothing_costs_anything"]("step_time"), "op", SHAPE)
    parents = instance.coarse.reads[1:].tolist()
    assert parents[0] == parents[1]
    policy = Policy.untrained(SHAPE, 0)
    device = torch.zeros(3, 2, dtype=torch.int64)
    says = policy(instance, device, torch.tensor([1, 1]))
    assert torch.equal(says[0], says[1])
    moved = device.clone()
    moved[0, 1] = 1
    says = policy(instance, moved, torch.tensor([1, 1]))
    assert not torch.allclose(says[0], says[1])  # where the parent is makes a difference


def test_one_policy_reads_graphs_of_any_size_and_fewer_devices():
    policy = Policy(SHAPE)
    for problem, groups in ((rnn(), "metis:20"), (EDGE_CASES["one_device"]("step_time"), "op")):
        instance = Instance.of(problem, groups, SHAPE)
        device, current = states(instance, 3)
        assert policy(instance, device, current).shape == (3, 4)


@pytest.mark.parametrize(
    ("field", "value"), [("devices", 0), ("devices", 257), ("width", 1), ("rounds", 0), ("rounds", True)]
)
def test_shapes_that_cannot_be_are_refused(field, value):
    with pytest.raises(InvalidProblemError, match=field):
        replace(SHAPE, **{field: value})


def test_an_unknown_aggregate_is_refused():
    with pytest.raises(UnknownIdError, match="did you mean mean"):
        replace(SHAPE, aggregate="man")
