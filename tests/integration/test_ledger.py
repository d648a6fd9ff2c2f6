"""Each cause on purpose, on the real stack: what a preview predicts, what the ledger says, and the way back."""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from operator import attrgetter
from typing import Any, NamedTuple

import orjson
import pytest
from cassandra.cluster import Session
from confluent_kafka import Producer

from master_dataset.delta.tables import CONFLICTS
from master_dataset.sources.pos_transactions import POS_TRANSACTIONS
from master_dataset.storage import open_table
from tests.integration.conftest import PATIENCE_SECONDS, Stack, around_now
from views.control.publication import PointerRow
from views.control.speed_layout import layout_of

LATE, PLANTED, LOST, MISKEYED, CONFLICT = STORES = (
    "ledger-late",
    "ledger-planted",
    "ledger-lost",
    "ledger-miskeyed",
    "ledger-conflict",
)
NOW = datetime.now(UTC).replace(microsecond=0)
AGES_AGO = NOW - timedelta(days=3)
Line = dict[str, Any]


class Sent(NamedTuple):
    """A receipt of one line. `total` in major units."""

    store: str
    number: int
    happened_at: datetime
    total: float = 1.0

    def value(self) -> bytes:
        line = {"title": "Milk 1 l", "price": self.total, "amount": 1, "total": self.total, "sku": "8580001"}
        return json.dumps(
            {
                "happened_at": self.happened_at.isoformat(),
                "operation_id": self.store,
                "transaction_id": self.number,
                "vendor_fiscal_module": 1,
                "transactions": [line],
            }
        ).encode()


class Published(NamedTuple):
    """What the ledger of the publication says, and what readers saw before and after."""

    first: int
    number: int
    ledger: list[Line]
    totals: dict[str, Any]
    before: Any
    after: Any

    def of(self, store: str) -> list[Line]:
        return [line for line in self.ledger if line["store"] == store]


@pytest.fixture(scope="module")
def session(stack: Stack) -> Iterator[Session]:
    found = stack.cassandra()
    yield found
    found.cluster.shutdown()


def send(stack: Stack, receipts: Sequence[Sent], partition: int = 0, **transaction: str) -> Callable[[], None]:
    """Into one partition; with a `transactional.id` they are seen when what is given back is called."""
    producer = Producer({**stack.settings.kafka.connection.client(), "enable.idempotence": True, **transaction})
    if transaction:
        producer.init_transactions(30)
        producer.begin_transaction()
    for each in receipts:
        producer.produce(POS_TRANSACTIONS.topic, each.value(), each.store, partition=partition)
    assert producer.flush(60) == 0
    return lambda: producer.commit_transaction(60) if transaction else None


def sales(stack: Stack, store: str) -> dict[str, Any]:
    """Of a store the states of all its cells, added up; and what the answer rests on."""
    body = stack.get("/v1/views/sales/cells", store=store, **around_now())
    names = ("receipts", "gross_sales")
    return {name: sum(cell["merged"][name] for cell in body["cells"]) for name in names}


def wait_for(stack: Stack, store: str, receipts: int) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while sales(stack, store)["receipts"] != receipts:
        assert time.monotonic() < deadline, sales(stack, store)
        time.sleep(0.2)


def answers(stack: Stack) -> list[Any]:
    """Everything that readers see of these stores, except the provenance."""
    question = {"store": list(STORES), **around_now()}
    bodies = [
        stack.get("/v1/metrics/net_sales", grain="15m", **question),
        stack.get("/v1/metrics/total_transactions_count", grain="day", **question),
        *(stack.get(f"/v1/views/{view}/cells", **question) for view in ("sales", "sales_by_sku", "sales_by_till")),
    ]
    return [{name: each for name, each in body.items() if name != "as_of"} for body in bodies]


def lines(session: Session, subject: str) -> list[Line]:
    """The ledger's lines of our stores, in an order that does not depend on when they were written."""
    [ledger] = session.execute("SELECT lines FROM ledgers WHERE subject = %s", (subject,))
    found = []
    for row in session.execute("SELECT * FROM corrections"):
        if row.subject == ledger.lines and row.store in STORES:
            block = orjson.loads(row.block)
            assert isinstance(block, list), "all of these stores were shown something of these days"
            found += [{"view": row.view_name, "store": row.store, **line} for line in block]
    return sorted(found, key=lambda line: json.dumps(line, sort_keys=True))


_UPDATE = (
    "UPDATE {} SET block = ? WHERE view_name = ? AND store = ? AND received_day = ? AND generation = ? "
    "AND epoch = ? AND micro_batch = ? AND part = ?"
)
_DELETE = (
    "DELETE FROM {} WHERE view_name = ? AND store = ? AND received_day = ? AND generation = ? "
    "AND epoch = ? AND micro_batch = ? AND part = ?"
)


def speed_table(session: Session) -> str:
    """Where the served generation has its rows."""
    return layout_of(session, PointerRow(session).read().generation).cells


def speed_row(session: Session, view: str, store: str) -> tuple[Any, tuple[Any, ...]]:
    """The block and the whole key of the newest one: what was received before is in batch already."""
    rows = session.execute(f"SELECT * FROM {speed_table(session)}")  # noqa: S608 - our own name
    row = max((row for row in rows if (row.view_name, row.store) == (view, store)), key=attrgetter("epoch"))
    key = (row.view_name, row.store, row.received_day, row.generation, row.epoch, row.micro_batch, row.part)
    return orjson.loads(row.block), key


