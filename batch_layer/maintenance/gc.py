"""Garbage collection: the only deletion of cells (R11). It marks, then deletes and can be repeated.

A publication to be deleted is marked in the transaction that checks the pointer, and a rollback checks for the mark: if
both run, the second is refused. What to delete is found by reading keys, never remembered, so the next collection
finishes one that was killed. Keys are read page by page without the blocks. Rows of a run are deleted by one range per
partition; never a whole partition of cells, where another run may be writing.

Order of reading: recomputes before publications before cells. A run that is in no manifest read here was in progress
when recomputes were read, or wrote its first block later.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from itertools import groupby, islice
from typing import TYPE_CHECKING, Any, NamedTuple

import structlog
from cassandra.concurrent import execute_concurrent
from cassandra.query import SimpleStatement

from batch_layer.maintenance.reachable import (
    HistoryEntry,
    LiveRecomputes,
    Reachable,
    RecomputeState,
    Retention,
    RunCells,
    kept_publications,
)
from batch_layer.run import read_manifest
from master_dataset.errors import PublicationMovedError
from master_dataset.failpoints import Failpoint, failpoint
from views.control.publication import SERIAL
from views.control.recompute import PlanNumber, Problem, Recomputes, owner
from views.core.cut import utc
from views.core.large_blocks import day_of_block

if TYPE_CHECKING:
    from cassandra.cluster import Session

_KEYS_AT_ONCE = 5_000
_AT_ONCE = 500
_IN_FLIGHT = 32
_OF_RUN = "DELETE FROM batch_cells WHERE view_name = ? AND store = ? AND month = ? AND run = ?"
_OF_DAY = f"{_OF_RUN} AND day = ?"


class Block(NamedTuple):
    """The key of a row, and when it was written. `kept_under`: the day in it; a part has one of its own."""

    view: str
    store: str
    month: date
    run: str
    day: date
    kept_under: date
    written_at: datetime


class RunDay(NamedTuple):
    """A (view, day) that a run wrote, and when."""

    run: str
    view: str
    day: date
    written_at: datetime


def run_cells(row: Block | RunDay) -> RunCells:
    """The cells of a run that a row belongs to, as a manifest may name them."""
    return RunCells(row.view, row.day, row.run)


class GarbageTables:
    """The tables of batch cells, manifests and previews' ledgers."""

    def __init__(self, session: "Session") -> None:
        """`session` uses Galatea's keyspace."""
        self._session = session

    def manifests(self) -> set[str]:
        """The names of all of them."""
        return {row.manifest for row in self._pages("SELECT DISTINCT manifest FROM manifests")}

    def manifest_written_at(self, name: str) -> datetime:
        """When the last entry of it was written."""
        query = self._session.prepare("SELECT max(writetime(run)) AS micros FROM manifests WHERE manifest = ?")
        return _instant(self._session.execute(query, (name,)).one().micros or 0)

    def blocks(self) -> Iterator[Block]:
        """The keys of all blocks; those of a partition and run follow each other."""
        keys = "SELECT view_name, store, month, run, day, writetime(block) AS micros FROM batch_cells"
        for row in self._pages(keys):
            written_at = _instant(row.micros or 0)
            month, kept_under = row.month.date(), row.day.date()
            day = day_of_block(month, kept_under)
            yield Block(row.view_name, row.store, month, row.run, day, kept_under, written_at)

    def run_days(self) -> Iterator[RunDay]:
        """Every (view, day) that a run wrote; those of a run and view follow each other."""
        for row in self._pages("SELECT run, view_name, day, writetime(stores) AS micros FROM run_days"):
            yield RunDay(row.run, row.view_name, row.day.date(), _instant(row.micros or 0))

    def previews(self, live: LiveRecomputes) -> list[str]:
        """The subjects of ledgers that are no longer needed: of previews, and of runs that were never published.

        That of a publication stays. Its lines lie under its run's name, if they were written before the switch.
        """
        ledgers = list(self._pages("SELECT subject, lines FROM ledgers"))
        published = {name for row in ledgers if row.subject.isdecimal() for name in (row.subject, row.lines)}
        found = {row.subject for row in ledgers}
        found |= {row.subject for row in self._pages("SELECT DISTINCT subject, view_name FROM corrections")}
        return sorted(each for each in found - published if live.has_ended_without(each))

    def delete_previews(self, subjects: Collection[str]) -> None:
        """Delete these ledgers: first the row that says a ledger is complete, then its lines."""
        statement = self._session.prepare("DELETE FROM ledgers WHERE subject = ?")
        self._delete([(statement, (subject,)) for subject in subjects])
        partitions = self._pages("SELECT DISTINCT subject, view_name FROM corrections") if subjects else ()
        statement = self._session.prepare("DELETE FROM corrections WHERE subject = ? AND view_name = ?")
        self._delete([(statement, (row.subject, row.view_name)) for row in partitions if row.subject in subjects])

    def delete_manifests(self, names: Collection[str]) -> None:
        """Delete these, whole."""
        statement = self._session.prepare("DELETE FROM manifests WHERE manifest = ?")
        self._delete([(statement, (name,)) for name in names])

    def delete_run_days(self, reachable: Reachable, runs: Collection[str]) -> None:
        """Delete the days of these runs that are not kept: everything of a run and view, or day by day."""
        whole = self._session.prepare("DELETE FROM run_days WHERE run = ? AND view_name = ?")
        one = self._session.prepare("DELETE FROM run_days WHERE run = ? AND view_name = ? AND day = ?")
        statements: list[tuple[Any, Sequence[object]]] = []
        for key, own in groupby(self.run_days(), key=lambda row: row[:2]):
            rows = list(own)
            deleted = [row for row in rows if row.run in runs and not reachable.keeps(run_cells(row))]
            if len(deleted) == len(rows):
                statements.append((whole, key))
            else:
                statements += [(one, (*key, row.day)) for row in deleted]
        self._delete(statements)

    def delete_day_cells(self, reachable: Reachable, runs: Collection[str]) -> None:
        """Delete the day cells of these runs that are not kept. They go first: blocks tell that a run has some left."""
        statement = self._session.prepare("DELETE FROM day_cells WHERE run = ? AND view_name = ? AND day = ?")
        rows = self._pages("SELECT DISTINCT run, view_name, day FROM day_cells") if runs else ()
        keys = ((row.run, row.view_name, row.day.date()) for row in rows if row.run in runs)
        deleted = [(statement, key) for key in keys if not reachable.keeps(RunCells(key[1], key[2], key[0]))]
        self._delete(deleted)

    def delete_blocks(self, reachable: Reachable, runs: Collection[str]) -> Iterator[int]:
        """Delete the blocks of these runs that are not kept. Yields the number of deleted blocks after each request."""
        statements = self._of_blocks(reachable, runs)
        done = 0
        while part := list(islice(statements, _AT_ONCE)):
            self._delete([(statement, values) for statement, values, _ in part])
            done += sum(number for *_, number in part)
            yield done

    def _of_blocks(self, reachable: Reachable, runs: Collection[str]) -> Iterator[tuple[Any, Sequence[object], int]]:
        of_run, of_day = self._session.prepare(_OF_RUN), self._session.prepare(_OF_DAY)
        for key, own in groupby(self.blocks(), key=lambda block: block[:4]):
            blocks = list(own)
            deleted = [block for block in blocks if block.run in runs and not reachable.keeps(run_cells(block))]
            if deleted and len(deleted) == len(blocks):
                yield of_run, key, len(deleted)
            else:
                yield from ((of_day, (*key, block.kept_under), 1) for block in deleted)

    def _pages(self, query: str) -> Iterator[Any]:
        return iter(self._session.execute(SimpleStatement(query, fetch_size=_KEYS_AT_ONCE)))

    def _delete(self, statements: Sequence[tuple[Any, Sequence[object]]]) -> None:
        execute_concurrent(self._session, statements, concurrency=_IN_FLIGHT, raise_on_first_error=True)


