"""REGAL's augmentation: sizes and costs change within bounds, the structure does not."""

from dataclasses import fields

import numpy as np
import pytest

from opgym import datasets
from opgym.datasets import synthetic
from opgym.errors import ImportFailedError, InvalidGraphError
from opgym.graphs import Cluster, Graph, GraphBuilder, TableCost, save
from opgym.graphs.storage import check_structure

SCALED = ("op_flops", "op_accessed_bytes", "op_workspace_bytes", "tensor_bytes")


@pytest.mark.parametrize("id", ["synthetic/er?n=120", "example/rnn-train", "onnx-light/squeezenet"])
def test_every_figure_stays_within_its_bounds_and_all_else_stays(id: str) -> None:
    graph, copy = datasets.load(id), datasets.load(f"{id}#augment=7")
    check_structure(copy)
    for f in fields(Graph):
        before, after = getattr(graph, f.name), getattr(copy, f.name)
        if f.name in SCALED:
            assert (np.abs(after - before) <= before // 2 + 1).all()
            assert ((after == 0) == (before == 0)).all()
            assert after.tolist() != before.tolist() or not before.any()
        elif f.name == "name":
            assert after == f"{before}#augment=7"
        elif isinstance(before, np.ndarray):
            assert after.tolist() == before.tolist()
        else:
            assert after == before
    assert synthetic.augment(graph, 7) == copy
    assert synthetic.augment(graph, 8) != copy


def test_factors_are_uniform_and_independent() -> None:
    graph = datasets.load("synthetic/layered?n=50000")
    copy = synthetic.augment(graph, 3)
    by_tensor, by_op = copy.tensor_bytes / graph.tensor_bytes, copy.op_flops / graph.op_flops
    for factor in (by_tensor, by_op):
        counts, _ = np.histogram(factor, bins=20, range=(0.5, 1.5))
        assert counts.sum() == 50_000
        assert ((counts - 2500) ** 2 / 2500).sum() < 43.8  # chi-square, 19 degrees: 1 in 1,000
    assert abs(np.corrcoef(by_tensor, by_op)[0, 1]) < 5 / 50_000**0.5
    assert np.abs(copy.op_accessed_bytes / graph.op_accessed_bytes - by_op).max() < 1e-6


def test_given_times_get_the_factor_of_their_op() -> None:
    before, after = (datasets.read(f"synthetic/ws?n=90{suffix}") for suffix in ("", "#augment=5"))
    assert after.costs is not None
    assert before.costs is not None
    regal = Cluster.parse("2xREGAL")
    one, other = before.costs.cost_ns(before.graph, regal), after.costs.cost_ns(after.graph, regal)
    ratio = after.graph.op_flops / before.graph.op_flops
    assert np.abs(other[:, 0] / one[:, 0] - ratio).max() < 1e-5
    assert isinstance(after.costs, TableCost)
    assert after.report.source == "synthetic/ws?n=90#augment=5"
    assert after.report.fingerprint == after.graph.fingerprint
    assert after.report.notes[:-1] == before.report.notes
    assert "seed 5, augmentation version 1" in after.report.notes[-1]


def test_outputs_of_an_update_keep_the_size_of_the_variable() -> None:
    b = GraphBuilder("test")
    weight, moment, loss = b.tensor(bytes=1000, role="parameter"), b.tensor(bytes=3000), b.tensor(bytes=50)
    home = b.op("variable", outputs=[weight, moment], group="w")
    gradient = b.tensor(bytes=1000)
    b.op("loss", inputs=[weight], outputs=[loss, gradient])
    new = [b.tensor(bytes=1000), b.tensor(bytes=3000), b.tensor(bytes=3000)]
    b.op("update", inputs=[weight, gradient], outputs=new, group="w", direction="update", update_of=home)
    graph = b.build()
    assert graph.is_variable.tolist() == [True, False, False]
    for seed in range(20):
        size = synthetic.augment(graph, seed).tensor_bytes.tolist()
        assert size[4:] == [size[0], size[1], size[1]]
        assert size[0] != size[3]


def test_what_fits_in_place_still_does() -> None:
    def sizes(in_place: bool, seed: int) -> list[int]:
        b = GraphBuilder("test", in_place=in_place)
        tensors = [b.tensor(bytes=n) for n in (500, 10_000, 10_000, 10_000, 10_000)]
        b.op("source", outputs=tensors[:2])
        b.op("Relu", inputs=tensors[:2], outputs=[tensors[2]], elementwise=True)
        b.op("Relu", inputs=[tensors[2]], outputs=[tensors[3]], elementwise=True)
        b.op("Conv", inputs=[tensors[3]], outputs=[tensors[4]])
        return synthetic.augment(b.build(), seed).tensor_bytes.tolist()

    for seed in range(10):
        small, *chain, last = sizes(True, seed)
        assert len(set(chain)) == 1
        assert last != chain[0]
        assert 250 <= small <= 750
        assert len(set(sizes(False, seed)[1:])) == 4


def test_results_are_exact_up_to_the_largest_figures() -> None:
    figures = [1, 2, 3, 2**30 - 1, 2**31 + 5, 10**15 + 7, 2**62 + 12345]
    b = GraphBuilder("test")
    for figure in figures:
        b.op("op", outputs=[b.tensor(bytes=figure)], flops=1 << 40, accessed_bytes=1)
    copy = synthetic.augment(b.build(), 11)
    # the factors, read off a graph of equal figures that loses no digit
    plain = GraphBuilder("test")
    for _ in figures:
        plain.op("op", outputs=[plain.tensor(bytes=1 << 30)])
    factors = synthetic.augment(plain.build(), 11).tensor_bytes.tolist()
    assert all(2**29 <= factor < 3 * 2**29 for factor in factors)
    expected = [(x * f + 2**29) >> 30 for x, f in zip(figures, factors, strict=True)]
    assert copy.tensor_bytes.tolist() == expected


def test_a_figure_that_would_overflow_is_refused() -> None:
    b = GraphBuilder("test")
    for _ in range(50):
        b.op("op", outputs=[b.tensor(bytes=2**63 - 1)], accessed_bytes=0)
    with pytest.raises(InvalidGraphError, match=r"tensor_bytes of row \d+ is 9223372036854775807"):
        synthetic.augment(b.build(), 0)


@pytest.mark.parametrize("seed", [-1, 1_000_000_000])
def test_a_wrong_seed_is_refused(seed: int) -> None:
    with pytest.raises(ImportFailedError, match="expected a whole number from 0 to 999999999"):
        synthetic.augment(datasets.load("example/two-branch"), seed)


def test_files_can_be_augmented_and_may_have_the_sign_in_their_name(tmp_path) -> None:
    path = tmp_path / "net#augment=2.npz"
    graph = datasets.load("example/two-branch")
    save(graph, path)
    assert datasets.load(path) == graph
    assert datasets.load(f"{path}#augment=2") == synthetic.augment(graph, 2)
    with pytest.raises(ImportFailedError, match="no such file"):
        datasets.load(f"{tmp_path}/absent.npz#augment=2")
