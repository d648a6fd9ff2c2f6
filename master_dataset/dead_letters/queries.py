"""Dead letters as an operator is told of them: listed, shown, and what became of those that were sent again."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any, Protocol

from master_dataset.dead_letters.dead_letter import DeadLetterCursor, DeadLetterQuery, StoredDeadLetter
from master_dataset.dead_letters.replay import Letters as Several
from master_dataset.dead_letters.replay_history import Events, Replay, ReplayResult, replay_results
from master_dataset.dead_letters.table import DeadLetterCounts, SummaryPage
from master_dataset.errors import RangeTooLongError
from master_dataset.kafka.record import RecordPosition

Told = dict[str, Any]


class Letters(Several, Protocol):
    """Every dead letter."""

    def counts(self, question: DeadLetterQuery) -> DeadLetterCounts:
        """By reason. RangeTooLongError."""

    def page(
        self,
        question: DeadLetterQuery,
        limit: int,
        after: DeadLetterCursor | None = None,
        *,
        oldest_first: bool = False,
    ) -> SummaryPage:
        """Some, in the order of receipt."""


class Replays(Protocol):
    """What was sent again."""

    def of(self, places: Collection[RecordPosition]) -> dict[RecordPosition, list[Replay]]:
        """By letter, in the order of time."""


@dataclass(frozen=True)
class DeadLetterListing:
    """`counts`: None where there are too many to be counted. `told`: the letters as they are listed."""

    counts: DeadLetterCounts | None
    told: list[Told]
    following: DeadLetterCursor | None


@dataclass(frozen=True)
class DeadLetterQueries:
    """Of one deployment. Reads only."""

    letters: Letters
    replays: Replays
    events: Events

    def listed(self, question: DeadLetterQuery, limit: int, after: DeadLetterCursor | None = None) -> DeadLetterListing:
        """Newest first, without their bytes."""
        try:
            counts = self.letters.counts(question)
        except RangeTooLongError:
            counts = None
        page = self.letters.page(question, limit, after)
        replays = self._told([each.place for each in page.letters])
        told = [each.summary() | {"replays": replays.get(each.place, [])} for each in page.letters]
        return DeadLetterListing(counts, told, page.following)

    def shown(self, place: RecordPosition) -> tuple[StoredDeadLetter, Told]:
        """One, whole, and what is told of it. UnknownNameError."""
        [letter] = self.letters.several([place])
        return letter, letter.whole() | {"replays": self._told([place]).get(place, [])}

    def open(self, question: DeadLetterQuery, limit: int, after: DeadLetterCursor | None = None) -> SummaryPage:
        """Those that may be worth a replay, oldest first: unless told otherwise those that were never sent again."""
        asked = question if question.replayed is not None else replace(question, replayed=False)
        return self.letters.page(asked, limit, after, oldest_first=True)

    def where(self, place: RecordPosition) -> DeadLetterCursor:
        """Where it stands in the order of receipt. UnknownNameError."""
        [letter] = self.letters.several([place])
        return letter.cursor

    def _told(self, places: Collection[RecordPosition]) -> dict[RecordPosition, list[Told]]:
        found = self.replays.of(places)
        ends = replay_results([each for own in found.values() for each in own], self.letters, self.events)
        return {place: [_told(each, ends[each]) for each in own] for place, own in found.items()}


def _told(replay: Replay, end: ReplayResult) -> Told:
    return {
        "at": replay.at,
        "by": replay.by,
        "mended": replay.mended,
        "outcome": end.outcome.value,
        "sent_to": replay.to.id if replay.to else None,
        "duplicate_of": end.of.id if end.of else None,
        "reason": end.reason,
    }
