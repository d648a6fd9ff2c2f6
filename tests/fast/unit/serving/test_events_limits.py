"""How much a request may bring, at each limit and just beyond it. What is refused for its size is not sent at all."""

import asyncio
import gzip
import random
import struct
import zlib
from collections.abc import AsyncIterator, Iterator
from contextlib import nullcontext
from datetime import UTC, datetime

import httpx
import pytest
from starlette.types import Message

from master_dataset.sources.pos_transactions import POS_TRANSACTIONS
from serving_layer.api.events import PAST_DAY_BYTES
from serving_layer.errors import BodyTooLargeError, BodyUnreadableError
from serving_layer.ingest import ingest
from serving_layer.ingest.events_body import EventsBody, decompress
from serving_layer.ingest.ingest import RECENT_DAYS
from serving_layer.keys.rates import ByteLimiter
from serving_layer.limits import LIMITS, Limits
from tests.support import World
from tests.support import receipt as simple_receipt
from tests.support.corpus.case import receipt
from tests.support.world_api import OPERATOR_KEY, Asking

TOPIC = "pos_transactions"
LINES = "application/x-ndjson"
HEADERS = {"Content-Type": LINES, "Authorization": f"Bearer {OPERATOR_KEY}"}


@pytest.fixture
def asking() -> Asking:
    return Asking(World())


def sized(size: int, fill: str = "x") -> bytes:
    """A receipt of so many bytes."""
    smallest = len(receipt({"x": '""'}))
    return receipt({"x": f'"{(fill * (size // len(fill) + 1))[: size - smallest]}"'})


