"""The datasets of lineage, by the naming rules of OpenLineage: topics, Delta tables, tables in Cassandra."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from deploy.clusters import KEYSPACE
from master_dataset.delta.tables import DEAD_LETTERS, MasterTables, dead_letter_schema, event_schema

if TYPE_CHECKING:
    import pyarrow as pa

    from batch_layer.maintenance.export import Exported
    from deploy.settings import Settings
    from master_dataset.kafka.partition_progress import Progress
    from master_dataset.source import Source
    from views.control.recompute import Recompute

NEWEST = "newest"
"""As `version`: that of the Delta table when the event is sent."""


@dataclass(frozen=True)
class Dataset:
    """One dataset that a run read or wrote.

    Attributes:
        namespace: What holds it, such as `kafka://host:9092`.
        name: Its name in there.
        fields: Names and types of its columns.
        version: Its version, NEWEST, or "" if it has none.
        rows: How many rows the run read or wrote since its last event; None if that is not known.
        files: How many files it wrote since its last event; None if that is not known.
    """

    namespace: str
    name: str
    fields: Sequence[tuple[str, str]] = ()
    version: str = ""
    rows: int | None = None
    files: int | None = None

    @property
    def uri(self) -> str:
        """Where a Delta table is."""
        return self.name if self.namespace == "file" else f"{self.namespace}/{self.name}"


@dataclass(frozen=True)
class RunDatasets:
    """What a run has read and written."""

    inputs: Sequence[Dataset] = ()
    outputs: Sequence[Dataset] = ()


def topic_dataset(settings: "Settings", source: "Source[Any]", rows: int | None = None) -> Dataset:
    """Return the topic of a source. A cluster is named by its first bootstrap server."""
    bootstrap = settings.kafka.bootstrap.partition(",")[0].strip()
    fields = [(name, type(kind).__name__) for name, kind in source.fields.items()]
    return Dataset(f"kafka://{bootstrap}", source.topic, fields, rows=rows)


def delta_dataset(
    uri: str,
    schema: "pa.Schema | None" = None,
    *,
    version: str = "",
    rows: int | None = None,
) -> Dataset:
    """Return a Delta table in a local folder or an object store."""
    parts = urlsplit(uri)
    fields = [(field.name, str(field.type)) for field in schema or ()]
    if parts.scheme in ("", "file"):
        return Dataset("file", parts.path, fields, version, rows)
    return Dataset(f"{parts.scheme}://{parts.netloc}", parts.path.lstrip("/"), fields, version, rows)


def cassandra_dataset(settings: "Settings", table: str, *, version: str = "", rows: int | None = None) -> Dataset:
    """Return a table of Galatea's keyspace. A cluster is named by its first contact point."""
    host = settings.cassandra.contact_points.partition(",")[0].strip()
    namespace = f"cassandra://{host}:{settings.cassandra.port}"
    return Dataset(namespace, f"{KEYSPACE}.{table}", version=version, rows=rows)


def archived_datasets(settings: "Settings", source: "Source[Any]", found: Sequence["Progress"]) -> RunDatasets:
    """Return what the archive has read of a topic and written, over some micro-batches."""
    tables, partitions = MasterTables(settings.paths.master_uri), [each for one in found for each in one.values()]
    events = sum(each.events for each in partitions)
    dead_letters = sum(each.dead_letters.total() for each in partitions)
    outputs = [delta_dataset(tables.path(source.topic), event_schema(source), version=NEWEST, rows=events)]
    if dead_letters:
        schema = dead_letter_schema(source)
        outputs.append(delta_dataset(tables.path(DEAD_LETTERS), schema, version=NEWEST, rows=dead_letters))
    return RunDatasets([topic_dataset(settings, source, sum(each.received for each in partitions))], outputs)


def recomputed_datasets(settings: "Settings", record: "Recompute") -> RunDatasets:
    """Return what a recompute has read and written as far as its record says."""
    from views.control.recompute import StoredPlan  # noqa: PLC0415 - only where something is recomputed

    plan, report = record.plan, record.report
    if not isinstance(plan, StoredPlan):
        return RunDatasets()
    inputs = [delta_dataset(path, version=str(version)) for path, version in plan.masters.values()]
    outputs = []
    if report is not None and report.run == plan.run:
        blocks = report.blocks if isinstance(report.blocks, int) else None
        outputs.append(cassandra_dataset(settings, "batch_cells", version=plan.run, rows=blocks))
    if record.publication is not None:
        outputs.append(cassandra_dataset(settings, "publications", version=str(record.publication), rows=1))
    return RunDatasets(inputs, outputs)


def exported_datasets(
    settings: "Settings", publication: int, done: Sequence["Exported"], schemas: "Mapping[str, pa.Schema]"
) -> RunDatasets:
    """Return what an export has read and written. `schemas`: of the tables, by view."""
    root = settings.paths.corrected_uri
    outputs = [
        delta_dataset(f"{root}/{each.view}", schemas[each.view], version=NEWEST, rows=each.cells) for each in done
    ]
    return RunDatasets([cassandra_dataset(settings, "batch_cells", version=str(publication))], outputs)
