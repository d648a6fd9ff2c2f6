"""Targets of GET requests, as the server hands their bytes to the application: every path with any query string.

An input is who asks (`nobody` or `operator`), a space, and the target of the request.
"""

import asyncio
import json
import re
from collections.abc import Sequence
from typing import Any, ClassVar, Self
from urllib.parse import quote, unquote_to_bytes, urlencode

import httpx

from master_dataset.registry.stores import Store
from tests.support import World, receipt
from tests.support.corpus.queries.query_case import query_cases
from tests.support.event_loop import run
from tests.support.openapi_contract import operations, refuse_unannounced
from tests.support.world_api import OPERATOR_KEY, Asking
from tests.system.fuzz.target import Outcome, PromiseBrokenError, Target, logged_failures

INTERNAL = 500
REFUSED = 400
PROBLEM = "application/problem+json"
MOST_PATH = 5_000
_NOT_VISIBLE = re.compile(rb"[^!-~]")
"""Bytes that the server refuses in the target of a request; they arrive only percent-encoded."""
PAGES = (
    "/",
    "/stores",
    "/store/1",
    "/view",
    "/alerts",
    "/publications",
    "/products",
    "/sensors",
    "/reference",
    "/recent",
)
VALUES: dict[str, Sequence[str]] = {
    "string": ("1", "day", "2026-11-21", "2026-11-22T00:00:00Z", "net_sales", "a,b", "sku", "previous_week"),
    "integer": ("1", "0", "100"),
    "number": ("1.5",),
    "boolean": ("true", "false"),
    "array": ("1", "1,2"),
}


def _values(parameter: dict[str, Any]) -> Sequence[str]:
    schema = parameter.get("schema", {})
    options = [schema, *schema.get("anyOf", [])]
    named = [str(value) for each in options for value in (*each.get("enum", ()), *each.get("examples", ()))]
    named += [str(each["default"]) for each in options if each.get("default") not in (None, "")]
    kinds = [str(each.get("type", "string")) for each in options]
    return named[:4] or [value for kind in kinds for value in VALUES.get(kind, ())]


def _announced() -> list[str]:
    """For each operation its path, with each parameter alone, and with all of them."""
    found = []
    usual = {"from": "2026-11-21", "to": "2026-11-22", "store": "1", "day": "2026-11-21"}
    for path, method, operation in operations():
        if method != "GET":
            continue
        parameters = operation.get("parameters", [])
        for each in parameters:
            if each["in"] == "path":
                name = each["name"]
                known = {"metric": "net_sales", "view": "sales", "source": "pos_transactions", "store": "1", "id": "1"}
                path = path.replace("{" + name + "}", known.get(name, "1"))  # noqa: PLW2901 - filled one by one
        own = {each["name"]: _values(each) for each in parameters if each["in"] == "query"}
        base = {name: value for name, value in usual.items() if name in own}
        found.append(f"{path}?{urlencode(base)}")
        found += [f"{path}?{urlencode({**base, name: value})}" for name, values in own.items() for value in values]
        found.append(f"{path}?{urlencode({name: values[0] for name, values in own.items() if values})}")
    return found


