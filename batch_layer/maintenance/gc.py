"""The collector: the only one who deletes cells (R11). First it marks, then it deletes, then it may be asked again.

A publication that is let go is marked in the transaction that watches the pointer, where a rollback looks for the mark:
of the two the second is refused. What is to be deleted is found by reading keys, never remembered, so a collection that
was killed is finished by the next one.

Order of reading: recomputes before publications before cells. A run that is in no manifest read here was alive when
recomputes were read, or wrote its first block later.
"""

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import structlog

from batch_layer.maintenance.garbage import Garbage
from batch_layer.maintenance.reachable import Entry, Keep, Living, Place, Reach, Work, kept
from batch_layer.recompute.recompute import Recomputes, owner
from batch_layer.run import read_manifest
from master_dataset.errors import PublicationMoved
from master_dataset.failpoints import CrashPoint, passing
from views.control.pointer_row import SERIAL
from views.core.cut import utc

if TYPE_CHECKING:
    from cassandra.cluster import Session

log = structlog.get_logger()

Step = Callable[[int, int, str], None]
_YOUNG = timedelta(days=1)
"""So long a run may go on that was not there, or not alive, when recomputes were read."""
_ABANDONED = "Whoever worked on it ended without a word, and nobody has taken it up since."
_MARK = "UPDATE publications SET collected_at = ? WHERE series = 'galatea' AND publication = ? IF current = ?"


@dataclass(frozen=True)
class Survey:
    """What a collection will do. `let_go`: publications, oldest first. `runs`: those that lose something.

    `abandoned`: recomputes that are said to go on, and on which nobody has worked for long.
    """

    current: int
    kept: int
    let_go: Sequence[int]
    manifests: Sequence[str]
    previews: Sequence[str]
    runs: Collection[str]
    blocks: int
    run_days: int
    abandoned: Sequence[str]
    reach: Reach

    def shown(self) -> dict[str, object]:
        """As the command line says it."""
        return {
            "publication": self.current,
            "kept": self.kept,
            "collected": list(self.let_go),
            "manifests": len(self.manifests),
            "previews": len(self.previews),
            "runs": len(self.runs),
            "blocks": self.blocks,
            "run_days": self.run_days,
            "abandoned": len(self.abandoned),
        }


class Collector:
    """Collects in one keyspace. `now` is the moment from which ages count."""

    def __init__(self, session: "Session", keep: Keep, now: datetime) -> None:
        """`session` uses Galatea's keyspace."""
        self._session, self._keep, self._now = session, keep, now
        self._garbage = Garbage(session)

    def survey(self, step: Step) -> Survey:
        """Read keys and say what would be collected. Changes nothing."""
        step(0, 0, "publications")
        living = Living(self._works(), self._held(), self._keep, self._now)
        entries, current = self._publications()
        stay = kept(entries, current, self._keep, self._now)
        let_go = [each.number for each in sorted(entries) if each.manifest and each.number not in stay]
        named = {each.manifest for each in entries if each.number in stay}
        names = self._garbage.manifests()
        needed = {name for name in names if name in named or living.needs(name) or self._is_young(name)}
        places = {Place(*key, run) for name in needed for key, run in read_manifest(self._session, name).items()}
        step(0, 0, "cells")
        reach, blocks, run_days = self._garbage_beyond(Reach(places, living))
        marked = {each.number for each in entries if each.is_collected}
        return Survey(
            current,
            len(stay),
            [number for number in let_go if number not in marked],
            sorted(names - needed),
            self._garbage.previews(living),
            blocks.keys() | run_days.keys(),
            blocks.total(),
            run_days.total(),
            living.abandoned(),
            reach,
        )

    def _garbage_beyond(self, reach: Reach) -> tuple[Reach, Counter[str], Counter[str]]:
        """By run, how many blocks and days do not stay. A run that wrote lately stays whole."""
        since = self._now - _YOUNG
        young: set[str] = set()
        found = []
        for rows in (self._garbage.blocks(), self._garbage.run_days()):
            counted = Counter[str]()
            for row in rows:
                if row.written_at > since:
                    young.add(row.run)
                if not reach.keeps(row.place):
                    counted[row.run] += 1
            found.append(counted)
        blocks, days = (Counter({run: n for run, n in each.items() if run not in young}) for each in found)
        return replace(reach, young=young), blocks, days

    def carry_out(self, survey: Survey, step: Step) -> None:
        """Mark, then delete. PublicationMoved if somebody published since: the next one deletes what is marked."""
        mark = self._session.prepare(_MARK)
        for number in survey.let_go:
            if not self._session.execute(mark, (self._now, number, survey.current)).one().applied:
                message = f"somebody published after publication {survey.current}, on which this collection was based"
                raise PublicationMoved(message, do="galatea gc")
        passing(CrashPoint.COLLECT_MARKED)
        self._forget_plans(survey)
        self._garbage.delete_previews(survey.previews)
        self._garbage.delete_manifests(survey.manifests)
        self._garbage.delete_run_days(survey.reach, survey.runs)
        for done in self._garbage.delete_blocks(survey.reach, survey.runs):
            step(done, survey.blocks, "blocks")
            passing(CrashPoint.COLLECT_DELETED)
        log.info("collector.collected", **survey.shown())

    def _forget_plans(self, survey: Survey) -> None:
        """Whoever takes up a recompute whose cells are collected begins anew."""
        recomputes = Recomputes(self._session)
        for id_ in sorted({*map(owner, survey.runs), *survey.abandoned} & survey.reach.living.works.keys()):
            found = recomputes.find(id_)
            plan = None if found.state == "published" else found.plan
            if plan and not recomputes.plan(found, {"number": plan["number"]}):
                message = f"recompute `{id_}` was taken up again while this collection was planned"
                raise PublicationMoved(message, do="galatea gc")
            if id_ in survey.abandoned:
                problem = {"code": "recompute_interrupted", "message": _ABANDONED, "do": f"galatea rebuild --id {id_}"}
                recomputes.update(id_, "failed", problem=problem)

    def _works(self) -> dict[str, Work]:
        rows = self._session.execute("SELECT id, state, updated_at FROM recomputes")
        return {row.id: Work(row.state, row.updated_at and utc(row.updated_at)) for row in rows}

    def _held(self) -> set[str]:
        return {row.id for row in self._session.execute("SELECT id FROM running_recomputes")}

    def _publications(self) -> tuple[list[Entry], int]:
        """Every one of them, and which is current. A switch that is under way is finished by this reading."""
        query = self._session.prepare(
            "SELECT current, publication, manifest, published_at, collected_at FROM publications "
            "WHERE series = 'galatea'"
        )
        query.consistency_level = SERIAL
        rows = list(self._session.execute(query))
        entries = [
            Entry(row.publication, row.manifest, utc(row.published_at), row.collected_at is not None)
            for row in rows
            if row.publication is not None
        ]
        return entries, rows[0].current if rows else 0

    def _is_young(self, manifest: str) -> bool:
        """Whether it may be about to be published."""
        return self._garbage.manifest_written_at(manifest) > self._now - _YOUNG
