"""Transfers and channels: each rule worked by hand, on both implementations."""

import numpy as np
import pytest

from .case import Case, cluster

ALL_BUT_FREE = ["port", "send", "link"]


# --- What is sent, and for how long -----------------------------------------------------------------


@pytest.mark.parametrize("channel", ["port", "send", "link", "free"])
def test_a_tensor_is_sent_once_per_destination(play, channel):
    case = Case()
    case.op("a", "", {"x": 5}, cost=2, on=0)
    for i, d in enumerate([1, 1, 2, 0]):
        case.op(f"c{i}", "x", on=d)
    played = case.play(play, cluster(4, channel))
    assert set(played.sent) == {("x", 1), ("x", 2)}


def test_nothing_is_sent_without_a_consumer_elsewhere(play):
    case = Case()
    case.op("a", "", {"x": 5, "unread": 7}, on=0)
    case.op("b", "x", on=0)
    assert case.play(play, cluster(2)).sent == {}


@pytest.mark.parametrize("channel", ALL_BUT_FREE)
def test_duration_is_latency_plus_bytes_over_bandwidth_rounded_up(play, channel):
    case = Case()
    case.op("a", "", {"x": 10}, cost=2, on=0)
    case.op("b", "x", on=1)
    on = cluster(2, channel, latency=[[99, 7], [50, 99]], bandwidth=[[1, 3 * 10**9], [1, 1]])
    assert case.play(play, on).sent == {("x", 1): (2, 2 + 7 + 4)}


def test_duration_is_that_of_the_ordered_pair(play):
    case = Case()
    case.op("a", "", {"x": 10}, on=1)
    case.op("b", "x", on=0)
    on = cluster(2, latency=[[0, 7], [50, 0]], bandwidth=[[0, 3 * 10**9], [10**9, 0]])
    assert case.play(play, on).sent == {("x", 0): (1, 1 + 50 + 10)}


def test_an_exact_quotient_is_not_rounded(play):
    case = Case()
    case.op("a", "", {"x": 9}, cost=0, on=0)
    case.op("b", "x", on=1)
    assert case.play(play, cluster(2, bandwidth=3 * 10**9)).sent == {("x", 1): (0, 3)}


