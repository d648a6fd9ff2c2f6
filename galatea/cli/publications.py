"""`galatea publications`: the history of publications."""

import asyncio
from typing import TYPE_CHECKING

from deploy.cassandra import session_of
from deploy.console import print_json, print_table
from deploy.settings import Settings
from galatea.cli.common.options import AsJson
from serving_layer.admin.publications import MAX_PUBLICATION
from serving_layer.responses.publications import ListedPublication
from serving_layer.tables import AsyncSession, PublishedTables

if TYPE_CHECKING:
    from serving_layer.store.readers import PublicationEntry

SHOWN = ("publication", "cut", "published_at", "by", "why")
PAGE = 1000


def publications(as_json: AsJson = False) -> None:
    """List every publication, newest first: number, cut, time, author, reason, and duration."""
    published = PublishedTables(AsyncSession(session_of(Settings().cassandra.address)))
    listed = asyncio.run(_all(published))
    if as_json:
        print_json({"publications": listed})
        return
    rows = [(*(getattr(each, name) for name in SHOWN), *_notes(each)) for each in listed]
    print_table((*(name.replace("_", " ") for name in SHOWN), "partitions", "seconds", "note"), rows)


async def _all(published: PublishedTables) -> list[ListedPublication]:
    found: list[PublicationEntry] = []
    while page := await published.history(found[-1].publication if found else MAX_PUBLICATION, PAGE):
        found += page
    return [entry.response() for entry in found]


def _notes(entry: ListedPublication) -> tuple[object, object, str]:
    notes = [f"restores {entry.restores}"] if entry.restores else []
    notes += ["collected"] if entry.collected else []
    return entry.partitions or "", entry.seconds or "", ", ".join(notes)
