"""What the REST interface takes from its callers at most, as one value: beyond it a request is refused by name."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Bytes, seconds and numbers, of one process. What an event itself may be the parser says, for every way in.

    `unfolding`: how many times its size a compressed body may become, unless it fits into `body_bytes` even so.
    `question_bytes`: of a body that brings no events. `bodies_bytes`: of all bodies that are arriving or worked on.
    """

    body_bytes: int = 1_000_000
    unfolded_bytes: int = 4_000_000
    unfolding: int = 20
    request_events: int = 1_000
    question_bytes: int = 65_536
    receive_seconds: float = 10.0
    bodies_bytes: int = 64_000_000
    requests_in_flight: int = 256
    ingests_in_flight: int = 64
    requests_per_key: int = 8
    live_followers: int = 2_000
    live_followers_per_key: int = 100


@dataclass(frozen=True)
class Ranges:
    """How many days a question may be about: at 15 minutes and hours, and at all other grains."""

    fine_days: int = 400
    coarse_days: int = 3660


LIMITS = Limits()
RANGES = Ranges()
"""Unless settings say otherwise."""
