"""Cost models: the roofline by hand, tables and what is wrong with them."""

from dataclasses import replace

import numpy as np
import pytest

from opgym.errors import InvalidCostError
from opgym.graphs import LINKS, Cluster, DeviceProfile, Graph, GraphBuilder, RooflineCost, TableCost

#: 1 flop and 2 bytes per ns in float32, 4 flops per ns in float16, 100 ns per launch.
SLOW = DeviceProfile(
    "slow", "toy", {"float32": 10**9, "float16": 4 * 10**9}, 2 * 10**9, 10**9, launch_overhead_ns=100
)
FAST = DeviceProfile("fast", "toy", {"float32": 10**12}, 10**12, 10**9, launch_overhead_ns=7)


def on(*devices: DeviceProfile) -> Cluster:
    return Cluster.uniform(devices, LINKS["pcie3"])


def one_op(flops=0, accessed=0, inputs=(), outputs=(), kind="work") -> Graph:
    b = GraphBuilder(level="test")
    reads = [b.tensor(bytes=0, dtype=dtype) for dtype in inputs]
    writes = [b.tensor(bytes=0, dtype=dtype) for dtype in outputs]
    b.op(kind, inputs=reads, outputs=writes, flops=flops, accessed_bytes=accessed, name="it")
    return b.build()


def price(graph: Graph, profile: DeviceProfile = SLOW) -> int:
    (row,) = RooflineCost().cost_ns(graph, on(profile)).tolist()
    return row[0]


# --- Roofline ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        ({"flops": 0, "accessed": 0}, 100),  # its launch alone
        ({"flops": 5000, "accessed": 10}, 5100),  # bound by compute
        ({"flops": 10, "accessed": 5000}, 2600),  # bound by memory
        ({"flops": 2500, "accessed": 5000}, 2600),  # both
        ({"flops": 0, "accessed": 3}, 102),  # 1.5 ns of work, rounded up
        ({"flops": 5000, "outputs": ["float16"]}, 1350),
        ({"flops": 5000, "outputs": ["float16", "float32"]}, 1350),  # the first output's dtype
        ({"flops": 5000, "inputs": ["float16"]}, 1350),  # the first input's, without outputs
        ({"flops": 5000, "inputs": ["float16"], "outputs": ["float32"]}, 5100),
        ({"flops": 5000, "outputs": ["int8"]}, 5100),  # no peak stated: that of float32
    ],
)
def test_an_op_takes_its_launch_and_the_longer_of_compute_and_memory(op, expected):
    assert price(one_op(**op)) == expected


def test_efficiencies_scale_the_rates():
    half = replace(SLOW, compute_efficiency=0.5, memory_efficiency=0.25)
    assert price(one_op(flops=1000), half) == 2100
    assert price(one_op(accessed=1000), half) == 2100


def test_one_column_per_class():
    table = RooflineCost().cost_ns(one_op(flops=5000), on(SLOW, FAST, SLOW))
    assert table.tolist() == [[5100, 12]]
    assert table.dtype == np.int64


def test_a_variable_costs_nothing():
    assert price(one_op(kind="variable", outputs=["float32"], accessed=1000)) == 0


def test_a_graph_without_tensors():
    assert price(one_op(flops=10)) == 110


def test_a_profile_without_rates_is_refused():
    with pytest.raises(InvalidCostError, match=r"'REGAL' states no compute rates.*cost table"):
        RooflineCost().cost_ns(one_op(flops=1), Cluster.parse("2xREGAL"))


def test_a_time_beyond_reason_is_refused():
    crawling = replace(SLOW, peak_flops_per_s={"float32": 1})
    with pytest.raises(InvalidCostError, match=r"op 0 'it' would take 9\.22e\+27 ns on slow"):
        price(one_op(flops=2**63 - 1), crawling)


def test_a_real_profile_by_hand():
    # A 1024^3 matrix product in float32 on a P100: 2^31 flops at 9.3e12 per s, and 5 us for the launch.
    graph = one_op(flops=2 * 1024**3, accessed=3 * 4 * 1024**2, outputs=["float32"])
    assert RooflineCost().cost_ns(graph, Cluster.parse("1xP100")).tolist() == [[5_000 + 230_913]]


# --- Tables -----------------------------------------------------------------------------------------------


def two_ops() -> Graph:
    b = GraphBuilder(level="test")
    w = b.tensor(bytes=4)
    b.op("variable", outputs=[w], name="home")
    b.op("work", inputs=[w], name="it")
    return b.build()


def test_a_table_gives_times_by_profile_or_kind():
    columns = {"fast": np.array([0, 3]), "toy": np.array([0, 40])}
    assert TableCost(columns).cost_ns(two_ops(), on(SLOW, FAST)).tolist() == [[0, 0], [40, 3]]


def test_a_variable_costs_nothing_whatever_the_table_says():
    given = np.array([99, 3])
    assert TableCost({"toy": given}).cost_ns(two_ops(), on(SLOW)).tolist() == [[0], [3]]
    assert given.tolist() == [99, 3]


@pytest.mark.parametrize("dtype", [np.int32, np.uint8, np.uint64, np.float32, np.float64])
def test_whole_numbers_of_any_dtype_are_times(dtype):
    table = TableCost({"toy": np.array([0, 40], dtype)}).cost_ns(two_ops(), on(SLOW))
    assert table.tolist() == [[0], [40]]
    assert table.dtype == np.int64


@pytest.mark.parametrize(
    ("column", "words"),
    [
        ([1], r"shape \(1,\); expected \(2,\)"),
        ([[1], [2]], r"shape \(2, 1\); expected \(2,\)"),
        ([0, -1], "op 1 'it' has -1 ns"),
        ([0, 1.5], "op 1 'it' has 1.5 ns"),
        ([0, np.nan], "op 1 'it' has nan ns"),
        ([0, np.inf], "op 1 'it' has inf ns"),
        (np.array([0, 2**63], np.uint64), "op 1 'it' has 9223372036854775808 ns"),
        ([0, 1e30], r"op 1 'it' has 1e\+30 ns"),
        (["0", "1"], "dtype <U1; expected numbers"),
        ([True, False], "dtype bool; expected numbers"),
    ],
)
def test_a_bad_column_is_refused(column, words):
    with pytest.raises(InvalidCostError, match=f"cost column 'toy'.*{words}"):
        TableCost({"toy": np.array(column)}).cost_ns(two_ops(), on(SLOW))


def test_a_missing_class_is_named_with_what_there_is():
    with pytest.raises(InvalidCostError, match="no column for 'slow' or 'toy'; it has fast, gpu"):
        TableCost({"gpu": np.zeros(2), "fast": np.zeros(2)}).cost_ns(two_ops(), on(FAST, SLOW))
