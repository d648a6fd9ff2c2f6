"""No table shows a tenant anything of another one, nor whether there is anything.

Two deployments differ in what an owner has. Every table has rows of the owner, who sees its mark in them. A viewer
reads all tables in both, also for the names of the owner, and never sees the mark nor any difference.
"""

# ruff: noqa: S608 - statements of a test

from collections.abc import Iterator, Mapping

import pytest

from serving_layer.sql.results import SqlStateError
from tests.support.marked_tenants import DAY, MarkedTenant, deployment, world_of
from tests.support.world_sql import AskingSql

VIEWER = MarkedTenant("viewer99", minor=500, offset=0)
OWNER = MarkedTenant("canary77", minor=700, offset=1, money="KWD")
ANOTHER_OWNER = MarkedTenant("falcon88", minor=900, offset=1)
UNMARKED = {"public.publications": "how far the layers have read, which is one thing for all tenants"}
"""Tables of data whose rows belong to no tenant, each with the reason."""
NAMES: Mapping[str, str] = {
    "store": OWNER.store,
    "tenant": OWNER.tenant,
    "sku": OWNER.sku,
    "with_sku": OWNER.sku,
    "title": OWNER.title,
    "brand": OWNER.brand,
    "category": OWNER.category,
    "till": OWNER.till,
    "rule": OWNER.rule,
    "value": f"value-{OWNER.mark}",
}
"""Columns of texts that a statement may compare with a name that the owner has."""


def opened(owner: MarkedTenant) -> AskingSql:
    sql = AskingSql(world_of(VIEWER, owner))
    deployment(sql.rest, VIEWER, owner)
    return sql


@pytest.fixture(scope="module")
def sql() -> Iterator[AskingSql]:
    with opened(OWNER) as asking:
        yield asking


@pytest.fixture(scope="module")
def other_sql() -> Iterator[AskingSql]:
    with opened(ANOTHER_OWNER) as asking:
        yield asking


def tables_of(sql: AskingSql) -> Mapping[str, list[str]]:
    """Every table by schema and name, those of the catalogs too, with the columns of texts that are names."""
    tables = sql.sessions.sources.relations(sql.rest.world.stores).tables
    return {
        name: [column.name for column in table.columns if column.name in NAMES and str(column.type) == "string"]
        for name, table in tables.items()
    }


def answered(sql: AskingSql, statement: str, *parameters: str, tenant: str) -> str:
    """What a statement of a tenant gets: rows, or the error with its hint."""
    try:
        return str(sorted(map(str, sql.rows(statement, *parameters, tenant=tenant))))
    except SqlStateError as error:
        return f"{error.code} {error.message} {error.hint}"


def statements(sql: AskingSql) -> Iterator[tuple[str, tuple[str, ...]]]:
    """What the viewer asks: of every table all rows and those that have a name of the owner; and what is no table."""
    for table, columns in tables_of(sql).items():
        yield f"select * from {table}", ()
        if table.startswith("public.") and not table.endswith(("_15m", "_hour")):
            yield f"explain select * from {table}", ()
        for column in columns:
            yield f"select * from {table} where {column} = $1", (NAMES[column],)
    for store in (OWNER.store, OWNER.store[:-1]):
        yield f'select * from "{store}"', ()
        yield f'select "{store}" from stores', ()
        yield f"select {OWNER.group} from store_attributes", ()
    yield f"set timezone to '{OWNER.store}'", ()
    yield "select * from receipts where store = $1 and happened_at::date = $2", (OWNER.store, str(DAY))


def test_every_table_of_data_has_rows_in_which_the_owner_sees_its_mark(sql: AskingSql) -> None:
    tables = [table for table in tables_of(sql) if table.startswith("public.")]
    marked = {table for table in tables if OWNER.mark in answered(sql, f"select * from {table}", tenant=OWNER.tenant)}

    assert set(tables) - marked == set(UNMARKED)
    assert {column for columns in tables_of(sql).values() for column in columns} == set(NAMES)


def test_a_viewer_gets_the_same_answers_whatever_an_owner_has_and_never_sees_its_mark(
    sql: AskingSql, other_sql: AskingSql
) -> None:
    leaks, differences = [], []
    for statement, parameters in statements(sql):
        one, other = (answered(each, statement, *parameters, tenant=VIEWER.tenant) for each in (sql, other_sql))
        if OWNER.mark in one and OWNER.mark not in f"{statement} {parameters}":
            leaks.append((statement, one))
        if one != other:
            differences.append((statement, one, other))

    assert leaks == []
    assert differences == []


def test_rows_that_an_owner_has_read_are_not_shown_to_the_next_who_asks_the_same(sql: AskingSql) -> None:
    for table in (each for each in tables_of(sql) if each.startswith("public.")):
        statement = f"select * from {table}"
        answered(sql, statement, tenant=OWNER.tenant)

        assert OWNER.mark not in answered(sql, statement, tenant=VIEWER.tenant), table