def _instant(micros: int) -> datetime:
    return datetime.fromtimestamp(micros / 1_000_000, UTC)


log = structlog.get_logger()

Step = Callable[[int, int, str], None]
_YOUNG = timedelta(days=1)
"""A run that was not known, or not in progress, when recomputes were read can continue for at most this long."""
_ABANDONED = "The process that worked on it ended without reporting why, and no other process has resumed it."
_MARK = "UPDATE publications SET collected_at = ? WHERE series = 'galatea' AND publication = ? IF current = ?"


@dataclass(frozen=True)
class Survey:
    """What a collection will do.

    Attributes:
        current: The current publication.
        kept_publications: The number of publications that are kept.
        let_go: The publications whose cells are deleted, oldest first.
        manifests: The names of manifests to delete.
        previews: The ids of previews whose ledgers are deleted.
        runs: The runs of which something is deleted.
        blocks: The number of blocks to delete.
        run_days: The number of (run, view, day) rows to delete.
        abandoned: Recomputes that are in progress by their state, but have not been worked on for a long time.
        reachable: What is kept.
    """

    current: int
    kept_publications: int
    let_go: Sequence[int]
    manifests: Sequence[str]
    previews: Sequence[str]
    runs: Collection[str]
    blocks: int
    run_days: int
    abandoned: Sequence[str]
    reachable: Reachable

    def shown(self) -> dict[str, object]:
        """The form in which the command line shows it."""
        return {
            "publication": self.current,
            "kept": self.kept_publications,
            "collected": list(self.let_go),
            "manifests": len(self.manifests),
            "previews": len(self.previews),
            "runs": len(self.runs),
            "blocks": self.blocks,
            "run_days": self.run_days,
            "abandoned": len(self.abandoned),
        }


