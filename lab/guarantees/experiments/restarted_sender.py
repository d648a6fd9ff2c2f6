"""P08, idempotence ends with the session: a restarted sender is a different producer.

A till is killed half-way and, since it does not know what arrived, sends its last ten receipts again. It has a new
producer id, so the broker accepts them: ten duplicates in the topic although the producer is idempotent. The identity
of a receipt makes them harmless. The same records go through Galatea's own parser, and the first delivery of each
identity is kept, by partition and offset: the rule by which both layers count. (How Spark implements the rule is tested
where Spark runs; here the rule itself is shown on records of a real broker.)
"""

from collections.abc import Iterator, Sequence
from itertools import count

import orjson

from lab.guarantees.child import die, run_with_kills
from lab.guarantees.clients import ReceivedRecord, flush, producer, read
from lab.guarantees.experiment import Experiment, ExperimentSetup
from lab.guarantees.results import Result, count_numbers, exactly
from master_dataset.kafka.connection import KafkaConnection

AGAIN = 10
PRICE_MINOR = 109


def run(setup: ExperimentSetup) -> Sequence[Result]:
    """Kill the sender half-way; count the records of the topic, and the events that they say."""
    records, topic = setup.size.records, setup.topic("p08")
    task = {"kafka": setup.kafka, "topic": topic, "records": records}
    killed = run_with_kills(__name__, task, [records // 2])
    [seen] = read(setup.kafka, topic)
    events = list(first_deliveries(seen))
    net = sum(minor for _, minor in events)
    fault = f"sender killed, sends its last {AGAIN} again"
    return [
        Result(
            "idempotent producer, restarted",
            fault,
            records,
            count_numbers(records, [_number(each) for each in seen]),
            {"duplicated": exactly(AGAIN), "reordered": exactly(1), "faults": exactly(1)},
            {"faults": killed},
        ),
        Result(
            "first delivery of each identity",
            fault,
            records,
            count_numbers(records, [number for number, _ in events]),
            {"net sales": exactly(records * PRICE_MINOR)},
            {"net sales": net},
        ),
    ]


def first_deliveries(seen: Sequence[ReceivedRecord]) -> Iterator[tuple[int, int]]:
    """Number and money (minor units) of each event, as the layers know them: parsed, then the least offset counts."""
    from master_dataset.parsing.parse import parse  # noqa: PLC0415 - the sender does without
    from master_dataset.parsing.results import DeadLetter  # noqa: PLC0415 - the sender does without
    from master_dataset.registry.stores import Terms  # noqa: PLC0415 - the sender does without
    from master_dataset.sources import source_named  # noqa: PLC0415 - the sender does without

    source, known = source_named("pos_transactions"), set()
    for each in seen:
        event = parse(source, each.value, lambda _store: Terms())
        if isinstance(event, DeadLetter):
            raise TypeError(f"a receipt of ours is none: {event}")
        if event.identity not in known:
            known.add(event.identity)
            yield _number(each), event.payload.gross_sales - event.payload.returns_value


def child_main(kafka: KafkaConnection, topic: str, records: int, kill_at: int | None) -> None:
    """Run a till: send everything; after a kill, send what is uncertain again, and the rest."""
    sender = producer(kafka, acks="all", enable_idempotence=True)
    first = 0 if kill_at is not None else records // 2 - AGAIN
    for number in count(first):
        if number == kill_at:
            flush(sender)
            die()
        if number == records:
            break
        sender.produce(topic, receipt(number), b"1")
    flush(sender)


def receipt(number: int) -> bytes:
    """A receipt of one pint of milk; its number is that of the transaction."""
    line = {"title": "Milk 1 l", "price": PRICE_MINOR / 100, "amount": 1}
    head = {"happened_at": "2026-11-16T10:00:00+00:00", "operation_id": 1, "vendor_fiscal_module": 1}
    return orjson.dumps({**head, "transaction_id": number, "transactions": [line]})


def _number(seen: ReceivedRecord) -> int:
    return int(orjson.loads(seen.value)["transaction_id"])


EXPERIMENT = Experiment("P08", "idempotence is for one session; identity covers the rest", run)