def harm_speed_rows(session: Session) -> None:
    """One row says 10.00 more than was sold, another one is lost."""
    block, key = speed_row(session, "sales_by_till", PLANTED)
    block["net_sales"][0] += 1000
    table = speed_table(session)
    session.execute(session.prepare(_UPDATE.format(table)), (orjson.dumps(block).decode(), *key))
    _, key = speed_row(session, "sales_by_sku", LOST)
    session.execute(session.prepare(_DELETE.format(table)), key)


@pytest.fixture(scope="module")
def published(stack: Stack, session: Session) -> Published:
    """A publication of a stream with late, duplicated, conflicting and miskeyed events, and harmed speed rows."""
    send(stack, [Sent(store, 1, day) for store in STORES for day in (NOW, AGES_AGO)])()
    first = stack.rebuild()["publication"]
    commit = send(stack, [Sent(MISKEYED, 2, NOW, 3.0)], 0, **{"transactional.id": "ledger"})
    send(stack, [Sent(MISKEYED, 2, NOW, 4.0)], 1)()  # received later, read first, and another amount
    wait_for(stack, MISKEYED, 3)
    commit()
    late, conflict = Sent(LATE, 3, AGES_AGO, 5.0), Sent(CONFLICT, 4, NOW, 6.0)
    send(stack, [late, late, Sent(LATE, 5, NOW), conflict, conflict, conflict._replace(total=7.0)])()
    send(stack, [Sent(store, 6, NOW, 2.0) for store in (PLANTED, LOST)])()
    for store in (LATE, CONFLICT, PLANTED, LOST):
        wait_for(stack, store, 3)
    harm_speed_rows(session)
    before = {store: sales(stack, store) for store in STORES}
    done = stack.rebuild()
    after = {store: sales(stack, store) for store in STORES}
    ledger = lines(session, str(done["publication"]))
    return Published(first, done["publication"], ledger, done["corrections"], before, after)


def test_an_event_older_than_speed_counts_has_waited(published: Published) -> None:
    lines = published.of(LATE)

    assert {line["cause"] for line in lines} == {"waited"}
    [gross] = [line for line in lines if (line["view"], line["state"]) == ("sales", "gross_sales")]
    assert (gross["shown"], gross["corrected"], gross["difference"]) == (100, 600, 500)
    assert gross["events_total"] == 1
    assert json.loads(gross["events"][0])[2] == "3"


def test_what_the_ledger_says_is_what_readers_see_change(published: Published) -> None:
    for store in STORES:
        for state, before in published.before[store].items():
            own = [line for line in published.of(store) if (line["view"], line["state"]) == ("sales", state)]

            assert sum(line["difference"] for line in own) == published.after[store][state] - before


def test_an_identity_on_two_partitions_of_which_the_later_was_read_first_is_miskeyed(published: Published) -> None:
    lines = published.of(MISKEYED)

    assert {line["cause"] for line in lines} == {"miskeyed"}
    differences = {(line["view"], line["state"]): line["difference"] for line in lines}
    assert differences["sales", "gross_sales"] == -100
    assert {tuple(json.loads(event)[2] for event in line["events"]) for line in lines} == {("2",)}


def test_a_planted_and_a_lost_speed_row_are_unexplained_and_found(published: Published) -> None:
    planted, lost = published.of(PLANTED), published.of(LOST)

    assert [(line["view"], line["state"], line["difference"]) for line in planted] == [
        ("sales_by_till", "net_sales", -1000)
    ]
    assert {(line["view"], line["state"]): line["difference"] for line in lost} == {
        ("sales_by_sku", "net_sales"): 200,
        ("sales_by_sku", "net_units"): 1,
        ("sales_by_sku", "sku_receipts"): 1,
    }
    assert {line["cause"] for line in (*planted, *lost)} == {"unexplained"}
    assert {json.loads(event)[2] for line in (*planted, *lost) for event in line["events"]} == {"6"}
    assert published.totals["causes"]["unexplained"]["cells"] == 2


def test_repeats_and_conflicts_correct_nothing_and_a_conflict_is_kept(stack: Stack, published: Published) -> None:
    kept = open_table(f"{stack.settings.paths.master_uri}/{CONFLICTS}").to_pyarrow_table(columns=["key"])

    assert published.of(CONFLICT) == []
    assert kept["key"].to_pylist().count(CONFLICT.encode()) == 1


@pytest.mark.nightly
def test_the_way_back_and_forth_gives_the_same_answers_again(stack: Stack, published: Published) -> None:
    shown = answers(stack)

    back = stack.galatea("rollback", str(published.first))
    then = {store: sales(stack, store) for store in STORES}
    stack.galatea("rollback", str(published.number))

    assert back["restores"] == published.first
    assert then[LATE] == published.before[LATE]
    assert answers(stack) == shown
    assert date.fromisoformat(shown[0]["series"][0]["points"][0]["start"][:10])


@pytest.mark.nightly
def test_a_preview_predicts_what_the_ledger_of_the_publication_says(
    stack: Stack, session: Session, published: Published
) -> None:
    send(stack, [Sent(LATE, 7, AGES_AGO, 5.0), Sent(LATE, 8, NOW), *[Sent(CONFLICT, 9, NOW)] * 2])()
    wait_for(stack, LATE, published.after[LATE]["receipts"] + 1)

    preview = stack.rebuild(is_preview=True)
    done = stack.rebuild()

    predicted = lines(session, preview["id"])
    assert predicted == lines(session, str(done["publication"]))
    assert {line["cause"] for line in predicted} == {"waited"}
