"""Units are as they are by default, whatever stack runs beside them in the same test run."""

import os

import pytest


@pytest.fixture(autouse=True)
def _default_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("GALATEA_")]:
        monkeypatch.delenv(name)
