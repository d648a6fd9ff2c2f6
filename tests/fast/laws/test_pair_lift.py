"""The lift of a pair is P(both) / (P(one) P(other)), counted on the receipts themselves, of a store and of a chain."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from itertools import combinations

from hypothesis import given, settings
from hypothesis import strategies as st

from master_dataset.registry.stores import Store
from tests.support import World, receipt
from tests.support.examples import examples
from tests.support.world_api import Asking
from views.basket_pairs import MOST_PAIRED
from views.core.cut import floor_to

BEGIN = datetime(2026, 3, 27, 8, tzinfo=UTC)
STORES = ("1", "2")
Basket = tuple[str, int, tuple[tuple[str, int], ...]]
"""Store, minute, and SKUs with amounts."""
BASKETS = st.lists(
    st.tuples(
        st.sampled_from(STORES),
        st.integers(0, 700),
        st.lists(
            st.tuples(st.sampled_from("abcdefg"), st.sampled_from([1, 1, 2, -1])),
            max_size=7,
            unique_by=lambda line: line[0],
        ).map(tuple),
    ),
    min_size=1,
    max_size=14,
)
Lifts = dict[tuple[str, str], Fraction]


def counted(baskets: list[Basket]) -> Lifts:
    """By the definition, from probabilities."""
    sold = [sorted(sku for sku, amount in lines if amount > 0) for _, _, lines in baskets]
    n = sum(1 for skus in sold if skus)
    one = Counter(sku for skus in sold for sku in skus)
    both = Counter(pair for skus in sold if len(skus) <= MOST_PAIRED for pair in combinations(skus, 2))
    return {(a, b): Fraction(count, n) / (Fraction(one[a], n) * Fraction(one[b], n)) for (a, b), count in both.items()}


@given(baskets=BASKETS, cut=st.none() | st.integers(0, 720))
@settings(max_examples=examples(12), deadline=None)
def test_the_lift_of_every_pair_is_that_of_its_receipts(baskets: list[Basket], cut: int | None) -> None:
    world = World(*(Store(id=store, timezone="UTC") for store in STORES))
    for number, (store, minute, lines) in sorted(enumerate(baskets), key=lambda each: each[1][1]):
        at = BEGIN + timedelta(minutes=minute)
        said: list[dict[str, object]] = [
            {"title": "t", "price": 1, "amount": amount, "sku": sku} for sku, amount in lines
        ]
        world.receive(receipt(at.isoformat(), said, number=number, store=store), at + timedelta(seconds=1))
    if cut is not None:
        world.rebuild(floor_to(BEGIN + timedelta(minutes=cut), world.epoch))
    asking, day = Asking(world), {"from_": "2026-03-27", "to": "2026-03-28"}

    for grain in ("day", "total"):
        found = asking.body("/v1/metrics/pair_lift", **day, grain=grain, by="total,sku,with_sku")["series"]
        assert lifts(found) == rounded(counted(baskets))
    for store in STORES:
        own = asking.body("/v1/metrics/pair_lift", **day, grain="total", by="with_sku,sku", store=store)["series"]
        assert lifts(own) == rounded(counted([each for each in baskets if each[0] == store]))
    only = asking.body("/v1/metrics/pair_lift", **day, grain="total", by="total,sku,with_sku", sku="b")["series"]
    assert lifts(only) == rounded({pair: lift for pair, lift in counted(baskets).items() if pair[0] == "b"})


def lifts(series: list[dict[str, object]]) -> dict[tuple[str, str], float]:
    return {
        (each["dimensions"]["sku"], each["dimensions"]["with_sku"]): each["points"][0]["value"]  # type: ignore[index]
        for each in series
    }


def rounded(exact: Lifts) -> dict[tuple[str, str], float]:
    return {pair: float(lift) for pair, lift in exact.items()}
