"""Bytes of a connection to the SQL component: whatever arrives, it answers messages, and ends only this connection."""

import asyncio
import struct
from collections.abc import Sequence
from random import Random
from typing import Any, ClassVar, Self

from serving_layer.sql.conversation import ConversationLimits
from serving_layer.sql.server import Connection, ServerLimits, SqlServer
from tests.support.sql_server import login_service, message, startup
from tests.support.world_api import WorldKeys
from tests.support.world_sql import AskingSql
from tests.system.fuzz.target import Outcome, PromiseBrokenError, Target, logged_failures
from tests.system.fuzz.targets.sql import LIMITS, messages_of, outcome_of, sql_world
from tests.system.fuzz.targets.statements import statements

SERVER_LIMITS = ServerLimits(
    startup_seconds=1, idle_seconds=0.3, message_bytes=100_000, conversation=ConversationLimits(statements=20)
)
PATIENCE_SECONDS = 15.0
TENANT = "acme"
LOGGED_IN, STRANGER = b"logged in\n", b"stranger\n"
"""Beginnings of inputs: those of a client that has logged in, and those from the first byte on."""
OIDS = (
    *(0, 16, 17, 18, 19, 20, 21, 23, 25, 26, 114, 700, 701, 1000, 1007, 1009, 1016, 1042, 1043, 1082, 1083, 1114, 1184),
    *(1186, 1700, 2278, 2950, 3802, 4294967295),
)
TYPED = (
    *(b"select 1", b"select $1", b"select $1, $1::text", b"select store from stores where store = any($1)", b"show $1"),
    *(b"select store, day, start, net_sales from sales_hour where day >= $1 limit 3", b"select array[$1], $1::date"),
    *(
        b"select $1::int + $2",
        b"select $1 = $2",
        b"select $1::timestamptz - $2::interval",
        b"select $1 || $2, length($1)",
    ),
    *(b"select $2::numeric, $1::float8, $2::bytea", b"select count(*) from sales_day where day between $1 and $2"),
)
VALUES = (
    *(
        b"",
        b"1",
        b"-1",
        b"t",
        b"abc",
        b"\0" * 4,
        b"\xff" * 4,
        b"\0" * 8,
        b"\x7f" + b"\xff" * 7,
        b"1e400",
        b"NaN",
        b"{1,2}",
    ),
    *(
        b'{"a",null}',
        b"{",
        b"\\xff",
        b"2026-03-01",
        b"infinity",
        b"2026-03-01 10:00:00+01",
        b"\0\0\0\1\0\0\0\0\0\0\0\x19",
    ),
    *(b"\0\4\0\1\0\0\0\2\0\1\0\2\0\3\0\4", b"\x7f\xf8" + b"\0" * 6, b"\0\1\0\0\xc0\0\0\0", b"\xed\xa0\x80", b"9" * 300),
)


class _Transport(asyncio.Transport):
    """The client's end, in memory."""

    def __init__(self) -> None:
        super().__init__({"peername": ("192.0.2.1", 5000)})
        self.written = bytearray()
        self.is_closed = False

    def write(self, data: Any) -> None:
        self.written += data

    def is_closing(self) -> bool:
        return self.is_closed

    def close(self) -> None:
        self.is_closed = True

    def abort(self) -> None:
        self.is_closed = True

    def pause_reading(self) -> None:
        return

    def resume_reading(self) -> None:
        return

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        del high, low


def _text(value: bytes) -> bytes:
    return value.replace(b"\0", b"") + b"\0"


def _shorts(numbers: Sequence[int]) -> bytes:
    return struct.pack("!h", len(numbers)) + b"".join(struct.pack("!h", each) for each in numbers)


