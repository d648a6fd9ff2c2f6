"""What an operator does is written down: by whom, what, and what came of it; what anybody reads is not."""

import json
import re
from pathlib import Path

import pytest
import typer
from starlette.routing import Route

from deploy.audit import CHANGES, Audit
from galatea.cli import main as command_line
from galatea.cli.common.recomputes import exit_now
from master_dataset.errors import NothingPublishedError, OperatorError
from serving_layer.api.caller import SAFE_METHODS
from tests.support import World, receipt
from tests.support.world_api import OPERATOR_KEY, Asking
from tests.support.world_clients import Browsing

RECOMPUTES = "/v1/recomputes"
BECAUSE = {"reason": "because"}
READING = {
    *("status", "doctor", "publications", "corrections", "verify", "reconcile", "lag", "views", "metrics", "ask"),
    "sensors",
    "stores show-floor-plan",
    *("sql", "plan-capacity", "recompute show", "stores list", "products list", "targets list", "keys list"),
    "annotations list",
    *("dead-letters list", "dead-letters show", "alerts rules", "alerts list", "webhooks list", "webhooks show"),
}
"""Commands that change nothing."""
NOT_AUDITED = {"run", "jars", "ingest", "simulate", "prove", "demo", "webhooks test"}
"""Commands that send events, which the master dataset keeps, load software, or are run by what starts components."""
NOT_AUDITED_OVER_REST = {
    *("POST /v1/events/{source}", "POST /v1/alert-rules/preview", "POST /login", "POST /logout", "POST /language"),
}
"""Events, which the master dataset keeps, a preview that changes nothing, sessions, and the language of a browser."""


@pytest.fixture
def asking() -> Asking:
    world = World()
    world.rebuild("2026-11-21T09:30:00Z")
    world.rebuild("2026-11-21T10:00:00Z")
    return Asking(world)


def lines(home: Path) -> list[dict[str, object]]:
    written = home / "logs" / "audit.jsonl"
    return [json.loads(line) for line in written.read_text().splitlines()] if written.exists() else []


def test_a_long_path_is_shortened(asking: Asking) -> None:
    key, path = asking.keys.make("default"), "/v1/saved-views/" + "x" * 15_000

    assert asking.response(path, method="DELETE", key=key).status_code == 422

    [(_, act, status)] = asking.acts
    assert status == 422
    assert act == f"DELETE {path[:500]}..."


def test_calls_over_rest_are_audited_with_key_and_status(asking: Asking) -> None:
    key = asking.keys.make("*", "operate")

    asking.response(RECOMPUTES, method="POST", key=key, said=BECAUSE)
    asking.response(RECOMPUTES, method="POST", key=OPERATOR_KEY, said={"reason": ""})
    asking.response("/v1/publications/1/rollback", method="POST", key=OPERATOR_KEY, said=BECAUSE)

    [known] = asking.keys.kept
    assert asking.acts == [
        (known.id, f"POST {RECOMPUTES}", 202),
        ("operator", f"POST {RECOMPUTES}", 422),
        ("operator", "POST /v1/publications/1/rollback", 200),
    ]


def test_a_form_of_a_page_is_audited_as_well(asking: Asking) -> None:
    browsing = Browsing(asking)
    browsing.sign_in()

    browsing.send("/recomputes", form_of="/recomputes", reason="because", mode="preview")

    assert asking.acts == [("operator", "POST /recomputes", 303)]


def test_reads_events_and_calls_with_an_invalid_key_are_not_audited(asking: Asking) -> None:
    asking.response("/v1/corrections", key=OPERATOR_KEY)
    asking.response("/v1/stores", key=OPERATOR_KEY)
    asking.sent(receipt("2026-11-21T09:00:00Z", minor=100))
    asking.response(RECOMPUTES, method="POST", key="a guess", said=BECAUSE)

    assert asking.acts == []


