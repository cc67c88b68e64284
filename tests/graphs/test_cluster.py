"""Clusters: every form of the text, what is refused, equality."""

import pickle

import numpy as np
import pytest

from opgym.errors import InvalidClusterError, UnknownIdError
from opgym.graphs import LINKS, PROFILES, Cluster, DeviceProfile
from opgym.graphs.cluster import CHANNELS, MAX_DEVICES


def off_diagonal(matrix: np.ndarray) -> set[int]:
    return set(matrix[~np.eye(len(matrix), dtype=bool)].tolist())


# --- parse ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "devices", "link", "channel"),
    [
        ("4xP100", ["P100"] * 4, "pcie3", "port"),
        ("P100", ["P100"], "pcie3", "port"),
        ("  2xP100\n", ["P100"] * 2, "pcie3", "port"),
        ("3xV100-32GB@nvlink", ["V100-32GB"] * 3, "nvlink", "port"),
        ("2xA100@nvlink3:link", ["A100"] * 2, "nvlink3", "link"),
        ("2xH100:send", ["H100"] * 2, "pcie3", "send"),
        ("2xP100@pcie3:free", ["P100"] * 2, "pcie3", "free"),
        ("2xP100@free", ["P100"] * 2, "free", "free"),
        ("2xREGAL", ["REGAL"] * 2, "free", "free"),
        ("2xREGAL@pcie3", ["REGAL"] * 2, "pcie3", "port"),
        ("64xTPUv3", ["TPUv3"] * 64, "pcie3", "port"),
    ],
)
def test_parse(spec, devices, link, channel):
    cluster = Cluster.parse(spec)
    assert [d.name for d in cluster.devices] == devices
    assert cluster.channel == channel
    assert cluster.name == spec.strip()
    if len(cluster) > 1:
        assert off_diagonal(cluster.latency_ns) == {LINKS[link].latency_ns}
        assert off_diagonal(cluster.bytes_per_second) == {LINKS[link].bytes_per_second}


def test_the_named_link_joins_equals_and_pcie3_the_rest():
    cluster = Cluster.parse("1xCPU+2xV100@nvlink")
    assert [d.name for d in cluster.devices] == ["CPU", "V100", "V100"]
    nvlink, pcie3 = LINKS["nvlink"].bytes_per_second, LINKS["pcie3"].bytes_per_second
    assert cluster.bytes_per_second[1, 2] == cluster.bytes_per_second[2, 1] == nvlink
    assert {cluster.bytes_per_second[0, i] for i in (1, 2)} == {pcie3}
    assert {cluster.bytes_per_second[i, 0] for i in (1, 2)} == {pcie3}
    assert [c.name for c in cluster.classes] == ["CPU", "V100"]
    assert cluster.device_class.tolist() == [0, 1, 1]
    assert cluster.device_names == ("CPU:0", "V100:0", "V100:1")


def test_devices_of_one_profile_in_two_parts_are_one_class():
    cluster = Cluster.parse("1xV100+1xCPU+1xV100")
    assert cluster.device_class.tolist() == [0, 1, 0]
    assert cluster.capacity_bytes.tolist() == [16 * 10**9, 24 * 10**9, 16 * 10**9]


def test_free_joins_everything_for_nothing():
    cluster = Cluster.parse("1xCPU+2xV100@free")
    assert cluster.channel == "free"
    assert off_diagonal(cluster.latency_ns) == {0}


NO_CLUSTERS = [
    *("", "   ", "4x", "4 P100", "4xP100@", "4xP100:", "4xP100@pcie3:", "@nvlink", "4xP100+", "+4xP100"),
    *("4xP100@pcie3@nvlink", "-4xP100", "4.5xP100", "4xP100;rm", "9999999999xP100", "٤xP100"),
    f"{'9' * 5000}xP100",
]


@pytest.mark.parametrize("spec", NO_CLUSTERS, ids=range(len(NO_CLUSTERS)))
def test_text_of_another_form_is_refused_with_an_example(spec):
    with pytest.raises(InvalidClusterError, match=r"expected .*4xP100"):
        Cluster.parse(spec)


@pytest.mark.parametrize("spec", ["0xP100", "65xP100"])
def test_counts_out_of_range(spec):
    with pytest.raises(
        InvalidClusterError, match=f"{spec[:-5]} devices in cluster '{spec}'; expected 1 to 64"
    ):
        Cluster.parse(spec)


def test_too_many_devices_in_all():
    with pytest.raises(InvalidClusterError, match=f"80 devices; expected 1 to {MAX_DEVICES}"):
        Cluster.parse("40xP100+40xV100")


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("4xp100", "unknown device profile 'p100'; did you mean P100"),
        ("2xV10O", "unknown device profile 'V10O'; did you mean V100"),
        ("2xTPUv5", "did you mean TPUv5p"),
        ("2xP100@nvlnk", "unknown link 'nvlnk'; did you mean nvlink"),
        ("2xP100:prt", "unknown channel model 'prt'; did you mean port"),
        ("xP100", "unknown device profile 'xP100'; did you mean P100"),
        ("2xBanana", "unknown device profile 'Banana'; known: A100, CPU"),
    ],
)
def test_unknown_names_suggest_the_nearest(spec, words):
    with pytest.raises(UnknownIdError, match=words):
        Cluster.parse(spec)


