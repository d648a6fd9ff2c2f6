"""Functions in FROM, and those about names, as the query editors of BI tools use them."""

from collections.abc import Iterator

import pytest

from master_dataset.registry.stores import Store
from tests.support import World
from tests.support.world_sql import AskingSql


@pytest.fixture(scope="module")
def asking() -> Iterator[AskingSql]:
    with AskingSql(World(Store(id="1", timezone="UTC"))) as asking:
        yield asking


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("select i from generate_series(1, 3) as i", [(1,), (2,), (3,)]),
        ("select n from generate_series(1, 2) as g(n)", [(1,), (2,)]),
        ("select u from unnest(array[4, 5]) as u", [(4,), (5,)]),
        ("select * from string_to_array('a,b', ',') as s", [(["a", "b"],)]),
        ("select s[i] from generate_series(1, 2) as i, string_to_array('a,b', ',') s", [("a",), ("b",)]),
        ("select store from stores, generate_series(1, 2) as n where n > 1", [("1",)]),
        ("""select quote_ident('sales_day'), quote_ident('Käse "x"')""", [("sales_day", '"Käse ""x"""')]),
        ("select (parse_ident('public.sales_day'))[2]", [("sales_day",)]),
        (
            "select (information_schema._pg_expandarray(array[7, 8])).n, (_pg_expandarray(array[7, 8])).x",
            [(1, 7), (2, 8)],
        ),
        ("select count(*) from pg_available_extensions() as e(name, version, comment)", [(0,)]),
        ("select count(*) > 0 from pg_get_keywords() where word <> all('{limit}'::text[])", [(True,)]),
        ("select 'pg_catalog.array_in'::regproc", [("array_in",)]),
        ("select x from (select pg_partition_ancestors(5) as x union all values (7)) t", [(7,)]),
    ],
)
def test_they_give_what_postgresql_gives(asking: AskingSql, sql: str, rows: list[tuple[object, ...]]) -> None:
    assert list(asking.rows(sql)) == rows
