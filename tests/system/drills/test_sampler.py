"""The sampler of the drills reports what is wrong, and never dies unnoticed."""

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest

from tests.system.drills.sampler import Sampler

if TYPE_CHECKING:
    from deploy.settings import Settings

GOOD = b'{"as_of": {"publication": 1}, "series": [{"points": [{"value": 7}]}]}'
SPAN = {"from": "2026-11-01", "to": "2026-11-22"}


@dataclass
class Api:
    """Answers every question with `status` and `body`."""

    home: Path
    port: int = 0
    api_trust: bool = True
    status: int = 200
    body: bytes = GOOD
    requests: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))

    @property
    def api_url(self) -> str:
        """As in the settings."""
        return f"http://127.0.0.1:{self.port}"

    def answers(self, status: int, body: bytes) -> None:
        """From now on; returns when it was asked twice, so that the first of these answers was looked at."""
        self.status, self.body = status, body
        while self.requests.acquire(blocking=False):
            pass
        for _ in range(3):  # the first one may still be answered as before
            assert self.requests.acquire(timeout=30), "nobody asks any more"


@dataclass
class Till:
    receipts: int = 7


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Api]:
    (tmp_path / "operator.key").write_text("key")
    sampled = Api(tmp_path)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(sampled.status)
            self.send_header("Content-Length", str(len(sampled.body)))
            self.end_headers()
            self.wfile.write(sampled.body)
            sampled.requests.release()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as its base names it
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        sampled.port = server.server_port
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield sampled
        server.shutdown()


@pytest.fixture
def sampler(api: Api) -> Iterator[Sampler]:
    asking = Sampler(cast("Settings", api), Till(), SPAN)
    asking.start()
    yield asking
    if asking.is_alive():
        asking.leave()


def test_nothing_is_wrong_while_every_answer_is_right(api: Api, sampler: Sampler) -> None:
    api.answers(200, GOOD)

    assert sampler.wrong() == []
    assert sampler.wrong() == []


@pytest.mark.parametrize("status", [500, 503])
def test_sampler_reports_a_refusal_without_json_and_continues(api: Api, sampler: Sampler, status: int) -> None:
    api.answers(status, b"Internal Server Error")
    api.answers(200, GOOD)

    assert any(str(status) in each and "Internal Server Error" in each for each in sampler.wrong())
    assert sampler.is_alive()


@pytest.mark.parametrize("body", [b"[]", b"no JSON", b'{"as_of": {}}'])
def test_sampler_reports_an_unreadable_answer_and_continues(api: Api, sampler: Sampler, body: bytes) -> None:
    api.answers(200, body)
    api.answers(200, GOOD)

    assert sampler.wrong() != []
    assert sampler.is_alive()


def test_a_sampler_that_has_ended_is_wrong(api: Api, sampler: Sampler) -> None:
    api.answers(200, GOOD)

    assert sampler.wrong() == []
    sampler.leave()

    assert sampler.wrong() == ["nobody asked any more: the sampler has ended"]


def test_a_sampler_that_never_began_to_ask_is_wrong(api: Api) -> None:
    (api.home / "operator.key").unlink()
    asking = Sampler(cast("Settings", api), Till(), SPAN)

    asking.start()
    asking.join()

    assert any("FileNotFoundError" in each for each in asking.wrong())


def test_a_sampler_that_is_only_refused_is_wrong(api: Api, sampler: Sampler) -> None:
    api.answers(200, GOOD)
    assert sampler.wrong() == []
    api.answers(503, b'{"code": "store_unavailable"}')
    sampler.wrong(patience_seconds=0)

    api.answers(503, b'{"code": "store_unavailable"}')

    [why] = sampler.wrong(patience_seconds=0)
    assert why.startswith("nobody was answered")
    assert "store_unavailable" in why
