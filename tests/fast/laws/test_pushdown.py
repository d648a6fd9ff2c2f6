"""Bounds decide how much is read and never what is found: with and without them, every statement has the same rows."""

# ruff: noqa: S608 - statements of a test

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TypeVar

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from serving_layer.sql.results import SqlStateError
from serving_layer.sql.session import SqlLimits
from tests.support.examples import examples
from tests.support.pushdown import ReadingEverything, history
from tests.support.world_sql import AskingSql

SOME = settings(max_examples=examples(100), deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])
MANY = settings(max_examples=1000, deadline=None, phases=[Phase.explicit, Phase.generate])
LIMITS = SqlLimits(seconds=10)
DEPTH = 3
COUNTS = 6
TOO_LARGE = ("53200", "57014")
OPERATORS = ("=", "<", "<=", ">", ">=", "<>")
JOINS = ("join", "left join", "right join", "full join")
SETS = ("union all", "union", "except", "intersect", "except all", "intersect all")
ZONES = ("UTC", "Pacific/Kiritimati", "Pacific/Pago_Pago", "Europe/Bratislava")
UNITS = ("day", "week", "Month", "mons", "quarter", "years", "decade")
STORES = ("'0'", "'1'", "'00'", "'9'", "' 0'", "'0'::text", "'' || '0'", "null")
TIMES = (
    "'2026-03-27'",
    "'2026-03-29'",
    "'2026-03-30'",
    "date '2026-03-29'",
    "date '2026-03-28' + 1",
    "current_date - 6",
    "timestamp '2026-03-28 12:00'",
    "timestamptz '2026-03-28 20:00+00'",
    "'2026-03-29 23:00-05'",
    "'2026-03-29 05:00+14'",
    "'2026-3-28'",
    "'2026-03-28 11:00'",
    "now() - interval '5 days'",
    "date_trunc('week', date '2026-03-29')",
    "'infinity'",
    "null",
)
BASES = (
    "sales_day",
    "sales_day",
    "traffic_day",
    "(select store, day from metrics where metric = 'net_sales')",
    "(select store, start as day from sales_hour)",
    "(select store, start::date as day from sales_hour)",
    "(select * from sales_day)",
    "(select store, open_since as day from stores)",
    "(select store, happened_at as day from receipts)",
    "(select value as store, valid_from as day from store_attributes)",
    "(select * from (values ('0', date '2026-03-29'), ('1', null)) v(store, day))",
)


T = TypeVar("T")


