"""Writes a World into Cassandra, so that the real readers can be compared with the World itself."""

import json
from datetime import UTC, date, timedelta
from typing import TYPE_CHECKING

from master_dataset.kafka.lag import Lag, LagTable
from master_dataset.receipt_blocks import SentReceipt, pack
from master_dataset.sources.pos_transactions import POS_TRANSACTIONS
from tests.support.layers import Delivery
from tests.support.world import World
from views.control.publication import SERIES
from views.control.speed_layout import BY_VIEW, SpeedLayout
from views.core.cut import UNIX_EPOCH, month_of

if TYPE_CHECKING:
    from cassandra.cluster import Session


def write(world: World, session: "Session", layout: SpeedLayout = BY_VIEW) -> None:
    """Everything, over whatever is there. The pointer comes last, as in a publication."""
    for known in world.stores.values():
        session.execute("INSERT INTO stores (id, body) VALUES (%s, %s)", (known.id, known.to_json()))
    session.execute("INSERT INTO registry_versions (name, version) VALUES ('stores', %s)", (len(world.stores),))
    for store, deliveries in world.deliveries.items():
        _write_speed(world, session, store, layout)
        _write_receipts(session, store, deliveries, layout)
    _write_batch(world, session)
    position = "INSERT INTO {} topic, partition, position, received_at) VALUES ({} %s, 0, %s, %s)"
    at = (POS_TRANSACTIONS.topic, world.sent, world.speed_as_of)
    session.execute(position.format("speed_positions (generation,", "1,"), at)
    _write_progress(world, session)
    session.execute(position.format("archive_positions (", ""), at)
    ends = json.dumps({POS_TRANSACTIONS.topic: {"0": world.sent}})
    session.execute(
        "INSERT INTO generations (generation, emit_from, targets, claimed, claimed_ends, definitions) "
        "VALUES (1, %s, '{}', %s, %s, %s)",
        (UNIX_EPOCH, world.micro_batch, ends, layout.recorded_with({})),
    )
    _write_ledgers(world, session)
    _write_pointer(world, session, layout)


def _write_progress(world: World, session: "Session") -> None:
    kept = "UPDATE speed_stores SET kept_from = 0, kept_through = %s WHERE generation = 1"
    session.execute(kept, (world.micro_batch,))
    assert world.speed_as_of is not None
    nothing_left = Lag(POS_TRANSACTIONS.topic, 0, world.sent, world.sent, None)
    LagTable(session, "speed").write([nothing_left], world.speed_as_of)
    insert = session.prepare("INSERT INTO speed_stores (generation, store, mark, received_at) VALUES (1, ?, ?, ?)")
    for store, deliveries in world.deliveries.items():
        session.execute(insert, (store, len(deliveries), max(each.received_at for each in deliveries)))


def _write_ledgers(world: World, session: "Session") -> None:
    block = session.prepare("INSERT INTO corrections (subject, view_name, store, day, block) VALUES (?, ?, ?, ?, ?)")
    for (lines, view), blocks in world.corrections.items():
        for (store, day), text in blocks.items():
            session.execute(block, (lines, view, store, day, text))
    whole = session.prepare("INSERT INTO ledgers (subject, lines, base, written_at, totals) VALUES (?, ?, ?, ?, ?)")
    for each in world.ledgers.values():
        session.execute(whole, (each.subject, each.lines, each.base, each.written_at, json.dumps(each.totals)))


def _write_speed(world: World, session: "Session", store: str, layout: SpeedLayout) -> None:
    insert = session.prepare(
        f"INSERT INTO {layout.cells} (view_name, store, received_day, generation, epoch, micro_batch, part, block) "  # noqa: S608 - our own name
        "VALUES (?, ?, ?, 1, ?, ?, 0, ?)"
    )
    for view, row in world.speed_blocks(store):
        values = (view, store, row.epoch.astimezone(UTC).date(), row.epoch, row.micro_batch, row.block)
        session.execute(insert, values)


