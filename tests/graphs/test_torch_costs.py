"""Flops and bytes of torch operators against values worked out by hand."""

from contextlib import suppress
from math import ceil, log2

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from opgym.graphs import VARIABLE, Graph
from opgym.graphs.readers import from_torch
from opgym.graphs.readers.torch.costs import FORMULAS, Call, flops
from opgym.graphs.readers.torch.costs.movement import accessed_bytes
from opgym.graphs.readers.torch.schemas import traits_of

aten = torch.ops.aten


def call(func: torch._ops.OpOverload, *args, outputs: list[torch.Tensor] | None = None, **kwargs) -> Call:
    """A call of an operator on ``meta`` tensors."""
    result = func(*args, **kwargs)
    results = result if isinstance(result, (list, tuple)) else [result]
    return Call(traits_of(func), args, kwargs, outputs or [r for r in results if r is not None])


def t(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.empty(shape, dtype=dtype, device="meta")


def ids(*shape: int) -> torch.Tensor:
    return t(*shape, dtype=torch.int64)


CONV = ([1, 1], [1, 1], [1, 1])
YES = [True, True, True]


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        # 3x3 over 8 channels in 2 groups of 4, to 6 channels of 10 x 10; bias.
        (call(aten.convolution.default, t(2, 8, 10, 10), t(6, 4, 3, 3), t(6), *CONV, False, [0, 0], 2),
         2 * (2 * 6 * 100) * (4 * 9) + 2 * 6 * 100),
        # Depthwise: each channel alone.
        (call(aten.convolution.default, t(1, 8, 10, 10), t(8, 1, 3, 3), None, *CONV, False, [0, 0], 8),
         2 * 800 * 9),
        # One dimension, dilated: 16 - 2 * (3 - 1) = 12 positions.
        (call(aten.convolution.default, t(2, 4, 16), t(5, 4, 3), None, [1], [0], [2], False, [0], 1),
         2 * (2 * 5 * 12) * 12),
        # Transposed, stride 2: every input element is spread over 3 channels of its group and 2 x 2.
        (call(aten.convolution.default, t(1, 4, 5, 5), t(4, 3, 2, 2), t(6), [2, 2], [0, 0], [1, 1], True, [0, 0], 2),
         2 * (4 * 25) * (3 * 4) + 6 * 100),
        (call(aten.convolution_backward.default, t(2, 6, 10, 10), t(2, 8, 10, 10), t(6, 4, 3, 3), [6], *CONV, False,
              [0, 0], 2, YES),
         2 * (2 * 1200 * 36) + 1200),
        (call(aten.convolution_backward.default, t(2, 6, 10, 10), t(2, 8, 10, 10), t(6, 4, 3, 3), None, *CONV, False,
              [0, 0], 2, [False, True, False]),
         2 * 1200 * 36),
        (call(aten.convolution_backward.default, t(1, 6, 10, 10), t(1, 4, 5, 5), t(4, 3, 2, 2), None, [2, 2], [0, 0],
              [1, 1], True, [0, 0], 2, [True, True, False]),
         2 * (2 * 100 * 12)),
        (call(aten.mm.default, t(3, 4), t(4, 5)), 2 * 3 * 4 * 5),
        (call(aten.addmm.default, t(5), t(3, 4), t(4, 5)), 2 * 3 * 4 * 5 + 15),
        (call(aten.bmm.default, t(7, 3, 4), t(7, 4, 5)), 2 * 7 * 3 * 4 * 5),
        (call(aten.baddbmm.default, t(7, 3, 5), t(7, 3, 4), t(7, 4, 5)), 2 * 7 * 3 * 4 * 5 + 7 * 15),
        (call(aten.addbmm.default, t(3, 5), t(7, 3, 4), t(7, 4, 5)), 2 * 7 * 3 * 4 * 5 + 15),
        (call(aten.mv.default, t(3, 4), t(4)), 2 * 12),
        (call(aten.addmv.default, t(3), t(3, 4), t(4)), 2 * 12 + 3),
        (call(aten.dot.default, t(9), t(9)), 18),
        # Queries of 2 x 4 heads x 10 positions x 16, keys and values of 12 positions.
        (call(aten._scaled_dot_product_flash_attention_for_cpu.default, t(2, 4, 10, 16), t(2, 4, 12, 16),
              t(2, 4, 12, 16)),
         2 * 4 * 10 * 12 * (2 * 16 + 1 + 5 + 2 * 16)),
        (call(aten._scaled_dot_product_flash_attention_for_cpu.default, t(2, 4, 10, 16), t(2, 4, 12, 16),
              t(2, 4, 12, 16), attn_mask=t(10, 12)),
         2 * 4 * 10 * 12 * (2 * 16 + 1 + 5 + 2 * 16 + 1)),
        (call(aten._scaled_dot_product_flash_attention_for_cpu_backward.default, t(2, 4, 10, 16), t(2, 4, 10, 16),
              t(2, 4, 12, 16), t(2, 4, 12, 16), t(2, 4, 10, 16), t(2, 4, 10), 0.0, False),
         2 * 4 * 10 * 12 * (10 * 16 + 6) + 2 * (2 * 4 * 10 * 16)),
        (call(aten.addr.default, t(3, 4), t(3), t(4)), 24),
        # sum over k and l of a[i, k] w[j, k, l] b[i, l]: two products and a sum at each (i, j, k, l).
        (call(aten._trilinear.default, t(6, 3), t(5, 3, 4), t(6, 4), [1, 3], [0], [1, 2], [2, 3]),
         3 * 6 * 5 * 3 * 4),
    ],
)  # fmt: skip
def test_products(made, expected):
    assert flops(made) == expected


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (call(aten.add.Tensor, t(3, 4), t(4)), 12),
        (call(aten.add.Tensor, t(3, 4), t(4), alpha=0.5), 24),
        (call(aten.add_.Tensor, t(3, 4), t(4)), 12),
        (call(aten.mul.Scalar, t(3, 4), 2.0), 12),
        (call(aten.sigmoid.default, t(10)), 40),
        (call(aten.sigmoid_backward.default, t(10), t(10)), 30),
        (call(aten.tanh_backward.default, t(10), t(10)), 30),
        (call(aten.threshold_backward.default, t(10), t(10), 0), 10),
        (call(aten.gelu.default, t(10)), 50),
        (call(aten.gelu.default, t(10), approximate="tanh"), 90),
        (call(aten.silu.default, t(10)), 50),
        (call(aten.silu_backward.default, t(10), t(10)), 90),
        (call(aten.clamp.default, t(10), 0, 1), 20),
        (call(aten.lerp.Scalar, t(10), t(10), 0.1), 30),
        (call(aten.addcmul.default, t(10), t(10), t(10)), 20),
        (call(aten.addcmul.default, t(10), t(10), t(10), value=0.1), 30),
        (call(aten.addcdiv.default, t(10), t(10), t(10), value=-0.1), 30),
        (call(aten.native_dropout.default, t(10), 0.1, True), 30),
        (call(aten.native_dropout_backward.default, t(10), t(10, dtype=torch.bool), 1.1), 20),
        (call(aten.where.self, t(10, dtype=torch.bool), t(10), t(10)), 10),
        (call(aten._to_copy.default, t(10), dtype=torch.float16), 0),
        (call(aten.clone.default, t(10)), 0),
        (call(aten.cat.default, [t(10), t(4)]), 0),
        (call(aten.glu.default, t(3, 4)), 5 * 6),
        (call(aten.glu_backward.default, t(3, 2), t(3, 4), -1), 8 * 6),
        (call(aten._foreach_add.List, [t(3), t(4)], [t(3), t(4)]), 7),
    ],
)
def test_elementwise(made, expected):
    assert flops(made) == expected


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (call(aten.sum.dim_IntList, t(3, 4), [1]), 12),
        (call(aten.mean.dim, t(3, 4), [1]), 12 + 3),
        (call(aten.var_mean.correction, t(3, 4), [1]), 4 * 12 + 2 * 3),
        (call(aten.max.dim, t(3, 4), 1), 12),
        (call(aten.maximum.default, t(3, 4), t(3, 4)), 12),
        (call(aten.argmax.default, t(3, 4), 1), 12),
        (call(aten.cumsum.default, t(3, 4), 1), 12),
        (call(aten.linalg_vector_norm.default, t(3, 4), 2, [1]), 24 + 3),
        (call(aten.logsumexp.default, t(3, 4), [1]), 48 + 3),
        (call(aten._softmax.default, t(3, 4), 1, False), 60),
        (call(aten._log_softmax.default, t(3, 4), 1, False), 60),
        (call(aten._softmax_backward_data.default, t(3, 4), t(3, 4), 1, torch.float32), 48),
        (call(aten._log_softmax_backward_data.default, t(3, 4), t(3, 4), 1, torch.float32), 48),
        # 5 x 5 windows of 3 x 3; one number for both sides.
        (call(aten.max_pool2d_with_indices.default, t(2, 3, 10, 10), [2, 2]), 2 * 3 * 25 * 4),
        (call(aten.avg_pool2d.default, t(2, 3, 10, 10), [2]), 2 * 3 * 25 * 4),
        (call(aten.avg_pool2d_backward.default, t(2, 3, 5, 5), t(2, 3, 10, 10), [2, 2], [2, 2], [0, 0], False, True,
              None), 2 * 3 * 25 * 4),
        (call(aten.max_pool2d_with_indices_backward.default, t(2, 3, 5, 5), t(2, 3, 10, 10), [2, 2], [2, 2], [0, 0],
              [1, 1], False, ids(2, 3, 5, 5)), 2 * 3 * 25),
        (call(aten._adaptive_avg_pool2d.default, t(2, 3, 10, 10), [5, 1]), 2 * 3 * 100),
        # 7 into 3: windows of 3, 3, 3, which overlap.
        (call(aten._adaptive_avg_pool2d.default, t(1, 1, 7, 6), [3, 2]), 9 * 6),
        (call(aten.native_batch_norm.default, t(2, 3, 4), t(3), t(3), t(3), t(3), True, 0.1, 1e-5), 7 * 24),
        (call(aten.native_batch_norm.default, t(2, 3, 4), t(3), t(3), t(3), t(3), False, 0.1, 1e-5), 2 * 24),
        (call(aten.native_batch_norm_backward.default, t(2, 3, 4), t(2, 3, 4), t(3), t(3), t(3), t(3), t(3), True, 1e-5,
              YES), 9 * 24),
        (call(aten.native_batch_norm_backward.default, t(2, 3, 4), t(2, 3, 4), t(3), t(3), t(3), t(3), t(3), False,
              1e-5, [True, False, False]), 24),
        (call(aten.native_layer_norm.default, t(6, 4), [4], t(4), t(4), 1e-5), 7 * 24),
        (call(aten.native_layer_norm_backward.default, t(6, 4), t(6, 4), [4], t(6, 1), t(6, 1), t(4), t(4), YES),
         13 * 24),
        (call(aten.native_group_norm.default, t(2, 6, 5), t(6), t(6), 2, 6, 5, 3, 1e-5), 7 * 60),
        (call(aten.mse_loss.default, t(10), t(10)), 30),
        (call(aten.mse_loss.default, t(10), t(10), 0), 20),
        (call(aten.binary_cross_entropy_with_logits.default, t(10), t(10)), 90),
        (call(aten.nll_loss_forward.default, t(4, 10), ids(4), None, 1, -100), 8),
        (call(aten.topk.default, t(3, 100), 8), 300 * 3),
        (call(aten.sort.default, t(3, 100)), 300 * ceil(log2(100))),
        (call(aten.upsample_nearest2d.default, t(1, 3, 4, 4), [8, 8]), 0),
        (call(aten.upsample_bilinear2d.default, t(1, 3, 4, 4), [8, 8], False), 8 * 3 * 64),
        (call(aten.grid_sampler_2d.default, t(1, 3, 4, 4), t(1, 5, 5, 2), 0, 0, False), 2 * 4 * 75),
        (call(aten.embedding.default, t(100, 8), ids(2, 3)), 0),
        (call(aten.embedding_dense_backward.default, t(2, 3, 8), ids(2, 3), 100, -1, False), 48),
        (call(aten.index_put.default, t(10, 4), [ids(3)], t(3, 4)), 0),
        (call(aten.index_put.default, t(10, 4), [ids(3)], t(3, 4), True), 12),
        (call(aten.scatter_add.default, t(10), 0, ids(6), t(6)), 6),
        (call(aten.index_add.default, t(10, 4), 0, ids(3), t(3, 4)), 12),
        (call(aten._fft_c2c.default, t(3, 16, dtype=torch.complex64), [1], 0, True), 5 * 48 * 4),
        (call(aten._fft_r2c.default, t(3, 16), [1], 0, True), 5 * 48 * 4 // 2),
        (call(aten._cdist_forward.default, t(3, 5), t(4, 5), 2.0, None), 12 * 16),
    ],
)  # fmt: skip
def test_reductions(made, expected):
    assert flops(made) == expected


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        # Six rows of 32 bytes are read and written; the table of 3,200 is not. Indices have 8 bytes.
        (call(aten.embedding.default, t(100, 8), ids(2, 3)), 6 * 32 * 2 + 48),
        (call(aten.index_select.default, t(100, 8), 0, ids(6)), 6 * 32 * 2 + 48),
        (call(aten.gather.default, t(100, 8), 0, ids(2, 8)), 16 * 4 * 2 + 16 * 8),
        (call(aten.index.Tensor, t(100, 8), [None, ids(3)]), 300 * 4 * 2 + 24),
        # In place, only what is put is touched; to add, the old values are read.
        (call(aten.index_put_.default, t(100, 8), [ids(3)], t(3, 8)), 96 * 2 + 24),
        (call(aten.index_put_.default, t(100, 8), [ids(3)], t(3, 8), True), 96 * 3 + 24),
        (call(aten.index_add_.default, t(100, 8), 0, ids(3), t(3, 8)), 96 * 3 + 24),
        (call(aten.index_copy_.default, t(100, 8), 0, ids(3), t(3, 8)), 96 * 2 + 24),
        (call(aten.scatter_add_.default, t(100), 0, ids(6), t(6)), 24 * 3 + 48),
        (call(aten.empty.memory_format, [100], device="meta"), 0),
        (call(aten.add.Tensor, t(3), t(3)), None),
        (call(aten.index_put.default, t(100, 8), [ids(3)], t(3, 8)), None),
    ],
)
def test_bytes_that_are_not_all_of_the_operands(made, expected):
    assert accessed_bytes(made) == expected


