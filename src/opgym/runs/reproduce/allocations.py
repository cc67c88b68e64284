"""Bytes that torch's CPU allocator really hands out while something runs, by torch's own profiler.

Nothing here knows the graph: the allocator reports every block it gives and takes back, inside kernels as well, and
the peak is the largest sum of what is out. Not seen: what libraries take past the allocator (packed matrices of a
BLAS, scratch of oneDNN), rounding and fragmentation of the heap, and torch itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch._C._profiler import _EventType
from torch.autograd.profiler import profile, record_function

from ...graphs.readers.torch import Program

_BEGIN, _CALL, _RETURN = "opgym.begin", "opgym.call", "opgym.return"
_MARKS = (_BEGIN, _CALL, _RETURN)


@dataclass(frozen=True)
class Event:
    """What the allocator did, or a mark.

    Attributes:
        mark: Name of a mark; empty for a block.
        address: Of the block.
        bytes: Size of a new block; negative for one that is given back.
    """

    mark: str = ""
    address: int = 0
    bytes: int = 0


@dataclass(frozen=True)
class Peak:
    """The most memory that was out at a time.

    Attributes:
        resident_bytes: Out when the step began.
        bytes: Most that was out from then on, what was resident included.
        lasting_bytes: The same without workspaces: blocks that one call of an operator takes and gives back.
        call: During or after which call the most was out; -1: before the first one.
    """

    resident_bytes: int
    bytes: int
    lasting_bytes: int
    call: int


def peak_of(events: Sequence[Event]) -> Peak:
    """Adds up what the allocator reported.

    Blocks that are given back without having been taken here do not count.
    """
    workspaces = _workspaces(events)
    out: dict[int, int] = {}
    total = lasting = resident = peak = lasting_peak = 0
    call = at = -1
    begun = False
    sizes: dict[int, int] = {}
    for index, event in enumerate(events):
        if event.mark == _BEGIN:
            begun, resident, peak, lasting_peak = True, total, total, lasting
        elif event.mark:
            call += event.mark == _CALL
        elif event.bytes > 0:
            out[event.address], sizes[event.address] = index, event.bytes
            total += event.bytes
            lasting += 0 if index in workspaces else event.bytes
        elif event.address in out:
            size, taken = sizes.pop(event.address), out.pop(event.address)
            total -= size
            lasting -= 0 if taken in workspaces else size
        if begun and total > peak:
            peak, at = total, call
        lasting_peak = max(lasting_peak, lasting) if begun else lasting_peak
    return Peak(resident, peak, lasting_peak, at)


def _workspaces(events: Sequence[Event]) -> set[int]:
    """Positions of blocks that were taken and given back within one call."""
    found: set[int] = set()
    taken: dict[int, int] = {}
    inside = False
    for index, event in enumerate(events):
        if event.mark:
            inside = event.mark == _CALL
            taken.clear()
        elif event.bytes > 0:
            if inside:
                taken[event.address] = index
        elif event.address in taken:
            found.add(taken.pop(event.address))
    return found


@dataclass
class Recording:
    """What happens within :func:`recorded`; the events are there when it is over."""

    events: list[Event] = field(default_factory=list)

    def mark(self, name: str) -> None:
        """Leaves a mark between the events of the allocator."""
        with record_function(name):
            pass


@contextmanager
def recorded() -> Iterator[Recording]:
    """Records the allocator, with one thread, so that workspaces do not depend on the machine's cores."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    recording = Recording()
    try:
        with profile(use_kineto=False, profile_memory=True) as profiler:
            yield recording
    finally:
        torch.set_num_threads(threads)
    found: list[tuple[int, Event]] = []
    waiting: list[Any] = list(profiler.kineto_results.experimental_event_tree())
    while waiting:
        event = waiting.pop()
        waiting += event.children
        if event.tag == _EventType.Allocation:
            block = event.extra_fields
            found.append((event.start_time_ns, Event("", block.ptr, block.alloc_size)))
        elif event.name in _MARKS:
            found.append((event.start_time_ns, Event(event.name)))
    found.sort(key=lambda item: item[0])
    recording.events += (event for _, event in found)


def peak_of_program(program: Program, module: nn.Module, order: Sequence[int]) -> Peak:
    """Runs the ops of a recorded step one by one on real tensors.

    Args:
        program: The step.
        module: Where parameters and buffers get their values from; it is left as it is. Inputs, moments and
            constants are zeros.
        order: The ops, in an order that the graph allows.
    """
    with recorded() as recording:

        def marked(function: Callable[..., Any]) -> Callable[..., Any]:
            def run(*args: Any, **kwargs: Any) -> Any:
                recording.mark(_CALL)
                result = function(*args, **kwargs)
                recording.mark(_RETURN)
                return result

            return run

        calls = tuple(
            None if call is None else replace(call, function=marked(call.function)) for call in program.calls
        )
        given = _given(program, module)
        recording.mark(_BEGIN)
        outputs = replace(program, calls=calls).run(order, given)
        del given, outputs
    return peak_of(recording.events)


def _given(program: Program, module: nn.Module) -> dict[int, Tensor]:
    state: Mapping[str, Tensor] = {**dict(module.named_parameters()), **dict(module.named_buffers())}
    given = {}
    for tensor in program.given:
        layout = program.views[tensor].layout
        given[tensor] = torch.empty_strided(layout.size, layout.stride, dtype=layout.dtype).zero_()
        if (value := state.get(program.graph.tensor_names[tensor])) is not None:
            given[tensor].copy_(value.detach())
    return given


def peak_of_training(network: Callable[[], nn.Module], arguments: Sequence[Tensor], optimizer: str) -> Peak:
    """A step as torch's users run it: forward, backward and update by torch's own autograd and optimizer.

    One step runs before it, so that moments are there.

    Args:
        network: Makes the module; called with the arguments it returns a loss.
        arguments: Of the module.
        optimizer: ``"sgd"`` or ``"adam"``.
    """
    with recorded() as recording:
        inputs = [argument.clone() for argument in arguments]
        module = network().train()
        kinds = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam}
        updates = kinds[optimizer](module.parameters(), lr=1e-3, foreach=False)
        for begins in (False, True):
            if begins:
                recording.mark(_BEGIN)
            module(*inputs).backward()
            updates.step()
            updates.zero_grad(set_to_none=True)
        del inputs, module, updates
    return peak_of(recording.events)
