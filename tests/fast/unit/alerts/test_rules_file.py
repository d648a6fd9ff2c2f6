"""`galatea alerts apply`: the rules of a tenant become those of a file, all of them or none."""

import json
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from galatea.cli import alerts, main
from master_dataset.errors import BadFileError
from master_dataset.registry.stores import Store
from serving_layer.alerts.history import AlertListing, HistoryCoverage
from serving_layer.alerts.rules import AlertRules, AlertService, RuleAuthor
from serving_layer.alerts.rules_file import MOST_BYTES, MOST_RULES, apply_changes, load, plan_changes, read
from serving_layer.errors import RuleMovedError
from tests.fast.unit.alerts.test_refused_rules import REFUSED, STORES
from tests.support import World
from tests.support.alert_tables import WorldAlertTables, WorldVersions
from tests.support.process_metrics import WorldWatch
from tests.support.world_tables import WorldTables
from views.alerts.alert import Window

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
FILE = """
rules:
  - {kind: level, id: queue, of: queue, above: 4, minutes: 3, name: Queue too long}
  - kind: threshold
    id: weak
    metric: net_sales
    window: hour
    below: 50
    versus: previous_week
    on: false
"""
Run = Callable[..., tuple[int, str]]


@pytest.fixture
def versions() -> WorldVersions:
    return WorldVersions(lambda: NOW)


