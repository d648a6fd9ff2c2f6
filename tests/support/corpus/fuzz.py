"""Random records of any source, fast enough for a million of them: mostly good, and odd in every way we know.

They are texts made from what the source says of its fields, so that every spelling of a value occurs, then mutated.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, time, timedelta, timezone
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa

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
from master_dataset.parsing.rows import HEADERS, INSTANT
from master_dataset.registry.stores import Currency, Terms
from master_dataset.registry.terms_history import TermsHistory
from master_dataset.source import Source

BEGIN = datetime(2026, 3, 7, 9, tzinfo=UTC)
BEGIN_US = int(BEGIN.timestamp()) * 1_000_000
HOUR_US = 3_600_000_000
ODDITIES: Mapping[str, list[str]] = json.loads(Path(__file__).with_name("oddities.json").read_text(encoding="utf-8"))
"""Cells as JSON texts, but for `texts`, `times` and `keys`, which are the texts themselves."""
LONG_NUMBERS = ("1" * 400, "0." + "0" * 400 + "1", "0." + "0" * 400)
LONG_TEXTS = tuple(
    unit * (limit // len(unit.encode()) + more)
    for unit in ("a", "\u00e9", "\U0001f34e")
    for limit in (16, 32, 64, 256)
    for more in (0, 1)
)
SCRAPS = (*(bytes([each]) for each in b'"\\0e.}{,[] :\0\xff\xc3'), b"\\\\", b'\\"', b"\xed\xa0\x80")
HEADERS_SENT: tuple[Any, ...] = (
    *(None, [], [("traceparent", b"00-1-2-01")], [("galatea-marker", b"")], [("schema", b"pos_transactions")]),
    *([("schema", b"nothing")], [("schema", None)], [("schema", b"\xff")], [("a", b"1"), ("galatea-marker", None)]),
)
SENSORS = frozenset({("a", "people_counts"), ("a", "wifi_sightings"), ("b", "people_counts"), ("b", "queue_events")})
TERMS = {
    "2": Terms(Currency("JPY", 0), "Asia/Tokyo"),
    "3": Terms(Currency("KWD", 3), "Asia/Kuwait", time(4, 30)),
    "4": Terms(Currency("EUR", 2), "Europe/Bratislava", time(5), SENSORS, frozenset({"a", "shoes"})),
    "5": Terms(Currency("CLF", 4), "America/St_Johns", time(23, 59, 59), frozenset({("b", "zone_presence")})),
}


def terms_of(store: str) -> Terms:
    """Currencies of 0, 2, 3 and 4 decimals, with sensors and zones or without."""
    return TERMS.get(store, Terms())


HISTORY = TermsHistory(TERMS)


def terms_until(_received_us: int) -> TermsHistory:
    """The same, at all times."""
    return HISTORY


class Fuzz:
    """Makes random records of a source, the same ones for the same seed. `odd`: how many cells of a thousand are."""

    def __init__(self, source: Source[Any], seed: str, odd: int = 25) -> None:
        self._source, self._chance, self._odd = source, Random(f"{source.topic} {seed}"), odd
        self._odd_texts = [*map(json.dumps, (*ODDITIES["texts"], *LONG_TEXTS)), *ODDITIES["raw_texts"]]

    def batches(self, number: int, size: int) -> Iterator[pa.RecordBatch]:
        """So many records, as archive and speed layer receive them, some of whose batches have no headers at all."""
        for first in range(0, number, size):
            yield self.batch(self.values(min(size, number - first)), first)

    def values(self, number: int) -> list[bytes | None]:
        """The values of so many records."""
        return [self._value() for _ in range(number)]

    def batch(self, values: list[bytes | None], first: int = 0) -> pa.RecordBatch:
        """These records of one batch."""
        chance, number = self._chance, len(values)
        keys = [chance.choice((b"1", b"2", b"3", b"4", b"5", None, b"001122334455")) for _ in values]
        headers = [chance.choice(HEADERS_SENT) if chance.random() < 0.1 else None for _ in values]
        received = [self._received_us() for _ in values]
        columns = {
            "key": pa.array(keys, pa.binary()),
            "value": pa.array(values, pa.binary()),
            "topic": pa.array([self._source.topic] * number, pa.string()),
            "partition": pa.array([0] * number, pa.int32()),
            "offset": pa.array(range(first, first + number), pa.int64()),
            "timestamp": pa.array(received, pa.int64()).cast(INSTANT),
            "headers": pa.array(headers, HEADERS) if chance.random() < 0.7 else pa.nulls(number, HEADERS),
        }
        return pa.RecordBatch.from_pydict(columns)

    def _received_us(self) -> int:
        """Some hours later; or when a record of a quarter of an hour is just from the future, or just not."""
        if self._chance.random() < 0.8:
            return BEGIN_US + 9 * HOUR_US
        return BEGIN_US + self._chance.randrange(20) * HOUR_US // 4 - HOUR_US + self._chance.choice((-1, 0, 1))

    def _value(self) -> bytes | None:
        text = self._object(self._source.fields, self._linked())
        return (
            self._mutated(text.encode(errors="surrogatepass"))
            if self._is_odd(5)
            else text.encode(errors="surrogatepass")
        )

    def _is_odd(self, times: float = 1.0) -> bool:
        return self._chance.random() * 1000 < self._odd * times

    def _linked(self) -> Mapping[str, str]:
        """Values that fit together, as rules between fields refuse almost all others."""
        chance = self._chance
        at = BEGIN + timedelta(minutes=15 * chance.randrange(20), seconds=chance.choice((0, 0, 0, 600)))
        before = at - timedelta(
            milliseconds=chance.choice((0, 1, 60_000, 600_000, 3_600_000, 14_400_000, 14_400_001, -1))
        )
        between = before + (at - before) / 2
        return {
            "happened_at": self._instant(at),
            "joined_at": self._instant(before),
            "entered_at": self._instant(before),
            "started_at": self._instant(before),
            "service_started_at": self._instant(between),
            "interval_ms": str(chance.choice((60_000, 300_000, 300_000, 900_000, 900_001))),
        }

    def _object(self, fields: Mapping[str, Any], linked: Mapping[str, str]) -> str:
        chance = self._chance
        pairs = []
        for name, field in fields.items():
            if (field.optional and chance.random() < 0.4) or self._is_odd(0.5):
                continue
            linked_value = linked.get(name) if chance.random() < 0.9 else None
            pairs.append((name, self._odd_cell(field) if self._is_odd() else linked_value or self._cell(field)))
        if self._is_odd(2):
            pairs.append(
                (chance.choice((*ODDITIES["keys"], *fields)), self._odd_cell(chance.choice([*fields.values()])))
            )
        if chance.random() < 0.2:
            chance.shuffle(pairs)
        space = chance.choice(("", "", " ", "\n\t", " \r\n")) if chance.random() < 0.3 else ""
        return "{" + ("," + space).join(f'{space}"{name}":{space}{text}' for name, text in pairs) + space + "}"

    def _cell(self, field: Field | Lines) -> str:
        chance = self._chance
        made: Mapping[type, Callable[[Any], str]] = {
            Id: lambda _: chance.choice(("1", "2", "3", '"1"', '"4"', '"5"', '"sim-1"', str(chance.randrange(10**9)))),
            Label: lambda _: f'"{chance.choice(("a", "b", "door", "Q1", "shoes"))}"',
            Device: lambda _: f'"{chance.getrandbits(128):032x}"',
            Word: lambda _: f'"{chance.choice(("cash", "card", "gift_2"))}"',
            Choice: lambda choice: f'"{chance.choice(choice.words)}"',
            Text: lambda _: json.dumps(chance.choice(ODDITIES["texts"][:14]), ensure_ascii=chance.random() < 0.3),
            Instant: lambda _: self._instant(BEGIN + timedelta(milliseconds=chance.randrange(4_000_000))),
            Flag: lambda _: chance.choice(("true", "false")),
            Sign: lambda _: chance.choice(("1", "-1")),
            Whole: lambda whole: str(chance.choice((whole.least, whole.most, chance.randint(whole.least, whole.most)))),
            Minor: lambda _: self._decimal(2),
            Scaled: lambda scaled: self._decimal(min(scaled.decimals, chance.choice((0, 2, 3)))),
            Lines: lambda lines: (
                "[" + ",".join(self._object(lines.fields, {}) for _ in range(chance.choice((0, 1, 2, 3, 5)))) + "]"
            ),
        }
        return made[type(field)](field)

    def _lines(self, lines: Lines, number: int) -> str:
        return "[" + ",".join(self._object(lines.fields, {}) for _ in range(number)) + "]"

    def _decimal(self, places: int) -> str:
        if self._chance.random() < 0.02:
            return self._chance.choice(ODDITIES["edges"])
        whole = self._chance.randrange(-200, 5000)
        text = f"{whole / 10**places:.{places}f}"
        return text.rstrip("0").rstrip(".") if self._chance.random() < 0.3 and "." in text else text

    def _instant(self, at: datetime) -> str:
        chance = self._chance
        there = at.astimezone(timezone(timedelta(minutes=chance.choice((0, 0, 60, -300, 345, 630, -1439)))))
        text = there.isoformat(timespec=chance.choice(("auto", "seconds", "milliseconds", "microseconds")))
        return f'"{text.replace("+00:00", "Z") if chance.random() < 0.5 else text}"'

    def _odd_cell(self, field: Field | Lines) -> str:
        chance = self._chance
        if chance.random() < 0.2:
            return chance.choice(ODDITIES[chance.choice(("cells", "broken_numbers", "raw_texts"))])
        if isinstance(field, Lines):
            return chance.choice((*ODDITIES["cells"], self._lines(field, 20), self._lines(field, 21), "[null]", "[{}]"))
        if isinstance(field, Instant):
            return json.dumps(chance.choice(ODDITIES["times"]), ensure_ascii=False)
        is_number = isinstance(field, Whole | Sign | Minor | Scaled) or (
            isinstance(field, Id) and chance.random() < 0.5
        )
        return chance.choice((*ODDITIES["numbers"], *LONG_NUMBERS) if is_number else self._odd_texts)

    def _mutated(self, value: bytes) -> bytes | None:
        chance = self._chance
        place = chance.randrange(len(value))
        scrap = chance.choice(
            (
                b'"',
                b"\\",
                b"\\\\",
                b'\\"',
                b"\0",
                b"\xff",
                b"\xc3",
                b"\xed\xa0\x80",
                b"0",
                b"e",
                b".",
                b"}",
                b",",
                b"[",
                b" ",
            )
        )
        return chance.choice(
            (
                value[:place],
                value[:place] + scrap + value[place:],
                value[:place] + scrap + value[place + 1 :],
                value[:place] + value[place + chance.randrange(1, 4) :],
                value[:place] + value[place:][::-1],
                b"\xef\xbb\xbf" + value,
                value + chance.choice((b" ", b"\n", b"\r\n", b"x", b"\0", b"{}")),
                b" \t\r\n" + value,
                value.replace(b":", b" : "),
                value[:-1] + b"," + value[1:],
                value.decode(errors="replace").encode("utf-16"),
                b"[" + value + b"]",
                value[:-1] + b',"x":' + b"[" * 40 + b"]" * 40 + b"}",
                chance.choice((None, b"", b"null", b"1", b'"a"', b"[]", b"{}", b" ")),
            )
        )
