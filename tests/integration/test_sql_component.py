"""The SQL component of a running stack: named in the status, equal to REST, open to the keys of its tenant alone."""

from contextlib import suppress
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import errors

from tests.integration.conftest import Stack, around_now
from tests.integration.test_lag import until
from tests.support import receipt
from tests.support.sql_server import HOST

STORE, TENANT = "asked in SQL", "bi"
QUERY = f"select day, net_sales, receipts, final from sales_day where store = '{STORE}' order by day"  # noqa: S608 - ours


@pytest.fixture(scope="module")
def component(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("sql")
    stores = folder / "stores.yaml"
    stores.write_text(f"stores: [{{id: {STORE}, timezone: UTC, tenant: {TENANT}}}]")
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    stack.run("stores", "load", str(stores))
    stack.ingest("pos_transactions", (receipt(now, minor=each, number=each, store=STORE) for each in (110, 5)))
    until(lambda: sold(stack) == 1.15)
    return next(each for each in stack.galatea("status")["components"] if each["name"] == "sql")


def sold(stack: Stack) -> float | None:
    body = stack.get("/v1/metrics/net_sales", store=STORE, grain="total", **around_now())
    value: float | None = body["series"][0]["points"][0]["value"]
    return value


def connect(component: dict[str, Any], user: str, password: str) -> "psycopg.Connection[Any]":
    return psycopg.connect(
        host=HOST,
        port=component["address"].split(":")[1],
        user=user,
        password=password,
        dbname="galatea",
        autocommit=True,
    )


def test_the_command_answers_what_rest_answers(stack: Stack, component: dict[str, Any]) -> None:
    answer = stack.galatea("sql", QUERY, "--tenant", TENANT)

    assert component["state"] == "running"
    assert component["address"] == f"{HOST}:{stack.settings.sql.port}"
    assert answer["columns"] == ["day", "net_sales", "receipts", "final"]
    assert [(row["net_sales"], row["receipts"]) for row in answer["rows"]] == [(1.15, 2)]
    assert (
        stack.run("sql", "select sum(net_sales) as total from sales_15m", "--tenant", TENANT, "--csv")
        == "total\n1.15\n"
    )


def test_a_key_opens_its_tenant_until_it_is_revoked(stack: Stack, component: dict[str, Any]) -> None:
    made = stack.galatea("keys", "create", "--tenant", TENANT, "--scope", "read")
    opened: list[psycopg.Connection[Any]] = []

    def opens() -> bool:
        with suppress(psycopg.OperationalError):  # a key is known within five seconds
            opened.append(connect(component, TENANT, made["key"]))
        return bool(opened)

    until(opens)
    with opened[0] as connection:
        assert connection.execute("select distinct store from sales_day").fetchall() == [(STORE,)]
        total = connection.execute("select sum(net_sales) from sales_day where store = %s", (STORE,)).fetchone()
        assert total == (Decimal("1.15"),)
        with pytest.raises(psycopg.OperationalError, match="not one of the tenant"):
            connect(component, "default", made["key"])

        stack.galatea("keys", "revoke", made["id"])

        def is_closed() -> bool:
            with suppress(errors.InvalidPassword, psycopg.OperationalError):
                connection.execute("select 1")
            return connection.closed

        until(is_closed)


def test_metrics_count_logins_and_statements(stack: Stack, component: dict[str, Any]) -> None:
    with pytest.raises(psycopg.OperationalError, match="not a valid API key"):
        connect(component, TENANT, "a guess")
    stack.galatea("sql", "select 1", "--tenant", TENANT)

    shown = stack.metrics(component["metrics"])
    assert 'galatea_sql_logins_total{sqlstate="28P01"}' in shown
    assert 'galatea_sql_statements_total{sqlstate="00000"}' in shown
    assert "galatea_sql_connections " in shown
    assert "a guess" not in (Path(stack.settings.home) / "logs" / "sql.log").read_text()
