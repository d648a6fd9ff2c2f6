"""What the streaming processes say of themselves, without a stream."""

import socket
import ssl
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from prometheus_client import REGISTRY

from deploy.local.records import metrics_url, write_metrics_target
from deploy.local.security import Security
from deploy.secret_files import write_private
from deploy.sections import InvalidSettingsError
from deploy.services.archive import ArchiveWatch
from deploy.services.metrics_server import MOST_CLIENTS, SCRAPE_SECONDS, MetricsHandler, MetricsServer
from deploy.services.runner import Process
from deploy.settings import Settings
from master_dataset.kafka.lag import Lag, last_moves
from master_dataset.kafka.partition_progress import PartitionProgress
from master_dataset.tls import Tls
from tests.support.raw_http import wire

START = datetime(2026, 11, 21, 9, tzinfo=UTC)
SECOND = timedelta(seconds=1)
PATIENCE_SECONDS = 20.0


class Alarms:
    """Remembers what was noticed."""

    def __init__(self) -> None:
        self.places: list[str] = []

    def notice(self, name: str, _at: datetime, place: str, _detail: str) -> None:
        assert name == "clock_stepped_back"
        self.places.append(place)


@pytest.fixture
def alarms() -> Alarms:
    return Alarms()


@pytest.fixture
def watch(alarms: Alarms) -> ArchiveWatch:
    """A published cut at the start, and five seconds of skew."""
    found = ArchiveWatch(alarms.notice, lambda: START, 5 * SECOND)
    found.refresh()
    return found


def kept(oldest: datetime, dead_letters: int = 0) -> dict[int, PartitionProgress]:
    refused = Counter({"not_json": dead_letters} if dead_letters else {})
    return {1: PartitionProgress(9, oldest, 7, refused, oldest, received=7 + dead_letters)}


def test_events_and_dead_letters_are_counted_by_reason(watch: ArchiveWatch) -> None:
    watch.on_batch("counted", kept(START, dead_letters=2), repeats=True)
    watch.on_batch("counted", kept(START, dead_letters=1), repeats=False)

    assert REGISTRY.get_sample_value("galatea_received_total", {"topic": "counted"}) == 17
    assert REGISTRY.get_sample_value("galatea_events_total", {"topic": "counted"}) == 14
    labels = {"topic": "counted", "reason": "not_json"}
    assert REGISTRY.get_sample_value("galatea_dead_letters_total", labels) == 3


def test_a_stamp_below_the_cut_is_noticed_unless_the_micro_batch_may_be_a_repetition(
    watch: ArchiveWatch, alarms: Alarms
) -> None:
    watch.on_batch("repeated", kept(START - SECOND), repeats=True)
    watch.on_batch("new", kept(START - SECOND), repeats=False)

    assert alarms.places == ["new/1"]


def test_a_stamp_behind_the_micro_batch_before_is_noticed(watch: ArchiveWatch, alarms: Alarms) -> None:
    for second in (60, 56, 54):
        watch.on_batch("stepping", kept(START + second * SECOND), repeats=False)

    assert alarms.places == ["stepping/1"]


def test_a_position_is_where_it_is_since_it_was_first_seen_there() -> None:
    seen = last_moves(
        {("t", 0): (5, START), ("t", 1): (5, START)}, [Lag("t", 0, 5, 9, None), Lag("t", 1, 6, 9, None)], START + SECOND
    )

    assert seen == {("t", 0): (5, START), ("t", 1): (6, START + SECOND)}


@pytest.mark.parametrize(
    ("url", "labels"),
    [
        ("http://127.0.0.1:4711", '{"component":"speed"}'),
        ("https://127.0.0.1:4711", '{"component":"speed","__scheme__":"https"}'),
    ],
)
def test_the_place_of_metrics_is_a_file_that_prometheus_reads(tmp_path: Path, url: str, labels: str) -> None:
    (tmp_path / "run").mkdir()

    write_metrics_target(tmp_path, "speed", url)

    expected = f'[{{"targets":["127.0.0.1:4711"],"labels":{labels}}}]'
    assert (tmp_path / "run" / "speed.targets.json").read_text() == expected
    assert metrics_url(tmp_path, "speed") == f"{url}/metrics"
    assert metrics_url(tmp_path, "archive") is None


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GALATEA_HOME", str(tmp_path))
    (tmp_path / "run").mkdir()
    return tmp_path


