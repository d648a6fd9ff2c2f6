"""Settings that a transaction changes: as PostgreSQL keeps them or takes them back."""

import pytest

from serving_layer.sql.results import SqlStateError
from serving_layer.sql.settings import MOST_SAVEPOINTS, TIMEZONE, SessionSettings
from tests.support import World
from tests.support.world_sql import AskingSql

TOKYO, PARIS = "Asia/Tokyo", "Europe/Paris"


@pytest.mark.parametrize(
    ("statements", "zone"),
    [
        (["begin", f"set local timezone to '{TOKYO}'"], TOKYO),
        (["begin", f"set local timezone to '{TOKYO}'", "commit"], "UTC"),
        (["begin", f"set local time zone '{TOKYO}'", "rollback"], "UTC"),
        (["begin", f"set timezone to '{TOKYO}'", "rollback"], "UTC"),
        (["begin", f"set timezone to '{TOKYO}'", "commit"], TOKYO),
        (["begin", f"set timezone to '{PARIS}'", f"set local timezone to '{TOKYO}'", "commit"], PARIS),
        (["begin", f"set local timezone to '{TOKYO}'", f"set timezone to '{PARIS}'", "commit"], PARIS),
        ([f"set local timezone to '{TOKYO}'"], "UTC"),
        ([f"set timezone to '{TOKYO}'", "rollback"], TOKYO),
        (["begin", "savepoint a", f"set timezone to '{TOKYO}'", "rollback to a"], "UTC"),
        (["begin", f"set timezone to '{PARIS}'", "savepoint a", f"set timezone to '{TOKYO}'", "rollback to a"], PARIS),
        (["begin", "savepoint a", f"set timezone to '{TOKYO}'", "savepoint b", "rollback to b", "commit"], TOKYO),
        (["begin", f"set timezone to '{TOKYO}'", "discard all"], "UTC"),
    ],
)
def test_a_transaction_keeps_or_takes_back_its_settings(statements: list[str], zone: str) -> None:
    with AskingSql(World()) as sql:
        session = sql.open()
        for statement in statements:
            sql.run(session.execute(statement))

        assert sql.rows("show timezone", session=session) == [(zone,)]


def test_a_statement_that_fails_takes_the_settings_of_its_transaction_with_it() -> None:
    with AskingSql(World()) as sql:
        session = sql.open()
        for statement in ("begin", f"set timezone to '{TOKYO}'"):
            sql.run(session.execute(statement))
        sql.refusal("select no_such_column", session=session)
        sql.run(session.execute("commit"))

        assert sql.rows("show timezone", session=session) == [("UTC",)]


def test_a_savepoint_that_does_not_exist_is_named() -> None:
    with AskingSql(World()) as sql:
        for statement in ("rollback to b", "release b", "release a"):
            session = sql.open()
            for each in ("begin", "savepoint a", "savepoint b", "release a"):
                sql.run(session.execute(each))

            assert sql.refusal(statement, session=session).code == "3B001"
            assert session.transaction == "failed"


def test_a_transaction_has_so_many_savepoints_and_those_that_are_released_do_not_count() -> None:
    settings = SessionSettings("default")
    settings.begin()
    for _ in range(3):
        for number in range(MOST_SAVEPOINTS):
            settings.savepoint(f"S{number}")
        settings.release("S0")
    for number in range(MOST_SAVEPOINTS):
        settings.savepoint(f"S{number}")

    with pytest.raises(SqlStateError, match="at most 1,000 savepoints"):
        settings.savepoint("ONE_MORE")


@pytest.mark.parametrize(
    ("written", "zone"),
    [
        ("UTC+3", "Etc/GMT+3"),
        ("GMT-3", "Etc/GMT-3"),
        ("+3", "Etc/GMT-3"),
        ("3", "Etc/GMT-3"),
        ("-7", "Etc/GMT+7"),
        ("UTC+0", "UTC"),
    ],
)
def test_an_offset_counts_to_the_east_and_after_a_name_to_the_west(written: str, zone: str) -> None:
    settings = SessionSettings("default")

    settings.set(TIMEZONE, written)

    assert settings.get(TIMEZONE) == zone
