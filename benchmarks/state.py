"""How many bytes the speed layer keeps for what it has to know: an identity that it met, a cell that it added to.

Of the table files of one Cassandra node, all components of them, after receipts came in as they do live. There is no
command to flush a node from outside, so it is stopped, which writes to table files what was only in memory, and started
again to be counted.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks import local
from benchmarks.report import Measured
from benchmarks.traffic import PER_SECOND, ReceiptStream, in_background
from master_dataset.sources.pos_transactions import POS_TRANSACTIONS
from views import registered_views
from views.core.cells import read_block

if TYPE_CHECKING:
    from cassandra.cluster import Session

    from deploy.settings import Settings

FULL = 60_000


def state(size: int) -> Iterator[Measured]:
    """After `size` receipts at the pace of the stream, in a home that has nothing yet."""
    with local.own_home() as settings:
        with local.running(settings, "kafka", "cassandra", "speed"):
            with in_background(ReceiptStream(settings, POS_TRANSACTIONS.topic)):
                local.until(lambda: local.received(settings) >= size, f"{size} receipts at {PER_SECOND} a second")
            total = local.received(settings)
            local.until(lambda: local.counted(settings) >= total, "the speed layer")
        with local.running(settings, "cassandra"):
            session = local.cassandra(settings)
            yield _identities(settings, session)
            yield _cells(settings, session)


def _identities(settings: "Settings", session: "Session") -> Measured:
    table = local.layout(session).first_deliveries
    texts = [len(row.identity.encode()) for row in session.execute(f"SELECT identity FROM {table}")]  # noqa: S608 - our own name
    kept = _bytes(settings, session, table)
    details = {"identities": len(texts), "bytes": kept}
    each = (kept / len(texts), sum(texts) / len(texts))
    return Measured("state, an identity", *each, "bytes", "its text alone", better="low", details=details)


def _cells(settings: "Settings", session: "Session") -> Measured:
    shapes = {view.name: view for view in registered_views()}
    rows = cells = text = 0
    table = local.layout(session).cells
    for row in session.execute(f"SELECT view_name, block FROM {table}"):  # noqa: S608 - our own name
        rows, text = rows + 1, text + len(row.block)
        cells += sum(1 for _ in read_block(shapes[row.view_name], row.block))
    kept = _bytes(settings, session, table)
    details = {"cells": cells, "rows": rows, "cells_per_row": round(cells / rows, 1), "bytes": kept}
    each = (kept / cells, text / cells)
    return Measured("state, a cell", *each, "bytes", "its JSON in the block", better="low", details=details)


def _bytes(settings: "Settings", session: "Session", table: str) -> float:
    """Of one copy of the table: the files of a node lie in a folder that bears the table's id."""
    query = "SELECT id FROM system_schema.tables WHERE keyspace_name = %s AND table_name = %s"
    found = session.execute(query, (session.keyspace, table)).one()
    copies = [path for path in settings.home.glob(f"cassandra*/**/{table}-{found.id.hex}") if path.is_dir()]
    return sum(map(_of_files, copies)) / len(copies)


def _of_files(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.iterdir() if file.is_file())
