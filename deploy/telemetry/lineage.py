"""Lineage by OpenLineage's own client, which is the extra `lineage` of the package, imported only if it is on."""

import logging
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from uuid import NAMESPACE_URL, uuid5

import yaml

from deploy.secret_files import read_private
from deploy.telemetry.datasets import NEWEST, Dataset, RunDatasets
from deploy.telemetry.export_queue import ExportQueue
from master_dataset.delta.history import DeltaHistory
from master_dataset.errors import OperatorError
from master_dataset.object_store import is_remote
from master_dataset.storage import is_table, open_table

try:
    from openlineage.client import OpenLineageClient
    from openlineage.client.event_v2 import InputDataset, Job, OutputDataset, Run, RunEvent, RunState
    from openlineage.client.facet_v2 import (
        DatasetFacet,
        InputDatasetFacet,
        JobFacet,
        OutputDatasetFacet,
        RunFacet,
        dataset_version_dataset,
        error_message_run,
        input_statistics_input_dataset,
        job_type_job,
        output_statistics_output_dataset,
        parent_run,
        schema_dataset,
    )
    from openlineage.client.uuid import generate_new_uuid
except ModuleNotFoundError as missing:
    raise OperatorError(
        f"GALATEA_LINEAGE_CONFIG_FILE is set, and the package `{missing.name}` is not installed",
        do="pip install 'galatea-platform[lineage]', or unset it",
    ) from missing

if TYPE_CHECKING:
    from deploy.settings import Settings

State = Literal["START", "RUNNING", "COMPLETE", "FAIL", "ABORT"]
PRODUCER = f"urn:galatea-platform:{version('galatea-platform')}"
FLUSH_SECONDS = 5.0
"""How long a command waits for its events to be sent before it ends."""
_CORRECT = "correct GALATEA_LINEAGE_CONFIG_FILE, see docs/how-to/traces-and-lineage.md"
GROUP = "recomputes"
"""Job whose run groups the attempts at one recompute: it has no events of its own."""


class Lineage:
    """Sends the events of one process."""

    def __init__(self, client: OpenLineageClient, namespace: str) -> None:
        """Start the queue.

        Args:
            client: Sends events.
            namespace: Of the jobs.
        """
        self._client, self.namespace = client, namespace

        def send(events: Sequence[Callable[[], RunEvent]]) -> None:
            for event in events:
                client.emit(event())

        self._queue = ExportQueue[Callable[[], RunEvent]]("lineage", send, at_once=1)  # if one fails, others are sent

    @classmethod
    def of(cls, settings: "Settings") -> "Lineage":
        """Build it from the settings. OperatorError if the configuration of the client cannot be used."""
        file = Path(settings.lineage.config_file)
        logging.getLogger("openlineage").setLevel(logging.CRITICAL)  # what fails is counted and logged by the queue
        config = _configuration(read_private("GALATEA_LINEAGE_CONFIG_FILE", file))
        if not isinstance(config, dict) or "transport" not in config:
            raise OperatorError(f"`{file}` names no transport of OpenLineage", do=_CORRECT)
        try:
            return cls(OpenLineageClient(config=config), settings.lineage.namespace)
        except Exception as error:  # what a transport raises for its options
            message = f"OpenLineage's client does not accept `{file}`: {type(error).__name__}"
            raise OperatorError(message, do=_CORRECT) from error

    def put(self, event: Callable[[], RunEvent]) -> None:
        """Send an event, which is built when it is sent."""
        self._queue.put(event)

    def close(self, seconds: float = FLUSH_SECONDS) -> None:
        """Send what waits, for at most that many seconds."""
        self._queue.close(seconds)


