"""Milliseconds of an answer with `at_least` whose events are counted already, and until one has a new event.

The same question is asked without and with a token, in turns, over one connection. Without one, the whole response
comes from the cache, which is the worst case for what is added.
"""

import http.client
import json
import time
from typing import TYPE_CHECKING

from benchmarks.report import Measured, percentile

if TYPE_CHECKING:
    from deploy.settings import Settings

PAIRS, POSTED = 500, 20
AIM_ADDED_MS = 5.0
STORE = "at-least"
HOST = "127.0.0.1"
QUESTION = f"/v1/metrics/net_sales?store={STORE}&range=today&grain=hour"
OK, ACCEPTED = 200, 202


def contained(settings: "Settings") -> Measured:
    """The medians; what is added is among the details."""
    key = (settings.home / "operator.key").read_text().strip()
    headers = {"Authorization": f"Bearer {key}"}
    connection = http.client.HTTPConnection(HOST, settings.api.port, timeout=60)
    seen = [_until_seen(connection, headers, number) for number in range(POSTED)]
    token = _posted(connection, headers, POSTED)
    _asked(connection, {**headers, "Galatea-At-Least": token})
    without, with_ = list[float](), list[float]()
    for _ in range(PAIRS):
        without.append(_asked(connection, headers))
        with_.append(_asked(connection, {**headers, "Galatea-At-Least": token}))
    connection.close()
    added = percentile(with_, 0.5) - percentile(without, 0.5)
    details = {
        "added_ms": round(added, 2),
        "aim_added_ms": AIM_ADDED_MS,
        "p99_ms": round(percentile(with_, 0.99), 2),
        "until_seen_p50_ms": round(percentile(seen, 0.5)),
        "until_seen_p99_ms": round(percentile(seen, 0.99)),
    }
    both = percentile(with_, 0.5), percentile(without, 0.5)
    return Measured("at_least", *both, "ms", "without a token", better="low", details=details)


def _until_seen(connection: http.client.HTTPConnection, headers: dict[str, str], number: int) -> float:
    """Milliseconds from the acknowledgement of an event to an answer that contains it."""
    token = _posted(connection, headers, number)
    return _asked(connection, {**headers, "Galatea-At-Least": token})


def _posted(connection: http.client.HTTPConnection, headers: dict[str, str], number: int) -> str:
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    lines = [{"title": "tea", "price": 1, "amount": 1, "sku": "1"}]
    event = {"happened_at": at, "operation_id": STORE, "vendor_fiscal_module": 1, "transaction_id": number}
    body = json.dumps({**event, "transactions": lines})
    connection.request("POST", "/v1/events/pos_transactions", body, {**headers, "Content-Type": "application/json"})
    response = connection.getresponse()
    said = response.read()
    assert response.status == ACCEPTED, said  # noqa: S101 - a benchmark
    return str(json.loads(said)["token"])


def _asked(connection: http.client.HTTPConnection, headers: dict[str, str]) -> float:
    began = time.perf_counter()
    connection.request("GET", QUESTION, headers=headers)
    response = connection.getresponse()
    said = response.read()
    assert response.status == OK, said  # noqa: S101 - a benchmark
    return (time.perf_counter() - began) * 1000
