"""`galatea simulate`: simulated stores with consistent sensors, written to files or sent to a stack."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Self

from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar
from typer import Option

from deploy.console import is_terminal, print_json, print_message, stderr
from deploy.settings import Settings
from master_dataset.errors import LinesNotSentError, RequestError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lab.simulation.records import TimedRecord
    from lab.simulation.simulation import Simulation

_DAY = ["%Y-%m-%d"]
PLAIN_SECONDS = 5.0
RECORDS_PER_UPDATE = 500


def simulate(  # noqa: PLR0913, PLR0917 - one parameter per option
    first: Annotated[datetime, Option("--from", formats=_DAY, help="First business day of the stores.")],
    last: Annotated[datetime, Option("--to", formats=_DAY, help="Last business day, inclusive.")],
    stores: Annotated[int | None, Option(help="Number of invented stores, 1 to 100.", min=1, max=100)] = None,
    stores_file: Annotated[
        Path | None, Option("--stores-file", help="Use the stores of a stores.yaml instead.")
    ] = None,
    seed: Annotated[str, Option(help="The same seed gives the same bytes.")] = "1",
    sources: Annotated[str, Option(help="Only these sources, separated by commas.")] = "",
    faults: Annotated[
        bool, Option("--faults/--no-faults", help="Whether to simulate outages, duplicates and broken records.")
    ] = True,
    out: Annotated[Path | None, Option(help="Write JSON lines, stores.yaml and manifest.json to a new folder.")] = None,
    send: Annotated[
        bool, Option("--send", help="Register the stores in the running stack and send the records to it.")
    ] = False,
    live: Annotated[float | None, Option(help="Send at this speed; 1 is real time.", min=0.01, max=100_000)] = None,
    as_json: Annotated[bool, Option("--json", help="One JSON object on stdout: the manifest.")] = False,
) -> None:
    """Simulate what the sensors and tills of stores send on these days. The data is marked as simulated."""
    from lab.simulation.output import SIMULATED, manifest
    from lab.simulation.records import DEAD_LETTERS, DUPLICATES, EVENTS
    from lab.simulation.request import SimulationRequest, check_past

    if (out is None) != send:
        raise RequestError("Name either a folder or the running stack.", do="--out FOLDER or --send")
    if live is not None and not send:
        raise RequestError("`--live` requires `--send`: a folder is written at once.", do="--send --live SPEED")
    request = SimulationRequest(stores, stores_file, first.date(), last.date(), seed, sources, faults)
    simulation = request.simulation()
    if send:
        check_past(simulation, live)
    print_message(f"  {SIMULATED}")
    with SimulationProgress(simulation) as shown:
        _written(simulation, out, shown) if out else _sent(simulation, live, shown)
    counts = simulation.counts
    events, duplicates, dead_letters = (counts.of(kind) for kind in (EVENTS, DUPLICATES, DEAD_LETTERS))
    parts = f"{events:,} events + {duplicates:,} duplicates + {dead_letters:,} dead letters"
    print_message(f"  simulated: {counts.sent:,} records = {parts}")
    if as_json:
        print_json(manifest(simulation))


def _written(simulation: "Simulation", out: Path, shown: "SimulationProgress") -> None:
    from lab.simulation.output import write_folder

    write_folder(simulation, out, shown.tell)


def _sent(simulation: "Simulation", live: float | None, shown: "SimulationProgress") -> None:
    from deploy.cassandra import session_of
    from lab.simulation.output import paced, send
    from master_dataset.registry.registration import register

    def counted(deliveries: "Iterator[TimedRecord]") -> "Iterator[TimedRecord]":
        for each in deliveries:
            shown.tell(each.send_at)
            yield each

    settings = Settings()
    session, skew = session_of(settings.cassandra.address), settings.layers.skew
    register(settings.paths.master_uri, session, simulation.stores, skew=skew)
    deliveries = simulation.deliveries()
    try:
        acknowledged = send(counted(paced(deliveries, live) if live else deliveries), settings.kafka.connection)
    except LinesNotSentError as error:
        do = "Repeat the command with the same seed: duplicates count once."
        raise LinesNotSentError(error.message, do=do) from error
    print_message(f"  {acknowledged:,} acknowledged")


class SimulationProgress:
    """Progress of the simulated time: a bar with an estimate on a terminal, else a line every few seconds."""

    def __init__(self, simulation: "Simulation") -> None:
        """The total is the time of the simulated days."""
        columns = (TextColumn("  {task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
        self._bar = Bar(*columns, console=stderr, disable=not is_terminal())
        self._first = datetime.combine(simulation.first, datetime.min.time(), UTC)
        self._hours = len(simulation.days) * 24
        self._task = self._bar.add_task("simulated", total=self._hours)
        self._records, self._printed_at = 0, datetime.now(UTC)

    def __enter__(self) -> Self:
        """Start drawing."""
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop drawing."""
        self._bar.stop()

    def tell(self, send_at: datetime) -> None:
        """Count one more record, which is sent at that time."""
        self._records += 1
        if self._records % RECORDS_PER_UPDATE:
            return
        hours = min(max((send_at - self._first) / timedelta(hours=1), 0), self._hours)
        said = f"simulated {self._records:,} records"
        self._bar.update(self._task, completed=hours, description=said)
        if self._bar.disable and (datetime.now(UTC) - self._printed_at).total_seconds() >= PLAIN_SECONDS:
            self._printed_at = datetime.now(UTC)
            print_message(f"  {said}, until {send_at:%Y-%m-%d %H:%M} UTC")
