"""The network: what it reads, what it says, and how far that is from solutions."""

import numpy as np
import pytest
import torch
from scipy import stats

from opgym.agents.networks.isolation import isolated
from opgym.agents.networks.weights import weights_of
from opgym.agents.regal.plus.batch import Batch
from opgym.agents.regal.plus.instance import Instance
from opgym.agents.regal.plus.network import Layer
from opgym.agents.regal.plus.policy import Policy, losses_of
from opgym.agents.regal.plus.shape import Shape
from opgym.agents.regal.plus.structure import BEFORE, BEHIND, UNRELATED
from opgym.agents.regal.plus.targets import Target
from opgym.datasets import load, read
from opgym.graphs import Cluster
from opgym.problems import Objective, PlacementProblem, SchedulingProblem

from ..problems import capped, order, placement, tasks, with_variables


@pytest.fixture(scope="module")
def policy():
    torch.manual_seed(0)
    return Policy(Shape(8, 2)).eval()


@pytest.fixture(scope="module")
def instances():
    return [Instance.of(problem) for problem in (*tasks(), with_variables())]


def random_target(instance, seed=0):
    keys = np.random.default_rng(seed).random(instance.encoding.genes, np.float32)
    return Target.of(instance.encoding, instance.encoding.decode(keys), instance.structure.anchor)


def test_a_batch_says_of_each_instance_what_it_says_of_it_alone(policy, instances):
    with torch.no_grad():
        together = policy.says(instances).expected()
    for instance, said in zip(instances, together, strict=True):
        alone = policy.expects(instance)
        for name in ("position", "share", "device_1"):
            assert getattr(said, name) == pytest.approx(getattr(alone, name), abs=1e-5)
            assert getattr(said, name).shape == (instance.problem.graph.num_ops,)


def test_attention_is_that_of_its_definition_however_an_op_s_view_is_cut():
    torch.manual_seed(0)
    layer = Layer(8, messages=False)
    small, large = (SchedulingProblem(load(f"synthetic/ws?n={ops}&seed=0")) for ops in (9, 300))
    structures = [Instance.of(problem).structure for problem in (large, small, large)]
    nodes = torch.randn(sum(len(structure.nodes) for structure in structures), 8)
    with torch.no_grad():
        found = layer._attention(nodes, Batch.of(structures, [np.zeros(1, np.float32)] * 3))
        query, key, value = layer.attend(nodes).view(-1, 3, 4, 2).permute(1, 2, 0, 3)
    first = 0
    for structure in structures:
        here = slice(first, first + len(structure.nodes))
        first = here.stop
        relation = torch.from_numpy(structure.relation)
        itself = torch.eye(len(relation), dtype=torch.bool)
        for kind, sees in enumerate((relation == BEFORE, relation == BEHIND, relation == UNRELATED, ~itself)):
            logits = query[kind, here] @ key[kind, here].T / 2**0.5
            expected = (
                torch.softmax(logits.masked_fill(~(sees | itself), -torch.inf), dim=1) @ value[kind, here]
            )
            torch.testing.assert_close(found[here, 2 * kind : 2 * kind + 2], expected, rtol=1e-4, atol=1e-5)


def test_the_task_is_seen(policy):
    memory, time = policy.expects(Instance.of(placement())), policy.expects(Instance.of(capped()))
    assert not np.allclose(memory.position, time.position)


def test_losses_are_means_over_ops_of_likelihood_and_cross_entropy(policy, instances):
    targets = [random_target(instance) for instance in instances]
    with torch.no_grad():
        said = policy.says(instances)
        losses = losses_of(said, instances, targets)
    density, entropy, error, right = [], [], [], []
    for instance, target, expected in zip(instances, targets, said.expected(), strict=True):
        ordered = ~instance.problem.graph.is_variable
        size = 1 / expected.share - 1
        a, b = expected.position * size, (1 - expected.position) * size
        density += stats.beta.logpdf(target.position, a, b)[ordered].tolist()
        error += np.abs(expected.position - target.position)[ordered].tolist()
        if instance.task.devices == 2:
            p = np.where(target.device_1, expected.device_1, 1 - expected.device_1)
            entropy += (-np.log(p)).tolist()
            right += (p > 0.5).tolist()
    assert float(losses.position) == pytest.approx(-np.mean(density), rel=1e-3)
    assert float(losses.device) == pytest.approx(np.mean(entropy), rel=1e-4)
    assert losses.position_error == pytest.approx(np.mean(error), rel=1e-4)
    assert losses.device_accuracy == pytest.approx(np.mean(right))


def test_one_device_has_no_loss_of_devices(policy):
    instance = Instance.of(order())
    losses = losses_of(policy.says([instance]), [instance], [random_target(instance)])
    assert float(losses.device) == 0
    assert np.isnan(losses.device_accuracy)


def test_it_learns_one_solution_by_heart():
    imported = read("synthetic/ws?n=12&seed=0")  # hardly two ops alike
    problem = PlacementProblem(
        imported.graph, Cluster.parse("2xREGAL"), Objective.PEAK_MEMORY, imported.costs
    )
    instance = Instance.of(problem)
    target = random_target(instance)
    with isolated(1, "cpu"):
        torch.manual_seed(0)
        policy = Policy(Shape(16, 2))
        optimizer = torch.optim.Adam(policy.parameters(), 3e-3)
        for _ in range(200):
            losses = losses_of(policy.says([instance]), [instance], [target])
            optimizer.zero_grad()
            (losses.position + losses.device).backward()
            optimizer.step()
    assert losses.position_error < 0.1
    assert losses.device_accuracy == 1


def test_weights_make_the_same_policy(policy):
    other = Policy.of(Shape(8, 2), weights_of(policy))
    instance = Instance.of(order())
    assert other.expects(instance).position.tolist() == policy.expects(instance).position.tolist()
    with pytest.raises(RuntimeError):
        Policy.of(Shape(8, 3), weights_of(policy))
