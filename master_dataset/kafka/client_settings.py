"""Settings and limits shared by Kafka clients. Imports no driver, so the settings and `galatea status` load fast."""

from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from master_dataset.kafka.connection import KafkaConnection


LARGEST_BATCH = 1280 * 1024
"""Compressed bytes that topics accept: room for the largest event, and for some that are larger, as dead letters."""
COMPRESSION: Final = "snappy"
"""How topics and our producers compress: a batch then expands to at most 22 times what the broker stores.

The broker compresses records of other codecs again, and refuses what is too large for it or for the topic. With zstd, a
batch of 18 kB could hold a record of 600 MB, which no reader could ever get past (ADR 0079).
"""


def producer_settings(kafka: "KafkaConnection", client: str, give_up_seconds: float) -> dict[str, Any]:
    """Return settings of librdkafka for a producer that neither duplicates nor reorders events.

    Args:
        kafka: The cluster.
        client: Client id.
        give_up_seconds: How long a record may stay unacknowledged before it is given up.
    """
    return {
        **kafka.client(),
        "client.id": client,
        "enable.idempotence": True,  # retries neither repeat nor reorder
        "acks": "all",
        "max.in.flight.requests.per.connection": 5,
        "delivery.timeout.ms": int(give_up_seconds * 1000),
        "compression.type": COMPRESSION,
        "partitioner": "murmur2_random",  # like Java clients: one partition per key
        "reconnect.backoff.max.ms": 1000,  # a restarted broker is found again within a second
        "linger.ms": 10,
        "queue.buffering.max.messages": 100_000,
        "queue.buffering.max.kbytes": 65_536,
        "message.max.bytes": LARGEST_BATCH,
        "log_level": 2,  # do not log each failed connection while a broker restarts
    }


SET_BY_GALATEA = frozenset(
    {
        # The connection, see `KafkaConnection.client`.
        "bootstrap.servers",
        "enable.ssl.certificate.verification",
        "https.ca.location",
        "sasl.mechanism",
        "sasl.oauthbearer.client.id",
        "sasl.oauthbearer.client.secret",
        "sasl.oauthbearer.method",
        "sasl.oauthbearer.scope",
        "sasl.oauthbearer.token.endpoint.url",
        "sasl.password",
        "sasl.username",
        "security.protocol",
        "ssl.ca.location",
        "ssl.certificate.location",
        "ssl.endpoint.identification.algorithm",
        "ssl.key.location",
        "ssl.key.password",
        # What single clients set.
        "acks",
        "auto.offset.reset",
        "client.id",
        "compression.type",
        "delivery.timeout.ms",
        "enable.auto.commit",
        "enable.auto.offset.store",
        "enable.idempotence",
        "enable.partition.eof",
        "error_cb",
        "fetch.max.bytes",
        "fetch.message.max.bytes",
        "fetch.wait.max.ms",
        "group.id",
        "isolation.level",
        "linger.ms",
        "log_level",
        "max.in.flight.requests.per.connection",
        "message.max.bytes",
        "partitioner",
        "queue.buffering.max.kbytes",
        "queue.buffering.max.messages",
        "queued.max.messages.kbytes",
        "queued.min.messages",
        "reconnect.backoff.max.ms",
        "session.timeout.ms",
        "statistics.interval.ms",
        "stats_cb",
        "transaction.timeout.ms",
        "transactional.id",
        # Other names of the same.
        "compression.codec",
        "https.ca.pem",
        "max.in.flight",
        "max.partition.fetch.bytes",
        "message.timeout.ms",
        "metadata.broker.list",
        "queue.buffering.max.ms",
        "request.required.acks",
        "sasl.mechanisms",
        "sasl.oauthbearer.client.credentials.client.id",
        "sasl.oauthbearer.client.credentials.client.secret",
        "ssl.ca.pem",
        "ssl.certificate.pem",
        "ssl.key.pem",
        "ssl.keystore.location",
    }
)
"""Options of librdkafka that an operator cannot choose: exactness, or the connection itself, depends on them."""


def majority(copies: int) -> int:
    """Return how many of the copies of a record must be written before it is acknowledged."""
    return copies // 2 + 1


class BufferLimits(NamedTuple):
    """How much may be in flight: sent, and neither acknowledged nor given up."""

    records: int = 10_000
    size: int = 32_000_000
    """Bytes of keys and values."""
