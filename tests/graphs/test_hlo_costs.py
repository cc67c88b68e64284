"""Flops and bytes of HLO instructions, by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opgym.errors import ImportFailedError, UnknownIdError
from opgym.graphs.readers.hlo.attributes import Window

from .hlo_texts import ADD, flops, imported


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        # 4 x 16 results of 8 multiply-adds
        (
            "dot(%p, %q), lhs_contracting_dims={1}, rhs_contracting_dims={0}|f32[4,16]|f32[4,8]|f32[8,16]",
            2 * 4 * 16 * 8,
        ),
        # a batch of 3, both sides transposed
        (
            "dot(%p, %q), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={1}, "
            "rhs_contracting_dims={2}|bf16[3,4,16]|bf16[3,8,4]|bf16[3,16,8]",
            2 * 3 * 4 * 16 * 8,
        ),
        # an outer product multiplies only, and is still counted as multiply-adds
        ("dot(%p, %q)|f32[4,5]|f32[4]|f32[5]", 2 * 20),
        # a complex multiply-add is 4 products and 4 sums
        ("dot(%p, %q), lhs_contracting_dims={0}, rhs_contracting_dims={0}|c64[]|c64[7]|c64[7]", 8 * 7),
        ("multiply(%p, %q)|f32[3,5]|f32[3,5]|f32[3,5]", 15),
        ("multiply(%p, %q)|c64[3,5]|c64[3,5]|c64[3,5]", 6 * 15),
        ("compare(%p, %q), direction=LT|pred[3,5]|f32[3,5]|f32[3,5]", 15),
        ("concatenate(%p, %q), dimensions={0}|f32[7]|f32[3]|f32[4]", 0),
        ("pad(%p, %q), padding=1_2|f32[6]|f32[3]|f32[]", 0),
        ("triangular-solve(%p, %q), left_side=true, lower=true|f32[8,3]|f32[8,8]|f32[8,3]", 8 * 8 * 3),
    ],
)
def test_two_operands(line: str, expected: int) -> None:
    call, out, left, right = line.split("|")
    entry = f"%p = {left} parameter(0)\n%q = {right} parameter(1)\nROOT %r = {out} {call}"
    assert flops(entry) == expected


@pytest.mark.parametrize(
    ("call", "out", "operand", "expected"),
    [
        ("exponential(%p)", "f32[6]", "f32[6]", 6),
        ("logistic(%p)", "f32[6]", "f32[6]", 24),
        ("convert(%p)", "bf16[6]", "f32[6]", 0),
        ("copy(%p)", "f32[6]", "f32[6]", 0),
        ("broadcast(%p), dimensions={1}", "f32[2,6]", "f32[6]", 0),
        ("transpose(%p), dimensions={1,0}", "f32[3,2]", "f32[2,3]", 0),
        ("fft(%p), fft_type=FFT, fft_length={8}", "c64[5,8]", "c64[5,8]", 5 * 8 * 3 * 5),
        ("fft(%p), fft_type=RFFT, fft_length={8}", "c64[5,5]", "f32[5,8]", 5 * 8 * 3 * 5 // 2),
        ("cholesky(%p), lower=true", "f32[2,9,9]", "f32[2,9,9]", 2 * 9**3 // 3),
        ("topk(%p), k=4, largest=true", "(f32[3,4], s32[3,4])", "f32[3,50]", 150 * 2),
        ("rng-bit-generator(%p), algorithm=rng_default", "(u64[2], u32[5])", "u64[2]", 7),
    ],
)
def test_one_operand(call: str, out: str, operand: str, expected: int) -> None:
    assert flops(f"%p = {operand} parameter(0)\nROOT %r = {out} {call}") == expected


CONVOLUTIONS = [
    # plain: 5 x 5 places of 3 x 3 taps over 4 channels, padding counted
    ("f32[2,5,5,4]", "f32[3,3,4,8]", "f32[2,5,5,8]", "window={size=3x3 pad=1_1x1_1}", 2 * 2 * 25 * 8 * 9 * 4),
    # grouped: each of the 8 outputs sees 2 of the 4 channels
    (
        "f32[2,5,5,4]", "f32[3,3,2,8]", "f32[2,5,5,8]",
        "window={size=3x3 pad=1_1x1_1}, feature_group_count=2", 2 * 2 * 25 * 8 * 9 * 2,
    ),
    # depthwise with stride 2
    (
        "f32[1,8,8,6]", "f32[3,3,1,6]", "f32[1,4,4,6]",
        "window={size=3x3 stride=2x2 pad=0_1x0_1}, feature_group_count=6", 2 * 16 * 6 * 9,
    ),
    # batch groups: the batch is contracted with the kernel's inputs
    (
        "f32[6,5,5,4]", "f32[3,3,4,6]", "f32[2,3,3,6]",
        "window={size=3x3}, batch_group_count=3", 2 * 2 * 9 * 6 * 9 * 4,
    ),
]  # fmt: skip


@pytest.mark.parametrize(("image", "kernel", "out", "attributes", "expected"), CONVOLUTIONS)
def test_convolutions(image: str, kernel: str, out: str, attributes: str, expected: int) -> None:
    entry = f"""
        %x = {image} parameter(0)
        %k = {kernel} parameter(1)
        ROOT %y = {out} convolution(%x, %k), {attributes}, dim_labels=b01f_01io->b01f
    """
    assert flops(entry) == expected


def test_gradients_of_a_strided_convolution_cost_what_it_costs() -> None:
    """The zeros that XLA puts between the elements of a dilated input are no work."""
    forward = flops("""
        %x = f32[2,16,16,4] parameter(0)
        %k = f32[3,3,4,8] parameter(1)
        ROOT %y = f32[2,8,8,8] convolution(%x, %k), window={size=3x3 stride=2x2 pad=0_1x0_1},
            dim_labels=b01f_01io->b01f
    """)
    of_input = flops("""
        %g = f32[2,8,8,8] parameter(0)
        %k = f32[3,3,4,8] parameter(1)
        ROOT %d = f32[2,16,16,4] convolution(%g, %k),
            window={size=3x3 pad=2_1x2_1 lhs_dilate=2x2 rhs_reversal=1x1}, dim_labels=b01f_01oi->b01f
    """)
    of_kernel = flops("""
        %x = f32[2,16,16,4] parameter(0)
        %g = f32[2,8,8,8] parameter(1)
        ROOT %d = f32[3,3,4,8] convolution(%x, %g), window={size=8x8 pad=0_0x0_0 rhs_dilate=2x2},
            dim_labels=f01b_i01o->01bf
    """)
    assert forward == 2 * 2 * 64 * 8 * 9 * 4
    assert of_input == forward
    assert of_kernel == forward


@given(
    places=st.integers(0, 12), size=st.integers(0, 7), stride=st.integers(1, 4), pad=st.integers(-3, 5),
    base=st.integers(1, 6), dilation=st.integers(1, 6),
)  # fmt: skip
def test_taps_are_those_that_fall_on_an_element(
    places: int, size: int, stride: int, pad: int, base: int, dilation: int
) -> None:
    window = Window((size,), (stride,), (pad,), (base,), (dilation,))
    expected = sum(
        (place * stride + tap * dilation - pad) % base == 0 for place in range(places) for tap in range(size)
    )
    assert window.taps(0, places) == expected


def test_taps_of_enormous_windows_are_counted_at_once() -> None:
    size = 10**17
    assert Window((size,), (2,), (3,), (2,), (1,)).taps(0, size) == size * (size // 2)
    assert Window((size,), (1,), (0,), (size,), (1,)).taps(0, size) == size


def test_what_applies_a_function_costs_its_flops_each_time() -> None:
    sum_of_squares = """%f (a: f32[], b: f32[]) -> f32[] {
      %a = f32[] parameter(0)
      %b = f32[] parameter(1)
      %square = f32[] multiply(%b, %b)
      ROOT %sum = f32[] add(%a, %square)
    }
    %less (c: f32[], d: f32[]) -> pred[] {
      %c = f32[] parameter(0)
      %d = f32[] parameter(1)
      ROOT %r = pred[] compare(%c, %d), direction=LT
    }
    %second (e: f32[], f: f32[]) -> f32[] {
      %e = f32[] parameter(0)
      ROOT %f = f32[] parameter(1)
    }
    """

    def last(*lines: str) -> int:
        start = ["%x = f32[4,6] parameter(0)", "%i = f32[] constant(0)", "%n = s32[5,1] parameter(1)"]
        return flops("\n".join([*start, *lines]), ADD + sum_of_squares)

    assert last("ROOT %r = f32[4] reduce(%x, %i), dimensions={1}, to_apply=%add") == 24
    assert last("ROOT %r = f32[4] reduce(%x, %i), dimensions={1}, to_apply=%f") == 48
    windows = "ROOT %r = f32[2,3] reduce-window(%x, %i), window={size=2x2 stride=2x2}, to_apply=%add"
    assert last(windows) == 2 * 3 * 4
    assert last("ROOT %r = f32[4,6] map(%x, %x), dimensions={0,1}, to_apply=%f") == 48
    assert last("ROOT %r = f32[4,6] sort(%x), dimensions={1}, to_apply=%less") == 24 * 3
    scatter = "scatter(%x, %n, %u), update_window_dims={1}, inserted_window_dims={0}, index_vector_dim=1"
    updates = "%u = f32[5,6] parameter(2)"
    assert last(updates, f"ROOT %r = f32[4,6] {scatter}, to_apply=%add") == 30
    assert last(updates, f"ROOT %r = f32[4,6] {scatter}, to_apply=%second") == 0
    source = "%s = f32[2,3] parameter(2)"
    assert last(
        source,
        "ROOT %r = f32[4,6] select-and-scatter(%x, %s, %i), window={size=2x2 stride=2x2}, "
        "select=%less, scatter=%add",
    ) == 6 * (4 + 1)


FUSED = """%fused (p: f32[64,32], q: f32[1,32], i: s32[]) -> f32[1,32] {
  %p = f32[64,32] parameter(0)
  %q = f32[1,32] parameter(1)
  %i = s32[] parameter(2)
  %zero = s32[] constant(0)
  %row = f32[1,32] dynamic-slice(%p, %i, %zero), dynamic_slice_sizes={1,32}
  %product = f32[1,32] multiply(%row, %q)
  ROOT %result = f32[1,32] exponential(%product)
}
%update (p2: f32[64,32], r: f32[1,32], j: s32[]) -> f32[64,32] {
  %p2 = f32[64,32] parameter(0)
  %r = f32[1,32] parameter(1)
  %j = s32[] parameter(2)
  %o = s32[] constant(0)
  ROOT %new = f32[64,32] dynamic-update-slice(%p2, %r, %j, %o)
}
%pointwise (s: f32[64,32], t: f32[]) -> f32[64,32] {
  %s = f32[64,32] parameter(0)
  %t = f32[] parameter(1)
  %many = f32[64,32] broadcast(%t), dimensions={}
  %u = f32[64,32] multiply(%s, %many)
  ROOT %v = f32[64,32] tanh(%u)
}
"""


def test_a_fusion_costs_what_it_fuses_and_reads_what_it_picks() -> None:
    graph = imported(
        """
        %x = f32[64,32] parameter(0)
        %y = f32[1,32] parameter(1)
        %i = s32[] parameter(2)
        %c = f32[] constant(2)
        %a = f32[1,32] fusion(%x, %y, %i), kind=kLoop, calls=%fused
        %b = f32[64,32] fusion(%x, %a, %i), kind=kLoop, calls=%update
        ROOT %d = f32[64,32] fusion(%b, %c), kind=kLoop, calls=%pointwise
        """,
        FUSED,
    ).graph
    assert graph.op_flops.tolist() == [64, 0, 2 * 64 * 32]
    assert [graph.kind(o) for o in range(3)] == [
        "fusion:dynamic-slice", "fusion:dynamic-update-slice", "fusion:loop"
    ]  # fmt: skip
    row, table = 32 * 4, 64 * 32 * 4
    # the row of the table, the factor, the index, and the result; then the new row in and out
    assert graph.op_accessed_bytes.tolist() == [3 * row + 4, 2 * row + 4, 2 * table + 4]
    assert graph.op_elementwise.tolist() == [False, False, True]


def test_picking_accesses_the_part_that_is_picked() -> None:
    graph = imported("""
        %x = f32[100,8] parameter(0)
        %n = s32[3,1] parameter(1)
        %a = f32[2,8] slice(%x), slice={[0:2], [0:8]}
        %b = f32[3,8] gather(%x, %n), offset_dims={1}, collapsed_slice_dims={0},
            start_index_map={0}, index_vector_dim=1, slice_sizes={1,8}
        ROOT %c = f32[5,8] concatenate(%a, %b), dimensions={0}
    """).graph
    assert graph.op_accessed_bytes.tolist() == [2 * 64, 2 * 96 + 12, 64 + 96 + 160]


CALL = """
    %x = f32[4,8] parameter(0)
    %y = f32[8,16] parameter(1)
    ROOT %r = f32[4,16] custom-call(%x, %y), custom_call_target="{}"{}