class Writer:
    """Writes a statement whose every part has the columns `store` and `day`."""

    def __init__(self, data: st.DataObject) -> None:
        self._data, self._number, self._ctes = data, 0, list[str]()

    def one(self, of: Sequence[T]) -> T:
        return self._data.draw(st.sampled_from(of))

    def number(self, most: int) -> int:
        return self._data.draw(st.integers(0, most))

    def name(self) -> str:
        self._number += 1
        return f"q{self._number}"

    def statement(self) -> str:
        """Counts of several queries, and the rows of one, over the same WITH queries."""
        parts = []
        for _ in range(1 + self.number(1)):
            name = self.name()
            parts.append(f"{name} as ({self.query(DEPTH - self.number(1))})")
            self._ctes.append(name)
        counted = [self.query(DEPTH - self.number(1)) for _ in range(COUNTS)]
        shown = ", ".join(f"(select count(*) from ({each}) {self.name()})" for each in counted)
        rows = f"({self.query(1)}) {self.name()}"
        return f"with {', '.join(parts)} select * from (select {shown}) c left join {rows} on true"

    def query(self, depth: int) -> str:
        if depth == DEPTH:
            return self.one([self.filtered, self.joined])(depth)
        return self.one([self.filtered, self.joined, self.combined, self.around, self.named])(depth)

    def filtered(self, depth: int) -> str:
        alias = self.name()
        shown = self.one(["store, day", f"{alias}.store, {alias}.day", "distinct store, day", "store as store, day"])
        return f"select {shown} from {self.source(depth)} {alias} where {self.condition([alias], depth, is_alone=True)}"

    def combined(self, depth: int) -> str:
        kept = self.one(
            ["", "", *(f" order by store nulls last, day nulls last {some}" for some in ("limit 3", "offset 2"))]
        )
        return f"({self.query(depth + 1)}) {self.one(SETS)} ({self.query(depth + 1)}){kept}"

    def around(self, depth: int) -> str:
        inner, alias = self.query(depth + 1), self.name()
        return self.one(
            [
                f"select * from ({inner}) {alias} where {self.condition([alias], depth, is_alone=True)}",
                f"select store, {self.one(['max', 'min'])}(day) as day from ({inner}) {alias} group by store",
                f"select store, lag(day) over (partition by store order by day) as day from ({inner}) {alias}",
                f"select store, day from ({inner}) {alias} order by store nulls last, day nulls last limit 4",
            ]
        )

    def named(self, depth: int) -> str:
        name, alias = self.name(), self.name()
        where = self.condition([alias], depth, is_alone=True)
        body = f"select {alias}.store, {alias}.day from {name} {alias} where {where}"
        rest = self.one(["", f" union all select store, day from {name}"])
        return f"with {name} as ({self.query(depth + 1)}) {body}{rest}"

    def source(self, depth: int) -> str:
        if self._ctes and self.number(1):
            return self.one(self._ctes)
        return f"({self.query(depth + 1)})" if depth < DEPTH and self.number(3) == 0 else self.one(BASES)

    def joined(self, depth: int) -> str:
        names = [self.name() for _ in range(2 + self.number(1))]
        text = f"{self.source(depth)} {names[0]}"
        for place, name in enumerate(names[1:], start=1):
            source, join = f"{self.source(depth)} {name}", self.one(JOINS)
            before = self.one(names[:place])
            merged = f"{before}.store = {name}.store"
            if join == "full join":
                text += f" {join} {source} on {merged} and {before}.day = {name}.day"
                continue
            same = self.one([merged, f"{merged} and {name}.day = {before}.day", f"{name}.day = {before}.day"])
            more = self.one(["", "", f" and {self.condition(names[: place + 1], depth)}"])
            text += f" {join} {source} on {same}{more}"
        if self.number(3) == 0:
            text = f"({text})"
        elif self.number(3) == 0:
            other = self.name()
            text = f"stores {other} {self.one(JOINS[:3])} ({text}) on {other}.store = {names[0]}.store"
        one, other = self.one(names), self.one(names)
        where = self.one(["true", self.condition(names, depth)])
        return f"select {one}.store, {other}.day from {text} where {where}"

    def condition(self, names: Sequence[str], depth: int, *, is_alone: bool = False, within: int = 0) -> str:
        kind = self.number(9 if within < DEPTH else 6)
        if kind > 6:
            sides = [self.condition(names, depth, is_alone=is_alone, within=within + 1) for _ in range(2)]
            return self.one([f"({sides[0]} and {sides[1]})", f"({sides[0]} or {sides[1]})", f"not {sides[0]}"])
        name = self.one(names)
        column = self.one(["store", "day"])
        written = f"{self.one(['', f'{name}.'])}{column}" if is_alone else f"{name}.{column}"
        if kind == 6 and depth < DEPTH:
            inner, alias = self.query(depth + 1), self.name()
            exists = f"exists (select 1 from ({inner}) {alias} where {alias}.{column} = {name}.{column})"
            return self.one([exists, f"{written} in (select {column} from ({inner}) {alias})"])
        return self.of_store(written) if column == "store" else self.of_time(written)

    def of_store(self, column: str) -> str:
        listed = ", ".join(self.one(STORES) for _ in range(1 + self.number(2)))
        return self.one(
            [
                f"{column} {self.one(OPERATORS)} {self.one(STORES)}",
                f"{column} in ({listed})",
                f"{column} = any(array[{listed}]::text[])",
                f"{column} is {self.one(['', 'not '])}null",
            ]
        )

    def of_time(self, column: str) -> str:
        cut = self.one(
            [
                column,
                column,
                column,
                f"{column}::date",
                f"{column}::timestamptz",
                f"{column}::timestamp",
                f"date_trunc('{self.one(UNITS)}', {column})",
                f"({column}::timestamptz at time zone '{self.one(ZONES)}')::date",
            ]
        )
        one, other = self.one(TIMES), self.one(TIMES)
        return self.one(
            [
                f"{cut} {self.one(OPERATORS)} {one}",
                f"{one} {self.one(OPERATORS)} {cut}",
                f"{cut} between {one} and {other}",
                f"{cut} between symmetric {one} and {other}",
                f"{cut} in ({one}, {other})",
                f"({cut} = {one}) is not false",
            ]
        )


@pytest.fixture(scope="module")
def servers() -> Iterator[tuple[AskingSql, AskingSql]]:
    world = history()
    with AskingSql(world, LIMITS) as sql, ReadingEverything(world, LIMITS) as everything:
        yield sql, everything


def refuse_difference(servers: tuple[AskingSql, AskingSql], data: st.DataObject) -> None:
    statement, zone = Writer(data).statement(), data.draw(st.sampled_from(ZONES))
    found = [_found(sql, statement, zone) for sql in servers]

    is_refused = isinstance(found[1], SqlStateError)  # what is not read cannot be refused
    is_too_large = isinstance(found[0], SqlStateError) and found[0].code in TOO_LARGE
    assert is_refused or is_too_large or found[0] == found[1], (zone, statement)


def _found(sql: AskingSql, statement: str, zone: str) -> "Counter[tuple[object, ...]] | SqlStateError":
    try:
        sql.answer(f"set timezone = '{zone}'")  # may wait in vain for a statement before it that was cancelled
        return Counter(sql.rows(statement))
    except SqlStateError as error:
        return error


@SOME
@given(data=st.data())
def test_a_statement_finds_the_same_whatever_is_read(servers: tuple[AskingSql, AskingSql], data: st.DataObject) -> None:
    refuse_difference(servers, data)


@pytest.mark.nightly
@MANY
@given(data=st.data())
def test_thousands_of_statements_find_the_same_whatever_is_read(
    servers: tuple[AskingSql, AskingSql], data: st.DataObject
) -> None:
    refuse_difference(servers, data)