def _write_receipts(session: "Session", store: str, deliveries: list[Delivery], layout: SpeedLayout) -> None:
    """In blocks, some lie in rows nevertheless, which a generation before has written."""
    sales = [each for each in deliveries if each.event.topic == POS_TRANSACTIONS.topic]
    in_rows = len(sales) // 2 if layout.packs_receipts else len(sales)
    insert = session.prepare(
        "INSERT INTO raw_pos_transactions (day, operation_id, happened_at, vendor_fiscal_module, transaction_id, "
        "received_at, value) VALUES (?, ?, ?, ?, ?, ?, ?) USING TIMESTAMP ?"
    )
    for each in sales[:in_rows]:
        said, received = each.event.payload, (each.received_at - UNIX_EPOCH) // timedelta(microseconds=1)
        key = (each.event.day, store, each.event.happened_at, said.till, said.transaction_id)
        session.execute(insert, (*key, each.received_at, each.value.decode(), -received))
    by_hour: dict[tuple[date, int], list[Delivery]] = {}
    for each in sales[in_rows:]:
        by_hour.setdefault((each.event.day, each.event.happened_at.astimezone(UTC).hour), []).append(each)
    block = session.prepare("INSERT INTO receipt_blocks (day, store, hour, digest, block) VALUES (?, ?, ?, ?, ?)")
    for (day, hour), own in by_hour.items():
        for start in range(0, len(own), 2):  # each delivery lies in two blocks
            packed = pack([*zip(*(_sent(each) for each in own[start : start + 4]), strict=True)])
            session.execute(block, (day, store, hour, *packed))


def _sent(delivery: Delivery) -> SentReceipt:
    said, at = delivery.event.payload, delivery.event.happened_at
    happened, received = ((each - UNIX_EPOCH) // timedelta(milliseconds=1) for each in (at, delivery.received_at))
    return SentReceipt(happened, said.till, said.transaction_id, received, 0, 0, delivery.value)


def _write_batch(world: World, session: "Session") -> None:
    block = session.prepare(
        "INSERT INTO batch_cells (view_name, store, month, run, day, block) VALUES (?, ?, ?, ?, ?, ?)"
    )
    for (view, store, run, day), text in world.blocks.items():
        session.execute(block, (view, store, month_of(day), run, day, text))
    part = session.prepare("INSERT INTO day_cells (run, view_name, day, part, block) VALUES (?, ?, ?, ?, ?)")
    stores = session.prepare("INSERT INTO run_days (run, view_name, day, stores, day_cells) VALUES (?, ?, ?, ?, ?)")
    for (run, view), days in world.run_days.items():
        for day, of in days.items():
            named = world.day_parts(run, view)[day].to_json()
            for name, packed in world.day_blocks(run, view, day).items():
                session.execute(part, (run, view, day, name, packed))
            session.execute(stores, (run, view, day, json.dumps(sorted(of)), named))
    named = session.prepare("INSERT INTO manifests (manifest, view_name, day, run) VALUES (?, ?, ?, ?)")
    for manifest, cells in world.manifests.items():
        for (view, day), run in cells.items():
            session.execute(named, (manifest, view, day, run))


def _write_pointer(world: World, session: "Session", layout: SpeedLayout) -> None:
    for each in world.history:
        session.execute(
            "INSERT INTO publications (series, publication, cut, published_at, published_by, why, manifest, "
            "definitions, collected_at, stats) VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s)",
            (
                SERIES,
                each.publication,
                each.cut,
                each.published_at,
                each.by,
                each.why,
                each.manifest,
                dict(each.definitions),
                each.collected_at,
                json.dumps(dict(each.stats)),
            ),
        )
    pointer = world.pointer
    generation = (0, pointer.generation) if layout.is_by_store else (pointer.generation, None)
    session.execute(
        "UPDATE publications SET current = %s, current_cut = %s, current_manifest = %s, current_generation = %s, "
        "served_generation = %s, current_definitions = %s WHERE series = %s",
        (pointer.publication, pointer.cut, pointer.manifest, *generation, dict(pointer.definitions), SERIES),
    )