def served(home: Path) -> str:
    """URL of metrics that a process serves with the settings of the environment."""
    Process("metrics").show_metrics(0)
    return metrics_url(home, "metrics") or ""


def refuse_being_blocked(url: str, *, verify: ssl.SSLContext | bool) -> None:
    with wire(url) as silent:
        collected = httpx.get(url, trust_env=False, verify=verify)
        silent.listen(1)

        assert silent.is_closed
    assert (collected.status_code, "python_info" in collected.text) == (200, True)


def test_who_comes_for_metrics_and_says_nothing_is_let_go_and_others_get_theirs(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(MetricsHandler, "timeout", 0.5)

    refuse_being_blocked(served(home), verify=True)


def test_with_a_certificate_metrics_are_encrypted_and_a_silent_client_blocks_nobody(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(MetricsHandler, "timeout", 0.5)
    security = Security(home)
    security.prepare()
    monkeypatch.setenv("GALATEA_TLS_CERTIFICATE_FILE", str(security.certificate))
    monkeypatch.setenv("GALATEA_TLS_KEY_FILE", str(security.key))

    url = served(home)

    assert url.startswith("https://")
    refuse_being_blocked(url, verify=Tls(str(security.authority)).context())


def test_a_client_that_sends_byte_after_byte_is_let_go_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    timers: list[tuple[float, Callable[..., None], tuple[Any, ...]]] = []

    class Timer:
        def __init__(self, seconds: float, call: Callable[..., None], arguments: tuple[Any, ...]) -> None:
            timers.append((seconds, call, arguments))

        def start(self) -> None:
            begun.set()

        def cancel(self) -> None:
            ended.set()

    begun, ended = threading.Event(), threading.Event()
    monkeypatch.setattr("deploy.services.metrics_server.threading.Timer", Timer)
    server = MetricsServer("127.0.0.1", 0)
    server.start()
    with socket.create_connection(("127.0.0.1", server.server_port), timeout=PATIENCE_SECONDS) as slow:
        slow.sendall(b"G")
        assert begun.wait(PATIENCE_SECONDS)
        [(seconds, call, arguments)] = timers
        call(*arguments)

        assert seconds == SCRAPE_SECONDS
        assert slow.recv(1) == b""
        assert ended.wait(PATIENCE_SECONDS)
    call(*arguments)  # too late: it has ended


def test_a_port_can_be_used_again_at_once() -> None:
    first = MetricsServer("127.0.0.1", 0)
    first.start()
    httpx.get(f"http://127.0.0.1:{first.server_port}/metrics", trust_env=False)
    first.shutdown()
    first.server_close()

    MetricsServer("127.0.0.1", first.server_port).server_close()


def test_more_clients_than_there_are_threads_for_are_let_go() -> None:
    server = MetricsServer("127.0.0.1", 0)
    server.start()
    url = f"http://127.0.0.1:{server.server_port}/metrics"
    with ExitStack() as clients:
        silent = [clients.enter_context(wire(url)) for _ in range(MOST_CLIENTS + 1)]
        silent[-1].listen(5)

        assert silent[-1].is_closed
        assert not silent[0].is_closed


@pytest.mark.parametrize(
    ("header", "status"),
    [
        ({}, 401),
        ({"Authorization": "Bearer another"}, 401),
        ({"Authorization": "a-secret-token"}, 401),
        ({"Authorization": b"Bearer \xff"}, 401),
        ({"Authorization": "Bearer a-secret-token"}, 200),
    ],
)
def test_with_a_token_metrics_are_served_to_who_has_it(
    home: Path, monkeypatch: pytest.MonkeyPatch, header: dict[str, str | bytes], status: int
) -> None:
    write_private(home / "token", "a-secret-token\n")
    monkeypatch.setenv("GALATEA_METRICS_TOKEN_FILE", str(home / "token"))

    answered = httpx.get(served(home), headers=header, trust_env=False)  # type: ignore[arg-type]  # bytes too

    assert answered.status_code == status
    assert ("python_info" in answered.text) == (status == 200)
    assert "a-secret-token" not in answered.text


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"metrics_host": "0.0.0.0"}, "GALATEA_METRICS_HOST needs GALATEA_METRICS_TOKEN"),  # noqa: S104 - refused
        ({"metrics_token": "a", "metrics_token_file": "b"}, "are both set"),
    ],
)
def test_metrics_that_others_could_read_are_refused(given: dict[str, str], problem: str) -> None:
    with pytest.raises(InvalidSettingsError, match=problem):
        Settings(**given)