class LineageRun:
    """One run of a job: an attempt at a recompute, an export, or one source of an archive process."""

    def __init__(self, lineage: Lineage, job: str, *, group: str = "", period_seconds: int | None = None) -> None:
        """Create the run; sends nothing yet.

        Args:
            lineage: Sends its events.
            job: Name of the job.
            group: Id of the recompute that the run is an attempt at; "" for none.
            period_seconds: How often a streaming job sends RUNNING; None for a job that ends by itself.
        """
        self._lineage, self._job, self._id = lineage, job, str(generate_new_uuid())
        self._group, self._period = group, period_seconds

    def emit(self, state: State, datasets: RunDatasets | None = None, error: str = "") -> None:
        """Send an event.

        Args:
            state: What has happened.
            datasets: What the run has read and written; since the last event for a streaming job.
            error: Code or type of the error, with FAIL and ABORT.
        """
        at, found = datetime.now(UTC), datasets or RunDatasets()
        self._lineage.put(lambda: self._event(state, at, found, error))

    def _event(self, state: State, at: datetime, datasets: RunDatasets, error: str) -> RunEvent:
        return RunEvent(
            eventTime=at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            eventType=RunState[state],
            run=Run(self._id, self._run_facets(error)),
            job=Job(self._lineage.namespace, self._job, self._job_facets()),
            inputs=[_input(each) for each in datasets.inputs],
            outputs=[_output(each) for each in datasets.outputs],
            producer=PRODUCER,
        )

    def _run_facets(self, error: str) -> dict[str, RunFacet]:
        facets: dict[str, RunFacet] = {}
        if error:
            facets["errorMessage"] = error_message_run.ErrorMessageRunFacet(error, "Python", producer=PRODUCER)
        if self._group:
            id_ = str(uuid5(NAMESPACE_URL, f"{self._lineage.namespace}/{self._group}"))
            job = parent_run.Job(self._lineage.namespace, GROUP)
            facets["parent"] = parent_run.ParentRunFacet(parent_run.Run(id_), job, producer=PRODUCER)
        return facets

    def _job_facets(self) -> dict[str, JobFacet]:
        pattern = (
            job_type_job.EmissionPattern("EVENT_BASED", "ACCUMULATIVE")
            if self._period is None
            else job_type_job.EmissionPattern("PERIODIC", "ACCUMULATIVE", self._period)
        )
        kind = "BATCH" if self._period is None else "STREAMING"
        return {
            "jobType": job_type_job.JobTypeJobFacet(kind, "GALATEA", "JOB", emissionPattern=pattern, producer=PRODUCER)
        }


def _configuration(text: str) -> object:
    """Parse YAML; None if it is none. Its error would quote the file, which may hold a key."""
    try:
        found: object = yaml.safe_load(text)
    except yaml.YAMLError:
        return None
    return found


def _facets(dataset: Dataset) -> dict[str, DatasetFacet]:
    facets: dict[str, DatasetFacet] = {}
    if dataset.fields:
        fields = [schema_dataset.SchemaDatasetFacetFields(name, kind) for name, kind in dataset.fields]
        facets["schema"] = schema_dataset.SchemaDatasetFacet(fields, producer=PRODUCER)
    known = _newest_version(dataset.uri) if dataset.version == NEWEST else dataset.version
    if known:
        facets["version"] = dataset_version_dataset.DatasetVersionDatasetFacet(known, producer=PRODUCER)
    return facets


def _newest_version(uri: str) -> str:
    """Return the version of a Delta table; "" if there is none. Of a local one, only the log's folder is read."""
    if is_remote(uri):
        return str(open_table(uri).version()) if is_table(uri) else ""
    newest = next(DeltaHistory.of(uri).newest_first(), None)
    return "" if newest is None else str(int(newest.stem))


def _input(dataset: Dataset) -> InputDataset:
    statistics = input_statistics_input_dataset.InputStatisticsInputDatasetFacet(dataset.rows, producer=PRODUCER)
    facets: dict[str, InputDatasetFacet] = {} if dataset.rows is None else {"inputStatistics": statistics}
    return InputDataset(dataset.namespace, dataset.name, facets=_facets(dataset), inputFacets=facets)


def _output(dataset: Dataset) -> OutputDataset:
    statistics = output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet(dataset.rows, producer=PRODUCER)
    facets: dict[str, OutputDatasetFacet] = {} if dataset.rows is None else {"outputStatistics": statistics}
    return OutputDataset(dataset.namespace, dataset.name, facets=_facets(dataset), outputFacets=facets)
