"""Brings records back to their topics: acknowledged by every replica one by one, and where each of them lies then."""

import time
from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple

from confluent_kafka import KafkaException, Producer

from master_dataset.dead_letters.place import Place
from master_dataset.dead_letters.verdict import Record
from master_dataset.errors import BrokerUnavailable
from master_dataset.kafka.producer import Fate, fate_of
from master_dataset.kafka.producer_settings import producer_settings

METADATA_SECONDS = 10.0
GIVE_UP_SECONDS = 10.0
ROOM_SECONDS = 0.1
LEAVE_SECONDS = 1.0
"""How long a report may come after the time at which the driver gives up."""


class Carried(NamedTuple):
    """`to`: where the record lies; None unless it was acknowledged."""

    fate: Fate
    to: Place | None = None


class Carrier:
    """One producer for a few records; it ends with its work, so that nothing waits between two replays."""

    def __init__(self, bootstrap: str, connect: Callable[[dict[str, Any]], Any] = Producer) -> None:
        """`connect` makes the producer from settings of librdkafka."""
        self._settings, self._connect = producer_settings(bootstrap, "galatea-replay", GIVE_UP_SECONDS), connect

    def find(self, topics: Collection[str]) -> None:
        """BrokerUnavailable if the broker does not answer, or lacks one of these topics: then nothing is sent."""
        producer = self._connect(self._settings)
        try:
            known = producer.list_topics(timeout=METADATA_SECONDS).topics
        except KafkaException as error:
            raise BrokerUnavailable("The broker does not answer; nothing was sent.", do="galatea status") from error
        for topic in topics:
            if topic not in known or known[topic].error is not None:
                raise BrokerUnavailable(f"There is no topic `{topic}`; nothing was sent.", do="galatea up")

    def carry(self, records: Sequence[Record]) -> Sequence[Carried]:
        """Send them in this order, and wait until each is acknowledged or given up. Never raises for one of them."""
        found = [Carried(Fate.UNCONFIRMED)] * len(records)
        producer = self._connect(self._settings)

        def hear(place: int) -> Callable[[Any, Any], None]:
            def heard(error: Any, message: Any) -> None:  # noqa: ANN401 - confluent_kafka ships no types
                to = None if error else Place(message.topic(), message.partition(), message.offset())
                found[place] = Carried(fate_of(error), to)

            return heard

        deadline = time.monotonic() + GIVE_UP_SECONDS
        for place, record in enumerate(records):
            try:
                if not _hand_over(producer, record, hear(place), deadline):
                    break  # the rest was not sent, which is as good as unconfirmed: it may be sent again
            except KafkaException as error:
                found[place] = Carried(fate_of(error.args[0]))
        producer.flush(GIVE_UP_SECONDS + LEAVE_SECONDS)
        return found


def _hand_over(producer: Any, record: Record, heard: Callable[[Any, Any], None], deadline: float) -> bool:  # noqa: ANN401 - confluent_kafka ships no types
    """Whether the client took it: where it is full, that is waited for. KafkaException if it never will."""
    while True:
        try:
            producer.produce(record.topic, record.value, record.key, headers=list(record.headers), on_delivery=heard)
        except BufferError:
            if time.monotonic() > deadline:
                return False
            producer.poll(ROOM_SECONDS)
        else:
            return True