def noise(size: int) -> str:
    """Text that gzip makes about half as long."""
    return random.Random(1).randbytes(size // 2 + 1).hex()


def folded(plain: bytes, size: int) -> bytes:
    """The same as gzip of exactly so many bytes: its header says a name, which may be of any length."""
    short = zlib.compressobj(9, wbits=-zlib.MAX_WBITS)
    body = short.compress(plain) + short.flush() + struct.pack("<II", zlib.crc32(plain), len(plain))
    head = b"\x1f\x8b\x08\x08" + b"\0" * 5 + b"\xff"
    return head + b"n" * (size - len(head) - 1 - len(body)) + b"\0" + body


@pytest.mark.parametrize(("size", "status"), [(1_000_000, 202), (1_000_001, 413)])
def test_a_body_may_be_a_million_bytes_as_sent(asking: Asking, size: int, status: int) -> None:
    response = asking.sent(sized(size))

    assert response.status_code == status
    assert len(asking.broker.values(TOPIC)) == (status == 202)


@pytest.mark.parametrize(("size", "status"), [(1_000_000, 202), (1_000_001, 413)])
def test_a_body_whose_length_is_not_promised_may_be_as_long(asking: Asking, size: int, status: int) -> None:
    async def parts() -> AsyncIterator[bytes]:
        whole = sized(size)
        for at in range(0, size, 65_536):
            yield whole[at : at + 65_536]

    async def ask() -> httpx.Response:
        async with client(asking) as connection:
            return await connection.post(f"/v1/events/{TOPIC}", headers=HEADERS, content=parts())

    assert asyncio.run(ask()).status_code == status


def test_a_body_that_is_promised_too_long_is_refused_unread(asking: Asking) -> None:
    response = asking.sent(b"{}", content_length="1000001")

    assert (response.status_code, response.json()["code"]) == (413, "body_too_large")
    assert response.headers["connection"] == "close"


@pytest.mark.parametrize(("size", "outcome"), [(1_000_000, ("accepted", None)), (1_000_001, ("rejected", "too_large"))])
def test_a_record_may_be_a_million_bytes_when_it_is_unfolded(
    asking: Asking, size: int, outcome: tuple[str, str | None]
) -> None:
    said = gzip.compress(sized(size, noise(size)) + b"\n" + sized(1000))

    items = asking.sent(said, content_type=LINES, content_encoding="gzip").json()["items"]

    assert [(each["outcome"], each["reason"]) for each in items] == [outcome, ("accepted", None)]


def test_a_body_may_unfold_to_four_million_bytes_and_not_to_one_more() -> None:
    plain = noise(400_000).encode() * 11

    assert decompress(folded(plain[:4_000_000], 400_000)) == plain[:4_000_000]
    with pytest.raises(BodyTooLargeError):
        decompress(folded(plain[:4_000_001], 400_000))


def test_a_body_may_unfold_to_twenty_times_its_size_and_not_to_more() -> None:
    plain = b"x" * 2_000_000

    assert decompress(folded(plain, 100_000)) == plain
    with pytest.raises(BodyTooLargeError):
        decompress(folded(plain, 99_999))


@pytest.mark.parametrize(("size", "refusal"), [(1_000_000, ""), (1_000_001, "1,000,000 bytes")])
def test_what_might_be_sent_plain_may_be_sent_compressed_however_well_it_compresses(size: int, refusal: str) -> None:
    body = gzip.compress(b"x" * size, mtime=0)

    assert len(body) < 2_000
    with pytest.raises(BodyTooLargeError, match=refusal) if refusal else nullcontext():
        assert len(decompress(body)) == size


def test_a_thousand_events_that_resemble_each_other_are_taken_compressed(asking: Asking) -> None:
    said = gzip.compress(b"\n".join(receipt({"transaction_id": str(number)}) for number in range(1_000)))

    response = asking.sent(said, content_type=LINES, content_encoding="gzip")

    assert response.json()["accepted"] == 1_000


def test_a_bomb_is_refused_before_it_unfolds(asking: Asking) -> None:
    bomb = gzip.compress(b"0" * 200_000_000, 1, mtime=0)

    response = asking.sent(bomb, content_encoding="gzip")

    assert len(bomb) < 1_000_000
    assert (response.status_code, response.json()["code"]) == (413, "body_too_large")


ZIPPED = gzip.compress(b"{}", mtime=0)  # the same in every worker: it names tests


@pytest.mark.parametrize(
    "broken",
    [b"", b"{}", ZIPPED[:-1], ZIPPED + b"\0", ZIPPED * 2, ZIPPED[:-8] + b"\1" * 8, zlib.compress(b"{}")],
)
def test_a_body_that_is_not_one_whole_gzip_stream_is_refused(asking: Asking, broken: bytes) -> None:
    response = asking.sent(broken, content_encoding="gzip")

    assert (response.status_code, response.json()["code"]) == (400, "body_unreadable")
    with pytest.raises(BodyUnreadableError):
        decompress(broken)


@pytest.mark.parametrize("kind", ["application/json", LINES])
@pytest.mark.parametrize(("count", "status"), [(1_000, 202), (1_001, 413)])
def test_a_request_may_bring_a_thousand_events(asking: Asking, kind: str, count: int, status: int) -> None:
    each = [receipt({"transaction_id": str(number)}) for number in range(count)]

    response = asking.sent(b"\n".join(each) if kind == LINES else b"[" + b",".join(each) + b"]", content_type=kind)

    assert response.status_code == status
    assert asking.broker.values(TOPIC) == (each if status == 202 else [])


def test_a_list_of_very_many_numbers_is_refused_for_their_number(asking: Asking) -> None:
    response = asking.sent(b"[" + b"1," * 499_998 + b"1]")

    assert (response.status_code, response.json()["code"]) == (413, "too_many_events")


@pytest.mark.parametrize(("said", "kind"), [(b"[]", "application/json"), (b"\n \r\n", LINES), (b"", LINES)])
def test_a_request_without_events_is_a_mistake(asking: Asking, said: bytes, kind: str) -> None:
    response = asking.sent(said, content_type=kind)

    assert (response.status_code, response.json()["code"]) == (422, "bad_question")


@pytest.mark.parametrize("kind", ["", "text/plain", "application/x-www-form-urlencoded", "application/jsonl"])
def test_another_type_is_refused(asking: Asking, kind: str) -> None:
    response = asking.sent(receipt(), content_type=kind)

    assert (response.status_code, response.json()["code"]) == (415, "unsupported_body")


@pytest.mark.parametrize("encoding", ["", "br", "deflate", "zstd", "gzip, gzip"])
def test_another_compression_is_refused(asking: Asking, encoding: str) -> None:
    response = asking.sent(receipt(), content_encoding=encoding)

    assert (response.status_code, response.json()["code"]) == (415, "unsupported_body")


@pytest.mark.parametrize(("seconds", "status"), [(0.0, 202), (5.0, 408)])
def test_a_body_has_to_arrive_in_time(seconds: float, status: int) -> None:
    asking = Asking(World(), limits=Limits(receive_seconds=0.2))

    async def parts() -> AsyncIterator[bytes]:
        yield receipt()[:10]
        await asyncio.sleep(seconds)
        yield receipt()[10:]

    async def ask() -> httpx.Response:
        async with client(asking) as connection:
            return await connection.post(f"/v1/events/{TOPIC}", headers=HEADERS, content=parts())

    response = asyncio.run(ask())

    assert response.status_code == status
    if status == 408:
        assert (response.json()["code"], response.headers["connection"]) == ("body_too_slow", "close")


def test_a_body_that_ends_with_its_connection_is_not_taken_for_a_whole_one(asking: Asking) -> None:
    heard: list[Message] = []
    said: Iterator[Message] = iter(
        [
            {"type": "http.request", "body": receipt() + b"\n" + receipt()[:9], "more_body": True},
            {"type": "http.disconnect"},
        ]
    )
    headers = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]
    path = f"/v1/events/{TOPIC}"
    scope = {
        "type": "http",
        "method": "POST",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": headers,
        "http_version": "1.1",
        "scheme": "http",
        "root_path": "",
    }

    async def receive() -> Message:
        return next(said)

    async def send(message: Message) -> None:
        heard.append(message)

    asyncio.run(asking.app(scope, receive, send))

    assert heard[0]["status"] == 400
    assert asking.broker.values(TOPIC) == []


