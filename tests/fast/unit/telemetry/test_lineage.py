"""Lineage of recomputes, the archive and exports: valid events, in order, and nothing of it can stop the work."""

import json
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from structlog.testing import capture_logs

from batch_layer.maintenance.export import Exported, corrected_schema
from deploy.settings import Settings
from deploy.telemetry.datasets import delta_dataset, exported_datasets, recomputed_datasets
from deploy.telemetry.jobs import ArchiveLineage, lineage_of_job
from deploy.telemetry.lineage import Lineage
from master_dataset.errors import NothingPublishedError, OperatorError
from master_dataset.kafka.partition_progress import PartitionProgress
from master_dataset.sources.pos_transactions import POS_TRANSACTIONS
from tests.support.lineage_schemas import check_event
from views import view_named
from views.control.publication import Pointer
from views.control.recompute import Recompute, RecomputeRequest, Report, StoredPlan

AT = datetime(2026, 11, 20, 9, tzinfo=UTC)
Events = Callable[[], list[dict[str, Any]]]


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    file = tmp_path / "openlineage.yml"
    file.touch(mode=0o600)
    transport = {"type": "file", "log_file_path": str(tmp_path / "events.jsonl"), "append": True}
    file.write_text(json.dumps({"transport": transport}))
    return Settings(home=tmp_path, lineage_config_file=str(file), lineage_namespace="shops")


@pytest.fixture
def events(tmp_path: Path) -> Events:
    """The events so far; each is valid by the specification."""

    def read() -> list[dict[str, Any]]:
        found = [json.loads(line) for line in (tmp_path / "events.jsonl").read_text().splitlines()]
        for each in found:
            check_event(each)
        return found

    return read


def states(events: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(each["job"]["name"], each["eventType"]) for each in events]


def recompute(tmp_path: Path) -> Recompute:
    masters = {"pos_transactions": (f"{tmp_path}/master/pos_transactions", 12)}
    base = Pointer(3, AT, "run-6", 1, {})
    plan = StoredPlan(1, "run-7", base, AT, 1, {}, {}, masters, {}, {}, [], None)
    report = Report(run="run-7", blocks=31)
    return Recompute(
        "recompute-1", RecomputeRequest(), "me", "because", AT, "published", plan=plan, publication=4, report=report
    )


def test_a_recompute_names_what_it_read_and_wrote_in_which_version(
    settings: Settings, events: Events, tmp_path: Path
) -> None:
    record = recompute(tmp_path)

    with lineage_of_job(settings, "recompute", group=record.id) as lineage:
        lineage.describe = lambda: recomputed_datasets(settings, record)

    started, completed = events()
    assert states([started, completed]) == [("recompute", "START"), ("recompute", "COMPLETE")]
    assert started["run"]["runId"] == completed["run"]["runId"]
    assert {each["job"]["namespace"] for each in (started, completed)} == {"shops"}
    assert started["run"]["facets"]["parent"]["run"]["runId"] == str(uuid5(NAMESPACE_URL, "shops/recompute-1"))
    assert started["job"]["facets"]["jobType"]["processingType"] == "BATCH"
    [read] = completed["inputs"]
    assert (read["namespace"], read["name"]) == ("file", f"{tmp_path}/master/pos_transactions")
    assert read["facets"]["version"]["datasetVersion"] == "12"
    cells, published = completed["outputs"]
    assert (cells["namespace"], cells["name"]) == ("cassandra://127.0.0.1:9042", "galatea.batch_cells")
    assert cells["facets"]["version"]["datasetVersion"] == "run-7"
    assert cells["outputFacets"]["outputStatistics"]["rowCount"] == 31
    assert published["facets"]["version"]["datasetVersion"] == "4"


def test_what_fails_or_is_interrupted_says_so_without_the_words_of_the_error(
    settings: Settings, events: Events
) -> None:
    for error in (NothingPublishedError("canary-1", do="canary-2"), RuntimeError("canary-3"), KeyboardInterrupt()):
        with pytest.raises(type(error)), lineage_of_job(settings, "export"):
            raise error

    found = events()
    assert [state for _, state in states(found)] == ["START", "FAIL", "START", "FAIL", "START", "ABORT"]
    messages = [each["run"]["facets"]["errorMessage"]["message"] for each in found[1::2]]
    assert messages == [NothingPublishedError.code, "RuntimeError", "KeyboardInterrupt"]
    assert "canary" not in json.dumps(found)
    assert len({each["run"]["runId"] for each in found}) == 3


def archived(events: int, dead_letters: int = 0) -> dict[int, PartitionProgress]:
    return {0: PartitionProgress(7, AT, events, Counter(not_json=dead_letters), AT, received=events + dead_letters)}


