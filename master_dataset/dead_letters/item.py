"""What became of one dead letter that was to be sent again."""

from dataclasses import dataclass
from enum import StrEnum

from master_dataset.dead_letters.place import Place
from master_dataset.parsing.dead_letter import DeadLetter


class Outcome(StrEnum):
    """EVENT, of a dry run: it would be sent. DUPLICATE: an event that says the same is kept, so nothing is sent.

    UNKNOWN: the broker did not confirm it in time; it may be sent again. REFUSED: it would be a dead letter again.
    """

    EVENT = "event"
    SENT = "sent"
    DUPLICATE = "duplicate"
    REFUSED = "refused"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Item:
    """Of one letter. `to`: where it was sent. `of`: the event that is there. `store`: whose event it would be."""

    place: Place
    outcome: Outcome
    to: Place | None = None
    of: Place | None = None
    store: str | None = None
    refusal: DeadLetter | None = None

    def shown(self) -> dict[str, object]:
        """In the words of the interface."""
        why = self.refusal
        return {
            "id": self.place.id,
            "outcome": self.outcome.value,
            "sent_to": self.to.id if self.to else None,
            "duplicate_of": self.of.id if self.of else None,
            "store": self.store,
            "reason": why.reason.value if why else None,
            "field": why.field if why else None,
            "sentence": why.sentence if why else None,
        }
