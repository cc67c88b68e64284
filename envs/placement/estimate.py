"""The earliest-finish estimate: groups appended, in decision order, to the devices they were put on.

It is what the observation shows and what the dense reward is a difference of; the episode itself is judged
by the event simulator. The rules:

- A device runs its blocks in the order in which they were decided. A block starts as soon as its device is
  free and every tensor it reads from a group decided before arrives in time for the first op that reads it;
  a parent not yet decided is ignored. A block without scheduled ops (a variable alone) starts at 0 and
  takes no time.
- A tensor is sent to a device once. It leaves when it is written and the channel of the cluster's model is
  free; transfers take their channels in the order in which blocks ask for them.
- Memory is that of the decided prefix run in decision order: resident tensors and outputs stay, a tensor
  and its copies are held until all groups that read it are decided.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...graphs import Cluster
from .blocks import Blocks

Read = tuple[int, tuple[int, ...], int, int]
Transfer = tuple[int, int, int, int]


@dataclass(frozen=True)
class Channels:
    """How long a transfer takes, and what it occupies.

    Attributes:
        duration_ns: For each slot, its duration over each kind of link, ``[slots][link kinds]``.
        link: Kind of link from a device to another, ``[devices][devices]``; diagonal unused.
        send: First resource that a transfer occupies, ``[devices][devices]``; row = source.
        receive: Second resource (the same one where the model has only one), ``[devices][devices]``.
        num_resources: Number of resources; 0 where transfers are free.
    """

    duration_ns: list[tuple[int, ...]]
    link: list[list[int]]
    send: list[list[int]]
    receive: list[list[int]]
    num_resources: int


def build_channels(cluster: Cluster, slot_bytes: list[int]) -> Channels:
    """Prices the transfer of every slot over every kind of link of a cluster."""
    devices = range(len(cluster))
    if cluster.channel == "free":
        zero = [[0] * len(cluster) for _ in devices]
        return Channels([(0,)] * len(slot_bytes), zero, zero, zero, 0)
    kinds: dict[tuple[int, int], int] = {}
    latency, rate = cluster.latency_ns.tolist(), cluster.bytes_per_second.tolist()
    link = [
        [0 if a == b else kinds.setdefault((latency[a][b], rate[a][b]), len(kinds)) for b in devices]
        for a in devices
    ]
    priced: dict[int, tuple[int, ...]] = {}  # most tensors share a handful of sizes
    for size in slot_bytes:
        if size not in priced:
            priced[size] = tuple(wait + -(-size * 10**9 // per_second) for wait, per_second in kinds)
    n = len(cluster)
    match cluster.channel:
        case "port":
            send, receive, resources = [[a] * n for a in devices], [[n + b for b in devices]] * n, 2 * n
        case "send":
            send = receive = [[a] * n for a in devices]
            resources = n
        case _:
            send = receive = [[a * n + b for b in devices] for a in devices]
            resources = n * n
    return Channels([priced[size] for size in slot_bytes], link, send, receive, resources)


class Estimate:
    """The state of the estimate: cheap to extend by one group, cheap to copy.

    Attributes:
        device: Device of each group appended so far, ``[groups]``; -1: not appended.
        start_ns: Start of each appended block, ``[groups]``; -1: not appended.
        free_ns: Time from which each device is free, ``[devices]``.
        busy_ns: Time that each device works, ``[devices]``.
        live_bytes: Memory held on each device after the decided prefix, ``[devices]``.
        peak_bytes: Largest memory held so far, ``[devices]``.
    """

    __slots__ = (
        "_arrival_ns",
        "_blocks",
        "_channels",
        "_copies",
        "_ready_ns",
        "_remaining",
        "_resource_ns",
        "_source_devices",
        "busy_ns",
        "device",
        "free_ns",
        "live_bytes",
        "peak_bytes",
        "start_ns",
    )

    def __init__(self, blocks: Blocks, channels: Channels) -> None:
        devices, groups, slots = blocks.num_devices, blocks.num_groups, len(blocks.slot_bytes)
        self._blocks, self._channels = blocks, channels
        self.device = [-1] * groups
        self.start_ns = [-1] * groups
        self.free_ns = [0] * devices
        self.busy_ns = [0] * devices
        self.live_bytes = [0] * devices
        self.peak_bytes = [0] * devices
        self._resource_ns = [0] * channels.num_resources
        self._ready_ns = [0] * slots  # when a slot is written, valid once its source is appended
        self._remaining = list(blocks.slot_readers)  # groups that have yet to read it
        self._arrival_ns: dict[int, int] = {}  # of the copy with key slot * devices + device
        self._copies = [0] * slots  # bit d: a copy lies on device d
        self._source_devices = [0] * blocks.num_shared_sources  # bit d: resident on device d

    def copy(self) -> Estimate:
        """An independent copy; the immutable tables are shared."""
        twin = Estimate.__new__(Estimate)
        twin._blocks, twin._channels = self._blocks, self._channels
        twin.device, twin.start_ns = self.device[:], self.start_ns[:]
        twin.free_ns, twin.busy_ns = self.free_ns[:], self.busy_ns[:]
        twin.live_bytes, twin.peak_bytes = self.live_bytes[:], self.peak_bytes[:]
        twin._resource_ns, twin._ready_ns = self._resource_ns[:], self._ready_ns[:]
        twin._remaining, twin._arrival_ns = self._remaining[:], self._arrival_ns.copy()
        twin._copies, twin._source_devices = self._copies[:], self._source_devices[:]
        return twin

    @property
    def finish_ns(self) -> int:
        """End of the last block."""
        return max(self.free_ns)

    def reads(self, group: int) -> list[Read]:
        """What a group reads from groups appended before: ``(slot, lead, home, written at, in ns)``."""
        blocks, device, ready = self._blocks, self.device, self._ready_ns
        source = blocks.slot_source
        return [
            (slot, lead, home, ready[slot])
            for slot, lead in blocks.inputs[group]
            if (home := device[source[slot]]) >= 0
        ]

    def start_on(self, group: int, device: int, reads: list[Read]) -> tuple[int, int, int, list[Transfer]]:
        """What would happen if a group were appended to a device.

        Args:
            group: The group.
            device: The device.
            reads: ``self.reads(group)``, the same for every device.

        Returns:
            Its start in ns; the bytes of ``reads`` that are not on the device; the summed durations of the
            transfers that brings, in ns; the transfers, ``(slot, send resource, receive resource, arrival
            in ns)``.
        """
        channels = self._channels
        start = self.free_ns[device] if self._blocks.scheduled[group] else 0
        moved_bytes = moved_ns = 0
        transfers: list[Transfer] = []
        resource = self._resource_ns
        for slot, lead, home, time in reads:
            if home != device:
                arrival = self._arrival_ns.get(slot * len(self.free_ns) + device)
                if arrival is None:
                    duration = channels.duration_ns[slot][channels.link[home][device]]
                    send, receive = channels.send[home][device], channels.receive[home][device]
                    if resource:
                        time = max(time, resource[send], resource[receive]) + duration
                        if not transfers:
                            resource = resource[:]  # what-if: the real ones stay as they are
                        resource[send] = resource[receive] = time
                    transfers.append((slot, send, receive, time))
                    moved_ns += duration
                    moved_bytes += self._blocks.slot_bytes[slot]
                else:
                    time = arrival
            time -= lead[device]
            if time > start:
                start = time
        return start, moved_bytes, moved_ns, transfers

    def need_bytes(self, group: int, device: int, moved_bytes: int) -> int:
        """Memory that a group would bring to a device and hold for some time, its inner peak apart."""
        blocks, bit = self._blocks, 1 << device
        need = blocks.private_bytes[group] + moved_bytes
        for source, size in blocks.shared_sources[group]:
            if not self._source_devices[source] & bit:
                need += size
        remaining, held = self._remaining, blocks.slot_held_bytes
        for slot in blocks.outputs[group]:
            if remaining[slot]:
                need += held[slot]
        return need

    def append(self, group: int, device: int) -> None:
        """Puts a group on a device, after everything that is there already."""
        blocks, devices, bit = self._blocks, len(self.free_ns), 1 << device
        start, moved_bytes, _, transfers = self.start_on(group, device, self.reads(group))
        need = self.need_bytes(group, device, moved_bytes)
        for slot, send, receive, arrival in transfers:
            if self._resource_ns:
                self._resource_ns[send] = self._resource_ns[receive] = arrival
            self._arrival_ns[slot * devices + device] = arrival
            self._copies[slot] |= bit
        for source, _ in blocks.shared_sources[group]:
            self._source_devices[source] |= bit

        cost = blocks.cost_ns[group][device]
        self.device[group], self.start_ns[group] = device, start
        if blocks.scheduled[group]:
            self.free_ns[device] = start + cost
            self.busy_ns[device] += cost
        for slot in blocks.outputs[group]:
            offset = blocks.slot_offset_ns[slot]
            self._ready_ns[slot] = 0 if offset is None else start + offset[device]

        live = self.live_bytes[device] + need
        self.live_bytes[device] = live
        self.peak_bytes[device] = max(self.peak_bytes[device], live + blocks.inner_peak_bytes[group])
        self._free_inputs(group)

    def _free_inputs(self, group: int) -> None:
        """Frees what the group was the last to read, at home and wherever a copy lies."""
        blocks, live = self._blocks, self.live_bytes
        for slot, _ in blocks.inputs[group]:
            self._remaining[slot] -= 1
            if self._remaining[slot] == 0:
                home = self.device[blocks.slot_source[slot]]
                if home < 0:
                    continue
                live[home] -= blocks.slot_held_bytes[slot]
                copies, size = self._copies[slot], blocks.slot_bytes[slot]
                while copies:
                    low = copies & -copies
                    live[low.bit_length() - 1] -= size
                    copies ^= low
