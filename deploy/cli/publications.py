"""`galatea publications`: the history of what readers saw."""

import asyncio
from typing import Annotated

from typer import Option

from deploy.cassandra import session_of
from deploy.cli.output import answer, table
from deploy.settings import Settings
from serving_layer.tables import Bridge, PublishedTables


def publications(as_json: Annotated[bool, Option("--json", help="One JSON object on stdout.")] = False) -> None:
    """List every publication, newest first: its number, its cut, when, by whom and why."""
    published = PublishedTables(Bridge(session_of(Settings().cassandra_address)))
    listed = [entry.shown() for entry in asyncio.run(published.history())]
    if as_json:
        answer({"publications": listed})
        return
    table(("publication", "cut", "published at", "by", "why"), [tuple(each.values()) for each in listed])
