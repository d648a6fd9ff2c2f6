"""`galatea dead-letters`: records that could not become events, and how to patch and replay them."""

import sys
from collections import Counter
from collections.abc import Sequence
from getpass import getuser
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from deploy.console import ProgressSteps, print_fields, print_json, print_message, print_table, text_output
from deploy.settings import Settings
from galatea.cli.common.options import AsJson
from master_dataset.errors import BadFileError, RequestError

if TYPE_CHECKING:
    from master_dataset.dead_letters.dead_letter import DeadLetterQuery
    from master_dataset.dead_letters.patch import Patch
    from master_dataset.dead_letters.replay import DeadLetterResult


def patch_of(body: Path | None, put: Sequence[str], named: int) -> "Patch":
    """`named`: how many dead letters are named. RequestError, BadFileError."""
    from master_dataset.dead_letters.patch import Patch, patch_value

    if body is not None and put:
        raise RequestError("A record is replaced either as a whole or by field.", do="Leave out --with or --set.")
    if body is not None and named != 1:
        raise RequestError("`--with` replaces exactly one dead letter.", do="Name one ID, or use --set.")
    if body is not None:
        return Patch(_read(body))
    fields = {}
    for each in put:
        pointer, equals, text = each.partition("=")
        if not equals:
            raise RequestError(f"`{each}` has no value.", do="Write it like this: --set /store=12")
        fields[pointer] = patch_value(pointer, text.encode(errors="surrogateescape"))
    return Patch(fields=fields)


def _read(file: Path) -> bytes:
    """Read at most one byte more than a record may have, which shows that it is too large."""
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
    "duplicate": "already archived, not sent",
    "refused": "would be dead letters again, not sent",
    "unknown": "not confirmed by the broker: send them again",
}


def print_results(items: "Sequence[DeadLetterResult]", *, dry_run: bool, more: bool, as_json: bool) -> None:
    """Print the outcome of each. `more`: whether further ones match, after the last of these."""
    counts = Counter(each.outcome.value for each in items)
    if as_json:
        following = items[-1].position.id if more else None
        described = {"dry_run": dry_run, "counts": counts, "more": more, "next": following}
        print_json({**described, "items": [each.shown() for each in items]})
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
        print_message("  no dead letter matches, or all of them were sent again already")
    if more:
        print_message(f"  there are more: repeat the command with --after {items[-1].position.id}")
    if counts["sent"]:
        print_message("  Next: galatea dead-letters list --replayed, which shows the results")


def last_outcome(replays: Sequence[dict[str, Any]]) -> str:
    """Return the outcome of the newest replay of a dead letter; empty if there is none."""
    return str(replays[-1]["outcome"]) if replays else ""


def outcome_of(replay: dict[str, Any]) -> str:
    """Describe the outcome of a replay."""
    behind = {"duplicate": replay["duplicate_of"], "conflict": replay["duplicate_of"], "dead_letter": replay["reason"]}
    where = replay["sent_to"] or ""
    return " ".join(word for word in (replay["outcome"], where, behind.get(replay["outcome"])) if word)


def _row(item: "DeadLetterResult") -> tuple[str, ...]:
    why = item.rejection
    where = item.to or item.of
    refused = (why.reason.value, why.field, why.sentence) if why else ("", "", "")
    return (item.position.id, item.outcome.value, where.id if where else "", *refused)


app = typer.Typer(no_args_is_help=True, help="List, show, patch and replay records that could not become events.")
Reason = Annotated[str | None, typer.Option("--reason", help="Only this reason code.")]
Source = Annotated[str | None, typer.Option("--source", help="Only this source.")]
Since = Annotated[str | None, typer.Option("--from", help="Received at or after this UTC day or instant.")]
Until = Annotated[str | None, typer.Option("--to", help="Received before this UTC day or instant.")]
Replayed = Annotated[
    bool | None, typer.Option("--replayed/--open", help="Only those that were sent again, or only those that were not.")
]
Id = Annotated[str, typer.Argument(metavar="ID", help="topic/partition/offset")]
Ids = Annotated[list[str] | None, typer.Argument(metavar="ID", help="topic/partition/offset of each.")]
Body = Annotated[Path | None, typer.Option("--with", metavar="FILE", help="Send this record instead; `-` reads stdin.")]
Put = Annotated[list[str] | None, typer.Option("--set", metavar="POINTER=JSON", help="Set a field; repeatable.")]
SHOWN_TEXT = 4096
LISTED = ("id", "reason", "field", "received_at", "sentence")


