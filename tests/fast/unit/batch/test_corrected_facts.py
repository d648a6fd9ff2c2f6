"""Why numbers differ from those of emitted alerts: by the ledger, or by events that came later."""

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import murmur2
from deltalake import DeltaTable, write_deltalake

from batch_layer.alerts import archived_signs
from batch_layer.alerts.archived_signs import ArchivedSigns, TimeRange
from batch_layer.alerts.corrected_facts import CorrectedFacts
from batch_layer.master import Master
from master_dataset.kafka.growth import Partitions
from master_dataset.storage import open_table
from views.alerts.alert import AlertCause
from views.alerts.audit_facts import CauseQuery, SignQuery
from views.core.cut import UNIX_EPOCH, seconds
from views.core.local_time import Span

NOON = datetime(2026, 11, 17, 12, tzinfo=UTC)
CUT = NOON + timedelta(days=3)
HOUR = Span(seconds(NOON), seconds(NOON) + 3600)
MINUTE, SECOND = timedelta(minutes=1), timedelta(seconds=1)


def home(store: str, partitions: int, is_astray: bool) -> int:  # noqa: FBT001 - the one choice there is
    """The partition of a store, or another one."""
    return int((murmur2(store.encode(), partitions) + is_astray) % partitions)


class WorldCauses:
    """A ledger with one cause for everything."""

    def __init__(self, cause: AlertCause | None) -> None:
        self._cause = cause

    def causes(self, queries: Collection[CauseQuery]) -> Mapping[CauseQuery, AlertCause]:
        return dict.fromkeys(queries, self._cause) if self._cause else {}


def ms(at: datetime) -> int:
    return (at - UNIX_EPOCH) // timedelta(milliseconds=1)


Row = tuple[str, int, datetime, datetime]


def facts_of(
    folder: Path,
    rows: Sequence[Row],
    cause: AlertCause | None = None,
    strayed: Collection[Row] = (),
    partitions: int = 3,
) -> Any:
    """Rows: store, identity, happened, received. Both sources have the same. `strayed`: in a partition of another."""
    masters = {}
    for topic in ("pos_transactions", "sensor_heartbeats"):
        table = pa.table(
            {
                "store": [row[0] for row in rows],
                "partition": pa.array([home(row[0], partitions, row in strayed) for row in rows], pa.int32()),
                "identity_hash": [row[1] for row in rows],
                "happened_at": [row[2] for row in rows],
                "received_at": [row[3] for row in rows],
                "day": pa.array([row[2].date() for row in rows], pa.date32()),
                "sensor_id": [f"s{row[1]}" for row in rows],
                "interval_ms": [60_000 for _ in rows],
            }
        )
        write_deltalake(str(folder / topic), table, partition_by=["day"])
        masters[topic] = Master(str(folder / topic), 0)
    archived = ArchivedSigns(masters, CUT, Partitions(partitions))
    return CorrectedFacts(None, WorldCauses(cause), archived, NOON, timedelta(hours=23))  # type: ignore[arg-type]


def cause_of(facts: CorrectedFacts, after_ms: int) -> AlertCause:
    """Of the numbers of the hour."""
    question = CauseQuery("sales", "1", (HOUR,), after_ms)
    return facts.causes({question})[question]


def test_the_ledger_has_the_first_word(tmp_path: Path) -> None:
    facts = facts_of(tmp_path, [("1", 1, NOON, NOON + MINUTE)], "miskeyed")

    assert cause_of(facts, 0) == "miskeyed"


@pytest.mark.parametrize(
    ("received", "after", "cause"),
    [
        (NOON + MINUTE, NOON + MINUTE, "unexplained"),
        (NOON + MINUTE, NOON + MINUTE - SECOND, "late"),
        (NOON + timedelta(hours=23), NOON + timedelta(hours=24), "unexplained"),
        (NOON + timedelta(hours=23) + SECOND, NOON + timedelta(hours=24), "waited"),
        (CUT, NOON, "unexplained"),
        (CUT - SECOND, NOON, "waited"),
    ],
)
def test_else_events_of_the_window_that_came_later_or_waited(
    tmp_path: Path, received: datetime, after: datetime, cause: AlertCause
) -> None:
    facts = facts_of(tmp_path, [("1", 1, NOON, received), ("2", 2, NOON, CUT - SECOND), ("1", 3, NOON - MINUTE, CUT)])

    assert cause_of(facts, ms(after)) == cause


@pytest.mark.parametrize("later", [[], [("1", 2, NOON, NOON + 9 * MINUTE)]])
def test_an_event_in_another_partition_than_its_stores_is_what_alerts_left_out(
    tmp_path: Path, later: list[Row]
) -> None:
    stray = ("1", 1, NOON, NOON + MINUTE)
    facts = facts_of(tmp_path, [stray, *later], strayed=[stray])

    assert cause_of(facts, ms(NOON + 5 * MINUTE)) == "miskeyed"


def test_an_event_that_lies_in_its_own_partition_too_counted_when_it_came_there(tmp_path: Path) -> None:
    stray, own = ("1", 1, NOON, NOON + MINUTE), ("1", 1, NOON, NOON + 9 * MINUTE)
    facts = facts_of(tmp_path, [stray, own], strayed=[stray])

    assert cause_of(facts, ms(NOON + 5 * MINUTE)) == "late"
    assert cause_of(facts, ms(NOON + 9 * MINUTE)) == "unexplained"


