"""Which dates are compared with which, by the examples of the metrics catalogue."""

from datetime import date

from serving_layer.compare.calendar import MonthsBefore

YEAR = MonthsBefore(12)


def lengths(first: date, last: date) -> tuple[date, date, int]:
    """First and last counterpart, and how many."""
    found = list(YEAR.days(first, last))
    return found[0], found[-1], len(found)


def test_a_february_of_29_days_is_compared_with_one_of_28() -> None:
    found = lengths(date(2028, 2, 1), date(2028, 3, 1))

    assert found == (date(2027, 2, 1), date(2027, 2, 28), 28)


def test_a_29_february_alone_has_no_counterpart() -> None:
    alone = list(YEAR.days(date(2028, 2, 29), date(2028, 3, 1)))

    assert alone == []
    assert YEAR.day(date(2028, 2, 29)) is None


def test_a_february_after_a_leap_year_is_compared_with_all_of_that_month() -> None:
    found = lengths(date(2029, 2, 1), date(2029, 3, 1))

    assert found == (date(2028, 2, 1), date(2028, 2, 29), 29)
    assert YEAR.day(date(2029, 2, 28)) == date(2028, 2, 28)


def test_months_are_compared_with_months_whatever_their_length() -> None:
    march = list(MonthsBefore(1).days(date(2026, 3, 1), date(2026, 4, 1)))

    assert (march[0], march[-1]) == (date(2026, 2, 1), date(2026, 2, 28))
    assert MonthsBefore(1).day(date(2026, 3, 31)) is None
