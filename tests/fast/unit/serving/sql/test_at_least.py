"""`SET galatea.at_least`: the statements of a session contain what a token names."""

from tests.fast.unit.serving.test_at_least import AT, SALE, posted
from tests.support import World
from tests.support.world_sql import AskingSql

SALES = "select net_sales from sales_day where store = '1' and day = '2026-11-21'"


def test_statements_contain_what_was_set_or_fail_until_they_can() -> None:
    with AskingSql(World()) as sql:
        token = posted(sql.rest)
        sql.answer(f"set galatea.at_least = '{token}'")

        refused = sql.refusal(SALES)
        sql.rest.world.receive(SALE, AT)
        [(amount,)] = sql.rows(SALES)

        assert (refused.code, "does not contain" in refused.message) == ("57P03", True)
        assert float(amount) == 1.0
        assert sql.rows("show galatea.at_least") == [(token,)]
        sql.answer("reset galatea.at_least")
        assert sql.rows("show galatea.at_least") == [("",)]


def test_a_result_that_another_session_has_made_is_not_taken_for_one_that_contains_it() -> None:
    with AskingSql(World()) as sql:
        sql.rows(SALES)
        token = posted(sql.rest)
        other = sql.open()

        sql.answer(f"set galatea.at_least = '{token}'", session=other)

        assert sql.refusal(SALES, session=other).code == "57P03"
        assert sql.rows(SALES) == []


def test_a_transaction_reads_its_snapshot_once_so_it_is_set_before() -> None:
    with AskingSql(World()) as sql:
        token = posted(sql.rest)
        for statement in ("begin", SALES, f"set local galatea.at_least = '{token}'"):
            sql.answer(statement)

        assert sql.refusal(SALES).code == "25001"
        sql.rest.world.receive(SALE, AT)
        for statement in ("rollback", "begin", f"set local galatea.at_least = '{token}'"):
            sql.answer(statement)
        assert [float(amount) for (amount,) in sql.rows(SALES)] == [1.0]


def test_what_is_no_token_is_not_set() -> None:
    with AskingSql(World()) as sql:
        refused = sql.refusal("set galatea.at_least = 'nonsense'")

        assert (refused.code, refused.message) == ("22023", '"galatea.at_least" is no token of this interface.')
