"""One real local stack for all integration tests: its own home, free ports, epochs of one second.

With the variable `SECURED_STACK`, it is one of `galatea up --secure`.
Tests with stacks of their own are in `tests/system/deployments`.
"""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import httpx
import pytest
from cassandra.cluster import Session

from batch_layer.verify.verification import Verdict
from deploy.batch import recompute, verification_of
from deploy.cassandra import connect
from deploy.jars import ensure_jars
from deploy.local.ports import free_ports
from deploy.local.stack import supervisor
from deploy.local.supervisor import Supervisor
from deploy.schema import migrate
from deploy.settings import Settings
from deploy.spark import Work, spark_session
from galatea.cli.common.recomputes import as_json_object
from master_dataset.kafka.ingest import ingest
from master_dataset.sources import source_named
from tests.support.examples import IS_FULL
from tests.support.otlp_receiver import OtlpReceiver, otlp_receiver
from views.control.recompute import RecomputeRequest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PATIENCE_SECONDS = 900
"""After this a command hangs: no measure of speed, a loaded machine may be many times slower than an idle one."""

UNTIL_A_CUT_COVERS_IT = 3.0
"""More than skew and epoch of the stack: what was received that long ago is before the newest cut."""


@dataclass(frozen=True)
class Stack:
    """A running stack as its users meet it: the command line, REST, and the topics."""

    settings: Settings
    environment: dict[str, str]

    def galatea(self, *words: str, source: Path | None = None) -> Any:
        """Run a command with `--json`; gives back what it printed."""
        printed = self.run(*words, "--json", source=source)
        return json.loads(printed) if printed.strip() else None

    def rebuild(self, *, is_preview: bool = False) -> dict[str, Any]:
        """As `galatea rebuild --wait`, but in this process, whose Spark has started: that takes as long as the rest."""
        request = RecomputeRequest(wait=True, mode="preview" if is_preview else "publish")
        return as_json_object(recompute(self.settings, request, why="a test", by="a test", steps=self))

    def verify(self) -> Verdict:
        """As `galatea verify`, in this process."""
        return verification_of(self.settings).run(self.step)

    def ingest(self, topic: str, lines: Iterable[bytes]) -> None:
        """As `galatea ingest`, in this process: an interpreter takes seconds to start."""
        result = ingest(source_named(topic), lines, self.settings.kafka.connection, lambda _result: None)
        assert result.rejected == 0

    @staticmethod
    def step(done: int, total: int, what: str) -> None:
        """Steps: nobody looks."""

    def run(self, *words: str, source: Path | None = None) -> str:
        """Run a command as it is."""
        return self.run_python("-m", "galatea.cli.main", *words, source=source)

    def run_python(self, *words: str, source: Path | None = None) -> str:
        """Run Python with this stack's settings; `source` is another tree of the product's packages."""
        done = subprocess.run(
            [sys.executable, *words],
            env=self.environment,
            cwd=source or Path.cwd(),
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
        )
        assert done.returncode == 0, f"{' '.join(words)}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def get(self, path: str, **question: Any) -> Any:
        """Ask REST as the operator; gives back the body of a 200."""
        answer = self.request("GET", path, params=question)
        assert answer.status_code == 200, answer.text
        return answer.json()

    @property
    def operator_key(self) -> str:
        """The key of the operator."""
        return (self.settings.home / "operator.key").read_text()

    def request(
        self, method: str, path: str, *, key: str = "", headers: Mapping[str, str] | None = None, **sent: Any
    ) -> httpx.Response:
        """Ask REST, by default as the operator."""
        return httpx.request(
            method,
            f"{self.settings.api_url}{path}",
            headers={"Authorization": f"Bearer {key or self.operator_key}", **(headers or {})},
            timeout=60,
            trust_env=False,
            verify=self.settings.api_trust,
            **sent,
        )

    def metrics(self, url: str) -> str:
        """Return what a process shows to Prometheus."""
        file = self.settings.metrics.token_file
        headers = {"Authorization": f"Bearer {Path(file).read_text().strip()}"} if file else {}
        answer = httpx.get(url, headers=headers, timeout=30, trust_env=False, verify=self.settings.api_trust)
        return answer.raise_for_status().text

    def cassandra(self, keyspace: str | None = "galatea") -> Session:
        """Return a new session; None: on no keyspace."""
        return connect(replace(self.settings.cassandra.address, keyspace=keyspace))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the modules that need the stack last: it takes half a processor, even if nobody asks it anything."""
    needing = {item.path for item in items if "stack" in getattr(item, "fixturenames", ())}
    items.sort(key=lambda item: item.path in needing)


def around_now() -> dict[str, str]:
    """A range of a month that ends behind today."""
    first, last = (datetime.now(UTC) + timedelta(days=days) for days in (-30, 2))
    return {"from": f"{first:%Y-%m-%d}", "to": f"{last:%Y-%m-%d}"}


def settings_of(home: Path, **more: str) -> tuple[Settings, dict[str, str]]:
    """Settings of a stack of its own, and the environment that says the same to its commands. `more`: other ones."""
    api, sql, kafka, cassandra = free_ports(4)
    own = {
        "GALATEA_HOME": str(home),
        "GALATEA_API_PORT": str(api),
        "GALATEA_SQL_PORT": str(sql),
        "GALATEA_KAFKA_PORT": str(kafka),
        "GALATEA_CASSANDRA_PORT": str(cassandra),
        "GALATEA_EPOCH_SECONDS": "1",
        "GALATEA_SKEW_SECONDS": "1",
        "GALATEA_ARCHIVE_SECONDS": "1",
        "GALATEA_VISIT_GAP_SECONDS": "6",
        "GALATEA_PROMPT_CORRECTION": "false",  # tests say themselves when something is published
        "GALATEA_AT_LEAST_SECONDS": "30",  # a micro-batch takes long on a busy machine
        **more,
    }
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GALATEA_")} | own
    fields = {name.removeprefix("GALATEA_").lower(): value for name, value in own.items()}
    return Settings(**fields), environment


@pytest.fixture(scope="session")
def otlp() -> Iterator[OtlpReceiver]:
    """What the stack sends its spans to: only traces that a test begins as sampled."""
    with otlp_receiver() as received:
        yield received


@contextmanager
def watched(running: Supervisor) -> Iterator[None]:
    """Its components, started, and restarted when they die, until the end of the block."""
    running.start()
    done = threading.Event()
    watching = threading.Thread(target=running.watch, args=(done.is_set,))
    watching.start()
    try:
        yield
    finally:
        done.set()
        watching.join()


@contextmanager
def repeated(act: Callable[[], object], seconds: float) -> Iterator[None]:
    """Do it every so many seconds, in a thread, until the end of the block, which raises what it raised."""
    done = threading.Event()

    def go_on() -> None:
        while not done.wait(seconds):
            act()

    with ThreadPoolExecutor(1) as pool:
        acting = pool.submit(go_on)
        try:
            yield
        finally:
            done.set()
    acting.result()


def until(is_so: Callable[[], bool], what: str) -> None:
    """Wait until it is so."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not is_so():
        assert time.monotonic() < deadline, f"in vain: {what}"
        time.sleep(0.2)