def overloads(kind: str) -> list[torch._ops.OpOverload]:
    """Operators of a kind on tensors, in-place and list variants too, but those that write to ``out``."""
    dispatched = set(torch._C._dispatch_get_all_op_names())  # the others exist in scripts only
    packets = [getattr(aten, name) for name in (kind, f"{kind}_", f"_foreach_{kind}") if hasattr(aten, name)]
    found = [getattr(packet, name) for packet in packets for name in packet.overloads()]
    return [
        func
        for func in found
        if func.name() in dispatched
        and not any(a.is_out for a in func._schema.arguments)
        and "Tensor" in str(func._schema).split("->")[1]
    ]


SAMPLES = {
    "Tensor": t(2, 3, 4, 5), "Optional[Tensor]": t(2, 3, 4, 5), "List[Tensor]": [t(2, 3, 4, 5)], "int": 1, "float": 1.0,
    "bool": True, "List[int]": [1, 1], "List[bool]": [True] * 3, "str": "none", "List[Optional[Tensor]]": [ids(3)],
    "number": 2, "List[number]": [2],
}  # fmt: skip


def test_formulas_name_operators_and_arguments_that_exist():
    for kind in FORMULAS:
        functions = overloads(kind)
        assert functions, f"torch has no operator {kind}"
        for func in functions:
            args = tuple(SAMPLES.get(str(a.type)) for a in func._schema.arguments)
            # The shapes of these samples need not make sense, but no formula may ask for another name.
            with suppress(ValueError, IndexError, AttributeError, TypeError, ZeroDivisionError):
                assert flops(Call(traits_of(func), args, {}, [t(2, 3, 4, 5)])) >= 0


