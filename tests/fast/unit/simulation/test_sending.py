"""Every source has its own producer, and the failure of one ends all."""

from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from lab.simulation import output
from lab.simulation.output import paced
from lab.simulation.records import TimedRecord
from master_dataset.errors import BrokerUnavailableError
from master_dataset.kafka.connection import KafkaConnection
from master_dataset.kafka.ingest import IngestResult
from master_dataset.source import Source
from master_dataset.sources import registered_sources

NOON = datetime(2026, 3, 7, 12, tzinfo=UTC)


def deliveries(number: int, *topics: str) -> Iterator[TimedRecord]:
    for each in range(number):
        topic = (topics or ("people_counts", "queue_events"))[each % (len(topics) or 2)]
        yield TimedRecord(NOON + timedelta(seconds=each), topic, str(each).encode())


NOWHERE = KafkaConnection("nowhere:1")


class Broker:
    """Stands for `ingest`: keeps what it is given, or refuses all."""

    def __init__(self, *, refuses: bool = False) -> None:
        self.kept: dict[str, list[bytes]] = {}
        self._refuses = refuses

    def ingest(self, source: Source[Any], lines: Iterable[bytes], _: str, __: Callable[..., None]) -> IngestResult:
        if self._refuses:
            raise BrokerUnavailableError("The broker does not answer.", do="galatea status")
        kept = self.kept.setdefault(source.topic, [])
        kept.extend(lines)
        return IngestResult(sent=len(kept), acknowledged=len(kept))


def test_each_source_gets_its_records_in_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = Broker()
    monkeypatch.setattr(output, "ingest", broker.ingest)

    assert output.send(deliveries(10_001), NOWHERE) == 10_001
    assert broker.kept["people_counts"] == [str(each).encode() for each in range(0, 10_001, 2)]
    assert len(broker.kept["queue_events"]) == 5_000


def test_all_sources_are_sent_at_once_however_many_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    broker, topics = Broker(), list(registered_sources())
    monkeypatch.setattr(output, "ingest", broker.ingest)

    assert output.send(deliveries(40_000, *topics), NOWHERE) == 40_000
    assert set(broker.kept) == set(topics)


def test_what_an_ingest_raises_ends_the_sending(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "ingest", Broker(refuses=True).ingest)

    with pytest.raises(BrokerUnavailableError):
        output.send(deliveries(10_000), NOWHERE)


def test_an_error_among_the_records_ends_every_key_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "ingest", Broker().ingest)

    def failing() -> Iterator[TimedRecord]:
        yield from deliveries(10)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        output.send(failing(), NOWHERE)


@pytest.mark.parametrize(("speed", "lasts"), [(1, 9), (3, 3), (0.5, 18)])
def test_the_pace_is_that_of_the_records_times_the_speed(speed: float, lasts: float) -> None:
    now = [100.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds

    given = [(each, now[0]) for each in paced(deliveries(10), speed, lambda: now[0], sleep)]

    assert [each for each, _ in given] == list(deliveries(10))
    assert given[0][1] == 100
    assert given[-1][1] == pytest.approx(100 + lasts)
