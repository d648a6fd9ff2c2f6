"""`galatea stores remove`: what it means is shown first, and nothing is removed until that is meant."""

import json
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from typer.testing import CliRunner

from deploy import cassandra, wiring
from galatea.cli.main import app
from master_dataset.errors import OperatorError, UnknownNameError
from master_dataset.registry.stores import Store
from serving_layer.alerts.rules import AlertRules, RuleAuthor
from tests.support.alert_tables import WorldVersions
from tests.support.registry_tables import RegistryTables, know_at_once, of_this_release

STORES = [Store(id=id_, timezone="UTC", tenant="acme") for id_ in ("1", "2", "3")]
RULE = {"kind": "level", "id": "queue", "of": "queue", "above": 4, "minutes": 3, "stores": ["1", "2"]}


@pytest.fixture
def tables(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> RegistryTables:
    """Three stores; the second has events, and a rule names the first two."""
    know_at_once(monkeypatch)
    monkeypatch.setenv("GALATEA_HOME", str(tmp_path))
    write_deltalake(str(tmp_path / "master" / "people_counts"), pa.table({"store": ["2", "9"]}))
    rules = AlertRules(WorldVersions(lambda: datetime(2026, 11, 21, tzinfo=UTC)))
    rules.create(RuleAuthor("acme", {each.id: each for each in STORES}), RULE)
    tables = RegistryTables(*STORES)
    monkeypatch.setattr(cassandra, "session_of", lambda _: tables)
    of_this_release(monkeypatch)
    monkeypatch.setattr(wiring, "alert_service_of", lambda _: SimpleNamespace(rules=rules))
    return tables


def test_without_being_told_so_it_removes_nothing_and_says_what_it_means(tables: RegistryTables) -> None:
    done = CliRunner().invoke(app, ["stores", "remove", "2", "1", "2", "--json"])

    assert json.loads(done.stdout) == {
        "dry_run": True,
        "stores": [
            {"id": "2", "tenant": "acme", "has_events": True, "rules": ["queue"]},
            {"id": "1", "tenant": "acme", "has_events": False, "rules": ["queue"]},
        ],
        "takes_effect_at": None,
    }
    assert sorted(tables.bodies) == ["1", "2", "3"]


def test_then_all_of_them_are_removed_and_it_says_what_becomes_of_their_events(tables: RegistryTables) -> None:
    done = CliRunner().invoke(app, ["stores", "remove", "2", "3", "--yes"])

    assert sorted(tables.bodies) == ["1"]
    assert "2 stores removed" in done.output
    assert "to register them again as they were: galatea stores load FILE\n" in done.output


def test_one_that_is_not_registered_keeps_all_of_them(tables: RegistryTables) -> None:
    done = CliRunner().invoke(app, ["stores", "remove", "1", "11", "--yes"])

    assert isinstance(done.exception, UnknownNameError)
    assert sorted(tables.bodies) == ["1", "2", "3"]


def test_tables_of_another_release_are_refused_before_anything_is_shown(
    tables: RegistryTables, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("deploy.schema.pending", lambda *_: [Path("035_later.cql")])
    for words in (["2"], ["2", "--yes"]):
        done = CliRunner().invoke(app, ["stores", "remove", *words])

        assert isinstance(done.exception, OperatorError)
        assert "needs `035_later.cql`" in done.exception.message
        assert not done.output
    assert sorted(tables.bodies) == ["1", "2", "3"]
