"""One shop with sensors, and a reader of what they send."""

import pytest

from lab.simulation.stores import equipped
from master_dataset.registry.stores import Store


@pytest.fixture(scope="session")
def store() -> Store:
    return equipped(Store("7", "Europe/Bratislava", opening_hours={"sat": ("08:00-20:00",), "sun": ("09:00-18:00",)}))
