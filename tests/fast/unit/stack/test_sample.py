"""Days are drawn by chance, and the same ones again for the same seed."""

from datetime import UTC, date, datetime, timedelta

import pytest

from batch_layer import master
from batch_layer.master import DataFile, Master
from batch_layer.verify.verification import Sample, Verdict
from galatea.cli.verify import sentences

DAYS = [date(2026, 1, 1) + timedelta(days=number) for number in range(100)]


def test_a_seed_draws_the_same_days_whatever_their_order_and_another_one_others() -> None:
    drawn = Sample(5, 7).draw(DAYS)

    assert drawn == Sample(5, 7).draw(DAYS[::-1])
    assert drawn == sorted(set(drawn) & set(DAYS))
    assert len(drawn) == 5
    assert len({tuple(Sample(5, seed).draw(DAYS)) for seed in range(20)}) == 20


def test_if_there_are_fewer_days_than_requested_all_are_drawn() -> None:
    assert Sample(5, 7).draw(DAYS[:3]) == DAYS[:3]
    assert Sample(5, 7).draw([]) == []


@pytest.mark.parametrize("is_published", [True, False])
def test_days_of_a_history_that_waits_are_not_drawn(monkeypatch: pytest.MonkeyPatch, *, is_published: bool) -> None:
    sent = datetime(2026, 3, 7, 1, tzinfo=UTC)
    cut = sent - timedelta(hours=1) if is_published else datetime(1970, 1, 1, tzinfo=UTC)
    received = {
        date(2025, 6, 1): sent,
        date(2025, 7, 1): sent - timedelta(days=1),
        date(2025, 8, 1): None,  # of a file that does not say
        date(2026, 3, 6): sent,  # young enough for the speed layer
    }
    files = [DataFile("", 0, day, oldest_at, None) for day, oldest_at in received.items()]
    monkeypatch.setattr(master, "files_at", lambda *_: files)

    days = Master("", 0).days_shown(cut, timedelta(hours=23))

    assert days == {date(2025, 8, 1), date(2026, 3, 6)} | ({date(2025, 7, 1)} if is_published else set())


def test_a_total_that_differs_is_a_difference_although_no_cell_is_one() -> None:
    epoch = datetime(2026, 3, 7, tzinfo=UTC)

    assert Verdict(epoch, 1, 0, [], 0, totals=1, totals_differing=1).has_differences
    assert Verdict(epoch, 1, 1, [], 0, totals=1).has_differences
    assert not Verdict(epoch, 1, 0, [], 0, totals=1).has_differences


def test_before_the_first_publication_totals_are_not_compared_and_it_is_said() -> None:
    epoch = datetime(2026, 3, 7, tzinfo=UTC)
    loading = Verdict(epoch, 1, 0, [], 0, totals=None, totals_differing=None)
    compared = loading._replace(totals=1234, totals_differing=5)

    assert not loading.has_differences
    assert list(sentences(loading))[-1].startswith("nothing is published yet, so totals by group and day are not")
    assert list(sentences(compared))[-1] == "1,234 totals by group and day compared, 5 differing"
    assert list(sentences(compared._replace(totals_masked=2)))[-1].startswith("2 more are masked, because sensors")
