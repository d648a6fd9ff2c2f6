"""Records that look like alerts of the tenant `acme` and must not get any further than the topic."""

from typing import Any

import msgspec

from tests.support.alert_topic import alert

ALERT = alert("acme", "1", 7)
_FIELDS = msgspec.json.decode(ALERT.to_json())


def body(**changes: Any) -> bytes:
    """The JSON of `ALERT`, with some fields changed or added."""
    return msgspec.json.encode({**_FIELDS, **changes})


HOSTILE = {
    "place is an array": body(place=[1, 2]),
    "window starts at banana": body(window={"from": "banana"}),
    "window ends at banana": body(window={"from": ALERT.window.start, "to": "banana"}),
    "raised without a zone": body(raised_at="2026-11-22T09:00:00"),
    "raised in 9999, with an offset": body(raised_at="9999-12-31T23:59:59-01:00"),
    "raised in year 1, with an offset": body(raised_at="0001-01-01T00:00:00+01:00"),
    "raised before 1970": body(raised_at="1969-12-31T23:59:59Z"),
    "not UTF-8 in an unknown field": body(more="~").replace(b"~", b"\xff"),
    "not UTF-8 in a sentence": body(sentence="~").replace(b"~", b"\xff"),
    "half a surrogate pair": body(more="~").replace(b"~", rb"\ud800"),
    "deep in an unknown field": body(more="~").replace(b'"~"', b"[" * 20_000 + b"]" * 20_000),
    "empty id": body(alert_id=""),
    "id of 70,000 characters": body(alert_id="a" * 70_000),
    "id of 65 characters": body(alert_id="a" * 65),
    "id with a line break": body(alert_id="a\r\nb"),
    "huge record": body(more="a" * 70_000),
    "raised about another": body(about="another"),
    "resolved about nothing": body(kind="resolved"),
    "resolved about an empty id": body(kind="resolved", about=""),
    "long store": body(store="1" * 300),
    "many dimensions": body(dimensions={str(number): "1" for number in range(40)}),
    "negative version": body(version=-1),
    "threshold that is no number": body(threshold="NaN"),
    "threshold with a huge exponent": body(threshold="1E+999999"),
    "value with a tiny exponent": body(value="1E-999999"),
    "value with 21 digits": body(value="1" * 21),
}
