"""Before the speed layer has published a state, statements that read nothing of it are answered."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from master_dataset.errors import CassandraUnavailableError
from master_dataset.registry.stores import Store
from serving_layer.sql.session import WAIT_FOR_SPEED
from serving_layer.store.readers import Position
from tests.support import World, receipt
from tests.support.world_sql import AskingSql
from tests.support.world_tables import WorldTables

WITHOUT_SPEED = (
    "select 1",
    "select table_name from information_schema.tables order by 1",
    "select relname from pg_catalog.pg_class where relkind = 'r' order by 1",
    "select count(*) from pg_settings",
    "select store from stores",
    "select name, value from store_attributes",
    "select sku, title from products",
    "select publication from publications",
    "select alert_id from alerts",
)
OF_SPEED = (
    "select * from sales_day",
    "select count(*) from traffic_15m",
    "select * from metrics",
    "select * from receipts",
    "select count(*) from stores join sales_hour using (store)",
)


@pytest.fixture
def world() -> World:
    world = World(Store(id="1", timezone="UTC"))
    world.receive(receipt("2026-03-06T09:00:00Z", minor=100), "2026-03-06T09:00:01Z")
    world.pointer = replace(world.pointer, generation=0)
    return world


@pytest.fixture
def sql(world: World) -> Iterator[AskingSql]:
    with AskingSql(world) as asking:
        yield asking


@pytest.mark.parametrize("statement", WITHOUT_SPEED)
def test_catalogs_and_lists_are_answered(sql: AskingSql, statement: str) -> None:
    before = sql.answer(statement)
    in_transaction = sql.open()
    sql.answer("begin", session=in_transaction)

    assert sql.answer(statement, session=in_transaction).rows == before.rows
    assert before.columns


@pytest.mark.parametrize("statement", OF_SPEED)
def test_other_tables_say_what_to_wait_for(sql: AskingSql, statement: str) -> None:
    refused = sql.refusal(statement)

    assert (refused.code, refused.hint) == ("57P03", WAIT_FOR_SPEED)
    assert "partial" not in refused.message + WAIT_FOR_SPEED
    assert "cannot be read yet" in refused.message


def test_their_columns_are_known_already(sql: AskingSql) -> None:
    prepared = sql.run(sql.open().prepare("select store, day from sales_day", ()))

    assert [each.name for each in prepared.columns or ()] == ["store", "day"]


def test_a_view_is_read_once_the_speed_layer_has_started(sql: AskingSql, world: World) -> None:
    assert sql.refusal("select store from sales_day").code == "57P03"

    world.pointer = replace(world.pointer, generation=1)

    assert sql.rows("select store from sales_day") == [("1",)]


class SpeedDown(WorldTables):
    """Positions of the speed layer cannot be read."""

    async def positions(self, generation: int) -> list[Position]:  # noqa: ARG002 - of any generation
        raise CassandraUnavailableError("Cassandra does not respond.", do="Try again.")


def test_a_view_names_what_does_not_respond(world: World) -> None:
    world.pointer = replace(world.pointer, generation=1)
    with AskingSql(world, readers=SpeedDown(world).readers) as asking:
        assert asking.rows("select store from stores") == [("1",)]
        refused = asking.refusal("select * from sales_day")

    assert (refused.code, refused.message) == ("58000", "Cassandra does not respond.")
