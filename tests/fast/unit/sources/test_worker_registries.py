"""A Spark worker keeps one registry for each Cassandra session, however many tasks it runs."""

import pickle
from functools import partial
from typing import Any

import pytest

from deploy.cassandra import Address
from master_dataset.registry import registry
from master_dataset.registry.registry import store_terms
from master_dataset.sources import registered_sources
from tests.support.registry_tables import RegistryTables

TASKS = 25


SESSIONS: dict[str, Any] = {"here": RegistryTables(), "there": RegistryTables()}


def session_of(address: str) -> Any:
    return SESSIONS[address]


@pytest.fixture(autouse=True)
def _no_registries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_registries", {})


def test_tasks_that_unpickle_their_connection_share_one_registry() -> None:
    sent = pickle.dumps(partial(session_of, "here"))

    terms_of = [store_terms(pickle.loads(sent)) for _ in range(TASKS)]  # noqa: S301 - as Spark sends it

    assert len(registry._registries) == 1  # noqa: SLF001 - what is kept is what leaked
    assert len({id(each.__self__) for each in terms_of}) == 1  # type: ignore[attr-defined]


def test_each_session_has_its_own_registry() -> None:
    for address in SESSIONS:
        store_terms(partial(session_of, address))

    assert len(registry._registries) == len(SESSIONS)  # noqa: SLF001 - likewise


def test_an_address_equals_itself_after_pickling_so_a_process_keeps_one_session_for_it() -> None:
    sent = pickle.dumps(Address(("10.0.0.1", "10.0.0.2"), 9042, "galatea"))

    assert len({pickle.loads(sent) for _ in range(TASKS)}) == 1  # noqa: S301 - as Spark sends it


@pytest.mark.parametrize("source", registered_sources().values(), ids=lambda source: source.topic)
def test_a_source_equals_itself_after_pickling_so_caches_keyed_by_it_do_not_grow(source: object) -> None:
    sent = pickle.dumps(source)

    assert len({source, *(pickle.loads(sent) for _ in range(TASKS))}) == 1  # noqa: S301 - as Spark sends it
