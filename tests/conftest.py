"""Of all tests: no law fails because a machine is slow, for a time is no law; and garbage is collected seldom."""

import gc

from hypothesis import HealthCheck, settings

GARBAGE_AT = 50_000
"""So many new objects. By default 700: a page makes 100,000."""

settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")
gc.disable()  # modules and tests stay for the whole run


def pytest_collection_finish() -> None:
    """From here on garbage is collected, but not looked for among a million objects of modules and tests."""
    gc.freeze()
    gc.set_threshold(GARBAGE_AT, 10, 10)
    gc.enable()


def pytest_unconfigure() -> None:
    """What the process leaves is found again: extension modules report it otherwise."""
    gc.unfreeze()
