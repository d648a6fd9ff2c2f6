"""What a rebuild recomputes: the touched days, and everything where the definition changed."""

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import msgspec
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from batch_layer.master import Master
from batch_layer.plan import Plan, Planner, previewed_partitions
from batch_layer.rebuild import all_are_few, is_small, portions
from batch_layer.recompute.lock import overlapping, spans
from master_dataset.delta.tables import MasterTables
from views.control.publication import Pointer
from views.control.recompute import PlannedPartition, RecomputeRequest, StoredPlan, read_stored_plan
from views.sales import SALES

NOON = datetime(2026, 3, 7, 12, 0, tzinfo=UTC)
EPOCH = timedelta(minutes=5)
TOPIC = SALES.source.topic


def append(path: Path, *rows: tuple[date, datetime]) -> None:
    days, received = zip(*rows, strict=True)
    table = pa.table(
        {
            "day": pa.array(days, pa.date32()),
            "received_at": pa.array(received, pa.timestamp("us", tz="UTC")),
            "store": pa.array(["1"] * len(rows)),
        }
    )
    write_deltalake(path, table, mode="append", partition_by=["day"])


NOW = {"sales": SALES.definition_hash}


def planner(path: Path, base_version: int, definition: str = SALES.definition_hash) -> Planner:
    base = Pointer(3, NOON, "run-3", 1, {"sales": definition})
    return Planner([SALES], {TOPIC: Master.newest(str(path))}, base, {TOPIC: base_version}, EPOCH)


def days_of(
    path: Path, base_version: int, request: RecomputeRequest, definition: str = SALES.definition_hash
) -> set[date]:
    plan = planner(path, base_version, definition).plan(request, NOON + timedelta(hours=1), 1, NOW)
    return plan.days


@pytest.fixture
def master(tmp_path: Path) -> Path:
    """Three days; those of the 5th and 6th were received long before the published cut."""
    append(tmp_path, (date(2026, 3, 5), NOON - timedelta(days=2)), (date(2026, 3, 6), NOON - timedelta(days=1)))
    append(tmp_path, (date(2026, 3, 7), NOON + timedelta(minutes=1)))
    return tmp_path


def test_only_days_of_events_received_since_the_published_cut_are_touched(master: Path) -> None:
    append(master, (date(2026, 3, 5), NOON + timedelta(minutes=2)))  # a late sale

    assert days_of(master, 1, RecomputeRequest()) == {date(2026, 3, 5), date(2026, 3, 7)}


def test_an_event_received_behind_the_new_cut_touches_nothing_yet(master: Path) -> None:
    append(master, (date(2026, 3, 4), NOON + timedelta(hours=2)))

    assert date(2026, 3, 4) not in days_of(master, 1, RecomputeRequest())


def test_a_row_archived_since_with_an_older_stamp_is_found_and_alarmed(master: Path) -> None:
    append(master, (date(2026, 3, 1), NOON - timedelta(hours=3)))

    plan = planner(master, 1).plan(RecomputeRequest(), NOON + timedelta(hours=1), 1, NOW)

    assert date(2026, 3, 1) in plan.days
    assert plan.alarms == ("clock_stepped_back: pos_transactions on 2026-03-01",)


def test_files_that_were_only_put_together_are_no_rows_with_an_older_stamp(master: Path) -> None:
    for minutes in (2, 3):
        append(master, (date(2026, 3, 5), NOON + timedelta(minutes=minutes)))
        DeltaTable(master).optimize.compact()
    compacted = planner(master, 1)
    append(master, (date(2026, 3, 6), NOON + timedelta(minutes=4)))

    plans = [
        each.plan(RecomputeRequest(), NOON + timedelta(hours=1), 1, NOW) for each in (compacted, planner(master, 1))
    ]

    assert [plan.days - {date(2026, 3, 7)} for plan in plans] == [
        {date(2026, 3, 5)},
        {date(2026, 3, 5), date(2026, 3, 6)},
    ]
    assert [plan.alarms for plan in plans] == [(), ()]


def test_older_stamps_are_found_before_between_and_after_compactions_of_their_files(master: Path) -> None:
    for day in (1, 2):
        append(master, (date(2026, 3, day), NOON - timedelta(hours=3)))
        append(master, (date(2026, 3, day), NOON + timedelta(hours=3)))
        DeltaTable(master).optimize.compact()
        DeltaTable(master).vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)
    append(master, (date(2026, 3, 3), NOON - timedelta(hours=3)))

    plan = planner(master, 1).plan(RecomputeRequest(), NOON + timedelta(hours=1), 1, NOW)

    assert plan.alarms == ("clock_stepped_back: pos_transactions on 2026-03-01, 2026-03-02, 2026-03-03",)


def test_commits_that_came_after_the_version_that_is_read_change_nothing(master: Path) -> None:
    append(master, (date(2026, 3, 1), NOON - timedelta(hours=3)))
    DeltaTable(master).optimize.compact()
    append(master, (date(2026, 3, 7), NOON + timedelta(minutes=2)))
    planned = planner(master, 1)
    append(master, (date(2026, 3, 2), NOON - timedelta(hours=3)))
    append(master, (date(2026, 3, 7), NOON + timedelta(minutes=2)))
    DeltaTable(master).optimize.compact()

    plan = planned.plan(RecomputeRequest(), NOON + timedelta(hours=1), 1, NOW)

    assert plan.alarms == ("clock_stepped_back: pos_transactions on 2026-03-01",)


