"""The health of sensors in the clients and in the terminal, as the API answers it."""

import json
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from typer.testing import CliRunner, Result

from deploy.secret_files import write_private
from galatea.cli import main
from galatea.client import Client
from master_dataset.errors import RequestError
from master_dataset.registry.stores import Sensor, Store
from master_dataset.sources.sensor_heartbeats import SENSOR_HEARTBEATS
from tests.support import World
from tests.support.world_api import OPERATOR_KEY, Asking
from tests.support.world_clients import served

DAY = datetime(2026, 11, 17, tzinfo=UTC)
QUARTER = timedelta(minutes=15)
SINCE = date(2026, 11, 17)


@pytest.fixture
def url() -> Iterator[str]:
    """Store 1 in Bratislava has a sensor that is alive and one that never was; store 2 has none, store 3 one."""
    heard, never = Sensor("ap-1", "wifi_sightings", since=SINCE), Sensor("q-1", "queue_events", "Q1", SINCE)
    world = World(
        Store(id="1", timezone="Europe/Bratislava", sensors=(heard, never)),
        Store(id="2", timezone="UTC"),
        Store(id="3", timezone="UTC", sensors=(heard,)),
    )
    world.rebuild(DAY - timedelta(days=1))
    for number in range(-4, 40):
        said = {"sensor_id": "ap-1", "source": "wifi_sightings", "interval_ms": 900_000, "operation_id": "1"}
        at = DAY + number * QUARTER
        world.receive(json.dumps(said | {"happened_at": at.isoformat()}).encode(), at + QUARTER, SENSOR_HEARTBEATS)
    with served(Asking(world)) as found:
        yield found


@pytest.fixture
def home(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home whose API answers from that world."""
    write_private(tmp_path / "operator.key", OPERATOR_KEY)
    monkeypatch.setenv("GALATEA_HOME", str(tmp_path))
    monkeypatch.setenv("GALATEA_API_PORT", str(urlsplit(url).port))
    return tmp_path


def sensors(*words: str) -> Result:
    return CliRunner().invoke(main.app, ["sensors", *words])


def test_a_client_iterates_over_the_sensors_of_all_pages(url: str) -> None:
    with Client(url, OPERATOR_KEY) as galatea:
        found = list(galatea.sensors(limit=1))
        silent = list(galatea.sensors(store=3, state=["never", "silent"], start="2026-11-17"))

    assert [(each.store, each.sensor, each.state) for each in found] == [
        ("1", "ap-1", "ok"),
        ("1", "q-1", "never"),
        ("3", "ap-1", "never"),
    ]
    assert found[0].last_signal == DAY + 39 * QUARTER
    assert (found[0].coverage_percent, found[0].days[0].coverage_percent) == (Decimal("100.0"), None)
    assert [(each.store, each.start) for each in silent] == [("3", SINCE)]


@pytest.mark.usefixtures("home")
def test_the_terminal_lists_problems_first_in_columns() -> None:
    done = sensors()

    assert done.exit_code == 0, done.output
    header, *lines = done.stdout.splitlines()
    assert header.split() == [
        "state",
        "store",
        "sensor",
        "source",
        "place",
        "last",
        "signal",
        "coverage",
        "drift",
        "notes",
    ]
    assert lines[0].split() == ["never", "1", "q-1", "queue_events", "Q1", "none", "0.0", "%", "-"]
    assert lines[1].split() == ["never", "3", "ap-1", "wifi_sightings", "none", "0.0", "%", "-"]
    assert lines[2].split() == ["ok", "1", "ap-1", "wifi_sightings", "2026-11-17", "10:45-11:00", "100.0", "%", "-"]


@pytest.mark.usefixtures("home")
def test_json_is_one_object_with_the_fields_of_rest() -> None:
    [found] = json.loads(sensors("--json", "--store", "1", "--state", "ok").stdout)["sensors"]

    assert (found["sensor"], found["state"], found["measured_by"]) == ("ap-1", "ok", "sensor")
    assert found["last_signal"] == "2026-11-17T09:45:00Z"
    assert found["days"][-1] == {"day": "2026-11-17", "coverage_percent": 100.0}


@pytest.mark.usefixtures("home")
def test_an_empty_list_says_so() -> None:
    done = sensors("--store", "2")

    assert (done.stdout, done.exit_code) == ("", 0)
    assert "No sensor to show" in done.stderr


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize(
    "words", [("--state", "dead"), ("--hours", "never"), ("--store", "nobody,"), ("--range", "ever")]
)
def test_wrong_options_are_refused(words: tuple[str, ...]) -> None:
    assert isinstance(sensors(*words).exception, RequestError)
