"""Settings and limits shared by Kafka clients. Imports no driver, so the settings and `galatea status` load fast."""

from typing import Any, NamedTuple


def producer_settings(bootstrap: str, client: str, give_up_seconds: float) -> dict[str, Any]:
    """Return settings of librdkafka for a producer that neither duplicates nor reorders events.

    Args:
        bootstrap: `host:port` of any broker.
        client: Client id.
        give_up_seconds: How long a record may stay unacknowledged before it is given up.
    """
    return {
        "bootstrap.servers": bootstrap,
        "client.id": client,
        "enable.idempotence": True,  # retries neither repeat nor reorder
        "acks": "all",
        "max.in.flight.requests.per.connection": 5,
        "delivery.timeout.ms": int(give_up_seconds * 1000),
        "compression.type": "lz4",
        "partitioner": "murmur2_random",  # like Java clients: one partition per key
        "reconnect.backoff.max.ms": 1000,  # a restarted broker is found again within a second
        "linger.ms": 10,
        "queue.buffering.max.messages": 100_000,
        "queue.buffering.max.kbytes": 65_536,
        "message.max.bytes": 4 * 1024 * 1024,
        "log_level": 2,  # do not log each failed connection while a broker restarts
    }


def majority(copies: int) -> int:
    """Return how many of the copies of a record must be written before it is acknowledged."""
    return copies // 2 + 1


class BufferLimits(NamedTuple):
    """How much may be in flight: sent, and neither acknowledged nor given up."""

    records: int = 10_000
    size: int = 32_000_000
    """Bytes of keys and values."""
