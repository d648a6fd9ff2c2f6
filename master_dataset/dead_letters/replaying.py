"""Sends dead letters to their topics again: each judged first, each remembered, and never one that would come back.

Safe to repeat at any time: an event has its identity, so what arrives twice counts once. And a letter becomes one event
at most: mended into another one while the first counts, or may count, it is refused.
"""

import secrets
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Protocol

import structlog

from master_dataset.dead_letters.became import Became, Events, became
from master_dataset.dead_letters.became import Letters as Headings
from master_dataset.dead_letters.carrier import Carried
from master_dataset.dead_letters.item import Item, Outcome
from master_dataset.dead_letters.kept_events import Sought, first_of
from master_dataset.dead_letters.letter import Heading, Letter
from master_dataset.dead_letters.mend import Mend
from master_dataset.dead_letters.place import Place
from master_dataset.dead_letters.replay import Replay, Sending
from master_dataset.dead_letters.verdict import TAKEN, Record, Verdict, judged
from master_dataset.kafka.producer import Fate
from master_dataset.parsing.dead_letter import DeadLetter, Reason, Refused
from master_dataset.parsing.event import EPOCH
from master_dataset.parsing.parse import TermsOf
from master_dataset.sources import registered_sources

PORTION = 100
"""So many letters are read, judged and sent at once: with their bytes they take 100 MB at most."""
_MICROSECOND = datetime.resolution
SENT_BEFORE = (
    "was sent again before, mended into another event that counts or may count; a second one would count the same "
    "twice. Where what became of the first is `unknown`, send that again"
)
_FREE = frozenset({Became.DEAD_LETTER, Became.CONFLICT})
"""Ends of a replay that made no event: its letter may become another one."""

log = structlog.get_logger()


class Letters(Headings, Protocol):
    """Dead letters with their bytes."""

    def several(self, places: Collection[Place], near: Sequence[Heading] = ()) -> Sequence[Letter]:
        """In the order of receipt. UnknownName if one is none."""


class Replays(Protocol):
    """Where replays are remembered."""

    def append(self, replays: Iterable[Replay]) -> None:
        """Keep them, all or none."""

    def of(self, places: Collection[Place]) -> Mapping[Place, Sequence[Replay]]:
        """What was replayed of these letters."""


class Sender(Protocol):
    """The way to the broker."""

    def find(self, topics: Collection[str]) -> None:
        """BrokerUnavailable if nothing can be sent there."""

    def carry(self, records: Sequence[Record]) -> Sequence[Carried]:
        """What became of each."""


Step = Callable[[int, int, str], None]
"""Told how many are done, of how many, and what is being done."""


@dataclass(frozen=True)
class Asked:
    """`headings`: of the letters, where they are known. `by`: who asks. A dry run sends nothing."""

    places: Sequence[Place]
    mend: Mend
    by: str
    dry_run: bool
    headings: Sequence[Heading] = ()


