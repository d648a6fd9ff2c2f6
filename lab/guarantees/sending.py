"""Sending numbers so that one request is one record, and faults can be counted by requests."""

import logging
import time
from collections.abc import Iterable
from dataclasses import dataclass, field

from confluent_kafka import KafkaError, Message, Producer

_PATIENCE_SECONDS = 120
_QUIET = {"log_level": 0, "error_cb": lambda _error: None}
"""Broken connections are what experiments are about."""
_UNHEARD = logging.getLogger("galatea.proving")
_UNHEARD.addHandler(logging.NullHandler())
_UNHEARD.propagate = False


@dataclass
class Sent:
    """What the producer reported: `ok` delivered, `failed` given up, which means unknown. `seconds` for all."""

    ok: list[int] = field(default_factory=list)
    failed: list[int] = field(default_factory=list)
    seconds: float = 0.0


def producer(bootstrap: str, **more: object) -> Producer:
    """One record a request, retried after 50 ms; `more`: options of librdkafka with `_` for `.`, such as `acks`."""
    options = {
        "bootstrap.servers": bootstrap,
        "linger.ms": 0,
        "batch.num.messages": 1,
        "retry.backoff.ms": 50,
        "retry.backoff.max.ms": 50,
        "reconnect.backoff.ms": 10,
        "reconnect.backoff.max.ms": 100,
        "partitioner": "murmur2_random",
    }
    named = {name if name.endswith("_cb") else name.replace("_", "."): value for name, value in more.items()}
    return Producer({**options, **_QUIET, **named}, logger=_UNHEARD)


def send(sender: Producer, topic: str, numbers: Iterable[int], *, block: int = 0) -> Sent:
    """Send numbers in order and wait for every report; after each `block` records as well, if it is not 0."""
    sent, began = Sent(), time.monotonic()

    def reported(error: KafkaError | None, message: Message) -> None:
        (sent.failed if error else sent.ok).append(int(message.value() or b""))

    for count, number in enumerate(numbers, 1):
        sender.produce(topic, str(number).encode(), on_delivery=reported)
        sender.poll(0)
        if block and count % block == 0:
            flush(sender)
    flush(sender)
    sent.seconds = time.monotonic() - began
    return sent


def flush(sender: Producer) -> None:
    """Wait for every report. TimeoutError if one does not come."""
    if sender.flush(_PATIENCE_SECONDS):
        raise TimeoutError(f"the broker has not answered for {_PATIENCE_SECONDS} s")
