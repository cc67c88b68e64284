"""Flops of reductions, pooling, normalisation, softmax, losses, sorting, scatters and interpolation."""

from __future__ import annotations

from math import ceil, log2, prod

from .call import Call, Formula

#: max, subtract, exp, sum, divide (or subtract, for the logarithm).
_SOFTMAX = 5
#: grad * y, its sum, y * sum, subtract (for the logarithm: sum, exp, product, subtract).
_SOFTMAX_BACKWARD = 4
#: mean, squared deviation (3), scale, and the affine map (2).
_NORMALISE = 7


def _per_input(count: int, name: str = "self") -> Formula:
    return lambda c: count * c.elements(name)


def _per_output(count: int) -> Formula:
    return lambda c: count * c.out_elements()


def _reduce(per_input: int, per_output: int = 0) -> Formula:
    return lambda c: per_input * c.elements("self") + per_output * c.out_elements()


def _compare_or_reduce(c: Call) -> int:
    """``max`` and ``min`` reduce one tensor or compare two."""
    return c.out_elements() if c.has("other") else c.elements("self")


def _kernel(c: Call, dims: int) -> int:
    """Elements of a pooling window; one number stands for all dimensions."""
    size = [int(k) for k in c.value("kernel_size")]
    return prod(size) if len(size) > 1 else int(size[0] ** dims)


def _pool(dims: int) -> Formula:
    return lambda c: c.out_elements() * _kernel(c, dims)


def _average_pool_backward(dims: int) -> Formula:
    return lambda c: c.elements("grad_output") * _kernel(c, dims)