def test_the_free_link_goes_with_the_free_channel_only():
    with pytest.raises(InvalidClusterError, match="link 'free' has no duration"):
        Cluster.parse("2xP100@free:port")


# --- The class --------------------------------------------------------------------------------------------


def two(**changes) -> Cluster:
    figures = {"latency_ns": np.zeros((2, 2), np.int64), "bytes_per_second": np.full((2, 2), 10**9)}
    return Cluster((PROFILES["P100"],) * 2, **(figures | changes))


@pytest.mark.parametrize("channel", ["port", "send", "link"])
@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"bytes_per_second": np.array([[1, 0], [1, 1]])}, "bandwidth of 0 or less from device 0 to 1"),
        ({"bytes_per_second": np.array([[1, 1], [-5, 1]])}, "bandwidth of 0 or less from device 1 to 0"),
        ({"latency_ns": np.array([[0, 0], [-1, 0]])}, "negative latency from device 1 to 0"),
    ],
)
def test_zero_bandwidth_and_negative_latency_are_refused_unless_free(channel, change, words):
    with pytest.raises(InvalidClusterError, match=words):
        two(channel=channel, **change)
    assert two(channel="free", **change).channel == "free"


def test_the_diagonal_is_ignored():
    assert (
        len(two(bytes_per_second=np.array([[0, 1], [1, -7]]), latency_ns=np.array([[-1, 0], [0, -1]]))) == 2
    )


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"latency_ns": np.zeros((2, 3), np.int64)}, r"latency_ns has shape \(2, 3\); expected \(2, 2\)"),
        ({"latency_ns": np.zeros((2, 2))}, "latency_ns has dtype float64; expected whole numbers"),
        ({"bytes_per_second": np.full((2, 2), 0.5)}, "bytes_per_second has dtype float64"),
        ({"channel": "bus"}, "channel model 'bus'; expected one of port, send, link, free"),
    ],
)
def test_bad_figures_are_refused(change, words):
    with pytest.raises(InvalidClusterError, match=words):
        two(**change)


def test_no_devices_and_no_memory_are_refused():
    with pytest.raises(InvalidClusterError, match="0 devices"):
        Cluster((), np.zeros((0, 0), np.int64), np.zeros((0, 0), np.int64))
    with pytest.raises(InvalidClusterError, match=r"device 0 \(P100\) has capacity 0 bytes"):
        two().with_capacity(0)


def test_equality_is_by_value_and_names_do_not_count():
    a, b = Cluster.parse("2xP100"), Cluster.parse("2xP100@pcie3:port")
    assert a == b == pickle.loads(pickle.dumps(a))
    assert hash(a) == hash(b)
    different = [Cluster.parse(s) for s in ("3xP100", "2xV100", "2xP100@nvlink", "2xP100:send")]
    assert all(a != other for other in (*different, a.with_capacity(1), "2xP100"))


def test_matrices_are_copied_and_read_only():
    latency = np.zeros((2, 2), np.int64)
    cluster = two(latency_ns=latency)
    latency[0, 1] = 5
    assert cluster.latency_ns[0, 1] == 0
    with pytest.raises(ValueError, match="read-only"):
        cluster.latency_ns[0, 1] = 1


def test_with_capacity_limits_every_device():
    cluster = Cluster.parse("1xCPU+1xP100").with_capacity(12345)
    assert cluster.capacity_bytes.tolist() == [12345, 12345]
    assert "12345" in cluster.name
    assert [d.name for d in cluster.devices] == ["CPU", "P100"]


# --- Profiles and links -----------------------------------------------------------------------------------


@pytest.mark.parametrize("profile", PROFILES.values(), ids=lambda p: p.name)
def test_every_figure_of_a_profile_says_where_it_came_from(profile):
    assert PROFILES[profile.name] is profile
    assert profile.kind in ("gpu", "cpu", "tpu", "accelerator")
    assert "capacity_bytes" in profile.sources
    if profile.peak_flops_per_s:
        assert profile.peak_flops_per_s["float32"] > 0
        assert {"peak_flops_per_s", "memory_bytes_per_s", "launch_overhead_ns"} <= profile.sources.keys()
    assert pickle.loads(pickle.dumps(profile)) == profile


@pytest.mark.parametrize("link", LINKS.values(), ids=lambda link: link.name)
def test_every_link_says_where_it_came_from(link):
    assert LINKS[link.name] is link
    assert link.source
    assert link.bytes_per_second > 0 or link.name == "free"


def test_a_profile_of_ones_own_works():
    mine = DeviceProfile("mine", "npu", {"float32": 10**12}, 10**11, 10**9)
    cluster = Cluster.uniform([mine, mine, PROFILES["CPU"]], LINKS["pcie3"], "link", "my board")
    assert cluster.classes == (mine, PROFILES["CPU"])
    assert repr(cluster) == "Cluster('my board', channel='link')"
    assert mine != DeviceProfile("mine", "npu", {"float32": 10**12 + 1}, 10**11, 10**9)
    with pytest.raises(TypeError):
        mine.peak_flops_per_s["float32"] = 1


def test_channels_are_numbered_as_the_core_expects():
    assert CHANNELS == ("port", "send", "link", "free")
