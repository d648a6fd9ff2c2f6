"""Unmodified clients read Galatea: psql, psycopg, JDBC, SQLAlchemy and pandas list tables, query, and query again."""

import json
import subprocess
import sys
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import psycopg
import pytest
import sqlalchemy as sa
from psycopg.rows import dict_row

from master_dataset.registry.stores import Store
from tests.support import World, receipt
from tests.support.jdbc import Jdbc, jdbc, rows
from tests.support.sql_server import HOST, PATIENCE_SECONDS, PSQL, PSQL_NEWER, RunningServer, running_server
from tests.support.world_sql import AskingSql

TOTALS = {date(2026, 3, 1): Decimal("2.22"), date(2026, 3, 2): Decimal("4.44")}
"""Of the tenant `acme`, by business day."""
SUPPORT = Path(__file__).parents[1] / "support"
INSTALL_SECONDS = 1800

UNIQUE_AND_APPROXIMATE = (False, False)


@pytest.fixture(scope="module")
def world() -> World:
    world = World(Store(id="1", timezone="UTC", tenant="acme"), Store(id="2", timezone="UTC", tenant="beta"))
    for number in range(6):
        day, store = 1 + number // 3, "2" if number % 3 == 2 else "1"
        minor = {"1": 111, "2": 999_999}[store] * day
        at = f"2026-03-0{day}T09:0{number}:00Z"
        world.receive(receipt(at, minor=minor, number=number, store=store), at)
    world.rebuild("2026-03-02T00:00:00Z")
    world.pass_time("2026-03-03T12:00:00Z")
    return world


@pytest.fixture(scope="module")
def server(world: World) -> Iterator[RunningServer]:
    with AskingSql(world) as engine, running_server(sessions=engine.sessions.open) as running:
        yield running


@pytest.fixture(scope="module")
def key(server: RunningServer) -> str:
    return server.keys.make("acme")


@pytest.fixture(scope="module")
def java() -> Iterator[Jdbc]:
    with jdbc() as running:
        yield running


@pytest.fixture
def connected(java: Jdbc, server: RunningServer, key: str) -> Iterator[Any]:
    connection = java.connect(server.port, "acme", key)
    yield connection
    connection.close()


@pytest.fixture
def engine(server: RunningServer, key: str) -> Iterator[sa.Engine]:
    url = sa.URL.create("postgresql+psycopg", "acme", key, HOST, server.port, "galatea")
    engine = sa.create_engine(url)
    yield engine
    engine.dispose()