def test_duration_is_exact_where_the_product_passes_64_bits(play):
    case = Case()
    size, bandwidth = 2**50 + 1, 10**12 + 3
    case.op("a", "", {"x": size}, cost=0, on=0)
    case.op("b", "x", cost=0, on=1)
    expected = -(-size * 10**9 // bandwidth)
    assert size * 10**9 > 2**63
    assert case.play(play, cluster(2, bandwidth=bandwidth)).sent == {("x", 1): (0, expected)}


@pytest.mark.parametrize("channel", ALL_BUT_FREE)
def test_a_tensor_of_no_bytes_pays_the_latency(play, channel):
    case = Case()
    case.op("a", "", {"x": 0}, cost=2, on=0)
    case.op("b", "x", on=1)
    assert case.play(play, cluster(2, channel, latency=11)).sent == {("x", 1): (2, 13)}


def test_a_transfer_waits_from_the_instant_its_producer_ends(play):
    case = Case()
    case.op("a", "", {"x": 3, "y": 4}, cost=5, on=0)
    case.op("b", "x", on=1)
    case.op("c", "y", on=2)
    assert case.play(play, cluster(3, "link")).sent == {("x", 1): (5, 8), ("y", 2): (5, 9)}


def test_transfer_time_is_counted_for_the_sender(play):
    case = Case()
    case.op("a", "", {"x": 3}, on=0)
    case.op("b", "x", {"y": 4}, on=1)
    case.op("c", "x y", on=2)
    assert case.play(play, cluster(3, latency=100)).run.transfer_ns == [103 + 103, 104, 0]


# --- Order of waiting transfers ---------------------------------------------------------------------


def test_waiting_transfers_go_by_their_best_ranked_consumer(play):
    case = Case()
    case.op("a", "", {"x": 10, "y": 10, "z": 10}, cost=1, on=0)
    case.op("middling", "x", on=1, priority=2)
    case.op("worst", "y", on=1, priority=1)
    case.op("best", "z", on=1, priority=3)
    played = case.play(play, cluster(2))
    assert played.sent == {("z", 1): (1, 11), ("x", 1): (11, 21), ("y", 1): (21, 31)}


def test_only_consumers_on_the_destination_count(play):
    case = Case()
    case.op("a", "", {"x": 10, "y": 10}, cost=1, on=0)
    case.op("low", "x", on=1, priority=1)
    case.op("high", "y", on=1, priority=2)
    case.op("highest, at home", "x", on=0, priority=9)
    assert case.play(play, cluster(2)).sent == {("y", 1): (1, 11), ("x", 1): (11, 21)}


def test_all_consumers_on_the_destination_count_even_those_that_wait_for_something_else(play):
    case = Case()
    case.op("a", "", {"x": 10, "y": 10}, cost=1, on=0)
    case.op("late", "", {"l": 0}, cost=500, on=1)
    case.op("low", "x", on=1, priority=1)
    case.op("high", "y", on=1, priority=2)
    case.op("highest", "x l", on=1, priority=9)
    assert case.play(play, cluster(2)).sent == {("x", 1): (1, 11), ("y", 1): (11, 21)}


def test_two_tensors_for_the_same_best_consumer_go_by_lower_tensor_index(play):
    case = Case()
    case.op("a", "", {"x": 10, "y": 20}, cost=1, on=0)
    case.op("b", "y x", on=1)
    assert case.play(play, cluster(2)).sent == {("x", 1): (1, 11), ("y", 1): (11, 31)}


def test_with_the_default_priority_the_rank_of_consumers_orders_transfers(play):
    case = Case()
    case.op("a", "", {"x": 10, "y": 10}, cost=1, on=0)
    case.op("b", "x", cost=1, on=1)
    case.op("c", "y", cost=5, on=1)
    assert case.play(play, cluster(2), priority=None).sent == {("y", 1): (1, 11), ("x", 1): (11, 21)}


def test_an_explicit_transfer_priority_replaces_the_rank_of_the_consumer(play):
    case = Case()
    case.op("a", "", {"x": 10, "y": 10}, cost=1, on=0)
    case.op("b", "x", on=1, priority=9)
    case.op("c", "y", on=1, priority=1)
    explicit = {("x", 1): 0.25, ("y", 1): 0.5}
    assert case.play(play, cluster(2), transfers=explicit).sent == {("y", 1): (1, 11), ("x", 1): (11, 21)}
    assert case.play(play, cluster(2)).sent == {("x", 1): (1, 11), ("y", 1): (11, 21)}


def test_equal_transfer_priorities_go_by_lower_tensor_index(play):
    case = Case()
    case.op("a", "", {"x": 10, "y": 10}, cost=1, on=0)
    case.op("b", "x", on=1, priority=1)
    case.op("c", "y", on=1, priority=9)
    for tie in ({}, {("x", 1): -0.0, ("y", 1): 0.0}, {("x", 1): np.inf, ("y", 1): np.inf}):
        assert case.play(play, cluster(2), transfers=tie).sent == {("x", 1): (1, 11), ("y", 1): (11, 21)}


def test_a_tie_of_one_tensor_to_two_destinations_goes_to_the_lower_destination(play):
    case = Case()
    case.op("a", "", {"x": 10}, cost=1, on=1)
    case.op("b", "x", on=2, priority=9)
    case.op("c", "x", on=0, priority=1)
    assert case.play(play, cluster(3), transfers={}).sent == {("x", 0): (1, 11), ("x", 2): (11, 21)}
    assert case.play(play, cluster(3)).sent == {("x", 2): (1, 11), ("x", 0): (11, 21)}


def test_infinite_transfer_priorities_are_allowed(play):
    case = Case()
    case.op("a", "", {"x": 10, "y": 10, "z": 10}, cost=0, on=0)
    case.op("b", "x y z", on=1)
    explicit = {("x", 1): -np.inf, ("y", 1): 1e300, ("z", 1): np.inf}
    assert case.play(play, cluster(2), transfers=explicit).sent == {
        ("z", 1): (0, 10), ("y", 1): (10, 20), ("x", 1): (20, 30),
    }  # fmt: skip


# --- Channel models ---------------------------------------------------------------------------------


def fan_out(size_x=10, size_y=10):
    """One device sends to two."""
    case = Case()
    case.op("a", "", {"x": size_x, "y": size_y}, cost=0, on=0)
    case.op("b", "x", cost=0, on=1, priority=2)
    case.op("c", "y", cost=0, on=2, priority=1)
    return case


def fan_in():
    """Two devices send to one."""
    case = Case()
    case.op("a", "", {"x": 10}, cost=0, on=0)
    case.op("b", "", {"y": 10}, cost=0, on=1)
    case.op("c", "x y", cost=0, on=2)
    return case


@pytest.mark.parametrize(("channel", "second"), [("port", (10, 20)), ("send", (10, 20)), ("link", (0, 10))])
def test_a_send_port_sends_one_at_a_time_and_links_are_apart(play, channel, second):
    assert fan_out().play(play, cluster(3, channel)).sent == {("x", 1): (0, 10), ("y", 2): second}


@pytest.mark.parametrize(("channel", "second"), [("port", (10, 20)), ("send", (0, 10)), ("link", (0, 10))])
def test_only_port_receives_one_at_a_time(play, channel, second):
    assert fan_in().play(play, cluster(3, channel)).sent == {("x", 2): (0, 10), ("y", 2): second}


@pytest.mark.parametrize("channel", ALL_BUT_FREE)
def test_one_pair_sends_one_at_a_time(play, channel):
    case = Case()
    case.op("a", "", {"x": 10, "y": 10}, cost=0, on=0)
    case.op("b", "x y", on=1)
    assert case.play(play, cluster(2, channel)).sent == {("x", 1): (0, 10), ("y", 1): (10, 20)}


@pytest.mark.parametrize("channel", ALL_BUT_FREE)
def test_the_two_directions_of_a_pair_do_not_share(play, channel):
    case = Case()
    case.op("a", "", {"x": 10}, cost=0, on=0)
    case.op("b", "", {"y": 10}, cost=0, on=1)
    case.op("c", "x", on=1)
    case.op("d", "y", on=0)
    assert case.play(play, cluster(2, channel)).sent == {("x", 1): (0, 10), ("y", 0): (0, 10)}


def test_a_blocked_transfer_is_skipped_and_a_later_one_may_start(play):
    case = Case()
    case.op("a", "", {"big": 100}, cost=0, on=0)
    case.op("b", "", {"x": 10, "y": 10}, cost=5, on=1)
    case.op("reads big", "big", on=2, priority=0)
    case.op("reads x", "x", on=2, priority=9)  # its receive port is held until 100
    case.op("reads y", "y", on=3, priority=1)  # worse, but free to go
    assert case.play(play, cluster(4)).sent == {("big", 2): (0, 100), ("y", 3): (5, 15), ("x", 2): (100, 110)}


def test_a_skipped_transfer_reserves_no_port(play):
    # At 5, x cannot go (device 2 receives until 20), and y takes the send port beyond 20: x waits for it.
    case = Case()
    case.op("a", "", {"big": 20}, cost=0, on=0)
    case.op("b", "", {"x": 10, "y": 50}, cost=5, on=1)
    case.op("reads big", "big", on=2, priority=0)
    case.op("reads x", "x", on=2, priority=9)
    case.op("reads y", "y", on=3, priority=1)
    assert case.play(play, cluster(4)).sent == {("big", 2): (0, 20), ("y", 3): (5, 55), ("x", 2): (55, 65)}


def test_ports_are_given_in_the_order_of_transfers_over_all_devices(play):
    # Device 0 could send to 2 or 3; device 1 to 2 only. The best goes first, whatever its device.
    case = Case()
    case.op("a", "", {"x": 10, "y": 10}, cost=0, on=0)
    case.op("b", "", {"z": 10}, cost=0, on=1)
    case.op("reads x", "x", on=2, priority=1)
    case.op("reads y", "y", on=3, priority=0)
    case.op("reads z", "z", on=2, priority=2)
    assert case.play(play, cluster(4)).sent == {("z", 2): (0, 10), ("y", 3): (0, 10), ("x", 2): (10, 20)}


def test_a_port_freed_at_an_instant_is_used_at_that_instant(play):
    case = Case()
    case.op("a", "", {"x": 7, "y": 7}, cost=3, on=0)
    case.op("b", "x", {"back": 5}, cost=0, on=1)
    case.op("c", "y back", on=1)
    assert case.play(play, cluster(2)).sent == {("x", 1): (3, 10), ("y", 1): (10, 17)}


def test_a_transfer_without_duration_holds_its_ports_until_the_next_round(play):
    # y's copy arrives one round after x's, so the worse-ranked reader of x is all that device 1 can start.
    case = Case()
    case.op("a", "", {"x": 0, "y": 0}, cost=4, on=0)
    case.op("reads x", "x", cost=1, on=1, priority=1)
    case.op("reads y", "y", cost=1, on=1, priority=2)
    first_x = {("x", 1): 1.0, ("y", 1): 0.0}
    played = case.play(play, cluster(2), transfers=first_x)
    assert played.sent == {("x", 1): (4, 4), ("y", 1): (4, 4)}
    assert (played.start("reads x"), played.start("reads y")) == (4, 5)


def test_transfers_without_duration_on_separate_links_arrive_in_one_round(play):
    case = Case()
    case.op("a", "", {"x": 0}, cost=4, on=0)
    case.op("b", "", {"y": 0}, cost=4, on=2)
    case.op("reads x", "x", cost=1, on=1, priority=1)
    case.op("reads y", "y", cost=1, on=1, priority=2)
    for channel, starts in (("link", (5, 4)), ("send", (5, 4)), ("port", (5, 4))):
        played = case.play(play, cluster(3, channel))
        assert (played.start("reads x"), played.start("reads y")) == starts


# --- Free -------------------------------------------------------------------------------------------


def test_free_has_no_latency_no_duration_and_no_channel(play):
    case = Case()
    case.op("a", "", {"x": 10**9, "y": 10**9}, cost=4, on=0)
    case.op("b", "x", on=1)
    case.op("c", "x y", on=2)
    on = cluster(3, "free", latency=-5, bandwidth=0)  # neither is looked at
    played = case.play(play, on)
    assert played.sent == {("x", 1): (4, 4), ("x", 2): (4, 4), ("y", 2): (4, 4)}
    assert (played.start("b"), played.start("c")) == (4, 4)
    assert played.run.transfer_ns == [0, 0, 0]


def test_under_free_a_copy_is_present_in_the_round_in_which_its_producer_ends(play):
    case = Case()
    case.op("a", "", {"x": 0}, cost=4, on=0)
    case.op("first", cost=4, on=1, priority=9)
    case.op("plain", cost=3, on=1, priority=1)
    case.op("urgent", "x", cost=1, on=1, priority=2)
    # Unlike a transfer without duration (which would come one round after "plain" has started).
    played = case.play(play, cluster(2, "free"))
    assert [played.start(op) for op in ("urgent", "plain")] == [4, 5]


def test_under_free_copies_of_variables_arrive_in_the_first_round_of_time_0(play):
    case = Case()
    case.variable("w", 8, on=0)
    case.op("reads w", "w", cost=5, on=1, priority=1)
    case.op("plain", cost=1, on=1, priority=0)
    played = case.play(play, cluster(2, "free"))
    assert played.sent == {("w", 1): (0, 0)}
    assert [played.start(op) for op in ("reads w", "plain")] == [0, 5]
    assert played.run.dynamic_peak_bytes == [0, 8]


def test_without_free_copies_of_variables_cost_a_round_at_least(play):
    case = Case()
    case.variable("w", 0, on=0)
    case.op("reads w", "w", cost=5, on=1, priority=1)
    case.op("plain", cost=1, on=1, priority=0)
    played = case.play(play, cluster(2))
    assert [played.start(op) for op in ("plain", "reads w")] == [0, 1]
