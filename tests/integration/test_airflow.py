"""A real scheduler and the real command: what clock, REST or another Airflow starts is published."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest

from deploy.airflow.client import AirflowClient
from deploy.airflow.component import airflow, connections
from deploy.local.ports import free_ports
from deploy.local.supervisor import Supervisor
from deploy.settings import Settings
from tests.integration.conftest import PATIENCE_SECONDS, Stack, around_now, watched
from tests.support.receipts import receipt
from views import registered_views
from views.control.recompute import RecomputeRequest, new_id

STORE = "airflow-1"
VIEWS = [view.name for view in registered_views()]


@dataclass(frozen=True)
class Scheduling:
    """Airflow beside the shared stack."""

    stack: Stack
    settings: Settings

    @property
    def client(self) -> AirflowClient:
        return AirflowClient.of(self.settings)

    def ask(self, method: str, path: str, body: object = None) -> Any:
        """Airflow's own REST, as its one user."""
        who = {"username": "admin", "password": Path(self.settings.airflow.password_file).read_text().strip()}
        with httpx.Client(base_url=self.settings.airflow.url, trust_env=False, timeout=30) as asking:
            token = asking.post("/auth/token", json=who).json()["access_token"]
            answer = asking.request(method, f"/api/v2/{path}", json=body, headers={"Authorization": f"Bearer {token}"})
        assert answer.is_success, answer.text
        return answer.json()

    def publications(self) -> list[dict[str, Any]]:
        """Newest first."""
        found: list[dict[str, Any]] = self.stack.galatea("publications")["publications"]
        return found

    def sells(self, number: int) -> None:
        """One more receipt over 1 EUR."""
        file = self.stack.settings.home.parent / f"sold-{number}.jsonl"
        file.write_bytes(receipt(datetime.now(UTC).isoformat(), minor=100, number=number, store=STORE) + b"\n")
        self.stack.run("ingest", "pos_transactions", str(file))

    def stop_clock(self) -> None:
        """Start no more scheduled runs; returns when none is running."""
        self.ask("PATCH", "dags/rebuild_views", {"is_paused": True})
        running = "dags/rebuild_views/dagRuns?run_type=scheduled&state=running"
        wait_until(lambda: not self.ask("GET", running)["total_entries"])

    def receipts(self) -> dict[str, int]:
        """How many readers see, by layer."""
        cells = self.stack.get("/v1/views/sales/cells", store=STORE, **around_now())["cells"]
        return {layer: sum(cell[layer]["receipts"] for cell in cells if cell[layer]) for layer in ("batch", "merged")}


def wait_until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not is_so():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.5)


@pytest.fixture(scope="module")
def scheduling(stack: Stack) -> Iterator[Scheduling]:
    """Supervised as in `galatea up`; its clock strikes every minute."""
    own = {"airflow_port": free_ports(1)[0], "rebuild_schedule": "* * * * *", "airflow_url": ""}
    settings = stack.settings.replace(**own)
    with Supervisor(stack.settings.home / "scheduling", [airflow(settings)]) as running, watched(running):
        yield Scheduling(stack, settings)


@pytest.mark.nightly
def test_a_scheduled_run_publishes_what_was_received(scheduling: Scheduling) -> None:
    scheduling.sells(1)

    wait_until(lambda: scheduling.receipts()["batch"] == 1)
    scheduling.stop_clock()

    succeeded = "dags/rebuild_views/dagRuns?run_type=scheduled&state=success"
    assert scheduling.ask("GET", succeeded)["total_entries"]
    published = next(each for each in scheduling.publications() if each["by"] == "airflow")
    assert published["why"] == "scheduled"


@pytest.mark.nightly
def test_a_recompute_that_rest_asks_for_publishes_once_under_its_own_id(scheduling: Scheduling) -> None:
    scheduling.stop_clock()
    scheduling.sells(2)
    before, id_ = scheduling.publications(), new_id()

    for _ in range(2):
        scheduling.client.trigger(
            id_, RecomputeRequest(views=("sales",), stores=(STORE,), full=True), "late; $(invoices)"
        )
    wait_until(lambda: scheduling.client.state(id_) in {"success", "failed"})

    tasks = scheduling.ask("GET", f"dags/recompute/dagRuns/{id_}/taskInstances")["task_instances"]
    assert {each["task_id"]: each["state"] for each in tasks} == {
        "choose_cut": "success",
        "rebuild": "success",
        "publish": "success",
        **dict.fromkeys(VIEWS, "skipped"),
        "sales": "success",
    }
    found = scheduling.stack.galatea("recompute", "show", id_)
    assert (found["state"], found["why"]) == ("published", "late; $(invoices)")
    published = scheduling.publications()
    assert len(published) == len(before) + 1
    assert (published[0]["by"], published[0]["publication"]) == ("airflow/admin", found["publication"])
    notes = {each["task_id"]: each["note"] or "" for each in tasks}
    assert f"published   publication {found['publication']}" in notes["publish"]
    assert "computed" in notes["rebuild"]


@pytest.mark.nightly
def test_another_airflow_needs_the_folder_the_package_and_two_connections(
    scheduling: Scheduling, tmp_path: Path
) -> None:
    scheduling.stop_clock()
    sold = scheduling.receipts()["merged"]
    scheduling.sells(3)
    shutil.copytree("dags", tmp_path / "dags", ignore=shutil.ignore_patterns("__pycache__"))
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("GALATEA_", "AIRFLOW"))}
    commands = str(Path(sys.executable).parent)
    environment = kept | {"AIRFLOW_HOME": str(tmp_path), "PATH": f"{commands}{os.pathsep}{os.environ['PATH']}"}

    def run(*words: str) -> None:
        done = subprocess.run(
            [sys.executable, "-m", "airflow", *words],
            env=environment,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr

    own = {name: json.loads(value) for name, value in connections(scheduling.settings).items()}
    run("db", "migrate")
    run("connections", "add", "galatea", "--conn-json", json.dumps(own["AIRFLOW_CONN_GALATEA"]))
    run("connections", "add", "galatea_spark", "--conn-type", "spark", "--conn-host", "local[2]")
    run("dags", "test", "recompute", "--conf", json.dumps({"reason": "from another Airflow", "mode": "publish"}))

    assert scheduling.publications()[0]["why"] == "from another Airflow"
    assert scheduling.receipts()["batch"] == sold + 1
