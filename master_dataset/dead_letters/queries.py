"""Read dead letters together with the outcomes of their replays, for the API, the pages and the command."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

from master_dataset.dead_letters.dead_letter import DeadLetterCursor, DeadLetterQuery, StoredDeadLetter
from master_dataset.dead_letters.deliveries import ArchivedEvents
from master_dataset.dead_letters.replay_history import Replay, ReplayResult, ReplayTable, replay_results
from master_dataset.dead_letters.table import DeadLetterCounts, DeadLetterTable, SummaryPage
from master_dataset.errors import RangeTooLongError
from master_dataset.kafka.record import RecordPosition

DeadLetterFields = dict[str, Any]
"""A dead letter as the API names its fields, with `replays`."""


@dataclass(frozen=True)
class DeadLetterListing:
    """`counts`: None if there are too many to be counted. `following`: cursor of the last item, if more follow."""

    counts: DeadLetterCounts | None
    items: list[DeadLetterFields]
    following: DeadLetterCursor | None


@dataclass(frozen=True)
class DeadLetterQueries:
    """Reads the dead letters of one deployment."""

    dead_letters: DeadLetterTable
    replays: ReplayTable
    events: ArchivedEvents

    def list_page(self, query: DeadLetterQuery, limit: int, after: DeadLetterCursor | None = None) -> DeadLetterListing:
        """List dead letters without their bytes, newest first."""
        try:
            counts = self.dead_letters.counts(query)
        except RangeTooLongError:
            counts = None
        page = self.dead_letters.page(query, limit, after)
        replays = self._replays_of([each.position for each in page.dead_letters])
        items = [each.summary() | {"replays": replays.get(each.position, [])} for each in page.dead_letters]
        return DeadLetterListing(counts, items, page.following)

    def get(self, position: RecordPosition) -> tuple[StoredDeadLetter, DeadLetterFields]:
        """Return one dead letter with its bytes, and its fields as the API names them.

        Raises:
            UnknownNameError: There is no dead letter at this position.
        """
        [dead_letter] = self.dead_letters.fetch([position])
        return dead_letter, dead_letter.whole() | {"replays": self._replays_of([position]).get(position, [])}

    def list_replayable(self, query: DeadLetterQuery, limit: int, after: DeadLetterCursor | None = None) -> SummaryPage:
        """List dead letters to replay, oldest first: those never replayed, unless the query says otherwise."""
        query = query if query.replayed is not None else replace(query, replayed=False)
        return self.dead_letters.page(query, limit, after, oldest_first=True)

    def cursor_of(self, position: RecordPosition) -> DeadLetterCursor:
        """Return the cursor of one dead letter.

        Raises:
            UnknownNameError: There is no dead letter at this position.
        """
        [dead_letter] = self.dead_letters.fetch([position])
        return dead_letter.cursor

    def _replays_of(self, positions: Collection[RecordPosition]) -> dict[RecordPosition, list[DeadLetterFields]]:
        found = self.replays.of(positions)
        results = replay_results([each for own in found.values() for each in own], self.dead_letters, self.events)
        return {position: [_replay_fields(each, results[each]) for each in own] for position, own in found.items()}


def _replay_fields(replay: Replay, result: ReplayResult) -> DeadLetterFields:
    return {
        "at": replay.at,
        "by": replay.by,
        "mended": replay.mended,
        "outcome": result.outcome.value,
        "sent_to": replay.to.id if replay.to else None,
        "duplicate_of": result.of.id if result.of else None,
        "reason": result.reason,
    }
