"""Nothing but a query is run, and a query reads and calls nothing but what a session is for."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from master_dataset.registry.stores import Store
from serving_layer.sql.permissions import ALLOWED, REACHES_OUT
from serving_layer.sql.sandbox import Limits, Sandbox
from tests.support import World, receipt
from tests.support.world_sql import AskingSql

REFUSED = (Path(__file__).parent / "refused.sql").read_text().splitlines()
CODES = {"42501", "0A000", "42601", "42883", "42P01", "42P02", "3F000", "42704", "55P02", "22023"}


@pytest.fixture(scope="module")
def sql() -> Iterator[AskingSql]:
    world = World(Store(id="1", timezone="UTC"))
    world.receive(receipt("2026-03-27T12:00:00Z", minor=100), "2026-03-27T12:00:01Z")
    with AskingSql(world) as asking:
        yield asking


@pytest.mark.parametrize("statement", REFUSED)
def test_a_statement_that_does_more_than_read_is_refused_by_name(sql: AskingSql, statement: str) -> None:
    refused = sql.refusal(statement)

    assert refused.code in CODES, (refused.code, refused.message)
    assert refused.hint or refused.code not in ("42501", "0A000")


def test_there_are_more_than_two_hundred_of_them_and_the_session_still_answers(sql: AskingSql) -> None:
    assert len(set(REFUSED)) > 200
    assert sql.rows("select store from stores") == [("1",)]


def test_no_function_both_reaches_out_and_is_allowed() -> None:
    assert not [name for name in ALLOWED if REACHES_OUT.fullmatch(name)]


OF_THE_SANDBOX = (
    "SELECT * FROM read_text('/etc/passwd')",
    "SELECT * FROM read_csv('/etc/passwd')",
    "SELECT * FROM glob('/*')",
    "COPY (SELECT 1) TO '/tmp/galatea_sandbox.csv'",
    "ATTACH '/tmp/galatea_sandbox.db'",
    "INSTALL httpfs",
    "LOAD httpfs",
    "SET memory_limit = '10GB'",
    "SET enable_external_access = true",
    "SET lock_configuration = false",
    "SELECT * FROM REFUSED",
)


@pytest.mark.parametrize("statement", OF_THE_SANDBOX)
def test_a_sandbox_reaches_nothing_even_if_nobody_looks_at_the_statement(statement: str) -> None:
    sandbox = Sandbox("UTC", Limits())
    try:
        with pytest.raises(Exception, match=r"disabled|locked|does not exist|not permitted"):
            sandbox.query(statement)
    finally:
        sandbox.close()
