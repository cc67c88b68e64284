"""The parts of HDP against slow code of their definitions."""

from itertools import product

import numpy as np
import pytest

pytest.importorskip("torch")

import torch

from opgym.agents.hdp import attention
from opgym.agents.hdp.attention import energies
from opgym.agents.hdp.drawing import Noise, drawn
from opgym.agents.hdp.grouped import allowed_of_groups, device_of_units, group_fields, grouped
from opgym.agents.hdp.hdp import Hdp
from opgym.agents.hdp.instance import NEIGHBOURS, Instance, neighbour_fields, op_pairs
from opgym.datasets import load

from ..edge_cases import EDGE_CASES, training
from ..sb3.problems import placement
from .problems import SMALL, picky, policy_for, two_ops

# --- attention, drawing


@pytest.mark.parametrize("at_once", [1, 60, 2**20])
def test_energies_are_those_of_additive_attention(at_once, monkeypatch):
    monkeypatch.setattr(attention, "_AT_ONCE", at_once)
    torch.manual_seed(0)
    query, key, weight = (
        torch.randn(*size, dtype=torch.float64, requires_grad=True) for size in ((2, 3, 5), (2, 4, 5), (5,))
    )
    expected = torch.tanh(query[:, :, None] + key[:, None]) @ weight
    assert torch.allclose(energies(query, key, weight), expected)
    assert torch.autograd.gradcheck(energies, (query, key, weight))


def test_draws_follow_the_probabilities_and_nothing_impossible_is_drawn():
    probability = torch.tensor([[0.5, 0.25, 0.25, 0], [0, 0, 1, 0], [0.1, 0, 0.9, 0], [0, 0.3, 0, 0.7]])
    chosen = drawn((probability.log() - 3).expand(20_000, 4, 4), torch.Generator().manual_seed(0))
    share = torch.stack([(chosen == device).float().mean(0) for device in range(4)], dim=1)
    assert (share - probability).abs().max() < 0.015
    assert (share[probability == 0] == 0).all()


def test_noise_is_as_large_as_what_it_is_added_to():
    generator = torch.Generator().manual_seed(0)
    logits = torch.zeros(3, 4000, 2)
    noisy = Noise.of((3, 4000, 2), 0.5, generator).added(logits, torch.tensor([[[0.0]], [[1.0]], [[8.0]]]))
    assert torch.allclose(noisy.std((1, 2)), torch.tensor([0.0, 0.5, 4.0]), rtol=0.05)
    assert Noise.of((3, 4000, 2), 0.0, generator).added(logits, torch.ones(())) is logits


# --- what is read of ops


@pytest.mark.parametrize("name", ["synthetic/ba?n=40&seed=1", "example/rnn-train"])
def test_neighbours_in_topological_order_writers_first(name):
    graph = load(name)
    writer, reader = op_pairs(graph)
    fields = neighbour_fields(graph.num_ops, writer, reader)
    edges = {(int(u), int(v)) for u, v, _ in zip(*graph.edges, strict=True)}
    assert len(writer) == len(edges)
    many = 0
    for op in range(graph.num_ops):
        near = [(u, -1) for u in range(graph.num_ops) if (u, op) in edges]
        near += [(v, 1) for v in range(graph.num_ops) if (op, v) in edges]
        many += len(near) > NEIGHBOURS
        expected = np.zeros((NEIGHBOURS, 2))
        for slot, (other, side) in enumerate(near[:NEIGHBOURS]):
            expected[slot] = (other + 1) / graph.num_ops, side
        assert np.allclose(fields[op], expected.ravel())
    assert many or "ba" not in name


def test_a_graph_without_edges_has_no_neighbours():
    problem = EDGE_CASES["no_edges"]("step_time")
    assert not neighbour_fields(problem.graph.num_ops, *op_pairs(problem.graph)).any()


def test_sizes_of_outputs_are_read():
    problem = picky()
    instance = Instance.of(problem, Hdp(weights="none", **SMALL).network([problem]))
    third = instance.sizes[2].view(5, 5)
    assert third[0].tolist() == [4, 3, 0, 0, 0]
    assert third[1].tolist() == [7, 0, 0, 0, 0]
    assert not third[2:].any()
    assert torch.allclose(instance.fields[2, :25].double(), 0.1 * torch.log1p(instance.sizes[2]))