class GarbageCollector:
    """Collects in one keyspace. `now`: the instant from which ages count."""

    def __init__(self, session: "Session", keep: Retention, now: datetime) -> None:
        """`session` uses Galatea's keyspace."""
        self._session, self._keep, self._now = session, keep, now
        self._garbage = GarbageTables(session)

    def survey(self, step: Step) -> Survey:
        """Read keys and find what would be collected. Changes nothing."""
        step(0, 0, "publications")
        live = LiveRecomputes(self._recomputes(), self._locked(), self._keep, self._now)
        entries, current = self._publications()
        stay = kept_publications(entries, current, self._keep, self._now)
        let_go = [each.number for each in sorted(entries) if each.manifest and each.number not in stay]
        named = {each.manifest for each in entries if each.number in stay}
        names = self._garbage.manifests()
        needed = {name for name in names if name in named or live.needs(name) or self._is_young(name)}
        cells = {RunCells(*key, run) for name in needed for key, run in read_manifest(self._session, name).items()}
        step(0, 0, "cells")
        reachable, blocks, run_days = self._garbage_beyond(Reachable(cells, live))
        marked = {each.number for each in entries if each.is_collected}
        return Survey(
            current,
            len(stay),
            [number for number in let_go if number not in marked],
            sorted(names - needed),
            self._garbage.previews(live),
            blocks.keys() | run_days.keys(),
            blocks.total(),
            run_days.total(),
            live.abandoned(),
            reachable,
        )

    def _garbage_beyond(self, reachable: Reachable) -> tuple[Reachable, Counter[str], Counter[str]]:
        """By run, the number of blocks and days that are not kept. A run that wrote recently is kept whole."""
        since = self._now - _YOUNG
        young: set[str] = set()
        found = []
        for rows in (self._garbage.blocks(), self._garbage.run_days()):
            counted = Counter[str]()
            for row in rows:
                if row.written_at > since:
                    young.add(row.run)
                if not reachable.keeps(run_cells(row)):
                    counted[row.run] += 1
            found.append(counted)
        blocks, days = (Counter({run: n for run, n in each.items() if run not in young}) for each in found)
        return replace(reachable, young=young), blocks, days

    def run(self, survey: Survey, step: Step) -> None:
        """Mark, then delete. PublicationMovedError after a new publication; the next run deletes what is marked."""
        mark = self._session.prepare(_MARK)
        for number in survey.let_go:
            if not self._session.execute(mark, (self._now, number, survey.current)).one().applied:
                message = f"somebody published after publication {survey.current}, on which this collection was based"
                raise PublicationMovedError(message, do="galatea gc")
        failpoint(Failpoint.COLLECT_MARKED)
        self._forget_plans(survey)
        self._garbage.delete_previews(survey.previews)
        self._garbage.delete_manifests(survey.manifests)
        self._garbage.delete_day_cells(survey.reachable, survey.runs)
        self._garbage.delete_run_days(survey.reachable, survey.runs)
        for done in self._garbage.delete_blocks(survey.reachable, survey.runs):
            step(done, survey.blocks, "blocks")
            failpoint(Failpoint.COLLECT_DELETED)
        log.info("gc.done", **survey.shown())

    def _forget_plans(self, survey: Survey) -> None:
        """Discard the plans of recomputes whose cells are collected: if resumed, they are planned again."""
        recomputes = Recomputes(self._session)
        for id_ in sorted({*map(owner, survey.runs), *survey.abandoned} & survey.reachable.live.recomputes.keys()):
            found = recomputes.find(id_)
            plan = None if found.state == "published" else found.plan
            if plan and not recomputes.plan(found, PlanNumber(plan.number)):
                message = f"recompute `{id_}` was resumed while this collection was planned"
                raise PublicationMovedError(message, do="galatea gc")
            if id_ in survey.abandoned:
                problem = Problem("recompute_interrupted", _ABANDONED, f"galatea rebuild --id {id_}")
                recomputes.update(id_, "failed", problem=problem)

    def _recomputes(self) -> dict[str, RecomputeState]:
        rows = self._session.execute("SELECT id, state, updated_at FROM recomputes")
        return {row.id: RecomputeState(row.state, row.updated_at and utc(row.updated_at)) for row in rows}

    def _locked(self) -> set[str]:
        return {row.id for row in self._session.execute("SELECT id FROM running_recomputes")}

    def _publications(self) -> tuple[list[HistoryEntry], int]:
        """Every publication, and which is current. A switch that is under way is finished by this read."""
        query = self._session.prepare(
            "SELECT current, publication, manifest, published_at, collected_at FROM publications "
            "WHERE series = 'galatea'"
        )
        query.consistency_level = SERIAL
        rows = list(self._session.execute(query))
        entries = [
            HistoryEntry(row.publication, row.manifest, utc(row.published_at), row.collected_at is not None)
            for row in rows
            if row.publication is not None
        ]
        return entries, rows[0].current if rows else 0

    def _is_young(self, manifest: str) -> bool:
        """Whether it may be about to be published."""
        return self._garbage.manifest_written_at(manifest) > self._now - _YOUNG