def test_lines_are_added_and_only_their_owner_may_read_them(tmp_path: Path) -> None:
    Audit(tmp_path).request("operator", "POST /v1/recomputes", 202)
    Audit(tmp_path).command(["keys", "revoke", "5f0c81d2a9b3"])

    first, second = lines(tmp_path)
    named = {name: first[name] for name in ("by", "via", "act", "status", "outcome")}
    assert named == {
        "by": "operator",
        "via": "rest",
        "act": "POST /v1/recomputes",
        "status": 202,
        "outcome": "done",
    }
    assert (second["via"], second["act"]) == ("command", "keys revoke 5f0c81d2a9b3")
    assert (tmp_path / "logs" / "audit.jsonl").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("words", "written"),
    [
        *(
            (words, [" ".join(words)])
            for words in (
                ["rollback", "3", "--why", "wrong prices"],
                ["stores", "load", "stores.yaml"],
                ["rebuild"],
                ["webhooks", "skip", "5f0c81d2a9b3", "alerts/0/42"],
            )
        ),
        (["webhooks", "list"], []),
        (["publications"], []),
        (["keys", "list"], []),
        (["status", "--json"], []),
        ([], []),
        (["rebuild", "--help"], []),
        (["keys", "revoke", "--help"], []),
        # What follows an option is its value, and `--` may stand anywhere.
        (["rollback", "3", "--why", "--help"], ["rollback 3 --why --help"]),
        (["--", "keys", "revoke", "5f0c"], ["-- keys revoke 5f0c"]),
        (["keys", "--", "revoke", "5f0c"], ["keys -- revoke 5f0c"]),
        # Of an address only its host: the path is often a secret.
        (
            ["webhooks", "add", "https://hooks.example/T1/s3cret?t=s3cret", "--tenant", "acme"],
            ["webhooks add https://hooks.example/... --tenant acme"],
        ),
        (
            ["webhooks", "change", "5f0c", "--url=https://me:s3cret@hooks.example:8443?s3cret"],
            ["webhooks change 5f0c --url=https://hooks.example:8443/..."],
        ),
    ],
)
def test_commands_that_change_something_are_written_down(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], written: list[str]
) -> None:
    monkeypatch.setenv("GALATEA_HOME", str(tmp_path))

    command_line.audit(words)

    assert [line["act"] for line in lines(tmp_path)] == written


def verbs() -> set[str]:
    """Every command, and every command of a group."""
    found = {name.replace("_", "-") for name in command_line.COMMANDS}
    root = typer.main.get_command(command_line.app)
    for name in command_line.GROUPS:
        group = root.get_command(None, name.replace("_", "-"))  # type: ignore[attr-defined]
        found |= {f"{group.name} {each}" for each in group.commands}
    return found


def test_every_command_is_known_to_change_something_or_not() -> None:
    assert verbs() == (CHANGES - set(command_line.FORMER_NAMES)) | READING | NOT_AUDITED
    assert CHANGES.isdisjoint(READING | NOT_AUDITED)


def test_the_page_on_monitoring_lists_every_command_of_the_audit_log() -> None:
    page = Path("docs/how-to/monitoring.md").read_text(encoding="utf-8")

    assert [each for each in sorted(CHANGES - set(command_line.FORMER_NAMES)) if f"`{each}`" not in page] == []


def leave(code: int) -> None:
    """`os._exit`, but for tests."""
    raise SystemExit(code)


def run_command(monkeypatch: pytest.MonkeyPatch, home: Path, words: str, ending: BaseException | None) -> None:
    """As a shell would, but instead of the command's own work, this is raised."""

    def work() -> None:
        if ending is not None:
            raise ending
        exit_now()

    monkeypatch.setenv("GALATEA_HOME", str(home))
    monkeypatch.setattr("sys.argv", ["galatea", *words.split()])
    monkeypatch.setattr("os._exit", leave)
    monkeypatch.setattr(command_line, "app", work)
    with pytest.raises(BaseException):  # noqa: B017, PT011 - the process would end
        command_line.main()