@dataclass(frozen=True)
class Replaying:
    """Of one deployment. `now`: by which events are from the future, as what is sent now is stamped about now."""

    letters: Letters
    replays: Replays
    events: Events
    sender: Sender
    now: Callable[[], datetime]

    def run(self, asked: Asked, terms_of: TermsOf, step: Step) -> list[Item]:
        """An item for each letter, in portions, each in the order of receipt.

        UnknownName, BrokerUnavailable: nothing of the portion, or of anything, was sent.
        """
        run, places = secrets.token_hex(8), list(dict.fromkeys(asked.places))
        headings = {each.place: each for each in asked.headings}
        doing = "judged" if asked.dry_run else "replayed"
        if not asked.dry_run:  # what lies anywhere else is refused one by one, and sent nowhere
            self.sender.find({place.topic for place in places} & set(registered_sources()))
        found: list[Item] = []
        for start in range(0, len(places), PORTION):
            step(start, len(places), doing)
            some = places[start : start + PORTION]
            known = [headings[place] for place in some if place in headings]
            letters = self.letters.several(some, known if len(known) == len(some) else ())
            now_us = (self.now() - EPOCH) // _MICROSECOND
            verdicts = [judged(each, asked.mend, terms_of, now_us) for each in letters]
            items = self._items(verdicts)
            found += items if asked.dry_run else self._sent(verdicts, items, run, asked)
        step(len(places), len(places), doing)
        return found

    def _items(self, verdicts: Sequence[Verdict]) -> list[Item]:
        """What each would become, its identity looked for among what is archived."""
        sought = [_sought(each) for each in verdicts]
        kept = self.events.deliveries({each for each in sought if each is not None})
        others = self._others(verdicts)
        found = []
        for verdict, place in zip(verdicts, sought, strict=True):
            if verdict.event is None or place is None:
                found.append(Item(verdict.place, Outcome.REFUSED, refusal=verdict.refusal))
                continue
            item = Item(verdict.place, Outcome.EVENT, store=verdict.event.store)
            same = [each for each in kept[place] if each.identity == verdict.event.identity]
            if same and (first := first_of(same)).content == verdict.event.payload_hash:
                item = replace(item, outcome=Outcome.DUPLICATE, of=first.place)
            elif same:
                refusal = Refused(Reason.CONFLICTING_DUPLICATE, TAKEN).letter()
                item = replace(item, outcome=Outcome.REFUSED, of=first_of(same).place, refusal=refusal)
            elif other := others.get(verdict.place):
                refusal = Refused(Reason.CONFLICTING_DUPLICATE, SENT_BEFORE).letter()
                item = replace(item, outcome=Outcome.REFUSED, of=other.to, refusal=refusal)
            found.append(item)
        return found

    def _others(self, verdicts: Sequence[Verdict]) -> Mapping[Place, Replay]:
        """By letter, a replay of it as another event than it would be now, which counts or may count."""
        hashes = {each.place: each.event.identity_hash for each in verdicts if each.event is not None}
        earlier = [
            replay
            for place, own in self.replays.of(hashes.keys()).items()
            for replay in own
            if replay.identity_hash != hashes[place]
        ]
        ends = became(earlier, self.letters, self.events) if earlier else {}
        return {replay.place: replay for replay, end in ends.items() if end.became not in _FREE}

    def _sent(self, verdicts: Sequence[Verdict], items: Sequence[Item], run: str, asked: Asked) -> list[Item]:
        begun: list[Replay] = []
        records: list[Record] = []
        for verdict, item in zip(verdicts, items, strict=True):
            place = _sought(verdict)
            if item.outcome is Outcome.EVENT and place is not None and verdict.record is not None:
                said = (run, self.now(), asked.by, asked.mend.told, Sending.BEGUN, None)
                begun.append(Replay(verdict.place, *said, place.day, place.identity_hash))
                records.append(verdict.record)
        if not begun:
            return list(items)
        self.replays.append(begun)
        carried = dict(zip((each.place for each in begun), self.sender.carry(records), strict=True))
        self.replays.append([_ended(each, carried[each.place]) for each in begun])
        log.info(
            "dead_letters.replayed", run=run, by=asked.by, sent=sum(each.to is not None for each in carried.values())
        )
        return [_told(each, carried[each.place]) if each.place in carried else each for each in items]


def _sought(verdict: Verdict) -> Sought | None:
    event = verdict.event
    return None if event is None else Sought(event.topic, event.day, event.identity_hash)


def _ended(replay: Replay, carried: Carried) -> Replay:
    if carried.fate is Fate.TOO_LARGE:
        return replace(replay, sending=Sending.REFUSED)
    return replace(replay, sending=Sending.UNKNOWN if carried.to is None else Sending.SENT, to=carried.to)


def _told(item: Item, carried: Carried) -> Item:
    if carried.fate is Fate.TOO_LARGE:
        refusal = DeadLetter(Reason.TOO_LARGE, "", "The record is larger than the broker takes.")
        return replace(item, outcome=Outcome.REFUSED, refusal=refusal)
    return replace(item, outcome=Outcome.UNKNOWN if carried.to is None else Outcome.SENT, to=carried.to)
