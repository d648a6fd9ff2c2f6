"""How the tests are shared out when two processes run them, as `make test` lets them."""

import pytest

WITH_NEIGHBOURS = {"deployments", "drills", "integration"}
"""Folders whose tests start stacks: one stack at a time, and beside it what needs none."""


@pytest.hookimpl(tryfirst=True)  # xdist reads the marks in the same hook
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """One process takes all tests of these folders, the other all the rest."""
    for item in items:
        kind = "stacks" if WITH_NEIGHBOURS & set(item.path.parts) else "pure"
        item.add_marker(pytest.mark.xdist_group(kind))
