"""What one connection may do, and how many there may be."""

from dataclasses import dataclass


@dataclass(frozen=True)
class ConnectionLimits:
    """Bytes, seconds and numbers, of one process.

    `header_bytes`: of target and header fields together. `receive_seconds`: until a request is there as a whole.
    `idle_seconds`: between two requests, and for how long a client may take nothing of its answer; a system takes
    megabytes on its behalf, so that nothing moves for a while even with one that reads. `unsent_bytes`: of answers
    that wait for their clients, all together.
    """

    header_bytes: int = 16_384
    header_fields: int = 100
    receive_seconds: float = 10.0
    idle_seconds: float = 30.0
    connections: int = 4_096
    unsent_bytes: int = 128_000_000