def test_a_unit_says_the_mean_of_its_ops():
    problem = training("step_time")
    policy = policy_for(problem)
    instance = Instance.of(problem, policy.shape)
    grouper = policy.grouper
    said = grouper.group(grouper.hidden(torch.cat([grouper.kind(instance.kind), instance.fields], dim=1)))
    found = grouper(instance)
    assert len(found) < len(said)
    for unit in range(len(instance.units)):
        members = torch.from_numpy(instance.units.of_op == unit)
        assert torch.allclose(found[unit], said[members].mean(0), atol=1e-6)


# --- groups


@pytest.mark.parametrize("problem", [picky, lambda: training("step_time"), placement])
def test_groups_are_what_their_ops_are(problem):
    problem = problem()
    shape = Hdp(weights="none", **SMALL).network([problem])
    instance, graph = Instance.of(problem, shape), problem.graph
    group = torch.from_numpy(np.random.default_rng(0).integers(4, size=(3, len(instance.units))))
    found = grouped(instance, group, shape)
    assert found.shape == (3, 4, group_fields(shape))
    for which in range(3):
        of_op = group[which].numpy()[instance.units.of_op]
        sent, kind, sizes = np.zeros((4, 4)), np.zeros((4, 1 + len(shape.kinds))), np.zeros((4, 25))
        for u, v in {(int(u), int(v)) for u, v, _ in zip(*graph.edges, strict=True)}:
            sent[of_op[u], of_op[v]] += 1
        for op in range(graph.num_ops):
            kind[of_op[op], 1 + shape.kinds.index(graph.kind(op))] += 1
            for slot, tensor in enumerate(list(graph.outputs(op))[:5]):
                for dim, size in enumerate(graph.shape(tensor)[:5]):
                    sizes[of_op[op], 5 * slot + dim] += size
        parts = [np.concatenate([sent, sent.T], 1), kind, sizes]
        expected = np.concatenate([part / (1 + part.max(1, keepdims=True)) for part in parts], 1)
        assert np.allclose(found[which], expected, atol=1e-6)


def test_a_kind_that_is_not_known_counts_as_such():
    shape = Hdp(weights="none", **SMALL).network([])
    problem = picky()
    instance = Instance.of(problem, shape)
    found = grouped(instance, torch.zeros(1, len(instance.units), dtype=torch.int64), shape)
    assert found[0, 0, 8].item() == pytest.approx(6 / 7)  # behind 2 x 4 numbers of the groups


def test_a_group_goes_where_all_its_units_may():
    problem = picky()  # units: {0, 5}, 1, 2, 3, 4; 2 needs the CPU, which 1 and 4 cannot use
    instance = Instance.of(problem, Hdp(weights="none", **{**SMALL, "devices": 4}).network([problem]))
    accelerators, on_cpu = [True, False, True, False], [False, True, False, False]
    everywhere = [True, True, True, False]
    group = torch.tensor([[0, 0, 1, 1, 0], [0, 0, 0, 2, 2]])
    allowed = allowed_of_groups(instance, group, 4)
    assert allowed[0].tolist() == [accelerators, on_cpu, everywhere, everywhere]
    assert allowed[1].tolist() == [everywhere, everywhere, accelerators, everywhere]  # 1 and 2 cannot agree

    device = torch.tensor([[2, 1, 0, 0], [2, 0, 2, 0]])
    assert device_of_units(instance, group, device).tolist() == [[2, 2, 1, 1, 2], [2, 2, 1, 2, 2]]
    device = torch.tensor([[0, 1, 0, 0], [1, 0, 0, 0]])
    assert device_of_units(instance, group, device).tolist() == [[0, 0, 1, 1, 0], [1, 0, 1, 0, 0]]


# --- the placer of groups


