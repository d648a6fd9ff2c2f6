"""Disasters: Cassandra is lost, and then the whole site but the backup and a copy of the master dataset.

A stack has stores, products, targets, rules, a key, and events with duplicates, late ones and broken ones. While more
arrive, it is backed up; then even more arrive. What 10,000 queries answered before must be answered again.
"""

import hashlib
import json
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from itertools import combinations_with_replacement, product
from pathlib import Path
from typing import Any

import httpx
import pytest

from deploy.settings import Settings
from tests.fast.house.tree import ROOT
from tests.integration.conftest import PATIENCE_SECONDS, settings_of

pytestmark = pytest.mark.nightly

ANSWERS = 10_000
SOURCES = ("pos_transactions", "people_counts", "queue_events", "staff_hours", "demographics")
STORES = ("sim-1", "sim-2")
GRAINS = ("15min", "hour", "day", "weekday", "total")
CASSANDRA_ONLY = ("up", "--detach", "--only", "kafka,cassandra")
UP = ("up", "--detach", "--without-airflow")
PATIENT = {"GALATEA_CUT_TIMEOUT_SECONDS": str(PATIENCE_SECONDS)}
LOST_KEY = "made after the backup"


@dataclass(frozen=True)
class Home:
    """A home and its stack."""

    settings: Settings
    environment: Mapping[str, str]

    def run(self, *words: str | Path, crash_at: str = "") -> subprocess.CompletedProcess[str]:
        own = {**self.environment, **({"GALATEA_CRASH_AT": crash_at} if crash_at else {})}
        command = (sys.executable, "-m", "galatea.cli.main", *map(str, words))
        return subprocess.run(
            command, cwd=ROOT, env=own, capture_output=True, text=True, check=False, timeout=PATIENCE_SECONDS
        )

    def galatea(self, *words: str | Path) -> str:
        done = self.run(*words)
        assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
        return done.stdout

    def ingest(self, folder: Path) -> None:
        for source in SOURCES:
            self.run("ingest", source, folder / f"{source}.jsonl")  # broken lines are sent too, and counted

    def client(self) -> httpx.Client:
        key = (self.settings.home / "operator.key").read_text()
        headers = {"Authorization": f"Bearer {key}"}
        return httpx.Client(base_url=self.settings.api_url, headers=headers, trust_env=False, timeout=60)

    @property
    def api_log(self) -> str:
        return (self.settings.home / "logs" / "api.log").read_text()


