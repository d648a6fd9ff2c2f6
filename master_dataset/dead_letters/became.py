"""What became of replays, as far as it can be known by now: read from where the broker put them, never written down."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from master_dataset.dead_letters.kept_events import Delivery, Sought, first_of
from master_dataset.dead_letters.letter import Heading
from master_dataset.dead_letters.place import Place
from master_dataset.dead_letters.replay import Replay, Sending
from master_dataset.parsing.dead_letter import Reason


class Became(StrEnum):
    """UNKNOWN: the broker did not confirm it. WAITING: sent, and not archived yet."""

    UNKNOWN = "unknown"
    WAITING = "waiting"
    EVENT = "event"
    DUPLICATE = "duplicate"
    CONFLICT = "conflict"
    DEAD_LETTER = "dead_letter"


@dataclass(frozen=True)
class End:
    """`of`: the delivery that counts, where it is another one. `reason`: of a dead letter."""

    became: Became
    of: Place | None = None
    reason: str | None = None


class Letters(Protocol):
    """Which records are dead letters."""

    def headings(self, places: Collection[Place]) -> Mapping[Place, Heading]:
        """Those of these places that are."""


class Events(Protocol):
    """Which events are archived."""

    def deliveries(self, sought: Collection[Sought]) -> Mapping[Sought, Collection[Delivery]]:
        """All deliveries of each, repeats and conflicts among them; what is not there yet has none."""


def became(replays: Collection[Replay], letters: Letters, events: Events) -> dict[Replay, End]:
    """The end of each, as the tables are now."""
    sent = {each: each.to for each in replays if each.to is not None}
    refused = letters.headings(set(sent.values()))
    sought = {each: Sought(each.place.topic, each.day, each.identity_hash) for each in sent}
    kept = events.deliveries(set(sought.values()))
    too_large = End(Became.DEAD_LETTER, None, Reason.TOO_LARGE)
    found = {each: too_large if each.sending is Sending.REFUSED else End(Became.UNKNOWN) for each in replays}
    for replay, place in sent.items():
        own = next((each for each in kept[sought[replay]] if each.place == place), None)
        if own is None:
            heading = refused.get(place)
            found[replay] = End(Became.DEAD_LETTER, None, heading.reason) if heading else End(Became.WAITING)
        else:
            found[replay] = _end(own, [each for each in kept[sought[replay]] if each.identity == own.identity])
    return found


def _end(own: Delivery, same: Collection[Delivery]) -> End:
    first = first_of(same)
    if first.place == own.place:
        return End(Became.EVENT)
    return End(Became.DUPLICATE if first.content == own.content else Became.CONFLICT, first.place)
