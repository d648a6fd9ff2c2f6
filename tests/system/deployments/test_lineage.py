"""Lineage of a running stack: archive, rebuild and export say what they read and wrote, in which version."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from master_dataset.sources.pos_transactions import POS_TRANSACTIONS
from tests.integration.conftest import Stack, settings_of, started, until
from tests.support import receipt
from tests.support.lineage_schemas import check_event

pytestmark = pytest.mark.nightly

RECEIPTS = 100
TOPIC = POS_TRANSACTIONS.topic


@contextmanager
def stack_with_lineage(folder: Path) -> Iterator[tuple[Stack, Path]]:
    """A stack of its own, and the file to which every component appends its events."""
    config, events = folder / "openlineage.yml", folder / "events.jsonl"
    config.touch(mode=0o600)
    config.write_text(json.dumps({"transport": {"type": "file", "log_file_path": str(events), "append": True}}))
    settings, environment = settings_of(
        folder / "home",
        GALATEA_LINEAGE_CONFIG_FILE=str(config),
        GALATEA_LINEAGE_NAMESPACE="shops",
        GALATEA_LINEAGE_SECONDS="1",
    )
    with started(settings, os.environ | environment) as stack:
        yield stack, events


def events_in(file: Path) -> list[dict[str, Any]]:
    """All events so far, each of them valid by the specification."""
    found = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    for each in found:
        check_event(each)
    return found


def of_job(file: Path, name: str, kind: str) -> list[dict[str, Any]]:
    return [each for each in events_in(file) if (each["job"]["name"], each["eventType"]) == (name, kind)]


def rows_of(datasets: list[dict[str, Any]], facets: str, facet: str, count: str) -> int:
    return sum(each.get(facets, {}).get(facet, {}).get(count, 0) for each in datasets)


def test_archive_rebuild_and_export_say_what_they_read_and_wrote(tmp_path: Path) -> None:
    with stack_with_lineage(tmp_path) as (stack, events):
        records = [receipt("2026-11-20T09:00:00Z", number=number, store="lineage") for number in range(RECEIPTS)]
        stack.ingest(TOPIC, iter(records))
        archive = f"archive.{TOPIC}"
        until(
            lambda: (
                sum(
                    rows_of(each["inputs"], "inputFacets", "inputStatistics", "rowCount")
                    for each in of_job(events, archive, "RUNNING")
                )
                == RECEIPTS
            ),
            "the archive says what it has read",
        )
        published = stack.galatea("rebuild", "--wait")
        exported = stack.galatea("export")
    [rebuilt] = of_job(events, "recompute", "COMPLETE")
    [done] = of_job(events, "export", "COMPLETE")

    running = of_job(events, archive, "RUNNING")
    assert {each["name"] for event in running for each in event["inputs"]} == {TOPIC}
    written = [each for event in running for each in event["outputs"]]
    assert rows_of(written, "outputFacets", "outputStatistics", "rowCount") == RECEIPTS
    tables = {each["name"] for each in written}
    assert tables <= {each["name"] for each in rebuilt["inputs"]}
    [publication] = [each for each in rebuilt["outputs"] if each["name"].endswith("publications")]
    assert publication["facets"]["version"]["datasetVersion"] == str(published["publication"])
    assert {each["namespace"] for each in done["outputs"]} == {"file"}
    assert exported["publication"] == published["publication"]
    assert of_job(events, archive, "COMPLETE")  # the stack was stopped