def test_where_the_log_no_longer_says_what_was_added_every_day_is_recomputed(master: Path) -> None:
    append(master, (date(2026, 3, 8), NOON + timedelta(minutes=3)))
    DeltaTable(master).create_checkpoint()
    for commit in (master / "_delta_log").glob("*0[01].json"):
        commit.unlink()

    assert days_of(master, 1, RecomputeRequest()) == {date(2026, 3, day) for day in (5, 6, 7, 8)}


def test_a_changed_definition_recomputes_every_day(master: Path) -> None:
    assert len(days_of(master, 1, RecomputeRequest(), definition="another")) == 3


def test_a_question_for_some_days_is_kept_to_them(master: Path) -> None:
    request = RecomputeRequest(first=date(2026, 3, 6), last=date(2026, 3, 6))

    assert days_of(master, 1, request) == {date(2026, 3, 6)}


def test_everything_is_recomputed_on_request(master: Path) -> None:
    assert len(days_of(master, 1, RecomputeRequest(full=True))) == 3


def test_a_part_relies_on_no_newer_table_version_than_its_base(master: Path) -> None:
    append(master, (date(2026, 3, 1), NOON - timedelta(hours=3)))
    plans = planner(master, 1)

    part = plans.plan(RecomputeRequest(views=("sales",), first=date(2026, 3, 7)), NOON, 1, NOW)
    whole = plans.plan(RecomputeRequest(), NOON, 1, NOW)

    assert part.master_versions == {TOPIC: 1}
    assert whole.master_versions == {TOPIC: 2}


def test_a_question_for_a_store_is_kept_to_the_days_it_has_events_on(master: Path) -> None:
    assert days_of(master, 1, RecomputeRequest(stores=("1",))) == {date(2026, 3, 5), date(2026, 3, 6), date(2026, 3, 7)}
    assert days_of(master, 1, RecomputeRequest(stores=("2",))) == set()


def test_a_plan_that_was_kept_is_read_back_as_it_was(master: Path) -> None:
    plan = replace(planner(master, 0).plan(RecomputeRequest(), NOON + timedelta(hours=1), 7, NOW), read_at=NOON)

    stored = read_stored_plan(msgspec.json.encode(plan.stored(4, "run-4")).decode())

    assert isinstance(stored, StoredPlan)
    assert Plan.restored(stored, [SALES]) == plan
    assert (stored.number, stored.run) == (4, "run-4")


def test_work_is_cut_into_portions_of_whole_days_that_cover_it_once(master: Path) -> None:
    plan = planner(master, 1).plan(RecomputeRequest(full=True), NOON + timedelta(hours=1), 1, NOW)

    found = portions(plan, together=2)

    assert [sorted(portion.days) for portion in found] == [[date(2026, 3, 5), date(2026, 3, 6)], [date(2026, 3, 7)]]
    assert [portion.events_of(portion.days) for portion in found] == [2, 1]
    assert [portion.number for portion in found] == [0, 1]


def test_a_preview_names_the_stores_of_a_day_and_which_of_them_have_new_events(master: Path) -> None:
    plan = planner(master, 0).plan(RecomputeRequest(), NOON + timedelta(hours=1), 1, NOW)

    assert previewed_partitions(plan) == [PlannedPartition("sales", "2026-03-07", "1", "new events")]


def test_runs_that_have_a_day_of_a_view_in_common_overlap(master: Path) -> None:
    own = spans(planner(master, 1).plan(RecomputeRequest(full=True), NOON + timedelta(hours=1), 1, NOW))

    assert own == {"sales": [("2026-03-05", "2026-03-07")]}
    assert overlapping(own, {"sales": [("2026-03-07", "2026-03-09")]}) == "sales"
    assert (
        overlapping(own, {"sales": [("2026-03-08", "2026-03-09")], "sales_by_sku": [("2026-03-05", "2026-03-05")]})
        is None
    )


def test_a_rebuild_is_small_if_the_days_that_it_reads_have_few_events(tmp_path: Path) -> None:
    today, old = NOON.date(), NOON.date() - timedelta(days=40)
    append(tmp_path, *[(today, NOON + EPOCH)] * 3)
    append(tmp_path, *[(old, NOON + EPOCH)] * 2)
    plan = planner(tmp_path, 0).plan(RecomputeRequest(), NOON + timedelta(hours=1), 1, NOW)

    assert plan.days == {today, old}
    assert [is_small(plan, few, len(plan.days)) for few in (0, 4, 5)] == [False, False, True]
    assert not is_small(plan, 5, len(plan.days) - 1)


def test_spark_is_not_started_ahead_where_no_source_has_many_events(tmp_path: Path) -> None:
    append(tmp_path / "many", *[(NOON.date(), NOON)] * 3)
    append(tmp_path / "few", (NOON.date(), NOON))

    def say(few: int, *topics: str) -> bool:
        return all_are_few(MasterTables(str(tmp_path)), topics, few)

    assert [say(few, "many", "few") for few in (0, 2, 3)] == [False, False, True]
    assert say(2, "few", "of which nothing is archived yet")
