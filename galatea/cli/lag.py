"""`galatea lag`: how far archive and speed layer are behind the topics."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

from typer import Option

from deploy.console import print_json, print_message, print_table
from deploy.settings import Settings
from galatea.cli.common.options import AsJson

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from master_dataset.kafka.lag import Lag

_PARTITIONS = "One line per partition instead of one per reader."


def lag(partitions: Annotated[bool, Option("--partitions", help=_PARTITIONS)] = False, as_json: AsJson = False) -> None:
    """Show how many records archive and speed layer have not read, and the age of the oldest."""
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
        "speed": generations.positions(generations.greatest()),  # the newest, whether it is served or catching up
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
        return
    if partitions:
        columns = ("reader", "topic", "partition", "position", "end", "records", "seconds")
        print_table(columns, [tuple(row.values()) for row in rows])
    else:
        print_table(("reader", "not read", "oldest (s)", "topics behind"), totals_by_reader(measured, now))
    for reader in (reader for reader, positions in readers.items() if not positions):
        print_message(f"  {reader} is starting: it has recorded no position yet")


def totals_by_reader(measured: "Mapping[str, Sequence[Lag]]", now: datetime) -> list[tuple[str, int, float, str]]:
    """Return a row per reader: its name, how many records it has not read, the age of the oldest, and their topics."""
    rows = []
    for reader, own in measured.items():
        behind = [each for each in own if each.records]
        topics = ", ".join(dict.fromkeys(each.topic for each in behind)) or "none"
        oldest = max((each.seconds(now) for each in behind), default=0.0)
        rows.append((reader, sum(each.records for each in behind), round(oldest, 1), topics))
    return rows
