"""A key of a tenant may ask so many times a second; the operator's may ask as often as it likes."""

import pytest

from serving_layer.errors import RateLimitedError
from serving_layer.keys.authenticator import RateLimiter
from serving_layer.keys.key import OPERATOR, Caller

ACME = Caller("one", "acme", frozenset({"read", "ingest"}))
OTHER = Caller("two", "acme", frozenset({"read"}))


def test_a_key_is_refused_beyond_its_rate_and_no_other_is() -> None:
    rates = RateLimiter(reads=3, ingests=2)

    for _ in range(3):
        rates.count(ACME, "read")

    with pytest.raises(RateLimitedError):
        rates.count(ACME, "read")
    rates.count(OTHER, "read")


def test_reading_and_ingesting_are_counted_apart() -> None:
    rates = RateLimiter(reads=1, ingests=1)

    rates.count(ACME, "read")
    rates.count(ACME, "ingest")

    with pytest.raises(RateLimitedError):
        rates.count(ACME, "ingest")


def test_the_operator_is_not_counted() -> None:
    rates = RateLimiter(reads=1, ingests=1)

    for _ in range(100):
        rates.count(OPERATOR, "read")