def test_the_archive_reports_once_per_period_what_it_has_written_since(
    settings: Settings, events: Events, tmp_path: Path
) -> None:
    now = [0.0]
    write_deltalake(str(tmp_path / "master" / "pos_transactions"), pa.table({"a": [1]}))
    archive = ArchiveLineage(settings, Lineage.of(settings), [POS_TRANSACTIONS], lambda: now[0])

    archive.on_batch("pos_transactions", archived(3), repeats=False)
    for now[0] in (10.0, 50.0):
        archive.on_batch("pos_transactions", archived(5, dead_letters=1), repeats=False)
    now[0] = 60.0
    archive.on_batch("pos_transactions", archived(7), repeats=False)
    archive.on_batch("pos_transactions", archived(2), repeats=False)
    archive.end(has_failed=False)

    found = events()
    assert states(found) == [
        ("archive.pos_transactions", state) for state in ("START", "RUNNING", "RUNNING", "COMPLETE")
    ]
    assert len({each["run"]["runId"] for each in found}) == 1
    pattern = found[0]["job"]["facets"]["jobType"]
    assert (pattern["processingType"], pattern["emissionPattern"]["windowDuration"]) == ("STREAMING", 60)
    assert [rows(each, "pos_transactions") for each in found[1:]] == [3, 17, 2]
    assert [rows(each, "dead_letters") for each in found[1:]] == [None, 2, None]
    topic = found[2]["inputs"][0]
    assert (topic["namespace"], topic["name"]) == ("kafka://127.0.0.1:9092", "pos_transactions")
    assert topic["inputFacets"]["inputStatistics"]["rowCount"] == 19
    table = found[2]["outputs"][0]
    assert table["facets"]["version"]["datasetVersion"] == "0"
    assert {"name": "store", "type": "string"} in [
        {name: field[name] for name in ("name", "type")} for field in table["facets"]["schema"]["fields"]
    ]


def rows(event: dict[str, Any], table: str) -> int | None:
    """What an event says that was written to a table of the master dataset."""
    found = [
        each["outputFacets"]["outputStatistics"]["rowCount"]
        for each in event["outputs"]
        if each["name"].endswith(table)
    ]
    return found[0] if found else None


def test_an_archive_that_fails_says_so(settings: Settings, events: Events) -> None:
    ArchiveLineage(settings, Lineage.of(settings), [POS_TRANSACTIONS]).end(has_failed=True)

    assert [state for _, state in states(events())] == ["START", "FAIL"]


def test_an_export_names_the_table_of_each_view_with_its_columns(settings: Settings, events: Events) -> None:
    schema = corrected_schema(view_named("sales_by_till"))
    with lineage_of_job(settings, "export") as lineage:
        done = [Exported("sales_by_till", 2, 0, 40)]
        lineage.describe = lambda: exported_datasets(settings, 4, done, {"sales_by_till": schema})

    _, completed = events()
    [table] = completed["outputs"]
    assert table["name"] == f"{settings.paths.corrected_uri}/sales_by_till"
    assert table["outputFacets"]["outputStatistics"]["rowCount"] == 40
    assert [each["name"] for each in table["facets"]["schema"]["fields"]] == schema.names
    assert completed["inputs"][0]["facets"]["version"]["datasetVersion"] == "4"


@pytest.mark.parametrize(
    ("uri", "named"),
    [
        ("/data/master/a", ("file", "/data/master/a")),
        ("file:///data/master/a", ("file", "/data/master/a")),
        ("s3a://bucket/master/a", ("s3a://bucket", "master/a")),
    ],
)
def test_tables_are_named_by_their_place(uri: str, named: tuple[str, str]) -> None:
    dataset = delta_dataset(uri)

    assert (dataset.namespace, dataset.name) == named
    assert dataset.uri == uri.removeprefix("file://")


def test_a_backend_that_is_down_stops_no_job(settings: Settings, tmp_path: Path) -> None:
    file = tmp_path / "openlineage.yml"
    file.write_text(json.dumps({"transport": {"type": "http", "url": "http://127.0.0.1:9", "retry": {"total": 0}}}))
    done = []

    with capture_logs() as logs, lineage_of_job(settings, "export"):
        done.append(1)

    assert done == [1]
    assert [each["event"] for each in logs] == ["telemetry.not_sent"]


@pytest.mark.parametrize("text", ["", "transport: [canary", "transport: {type: canary}", "a: 1"])
def test_a_configuration_that_cannot_be_used_is_refused_before_the_job_begins(
    settings: Settings, tmp_path: Path, text: str
) -> None:
    (tmp_path / "openlineage.yml").write_text(text)

    with pytest.raises(OperatorError), lineage_of_job(settings, "export"):
        raise AssertionError


def test_a_configuration_that_others_can_read_is_refused(settings: Settings, tmp_path: Path) -> None:
    (tmp_path / "openlineage.yml").chmod(0o644)

    with pytest.raises(OperatorError, match="can be read by others"):
        Lineage.of(settings)


def test_without_a_configuration_nothing_is_sent_and_nothing_is_in_the_way(tmp_path: Path) -> None:
    with lineage_of_job(Settings(home=tmp_path), "export"):
        pass

    assert list(tmp_path.iterdir()) == []
