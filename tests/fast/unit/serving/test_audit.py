"""What an operator does is written down: by whom, what, and what came of it; what anybody reads is not."""

import json
from pathlib import Path

import pytest

from deploy.audit import Audit
from galatea.cli import main as command_line
from tests.support import World, receipt
from tests.support.world_api import OPERATOR_KEY, Asking
from tests.support.world_clients import Browsing

RECOMPUTES = "/v1/recomputes"
BECAUSE = {"reason": "because"}


@pytest.fixture
def asking() -> Asking:
    world = World()
    world.rebuild("2026-11-21T09:30:00Z")
    world.rebuild("2026-11-21T10:00:00Z")
    return Asking(world)


def lines(home: Path) -> list[dict[str, object]]:
    written = home / "logs" / "audit.jsonl"
    return [json.loads(line) for line in written.read_text().splitlines()] if written.exists() else []


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
    assert (first["by"], first["via"], first["act"], first["status"]) == (
        "operator",
        "rest",
        "POST /v1/recomputes",
        202,
    )
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
