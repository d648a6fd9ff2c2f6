"""Where the rows of a generation lie, and what a former release makes of one whose rows it would not find."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from random import Random
from types import SimpleNamespace
from typing import Any, cast

import pytest

from batch_layer.speed_span import SpeedPartition, SpeedSpan
from deploy.services.speed import begin, layout_to_begin
from master_dataset.errors import CassandraUnavailableError
from master_dataset.visits.visit import RULES
from serving_layer.tables import SpeedTables
from speed_layer import cassandra_batches
from speed_layer.micro_batch import MicroBatch
from tests.fast.laws.delivery.speed_law import TIMINGS
from tests.fast.laws.delivery.tables import Tables as MemoryTables
from tests.fast.laws.delivery.tables import in_memory
from tests.fast.model.facts import BEGUN, CODES, TOPIC
from tests.fast.model.tables import Tables
from tests.support.arrivals import Given, Stated, arrival, arrived
from views.control.generation import Generation, Generations, Reached
from views.control.publication import Pointer, PointerRow, Publication
from views.control.speed_layout import BY_VIEW, SpeedLayout, layout_of
from views.core.cells import WAITING
from views.registry import registered_views

DEFINITIONS = CODES[0].definitions
BY_STORE = SpeedLayout.for_stores(100)
NOON = datetime(2026, 3, 7, 12, tzinfo=UTC)


@pytest.fixture
def tables() -> Tables:
    found = Tables()
    PointerRow(found).begin(BEGUN)
    return found


def served(tables: Tables, layout: SpeedLayout) -> Generation:
    """A new generation that readers have been switched to."""
    generations = Generations(tables)
    begun = begin(generations, {}, DEFINITIONS, BEGUN, {}, layout=layout)
    assert generations.take_over(begun)
    return begun


def columns(tables: Tables) -> tuple[int, int | None]:
    return tables.pointer.current_generation, tables.pointer.served_generation


def former_pointer(tables: Tables) -> Pointer:
    """What a release reads that knows one column."""
    now = tables.pointer
    return Pointer(now.current, now.current_cut, now.current_manifest, now.current_generation, now.current_definitions)


def switched_by_former_release(tables: Tables, generation: int) -> None:
    """It changes one column and compares one."""
    now = tables.pointer
    tables.point((now.current, now.current_cut, now.current_manifest, generation, now.served_generation, DEFINITIONS))


def test_the_layout_of_a_generation_is_recorded_and_never_another() -> None:
    layout, definitions = SpeedLayout.recorded_in(BY_STORE.recorded_with(DEFINITIONS))

    assert (layout, definitions) == (BY_STORE, dict(DEFINITIONS))
    assert SpeedLayout.recorded_in(BY_VIEW.recorded_with(DEFINITIONS)) == (BY_VIEW, dict(DEFINITIONS))
    assert SpeedLayout.recorded_in(None) == (BY_VIEW, {})


@pytest.mark.parametrize("recorded", ["by store, 0 buckets", "by store, 16 buckets, by hour", "by tenant"])
def test_a_layout_of_a_newer_release_is_no_layout_to_read_and_a_definition_of_no_view(recorded: str) -> None:
    row = {**DEFINITIONS, "(layout)": recorded}

    assert SpeedLayout.recorded_in(row)[1] != dict(DEFINITIONS)
    with pytest.raises(CassandraUnavailableError, match="newer release"):
        SpeedLayout.to_read(7, row)


def test_a_generation_is_found_with_its_layout_and_the_definitions_of_its_views(tables: Tables) -> None:
    begun = begin(Generations(tables), {}, DEFINITIONS, BEGUN, {}, layout=BY_STORE)

    assert Generations(tables).find(begun.number) == begun
    assert layout_of(tables, begun.number) == BY_STORE
    assert layout_of(tables, begun.number + 1) == BY_VIEW


def test_a_former_release_takes_the_generation_for_one_of_other_views(tables: Tables) -> None:
    begun = begin(Generations(tables), {}, DEFINITIONS, BEGUN, {}, layout=BY_STORE)

    assert tables.generations[begun.number].definitions != dict(DEFINITIONS)


def test_to_a_former_release_no_generation_is_served(tables: Tables) -> None:
    begun = served(tables, BY_STORE)

    assert columns(tables) == (0, begun.number)
    assert former_pointer(tables).generation == 0
    assert PointerRow(tables).read().generation == begun.number


def test_a_former_release_sees_a_generation_in_its_own_layout(tables: Tables) -> None:
    served(tables, BY_STORE)
    begun = served(tables, BY_VIEW)

    assert columns(tables) == (begun.number, None)
    assert PointerRow(tables).read() == former_pointer(tables)


def test_a_generation_of_a_former_release_that_takes_over_is_read_and_replaced_again(tables: Tables) -> None:
    first = served(tables, BY_STORE)
    of_former = begin(Generations(tables), {}, DEFINITIONS, BEGUN, {})
    switched_by_former_release(tables, of_former.number)

    assert columns(tables) == (of_former.number, first.number)
    assert PointerRow(tables).read().generation == of_former.number
    again = served(tables, BY_STORE)
    assert columns(tables) == (0, again.number)


@pytest.mark.parametrize("before", [BY_VIEW, BY_STORE])
@pytest.mark.parametrize("after", [BY_VIEW, BY_STORE])
def test_a_publication_switches_from_every_layout_to_every_other(
    tables: Tables, before: SpeedLayout, after: SpeedLayout
) -> None:
    served(tables, before)
    pointer, new = PointerRow(tables), begin(Generations(tables), {}, DEFINITIONS, BEGUN, {}, layout=after)
    seen = pointer.read()

    published = pointer.publish(seen, Publication(1, BEGUN, "run", new.number, BEGUN, "me", "why"))

    assert published
    assert pointer.read().generation == new.number
    assert pointer.publication(1) == Publication(1, BEGUN, "run", new.number, BEGUN, "me", "why")
    assert columns(tables) == ((0, new.number) if after.is_by_store else (new.number, None))


@pytest.mark.parametrize("layout", [BY_VIEW, BY_STORE])
def test_whoever_saw_another_generation_does_not_switch(tables: Tables, layout: SpeedLayout) -> None:
    served(tables, layout)
    pointer = PointerRow(tables)
    seen = pointer.read()
    now = served(tables, layout)

    assert not pointer.publish(seen, Publication(1, BEGUN, "run", seen.generation, BEGUN, "me", "why"))
    assert not pointer.switch_generation(seen, seen.generation, DEFINITIONS)
    assert pointer.read().generation == now.number


def test_a_former_rebuild_leaves_the_generation_that_it_does_not_see(tables: Tables) -> None:
    begun, seen = served(tables, BY_STORE), former_pointer(tables)
    served_before = tables.pointer.served_generation
    tables.point((1, BEGUN, "run", seen.generation, served_before, DEFINITIONS))

    assert PointerRow(tables).read() == Pointer(1, BEGUN, "run", begun.number, DEFINITIONS)


def test_a_generation_takes_over_from_one_in_the_other_layout_only_when_it_has_read_as_far(tables: Tables) -> None:
    generations, old = Generations(tables), served(tables, BY_VIEW)
    generations.claims.claim(old.number, 0, {TOPIC: {0: 8}})
    generations.record(old.number, [Reached(TOPIC, 0, 8, BEGUN)])
    new = begin(generations, {}, DEFINITIONS, BEGUN, {}, layout=BY_STORE)

    generations.record(new.number, [Reached(TOPIC, 0, 7, BEGUN)])
    assert not generations.take_over(new)
    generations.record(new.number, [Reached(TOPIC, 0, 8, BEGUN)])
    assert generations.take_over(new)


OLD, BY_STORE_ONLY, NEW = (None, None), (True, None), (True, True)
"""What a process says that it reads: speed rows by store, and receipts in blocks."""


class Releases:
    """The rows of `process_releases`, and a registry of so many stores."""

    def __init__(self, *rows: tuple[str, tuple[bool | None, bool | None]]) -> None:
        self._rows = [
            SimpleNamespace(component=name, reads_by_store=by_store, reads_receipt_blocks=blocks)
            for name, (by_store, blocks) in rows
        ]

    def execute(self, _: str) -> list[Any]:
        return self._rows


@pytest.mark.parametrize(
    ("rows", "layout"),
    [
        ([("speed", NEW), ("api", NEW)], SpeedLayout(30, packs_receipts=True)),
        ([("sql", NEW)], SpeedLayout(30, packs_receipts=True)),
        ([("speed", NEW), ("sql", BY_STORE_ONLY), ("api", NEW)], SpeedLayout(30)),
        ([("speed", NEW), ("sql", OLD), ("api", NEW)], BY_VIEW),
        ([("speed", NEW), ("api", NEW), ("api", OLD)], BY_VIEW),
        ([("speed", NEW), ("archive", NEW)], BY_VIEW),  # the REST process may be of a release that records nothing
        ([], BY_VIEW),
    ],
)
def test_a_generation_begins_in_the_newest_layout_that_every_process_reads(
    monkeypatch: pytest.MonkeyPatch, rows: Sequence[tuple[str, tuple[bool | None, bool | None]]], layout: SpeedLayout
) -> None:
    session = cast("Any", Releases(*rows))
    registry = SimpleNamespace(stores=lambda: dict.fromkeys(map(str, range(300))))
    monkeypatch.setattr("deploy.services.speed.Registry", lambda _: registry)

    assert layout_to_begin(session, is_first=False) == layout
    assert layout_to_begin(session, is_first=True) == SpeedLayout(30, packs_receipts=True)


def test_first_deliveries_of_a_store_lie_in_one_bucket_of_about_ten_stores() -> None:
    layout = SpeedLayout.for_stores(10_000)
    filled = Counter(layout.place(f"store-{number}") for number in range(10_000))

    assert layout.buckets == 1_000
    assert set(filled) <= set(range(1_000))
    assert max(filled.values()) <= 25  # 1.1 million receipts of a day at 43,200 for each store
    assert SpeedLayout(1_000).place("store-7") == layout.place("store-7")
    assert SpeedLayout(1_000).place("Košice 1") == 766  # rows that were written are found by every later release
    assert BY_VIEW.place("store-7") == "store-7"
    assert [SpeedLayout.for_stores(number).buckets for number in (0, 80, 81, 100)] == [8, 8, 9, 10]


def rows_of(layout: SpeedLayout, seed: int) -> MemoryTables:
    """What micro-batches write, in that layout: events of several stores and views, some of them twice."""
    chance, tables = Random(seed), MemoryTables()
    generation = Generation(1, NOON, {}, {}, layout=layout)
    given: list[Given] = [(WAITING.name, 900, ["t"], [1])]
    with in_memory():
        for number in range(6):
            rows = []
            for each in range(20):
                identity, store = chance.randrange(60), str(chance.randrange(12))
                at = NOON + timedelta(seconds=7 * number)
                rows.append(arrival(f"{store}/{identity}", 20 * number + each, at, given, store=store))
            counter = MicroBatch(lambda: tables, Stated((), TIMINGS.oldest, RULES), TIMINGS, generation, number)
            list(counter(iter([arrived(rows)])))
    return tables


@pytest.mark.parametrize("seed", range(5))
def test_both_layouts_have_the_same_rows(seed: int) -> None:
    by_view, by_store = (rows_of(layout, seed) for layout in (BY_VIEW, BY_STORE))

    def cells(tables: MemoryTables, layout: SpeedLayout) -> list[str]:
        return sorted(repr(sorted(row.items())) for row in tables.of(layout.cells))

    def firsts(tables: MemoryTables, layout: SpeedLayout) -> set[tuple[Any, ...]]:
        names = ("topic", "day", "identity", "partition", "offset")
        return {tuple(row[name] for name in names) for row in tables.of(layout.first_deliveries)}

    assert cells(by_view, BY_VIEW) == cells(by_store, BY_STORE) != []
    assert firsts(by_view, BY_VIEW) == firsts(by_store, BY_STORE) != set()
    assert not by_store.of("speed_cells") + by_store.of("first_deliveries")
    assert not by_view.of("speed_cells_by_store") + by_view.of("first_deliveries_by_bucket")


def test_rows_of_a_store_are_written_together_although_they_come_view_by_view(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stores: list[list[str]] = []
    monkeypatch.setattr(cassandra_batches, "ROWS_AT_ONCE", 6)
    tables, generation = MemoryTables(), Generation(1, NOON, {}, {}, layout=BY_STORE)
    every = [view.name for view in registered_views() if view.name in {"sales", "sales_by_till"}]
    shapes = {view.name: view for view in registered_views()}
    write = tables.execute_async

    def noted(batch: Any) -> Any:
        stores.append([values[1] for statement, values in batch if statement.table == BY_STORE.cells])
        return write(batch)

    given: list[Given] = [
        (name, 900, ["EUR" for _ in shapes[name].dimensions], [1 for _ in shapes[name].columns]) for name in every
    ]
    monkeypatch.setattr(tables, "execute_async", noted)
    rows = [arrival(f"{store}", store, NOON, given, store=f"{store}") for store in range(6)]
    with in_memory():
        views = [shapes[name] for name in every]
        list(
            MicroBatch(lambda: tables, Stated(views, TIMINGS.oldest, RULES), TIMINGS, generation, 0)(
                iter([arrived(rows)])
            )
        )

    assert [own for own in stores if own] == [["0", "0", "1", "1", "2", "2"], ["3", "3", "4", "4", "5", "5"]]


class Answers:
    """An asynchronous session, or a session: notes what it is asked, and knows the definitions of generations."""

    def __init__(self, **definitions: dict[str, str]) -> None:
        self.definitions = {int(name.removeprefix("g")): own for name, own in definitions.items()}
        self.asked: list[str] = []

    def prepare(self, query: str) -> Any:
        return SimpleNamespace(text=query, fetch_size=0)

    async def rows(self, statement: Any, *values: Any) -> list[tuple[Any, ...]]:
        self.asked.append(statement.text)
        if statement.text.startswith("SELECT definitions"):
            return [(self.definitions[values[0]],)] if values[0] in self.definitions else []
        return []

    def execute(self, statement: Any, values: Sequence[Any] = ()) -> Any:
        text = statement if isinstance(statement, str) else statement.text
        self.asked.append(text)
        if text.startswith("SELECT definitions"):
            found = self.definitions.get(values[0])
            return SimpleNamespace(one=lambda: None if found is None else SimpleNamespace(definitions=found))
        day = SimpleNamespace(date=lambda: date(2026, 3, 7))
        return [SimpleNamespace(view_name="sales", store="1", received_day=day, generation=7)]


@pytest.mark.parametrize(
    ("recorded", "table"),
    [(BY_VIEW.recorded_with({}), "speed_cells"), (BY_STORE.recorded_with({}), "speed_cells_by_store")],
)
def test_answers_read_the_table_of_their_generation_and_ask_once_which_it_is(
    recorded: dict[str, str], table: str
) -> None:
    session = Answers(g7=recorded)
    speed = SpeedTables(cast("Any", session))

    async def read() -> None:
        await speed.rows("sales", "1", NOON.date(), 7, NOON)
        await speed.rows_of("sales", ["1", "2"], NOON.date(), 7, NOON)

    asyncio.run(read())

    own = [query for query in session.asked if "FROM speed_cells" in query]
    assert len(own) == 2
    assert all(f"FROM {table} WHERE" in query for query in own)
    assert len(session.asked) == 3


def test_a_generation_of_which_nothing_is_known_is_refused_and_looked_up_again() -> None:
    session = Answers()
    speed = SpeedTables(cast("Any", session))

    async def read() -> None:
        with pytest.raises(CassandraUnavailableError, match="generation 7"):
            await speed.rows("sales", "1", NOON.date(), 7, NOON)
        session.definitions[7] = BY_STORE.recorded_with({})
        await speed.rows("sales", "1", NOON.date(), 7, NOON)

    asyncio.run(read())

    tables = [query.partition(" FROM ")[2].split()[0] for query in session.asked]
    assert tables == ["generations", "generations", "speed_cells_by_store"]


def test_rows_that_this_release_would_not_find_are_refused() -> None:
    session = Answers(g7={"(layout)": "by tenant"})

    with pytest.raises(CassandraUnavailableError):
        asyncio.run(SpeedTables(cast("Any", session)).rows("sales", "1", NOON.date(), 7, NOON))


def test_a_verification_looks_for_every_view_where_the_key_does_not_say_which_there_are() -> None:
    day, names = NOON.date(), [*(view.name for view in registered_views()), WAITING.name]
    former, own = Answers(g7=BY_VIEW.recorded_with({})), Answers(g7=BY_STORE.recorded_with({}))

    def partitions(session: Answers) -> list[SpeedPartition]:
        span = SpeedSpan(lambda: cast("Any", session), 7, NOON, NOON + timedelta(hours=1))
        return span.partitions()

    assert partitions(former) == [SpeedPartition("sales", "1", day)]
    assert partitions(own) == [SpeedPartition(name, "1", day) for name in names]
    assert "SELECT DISTINCT view_name, store, received_day, generation FROM speed_cells" in former.asked
    assert "SELECT DISTINCT store, received_day, generation FROM speed_cells_by_store" in own.asked
