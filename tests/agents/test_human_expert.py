"""The human expert, and the blocks it works with."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from opgym import agents
from opgym.agents.heuristics.blocks import Blocks, find_blocks
from opgym.agents.heuristics.human_expert import contiguous_split, one_layer_per_device
from opgym.agents.heuristics.workers import legalised, workers
from opgym.datasets import example
from opgym.graphs import Cluster, GraphBuilder
from opgym.problems import PlacementProblem

from ..problems.instances import accelerator, cpu, dag, problem
from .edge_cases import training_graph


def chain(costs: list[int], devices: int = 2, **options) -> PlacementProblem:
    """Ops in a row, each a layer."""
    b = GraphBuilder("test")
    x = b.tensor(bytes=1, role="input")
    for v in range(len(costs)):
        y = b.tensor(bytes=1)
        b.op(options.get("kind", "op"), inputs=[x], outputs=[y], layer=f"layer{v}")
        x = y
    return problem(b.build(), (accelerator(),) * devices, "step_time", costs)


def named(*names: str) -> Blocks:
    return Blocks(np.arange(len(names), dtype=np.int32), names, "layers")


# --- contiguous layers


@pytest.mark.parametrize(
    ("costs", "devices", "expected"),
    [
        ([1, 1, 1, 1], 2, [0, 0, 1, 1]),
        ([3, 1, 1, 1], 2, [0, 1, 1, 1]),
        ([1, 1, 1, 3], 2, [0, 0, 0, 1]),
        ([1, 2, 3, 4, 5, 6], 3, [0, 0, 0, 1, 1, 2]),  # 6 | 9 | 6
        ([5, 5], 4, [0, 1]),
        ([7], 3, [0]),
    ],
)
def test_the_largest_stretch_is_as_small_as_possible(costs, devices, expected):
    p = chain(costs, devices)
    device = contiguous_split(p, find_blocks(p), np.arange(devices), 0.0)
    assert device.tolist() == expected


@pytest.mark.parametrize("seed", range(20))
def test_no_other_contiguous_split_is_better(seed):
    rng = np.random.default_rng(seed)
    costs = rng.integers(1, 20, int(rng.integers(2, 9))).tolist()
    devices = int(rng.integers(1, 4))
    p = chain(costs, devices)
    device = contiguous_split(p, find_blocks(p), np.arange(devices), 0.0)
    assert device.tolist() == sorted(device.tolist())
    largest = np.bincount(device, weights=costs).max()
    best = sum(costs)
    for cuts in itertools.combinations_with_replacement(range(len(costs) + 1), devices - 1):
        stretches = itertools.pairwise([0, *cuts, len(costs)])
        best = min(best, max(sum(costs[a:b]) for a, b in stretches))
    assert largest == best


def test_a_faster_device_gets_a_longer_stretch():
    graph = chain([10] * 8).graph
    p = problem(graph, (accelerator(), cpu()), "step_time", [10] * 8, [30] * 8)
    device = contiguous_split(p, find_blocks(p), np.arange(2), 0.0)
    assert device.tolist() == [0] * 6 + [1] * 2


def test_bytes_can_be_balanced_instead():
    graph = dag(
        {v: [v - 1] if v else [] for v in range(4)}, sizes=[0] * 4, parameters={0: 90, 1: 10, 2: 10, 3: 10}
    )
    p = problem(graph, (accelerator(),) * 2, "step_time", [1, 1, 1, 90])
    blocks = named(*"abcd")
    assert contiguous_split(p, blocks, np.arange(2), 0.0).tolist() == [0, 0, 0, 1]
    assert contiguous_split(p, blocks, np.arange(2), 1.0).tolist() == [0, 1, 1, 1]


# --- one layer per device


@pytest.mark.parametrize(
    ("names", "devices", "expected"),
    [
        (["embedding", "rnn/0", "rnn/1", "softmax"], 2, [0, 0, 1, 1]),
        (["embedding", "rnn/0", "rnn/1", "rnn/2", "rnn/3", "classifier"], 2, [0, 0, 0, 1, 1, 1]),
        (["enc.0", "enc.1", "dec.0", "dec.1", "attention", "logits"], 2, [0, 1, 0, 1, 1, 1]),
        (["l1", "l2", "l3"], 8, [0, 1, 2]),
        (["l10", "l2"], 2, [1, 0]),  # by number, not by text
        (["block.0.attention", "block.1.attention"], 2, [0, 1]),  # a number goes before a kind
        (["l0", "loss", "l1", "norm"], 2, [0, 1, 1, 1]),
    ],
)
def test_layers_go_by_their_numbers_and_the_classifier_with_the_last(names, devices, expected):
    assert one_layer_per_device(named(*names), devices).tolist() == expected


def test_without_two_numbers_there_is_no_such_rule():
    assert one_layer_per_device(named("encoder", "decoder"), 2) is None
    assert one_layer_per_device(named("l1", "x1"), 2) is None


# --- the whole


def test_backward_and_update_ops_stay_with_their_layer():
    graph = example.rnn_train(layers=2, steps=4)
    p = PlacementProblem(graph, Cluster.parse("2xP100"))
    device = agents.make("human-expert").solve(p).solution.device
    for layer in range(len(graph.layers)):
        assert len(set(device[graph.op_layer == layer].tolist())) == 1
    assert len(set(device.tolist())) == 2


def test_a_convolutional_network_may_stay_on_one_device():
    split = chain([10] * 4)
    assert len(set(agents.make("human-expert").solve(split).solution.device.tolist())) == 2
    # sending a byte takes a nanosecond, so a chain is fastest where it is
    result = agents.make("human-expert").solve(chain([10] * 4, kind="Conv"))
    assert result.outcome.value == 40
    assert result.note == "single device; blocks are layers"


def test_it_says_which_rule_won_and_what_its_blocks_are():
    assert agents.make("human-expert").solve(chain([10] * 4)).note == "contiguous layers; blocks are layers"
    p = problem(dag({v: [] for v in range(40)}), (accelerator(),) * 2, "step_time", [1] * 40)
    result = agents.make("human-expert").solve(p)
    assert result.note == "contiguous layers; blocks are chunks of equal time in topological order"
    assert result.outcome.value == 20


# --- blocks where no layers are named


def test_stretches_end_where_a_single_tensor_passes():
    # 0 -> (1, 2) -> 3 -> (4, 5) -> 6: cuts before 1, after the joins and between
    edges = {0: [], 1: [0], 2: [0], 3: [1, 2], 4: [3], 5: [3], 6: [4, 5]}
    p = problem(dag(edges), (accelerator(),), "step_time", [1] * 7)
    blocks = find_blocks(p)
    assert blocks.origin == "stretches between single tensors"
    # op 1 starts a block since only op 0's tensor lies before it; between 1 and 3 two tensors are alive
    assert blocks.block.tolist() == [0, 1, 1, 1, 2, 2, 2]


def test_chunks_of_equal_time_where_nothing_divides_the_graph():
    p = problem(dag({v: [] for v in range(64)}), (accelerator(),), "step_time", [1] * 64)
    blocks = find_blocks(p)
    assert np.bincount(blocks.block).tolist() == [8] * 8


def test_chunks_end_where_few_bytes_pass():
    # two tensors pass almost everywhere, so that stretches are few; those of ops 20 and 21 are small
    edges = {v: [u for u in (v - 2, v - 1) if u >= 0] for v in range(64)}
    sizes = [1000] * 64
    sizes[20] = sizes[21] = 1
    p = problem(dag(edges, sizes=sizes), (accelerator(),) * 2, "step_time", [10**4] * 64)
    blocks = find_blocks(p)
    assert blocks.origin == "chunks of equal time in topological order"
    assert blocks.block[21] != blocks.block[22]
    assert len(set(blocks.block.tolist())) == 16


def test_no_chunk_ends_where_sending_takes_longer_than_the_work():
    edges = {v: [u for u in (v - 2, v - 1) if u >= 0] for v in range(16)}
    p = problem(dag(edges, sizes=[100] * 16), (accelerator(),) * 2, "step_time", [10] * 16)
    assert find_blocks(p).block.tolist() == [0] * 16
    cheap = problem(dag(edges, sizes=[10] * 16), (accelerator(),) * 2, "step_time", [10] * 16)
    assert find_blocks(cheap).block.max() > 0


def test_backward_ops_without_layers_join_the_block_of_the_activations_they_read():
    graph = training_graph()
    p = PlacementProblem(_without_layers(graph), Cluster.parse("1xP100"))
    blocks = find_blocks(p)
    with_layers = graph.op_layer
    # the two layers come apart, each with its variable, backward op and update
    for layer in range(2):
        assert len(set(blocks.block[with_layers == layer].tolist())) == 1
    assert blocks.block.max() == 1


def _without_layers(graph):
    return replace(graph, op_layer=np.full(graph.num_ops, -1, np.int32), layers=())


# --- who works


def test_a_much_slower_device_is_no_worker():
    p = problem(dag({0: [], 1: [0]}), (accelerator(), cpu(), accelerator()), "step_time", [1, 1], [9, 9])
    assert workers(p).tolist() == [0, 2]
    near = problem(dag({0: [], 1: [0]}), (accelerator(), cpu(), accelerator()), "step_time", [1, 1], [3, 3])
    assert workers(near).tolist() == [0, 1, 2]
    memory = problem(
        dag({0: [], 1: [0]}), (accelerator(), cpu(), accelerator()), "peak_memory", [1, 1], [9, 9]
    )
    assert workers(memory).tolist() == [0, 1, 2]


def test_speed_counts_only_on_what_a_device_supports():
    # the CPU runs op 1 alone, as fast as anybody can
    graph = dag({0: [], 1: [0]}, unsupported={0: "cpu", 1: "accelerator"})
    p = problem(graph, (accelerator(), cpu()), "step_time", [1, 1], [50, 50])
    assert workers(p).tolist() == [0, 1]


def test_a_device_map_is_made_legal():
    graph = dag({0: [], 1: [], 2: [], 3: []}, groups={0: "g", 2: "g"}, unsupported={3: "accelerator"})
    p = problem(graph, (accelerator(), accelerator(), cpu(), cpu()), "step_time", [1] * 4)
    # the group follows its first op; op 3 goes to the emptier of the CPUs
    assert legalised(p, np.array([1, 2, 0, 0])).tolist() == [1, 2, 1, 3]
    assert legalised(p, np.array([1, 3, 0, 1])).tolist() == [1, 3, 1, 2]
