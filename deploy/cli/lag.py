"""`galatea lag`: how far each layer is behind the topics."""

from typing import Annotated

from typer import Option

from deploy.cli.output import answer, table
from deploy.settings import Settings


def lag(as_json: Annotated[bool, Option("--json", help="One JSON object on stdout.")] = False) -> None:
    """Show, per partition, how many records archive and speed have still to read."""
    from deploy.cassandra import session_of
    from master_dataset.archive_positions import ArchivePositions
    from master_dataset.kafka import Topics
    from master_dataset.sources import registered_sources
    from speed_layer.generation import Generations

    settings = Settings()
    session = session_of(settings.cassandra_address)
    generations = Generations(session)
    readers = {
        "archive": ArchivePositions(session).read(),
        "speed": generations.positions(generations.pointer().generation),
    }
    topics = Topics(settings.kafka_bootstrap)
    rows = [
        {
            "reader": reader,
            "topic": topic,
            "partition": partition,
            "position": at,
            "end": end,
            "records": max(end - at, 0),
        }
        for topic in registered_sources()
        for partition, end in sorted(topics.end_offsets(topic).items())
        for reader, positions in readers.items()
        for at in [positions.get(topic, {}).get(partition, 0)]
    ]
    if as_json:
        answer({"lag": rows})
    else:
        table(("reader", "topic", "partition", "position", "end", "records"), [tuple(row.values()) for row in rows])
