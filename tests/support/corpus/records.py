"""Records of any source for Hypothesis, made from what the source says of its fields: good ones, and damaged ones."""

import json
from datetime import datetime, timedelta, timezone
from typing import Any

from hypothesis import strategies as st

from master_dataset.fields import (
    Choice,
    Device,
    Field,
    Flag,
    Id,
    Instant,
    Label,
    Lines,
    Minor,
    Scaled,
    Sign,
    Text,
    Whole,
    Word,
)
from master_dataset.source import Source
from tests.support.corpus.case import written

Values = st.SearchStrategy[str]
"""Of JSON texts."""

SCRAPS = st.sampled_from(
    [
        "0",
        "-0",
        "1.5",
        "-1",
        "1e2",
        "1e-9",
        "1e400",
        "null",
        "true",
        '""',
        '"1"',
        '"a\\"b"',
        '"\\\\"',
        '"\\u00e9"',
        "[]",
        "{}",
        '{"a":1,"a":1}',
        "NaN",
        "01",
        '"\\ud800"',
        '"2026-03-07T09:05:00Z"',
        '"2026-03-07T09:05:00"',
        "9223372036854775808",
    ]
)
TEXTS = st.text(max_size=8)
WINDOW = datetime.fromisoformat("2026-03-07T09:00:00Z")
AHEAD = st.sampled_from([0, 0, 0, 1, 60_000, 899_999, 900_000, -1, -3_600_000]) | st.integers(-4_000_000, 4_000_000)
OFFSETS = st.sampled_from([0, 60, -300, 345, 630])  # minutes; Bratislava, New York, Kathmandu, Lord Howe


def _instant(ahead: int, offset: int) -> str:
    there = timezone(timedelta(minutes=offset))
    return json.dumps((WINDOW + timedelta(milliseconds=ahead)).astimezone(there).isoformat())


def _whole(field: Whole) -> Values:
    return (st.sampled_from([field.least, field.most]) | st.integers(field.least, field.most)).map(str)


def _decimals(places: int) -> Values:
    return st.decimals(-50, 50, places=places, allow_nan=False).map(str)


def _lines(field: Lines) -> Values:
    return st.lists(st.builds(written, _objects(field.fields)), max_size=5).map(lambda each: f"[{','.join(each)}]")


OF_RULES = {"discount": st.sampled_from(["0", "0", "0", "1", "-1", "null"])}
"""By name, values that the rules between fields seldom refuse."""


def _objects(fields: Any) -> st.SearchStrategy[dict[str, str]]:
    made = {name: OF_RULES.get(name, values(field)) for name, field in fields.items()}
    needed = {name: each for name, each in made.items() if not fields[name].optional}
    return st.fixed_dictionaries(needed, optional={name: each for name, each in made.items() if name not in needed})


def values(field: Field | Lines) -> Values:
    """What the field takes, and null where it may be absent."""
    made = {
        Id: lambda _: st.sampled_from(["1", '"2"', "3"]) | TEXTS.filter(bool).map(json.dumps),
        Label: lambda _: st.sampled_from(['"a"', '"b"']) | TEXTS.filter(bool).map(json.dumps),
        Text: lambda _: TEXTS.map(json.dumps),
        Device: lambda _: st.binary(min_size=16, max_size=16).map(lambda each: json.dumps(each.hex())),
        Instant: lambda _: st.builds(_instant, AHEAD, OFFSETS),
        Word: lambda _: st.sampled_from(['"cash"', '"card"', '"gift_card_2"']),
        Choice: lambda choice: st.sampled_from(choice.words).map(json.dumps),
        Flag: lambda _: st.sampled_from(["true", "false"]),
        Sign: lambda _: st.sampled_from(["1", "-1"]),
        Whole: _whole,
        Minor: lambda _: st.integers(-10_000, 10_000).map(str),
        Scaled: lambda scaled: _decimals(min(scaled.decimals, 3)),
        Lines: _lines,
    }[type(field)](field)
    return made | st.just("null") if field.optional else made


def good(source: Source[Any]) -> st.SearchStrategy[bytes]:
    """Records of which every field is as it should be; rules between fields may still refuse some."""
    return _objects(source.fields).map(lambda fields: written(fields).encode())


def damaged(source: Source[Any]) -> st.SearchStrategy[bytes]:
    """Records with scraps in their fields, without some, with a key twice, or with a byte that is another one."""
    lines = [name for field in source.fields.values() if isinstance(field, Lines) for name in field.fields]
    names = st.sampled_from([*source.fields, *lines, "unknown", 'a"b', "\\"])
    scraps = st.dictionaries(names, SCRAPS, max_size=3)
    dropped = st.lists(names, max_size=1)
    fields = _objects(source.fields)
    return st.one_of(
        st.builds(
            lambda fields, put, drop: _written({k: v for k, v in (fields | put).items() if k not in drop}),
            fields,
            scraps,
            dropped,
        ),
        st.builds(
            lambda value, at, byte: value[:at] + byte + value[at + 1 :],
            good(source),
            st.integers(0, 400),
            st.binary(max_size=2),
        ),
        st.builds(
            lambda value, name, scrap: value[:-1] + f', "{name}": {scrap}}}'.encode(),
            good(source),
            names,
            SCRAPS,
        ),
    )


def anything(source: Source[Any]) -> st.SearchStrategy[bytes]:
    """Any bytes at all, mostly records."""
    return st.one_of(st.binary(max_size=200), good(source), damaged(source))


def _written(fields: dict[str, str]) -> bytes:
    return written(fields).encode()
