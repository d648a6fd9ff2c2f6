"""The limits of what is served. What exceeds one is rejected with an error that names it, or waits."""

from dataclasses import dataclass

INGEST_BYTES_PER_MINUTE = 120_000_000
"""Of events of one key, decompressed."""


@dataclass(frozen=True)
class Limits:
    """Limits of one process. The parser has those of a single event, over REST and Kafka alike.

    `compression_ratio`: of a compressed body, unless it fits into `body_bytes` after decompression.
    `ingest_oldest_days`: how long before its receipt an event may have happened.
    `request_bytes`: of a body without events. `bodies_bytes`: of all bodies that are being received or processed.
    """

    body_bytes: int = 1_000_000
    decompressed_bytes: int = 4_000_000
    compression_ratio: int = 20
    request_events: int = 1_000
    ingest_oldest_days: int = 3_660
    request_bytes: int = 65_536
    receive_seconds: float = 10.0
    bodies_bytes: int = 64_000_000
    requests_in_flight: int = 256
    ingests_in_flight: int = 64
    requests_per_key: int = 8
    live_followers: int = 2_000
    live_followers_per_key: int = 100


@dataclass(frozen=True)
class Ranges:
    """The longest range of a query in days: with a grain of 15 minutes or an hour, and with any other grain."""

    fine_days: int = 400
    coarse_days: int = 3660


LIMITS = Limits()
RANGES = Ranges()
"""The defaults."""
