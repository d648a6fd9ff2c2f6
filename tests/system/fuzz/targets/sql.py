"""Statements of the SQL component, as its conversation with one client answers them: simple and prepared."""

from collections import Counter
from collections.abc import Awaitable, Sequence
from datetime import date
from typing import ClassVar, Self

from master_dataset.registry.stores import GroupVersion, Store
from serving_layer.sql.conversation import Conversation
from serving_layer.sql.protocol import ProtocolError, read_message
from serving_layer.sql.results import QueryResult
from serving_layer.sql.sandbox import Limits
from serving_layer.sql.session import SqlLimits
from tests.support import World, receipt
from tests.support.sql_server import fields, message
from tests.support.world_sql import AskingSql
from tests.system.fuzz.target import Outcome, PromiseBrokenError, Target, logged_failures
from tests.system.fuzz.targets.statements import WORDS, statements

LIMITS = SqlLimits(seconds=1, sandbox=Limits(rows=20_000))
"""Seconds of a statement: the platform gives it a minute, and a check has to end in five seconds."""
INTERNAL = ("XX", "58")
"""Classes of SQLSTATE for defects: nothing that these sessions read can fail."""


def sql_world() -> World:
    """Two stores of one tenant, one of another, with receipts of five days, published and not."""
    groups = (GroupVersion(None, {"region": "north"}), GroupVersion(date(2026, 3, 3), {"region": "south"}))
    world = World(
        Store(id="1", timezone="Europe/Bratislava", name="One", groups=groups),
        Store(id="2", timezone="America/New_York", name="Two"),
        Store(id="9", timezone="UTC", name="Nine", tenant="another"),
    )
    for day in range(1, 6):
        for place, store in enumerate(world.stores):
            at = f"2026-03-0{day}T12:10:00Z"
            world.receive(receipt(at, minor=100 * day, number=10 * day + place, store=store, till=f"till-{store}"), at)
        if day == 3:
            world.rebuild("2026-03-03T00:00:00Z")
    world.pass_time("2026-03-06T10:00:00Z")
    return world


def messages_of(data: bytes) -> list[tuple[bytes, bytes]]:
    """The messages of the server in its bytes. PromiseBrokenError if they are none."""
    found, at = [], 0
    while at < len(data):
        end = at + 1 + int.from_bytes(data[at + 1 : at + 5], "big")
        if end > len(data) or end < at + 5:
            raise PromiseBrokenError(f"bytes that are no message: {data[at : at + 20]!r}")
        found.append((data[at : at + 1], data[at + 5 : end]))
        at = end
    return found


def outcome_of(found: Sequence[tuple[bytes, bytes]], failures: Sequence[str]) -> Outcome:
    """That of messages of the server. PromiseBrokenError for an error of its own. `failures`: what was logged."""
    errors = [fields(body) for kind, body in found if kind == b"E"]
    if failures:
        raise PromiseBrokenError(failures[0])
    for error in errors:
        if error["C"].startswith(INTERNAL):
            raise PromiseBrokenError(f"SQLSTATE {error['C']}: {error['M']}")
    kinds = "".join(sorted(Counter(kind.decode("latin-1") for kind, _ in found)))
    if errors:
        return Outcome(errors[0]["C"], errors[0]["M"])
    tags = [body.decode(errors="replace").split(" ")[0] for kind, body in found if kind == b"C"]
    return Outcome("", f"{kinds} {' '.join(tags[:4])}")


class Sql(Target):
    """`sql`: a text is sent as a query, and then prepared, described, given parameters, and run."""

    name: ClassVar[str] = "sql"
    words: ClassVar[Sequence[bytes]] = tuple(f" {word} ".encode() for word in WORDS.split())

    def __enter__(self) -> Self:
        self._asking = AskingSql(sql_world(), LIMITS)
        return self

    def __exit__(self, *_: object) -> None:
        self._asking.__exit__(None, None, None)

    def examples(self) -> Sequence[bytes]:
        return statements()

    def check(self, value: bytes) -> Outcome:
        with logged_failures() as failures:
            written = self._asking.run(self._answers(value))
        return outcome_of(messages_of(written), failures)

    async def _answers(self, text: bytes) -> bytes:
        """What the conversations write, each in a session of its own."""
        written = bytearray()
        oids = (25).to_bytes(4, "big")
        prepared = (
            (b"P", b"\0" + text + b"\0" + b"\0\0"),
            (b"D", b"S\0"),
            (b"B", b"\0\0" + b"\0\0" + b"\0\0" + b"\0\1\0\1"),
            (b"E", b"\0" + (2).to_bytes(4, "big")),
            (b"E", b"\0" + bytes(4)),
            (b"S", b""),
        )
        typed = (
            (b"P", b"a\0" + text + b"\0" + b"\0\2" + oids * 2),
            (b"B", b"\0a\0" + b"\0\0" + b"\0\2" + b"\0\0\0\1" + b"1" + b"\xff" * 4 + b"\0\0"),
            (b"D", b"P\0"),
            (b"E", b"\0" + bytes(4)),
            (b"S", b""),
        )
        for said in (((b"Q", text + b"\0"),), prepared, typed if b"$1" in text else ()):
            await self._talk(said, written)
        return bytes(written)

    async def _talk(self, said: Sequence[tuple[bytes, bytes]], written: bytearray) -> None:
        session = self._asking.open()

        async def write(data: bytes) -> None:
            written.extend(data)

        async def authorize() -> None:
            return None

        async def run(work: Awaitable[QueryResult]) -> QueryResult:
            return await work

        talk = Conversation(session, write, authorize, run)
        try:
            for kind, body in said:
                await talk.answer(read_message(kind, body))
        except ProtocolError as error:  # the connection would end with it
            written += message(b"E", f"SFATAL\0C{error.code}\0M{error.message}\0\0".encode(errors="replace"))
        finally:
            session.close()