def slow_steps(placer, fields, allowed, device):
    """Logarithms of probabilities, ``[groups, devices]``, of one placement, by plain cells one step at a time."""
    width, groups = placer.key.weight.shape[0], len(fields)
    hidden, cell = [], []
    outputs = torch.zeros(groups, width)
    for way, order in enumerate((range(groups), reversed(range(groups)))):
        lstm = torch.nn.LSTMCell(fields.shape[1], width // 2)
        tail = "_reverse" if way else ""
        lstm.load_state_dict(
            {
                f"{kind}": getattr(placer.encoder, f"{kind}_l0{tail}").detach()
                for kind in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
            }
        )
        state = torch.zeros(1, width // 2), torch.zeros(1, width // 2)
        for at in order:
            state = lstm(fields[at][None], state)
            outputs[at, way * (width // 2) : (way + 1) * (width // 2)] = state[0][0]
        hidden.append(state[0])
        cell.append(state[1])
    heard = outputs @ placer.key.weight.T

    lstm = torch.nn.LSTMCell(width, width)
    lstm.load_state_dict(
        {
            kind: getattr(placer.decoder, f"{kind}_l0").detach()
            for kind in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        }
    )
    state, before, says = (torch.cat(hidden, 1), torch.cat(cell, 1)), allowed.shape[1], []
    for at in range(groups):
        state = lstm(placer.device.weight[before][None], state)
        energy = [placer.energy[:, 0] @ torch.tanh(placer.query.weight @ state[0][0] + key) for key in heard]
        attended = (torch.stack(energy).softmax(0)[:, None] * heard).sum(0)
        logits = 1.5 * torch.tanh(placer.head.weight @ torch.cat([state[0][0], attended]) / 0.7)
        logits[~allowed[at]] = -torch.inf
        says.append(logits.log_softmax(0))
        before = int(device[at])
    return torch.stack(says)


def sequence(seed=0, placements=5):
    """A placer with large weights, groups of two groupings, and where they may go."""
    placer = policy_for(two_ops(), seed, 2.0, temperature=0.7, most_logit=1.5).placer
    fields = torch.rand(2, 4, placer.encoder.input_size, generator=torch.Generator().manual_seed(seed))
    allowed = torch.ones(2 * placements, 4, 3, dtype=torch.bool)
    allowed[:, 1, 0] = allowed[:, 3, 1:] = False
    return placer, fields, placer.read(fields).repeated(placements), allowed


def test_probabilities_are_those_of_the_definition():
    placer, fields, read, allowed = sequence()
    device = placer.place(read, allowed, Noise(), torch.Generator().manual_seed(3))
    assert len({tuple(row) for row in device.tolist()}) > 2
    found = placer.log_probabilities(read, allowed, device, Noise())
    for which in range(10):
        expected = slow_steps(placer, fields[which // 5], allowed[which], device[which])
        assert torch.allclose(found[which], expected, atol=1e-5)
    assert torch.allclose(found.exp().sum(2), torch.ones(10, 4), atol=1e-6)


@pytest.mark.parametrize("share", [0.0, 0.7])
def test_the_most_likely_device_is_taken_at_each_step(share):
    placer, _, read, allowed = sequence(0)
    noise = Noise.of((10, 4, 3), share, torch.Generator().manual_seed(0))
    device = placer.place(read, allowed, noise, None)
    says = placer.log_probabilities(read, allowed, device, noise)
    assert torch.equal(device, says.argmax(2))
    assert (device[:5] == device[0]).all() == (share == 0)  # all of one grouping


def test_placements_are_drawn_as_often_as_is_said():
    placer, fields, _, allowed = sequence(2, 1)
    times = 4_000
    read, allowed = placer.read(fields[:1]).repeated(times), allowed[:1].expand(times, -1, -1)
    device = placer.place(read, allowed, Noise(), torch.Generator().manual_seed(0))
    says = placer.log_probabilities(read, allowed, device, Noise()).detach()
    said = says.gather(2, device[..., None]).sum((1, 2))
    probability = {tuple(row): float(p) for row, p in zip(device.tolist(), said.exp(), strict=True)}
    count = dict.fromkeys(probability, 0)
    for row in device.tolist():
        count[tuple(row)] += 1
    possible = {row for row in product(range(3), repeat=4) if row[1] != 0 and row[3] == 0}
    assert set(count) == possible
    assert sum(probability.values()) == pytest.approx(1, abs=1e-4)
    for row, expected in probability.items():
        assert abs(count[row] / times - expected) < 4 * (expected / times) ** 0.5


@pytest.mark.parametrize(("most_logit", "least"), [(1.0, np.exp(-2) / 3), (0.0, 0.0)])
def test_a_bound_of_preferences_lets_every_device_a_chance(most_logit, least):
    placer = policy_for(two_ops(), 0, 40.0, temperature=1.0, most_logit=most_logit).placer
    read = placer.read(torch.rand(1, 4, placer.encoder.input_size))
    allowed = torch.ones(1, 4, 3, dtype=torch.bool)
    says = placer.log_probabilities(read, allowed, torch.zeros(1, 4, dtype=torch.int64), Noise())
    assert (says.exp().min() >= least * 0.999) == (most_logit > 0) or least == 0
    assert (says.exp().min() < 1e-3) == (most_logit == 0)