def test_of_many_corrections_each_day_of_a_source_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [(store, number, NOON, NOON + MINUTE * number) for number, store in enumerate("123")]
    facts, opened = facts_of(tmp_path, rows), list[str]()

    def opening(uri: str, version: int | None = None) -> DeltaTable:
        opened.append(uri)
        return open_table(uri, version)

    monkeypatch.setattr(archived_signs, "open_table", opening)
    before = Span(HOUR.start - 86_400, HOUR.end - 86_400)
    queries = {CauseQuery("sales", store, (HOUR, before), ms(NOON + MINUTE)) for store in "1234"}

    found = facts.causes(queries)

    assert {each.store: cause for each, cause in found.items()} == {
        "1": "unexplained",
        "2": "unexplained",
        "3": "late",
        "4": "unexplained",
    }
    assert len(opened) == 2


def test_a_sign_of_life_says_whether_it_lay_in_another_partition_than_its_stores(tmp_path: Path) -> None:
    stray = ("1", 1, NOON, NOON + MINUTE)
    facts = facts_of(tmp_path, [stray, ("1", 2, NOON, NOON + MINUTE)], strayed=[stray])
    both = [SignQuery("1", sensor, ms(NOON), ms(NOON + 5 * MINUTE), is_new=True) for sensor in ("s1", "s2")]

    found = facts.signs("sensor_heartbeats", set(both))

    assert [[sign.misrouted for sign in found[each]] for each in both] == [[True], [False]]


def test_a_repetition_that_came_later_explains_nothing(tmp_path: Path) -> None:
    facts = facts_of(tmp_path, [("1", 1, NOON, NOON + MINUTE), ("1", 1, NOON, NOON + 9 * MINUTE)])

    assert cause_of(facts, ms(NOON + 5 * MINUTE)) == "unexplained"


def test_signs_of_life_are_those_of_the_sensor_when_what_it_tells_of_was_over(tmp_path: Path) -> None:
    rows = [("1", 1, NOON, NOON + 9 * MINUTE), ("1", 2, NOON, NOON + 9 * MINUTE), ("1", 1, NOON, NOON + 2 * MINUTE)]
    facts = facts_of(tmp_path, rows)
    one = SignQuery("1", "s1", ms(NOON), ms(NOON + 5 * MINUTE), is_new=True)
    any_of_it = one._replace(sensor=None)

    found = facts.signs("sensor_heartbeats", {one, any_of_it})

    assert [(sign.at_ms, sign.received_ms) for sign in found[one]] == [(ms(NOON + MINUTE), ms(NOON + 2 * MINUTE))]
    assert len(found[any_of_it]) == 2


def test_of_earlier_requests_only_new_ones_are_read(tmp_path: Path) -> None:
    rows = [("1", 1, NOON - 9 * MINUTE, NOON - SECOND), ("1", 2, NOON - 8 * MINUTE, NOON)]
    facts = facts_of(tmp_path, rows)
    wanted = SignQuery("1", None, ms(NOON - 20 * MINUTE), ms(NOON), is_new=False)

    [sign] = facts.signs("sensor_heartbeats", {wanted})[wanted]

    assert sign.received_ms == ms(NOON)


def test_only_what_tells_of_a_moment_within_the_bounds_of_its_own_store_is_handed_out(tmp_path: Path) -> None:
    begin, end, minute = NOON, NOON + 9 * MINUTE, ms(NOON + MINUTE) - ms(NOON)
    ends_in, heard = begin - MINUTE + SECOND, begin + 5 * MINUTE
    moments = [begin - MINUTE, ends_in, heard, end - MINUTE, end - MINUTE - SECOND, end + 50 * MINUTE]
    rows = [(store, 10 * shop + n, at, heard) for shop, store in enumerate("123") for n, at in enumerate(moments)]
    archived = facts_of(tmp_path, [*rows, ("1", 99, heard, end)]).archived
    own, other = TimeRange(ms(begin), ms(end)), TimeRange(ms(begin - timedelta(days=2)), ms(begin) + 1)

    found = list(archived.events_within("sensor_heartbeats", {"1": own, "2": other}))

    assert {each.store for each in found} == {"1", "2"}
    assert sorted(each.at_ms for each in found if each.store == "1") == [
        ms(begin) + 1000,
        *[ms(heard)] * 4,
        ms(heard) + minute,
    ]
    assert [each.at_ms for each in found if each.store == "2"] == [ms(begin)]
    assert list(archived.events_within("sensor_heartbeats", {})) == []


def test_each_of_two_silences_that_overlap_gets_its_own_signs(tmp_path: Path) -> None:
    facts = facts_of(tmp_path, [("1", n, NOON + n * MINUTE, NOON + 30 * MINUTE) for n in range(9)])
    long, short = (SignQuery("1", None, ms(NOON), ms(NOON + n * MINUTE), is_new=True) for n in (8, 3))
    later = SignQuery("1", None, ms(NOON + 6 * MINUTE), ms(NOON + 8 * MINUTE), is_new=True)

    found = facts.signs("sensor_heartbeats", {long, short, later})

    minutes = {each: sorted((sign.at_ms - ms(NOON)) // 60_000 for sign in found[each]) for each in found}
    assert minutes == {long: [1, 2, 3, 4, 5, 6, 7], short: [1, 2], later: [7]}


def test_what_comes_again_after_the_last_audit_is_no_sign_of_life_at_another_time(tmp_path: Path) -> None:
    """Of a fast clock: when it was received says when the sensor was alive, and that is when it came first."""
    ahead, before, after = NOON - 30 * MINUTE, NOON - 40 * MINUTE, NOON + 10 * MINUTE
    facts = facts_of(tmp_path, [("s", 1, ahead, before), ("s", 1, ahead, after)])
    is_known, is_new = (SignQuery("s", "s1", ms(before), ms(NOON - 20 * MINUTE), new) for new in (False, True))

    found = facts.signs("sensor_heartbeats", {is_known, is_new})

    assert found == {is_known: [], is_new: []}
