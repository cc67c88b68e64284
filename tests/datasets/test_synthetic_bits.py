"""The random numbers under the synthetic graphs: known outputs, plain-Python equals, distributions."""

import hashlib

import numpy as np
import pytest

from opgym.datasets.synthetic.random_bits import NORMAL_BITS, Stream, split_mix

# Published test vectors of SplitMix64 (seed 0: the reference C code; seed 1234567: Rosetta Code).
KNOWN = {
    0: [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F, 0xF88BB8A8724C81EC, 0x1B39896A51A8749B],
    1234567: [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ],
}


@pytest.mark.parametrize("state", KNOWN)
def test_words_are_those_of_the_published_generator(state: int) -> None:
    assert split_mix(state, 5).tolist() == KNOWN[state]


def test_a_word_can_be_had_without_those_before() -> None:
    assert split_mix(99, 1000)[700:].tolist() == split_mix(99, 300, 700).tolist()


def test_state_wraps_around_without_a_warning() -> None:
    with np.errstate(all="raise"):
        assert split_mix(2**64 - 1, 3).dtype == np.uint64


def test_a_stream_is_named_by_the_hash_of_its_text() -> None:
    state = int.from_bytes(hashlib.sha256(b"some/name").digest()[:8], "little")
    assert Stream("some/name").words(9).tolist() == split_mix(state, 9).tolist()


def test_numbers_one_at_a_time_are_those_of_the_stream() -> None:
    stream = Stream("a")
    draws = stream.halves()
    bounds = [1 + i % 37 for i in range(600)]
    assert [draws.below(bound) for bound in bounds] == stream.below(bounds, 600).tolist()
    sure = Stream("b").halves()
    assert all(sure.happens(1.0) for _ in range(300))
    assert not any(sure.happens(0.0) for _ in range(300))


def test_below_is_uniform_and_within_its_bound() -> None:
    numbers = Stream("dice").below(6, 60_000)
    counts = np.bincount(numbers, minlength=6)
    assert len(counts) == 6
    assert ((counts - 10_000) ** 2 / 10_000).sum() < 20.5  # chi-square, 5 degrees: 1 in 1,000
    assert Stream("one").below(1, 100).tolist() == [0] * 100


def test_events_happen_as_often_as_they_should() -> None:
    for probability in (0.001, 0.05, 0.3, 0.999):
        count = int(Stream("events").happens(probability, 100_000).sum())
        assert abs(count - 100_000 * probability) < 5 * (100_000 * probability * (1 - probability)) ** 0.5
    assert Stream("events").happens(1.0, 1000).all()
    assert not Stream("events").happens(0.0, 1000).any()


def test_a_more_probable_event_happens_whenever_a_less_probable_one_does() -> None:
    rare, common = Stream("x").happens(0.1, 5000), Stream("x").happens(0.4, 5000)
    assert (common | ~rare).all()


def test_permutation_orders_the_words() -> None:
    words = Stream("order").words(50).tolist()
    assert Stream("order").permutation(50).tolist() == sorted(range(50), key=words.__getitem__)


def test_normal_is_the_sum_of_twelve_uniforms() -> None:
    words = Stream("n").words(30).tolist()
    expected = [
        sum((word >> shift) & 0xFFFF for word in words[3 * i : 3 * i + 3] for shift in (0, 16, 32, 48))
        - 6 * 65_535
        for i in range(10)
    ]
    assert Stream("n").normal(10).tolist() == expected


def test_normal_has_the_moments_it_should() -> None:
    z = Stream("moments").normal(200_000) / 2**NORMAL_BITS
    assert abs(z.mean()) < 5 / 200_000**0.5
    assert abs(z.std() - 1) < 0.01
    assert abs((z**4).mean() - 2.9) < 0.05
    for limit, share in ((1, 0.6827), (2, 0.9545), (3, 0.9973)):  # of the normal distribution
        assert abs((np.abs(z) < limit).mean() - share) < 0.005