@contextmanager
def started(settings: Settings, environment: dict[str, str]) -> Iterator[Stack]:
    """A stack, looked after in a thread, as `galatea up` does in the foreground; this process has its settings."""
    # Cassandra would write each change of a schema to the disk before the next one, half a minute for our tables. With
    # this, a power cut would lose the tables of the stack.
    environment = environment | {"JAVA_TOOL_OPTIONS": "-Dcassandra.unsafesystem=true"}
    ensure_jars(settings)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment.items():
            patch.setenv(name, value)
        with supervisor(settings) as running, watched(running):
            yield Stack(settings, environment)


def secured() -> dict[str, str]:
    """Return the variables of a stack of `galatea up --secure`, if the variable SECURED_STACK asks for one."""
    return {"GALATEA_SECURE": "true"} if os.environ.get("SECURED_STACK") else {}


collect_ignore = ["test_tutorial.py"] if secured() else []
"""The commands of the tutorial are those of a plain stack."""


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory, otlp: OtlpReceiver) -> Iterator[Stack]:
    """The stack that integration tests share."""
    traces = {"GALATEA_TRACES_ENDPOINT": otlp.endpoint, "GALATEA_TRACES_SAMPLE_RATIO": "0"}
    with started(*settings_of(tmp_path_factory.mktemp("stack") / "home", **traces, **secured())) as found:
        yield found


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator["SparkSession"]:
    """Spark in this process, without a stack."""
    settings = Settings(home=tmp_path_factory.mktemp("spark"), spark_master="local[2]")
    ensure_jars(settings)
    session = spark_session(settings, "test", Work.SHORT, memory_mb=512, partitions=2)
    if not IS_FULL:  # to compile a plan takes longer than to run it over the few rows of a test
        session.conf.set("spark.sql.codegen.wholeStage", "false")
        session.conf.set("spark.sql.codegen.factoryMode", "NO_CODEGEN")
    yield session
    session.stop()


class Keyspaces:
    """Keyspaces with the schema applied, which takes seconds: each is emptied and lent again."""

    def __init__(self, stack: Stack) -> None:
        self._stack = stack
        self._free: list[Session] = []

    @contextmanager
    def lend(self) -> Iterator[Session]:
        """A session on an empty keyspace that nobody else uses."""
        session = self._free.pop() if self._free else self._make()
        yield session
        tables = "SELECT table_name FROM system_schema.tables WHERE keyspace_name = %s"
        for table in (row.table_name for row in session.execute(tables, (session.keyspace,))):
            written = session.execute(f"SELECT * FROM {table} LIMIT 1").one()  # noqa: S608 - a name of the schema
            if written and table != "migrations":
                session.execute(f"TRUNCATE {table}")
        self._free.append(session)

    def close(self) -> None:
        """Leave those that were made, when nobody uses one any more: they go with the home that they are in."""
        for session in self._free:
            session.cluster.shutdown()

    def _make(self) -> Session:
        keyspace = f"test_{uuid4().hex[:12]}"
        making = self._stack.cassandra(None)
        migrate(making, keyspace)
        making.cluster.shutdown()
        return self._stack.cassandra(keyspace)


@pytest.fixture(scope="session")
def keyspaces(stack: Stack) -> Iterator[Keyspaces]:
    """The keyspaces of this run of the tests."""
    found = Keyspaces(stack)
    yield found
    found.close()


@pytest.fixture
def cassandra(keyspaces: Keyspaces) -> Iterator[Session]:
    """A session on an empty keyspace."""
    with keyspaces.lend() as session:
        yield session


@pytest.fixture(scope="module")
def shared_cassandra(keyspaces: Keyspaces) -> Iterator[Session]:
    """The same, for all tests of a module: they keep apart by what they write."""
    with keyspaces.lend() as session:
        yield session
