"""A World as the tables that the serving layer reads."""

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime

from cassandra import InvalidRequest

from master_dataset.registry.stores import Store
from master_dataset.sources.pos_transactions import POS_TRANSACTIONS
from serving_layer.admin.ledger import BlockKey, Ledger, LedgerBlock
from serving_layer.admin.publications import RecomputeRecord
from serving_layer.store.readers import (
    Claim,
    GenerationProgress,
    Position,
    PublicationEntry,
    RawReceipt,
    RawReceiptPage,
    Readers,
    ReceiptPlace,
    SpeedBlock,
    StoreProgress,
    receipts_on_page,
)
from tests.support.world import World
from views.control.publication import Pointer
from views.core.cut import month_of
from views.core.day_cells import DayParts


class WorldProgress(StoreProgress):
    """Its mark counts deliveries: in a World, several reads may be one micro-batch, which is complete each time."""

    @property
    def micro_batch(self) -> int:
        return 0


class WorldTables:
    """Every reader in one, so that a test can pass it around."""

    def __init__(self, world: World) -> None:
        self.world = world

    @property
    def readers(self) -> Readers:
        """This object in every role."""
        return Readers(self, self, self, WorldStores(self.world), self)

    async def pointer(self) -> Pointer:
        return self.world.pointer

    async def manifest(self, name: str) -> Mapping[tuple[str, date], str]:
        return self.world.manifests[name]

    async def entry(self, number: int) -> PublicationEntry | None:
        return next((each for each in self.world.history if each.publication == number), None)

    async def history(self, before: int, limit: int) -> Sequence[PublicationEntry]:
        return [each for each in self.world.history if each.publication < before][:limit]

    async def stores_of(self, run: str, view: str, month: date) -> Mapping[date, frozenset[str]]:
        days = self.world.run_days[run, view]
        return {day: stores for day, stores in days.items() if month_of(day) == month}

    async def blocks(self, view: str, store: str, run: str, days: Sequence[date]) -> Mapping[date, str]:
        found = {day: self.world.blocks.get((view, store, run, day)) for day in days}
        return {day: block for day, block in found.items() if block is not None}

    async def day_parts(self, run: str, view: str) -> Mapping[date, DayParts]:
        return self.world.day_parts(run, view)

    async def day_cells(self, run: str, view: str, day: date) -> Mapping[str, bytes]:
        return self.world.day_blocks(run, view, day)

    async def positions(self, generation: int) -> Sequence[Position]:
        at = Position(POS_TRANSACTIONS.topic, 0, self.world.sent, self.world.speed_as_of)
        return [at] if generation else []

    async def progress(self, generation: int) -> GenerationProgress | None:
        assert generation == self.world.pointer.generation
        stores = {
            store: WorldProgress(len(deliveries), max(each.received_at for each in deliveries))
            for store, deliveries in self.world.deliveries.items()
        }
        return GenerationProgress(stores, 0, self.world.micro_batch)

    async def read_through(self) -> datetime | None:
        return self.world.speed_as_of

    async def claim(self, generation: int) -> Claim | None:
        return Claim(self.world.micro_batch, {POS_TRANSACTIONS.topic: {0: self.world.sent}}) if generation else None

    async def rows(
        self, view: str, store: str, received_day: date, generation: int, cut: datetime
    ) -> Sequence[SpeedBlock]:
        assert generation == self.world.pointer.generation
        found = [row for name, row in self.world.speed_blocks(store) if name == view]
        return [row for row in found if row.epoch >= cut and row.epoch.astimezone(UTC).date() == received_day]

    async def rows_of(
        self, view: str, stores: Sequence[str], received_day: date, generation: int, cut: datetime
    ) -> Mapping[str, Sequence[SpeedBlock]]:
        found = {store: await self.rows(view, store, received_day, generation, cut) for store in stores}
        return {store: rows for store, rows in found.items() if rows}

    async def receipts(self, store: str, day: date, after: ReceiptPlace | None, limit: int) -> RawReceiptPage:
        places = {
            ReceiptPlace(each.event.happened_at, each.event.payload.till, each.event.payload.transaction_id): each
            for each in reversed(self.world.of(store))  # so that the first delivery stays
            if each.event.day == day and each.event.topic == POS_TRANSACTIONS.topic
        }

        def rank(at: ReceiptPlace) -> tuple[float, str, str]:
            return -at.happened_at.timestamp(), at.till, at.transaction_id

        behind = sorted((at for at in places if after is None or rank(at) > rank(after)), key=rank)
        count = receipts_on_page([len(places[at].value) for at in behind], limit)
        shown = [RawReceipt(at, places[at].received_at, places[at].value.decode()) for at in behind[:count]]
        return RawReceiptPage(shown, has_more=count < len(behind))

    async def ledger(self, subject: str) -> Ledger | None:
        return self.world.ledgers.get(subject)

    async def ledger_blocks(
        self, lines: str, view: str, store: str | None, start: BlockKey, limit: int
    ) -> Sequence[LedgerBlock]:
        blocks = self.world.corrections.get((lines, view), {})
        found = sorted(place for place in blocks if place >= start and store in (None, place[0]))
        return [LedgerBlock(*place, blocks[place]) for place in found[:limit]]

    async def recompute(self, id_: str) -> RecomputeRecord | None:
        if not id_:
            raise InvalidRequest("Key may not be empty")  # as Cassandra does
        return self.world.recomputes.get(id_)

    async def newest(self, limit: int) -> Sequence[RecomputeRecord]:
        records = sorted(self.world.recomputes.values(), key=lambda each: (str(each.asked_at), each.id), reverse=True)
        return records[:limit]

    async def archived(self, topic: str) -> Sequence[Position]:
        return [Position(topic, 0, 0, self.world.speed_as_of)]


class WorldStores:
    """The registry, whose method has the same name as the World's own attribute would."""

    def __init__(self, world: World) -> None:
        self.world = world

    async def version(self) -> str:
        return str(len(self.world.stores))

    async def stores(self) -> Sequence[Store]:
        return list(self.world.stores.values())
