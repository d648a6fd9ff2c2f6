"""One case: the bytes that are sent, the statuses that have to come back, and whether the connection ends.

An entry has `raw`, all of it, or the fields that stand behind a usual head: `get`, `post` (one event as JSON), `lines`
(several), `keyless` (a post without a key), `typed` (a post without a type). Bytes are a text in Latin-1 or as `MADE`.
"""

import gzip
import json
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.corpus.case import receipt
from tests.support.world_api import OPERATOR_KEY

CASES = Path(__file__).with_name("cases.json")
HOST, KEY, JSON = "Host: x\r\n", f"Authorization: Bearer {OPERATOR_KEY}\r\n", "Content-Type: application/json\r\n"
POST = "POST /v1/events/pos_transactions HTTP/1.1\r\n" + HOST
HEADS = {
    "get": "GET /healthz HTTP/1.1\r\n" + HOST,
    "post": POST + KEY + JSON,
    "lines": POST + KEY + "Content-Type: application/x-ndjson\r\n",
    "keyless": POST + JSON,
    "typed": POST + KEY,
}
SEPARATORS = 4  # of a field, beside its name and its value
Entry = Mapping[str, Any]


@dataclass(frozen=True)
class WireCase:
    """`sent` at once, then `dripped` byte by byte; `half`: then the client has said all.

    `statuses`: of all answers. `code`: of the last. `is_closed`: the server ends the connection.
    """

    name: str
    sent: bytes
    dripped: bytes
    half: bool
    statuses: list[int]
    code: str | None
    is_closed: bool


def wire_cases() -> list[WireCase]:
    """All of them."""
    return [_case(entry) for entry in json.loads(CASES.read_text(encoding="utf-8"))]


def _case(entry: Entry) -> WireCase:
    return WireCase(
        entry["name"],
        _sent(entry),
        _bytes(entry.get("drip", "")),
        entry.get("half", False),
        entry["expected"],
        entry.get("code"),
        entry.get("closed", False),
    )


def _sent(entry: Entry) -> bytes:
    if "raw" in entry:
        return _bytes(entry["raw"])
    head = next((name for name in HEADS if name in entry), None)
    if head is None:
        return b""
    body, fields = _bytes(entry.get("body", "")), entry[head]
    written = HEADS[head].encode("latin-1") + b"".join(_field(each, HEADS[head]) for each in fields)
    if body and not any(isinstance(each, str) and each.startswith(("Content-L", "Transfer")) for each in fields):
        written += b"Content-Length: %d\r\n" % len(body)
    return written + b"\r\n" + body + _bytes(entry.get("behind", ""))


def _field(field: Any, head: str) -> bytes:
    """`pad`: so long that target and fields are so many bytes. `fields`: so many of them."""
    if isinstance(field, dict) and "pad" in field:
        line, *others = head.removesuffix("\r\n").split("\r\n")
        said = len(line.split(" ")[1]) + sum(len(each.replace(": ", "", 1)) + SEPARATORS for each in others)
        return b"X: " + b"a" * (int(field["pad"]) - said - len("X") - SEPARATORS) + b"\r\n"
    if isinstance(field, dict) and "fields" in field:
        return b"".join(b"X%d: a\r\n" % number for number in range(field["fields"]))
    return _bytes(field) + b"\r\n"


def _bytes(part: Any) -> bytes:
    if isinstance(part, list):
        return b"".join(_bytes(each) for each in part)
    if isinstance(part, str):
        return part.encode("latin-1")
    name = next(name for name in MADE if name in part)
    return MADE[name](part[name], part)


def _chunked(of: Any, part: Entry) -> bytes:
    body = _bytes(of)
    first = b"%x%b\r\n" % (len(body), str(part.get("extension", "")).encode())
    return first + body + b"\r\n0\r\n" + str(part.get("trailer", "")).encode() + b"\r\n"


def _events(count: int) -> bytes:
    return b"\n".join(receipt({"transaction_id": str(number)}) for number in range(count))


def _repeated(of: list[Any]) -> bytes:
    return _bytes(of[0]) * int(of[1])


def _cut(of: Sequence[Any], _: Entry) -> bytes:
    """As a slice has it: less than nothing counts from the end."""
    return _bytes(of[0])[: of[1]]


MADE: Mapping[str, Callable[[Any, Entry], bytes]] = {
    "repeat": lambda of, _: _repeated(of),
    "hex": lambda of, _: bytes.fromhex(of),
    "event": lambda _, __: receipt(),
    "events": lambda of, _: _events(of),
    "chunked": _chunked,
    "gzip": lambda of, _: gzip.compress(_bytes(of), 9, mtime=0),
    "deflate": lambda of, _: zlib.compress(_bytes(of)),
    "wrong_sum": lambda of, _: gzip.compress(_bytes(of), mtime=0)[:-8] + b"\1" * 8,
    "cut": _cut,
}
"""How bytes are made that would be too long, or too hard to read, as they are."""
