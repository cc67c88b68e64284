"""What torch's allocator reports, added up: against blocks whose sizes are known, and against hand-made events."""

import pytest
import torch
from torch import nn

from opgym.graphs.readers.torch import executable
from opgym.runs.reproduce.allocations import Event, Peak, peak_of, peak_of_program, peak_of_training, recorded

BEGIN, CALL, RETURN = Event("opgym.begin"), Event("opgym.call"), Event("opgym.return")


def test_blocks_are_added_up_and_given_back():
    with recorded() as recording:
        kept = torch.empty(100)
        recording.mark("opgym.begin")
        first = torch.empty(1000)
        second = torch.empty(500, dtype=torch.float64)
        del first
        third = torch.empty(10)
        del kept, second, third
    found = peak_of(recording.events)
    assert (found.resident_bytes, found.bytes) == (400, 400 + 4000 + 4000)
    assert [event.bytes for event in recording.events if not event.mark] == [
        400, 4000, 4000, -4000, 40, -400, -4000, -40,
    ]  # fmt: skip


def test_workspaces_are_what_one_call_takes_and_gives_back():
    events = [
        Event(address=1, bytes=10),
        BEGIN,
        CALL, Event(address=2, bytes=5), Event(address=3, bytes=50), Event(address=3, bytes=-50), RETURN,
        CALL, Event(address=3, bytes=7), Event(address=2, bytes=-5), RETURN,
        Event(address=3, bytes=-7),
    ]  # fmt: skip
    assert peak_of(events) == Peak(resident_bytes=10, bytes=65, lasting_bytes=22, call=0)


def test_what_was_taken_before_does_not_count_when_it_is_given_back():
    events = [Event(address=1, bytes=8), Event(address=9, bytes=-1000), BEGIN, Event(address=2, bytes=3)]
    assert peak_of(events) == Peak(8, 11, 11, -1)


def test_a_workspace_inside_a_kernel_is_seen():
    """The logarithm of a sum of exponentials has the exponentials in memory, though it gives four numbers."""

    class LogSumExp(nn.Module):
        def forward(self, x):
            return torch.logsumexp(x, 0)

    x = torch.randn(1000, 4)
    program = executable(LogSumExp(), x, train=False)
    found = peak_of_program(program, LogSumExp(), range(program.graph.num_ops))
    assert found.resident_bytes == 16_000
    assert found.lasting_bytes == 16_000 + 16  # one number for each of four columns
    assert found.bytes >= found.lasting_bytes + 16_000  # exp(x - max) is as large as x


@pytest.mark.parametrize(("optimizer", "moments"), [("sgd", 0), ("adam", 2)])
def test_a_step_by_torch_of_one_product(optimizer, moments):
    class Product(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(1000))

        def forward(self, x):
            return (self.weight * x).sum()

    found = peak_of_training(Product, [torch.ones(1000)], optimizer)
    counters = 4 if optimizer == "adam" else 0  # the optimizer's count of steps
    assert found.resident_bytes == (2 + moments) * 4000 + counters
    # At the least: the product or the gradient beside what is resident.
    assert 4000 <= found.bytes - found.resident_bytes <= 16_100


def test_threads_are_as_before():
    before = torch.get_num_threads()
    with recorded():
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == before
