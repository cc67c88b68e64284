"""Every operator test of the onnx package: shapes against the results that the package stores with each."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
import pytest
from onnx import ModelProto, numpy_helper

from opgym.errors import ImportFailedError
from opgym.graphs.readers.onnx import read_onnx
from opgym.graphs.readers.onnx.types import DTYPES


def without_declared_shapes(proto: ModelProto, inputs: Sequence[object]) -> ModelProto:
    """The model with nothing said about its results, and with those inputs known that may be sizes or axes."""
    bare = ModelProto()
    bare.CopyFrom(proto)
    del bare.graph.value_info[:]
    for info, value in zip(proto.graph.input, inputs, strict=True):
        if isinstance(value, np.ndarray) and value.dtype == np.int64 and value.ndim < 2:
            bare.graph.initializer.append(numpy_helper.from_array(value, info.name))
    for output in bare.graph.output:
        if output.type.HasField("tensor_type"):
            output.type.tensor_type.ClearField("shape")
    return bare


@pytest.mark.slow
def test_operators_of_the_onnx_package() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from onnx.backend.test.case.node import collect_testcases

        cases = [case for case in collect_testcases() if case.model is not None]
    assert len(cases) > 1000
    agreed = unknown = 0
    refused: list[str] = []
    for case in cases:
        try:
            imported = read_onnx(without_declared_shapes(case.model, case.data_sets[0][0]))
        except ImportFailedError as error:
            if "nothing to decide" not in str(error) and "dimensions without a size" not in str(error):
                refused.append(f"{case.name}: {error}")
            continue
        graph = imported.graph
        handles = {name: t for t, name in enumerate(graph.tensor_names)}
        for output, value in zip(case.model.graph.output, case.data_sets[0][1], strict=True):
            if output.name not in handles or not isinstance(value, np.ndarray):
                continue  # a view, which goes by the name of its storage, or a sequence
            if output.name in imported.report.missing_shape:
                unknown += 1
                continue
            t = handles[output.name]
            assert graph.shape(t) == value.shape, case.name
            assert graph.dtype(t) == DTYPES[output.type.tensor_type.elem_type], case.name
            agreed += 1
    assert refused == []
    assert agreed > 1400
    assert unknown < agreed / 10  # where the shape depends on what an input holds