@pytest.mark.parametrize("verb", sorted(CHANGES))
def test_every_command_that_changes_something_is_one_entry_with_its_outcome(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    run_command(monkeypatch, tmp_path, f"{verb} an-argument", None)

    begun, ended = lines(tmp_path)
    assert (begun["act"], begun["via"], begun["outcome"]) == (f"{verb} an-argument", "command", "begun")
    assert begun["by"]
    assert ended == {**begun, "at": ended["at"], "outcome": "done", "exit_code": 0}


@pytest.mark.parametrize(
    ("ending", "outcome", "exit_code", "error"),
    [
        (SystemExit(0), "done", 0, None),
        (SystemExit(None), "done", 0, None),
        (SystemExit(1), "failed", 1, None),
        (SystemExit(2), "refused", 2, None),
        (SystemExit(130), "interrupted", 130, None),
        (KeyboardInterrupt(), "interrupted", 130, "KeyboardInterrupt"),
        (RuntimeError("canary"), "failed", 1, "RuntimeError"),
        (ValueError("canary"), "failed", 1, "ValueError"),
        (NothingPublishedError("canary", do="nothing"), "failed", 1, NothingPublishedError.code),
    ],
)
def test_the_outcome_of_a_command_is_how_it_ended(  # noqa: PLR0913, PLR0917 - of a table
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    ending: BaseException,
    outcome: str,
    exit_code: int,
    error: str | None,
) -> None:
    run_command(monkeypatch, tmp_path, "export", ending)

    _, ended = lines(tmp_path)
    assert (ended["outcome"], ended["exit_code"], ended.get("error")) == (outcome, exit_code, error)
    assert "canary" not in json.dumps(lines(tmp_path))


def test_nothing_is_changed_if_it_cannot_be_written_down(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "logs").write_text("not a folder")
    done = []
    monkeypatch.setenv("GALATEA_HOME", str(tmp_path))
    monkeypatch.setattr("sys.argv", ["galatea", "gc"])
    monkeypatch.setattr("os._exit", leave)
    monkeypatch.setattr(command_line, "app", lambda: done.append("gc"))

    with pytest.raises(SystemExit) as ended:
        command_line.main()

    assert (ended.value.code, done) == (OperatorError.exit_code, [])


def changes_over_rest(asking: Asking) -> list[tuple[str, str]]:
    """Method and path of every operation that is not safe."""
    found = [
        (method, route.path)
        for route in asking.app.router.routes
        if isinstance(route, Route)
        for method in sorted((route.methods or set()) - SAFE_METHODS)
    ]
    return [each for each in found if " ".join(each) not in NOT_AUDITED_OVER_REST]


def test_every_request_and_form_that_changes_something_is_one_entry(asking: Asking) -> None:
    browsing = Browsing(asking)
    browsing.sign_in()
    operations = changes_over_rest(asking)

    for method, path in operations:
        asking.acts.clear()
        called = re.sub(r"{[^}]*}", "1", path)
        if path.startswith("/v1/"):
            asking.response(called, method=method, key=OPERATOR_KEY, said={})
        else:
            browsing.send(called, form_of="/recomputes")

        [(by, act, status)] = asking.acts
        assert (by, act) == ("operator", f"{method} {called}")
        assert status in range(200, 500)

    assert len(operations) >= 20


@pytest.mark.parametrize("words", [["down"], ["keys", "revoke", "5f0c81d2a9b3"], ["webhooks", "remove", "5f0c"]])
def test_what_stops_something_or_takes_a_right_away_runs_on_a_full_disk(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    (tmp_path / "logs").touch()  # no folder, so that no file can be written in it

    entry = Audit(tmp_path).command(words)
    with pytest.raises(OperatorError, match="so nothing is changed"):
        Audit(tmp_path).command(["rebuild"])

    assert entry is not None
    entry.end(0)
    assert capsys.readouterr().err.count("the audit log cannot be written: ") == 2
