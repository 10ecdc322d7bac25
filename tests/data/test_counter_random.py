from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st

from liere.data.counter_random import combine, combine_numbers, random_below, random_bits

WORD = 2**64
words = st.integers(-(2**63), 2**63 - 1)


def mixed(x: int) -> int:
    """SplitMix64's finalizer with unbounded integers, as printed in its paper."""
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) % WORD
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) % WORD
    return x ^ (x >> 31)


def split_mix(state: int, count: int) -> list[int]:
    found = []
    for _ in range(count):
        state = (state + 0x9E3779B97F4A7C15) % WORD
        found.append(mixed(state))
    return found


def combined(start: int, *counters: int) -> int:
    for counter in counters:
        start = mixed((start + 0x9E3779B97F4A7C15 + mixed((counter + 0x9E3779B97F4A7C15) % WORD)) % WORD)
    return start % WORD


@given(starts=st.lists(words, max_size=3), count=st.integers(0, 9))
def test_words_are_those_of_splitmix64(starts, count):
    found = random_bits(torch.tensor(starts, dtype=torch.long), count)
    assert found.shape == (len(starts), count)
    assert [[word % WORD for word in row] for row in found.tolist()] == [split_mix(start, count) for start in starts]


def test_words_are_those_that_others_print():
    # For state 1234567, as listed by Rosetta Code ("Pseudo-random numbers/Splitmix64").
    expected = [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431]
    assert [word % WORD for word in random_bits(torch.tensor([1234567]), 4)[0].tolist()] == expected


@given(start=words, counters=st.lists(words, max_size=3))
def test_combine_is_the_mixing_of_each_counter_in_turn(start, counters):
    found = int(combine(torch.tensor(start), *(torch.tensor(counter) for counter in counters)))
    assert found % WORD == combined(start % WORD, *(counter % WORD for counter in counters))


@given(first=words, second=words)
def test_combine_tells_the_order_of_counters(first, second):
    one, other = (combine(torch.tensor(0), *map(torch.tensor, pair)) for pair in ((first, second), (second, first)))
    assert (int(one) == int(other)) == (first == second)


@given(word=words, bound=st.integers(1, 2**20))
def test_numbers_below_a_bound_are_the_upper_48_bits_modulo_the_bound(word, bound):
    expected = ((word % WORD) >> 16) % bound
    assert int(random_below(torch.tensor(word), bound)) == expected
    assert int(random_below(torch.tensor(word), torch.tensor(bound))) == expected


@given(numbers=st.lists(words, min_size=1, max_size=4))
def test_single_numbers_are_combined_like_tensors(numbers):
    start, *rest = map(torch.tensor, numbers)
    assert combine_numbers(*numbers) == int(combine(start, *rest)) % WORD == combined(*numbers)
