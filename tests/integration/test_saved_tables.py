"""Annotations, saved views and share links in real Cassandra: read as they were kept, and gone when they end."""

import asyncio
import hashlib
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

from cassandra.cluster import Session

from serving_layer.pages.sessions import SessionPlace
from serving_layer.saved.annotations import Annotation, Annotations
from serving_layer.saved.shares import ShareLink
from serving_layer.saved.views import SavedView
from serving_layer.tables import AnnotationTables, AsyncSession, SavedViewTables, SessionTables, ShareTables
from tests.integration.test_lag import until

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
TENANT = "tenant of saved things"


def note(first: date, last: date, *stores: str) -> Annotation:
    return Annotation(TENANT, first, last, "promotion", "Two for one", stores, "a key", NOW).with_id()


def test_annotations_of_a_range_are_read_as_they_were_kept(shared_cassandra: Session) -> None:
    day = date(2026, 11, 21)
    long, own = note(day - timedelta(days=365), day), note(day, day, "12", "40")
    later = note(day + timedelta(days=1), day + timedelta(days=1))

    async def kept() -> tuple[list[Annotation], list[Annotation], list[str]]:
        tables = AnnotationTables(AsyncSession(shared_cassandra))
        await tables.put([long, own, later])
        annotations = Annotations(tables)
        found = list(await annotations.annotations_between(TENANT, ["12"], day, day))
        others = list(await annotations.annotations_between("another tenant", None, day, day))
        await annotations.remove(TENANT, own.id)
        return found, others, list(await tables.ids(TENANT))

    found, others, left = asyncio.run(kept())

    assert (found, others) == ([long, own], [])
    assert left == [long.id, later.id]


def test_saved_views_are_read_as_they_were_kept(shared_cassandra: Session) -> None:
    view = SavedView(TENANT, "1", "Kosice", "/stores/12?day=2026-11-21", "a key", NOW)
    renamed = replace(view, name="Another")

    async def kept() -> list[list[SavedView]]:
        tables = SavedViewTables(AsyncSession(shared_cassandra))
        found = []
        for each in (view, renamed):
            await tables.put(each)
            found.append(list(await tables.all(TENANT)))
        await tables.remove(TENANT, view.id)
        return [*found, list(await tables.all(TENANT))]

    assert asyncio.run(kept()) == [[view], [renamed], []]


def test_share_links_are_found_by_digest_and_end_by_themselves(shared_cassandra: Session) -> None:
    one = ShareLink(TENANT, "1", "/stores/12", frozenset(["12"]), "https://a.example", "a key", NOW, NOW)
    overview = replace(one, id="2", address="/", stores=None, origin="")
    digests = [hashlib.sha256(token).digest() for token in (b"one", b"overview", b"none")]

    async def kept() -> list[ShareLink | None]:
        tables = ShareTables(AsyncSession(shared_cassandra))
        await tables.add(digests[0], one, 3600)
        await tables.add(digests[1], overview, 3600)
        assert sorted(await tables.all(TENANT), key=lambda link: link.id) == [one, overview]
        assert {one, overview} <= set(await tables.all(None))
        await tables.change(replace(one, revoked_at=NOW), 1)
        return [await tables.find(digest) for digest in digests]

    async def found() -> ShareLink | None:
        return await ShareTables(AsyncSession(shared_cassandra)).find(digests[0])

    assert asyncio.run(kept())[1:] == [overview, None]
    until(lambda: asyncio.run(found()) is None)


def test_sessions_of_a_key_are_listed_newest_first_and_those_of_others_are_not(shared_cassandra: Session) -> None:
    places = [SessionPlace(b"owner", NOW + timedelta(hours=8, seconds=number), bytes([number])) for number in range(3)]
    foreign = SessionPlace(b"another", NOW + timedelta(hours=8), b"\x09")

    async def kept() -> list[list[SessionPlace]]:
        tables = SessionTables(AsyncSession(shared_cassandra))
        for each in (*places, foreign):
            await tables.put(each, b"sealed", 60)
        found = [list(await tables.of_owner(b"owner", most)) for most in (2, 9)]
        await tables.remove(places[1])
        return [*found, list(await tables.of_owner(b"owner", 9))]

    assert asyncio.run(kept()) == [[places[2], places[1]], places[::-1], [places[2], places[0]]]