"""


@pytest.mark.parametrize(
    ("target", "configuration", "left"),
    [
        ("__onednn$matmul", "", "%x = f32[4,8]"),
        (
            "__onednn$matmul",
            ', backend_config={"onednn_matmul_config":{"transpose_a":true}}',
            "%x = f32[8,4]",
        ),
        (
            "__cublas$gemm",
            ', backend_config={"gemm_backend_config":{"dot_dimension_numbers":'
            '{"lhs_contracting_dimensions":["0"]}}}',
            "%x = f32[8,4]",
        ),
    ],
)
def test_matrix_products_of_libraries(target: str, configuration: str, left: str) -> None:
    entry = CALL.format(target, configuration).replace("%x = f32[4,8]", left)
    assert flops(entry) == 2 * 4 * 16 * 8


def test_a_call_without_formula_is_listed_refused_or_given() -> None:
    entry = CALL.format("my_kernel", "")
    unknown = imported(entry)
    assert unknown.report.missing_cost == {"custom-call:my_kernel": 1}
    assert unknown.graph.op_flops.tolist() == [0]
    assert unknown.graph.op_accessed_bytes.tolist() == [4 * (32 + 128 + 64)]
    with pytest.raises(ImportFailedError, match="no cost formula for custom-call:my_kernel"):
        imported(entry, strict=True)
    assert flops(entry, costs={"custom-call:my_kernel": 77}, strict=True) == 77
    rule = {"custom-call:my_kernel": lambda given, results: given[0][1] * results[0][0]}
    assert flops(entry, costs=rule) == 8 * 4
    with pytest.raises(ImportFailedError, match=r"gives -1 for %r; expected a whole number"):
        imported(entry, costs={"custom-call:my_kernel": -1})
    with pytest.raises(UnknownIdError, match="did you mean custom-call:my_kernel"):
        imported(entry, costs={"custom-call:my_kernal": 1})
