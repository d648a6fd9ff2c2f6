"""When a receiver wants to be asked again: whatever its header holds is a time or nothing."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from speed_layer.webhooks.client import retry_after_seconds

NOW = 1_800_000_000.0
_NUMBERS = st.integers().map(str)
_WORDS = st.sampled_from(["Mon,", "Fri", "Jan", "31", "2027", "00:00:00", "GMT", "+", "-", ":", ",", ".", "60", "٣"])
_DATES = st.lists(st.one_of(_WORDS, _NUMBERS), max_size=8).flatmap(
    lambda parts: st.sampled_from([" ", "", ":"]).map(lambda between: between.join(parts))
)


@pytest.mark.parametrize(
    ("said", "seconds"),
    [
        ("17", 17.0),
        ("0", 0.0),
        ("9" * 30, 999999999.0),
        ("Fri, 15 Jan 2027 08:00:10 GMT", 10.0),
        ("Friday, 15-Jan-27 08:00:10 GMT", 10.0),
        ("Fri Jan 15 08:00:10 2027", 10.0),
        ("Fri, 15 Jan 2027 08:00:10 +0000", 10.0),
        ("Thu, 01 Jan 1970 00:00:00 GMT", 0.0),
    ],
)
def test_seconds_and_each_form_of_a_date_are_understood(said: str, seconds: float) -> None:
    assert retry_after_seconds(said, NOW) == seconds


@pytest.mark.parametrize(
    "said",
    [
        None,
        "",
        "soon",
        "-5",
        "1.5",
        "٣",
        "Mon, 01 Jan 99999999999999999999 00:00:00 GMT",
        "Mon, 99999999999999999999 Jan 2027 00:00:00 GMT",
        "Mon, 01 Jan 2027 00:00:00 +99999999999999999999",
        "Mon, 01 Jan 2027 99999999999999999999:00:00 GMT",
        "Mon, 01 Jan 2027 00:00:00 +9999",
        "9" * 5000 + " Jan",
    ],
)
def test_what_cannot_be_read_says_nothing(said: str | None) -> None:
    assert retry_after_seconds(said, NOW) is None


@given(st.one_of(st.text(), _DATES))
@example("Mon, 01 Jan 0001 00:00:00 +2359")
@example("Fri, 31 Dec 9999 23:59:59 -2359")
def test_whatever_is_said_is_a_time_to_wait_or_nothing(said: str) -> None:
    seconds = retry_after_seconds(said, NOW)

    assert seconds is None or 0 <= seconds < float("inf")
