"""Identity 7 of the metrics catalogue: how far a sketch may be from the truth, and that no order of merges shows."""

from fractions import Fraction
from functools import reduce
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from views.core.sketch import estimate, sketch_of, united
from views.metrics import registered_metrics

EXACT = 384
HASHES = st.lists(st.integers(-(2**63), 2**63 - 1), max_size=60)
UNIQUE = registered_metrics()["unique_devices"]


def test_7_of_100_seeds_at_most_one_is_wrong_by_5_percent_for_20_000_devices() -> None:
    wrong = 0
    for seed in range(100):
        chance = Random(seed)
        sketch = sketch_of(chance.getrandbits(64) - 2**63 for _ in range(20_000))
        assert sketch is not None
        wrong += abs(estimate(sketch) - 20_000) >= 1_000

    assert wrong <= 1


@given(number=st.integers(1, EXACT), seed=st.integers(0, 2**32))
def test_7_up_to_384_devices_are_counted_exactly(number: int, seed: int) -> None:
    chance = Random(seed)
    sketch = sketch_of([chance.getrandbits(64) - 2**63 for _ in range(number)])
    assert sketch is not None

    assert number - 1 <= round(estimate(sketch)) <= number  # one in a thousand such sketches has two alike


@given(parts=st.lists(HASHES, min_size=1, max_size=6), shuffled=st.randoms(use_true_random=False))
def test_7_no_split_no_order_and_no_repeat_of_merges_shows(parts: list[list[int]], shuffled: Random) -> None:
    sketches = [sketch for part in parts if (sketch := sketch_of(part))]
    again = [*sketches, *sketches]
    shuffled.shuffle(again)
    whole = sketch_of([each for part in parts for each in part])

    assert (reduce(united, again) if again else None) == whole


@given(devices=st.integers(0, 10**6), in_store=st.integers(0, 10**6))
def test_7_there_are_never_more_devices_than_visits(devices: int, in_store: int) -> None:
    value, _ = UNIQUE.value({"distinct(device)": devices, "in_store": in_store})

    assert value == Fraction(min(devices, in_store))
