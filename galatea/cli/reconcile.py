"""`galatea reconcile`: checks that every received record is archived exactly once."""

from collections.abc import Mapping
from typing import NamedTuple

from typer import Exit

from deploy.console import ProgressSteps, print_json, print_message, print_table
from deploy.settings import Settings
from galatea.cli.common.options import AsJson


class Counted(NamedTuple):
    """Per topic: the offset up to which each partition is counted, and partitions that the archive has not read."""

    until: Mapping[int, int]
    not_read: list[str]


def reconcile(as_json: AsJson = False) -> None:
    """Check that received = events + duplicates + dead letters. Exit 1 if a record is missing or archived twice."""
    from deploy.cassandra import session_of
    from master_dataset.archive.reconcile import reconcile as counted
    from master_dataset.cassandra_tables import ArchivePositions
    from master_dataset.kafka.offset_audit import audit_offsets
    from master_dataset.kafka.topics import Topics
    from master_dataset.sources import registered_sources

    settings = Settings()
    positions = ArchivePositions(
        session_of(settings.cassandra.address)
    ).read()  # read first, so that the tables are never behind it
    kafka, topics = settings.kafka.connection, Topics(settings.kafka.connection)
    of = {
        topic: counted_until(topic, topics.end_offsets(topic) if topic in positions else {}, positions.get(topic, {}))
        for topic in registered_sources()
    }
    with ProgressSteps("reconcile") as steps:
        found = [
            counted(settings.paths.master_uri, topic, audit_offsets(kafka, topic, own.until, steps.step))
            for topic, own in of.items()
            if own.until
        ]
    unread = [each for own in of.values() for each in own.not_read]
    if as_json:
        print_json({"topics": [each.shown() for each in found], "not_read": unread})
    else:
        rows = [
            (
                each.received,
                each.events,
                each.duplicates,
                sum(each.dead_letters.values()),
                each.missing,
                each.twice,
                each.phantom,
            )
            for each in found
        ]
        columns = ("topic", "received", "events", "duplicates", "dead letters", "missing", "twice", "phantom")
        print_table(columns, [(each.topic, *map("{:,}".format, own)) for each, own in zip(found, rows, strict=True)])
        if unread:
            print_message(f"  not counted, because the archive has not read any of it yet: {', '.join(unread)}")
        print_message("  counted up to the archive's positions, for records that are still in the topics")
    if not all(each.is_balanced for each in found):
        raise Exit(1)


def counted_until(topic: str, ends: Mapping[int, int], positions: Mapping[int, int]) -> Counted:
    """`ends`: of the partitions that the broker has; `positions`: the archive's. A partition that never had any has 0.

    Named are partitions with records of which the archive has read none; a topic of which it has read none, whole.
    """
    if not positions:
        return Counted({}, [topic])
    until = {part: positions.get(part, 0) for part in ends}
    return Counted(until, [f"{topic}/{part}" for part, end in ends.items() if end and part not in positions])