ATTENTION = "_scaled_dot_product_flash_attention_for_cpu"


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.project = nn.Linear(16, 48)

    def forward(self, x):
        q, k, v = self.project(x).view(2, 10, 3, 4, 4).permute(2, 0, 3, 1, 4)
        return F.scaled_dot_product_attention(q, k, v)


def test_views_are_read_as_far_as_they_reach():
    graph = from_torch(Attention(), torch.zeros(2, 10, 16), train=False).graph
    attention = [graph.kind(v) for v in range(graph.num_ops)].index(ATTENTION)
    # Queries, keys and values are thirds of one tensor, which is read once; the output, and 80 sums of rows.
    assert graph.op_accessed_bytes[attention] == 3 * 320 * 4 + 320 * 4 + 80 * 4
    assert len(graph.inputs(attention)) == 1


def products(graph: Graph) -> int:
    """Flops of products, without the additions of biases."""
    kinds = ("convolution", "convolution_backward", "mm", "addmm", "bmm")
    return sum(int(graph.op_flops[v]) for v in range(graph.num_ops) if graph.kind(v) in kinds)


def test_products_are_those_that_torch_counts():
    """torch's own counter agrees where it is right: ungrouped convolutions and matrix products."""
    module = nn.Sequential(
        nn.Conv2d(3, 8, 3, bias=False), nn.ReLU(), nn.Conv2d(8, 4, 3, stride=2, bias=False), nn.Flatten(),
        nn.Linear(4 * 16, 10, bias=False), nn.Tanh(), nn.Linear(10, 2, bias=False),
    )  # fmt: skip
    x = torch.randn(5, 3, 11, 11)
    with FlopCounterMode(display=False) as counter:
        module(x).sum().backward()
    graph = from_torch(module, x, loss=lambda y: y.sum()).graph
    assert products(graph) == counter.get_total_flops()
    assert VARIABLE in graph.kinds