def _adaptive_pool(dims: int) -> Formula:
    """Every window in full: they overlap where sizes do not divide."""

    def formula(c: Call) -> int:
        shape, out = c.shape("self")[-dims:], c.out_shape()[-dims:]
        rest = c.out_elements() // max(1, prod(out))
        return rest * prod(
            sum(-(-(i + 1) * n // m) - i * n // m for i in range(m)) for n, m in zip(shape, out, strict=True)
        )

    return formula


def _batch_norm(c: Call) -> int:
    """Statistics, scale and shift in training; a scale and a shift at inference."""
    training = "training" in c.traits.names and c.value("training")
    return (_NORMALISE if training else 2) * c.elements("input")


def _batch_norm_backward(c: Call) -> int:
    """In training both sums are needed for any result; else each for its own."""
    to_input, to_weight, to_bias = c.mask()
    n = c.elements("input")
    if c.value("train"):
        # normalise (2), sums (1 and 2); subtract two terms and scale (4)
        return (5 + 4 * to_input) * n
    return (to_input + 4 * to_weight + to_bias) * n


def _layer_norm_backward(c: Call) -> int:
    """Normalise (2); times weight, two sums (3), subtract two terms and scale (4); product and sum; sum."""
    to_input, to_weight, to_bias = c.mask()
    return (2 + 8 * to_input + 2 * to_weight + to_bias) * c.elements("input")


def _rms_norm_backward(c: Call) -> int:
    """Normalise (1); times weight, product and sum (2), subtract the term (2), scale; product and sum."""
    to_input, to_weight = c.mask()
    return (1 + 6 * to_input + 2 * to_weight) * c.elements("input")


def _norm(c: Call) -> int:
    """A power and a sum per element, a root per output."""
    return 2 * c.elements("self") + c.out_elements()


def _comparisons(n: int) -> int:
    return max(1, ceil(log2(max(2, n))))


def _top_k(c: Call) -> int:
    """A heap of k values: log2(k) comparisons per element."""
    return c.elements("self") * _comparisons(int(c.value("k")))


def _sort(c: Call) -> int:
    """n log2(n) comparisons along the sorted dimension."""
    shape = c.shape("self")
    axis = int(c.value("dim", -1)) if "dim" in c.traits.names else -1
    return c.elements("self") * _comparisons(shape[axis] if shape else 1)


def _search_sorted(c: Call) -> int:
    boundaries = "sorted_sequence" if "sorted_sequence" in c.traits.names else "boundaries"
    return c.out_elements() * _comparisons(c.shape(boundaries)[-1])


def _is_in(c: Call) -> int:
    """A search in the sorted test elements, or a comparison with the one there is."""
    tested = c.elements("test_elements") if "test_elements" in c.traits.names else 1
    return c.out_elements() * _comparisons(tested)


def _loss(per_element: int) -> Formula:
    """So many operations per element, and a sum of them unless every element is kept."""

    def formula(c: Call) -> int:
        n = c.elements("self")
        reduced = int(c.value("reduction", 1)) != 0
        return (per_element + reduced) * n

    return formula


def _interpolate(taps: int) -> Formula:
    return lambda c: 2 * taps * c.out_elements()


def _interpolate_backward(taps: int) -> Formula:
    return lambda c: 2 * taps * c.elements("grad_output")


def _grid_sample(dims: int, per_tap: int) -> Formula:
    def formula(c: Call) -> int:
        mode = int(c.value("interpolation_mode", 0))
        taps = {0: 2, 1: 0, 2: 4}[mode] ** dims if mode != 1 else 0
        elements = c.out_elements() if per_tap == 2 else c.elements("grad_output")
        return per_tap * taps * elements

    return formula


def _added(name: str) -> Formula:
    """One addition per element of an argument."""
    return lambda c: c.elements(name)


def _index_put(c: Call) -> int:
    return c.elements("values") if c.value("accumulate", False) else 0


def _fourier(c: Call) -> int:
    """5 n log2(n) per complex signal, half of it where one side is real."""
    full = c.shape("self") if c.traits.kind != "_fft_c2r" else c.out_shape()
    axes = [int(a) for a in c.value("dim")]
    n = prod(full[a] for a in axes)
    cost = 5 * prod(full) * _comparisons(n)
    return cost if c.traits.kind == "_fft_c2c" else cost // 2


def _embedding_bag(c: Call) -> int:
    return c.elements("indices") * c.shape("weight")[-1]


def _distances(c: Call) -> int:
    """Subtract, power, sum per coordinate; a root per pair."""
    return c.out_elements() * (3 * c.shape("x1")[-1] + 1)


def _factorise(c: Call) -> int:
    """A triangular factorisation, 2/3 n^3 (Cholesky: half of it)."""
    shape = c.shape("self" if "self" in c.traits.names else "A")
    return (1 if "cholesky" in c.traits.kind else 2) * prod(shape) * shape[-1] // 3


_REDUCE_ONE = (
    "all", "amax", "amin", "any", "argmax", "argmin", "cummax", "cummin", "cumprod", "cumsum", "aminmax",
    "count_nonzero", "mode", "nansum", "prod", "sum", "bincount", "median", "nanmedian", "trace", "kthvalue",
)  # fmt: skip

FORMULAS: dict[str, Formula] = dict.fromkeys(_REDUCE_ONE, _reduce(1)) | {
    "max": _compare_or_reduce, "min": _compare_or_reduce,
    "mean": _reduce(1, 1),
    "var": _reduce(4, 1), "var_mean": _reduce(4, 2), "std": _reduce(4, 2), "std_mean": _reduce(4, 3),
    "linalg_vector_norm": _norm, "norm": _norm,
    "logsumexp": _reduce(4, 1), "logcumsumexp": _reduce(4),
    "_softmax": _per_input(_SOFTMAX), "_log_softmax": _per_input(_SOFTMAX),
    "_safe_softmax": _per_input(_SOFTMAX), "_softmax_backward_data": _per_input(_SOFTMAX_BACKWARD, "output"),
    "_log_softmax_backward_data": _per_input(_SOFTMAX_BACKWARD, "output"),
    "max_pool2d_with_indices": _pool(2), "max_pool3d_with_indices": _pool(3),
    "max_pool2d_with_indices_backward": _per_input(1, "grad_output"),
    "max_pool3d_with_indices_backward": _per_input(1, "grad_output"),
    "avg_pool1d": _pool(1), "avg_pool2d": _pool(2), "avg_pool3d": _pool(3),
    "avg_pool2d_backward": _average_pool_backward(2), "avg_pool3d_backward": _average_pool_backward(3),
    "_adaptive_avg_pool2d": _adaptive_pool(2), "_adaptive_avg_pool3d": _adaptive_pool(3),
    "_adaptive_avg_pool2d_backward": _per_output(1), "_adaptive_avg_pool3d_backward": _per_output(1),
    "adaptive_max_pool2d": _adaptive_pool(2), "adaptive_max_pool3d": _adaptive_pool(3),
    "adaptive_max_pool2d_backward": _per_input(1, "grad_output"),
    "native_batch_norm": _batch_norm, "_native_batch_norm_legit": _batch_norm,
    "_native_batch_norm_legit_functional": _batch_norm, "_native_batch_norm_legit_no_training": _batch_norm,
    "native_batch_norm_backward": _batch_norm_backward,
    "native_layer_norm": _per_input(_NORMALISE, "input"), "native_layer_norm_backward": _layer_norm_backward,
    "native_group_norm": _per_input(_NORMALISE, "input"), "native_group_norm_backward": _layer_norm_backward,
    "_fused_rms_norm": _per_input(4, "input"),  # square, add, scale, weight
    "_fused_rms_norm_backward": _rms_norm_backward,
    "_weight_norm_interface": _per_input(3, "v"),  # square, sum, scale
    # product and sum; scale, subtract, scale
    "_weight_norm_interface_backward": _per_input(5, "saved_v"),
    "mse_loss": _loss(2), "mse_loss_backward": _per_input(3), "smooth_l1_loss": _loss(4), "huber_loss": _loss(4),
    "smooth_l1_loss_backward": _per_input(4), "huber_loss_backward": _per_input(4),
    # clamp, product, difference; abs, negate, exp, log1p, sum
    "binary_cross_entropy_with_logits": _loss(8),
    "binary_cross_entropy": _loss(6), "binary_cross_entropy_backward": _per_input(5),
    "soft_margin_loss": _loss(4), "soft_margin_loss_backward": _per_input(6),
    "nll_loss_forward": lambda c: 2 * c.elements("target"), "nll_loss_backward": _per_input(1, "target"),
    "nll_loss2d_forward": lambda c: 2 * c.elements("target"), "nll_loss2d_backward": _per_input(1, "target"),
    "multi_margin_loss": _loss(3), "multilabel_margin_loss_forward": _loss(3),
    "topk": _top_k, "sort": _sort, "argsort": _sort, "msort": _sort, "_unique2": _sort, "unique_dim": _sort,
    "searchsorted": _search_sorted, "bucketize": _search_sorted,
    "isin": _is_in,
    "multinomial": _per_input(2),
    "upsample_linear1d": _interpolate(2), "upsample_bilinear2d": _interpolate(4),
    "upsample_trilinear3d": _interpolate(8), "upsample_bicubic2d": _interpolate(16),
    "_upsample_bilinear2d_aa": _interpolate(4), "_upsample_bicubic2d_aa": _interpolate(16),
    "upsample_linear1d_backward": _interpolate_backward(2),
    "upsample_bilinear2d_backward": _interpolate_backward(4),
    "upsample_trilinear3d_backward": _interpolate_backward(8),
    "upsample_bicubic2d_backward": _interpolate_backward(16),
    "upsample_nearest1d_backward": _per_input(1, "grad_output"),
    "upsample_nearest2d_backward": _per_input(1, "grad_output"),
    "upsample_nearest3d_backward": _per_input(1, "grad_output"),
    "_upsample_nearest_exact2d_backward": _per_input(1, "grad_output"),
    "grid_sampler_2d": _grid_sample(2, 2), "grid_sampler_3d": _grid_sample(3, 2),
    "grid_sampler_2d_backward": _grid_sample(2, 6), "grid_sampler_3d_backward": _grid_sample(3, 6),
    "reflection_pad1d_backward": _per_input(1, "grad_output"),
    "reflection_pad2d_backward": _per_input(1, "grad_output"),
    "replication_pad1d_backward": _per_input(1, "grad_output"),
    "replication_pad2d_backward": _per_input(1, "grad_output"),
    "embedding_dense_backward": _added("grad_output"), "_embedding_bag": _embedding_bag,
    "_embedding_bag_forward_only": _embedding_bag,
    "_embedding_bag_backward": lambda c: c.elements("indices") * c.shape("grad")[-1],
    "_embedding_bag_dense_backward": lambda c: c.elements("indices") * c.shape("grad")[-1],
    "_embedding_bag_per_sample_weights_backward": lambda c: 2 * c.elements("indices") * c.shape("grad")[-1],
    "index_add": _added("source"), "index_copy": lambda c: 0, "index_reduce": _added("source"),
    "scatter_add": _added("index"), "scatter_reduce": _added("index"),
    "index_put": _index_put, "_index_put_impl": _index_put, "_unsafe_index_put": _index_put,
    "col2im": _per_input(1), "im2col": lambda c: 0,
    "_fft_r2c": _fourier, "_fft_c2c": _fourier, "_fft_c2r": _fourier,
    "_cdist_forward": _distances,
    "linalg_cholesky_ex": _factorise, "linalg_lu_factor_ex": _factorise,
    "linalg_inv_ex": lambda c: 3 * _factorise(c),
    "segment_reduce": _per_input(1, "data"),
}  # fmt: skip
