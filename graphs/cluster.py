"""A cluster: devices, and the channels between them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidClusterError, unknown_id
from .profiles import LINKS, PROFILES, DeviceProfile, Link

#: How transfers share channels; see docs/simulator.md.
CHANNELS = ("port", "send", "link", "free")

_SPEC = re.compile(r"(?P<devices>[^@:]+)(@(?P<link>[^@:]+))?(:(?P<channel>[^@:]+))?")
_PART = re.compile(r"(?:(?P<count>[0-9]{1,6})x)?(?P<profile>[A-Za-z][\w.-]*)")
MAX_DEVICES = 64


@dataclass(frozen=True, eq=False)
class Cluster:
    """Devices and links.

    Attributes:
        devices: One profile per device.
        latency_ns: ``[devices, devices] int64``, row = source; the diagonal is ignored.
        bytes_per_second: ``[devices, devices] int64``, row = source; the diagonal is ignored.
        channel: One of ``CHANNELS``.
        name: What :meth:`parse` read, or a description.
    """

    devices: tuple[DeviceProfile, ...]
    latency_ns: NDArray[np.int64]
    bytes_per_second: NDArray[np.int64]
    channel: str = "port"
    name: str = ""
    _classes: tuple[DeviceProfile, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        count = len(self.devices)
        if not 1 <= count <= MAX_DEVICES:
            raise InvalidClusterError(f"a cluster has {count} devices; expected 1 to {MAX_DEVICES}")
        if self.channel not in CHANNELS:
            raise InvalidClusterError(
                f"channel model {self.channel!r}; expected one of {', '.join(CHANNELS)}"
            )
        for name in ("latency_ns", "bytes_per_second"):
            given = np.asarray(getattr(self, name))
            if given.dtype.kind not in "iu":
                raise InvalidClusterError(f"{name} has dtype {given.dtype}; expected whole numbers (int64)")
            matrix = np.array(given, dtype=np.int64)
            if matrix.shape != (count, count):
                raise InvalidClusterError(f"{name} has shape {matrix.shape}; expected ({count}, {count})")
            matrix.setflags(write=False)
            object.__setattr__(self, name, matrix)
        apart = ~np.eye(count, dtype=bool)
        if self.channel != "free":
            for what, bad in (
                ("bandwidth of 0 or less", self.bytes_per_second <= 0),
                ("negative latency", self.latency_ns < 0),
            ):
                if (bad & apart).any():
                    source, target = np.argwhere(bad & apart)[0]
                    raise InvalidClusterError(
                        f"{what} from device {source} to {target}; give a positive one, or channel 'free'"
                    )
        for i, device in enumerate(self.devices):
            if not 0 < device.capacity_bytes < 2**63:
                raise InvalidClusterError(
                    f"device {i} ({device.name}) has capacity {device.capacity_bytes} bytes; expected 1 .. 2**63 - 1"
                )
        object.__setattr__(self, "_classes", tuple(dict.fromkeys(self.devices)))

    def __len__(self) -> int:
        return len(self.devices)

    def __repr__(self) -> str:
        return f"Cluster({self.name!r}, channel={self.channel!r})"

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Cluster)
            and self.devices == other.devices
            and self.channel == other.channel
            and np.array_equal(self.latency_ns, other.latency_ns)
            and np.array_equal(self.bytes_per_second, other.bytes_per_second)
        )

    def __hash__(self) -> int:
        return hash((self.devices, self.channel, self.latency_ns.tobytes(), self.bytes_per_second.tobytes()))

    @property
    def classes(self) -> tuple[DeviceProfile, ...]:
        """The distinct profiles, in order of first device."""
        return self._classes

    @cached_property
    def device_class(self) -> NDArray[np.int32]:
        """Position in :attr:`classes` of each device, ``[devices] int32``."""
        return np.array([self._classes.index(d) for d in self.devices], np.int32)

    @cached_property
    def capacity_bytes(self) -> NDArray[np.int64]:
        """Memory of each device, ``[devices] int64``."""
        return np.array([d.capacity_bytes for d in self.devices], np.int64)

    @property
    def device_names(self) -> tuple[str, ...]:
        """A name for each device, e.g. ``("P100:0", "P100:1")``."""
        seen: dict[str, int] = {}
        names = []
        for device in self.devices:
            names.append(f"{device.name}:{seen.setdefault(device.name, 0)}")
            seen[device.name] += 1
        return tuple(names)

    def with_capacity(self, capacity_bytes: int) -> Cluster:
        """The same cluster with every device limited to ``capacity_bytes``."""
        devices = tuple(replace(d, capacity_bytes=int(capacity_bytes)) for d in self.devices)
        return replace(self, devices=devices, name=f"{self.name} capped at {capacity_bytes} bytes")

    @staticmethod
    def uniform(
        devices: Sequence[DeviceProfile], link: Link, channel: str = "port", name: str = ""
    ) -> Cluster:
        """A cluster with the same link between any two devices."""
        shape = (len(devices), len(devices))
        return Cluster(
            tuple(devices),
            np.full(shape, link.latency_ns),
            np.full(shape, link.bytes_per_second),
            channel,
            name,
        )

    @staticmethod
    def parse(spec: str) -> Cluster:
        """Reads ``DEVICES[@LINK][:CHANNEL]``.

        Examples are ``"4xP100"`` (pcie3, port), ``"4xP100@nvlink"``, ``"4xP100@pcie3:send"``, ``"2xREGAL"``
        (free) and ``"1xCPU+4xV100@nvlink"`` (the named link among equals, pcie3 between profiles).

        Raises:
            InvalidClusterError: The text is none of these.
            UnknownIdError: An unknown profile, link or channel; the nearest ones are suggested.
        """
        match = _SPEC.fullmatch(spec.strip())
        if match is None:
            raise InvalidClusterError(
                f"cluster {spec!r}; expected DEVICES[@LINK][:CHANNEL], e.g. 4xP100@nvlink:send"
            )
        devices: list[DeviceProfile] = []
        for part in match["devices"].split("+"):
            item = _PART.fullmatch(part.strip())
            if item is None:
                raise InvalidClusterError(
                    f"devices {part!r} in cluster {spec!r}; expected COUNTxPROFILE, e.g. 4xP100"
                )
            count = int(item["count"] or 1)
            if not 1 <= count <= MAX_DEVICES:
                raise InvalidClusterError(f"{count} devices in cluster {spec!r}; expected 1 to {MAX_DEVICES}")
            if item["profile"] not in PROFILES:
                raise unknown_id("device profile", item["profile"], list(PROFILES))
            devices += [PROFILES[item["profile"]]] * count
        free = all(d.name == "REGAL" for d in devices)
        link_name = match["link"] or ("free" if free else "pcie3")
        if link_name not in LINKS:
            raise unknown_id("link", link_name, list(LINKS))
        channel = match["channel"] or ("free" if link_name == "free" else "port")
        if channel not in CHANNELS:
            raise unknown_id("channel model", channel, list(CHANNELS))
        if link_name == "free" and channel != "free":
            raise InvalidClusterError(
                f"cluster {spec!r}: link 'free' has no duration, so it goes with channel 'free'"
            )
        cluster = Cluster.uniform(devices, LINKS[link_name], channel, spec.strip())
        kinds = np.array([d.name for d in devices])
        apart = kinds[:, None] != kinds[None, :]
        if link_name == "free" or not apart.any():
            return cluster
        between = LINKS["pcie3"]
        return replace(
            cluster,
            latency_ns=np.where(apart, between.latency_ns, cluster.latency_ns),
            bytes_per_second=np.where(apart, between.bytes_per_second, cluster.bytes_per_second),
        )