def queries(metrics: list[str], days: list[date]) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Metric and parameters, every combination once."""
    ranges = [
        {"from": str(first), "to": str(last + timedelta(days=1))}
        for first, last in combinations_with_replacement(days, 2)
    ]
    more: list[dict[str, str]] = [{"store": store} for store in STORES]
    more += [{"by": "total"}, {"store": STORES[0], "hours": "open"}, {"store": STORES[1], "compare": "previous_week"}]
    for of, grain, own, metric in product(ranges, GRAINS, more, metrics):
        yield metric, {**of, "grain": grain, **own}


def answers(home: Home, days: list[date]) -> dict[str, str]:
    """Query to the digest of its answer, without what it says about when and from what it was computed."""
    found = {}
    with home.client() as client:
        metrics = sorted(each["metric"] for each in client.get("/v1/metrics").raise_for_status().json()["metrics"])
        for metric, parameters in queries(metrics, days):
            answer = client.get(f"/v1/metrics/{metric}", params=parameters)
            assert answer.status_code < 500, answer.text
            body = answer.json()
            body.pop("as_of", None)
            text = json.dumps([answer.status_code, body], sort_keys=True)
            found[f"{metric} {sorted(parameters.items())}"] = hashlib.sha256(text.encode()).hexdigest()
            if len(found) == ANSWERS:
                return found
    return found


def listed(home: Home) -> dict[str, Any]:
    """What is not a number: the registry and the history."""
    found: dict[str, Any] = {}
    with home.client() as client:
        for path in ("stores", "products", "alert-rules", "publications"):
            found[path] = client.get(f"/v1/{path}").raise_for_status().json()
    return found


def keys(home: Home) -> set[str]:
    return {each["name"] for each in json.loads(home.galatea("keys", "list", "--json"))["keys"]}


def simulated(folder: Path, day: date, environment: Mapping[str, str]) -> Path:
    words = ("simulate", "--stores", "2", "--sources", ",".join(SOURCES), "--from", str(day), "--to", str(day))
    command = (sys.executable, "-m", "galatea.cli.main", *words, "--out", str(folder / str(day)))
    subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, check=True)
    return folder / str(day)


def load(home: Home, folder: Path, day: date) -> None:
    """Everything that people tell Galatea."""
    products, targets, rules = (folder / name for name in ("products.csv", "targets.csv", "alerts.yaml"))
    products.write_text("sku,title,category\n8580001,Milk,Food/Dairy\n")
    targets.write_text(f"store,day,metric,value\n{STORES[0]},{day},net_sales,1000\n")
    rules.write_text("rules:\n- {kind: threshold, id: weak, metric: net_sales, window: hour, above: 1}\n")
    home.galatea("stores", "load", folder / str(day) / "stores.yaml")
    home.galatea("products", "load", products)
    home.galatea("targets", "load", targets)
    home.galatea("alerts", "apply", rules)
    home.galatea("keys", "create", "--tenant", "default", "--scope", "read", "--name", "made before the backup")


def operated(home: Home, folder: Path, days: list[date]) -> tuple[dict[str, Any], dict[str, str], dict[str, Any]]:
    """Events arrive before, during and after a backup. What it said, and what is answered and listed at the end."""
    folders = [simulated(folder, day, home.environment) for day in days]
    home.galatea(*UP)
    load(home, folder, days[0])
    home.ingest(folders[0])
    home.galatea("rebuild", "--wait")
    arriving = threading.Thread(target=home.ingest, args=(folders[1],))
    arriving.start()
    said: dict[str, Any] = json.loads(home.galatea("backup", "--json"))
    arriving.join()
    home.galatea("keys", "create", "--tenant", "default", "--scope", "read", "--name", LOST_KEY)
    home.ingest(folders[2])
    home.galatea("rebuild", "--wait")
    return said, answers(home, days), listed(home)


def restore_and_rebuild(home: Home, backup: Path, *, crash_at: str = "") -> dict[str, Any]:
    """The steps of docs/how-to/disaster-recovery.md; gives back what the restore said."""
    home.galatea(*CASSANDRA_ONLY)
    said: dict[str, Any] = json.loads(home.galatea("restore", backup, "--dry-run", "--json"))
    if crash_at:
        assert home.run("restore", backup, crash_at=crash_at).returncode == -9
        archive = home.run("run", "archive")
        assert archive.returncode == 3
        assert "is running or was interrupted" in archive.stdout + archive.stderr
    home.galatea("restore", backup)
    home.galatea("down")
    home.galatea(*UP)
    with home.client() as client:  # nothing is answered from half of the events
        refused = client.get("/v1/metrics/net_sales", params={"store": STORES[0], "range": "last_7_days"})
        assert refused.status_code in {409, 503}, refused.text
    rebuilt = json.loads(home.galatea("rebuild", "--full", "--wait", "--json"))
    assert rebuilt["publication"] == said["publication"] + 1
    assert rebuilt["corrections"]["cells"] == 0
    home.galatea("verify")
    return said


def test_after_each_disaster_every_answer_is_as_before(tmp_path: Path) -> None:
    home = Home(*settings_of(tmp_path / "first", GALATEA_BACKUP_DIR=str(tmp_path / "backups"), **PATIENT))
    today = datetime.now(UTC).date()
    days = [today - timedelta(days=number) for number in (6, 5, 4)]
    try:
        said, before, lists = operated(home, tmp_path, days)
    finally:
        home.galatea("down")
    backup = Path(said["folder"])

    assert len(before) == ANSWERS
    assert len(set(before.values())) > ANSWERS / 4  # they say something
    assert said["publication"] == 1
    assert {path.stat().st_mode & 0o077 for path in [backup, *backup.rglob("*")]} == {0}

    # Cassandra is lost. Kafka has what has arrived since the backup.
    shutil.rmtree(home.settings.home / "cassandra")
    try:
        restored = restore_and_rebuild(home, backup, crash_at="restore.table:9")
        assert answers(home, days) == before
        after = listed(home)
        assert keys(home) == {"made before the backup"}
    finally:
        home.galatea("down")
    assert any("continue 11 topics at the offsets of the backup" in each["what"] for each in restored["changes"])
    for unchanged in ("stores", "products", "alert-rules"):
        assert after[unchanged] == lists[unchanged]
    history = {each["publication"]: each["collected"] for each in after["publications"]["publications"]}
    assert [history[number] for number in (1, 2, 3)] == [True, True, False]

    # The site is lost. What was archived is in the copy of the master dataset; Kafka begins again.
    second = Home(*settings_of(tmp_path / "second", **PATIENT))
    shutil.copytree(home.settings.paths.master_uri, second.settings.paths.master_uri)
    shutil.copy2(home.settings.home / "secrets.key", second.settings.home / "secrets.key")  # kept apart from the backup
    try:
        restored = restore_and_rebuild(second, backup)
        assert answers(second, days) == before
        # Senders that do not know what has arrived repeat everything, at new offsets.
        second.ingest(tmp_path / str(days[1]))
        second.galatea("rebuild", "--wait")
        assert answers(second, days) == before
        second.galatea("verify")
    finally:
        second.galatea("down")
    assert any("topics that are not those of the backup" in each["what"] for each in restored["changes"])
