"""`galatea dead-letters`: records that could not become events, and how to patch and replay them."""

import sys
from collections import Counter
from collections.abc import Sequence
from getpass import getuser
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from deploy.console import ProgressSteps, print_fields, print_json, print_message, print_table, stdout
from deploy.settings import Settings
from master_dataset.errors import BadFileError, RequestError

if TYPE_CHECKING:
    from master_dataset.dead_letters.dead_letter import DeadLetterQuery
    from master_dataset.dead_letters.patch import Patch
    from master_dataset.dead_letters.replay import DeadLetterResult


def mend_of(body: Path | None, put: Sequence[str], named: int) -> "Patch":
    """`named`: how many letters are named. RequestError, BadFileError."""
    from master_dataset.dead_letters.patch import Patch, patch_value

    if body is not None and put:
        raise RequestError("A record is replaced as a whole or in fields.", do="Leave out --with or --set.")
    if body is not None and named != 1:
        raise RequestError("A whole record is sent instead of one dead letter.", do="Name one ID, or use --set.")
    if body is not None:
        return Patch(_read(body))
    print_fields = {}
    for each in put:
        pointer, equals, text = each.partition("=")
        if not equals:
            raise RequestError(f"`{each}` sets nothing.", do="Write it as in --set /store=12")
        print_fields[pointer] = patch_value(pointer, text.encode(errors="surrogateescape"))
    return Patch(fields=print_fields)


def _read(file: Path) -> bytes:
    """One byte more than a record may have is enough to see that it is too large."""
    from master_dataset.parsing.json_bytes import MAX_BYTES

    if str(file) == "-":
        return sys.stdin.buffer.read(MAX_BYTES + 1)
    try:
        with file.open("rb") as opened:
            return opened.read(MAX_BYTES + 1)
    except OSError as error:
        raise BadFileError(f"`{file}` cannot be read: {error.strerror}.", do="Name a file, or `-`.") from error


NAMED = 20
WORDS = {
    "event": "would become events",
    "sent": "sent",
    "duplicate": "are there already, nothing was sent",
    "refused": "would be dead letters again, not sent",
    "unknown": "not confirmed by the broker: send them again",
}


def tell(items: "Sequence[DeadLetterResult]", *, dry_run: bool, more: bool, as_json: bool) -> None:
    """`more`: whether others fit that were not looked at; `next` says behind which they are."""
    counts = Counter(each.outcome.value for each in items)
    if as_json:
        following = items[-1].position.id if more else None
        told = {"dry_run": dry_run, "counts": counts, "more": more, "next": following}
        print_json({**told, "items": [each.shown() for each in items]})
        return
    others = [each for each in items if each.outcome not in {"event", "sent"}]
    named = items if len(items) <= NAMED else others[:NAMED]
    if named:
        print_table(("id", "outcome", "to", "reason", "field", "why"), [_row(each) for each in named])
    if len(others) > NAMED:
        print_message(f"  and {len(others) - NAMED:,} more that were not sent: --json names each")
    for outcome, number in counts.items():
        print_message(f"  {number:,} {WORDS[outcome]}")
    if not items:
        print_message("  nothing fits that was not sent again already")
    if more:
        print_message(f"  and there are more: the same again with --after {items[-1].place.id}")
    if counts["sent"]:
        print_message("  Next: galatea dead-letters list --replayed, which says what became of them")


def last(replays: Sequence[dict[str, Any]]) -> str:
    """What became of the newest replay of a letter; empty if there is none."""
    return str(replays[-1]["outcome"]) if replays else ""


def said(replay: dict[str, Any]) -> str:
    """What became of it."""
    behind = {"duplicate": replay["duplicate_of"], "conflict": replay["duplicate_of"], "dead_letter": replay["reason"]}
    where = replay["sent_to"] or ""
    return " ".join(word for word in (replay["outcome"], where, behind.get(replay["outcome"])) if word)


def _row(item: "DeadLetterResult") -> tuple[str, ...]:
    why = item.rejection
    where = item.to or item.of
    refused = (why.reason.value, why.field, why.sentence) if why else ("", "", "")
    return (item.position.id, item.outcome.value, where.id if where else "", *refused)


app = typer.Typer(no_args_is_help=True, help="Look at the records that could not become events, mend and replay them.")
AsJson = Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")]
Reason = Annotated[str | None, typer.Option("--reason", help="Only this reason code.")]
Source = Annotated[str | None, typer.Option("--source", help="Only this source.")]
Since = Annotated[str | None, typer.Option("--from", help="Received then or later: a UTC day, or an instant.")]
Until = Annotated[str | None, typer.Option("--to", help="Received before that, likewise.")]
Replayed = Annotated[bool | None, typer.Option("--replayed/--open", help="Only those that were sent again, or not.")]
Id = Annotated[str, typer.Argument(metavar="ID", help="topic/partition/offset")]
Ids = Annotated[list[str] | None, typer.Argument(metavar="[ID]...", help="topic/partition/offset of each.")]
Body = Annotated[Path | None, typer.Option("--with", metavar="FILE", help="Send this record instead; `-` reads stdin.")]
Put = Annotated[list[str] | None, typer.Option("--set", metavar="POINTER=JSON", help="Set a field; may be repeated.")]
SHOWN_TEXT = 4096
LISTED = ("id", "reason", "field", "received_at", "sentence")


