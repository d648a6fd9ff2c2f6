"""A receiver knows who has sent a body, and that it was sent just now."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from speed_layer.webhooks.signature import is_signed, signed

NOW = 1_800_000_000
BODY = b'{"alerts":[]}'


def test_what_was_signed_a_moment_ago_is_good() -> None:
    assert is_signed("secret", signed("secret", NOW, BODY), BODY, NOW + 10)


@pytest.mark.parametrize(
    ("secret", "body", "now"),
    [("other", BODY, NOW), ("secret", BODY + b" ", NOW), ("secret", BODY, NOW + 301), ("secret", BODY, NOW - 301)],
)
def test_another_secret_body_or_time_is_not(secret: str, body: bytes, now: int) -> None:
    assert not is_signed(secret, signed("secret", NOW, BODY), body, now)


@given(st.text(max_size=100))
def test_no_header_at_all_breaks_whoever_asks(header: str) -> None:
    assert not is_signed("secret", header, BODY, NOW)
