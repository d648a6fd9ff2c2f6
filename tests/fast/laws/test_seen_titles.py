"""The title of a SKU is that of its latest window, whatever the order, repeats and micro-batches of deliveries."""

from itertools import pairwise

import pyarrow as pa
from cachetools import LRUCache
from hypothesis import given, settings
from hypothesis import strategies as st

from master_dataset.parsing.rows import rows
from master_dataset.sources.pos_transactions import POS_TRANSACTIONS
from speed_layer.titles import SeenTitle, seen_titles, unwritten
from tests.support.examples import examples
from tests.support.receipts import receipt
from tests.support.terms import default_terms

TENANTS = {"1": "acme", "2": "acme", "3": "other"}
TITLES = ["", "Milk", "milk", "Milch \u00fc", "\U0001f95b", "x" * 300]
LINES = st.lists(
    st.builds(
        lambda title, sku, amount: {"title": title, "price": 1, "amount": amount} | ({"sku": sku} if sku else {}),
        st.sampled_from(TITLES),
        st.sampled_from(["a", "b", ""]),
        st.sampled_from([1, -1, 0]),
    ),
    max_size=3,
)
SENT = st.lists(st.tuples(st.sampled_from("1234"), st.integers(0, 60), LINES), min_size=1, max_size=12)


def parsed(sent: list[tuple[str, int, list[dict[str, object]]]]) -> pa.RecordBatch:
    values = [receipt(f"2026-03-07T10:{minute:02}:00Z", lines, store=store) for store, minute, lines in sent]
    values.append(b"no receipt")
    batch = pa.RecordBatch.from_pydict(
        {
            "key": pa.array([b"k"] * len(values), pa.binary()),
            "value": pa.array(values, pa.binary()),
            "topic": [POS_TRANSACTIONS.topic] * len(values),
            "partition": pa.array([0] * len(values), pa.int32()),
            "offset": pa.array(range(len(values)), pa.int64()),
            "timestamp": pa.array([1_900_000_000_000_000] * len(values), pa.timestamp("us", tz="UTC")),
        }
    )
    [found] = rows(POS_TRANSACTIONS, iter([batch]), default_terms)
    return found


@given(sent=SENT, again=st.lists(st.integers(0, 11), max_size=6), order=st.randoms(), data=st.data())
@settings(max_examples=examples(150), deadline=None)
def test_the_register_holds_the_greatest_title_of_the_latest_window(
    sent: list[tuple[str, int, list[dict[str, object]]]], again: list[int], order: object, data: st.DataObject
) -> None:
    sent = [(store, min(minute, 59), lines) for store, minute, lines in sent]
    expected: dict[tuple[str, str], tuple[int, str]] = {}
    for store, minute, lines in sent:
        for line in lines:
            title, sku = str(line["title"])[:200], line.get("sku")
            if store in TENANTS and sku and title:
                key = (TENANTS[store], str(sku))
                expected[key] = max(expected.get(key, (-1, "")), (minute // 15, title))

    deliveries = [*sent, *(sent[number % len(sent)] for number in again)]
    order.shuffle(deliveries)  # type: ignore[attr-defined]
    cuts = sorted({0, len(deliveries), *data.draw(st.lists(st.integers(0, len(deliveries)), max_size=3))})
    register: dict[tuple[str, str], SeenTitle] = {}
    workers = [LRUCache[tuple[str, str], SeenTitle](1) for _ in range(2)]  # each forgets almost everything
    for number, (start, end) in enumerate(pairwise(cuts)):
        known = workers[number % 2]
        new = unwritten(seen_titles(parsed(deliveries[start:end]), TENANTS.get), known)
        for key, seen in new.items():
            register[key] = max(register.get(key, seen), seen)  # as Cassandra does by write timestamp, then by value
        known.update(new)

    assert {key: (seen.window_us // 900_000_000 % 4, seen.title) for key, seen in register.items()} == expected


def test_what_a_worker_has_written_is_not_written_again_in_the_same_window() -> None:
    sent = [("1", 0, [{"title": "Milk", "price": 1, "amount": 1, "sku": "a"}])]
    first = unwritten(seen_titles(parsed(sent), TENANTS.get), {})

    assert not unwritten(seen_titles(parsed(sent), TENANTS.get), first)
    assert unwritten(seen_titles(parsed([("2", 15, sent[0][2])]), TENANTS.get), first).keys() == first.keys()
