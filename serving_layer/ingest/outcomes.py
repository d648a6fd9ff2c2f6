"""What became of the events of a request, one by one and all together."""

from collections import Counter
from collections.abc import Sequence
from http import HTTPStatus
from typing import NamedTuple

from master_dataset.errors import BrokerUnavailable
from master_dataset.parsing.dead_letter import DeadLetter, Reason
from master_dataset.parsing.json_bytes import MAX_BYTES
from serving_layer.responses.events import EventOutcome, EventOutcomes, Outcome


class Item(NamedTuple):
    """One event. `reason`: a code that stays. `pointer`: the JSON pointer of the field, empty for the whole record.

    `sentence` never quotes the value.
    """

    outcome: Outcome
    reason: str | None = None
    pointer: str | None = None
    sentence: str | None = None

    @classmethod
    def refused(cls, letter: DeadLetter) -> "Item":
        """What would become a dead letter."""
        return cls(Outcome.REJECTED, letter.reason, letter.field, letter.sentence)


ACCEPTED = Item(Outcome.ACCEPTED)
UNKNOWN = Item(
    Outcome.UNKNOWN, BrokerUnavailable.code, None, "The broker did not confirm it in time; sent again it counts once."
)
TOO_LARGE = Item(Outcome.REJECTED, Reason.TOO_LARGE, "", f"The record is larger than {MAX_BYTES:,} bytes.")
FOREIGN_STORE = "foreign_store"
"""The one reason that is none of the parser's: it depends on who sends."""


def foreign(pointer: str) -> Item:
    """An event of a store that is not the sender's, whether or not there is such a store."""
    return Item(Outcome.REJECTED, FOREIGN_STORE, pointer, f"`{pointer}` names a store that is none of the sender's.")


class Outcomes:
    """Of one request, in the order of its events; there is at least one."""

    def __init__(self, items: Sequence[Item]) -> None:
        """`items`: one for each event."""
        self.items = items
        self.counts = Counter(item.outcome for item in items)

    def status(self) -> HTTPStatus:
        """202 if all are accepted, 422 if all are rejected, else 207. BrokerUnavailable if all are unknown."""
        if self.counts[Outcome.UNKNOWN] == len(self.items):
            message = "The broker did not confirm any of the events in time."
            raise BrokerUnavailable(message, do="Send the same again: what arrives twice counts once.")
        if self.counts[Outcome.ACCEPTED] == len(self.items):
            return HTTPStatus.ACCEPTED
        none = self.counts[Outcome.REJECTED] == len(self.items)
        return HTTPStatus.UNPROCESSABLE_ENTITY if none else HTTPStatus.MULTI_STATUS

    def response(self) -> EventOutcomes:
        """Counts, and every event by its place in the request, from 0 on."""
        return EventOutcomes(
            accepted=self.counts[Outcome.ACCEPTED],
            rejected=self.counts[Outcome.REJECTED],
            unknown=self.counts[Outcome.UNKNOWN],
            items=[EventOutcome(at, *item) for at, item in enumerate(self.items)],
        )
