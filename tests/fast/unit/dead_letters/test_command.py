"""`galatea dead-letters` as a person types it: what it prints, and what it refuses before anything is asked."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from galatea.cli.dead_letters import app, show
from master_dataset.dead_letters.patch import Patch
from master_dataset.dead_letters.replay import ReplayRequest
from master_dataset.errors import GalateaError
from master_dataset.registry.stores import DEFAULT_TERMS
from tests.support.archiving import WorldDeadLetters
from tests.support.corpus.case import receipt

NO_TIME = receipt({"happened_at": '"[bold]yesterday"'})


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> WorldDeadLetters:
    """A record without a time that was patched and is an event now, and one that is no JSON."""
    made = WorldDeadLetters()
    [position, _] = made.archive.receive(NO_TIME, b'{"\xff')
    patch = Patch(fields={"/happened_at": b'"2026-11-21T11:00:00Z"'})
    made.replaying.run(
        ReplayRequest([position], patch, "anna", dry_run=False), lambda _: DEFAULT_TERMS, lambda *_: None
    )
    made.archive.catch_up()
    monkeypatch.setenv("GALATEA_MASTER_URI", made.archive.root)
    return made


def run(*words: str) -> str:
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, (done.output, done.exception)
    return done.stdout


@pytest.mark.usefixtures("world")
def test_a_list_says_how_many_of_each_reason_and_what_became_of_replays() -> None:
    printed, as_json = run("list"), json.loads(run("list", "--json"))
    some = json.loads(run("list", "--open", "--reason", "not_utf8", "--from", "2026-11-21", "--json"))

    assert "event" in printed
    assert (as_json["counts"], as_json["replayed"]) == ({"bad_time": 1, "not_utf8": 1}, {"bad_time": 1})
    assert [(each["id"], len(each["replays"])) for each in as_json["dead_letters"]] == [
        ("pos_transactions/0/1", 0),
        ("pos_transactions/0/0", 1),
    ]
    assert [each["id"] for each in some["dead_letters"]] == ["pos_transactions/0/1"]
    assert json.loads(run("list", "--to", "2026-11-21", "--json"))["dead_letters"] == []


@pytest.mark.usefixtures("world")
def test_one_is_shown_with_the_field_that_fails_as_it_stands_there() -> None:
    printed, as_json = run("show", "pos_transactions/0/0"), json.loads(run("show", "pos_transactions/0/0", "--json"))

    assert '"[bold]yesterday"' in printed
    assert "event pos_transactions/0/2" in " ".join(printed.split())
    assert (as_json["text"].encode(), as_json["field"], as_json["replays"][0]["outcome"]) == (
        NO_TIME,
        "/happened_at",
        "event",
    )
    assert as_json["replays"][0]["mended"] == "/happened_at"


@pytest.mark.usefixtures("world")
def test_its_bytes_alone_are_what_was_sent() -> None:
    assert CliRunner().invoke(app, ["show", "pos_transactions/0/1", "--raw"]).stdout_bytes == b'{"\xff'


@pytest.mark.parametrize(("number", "raw"), [(0, False), (0, True), (1, True)])
def test_no_record_can_steer_a_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, number: int, *, raw: bool
) -> None:
    made = WorldDeadLetters()
    made.archive.receive(b'{"\x1b]0;title\x07": 1}', b"\x1b[2J\xc2\x9b")
    made.archive.catch_up()
    monkeypatch.setenv("GALATEA_MASTER_URI", made.archive.root)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)

    show(f"pos_transactions/0/{number}", raw=raw)

    printed = capsys.readouterr().out
    assert (r"\x1b]0;title\x07", r"\x1b[2J\x9b")[number] in printed
    assert printed.replace("\n", "").isprintable()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "named, or selected"),
        (["pos_transactions/0/0", "--reason", "bad_time"], "named, or selected"),
        (["pos_transactions/0"], "not the id of a dead letter"),
        (["pos_transactions/0/0", "pos_transactions/0/1", "--with", "FILE"], "exactly one dead letter"),
        (["--reason", "bad_time", "--with", "FILE"], "exactly one dead letter"),
        (["pos_transactions/0/0", "--with", "FILE", "--set", "/a=1"], "as a whole or by field"),
        (["pos_transactions/0/0", "--with", "NO FILE"], "cannot be read"),
        (["pos_transactions/0/0", "--set", "/a"], "has no value"),
        (["pos_transactions/0/0", "--set", "a=1"], "not a pointer"),
        (["pos_transactions/0/0", "--set", "/a=yesterday"], "not JSON"),
        (["--reason", "bad_tim"], "no reason"),
        (["--source", "tills"], "no source"),
        (["--from", "yesterday"], "not a valid time"),
    ],
)
def test_an_invalid_request_is_rejected_before_anything_is_sent(words: list[str], said: str, tmp_path: Path) -> None:
    file = tmp_path / "body"
    file.write_bytes(receipt())
    words = [str(file) if word == "FILE" else word for word in words]

    done = CliRunner().invoke(app, ["replay", *words])

    assert isinstance(done.exception, GalateaError), done.output
    assert said in done.exception.message
    assert done.exception.exit_code == 2