class QueryStrings(Target):
    """`query_strings`: the response is one that the OpenAPI document announces, and no error of the server."""

    name: ClassVar[str] = "query_strings"
    head_end: ClassVar[bytes] = b" "
    most_bytes: ClassVar[int] = 16_000  # the server refuses longer heads of requests
    words: ClassVar[Sequence[bytes]] = (
        *(b"&", b"=", b"?", b";", b"%26", b"%3D", b"%2F", b"%00", b"%C3%A9", b"%ED%A0%80", b"%E2%80%AE", b"+", b"#"),
        *(
            b"&from=",
            b"&to=",
            b"&store=",
            b"&by=",
            b"&grain=",
            b"&as_of=",
            b"&top=",
            b"&sort=",
            b"&compare=",
            b"&at_least=",
        ),
        *(b"&timezone=", b"&filter=", b"&limit=", b"&cursor=", b"&format=csv", b"&format=", b"&lang=", b"&attributes="),
        *(b"total", b"group:region", b"15m", b"hour", b"week", b"month", b"today", b"yesterday", b"last_7_days"),
    )

    def __enter__(self) -> Self:
        world = World(Store(id="1", timezone="Europe/Bratislava"), Store(id="2", timezone="UTC", tenant="acme"))
        for number, store in enumerate(("1", "2")):
            for hour in (9, 10):
                at = f"2026-11-21T{hour:02}:00:00Z"
                world.receive(receipt(at, minor=100, store=store, number=10 * hour + number), at)
        world.rebuild("2026-11-21T11:00:00Z")
        self._asking = Asking(world)
        return self

    def examples(self) -> Sequence[bytes]:
        cases = [f"{case.path}?{urlencode(case.arguments, doseq=True)}" for case in query_cases()]
        targets = [*_announced(), *cases, *PAGES, *(f"{page}?lang=de&store=1" for page in PAGES)]
        return [f"{who} {target}".encode() for target in targets for who in ("nobody", "operator")]

    def check(self, value: bytes) -> Outcome:
        who, _, target = value.partition(b" ")
        path, _, query = target[: self.most_bytes].partition(b"?")
        path = quote(path or b"/", safe="/%:@!$&'()*+,;=~").encode()
        query = _NOT_VISIBLE.sub(lambda each: b"%%%02X" % each[0][0], query.partition(b"#")[0])
        path = path if path.startswith(b"/") else b"/" + path
        with logged_failures() as failures:
            response = run(self._response(path, query, is_operator=who == b"operator"))
        return self._outcome(response, failures)

    async def _response(self, path: bytes, query: bytes, *, is_operator: bool) -> httpx.Response:
        """Call the application as the server does: httpx would correct the bytes."""
        key = f"Bearer {OPERATOR_KEY}".encode()
        headers = [(b"host", b"galatea"), *([(b"authorization", key)] if is_operator else [])]
        scope: dict[str, Any] = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "method": "GET",
            "scheme": "http",
            "path": unquote_to_bytes(path).decode(errors="replace"),
            "raw_path": path,
            "query_string": query,
            "root_path": "",
            "headers": headers,
            "client": ("192.0.2.1", 5000),
            "server": ("galatea", 80),
        }
        sent: list[dict[str, Any]] = []
        received = iter([{"type": "http.request", "body": b"", "more_body": False}])
        begun = asyncio.Event()

        async def receive() -> dict[str, Any]:
            if (message := next(received, None)) is None:
                await begun.wait()  # a live stream ends when the client has read its beginning, and leaves
                return {"type": "http.disconnect"}
            return message

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)
            if message["type"] == "http.response.body":
                begun.set()

        await self._asking.app(scope, receive, send)  # type: ignore[arg-type]  # looser than Starlette's
        body = b"".join(each.get("body", b"") for each in sent[1:])
        known = quote(scope["path"][:MOST_PATH])  # httpx takes no more, and no path that is announced has as many
        request = httpx.Request("GET", httpx.URL(scheme="http", host="galatea", path=known))
        return httpx.Response(sent[0]["status"], headers=sent[0]["headers"], content=body, request=request)

    def _outcome(self, response: httpx.Response, failures: Sequence[str]) -> Outcome:
        status, kind = response.status_code, response.headers.get("content-type", "").partition(";")[0]
        if failures:
            raise PromiseBrokenError(failures[0])
        if status >= INTERNAL:
            raise PromiseBrokenError(f"status {status}: {response.text[:300]}")
        refuse_unannounced("GET", response)
        if status < REFUSED:
            return Outcome("", f"{status} {kind} {response.url.path}")
        if kind != PROBLEM:
            return Outcome(str(status), f"{kind} {response.url.path}")
        problem = json.loads(response.content)
        if problem["status"] != status or not problem["detail"]:
            raise PromiseBrokenError("a problem does not name its own status, or says nothing")
        return Outcome(problem["code"], problem["detail"])