class SqlWire(Target):
    """`sql_wire`: messages of the protocol, whole, wrong, cut and in any order."""

    name: ClassVar[str] = "sql_wire"
    head_end: ClassVar[bytes] = b"\n"
    words: ClassVar[Sequence[bytes]] = (message(b"S"), message(b"H"), message(b"X"), message(b"Q", b"select 1\0"))

    def __enter__(self) -> Self:
        self._asking = AskingSql(sql_world(), LIMITS)
        self._keys = WorldKeys()
        self._key = self._keys.make(TENANT)
        return self

    def __exit__(self, *_: object) -> None:
        self._asking.__exit__(None, None, None)

    def examples(self) -> Sequence[bytes]:
        chance = Random("messages")
        said = [LOGGED_IN + b"".join(self._messages(chance) for _ in range(chance.randrange(1, 4))) for _ in range(200)]
        queries = [LOGGED_IN + message(b"Q", text + b"\0") for text in statements()[:40]]
        openings = (
            *(
                startup(),
                startup("acme", "other"),
                startup(options="-c timezone=UTC", application_name="x"),
                b"\0\0\0\4",
            ),
            *(startup(**{"_pq_.x": "1", "TimeZone": "Nowhere/At all", "client_encoding": "LATIN1"}), startup("\u00e9")),
            *(message(b"", struct.pack("!i", code)) for code in (80877103, 80877104, 131072, 196609, -1)),
            message(b"", struct.pack("!iii", 80877102, 1, 2)),
            b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        )
        wrong = message(b"p", b"no key\0") + message(b"Q", b"select 1\0")
        return [
            *said,
            *queries,
            *(STRANGER + each + wrong for each in openings),
            *(STRANGER + each for each in openings),
        ]

    def mutated(self, pool: Sequence[bytes], chance: Random) -> bytes:
        """Some messages in a row, or mutated bytes of others."""
        if chance.random() < 0.5:
            return LOGGED_IN + b"".join(self._messages(chance) for _ in range(chance.randrange(1, 5)))
        return super().mutated(pool, chance)

    def check(self, value: bytes) -> Outcome:
        with logged_failures() as failures:
            written = self._asking.run(self._connection(value))
        return outcome_of(messages_of(written), failures)

    async def _connection(self, value: bytes) -> bytes:
        is_logged_in = not value.startswith(STRANGER)
        sent = value.removeprefix(STRANGER).removeprefix(LOGGED_IN)
        server = SqlServer(self._asking.sessions.open, login_service(self._keys), SERVER_LIMITS)
        transport = _Transport()
        connection = Connection(server)
        connection.connection_made(transport)
        if is_logged_in:
            connection.data_received(startup(TENANT) + message(b"p", self._key.encode() + b"\0"))
        half = len(sent) // 2
        for part in (sent[:half], sent[half:], message(b"S"), message(b"X")):
            connection.data_received(part)
            await asyncio.sleep(0)
        if not is_logged_in:
            connection.connection_lost(None)
        task = connection._task  # noqa: SLF001 - its end is the end of the connection
        _, late = await asyncio.wait([task], timeout=PATIENCE_SECONDS)
        if late:
            connection.abort("fuzzed")
            raise PromiseBrokenError("the connection does not end")
        if not transport.is_closed or server.connections:
            raise PromiseBrokenError("the connection is still counted or open")
        written = bytes(transport.written)
        while not is_logged_in and written[:1] == b"N":  # without a frame: there is no encryption
            written = written[1:]
        return written

    @staticmethod
    def _messages(chance: Random) -> bytes:
        """Some messages that are nearly right; most of them in an order that makes sense."""
        name, portal = (chance.choice((b"", b"", b"a", b"b", b"a b")) for _ in range(2))
        if chance.random() < 0.3:
            kind = chance.choice((b"D", b"E", b"C", b"S", b"H", b"F", b"d", b"Q", b"?", b"X"))
            body = chance.choice((b"", b"S", b"P", b"x")) + _text(chance.choice((name, b"\xff")))
            return message(kind, body + struct.pack("!i", chance.choice((0, 1, -1))) if kind == b"E" else body)
        sql = chance.choice(TYPED if chance.random() < 0.7 else statements())
        count = (b"$1" in sql) + (b"$2" in sql) + (chance.random() < 0.05)
        oids = [chance.choice(OIDS) for _ in range(chance.choice((0, count, count)))]
        values = [chance.choice((None, *VALUES)) for _ in range(count)]
        parts = [struct.pack("!i", -1) if each is None else struct.pack("!i", len(each)) + each for each in values]
        formats = [chance.choice((0, 1, 1)) for _ in range(chance.choice((0, 1, count)))]
        said = [
            message(b"P", _text(name) + _text(sql) + struct.pack(f"!h{len(oids)}I", len(oids), *oids)),
            message(b"D", b"S" + _text(name)),
            message(
                b"B",
                _text(portal)
                + _text(name)
                + _shorts(formats)
                + struct.pack("!h", count)
                + b"".join(parts)
                + _shorts([chance.choice((0, 1))] * chance.choice((0, 1, 1))),
            ),
            message(b"D", b"P" + _text(portal)),
            message(b"E", _text(portal) + struct.pack("!i", chance.choice((0, 1, 2)))),
            message(b"S"),
        ]
        if chance.random() < 0.3:
            del said[chance.randrange(len(said))]
        return b"".join(said) if chance.random() < 0.9 else message(b"Q", _text(sql))