@pytest.fixture
def run(
    versions: WorldVersions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Run:
    """The command, with the text of a file as FILE; its exit code and what it said."""
    printed = WorldAlertTables(known=HistoryCoverage(NOW, None))
    printed.raised("2026-11-20T10:00:00Z")
    window = Window("2026-11-20T08:00:00Z", "2026-11-20T09:00:00Z")
    printed.followed(
        printed.raised("2026-11-20T09:02:00Z", rule="weak", window=window), "resolved", "2026-11-20T09:02:00Z"
    )
    published = World()
    published.rebuild("2026-11-20T12:00:00Z")
    stores = STORES | {"4": Store(id="4", timezone="UTC", tenant="acme")}
    monkeypatch.setattr(alerts, "_alerting", lambda: AlertService(AlertRules(versions, most=3), AlertListing(printed)))
    monkeypatch.setattr(alerts, "_stores", lambda: stores)
    monkeypatch.setattr(alerts, "_publications", lambda: (WorldWatch(published), WorldTables(published)))
    monkeypatch.setenv("GALATEA_HOME", str(tmp_path / "home"))
    monkeypatch.setattr("os._exit", sys.exit)  # where another test has loaded Spark
    monkeypatch.setattr("structlog.configure", lambda **_: None)
    monkeypatch.setattr(main, "tune_garbage_collection", lambda: None)

    def run(*words: str, text: str = FILE) -> tuple[int, str]:
        file = tmp_path / "alerts.yaml"
        file.write_text(text)
        monkeypatch.setattr(sys, "argv", ["galatea", "alerts", *(str(file) if w == "FILE" else w for w in words)])
        with pytest.raises(SystemExit) as ended:
            main.main()
        said = capsys.readouterr()
        return int(str(ended.value.code or 0)), said.out + said.err

    return run


def does(said: str) -> dict[str, str]:
    return {f"{each['tenant']}/{each['id']}": each["does"] for each in json.loads(said)["rules"]}


def test_rules_of_a_file_are_created_and_the_same_file_again_changes_nothing(run: Run, versions: WorldVersions) -> None:
    first = run("apply", "FILE", "--json")
    second = run("apply", "FILE", "--json")

    assert (first[0], does(first[1])) == (0, {"default/queue": "create", "default/weak": "create"})
    assert does(second[1]) == {"default/queue": "keep", "default/weak": "keep"}
    assert len(versions.rows) == 2


def test_a_dry_run_prints_the_difference_and_writes_nothing(run: Run, versions: WorldVersions) -> None:
    run("apply", "FILE")
    changed = FILE.replace("above: 4", "above: 5").replace("weak", "weaker")

    _, said = run("apply", "FILE", "--dry-run", "--prune", text=changed)

    assert "above: 4 -> 5" in said
    assert "weaker" in said
    assert "3 of 3 rules would change" in said
    assert len(versions.rows) == 2


def test_what_is_not_in_the_file_stays_unless_it_is_pruned(run: Run) -> None:
    run("apply", "FILE")
    only = "rules:\n  - {kind: level, id: queue, of: queue, above: 5, minutes: 3}\n"

    kept = does(run("apply", "FILE", "--json", text=only)[1])
    pruned = does(run("apply", "FILE", "--json", "--prune", text=only)[1])
    nothing = does(run("apply", "FILE", "--json", "--prune", text="rules: []")[1])

    assert kept == {"default/queue": "change"}
    assert pruned == {"default/weak": "remove", "default/queue": "keep"}
    assert nothing == {"default/queue": "remove"}


def test_a_tenant_is_named_by_the_rule_the_command_or_the_file(run: Run) -> None:
    rule = "{kind: level, id: r, of: queue, above: 5, minutes: 3"

    of_rule = run("apply", "FILE", "--json", text=f"rules:\n  - {rule}, tenant: acme}}\n")
    of_command = run("apply", "FILE", "--json", "--tenant", "another", text=f"tenant: acme\nrules:\n  - {rule}}}\n")
    of_file = run("apply", "FILE", "--json", text=f"tenant: acme\nrules:\n  - {rule}}}\n")

    assert [does(said) for _, said in (of_rule, of_command, of_file)] == [
        {"acme/r": "create"},
        {"another/r": "create"},
        {"acme/r": "keep"},
    ]


@pytest.mark.parametrize(("said", "field", "do"), [each for each in REFUSED if isinstance(each[0], dict)])
def test_one_invalid_rule_rejects_the_whole_file_and_its_place_is_named(
    run: Run, versions: WorldVersions, said: Any, field: str, do: str
) -> None:
    as_text = {name: each if isinstance(each, list) else str(each) for name, each in said.items() if each is not None}
    good = {"kind": "level", "id": "good", "of": "queue", "above": 4, "minutes": 3}

    code, printed = run("apply", "FILE", text=json.dumps({"rules": [good, as_text]}))

    assert code == 2
    assert "bad_rule: In `rules[1]`" in printed
    assert do in printed
    assert field.rpartition(".")[2] in printed
    assert versions.rows == []


def test_more_rules_than_a_tenant_may_have_are_refused_before_one_is_written(run: Run, versions: WorldVersions) -> None:
    many = [{"kind": "level", "id": f"r{n}", "of": "queue", "above": 4, "minutes": 3} for n in range(4)]

    refused = run("apply", "FILE", text=json.dumps({"rules": many}))
    at_the_limit = run("apply", "FILE", text=json.dumps({"rules": many[:3]}))

    assert (refused[0], "GALATEA_ALERT_RULES_PER_TENANT" in refused[1]) == (2, True)
    assert (at_the_limit[0], len(versions.rows)) == (0, 3)


@pytest.mark.parametrize(
    ("text", "do"),
    [
        ("[", "Correct it"),
        ("rules: 7", "Write `rules:`"),
        ("", "Write `rules:`"),
        ("rules: [7]", "Write `kind`"),
        ("rules: []\nstores: []", "Use one of: tenant, rules."),
        ("rules: []\ntenant: [a]", "Write one"),
        ("a: &a [*a]", "Correct it"),
    ],
)
def test_what_is_no_file_of_rules_is_refused_with_the_next_step(text: str, do: str) -> None:
    with pytest.raises(BadFileError) as refused:
        read(text)

    assert do in refused.value.do


def test_a_file_may_hold_so_many_rules_and_bytes_and_no_more(tmp_path: Path) -> None:
    file = tmp_path / "alerts.yaml"
    file.write_text("rules: []" + " " * (MOST_BYTES - 9))

    assert load(file).rules == []
    assert len(read("rules: [" + "{}," * MOST_RULES + "]").rules) == MOST_RULES
    with pytest.raises(BadFileError):
        read("rules: [" + "{}," * (MOST_RULES + 1) + "]")
    file.write_text("rules: []" + " " * (MOST_BYTES - 8))
    with pytest.raises(BadFileError):
        load(file)
    with pytest.raises(BadFileError):
        load(tmp_path / "nowhere.yaml")


def test_a_rule_that_stands_twice_in_a_file_is_refused(run: Run) -> None:
    code, said = run("apply", "FILE", text=FILE + FILE.partition("rules:")[2])

    assert (code, "repeats the rule `queue`" in said) == (2, True)


def test_rules_and_alerts_are_listed(run: Run) -> None:
    run("apply", "FILE")

    rules = json.loads(run("rules", "--json")[1])["rules"]
    listed = json.loads(run("list", "--json", "--state", "open")[1])
    _, shown = run("list")

    assert [(each["id"], each["rule"].get("above")) for each in rules] == [("queue", 4), ("weak", None)]
    assert (len(listed["alerts"]), listed["alerts_as_of"]) == (1, "2026-11-21T12:00:00Z")
    assert "above 4 for 3 minutes" in shown
    assert "as of 2026-11-21T12:00:00Z" in shown
    assert run("list", "--state", "opened")[0] == 2


def test_alerts_are_listed_as_provisional_until_a_publication_covers_them(run: Run) -> None:
    listed = json.loads(run("list", "--json")[1])["alerts"]

    provisional = {each["rule"]: each["provisional"] for each in listed}

    assert provisional == {"queue": True, "weak": False}


def test_a_rule_that_somebody_else_changed_meanwhile_keeps_all_of_them_as_they_were(versions: WorldVersions) -> None:
    rules = AlertRules(versions)
    rule = {"kind": "level", "of": "queue", "above": 4, "minutes": 3}
    one, other = ({**rule, "id": id_} for id_ in ("one", "other"))
    steps = plan_changes(rules, {}, [("default", one), ("default", other)])
    rules.create(RuleAuthor("default", {}), {**other, "above": 9})
    before = list(versions.rows)

    with pytest.raises(RuleMovedError):
        apply_changes(rules, steps)

    assert versions.rows == before


def test_a_rule_that_was_removed_can_be_made_again(versions: WorldVersions) -> None:
    rules = AlertRules(versions)
    wanted = [("default", {"kind": "level", "of": "queue", "above": 4, "minutes": 3, "id": "one"})]
    apply_changes(rules, plan_changes(rules, {}, wanted))
    rules.remove("default", "one")

    [entry] = apply_changes(rules, plan_changes(rules, {}, wanted))

    assert (entry.version, entry.removed) == (3, False)
