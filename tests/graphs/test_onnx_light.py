"""Every model inside the onnx package: figures that anyone can look up, and the books of the reader."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path

import onnx
import pytest

from opgym import datasets
from opgym.datasets import onnx_light

NAMES = [name.removeprefix(onnx_light.PREFIX) for name in onnx_light.ids()]

#: Multiply-adds of one 224 x 224 image (in 10^9) and parameters (in 10^6), as published; AlexNet and ShuffleNet are
#: the grouped Caffe variants. torchvision documents VGG-19 19.63 GFLOPS and 143.7 M, ResNet-50 4.09 and 25.6,
#: DenseNet-121 2.83 and 8.0, GoogLeNet (Inception v1) 1.5 and 6.6 (without auxiliary heads 7.0 M with the classifier).
PUBLISHED = {
    "bvlc_alexnet": (0.65, 60.9),
    "densenet121": (2.83, 8.0),
    "inception_v1": (1.43, 7.0),
    "inception_v2": (2.0, 11.2),
    "resnet50": (4.09, 25.6),
    "squeezenet": (0.35, 1.24),
    "vgg19": (19.63, 143.7),
}


def test_all_nine_models_are_there() -> None:
    assert set(PUBLISHED) < set(NAMES)
    assert len(NAMES) == 9


@pytest.mark.parametrize("name", NAMES)
def test_every_node_is_an_op_or_folded(name: str) -> None:
    imported = onnx_light.read(name)
    report, proto = imported.report, onnx.load(onnx_light.path(name))
    assert report.ops + sum(report.folded.values()) == len(proto.graph.node)
    assert report.missing_shape == ()
    assert report.missing_cost == {}
    assert {"ConstantOfShape", "Reshape", "Unsqueeze", "Dropout"}.isdisjoint(imported.graph.kinds)
    assert imported.graph.tensor_is_output.sum() == len(proto.graph.output)
    assert imported.graph.level == "onnx"


@pytest.mark.parametrize("name", PUBLISHED)
def test_work_and_parameters_are_the_published_ones(name: str) -> None:
    graph = datasets.load(onnx_light.PREFIX + name)
    giga_multiply_adds, million_parameters = PUBLISHED[name]
    parameters = graph.tensor_bytes[graph.tensor_role == 1].sum() / 4
    assert graph.op_flops.sum() / 2e9 == pytest.approx(giga_multiply_adds, rel=0.05)
    assert parameters / 1e6 == pytest.approx(million_parameters, rel=0.03)


def test_resnet50_first_convolution_is_counted_exactly() -> None:
    graph = datasets.load("onnx-light/resnet50")
    first = next(op for op in range(graph.num_ops) if graph.kind(op) == "Conv")
    assert graph.op_flops[first] == 2 * (64 * 112 * 112) * (3 * 7 * 7)
    assert graph.op_accessed_bytes[first] == 4 * (3 * 224 * 224 + 64 * 3 * 7 * 7 + 64 * 112 * 112)


@pytest.mark.parametrize("name", ["inception_v2", "shufflenet"])
def test_reading_twice_gives_the_same_graph(name: str) -> None:
    first, second = onnx_light.read(name), onnx_light.read(name)
    assert first.graph == second.graph
    assert first.report == second.report


def test_the_example_in_the_docs_says_what_happens() -> None:
    page = (Path(__file__).parents[2] / "docs" / "importing.md").read_text()
    code = page.split("```python\n")[1].split("```")[0]
    expected = [line.split("# ")[1] for line in code.splitlines() if "# " in line]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "docs/importing.md", "exec"), {})
    assert printed.getvalue().splitlines() == expected
    assert len(expected) == 2
