"""Time zones are those of the pinned tz database, whatever the machine has."""

import pickle
import subprocess
import sys
import time
import zoneinfo
from datetime import date, timedelta

import pytest

from batch_layer.day_cells import calendar_of
from master_dataset.errors import BadFileError
from master_dataset.registry.stores import Store
from master_dataset.registry.stores_file import read
from master_dataset.registry.time_zones import TIME_ZONES, first_misaligned_offset, zone_named
from serving_layer.errors import BadQuestionError
from serving_layer.timeline import zone_named as zone_asked

OF_MACHINES = ["localtime", "Factory", "posixrules", "right/Europe/Bratislava", "posix/UTC", "europe/bratislava", ".."]
"""Some files name these, and an empty one is a folder."""


@pytest.mark.parametrize("name", OF_MACHINES)
def test_a_store_has_no_zone_that_depends_on_the_machine(name: str) -> None:
    with pytest.raises(BadFileError, match="names no time zone") as refused:
        read(f"stores: [{{id: 1, timezone: {name}}}]")

    assert refused.value.code == "unknown_timezone"


@pytest.mark.parametrize("name", [*OF_MACHINES, "", "\x00", "a" * 10_000])
def test_a_question_has_no_zone_that_depends_on_the_machine(name: str) -> None:
    with pytest.raises(BadQuestionError, match="There is no time zone"):
        zone_asked(name)


def test_the_files_of_the_machine_are_not_asked() -> None:
    assert zoneinfo.TZPATH == ()


def test_a_program_that_imports_only_the_client_keeps_the_files_of_the_machine() -> None:
    program = "import zoneinfo; before = zoneinfo.TZPATH; import galatea.client; print(zoneinfo.TZPATH == before)"

    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert found.stdout == "True\n"


def test_every_zone_of_the_list_can_be_read() -> None:
    assert all(zone_named(name).key == name for name in TIME_ZONES)
    assert {"UTC", "Europe/Bratislava", "America/New_York"} < TIME_ZONES


def test_business_days_can_be_pickled_for_a_worker() -> None:
    calendar = calendar_of({"1": Store("1", "Europe/Bratislava")})

    assert pickle.loads(pickle.dumps(calendar)) == calendar  # noqa: S301 - our own


@pytest.mark.parametrize(
    ("before", "now"),
    [
        ("Europe/Bratislava", "Europe/Bratislava"),
        ("right/Europe/Bratislava", "Europe/Bratislava"),
        ("posix/America/New_York", "America/New_York"),
        ("localtime", "UTC"),
        ("Factory", "UTC"),
    ],
)
def test_a_store_that_was_registered_with_a_zone_of_its_machine_can_still_be_read(before: str, now: str) -> None:
    assert Store.from_json(Store("1", before).to_json()).timezone == now


def test_many_stores_of_one_zone_that_opened_on_different_days_are_checked_at_once() -> None:
    first_misaligned_offset("Europe/Prague", date(1970, 1, 1))
    started = time.process_time()

    found = [first_misaligned_offset("Europe/Prague", date(1970, 1, 1) + timedelta(days=day)) for day in range(5_000)]

    assert found == [None] * 5_000
    assert time.process_time() - started < 1  # a scan of every day for each takes minutes
