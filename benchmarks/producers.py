"""The cost of safe producers: idempotence, and transactions of 1 to 1,000 records, compared with a plain producer."""

import time
from collections.abc import Iterator, Sequence
from itertools import cycle, islice
from typing import TYPE_CHECKING, Any

from confluent_kafka import Producer

from benchmarks import bare, local, traffic
from benchmarks.report import Measured
from master_dataset.kafka.client_settings import COMPRESSION
from master_dataset.kafka.connection import KafkaConnection

if TYPE_CHECKING:
    from deploy.settings import Settings

FULL = 200_000
"""Records of a plain producer; of transactions no more than can be had in some seconds."""
LENGTHS = (1, 10, 100, 1_000)
MOST_TRANSACTIONS = 1_000
ROUNDS = 3
RECEIPTS = 1_000
"""So many different values, sent again and again."""
CALL_SECONDS = 60


def producers(size: int) -> Iterator[Measured]:
    """All kinds take turns; the best of three rounds counts."""
    with local.own_home() as settings, local.running(settings, "kafka"):
        local.new_topic(settings, bare.TOPIC)
        kinds = {"plain": 0, "idempotent": 0} | {f"transactions of {each:,}": each for each in LENGTHS}
        rates: dict[str, list[float]] = {name: [] for name in kinds}
        for number in range(ROUNDS):
            for name, length in kinds.items():
                rates[name].append(_rate(settings, size, name, length, number))
    plain = max(rates.pop("plain"))
    for name, found in rates.items():
        records = _records(size, kinds[name])
        details = {"records_a_round": records, "rounds": [round(each) for each in found]}
        yield Measured(f"producers, {name}", max(found), plain, "records/s", "plain producer", details=details)


def _records(size: int, length: int) -> int:
    return min(size, length * MOST_TRANSACTIONS) if length else size


def _rate(settings: "Settings", size: int, name: str, length: int, number: int) -> float:
    """Acknowledged, or committed, records a second. The first transaction, or record, is not timed."""
    records = list(islice(cycle(traffic.receipt_history(RECEIPTS, 1)), _records(size, length)))
    producer = _producer(settings.kafka.connection, name, number)
    if length:
        producer.init_transactions(CALL_SECONDS)
        _transact(producer, records[:length])
    else:
        _send(producer, records[:1])
    began = time.monotonic()
    if length:
        for at in range(0, len(records), length):
            _transact(producer, records[at : at + length])
    else:
        _send(producer, records)
    return len(records) / (time.monotonic() - began)


def _producer(kafka: KafkaConnection, name: str, number: int) -> Any:  # noqa: ANN401 - confluent_kafka ships no types
    own: dict[str, Any] = {"enable.idempotence": name != "plain"}
    if name.startswith("transactions"):
        own |= {"transactional.id": f"bench {name} {number}", "linger.ms": 0}
    return Producer(
        {
            **kafka.client(),
            "acks": "all",
            "compression.type": COMPRESSION,
            "linger.ms": 10,
            "queue.buffering.max.messages": 100_000,
            **own,
        }
    )


def _transact(producer: Any, records: Sequence[bytes]) -> None:  # noqa: ANN401 - confluent_kafka ships no types
    producer.begin_transaction()
    _send(producer, records)
    producer.commit_transaction(CALL_SECONDS)


def _send(producer: Any, records: Sequence[bytes]) -> None:  # noqa: ANN401 - confluent_kafka ships no types
    """RuntimeError unless each is acknowledged."""
    acknowledged = 0

    def delivered(error: object, _message: object) -> None:
        nonlocal acknowledged
        acknowledged += error is None

    for number, each in enumerate(records):
        while True:
            try:
                producer.produce(bare.TOPIC, each, partition=number % 2, on_delivery=delivered)
                break
            except BufferError:
                producer.poll(0.1)
        if number % 256 == 0:
            producer.poll(0)
    producer.flush()
    if acknowledged != len(records):
        raise RuntimeError(f"{len(records) - acknowledged} records were not acknowledged")
