"""`galatea ingest`: send the records of a file to their topic."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, Self

from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar
from typer import Argument, Exit, Option

from deploy.console import is_terminal, print_json, print_message, stderr
from deploy.settings import Settings
from galatea.cli.common.options import AsJson
from master_dataset.errors import BadFileError, OperatorError
from master_dataset.sources import source_named

if TYPE_CHECKING:
    from master_dataset.kafka.ingest import IngestResult
    from master_dataset.kafka.producer import Delivery
    from master_dataset.source import Source

PLAIN_SECONDS = 5.0
MOST_LINES = 10**12


def ingest(  # noqa: PLR0913 - one parameter per option
    source: Annotated[str, Argument(help="A source, such as pos_transactions.")],
    file: Annotated[Path, Argument(help="JSON Lines, one record per line. `-` reads stdin.")],
    *,
    rate: Annotated[float | None, Option(help="Maximum number of records per second.", min=0.001)] = None,
    from_line: Annotated[int, Option("--from-line", help="First line to send, to resume.", min=1, max=MOST_LINES)] = 1,
    token: Annotated[
        bool, Option("--token", help="Print a token of these events, for --at-least of `galatea ask`.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Send the records of FILE to the topic of SOURCE, and wait until the broker has acknowledged each."""
    from master_dataset.kafka.ingest import IngestOptions, paced, read_lines
    from master_dataset.kafka.ingest import ingest as send

    into, settings = source_named(source), Settings()
    acknowledged = AcknowledgedLines(into, settings) if token else None
    options = IngestOptions(first_line=from_line, on_acknowledged=acknowledged.add if acknowledged else None)
    with _opened(file) as opened, SendProgress(opened) as shown:
        lines = islice(read_lines(opened), from_line - 1, None)
        in_time = paced(lines, rate) if rate else lines
        result = send(into, in_time, settings.kafka.connection, shown.tell, options)
    text = acknowledged.token() if acknowledged else None
    if result.rejected:
        named = ", ".join(map(str, result.rejected_lines))
        print_message(f"  {result.rejected:,} lines exceed the broker's limit and were not sent: {named}")
    if as_json:
        counts = {name: value for name, value in asdict(result).items() if name != "rejected_lines"}
        print_json(counts if text is None else {**counts, "token": text})
    else:
        print_message(f"  {_counted(result)}")
        if text is not None:
            sys.stdout.write(f"{text}\n")
    if result.rejected:
        raise Exit(1)


class AcknowledgedLines:
    """Makes the token of the lines that were acknowledged."""

    def __init__(self, source: "Source[Any]", settings: Settings) -> None:
        """`source`: of the lines. OperatorError if Kafka cannot be asked for its topic."""
        from deploy.wiring import waiting_rule_of
        from master_dataset.kafka.topics import Topics
        from serving_layer.ingest.tokens import Acknowledged

        self._source, self._acknowledged = source, Acknowledged(source.topic, waiting_rule_of(settings))
        self._topics = Topics(settings.kafka.connection)

    def add(self, line: bytes, delivery: "Delivery") -> None:
        """Add a line.

        Which events only batch counts depends on when they happened. A line that cannot be read here, where the stores
        are not known, counts as one of them, so that the token never promises too much.
        """
        from master_dataset.kafka.producer import DeliveryStatus
        from master_dataset.parsing.parse import parse
        from master_dataset.parsing.results import Event
        from master_dataset.registry.stores import DEFAULT_TERMS
        from serving_layer.ingest.tokens import Sent

        if delivery.offset < 0:
            delivery = delivery._replace(
                status=DeliveryStatus.ACKNOWLEDGED
            )  # its offset is unknown, so there is no token
        event = parse(self._source, line, lambda _: DEFAULT_TERMS)
        self._acknowledged.add(Sent(delivery, event.happened_ms if isinstance(event, Event) else None))

    def token(self) -> str:
        """The token. OperatorError if it is not known where all lines are, or when they were received."""
        from views.control.token import topic_tag

        ids = self._topics.ids([self._source.topic])
        found = self._acknowledged.token(topic_tag(ids[self._source.topic]))
        if found is None:
            message = "All lines were sent, but the broker did not say where it put each, or when."
            raise OperatorError(message, do="galatea doctor")
        return found.text()


@contextmanager
def _opened(file: Path) -> Iterator[BinaryIO]:
    if str(file) == "-":
        yield sys.stdin.buffer
        return
    try:
        opened = file.open("rb")
    except OSError as error:
        raise BadFileError(
            f"`{file}` cannot be read: {error.strerror}.", do="Name a file of JSON lines, or `-`."
        ) from error
    with opened:
        yield opened


def _counted(result: "IngestResult") -> str:
    rate = result.acknowledged / result.seconds if result.seconds else 0
    counts = f"{result.sent:,} sent, {result.acknowledged:,} acknowledged, {result.rejected:,} too large"
    return f"{counts} in {result.seconds:.1f} s ({rate:,.0f}/s)"


class SendProgress:
    """Rate and progress on stderr: a bar with an estimate if the size is known, plain lines without a terminal."""

    def __init__(self, file: BinaryIO) -> None:
        """`file` is what is read."""
        self._file = file
        self._size = os.fstat(file.fileno()).st_size if file.seekable() else None
        columns = (TextColumn("  {task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
        self._bar = Bar(*columns, console=stderr, disable=not is_terminal())
        self._task = self._bar.add_task("", total=self._size)
        self._printed_at = 0.0

    def __enter__(self) -> Self:
        """Start drawing."""
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop drawing."""
        self._bar.stop()

    def tell(self, result: "IngestResult") -> None:
        """Show the result so far."""
        if not self._bar.disable:
            read = self._file.tell() if self._size is not None else 0
            self._bar.update(self._task, completed=read, description=_counted(result))
        elif result.seconds - self._printed_at >= PLAIN_SECONDS:
            self._printed_at = result.seconds
            print_message(f"  {_counted(result)}")
