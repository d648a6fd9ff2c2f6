"""One time that a dead letter was sent again: who, when, and where it went."""

from dataclasses import dataclass
from datetime import date, datetime
from enum import StrEnum

from master_dataset.dead_letters.place import Place


class Sending(StrEnum):
    """BEGUN is written before anything is sent, so that nothing sent is ever forgotten. UNKNOWN: there or not.

    REFUSED: the broker takes none so large.
    """

    BEGUN = "begun"
    SENT = "sent"
    UNKNOWN = "unknown"
    REFUSED = "refused"


@dataclass(frozen=True)
class Replay:
    """`run`: what was replayed together. `by`: a key's id or a user's name. `mended`: as Mend tells it.

    `to`: where the broker put it, None unless it is SENT. `day`, `identity_hash`: of the event that it says.
    """

    place: Place
    run: str
    at: datetime
    by: str
    mended: str
    sending: Sending
    to: Place | None
    day: date
    identity_hash: int
