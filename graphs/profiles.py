"""Named devices and links, each figure with where it came from.

Peaks are dense (no sparsity). A figure marked *third-party* was read on a page that is not the vendor's;
results that hinge on it should say so. Efficiency is the share of the peak that is reached; 1.0 unless
measured.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

GB = 10**9
GIB = 2**30
TERA = 10**12


@dataclass(frozen=True)
class DeviceProfile:
    """What a cost model needs to know about a kind of device.

    Attributes:
        name: E.g. ``"P100"``; ops and cost tables may refer to it as a device class.
        kind: ``"gpu"``, ``"cpu"``, ``"tpu"`` or ``"accelerator"``; also a device class.
        peak_flops_per_s: Peak rate by dtype; must have ``"float32"`` unless times come with the graph (empty
            then).
        memory_bytes_per_s: Memory bandwidth; 0 where times come with the graph.
        capacity_bytes: Memory of the device.
        launch_overhead_ns: Fixed cost of starting an op.
        compute_efficiency: Share of the peak rate that is reached.
        memory_efficiency: Share of the memory bandwidth that is reached.
        sources: Where each figure came from, by field.
    """

    name: str
    kind: str
    peak_flops_per_s: Mapping[str, int]
    memory_bytes_per_s: int
    capacity_bytes: int
    launch_overhead_ns: int = 5_000
    compute_efficiency: float = 1.0
    memory_efficiency: float = 1.0
    sources: Mapping[str, str] = field(default_factory=dict, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "peak_flops_per_s", MappingProxyType(dict(self.peak_flops_per_s)))
        object.__setattr__(self, "sources", MappingProxyType(dict(self.sources)))

    def __reduce__(self) -> tuple[object, ...]:  # a mappingproxy does not pickle
        return (
            DeviceProfile,
            (self.name, self.kind, dict(self.peak_flops_per_s), self.memory_bytes_per_s, self.capacity_bytes,
             self.launch_overhead_ns, self.compute_efficiency, self.memory_efficiency, dict(self.sources)),
        )  # fmt: skip

    def __hash__(self) -> int:
        return hash((self.name, self.kind, self.capacity_bytes))


@dataclass(frozen=True)
class Link:
    """A connection between two devices, per direction.

    Attributes:
        name: E.g. ``"pcie3"``.
        bytes_per_second: Bandwidth.
        latency_ns: Paid once per transfer.
        source: Where the figures came from.
    """

    name: str
    bytes_per_second: int
    latency_ns: int
    source: str = ""


_LAUNCH = "assumption: launch-bound cost of a small op, 5 us"


def _gpu(
    name: str, float32: float, tensor: Mapping[str, float], gb: int, gb_per_s: int, source: str
) -> DeviceProfile:
    peaks = {"float32": round(float32 * TERA)} | {dtype: round(rate * TERA) for dtype, rate in tensor.items()}
    what = ("peak_flops_per_s", "memory_bytes_per_s", "capacity_bytes")
    return DeviceProfile(name, "gpu", peaks, gb_per_s * GB, gb * GB,
                         sources=dict.fromkeys(what, source) | {"launch_overhead_ns": _LAUNCH})  # fmt: skip


def _tpu(name: str, bfloat16: int, gb: int, gb_per_s: int) -> DeviceProfile:
    source = "Google Cloud TPU documentation, system architecture pages"
    what = ("peak_flops_per_s", "memory_bytes_per_s", "capacity_bytes")
    # A TPU's matrix unit multiplies in bfloat16; float32 inputs are rounded to it by default, at that rate.
    peaks = {"float32": bfloat16 * TERA, "bfloat16": bfloat16 * TERA}
    return DeviceProfile(name, "tpu", peaks, gb_per_s * GB, gb * GB,
                         sources=dict.fromkeys(what, source) | {"launch_overhead_ns": _LAUNCH})  # fmt: skip


PROFILES: Mapping[str, DeviceProfile] = MappingProxyType({
    p.name: p
    for p in (
        _gpu("P100", 9.3, {"float16": 18.7}, 16, 732, "third-party (tomshardware, techwormam): P100 PCIe"),
        _gpu("P100-SXM2", 10.6, {"float16": 21.2}, 16, 732, "third-party (microway): P100 SXM2"),
        _gpu("V100", 15.7, {"float16": 125}, 16, 900,
             "NVIDIA developer blog, 'Inside Volta': V100 SXM2, 16 GB"),
        _gpu("V100-32GB", 15.7, {"float16": 125}, 32, 900,
             "NVIDIA developer blog, 'Inside Volta': V100 SXM2, 32 GB"),
        _gpu("A100", 19.5, {"tf32": 156, "float16": 312, "bfloat16": 312}, 40, 1555,
             "third-party: A100 40 GB"),
        _gpu("H100", 66.9, {"tf32": 494.7, "float16": 989.4, "bfloat16": 989.4}, 80, 3350,
             "third-party (glennklockwood.com): H100 SXM5"),
        _tpu("TPUv3", 123, 32, 900),
        _tpu("TPUv4", 275, 32, 1200),
        _tpu("TPUv5p", 459, 95, 2765),
        DeviceProfile("CPU", "cpu", {"float32": 35 * GB}, 5_400_000_000, 24 * GB,
                      sources={"peak_flops_per_s": "own measurement: GEMM on one core of a shared server",
                               "memory_bytes_per_s": "own measurement: one core of a shared server",
                               "capacity_bytes": "the same server", "launch_overhead_ns": _LAUNCH}),
        DeviceProfile("REGAL", "accelerator", {}, 0, 16 * GIB, launch_overhead_ns=0,
                      sources={"capacity_bytes": "recalled from Paliwal et al. 2020, unverified; "
                               "times come with the graph"}),
    )
})  # fmt: skip

LINKS: Mapping[str, Link] = MappingProxyType({
    link.name: link
    for link in (
        Link("pcie3", 12 * GB, 10_000, "assumption: PCIe 3.0 x16 as reached in practice, per direction"),
        Link("nvlink", 40 * GB, 10_000, "assumption: two NVLink 1.0/2.0 lanes, per direction"),
        Link("nvlink3", 200 * GB, 5_000, "assumption: NVLink 3.0 as reached in practice, per direction"),
        Link("free", 0, 0, "transfers cost nothing (modelled on Paliwal et al. 2020)"),
    )
})  # fmt: skip
