"""`galatea dead-letters`: the records that could not become events."""

from typing import Annotated

import typer

from deploy.cli.output import answer, fields, table
from deploy.settings import Settings

app = typer.Typer(no_args_is_help=True, help="Look at the records that could not become events.")
AsJson = Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")]


@app.command("list")
def list_letters(
    reason: Annotated[str | None, typer.Option("--reason", help="Only this reason code.")] = None,
    source: Annotated[str | None, typer.Option("--source", help="Only this source.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=10_000, help="How many, newest first.")] = 50,
    as_json: AsJson = False,
) -> None:
    """List dead letters, newest first, with the number of each reason."""
    from master_dataset.dead_letters import DeadLetters

    letters = DeadLetters(Settings().master_uri)
    counts, found = letters.counts(reason, source), letters.newest(reason, source, limit)
    if as_json:
        answer({"counts": counts, "dead_letters": [letter.summary() for letter in found]})
        return
    table(("count", "reason"), [(number, code) for code, number in counts.items()])
    table(
        ("id", "reason", "field", "received at", "why"),
        [(each.id, each.reason, each.field, each.received_at, each.sentence) for each in found],
    )


@app.command()
def show(
    identity: Annotated[str, typer.Argument(metavar="ID", help="topic/partition/offset")], as_json: AsJson = False
) -> None:
    """Show one dead letter with its bytes."""
    from master_dataset.dead_letters import DeadLetters

    letter = DeadLetters(Settings().master_uri).find(identity)
    if as_json:
        answer(letter.whole())
    else:
        fields(letter.whole())