@app.command("list")
def list_dead_letters(  # noqa: PLR0913, PLR0917 - one parameter per option
    reason: Reason = None,
    source: Source = None,
    since: Since = None,
    until: Until = None,
    replayed: Replayed = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=10_000, help="List this many, newest first.")] = 50,
    as_json: AsJson = False,
) -> None:
    """List dead letters, newest first, with the number per reason and the results of replays."""
    from deploy.wiring import dead_letters_of

    listed = dead_letters_of(Settings()).list_page(_question(reason, source, since, until, replayed), limit)
    counts = listed.counts
    if as_json:
        print_json(
            {
                "counts": counts and counts.dead_letters,
                "replayed": counts and counts.replayed,
                "dead_letters": listed.items,
            }
        )
        return
    if counts is None:
        print_message("  too many to count: name a source, or a shorter range")
    else:
        rows = [(number, counts.replayed.get(code, 0), code) for code, number in counts.dead_letters.items()]
        print_table(("count", "replayed", "reason"), rows)
    print_table(
        ("id", "reason", "field", "received at", "why", "replay"),
        [(*(each[name] for name in LISTED), last_outcome(each["replays"])) for each in listed.items],
    )


@app.command()
def show(
    identity: Id,
    raw: Annotated[bool, typer.Option("--raw", help="Print only its bytes, for example to edit them.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show one dead letter: its bytes, the field that fails, and the results of its replays."""
    from deploy.wiring import dead_letters_of
    from master_dataset.dead_letters.patch import pointer_span
    from master_dataset.kafka.record import RecordPosition

    dead_letter, described = dead_letters_of(Settings()).get(RecordPosition.of(identity))
    if raw and not sys.stdout.isatty():
        sys.stdout.buffer.write(dead_letter.value or b"")
        return
    if raw:
        text_output().write(described["text"])
        return
    if as_json:
        print_json(described)
        return
    print_fields({name: described[name] for name in (*LISTED, "key", "bytes")})
    print_fields({f"header {each['key']}": each["value"] for each in described["headers"]})
    if found := pointer_span(described["text"], dead_letter.field):
        print_fields({"value of the field": described["text"][found[0] : found[1]][:SHOWN_TEXT]})
    text_output().write(described["text"][:SHOWN_TEXT] + "\n")
    if replays := described["replays"]:
        shown = ("at", "by", "mended")
        print_table((*shown, "outcome"), [(*(each[name] for name in shown), outcome_of(each)) for each in replays])


@app.command()
def replay(  # noqa: PLR0913, PLR0917 - one parameter per option
    identities: Ids = None,
    reason: Reason = None,
    source: Source = None,
    since: Since = None,
    until: Until = None,
    body: Body = None,
    put: Put = None,
    limit: Annotated[
        int, typer.Option("--limit", min=1, max=100_000, help="Send at most this many, oldest first.")
    ] = 1000,
    after: Annotated[
        str | None, typer.Option("--after", metavar="ID", help="Only those received after this one.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what each would become; send nothing.")] = False,
    as_json: AsJson = False,
) -> None:
    """Send dead letters again, as they are or patched: the named ones, or all that match and were not sent again."""
    from deploy.backup.mark import refuse_unfinished_restore
    from deploy.cassandra import session_of
    from deploy.wiring import dead_letters_of, replayer_of
    from master_dataset.dead_letters.replay import ReplayRequest
    from master_dataset.errors import RequestError
    from master_dataset.kafka.record import RecordPosition
    from master_dataset.registry.registry import Registry

    settings = Settings()
    if bool(identities) == any((reason, source, since, until)):
        raise RequestError(
            "Dead letters are either named, or selected by reason, source or time.", do="Give either IDs or a filter."
        )
    if identities and after:
        raise RequestError(
            "`--after` only applies to dead letters selected by a filter.", do="Leave it out, or give no IDs."
        )
    patch, more = patch_of(body, put or (), len(identities or ())), False
    request = ReplayRequest([RecordPosition.of(each) for each in identities or ()], patch, getuser(), dry_run)
    if not identities:
        queries = dead_letters_of(settings)
        behind = queries.cursor_of(RecordPosition.of(after)) if after else None
        page = queries.list_replayable(_question(reason, source, since, until, None), limit, behind)
        more = page.following is not None
        request = ReplayRequest(
            [each.position for each in page.dead_letters], patch, getuser(), dry_run, page.dead_letters
        )
    session = session_of(settings.cassandra.address)
    refuse_unfinished_restore(session)
    terms_now = Registry(session).terms_now()
    with ProgressSteps("dead letters") as steps:
        items = replayer_of(settings).run(request, terms_now, steps.step)
    print_results(items, dry_run=dry_run, more=more, as_json=as_json)
    if any(each.outcome in {"refused", "unknown"} for each in items):
        raise typer.Exit(1)


def _question(
    reason: str | None, source: str | None, since: str | None, until: str | None, replayed: bool | None
) -> "DeadLetterQuery":
    from master_dataset.dead_letters.dead_letter import DeadLetterQuery, received_bound

    return DeadLetterQuery(reason, source, received_bound(since), received_bound(until), replayed)