@pytest.mark.parametrize(("count", "refused"), [(LIMITS.ingests_in_flight, 0), (LIMITS.ingests_in_flight + 1, 1)])
def test_the_request_above_the_limit_in_flight_is_rejected_at_once(
    asking: Asking, monkeypatch: pytest.MonkeyPatch, count: int, refused: int
) -> None:
    monkeypatch.setattr(ingest, "DELIVERY_TIMEOUT_SECONDS", 0.5)
    asking.broker.says = lambda _: None

    codes = [response.json()["code"] for response in sent_at_once(asking, count)]

    assert codes.count("too_busy") == refused
    assert codes.count("broker_unavailable") == LIMITS.ingests_in_flight


@pytest.mark.parametrize(("held", "refused"), [(3 * 500, 0), (3 * 500 - 1, 1)])
def test_bodies_that_arrive_may_be_so_many_bytes_together(
    monkeypatch: pytest.MonkeyPatch, held: int, refused: int
) -> None:
    monkeypatch.setattr(ingest, "DELIVERY_TIMEOUT_SECONDS", 0.2)
    asking = Asking(World(), limits=Limits(bodies_bytes=held))
    asking.broker.says = lambda _: None

    codes = [response.json()["code"] for response in sent_at_once(asking, 3, sized(500))]

    assert codes.count("too_busy") == refused
    assert asking.app.state.bodies.held == 0


@pytest.mark.parametrize(("count", "refused"), [(8, 0), (9, 1)])
def test_a_key_may_have_eight_requests_under_way(
    asking: Asking, monkeypatch: pytest.MonkeyPatch, count: int, refused: int
) -> None:
    monkeypatch.setattr(ingest, "DELIVERY_TIMEOUT_SECONDS", 0.2)
    asking.broker.says = lambda _: None
    headers = HEADERS | {"Authorization": f"Bearer {asking.keys.make('default', 'ingest')}"}

    first, second = (sent_at_once(asking, count, headers=headers) for _ in range(2))

    for responses in (first, second):  # those of the first have ended when the second begin
        assert [response.status_code for response in responses].count(429) == refused
        limit_codes = {response.json()["code"] for response in responses if response.status_code == 429}
        assert limit_codes <= {"too_many_at_once"}


