"""What is asked here and of a PostgreSQL 16 has the same answer, or is refused here by name."""

# ruff: noqa: S608, ISC004 - statements of a test

from collections.abc import Iterator, Sequence

import pytest

from master_dataset.registry.stores import Store
from tests.support import World
from tests.support.postgresql import Both, beside_postgresql


@pytest.fixture(scope="module")
def both() -> Iterator[Both]:
    world = World(Store(id="1", timezone="Europe/Bratislava"))
    world.pass_time("2026-03-06T10:00:00Z")
    with beside_postgresql(world) as connected:
        yield connected


def require_same(both: Both, statement: str, parameters: Sequence[object] | None = None) -> None:
    ours, theirs = both.answers(statement, parameters)

    assert ours == theirs, statement


SALES = (
    "(values ('a', 7::bigint, 2::bigint, 10.10::numeric(18,2), 1.5::float8), ('a', 20, 6, 0.05, 2.5), "
    "('b', 1, null, null, null), ('b', 9007199254740993, 3, 5.00, -1)) as s(store, units, receipts, sales, ratio)"
)
SUMS = [
    f"select sum(units) / sum(receipts) from {SALES}",
    f"select sum(units) / count(*) from {SALES}",
    f"select sum(receipts) / 7, 100 * sum(receipts) / sum(units), sum(receipts) % 4 from {SALES}",
    f"select store, sum(receipts) / sum(sum(receipts)) over () from {SALES} group by store order by 1",
    f"select store, round(100 * sum(receipts) / sum(sum(receipts)) over (), 2) from {SALES} group by store order by 1",
    f"select a / b from (select sum(receipts) a, count(*) b from {SALES}) q",
    f"with q as (select sum(receipts) a, sum(units) b from {SALES}) select a / b from q",
    f"select sum(units) filter (where store = 'a') / sum(receipts) filter (where store = 'a') from {SALES}",
    f"select sum(receipts) over (partition by store) / 2, sum(receipts) over w / 2 from {SALES} "
    "window w as (order by store) order by 1, 2",
    f"select sum(distinct receipts) / 2, sum(receipts) / nullif(sum(receipts), 0) from {SALES}",
    f"select count(*) / count(receipts), count(*) / 3, max(units) / 2 from {SALES}",
    f"select sum(sales) / 3, sum(ratio) / 3, sum(sales) / sum(receipts), avg(receipts) / 2 from {SALES}",
    f"select sum(units) + 1, -sum(units), sum(units)::bigint, sum(receipts)::int, sum(units)::text from {SALES}",
    "select sum(x) from (values (9223372036854775807), (9223372036854775807)) v(x)",
    "select sum(x) from (values (1), (2)) v(x) where false",
    f"select store, sum(units) from {SALES} group by store having sum(receipts) / 3 > 2.5 order by sum(units) / 7",
]


@pytest.mark.parametrize("statement", SUMS)
def test_a_sum_of_whole_numbers_is_divided_as_a_decimal(both: Both, statement: str) -> None:
    require_same(both, statement)


@pytest.mark.parametrize("place", ["($1,$2)", "($1, $2)", "($2,$1,3)"])
def test_parameters_need_no_space_between_them(both: Both, place: str) -> None:
    require_same(both, f"select count(*) from (values (1), (2), (4)) v(x) where x in {place}", (1, 2))


def test_texts_in_dollars_stay_texts(both: Both) -> None:
    require_same(both, "select $$it's$$ || $a$ $$ $a$ || $a1_$x$a1_$")
