"""Results that connections hold are bounded together, and those of one tenant leave room for others."""

import gc

from master_dataset.registry.stores import Store
from serving_layer.sql.session import SqlLimits
from tests.support import World
from tests.support.world_sql import AskingSql

LARGE = "select repeat('x', 100) || n from generate_series(1, 1000) g(n)"
SMALL = "select 1"
HELD = SqlLimits(held_bytes=1_000_000)
"""Room for three of the large results of one tenant, and as many of others."""


def asking() -> AskingSql:
    return AskingSql(World(Store(id="1", timezone="UTC"), Store(id="2", timezone="UTC", tenant="other")), HELD)


def test_cursors_of_one_tenant_take_at_most_half_and_what_is_closed_is_free_again() -> None:
    with asking() as sql:
        sessions = [sql.open() for _ in range(4)]
        for session in sessions[:3]:
            sql.answer(f"declare held cursor with hold for {LARGE}", session=session)

        refused = sql.refusal(f"declare held cursor with hold for {LARGE}", session=sessions[3])
        assert (refused.code, "Open results" in refused.message) == ("53200", True)
        assert refused.hint
        assert sql.rows(SMALL, session=sessions[3]) == [(1,)]
        assert len(sql.rows(LARGE, tenant="other")) == 1000

        sessions[0].close()
        assert len(sql.rows(LARGE, session=sessions[3])) == 1000


def test_results_of_all_tenants_are_bounded_together() -> None:
    with asking() as sql:
        held = [
            sql.rows(LARGE, tenant=tenant) for tenant in ("default", "default", "default", "other", "other", "other")
        ]

        assert sql.refusal(LARGE, tenant="third").code == "53200"
        del held[0]
        assert len(sql.rows(LARGE, tenant="third")) == 1000


def test_a_refused_result_is_free_at_once() -> None:
    gc.disable()
    try:
        with asking() as sql:
            for _ in range(3):
                assert sql.refusal(LARGE.replace("1000", "10000")).code == "53200"
            assert len(sql.rows(LARGE)) == 1000
    finally:
        gc.enable()


def test_rows_that_were_fetched_count_after_their_cursor_is_closed() -> None:
    with asking() as sql:
        held = []
        for _ in range(3):
            sql.answer("begin")
            sql.answer(f"declare c cursor for {LARGE}")
            held.append(sql.rows("fetch all from c"))
            sql.answer("close c")
            sql.answer("commit")

        assert sql.refusal(LARGE).code == "53200"
        held.clear()
        assert len(sql.rows(LARGE)) == 1000
