"""`galatea balance`: whether every record that was received is still there."""

from typing import Annotated

from typer import Exit, Option

from deploy.cli.output import Steps, answer, say, table
from deploy.settings import Settings


def balance(as_json: Annotated[bool, Option("--json", help="One JSON object on stdout.")] = False) -> None:
    """Compare topics and tables: received = events + duplicates + dead letters. Exit 1 unless each is there once."""
    from deploy.cassandra import session_of
    from master_dataset.archive_positions import ArchivePositions
    from master_dataset.balance import balance as counted
    from master_dataset.sources import registered_sources
    from master_dataset.topic_census import census

    settings = Settings()
    positions = ArchivePositions(session_of(settings.cassandra_address)).read()  # first: the tables are never behind
    with Steps("balance") as steps:
        found = [
            counted(settings.master_uri, topic, census(settings.kafka_bootstrap, topic, positions[topic], steps.step))
            for topic in registered_sources()
            if topic in positions
        ]
    unread = [topic for topic in registered_sources() if topic not in positions]
    if as_json:
        answer({"topics": [each.shown() for each in found], "not_read": unread})
    else:
        rows = [
            (
                each.received, each.events, each.duplicates, sum(each.dead_letters.values()),
                each.missing, each.twice, each.phantom,
            )
            for each in found
        ]  # fmt: skip
        columns = ("topic", "received", "events", "duplicates", "dead letters", "missing", "twice", "phantom")
        table(columns, [(each.topic, *map("{:,}".format, own)) for each, own in zip(found, rows, strict=True)])
        if unread:
            say(f"  not counted, as the archive has read none of it yet: {', '.join(unread)}")
        say("  counted up to the archive's positions, of what the topics still hold")
    if not all(each.is_well for each in found):
        raise Exit(1)