@app.command("list")
def list_letters(  # noqa: PLR0913, PLR0917 - one parameter per option
    reason: Reason = None,
    source: Source = None,
    since: Since = None,
    until: Until = None,
    replayed: Replayed = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=10_000, help="How many, newest first.")] = 50,
    as_json: AsJson = False,
) -> None:
    """List dead letters, newest first, with the number of each reason and what became of replays."""
    from deploy.wiring import dead_letters_of

    listed = dead_letters_of(Settings()).listed(_question(reason, source, since, until, replayed), limit)
    counts = listed.counts
    if as_json:
        print_json(
            {
                "counts": counts and counts.letters,
                "replayed": counts and counts.replayed,
                "dead_letters": listed.told,
            }
        )
        return
    if counts is None:
        print_message("  too many to be counted: name a source, or a shorter time")
    else:
        rows = [(number, counts.replayed.get(code, 0), code) for code, number in counts.letters.items()]
        print_table(("count", "replayed", "reason"), rows)
    print_table(
        ("id", "reason", "field", "received at", "why", "replay"),
        [(*(each[name] for name in LISTED), last(each["replays"])) for each in listed.told],
    )


@app.command()
def show(
    identity: Id,
    raw: Annotated[bool, typer.Option("--raw", help="Its bytes alone, such as to mend them in a file.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show one dead letter with its bytes, the field that fails, and what became of its replays."""
    from deploy.wiring import dead_letters_of
    from master_dataset.dead_letters.patch import pointer_span
    from master_dataset.kafka.record import RecordPosition

    letter, told = dead_letters_of(Settings()).shown(RecordPosition.of(identity))
    if raw:
        sys.stdout.buffer.write(letter.value or b"")
        return
    if as_json:
        print_json(told)
        return
    print_fields({name: told[name] for name in (*LISTED, "key", "bytes")})
    print_fields({f"header {each['key']}": each["value"] for each in told["headers"]})
    if found := pointer_span(told["text"], letter.field):
        print_fields({"the field says": told["text"][found[0] : found[1]][:SHOWN_TEXT]})
    stdout.print(told["text"][:SHOWN_TEXT], markup=False)
    if replays := told["replays"]:
        shown = ("at", "by", "mended")
        print_table((*shown, "outcome"), [(*(each[name] for name in shown), said(each)) for each in replays])


@app.command()
def replay(  # noqa: PLR0913, PLR0917 - one parameter per option
    identities: Ids = None,
    reason: Reason = None,
    source: Source = None,
    since: Since = None,
    until: Until = None,
    body: Body = None,
    put: Put = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=100_000, help="How many at most, oldest first.")] = 1000,
    after: Annotated[str | None, typer.Option("--after", metavar="ID", help="Only what was received after it.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what each would become, and send nothing.")] = False,
    as_json: AsJson = False,
) -> None:
    """Send dead letters again, as they are or mended: those named, or those that fit and were never sent again."""
    from deploy.cassandra import session_of
    from deploy.wiring import dead_letters_of, replayer_of
    from master_dataset.dead_letters.replay import ReplayRequest
    from master_dataset.errors import RequestError
    from master_dataset.kafka.record import RecordPosition
    from master_dataset.registry.registry import Registry

    settings = Settings()
    if bool(identities) == any((reason, source, since, until)):
        raise RequestError("Dead letters are named, or chosen by reason, source or time.", do="Do one of both.")
    if identities and after:
        raise RequestError("`--after` is about dead letters that are chosen.", do="Leave it out, or name none.")
    mend, more = mend_of(body, put or (), len(identities or ())), False
    asked = ReplayRequest([RecordPosition.of(each) for each in identities or ()], mend, getuser(), dry_run)
    if not identities:
        desk = dead_letters_of(settings)
        behind = desk.where(RecordPosition.of(after)) if after else None
        page = desk.open(_question(reason, source, since, until, None), limit, behind)
        more = page.following is not None
        asked = ReplayRequest([each.position for each in page.letters], mend, getuser(), dry_run, page.letters)
    registry = Registry(session_of(settings.cassandra.address))
    registry.stores()
    with ProgressSteps("dead letters") as steps:
        items = replayer_of(settings).run(asked, registry.terms_of, steps.step)
    tell(items, dry_run=dry_run, more=more, as_json=as_json)
    if any(each.outcome in {"refused", "unknown"} for each in items):
        raise typer.Exit(1)


def _question(
    reason: str | None, source: str | None, since: str | None, until: str | None, replayed: bool | None
) -> "DeadLetterQuery":
    from master_dataset.dead_letters.dead_letter import DeadLetterQuery, received_bound

    return DeadLetterQuery(reason, source, received_bound(since), received_bound(until), replayed)
