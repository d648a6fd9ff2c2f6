"""What cannot be simulated is refused before anything is made, in a sentence that says what to do."""

from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from lab.simulation.request import SimulationRequest, check_past
from master_dataset.errors import BadFileError, RequestError, UnknownNameError

DAY = date(2026, 3, 7)


@pytest.mark.parametrize(
    "wrong_request",
    [
        SimulationRequest(None, None, DAY, DAY, "1"),
        SimulationRequest(1, Path("stores.yaml"), DAY, DAY, "1"),
        SimulationRequest(0, None, DAY, DAY, "1"),
        SimulationRequest(101, None, DAY, DAY, "1"),
        SimulationRequest(1, None, DAY, DAY - timedelta(days=1), "1"),
        SimulationRequest(1, None, DAY, DAY + timedelta(days=366), "1"),
        SimulationRequest(100, None, DAY, DAY + timedelta(days=20), "1"),
        SimulationRequest(1, None, date(1969, 12, 31), date(1969, 12, 31), "1"),
        SimulationRequest(1, None, DAY, DAY, ""),
        SimulationRequest(1, None, DAY, DAY, "x" * 65),
        SimulationRequest(1, None, DAY, DAY, "a\nb"),
    ],
)
def test_what_is_beyond_a_limit_is_refused(wrong_request: SimulationRequest) -> None:
    with pytest.raises(RequestError) as refused:
        wrong_request.simulation()

    assert refused.value.do


def test_a_source_that_is_none_is_answered_with_the_nearest_name() -> None:
    with pytest.raises(UnknownNameError) as refused:
        SimulationRequest(1, None, DAY, DAY, "1", "people_count").simulation()

    assert "people_counts" in refused.value.do


def test_stores_of_a_file_get_simulated_sensors(tmp_path: Path) -> None:
    (tmp_path / "stores.yaml").write_text("stores: [{id: 010, timezone: Europe/Bratislava}]")

    simulation = SimulationRequest(
        None, tmp_path / "stores.yaml", DAY, DAY, "1", "people_counts, pos_transactions"
    ).simulation()

    assert [store.id for store in simulation.stores] == ["010"]
    assert all(sensor.id.startswith("sim-") for sensor in simulation.stores[0].sensors)
    assert simulation.topics == {"people_counts", "pos_transactions"}


def test_a_file_without_stores_and_no_file_are_refused(tmp_path: Path) -> None:
    (tmp_path / "stores.yaml").write_text("stores: []")

    with pytest.raises(RequestError):
        SimulationRequest(None, tmp_path / "stores.yaml", DAY, DAY, "1").simulation()
    with pytest.raises(BadFileError):
        SimulationRequest(None, tmp_path / "nowhere.yaml", DAY, DAY, "1").simulation()


def test_a_day_that_is_not_over_is_sent_only_as_fast_as_time() -> None:
    simulation = SimulationRequest(1, None, DAY, DAY, "1").simulation()
    noon = datetime(2026, 3, 7, 12, tzinfo=UTC)

    check_past(simulation, None, noon + timedelta(days=1))
    check_past(simulation, 1.0, noon)
    for speed in (None, 2.0):
        with pytest.raises(RequestError):
            check_past(simulation, speed, noon)
