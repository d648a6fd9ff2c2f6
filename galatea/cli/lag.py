"""`galatea lag`: how far archive and speed layer are behind the topics."""

from datetime import UTC, datetime

from deploy.console import print_json, print_table
from deploy.settings import Settings
from galatea.cli.options import AsJson


def lag(as_json: AsJson = False) -> None:
    """Show, per partition, how many records archive and speed layer have not read, and the age of the oldest."""
    from deploy.cassandra import session_of
    from master_dataset.cassandra_tables import ArchivePositions
    from master_dataset.kafka.lag import LagProbe
    from master_dataset.sources import registered_sources
    from views.control.generation import Generations

    settings = Settings()
    session = session_of(settings.cassandra.address)
    generations = Generations(session)
    readers = {
        "archive": ArchivePositions(session).read(),
        "speed": generations.positions(generations.greatest()),  # the running one, served or catching up
    }
    with LagProbe(settings.kafka.connection) as probe:
        measured = {reader: probe.measure(registered_sources(), positions) for reader, positions in readers.items()}
    now = datetime.now(UTC)
    rows = [
        {
            "reader": reader,
            "topic": each.topic,
            "partition": each.partition,
            "position": each.position,
            "end": each.end,
            "records": each.records,
            "seconds": round(each.seconds(now), 3),
        }
        for reader, own in measured.items()
        for each in own
    ]
    if as_json:
        print_json({"lag": rows})
    else:
        print_table(
            ("reader", "topic", "partition", "position", "end", "records", "seconds"),
            [tuple(row.values()) for row in rows],
        )
