"""Commands about the registry, over a Cassandra of which only the registered stores are there."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from deploy import cassandra
from galatea.cli import keys
from galatea.cli.common.tenants import warn_of_unknown_tenants
from galatea.cli.main import app
from master_dataset.errors import OperatorError, UnknownNameError
from master_dataset.registry import registration
from master_dataset.registry.stores import Store
from tests.support.registry_tables import RegistryTables, of_this_release

STORES = [
    Store(id="2", timezone="UTC", tenant="acme"),
    Store(id="9", timezone="UTC", tenant="acme", name="Nine"),
    Store(id="1", timezone="UTC", tenant="zeta"),
    Store(id="10", timezone="UTC", tenant="acme"),
]


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cassandra, "session_of", lambda _: RegistryTables(*STORES))
    of_this_release(monkeypatch)


def refusal(*words: str) -> UnknownNameError:
    done = CliRunner().invoke(app, list(words))
    assert isinstance(done.exception, UnknownNameError), done.output
    return done.exception


@pytest.mark.usefixtures("registered")
@pytest.mark.parametrize("kind", ["products", "targets"])
def test_a_tenant_without_stores_is_refused_with_the_one_that_was_meant(kind: str, tmp_path: Path) -> None:
    file = tmp_path / "file.csv"
    file.write_text("sku,title\n1,Milk\n")

    for command in (("load", str(file)), ("list",)):
        wrong = refusal(kind, *command, "--tenant", "acne")
        usual = refusal(kind, *command)

        assert (wrong.message, wrong.do) == ("There is no tenant `acne`.", "Did you mean `acme`?")
        assert (usual.message, usual.do) == ("There is no tenant `default`.", "Use one of: `acme`, `zeta`.")


@pytest.mark.usefixtures("registered")
@pytest.mark.parametrize("kind", ["stores", "products", "targets"])
def test_nothing_is_loaded_into_tables_of_another_release(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "file"
    file.write_text("stores: []\n" if kind == "stores" else "sku,title\n1,Milk\n")
    monkeypatch.setattr("deploy.schema.pending", lambda *_: [Path("035_later.cql")])
    done = CliRunner().invoke(app, [kind, "load", str(file)])

    assert isinstance(done.exception, OperatorError), done.output
    assert (done.exception.do, "035_later.cql" in done.exception.message) == ("galatea migrate", True)


@pytest.mark.usefixtures("registered")
def test_a_store_that_moves_to_another_tenant_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "stores.yaml"
    stores = [{"id": id_, "timezone": "UTC", "tenant": "acme"} for id_ in ("1", "2", "7")]
    file.write_text(json.dumps({"stores": stores}))
    monkeypatch.setattr(registration, "register", lambda *_, **__: None)

    done = CliRunner().invoke(app, ["stores", "load", str(file)])
    in_json = CliRunner().invoke(app, ["stores", "load", str(file), "--json"])

    assert [line for line in done.stderr.splitlines() if "tenant" in line] == [
        "  store 1 moved from tenant zeta to acme, with its history"
    ]
    assert json.loads(in_json.stdout)["moved"] == ["1"]


def test_before_any_store_is_registered_that_is_the_next_step(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(cassandra, "session_of", lambda _: RegistryTables())
    of_this_release(monkeypatch)

    assert "galatea stores load" in refusal("products", "load", str(tmp_path)).do


@pytest.mark.usefixtures("registered")
def test_stores_are_listed_by_tenant_and_id() -> None:
    listed = CliRunner().invoke(app, ["stores", "list", "--json"])
    shown = CliRunner().invoke(app, ["stores", "list"])

    stores = json.loads(listed.output)["stores"]
    assert [(each["tenant"], each["id"]) for each in stores] == [
        ("acme", "10"),
        ("acme", "2"),
        ("acme", "9"),
        ("zeta", "1"),
    ]
    assert [line.split()[:2] for line in shown.output.splitlines()] == [
        ["tenant", "id"],
        ["acme", "10"],
        ["acme", "2"],
        ["acme", "9"],
        ["zeta", "1"],
    ]


def test_a_tenant_without_stores_is_warned_of_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    warn_of_unknown_tenants(["acme", "acne", "*", "acne"], STORES)

    said = "  Warning: no store has the tenant `acne` yet. Did you mean `acme`?\n"
    assert capsys.readouterr() == ("", said)


@pytest.mark.usefixtures("registered")
def test_a_key_for_a_tenant_without_stores_is_created_with_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keys, "_with", lambda _: None)

    known = CliRunner().invoke(app, ["keys", "create", "--tenant", "acme", "--scope", "read"])
    wrong = CliRunner().invoke(app, ["keys", "create", "--tenant", "acne", "--scope", "read", "--json"])

    assert "Warning" not in known.stderr
    assert "no store has the tenant `acne`" in wrong.stderr
    assert json.loads(wrong.stdout)["tenant"] == "acne"


@pytest.mark.usefixtures("registered")
def test_a_load_of_stores_says_which_tenants_are_new(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(registration, "register", lambda *_, **__: None)
    file = tmp_path / "stores.yaml"
    file.write_text("stores: [{id: 2, timezone: UTC, tenant: acme}, {id: 3, timezone: UTC, tenant: acne}]")

    done = CliRunner().invoke(app, ["stores", "load", str(file)])

    assert "  new tenants: acne\n" in done.stderr