def test_the_loop_goes_on_while_a_large_request_is_judged(asking: Asking) -> None:
    lines = "[" + ",".join(['{"title": "Milk", "price": 1.09, "amount": 2, "total": 2.18, "k": {}}'] * 12_000) + "]"
    slow = EventsBody(receipt({"transactions": lines}))

    async def turns() -> int:
        taking = asyncio.ensure_future(asking.app.state.ingest.ingest(POS_TRANSACTIONS, slow, None))
        counted = 0
        while not taking.done():
            await asyncio.sleep(0)
            counted += 1
        return counted

    assert asyncio.run(turns()) > 20  # judged on the loop itself, it would have had less than ten


def sent_at_once(
    asking: Asking, count: int, said: bytes | None = None, headers: dict[str, str] | None = None
) -> list[httpx.Response]:
    """So many requests with a receipt, none of which waits for another."""

    async def send() -> list[httpx.Response]:
        async with client(asking) as connection:
            posts = [
                connection.post(f"/v1/events/{TOPIC}", headers=headers or HEADERS, content=said or receipt())
                for _ in range(count)
            ]
            return await asyncio.gather(*posts)

    return asyncio.run(send())


def client(asking: Asking) -> httpx.AsyncClient:
    transport = httpx.ASGITransport(asking.app, raise_app_exceptions=False)
    return httpx.AsyncClient(transport=transport, base_url="http://galatea")


def test_a_key_that_has_sent_too_many_bytes_waits_and_the_operator_does_not(asking: Asking) -> None:
    object.__setattr__(asking.app.state.authenticator, "sent", ByteLimiter(60_000, lambda: 0.0))
    key = f"Bearer {asking.keys.make('default', 'ingest')}"
    asking.clock_us = 1_773_000_000_000_000  # two days after the receipt

    first, second = (asking.sent(sized(100_000), authorization=key) for _ in range(2))

    assert (first.status_code, second.status_code) == (202, 429)
    assert second.json()["code"] == "too_often"
    assert second.headers["Retry-After"] == "41"
    assert asking.sent(sized(100_000)).status_code == 202


@pytest.mark.parametrize(
    ("said", "status"), [(b"0" * 100_000, 422), (sized(100_000), 503), (b"[" + b"0," * 50_000 + b"0]", 413)]
)
def test_bytes_count_decompressed_whatever_becomes_of_the_events(asking: Asking, said: bytes, status: int) -> None:
    object.__setattr__(asking.app.state.authenticator, "sent", ByteLimiter(60_000, lambda: 0.0))
    key = f"Bearer {asking.keys.make('default', 'ingest')}"
    asking.broker.is_full = True

    zipped = gzip.compress(said)
    first, second = (asking.sent(zipped, content_encoding="gzip", authorization=key) for _ in range(2))

    assert (first.status_code, second.status_code) == (status, 429)
    assert second.headers["Retry-After"] == "41"
    assert "as many seconds as `Retry-After` says" in second.json()["detail"]


def test_a_day_long_past_counts_for_more_than_the_bytes_of_its_events(asking: Asking) -> None:
    object.__setattr__(asking.app.state.authenticator, "sent", ByteLimiter(4 * PAST_DAY_BYTES, lambda: 0.0))
    now = asking.clock_us // 1_000_000
    key = f"Bearer {asking.keys.make('default', 'ingest')}"

    def sent_of(days: range) -> int:
        at = [datetime.fromtimestamp(now - 86_400 * day, UTC).isoformat() for day in days]
        body = b"\n".join(simple_receipt(each, minor=100, number=number) for number, each in enumerate(at))
        return asking.sent(body, content_type=LINES, authorization=key).status_code

    assert [sent_of(range(RECENT_DAYS)) for _ in range(3)] == [202] * 3
    assert [sent_of(range(100, 105)) for _ in range(2)] == [202, 429]