def psql(server: RunningServer, key: str, *commands: str, program: object = PSQL) -> str:
    words = [word for command in commands for word in ("-c", command)]
    where = ["-h", HOST, "-p", str(server.port), "-U", "acme", "-d", "galatea"]
    done = subprocess.run(
        [str(program), "-X", "-v", "ON_ERROR_STOP=1", *where, *words],
        env={"PGPASSWORD": key, "LC_ALL": "C.UTF-8", "PAGER": "cat"},
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("program", [PSQL, PSQL_NEWER], ids=["psql 16", "psql 18"])
def test_psql_lists_tables_describes_one_and_queries(server: RunningServer, key: str, program: object) -> None:
    listed = psql(server, key, r"\d", r"\dt", r"\l", r"\dn", r"\du", r"\df", r"\dx", program=program)
    described = psql(server, key, r"\d sales_day", r"\d+ sales_day", program=program)
    summed = psql(server, key, "select day, sum(net_sales) from sales_day group by day order by day", program=program)

    assert all(name in listed for name in ("sales_15m", "sales_hour", "sales_day", "stores", "products", "receipts"))
    assert "net_sales" in described
    assert [line.split("|")[1].strip() for line in summed.splitlines()[2:4]] == ["2.22", "4.44"]


def test_psycopg_reads_with_parameters_and_refreshes(server: RunningServer, key: str) -> None:
    query = (
        "select day, sum(net_sales) as total from sales_day where store = any(%s) and day >= %s group by 1 order by 1"
    )
    with server.connect("acme", key) as connection:
        for is_binary in (False, True):
            for _ in range(6):  # from the fifth on, the statement is a prepared one
                cursor = connection.cursor(binary=is_binary, row_factory=dict_row)
                found = cursor.execute(query, (["1", "2"], date(2026, 1, 1))).fetchall()
                assert {row["day"]: row["total"] for row in found} == TOTALS


def test_a_server_side_cursor_and_a_transaction_are_of_one_snapshot(
    server: RunningServer, key: str, world: World
) -> None:
    with server.connect("acme", key, autocommit=False) as connection:
        before = connection.execute("select sum(receipts) from sales_day").fetchone()
        world.begin_micro_batch()
        world.receive(receipt("2026-03-02T20:00:00Z", minor=0, number=99, store="1"), "2026-03-03T12:00:01Z")
        inside = connection.execute("select sum(receipts) from sales_day").fetchone()
        connection.commit()
        after = connection.execute("select sum(receipts) from sales_day").fetchone()

    assert before == inside == (Decimal(4),)
    assert after == (Decimal(5),)


def test_another_tenants_rows_are_in_no_table(server: RunningServer, key: str) -> None:
    with server.connect("acme", key) as connection:
        for table in ("sales_15m", "sales_hour", "sales_day", "stores", "receipts", "metrics"):
            found = connection.execute(f"select distinct store from {table}").fetchall()  # noqa: S608 - of ours
            assert found == [("1",)], table


def test_jdbc_reads_the_catalog(connected: Any) -> None:
    catalog = connected.getMetaData()
    tables = {each["TABLE_NAME"] for each in rows(catalog.getTables(None, "public", "%", None))}
    columns = {
        each["COLUMN_NAME"]: each["TYPE_NAME"] for each in rows(catalog.getColumns(None, "public", "sales_day", "%"))
    }

    assert {"sales_day", "stores", "metrics"} <= tables
    assert columns["day"] == "date"
    assert columns["net_sales"] == "numeric"
    assert [each["TABLE_SCHEM"] for each in rows(catalog.getSchemas())].count("public") == 1
    for answer in (
        catalog.getPrimaryKeys(None, "public", "stores"),
        catalog.getIndexInfo(None, "public", "stores", *UNIQUE_AND_APPROXIMATE),
        catalog.getImportedKeys(None, "public", "sales_day"),
        catalog.getFunctions(None, "public", "%"),
        catalog.getTypeInfo(),
    ):
        rows(answer)
    assert connected.isValid(5)
    assert connected.getSchema() == "public"


def test_jdbc_reads_prepared_statements_in_binary_and_results_in_parts(java: Jdbc, connected: Any) -> None:
    statement = connected.prepareStatement(
        "select day, net_sales from sales_day where store = ? and day >= ? order by day"
    )
    for _ in range(8):  # from the fifth on, the driver asks for binary
        statement.setString(1, "1")
        statement.setDate(2, java.date("2026-01-01"))
        result = statement.executeQuery()
        found = {}
        while result.next():
            found[date.fromisoformat(result.getDate(1).toString())] = result.getBigDecimal(2)
        assert found == TOTALS

    connected.setAutoCommit(False)
    parts = connected.createStatement()
    parts.setFetchSize(7)
    assert len(rows(parts.executeQuery("select i from generate_series(1, 50) as numbers(i)"))) == 50
    connected.commit()


def test_sqlalchemy_reflects_tables_and_queries_them(engine: sa.Engine) -> None:
    inspector = sa.inspect(engine)
    assert "public" in inspector.get_schema_names()
    assert {"sales_day", "stores"} <= set(inspector.get_table_names())
    for read in (
        "get_pk_constraint",
        "get_foreign_keys",
        "get_indexes",
        "get_unique_constraints",
        "get_check_constraints",
    ):
        getattr(inspector, read)("sales_day")

    table = sa.Table("sales_day", sa.MetaData(), autoload_with=engine)
    assert isinstance(table.c.day.type, sa.Date)
    assert isinstance(table.c.net_sales.type, sa.Numeric)
    query = sa.select(table.c.day, sa.func.sum(table.c.net_sales)).group_by(table.c.day)
    with engine.connect() as connection:
        for _ in range(2):
            assert {row[0]: row[1] for row in connection.execute(query)} == TOTALS


def test_pandas_reads_a_frame(engine: sa.Engine) -> None:
    frame = pd.read_sql("select store, day, net_sales from sales_day order by day", engine)

    assert list(frame["store"]) == ["1", "1"]
    assert [round(each, 2) for each in frame["net_sales"]] == [2.22, 4.44]


@pytest.mark.nightly
def test_superset_lists_tables_charts_and_refreshes(server: RunningServer, key: str, tmp_path: Path) -> None:
    environment = tmp_path / "environment"
    for command in (
        [sys.executable, "-m", "venv", str(environment)],
        [str(environment / "bin" / "pip"), "install", "--quiet", "-r", str(SUPPORT / "superset.txt")],
    ):
        subprocess.run(command, check=True, timeout=INSTALL_SECONDS)
    url = sa.URL.create("postgresql+psycopg2", "acme", key, HOST, server.port, "galatea")
    uri = url.render_as_string(hide_password=False)
    done = subprocess.run(
        [str(environment / "bin" / "python"), str(SUPPORT / "superset_client.py"), str(tmp_path), uri],
        stdout=subprocess.PIPE,
        check=True,
        timeout=INSTALL_SECONDS,
    )
    seen = json.loads(done.stdout.splitlines()[-1])

    days = [["2026-03-01", "1", "2.22"], ["2026-03-02", "1", "4.44"]]
    assert {"sales_day", "stores", "metrics"} <= set(seen["tables"])
    assert (seen["columns"]["day"], seen["columns"]["net_sales"][:7]) == ("DATE", "NUMERIC")
    assert sorted(seen["chart"]) == sorted(seen["refreshed"]) == days
    assert seen["by_month"] == [["2026-03-01", "6.66"]]
    assert seen["values"] == ["1"]


def test_a_statement_that_writes_is_refused_with_its_sqlstate(server: RunningServer, key: str) -> None:
    with server.connect("acme", key) as connection:
        for statement in ("delete from sales_day", "create table t (n int)", "copy stores to '/tmp/x'"):
            with pytest.raises(psycopg.Error) as refused:
                connection.execute(statement)
            assert refused.value.sqlstate in {"25006", "42501", "0A000"}, statement
