"""An object store on this machine that speaks S3, in a process of its own, and what can go wrong with it.

Its answers are moto's. One request is served after the other, so that a conditional PUT is atomic, as it is elsewhere.
"""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from socket import SHUT_RDWR
from typing import Any

import boto3
import httpx
import pytest
from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server

from master_dataset.object_store import ObjectStore, use

KEY, SECRET = "test", "testtest"
BUCKET = "lake"
ROOT = f"s3://{BUCKET}/galatea"
ACCESS = {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_EC2_METADATA_DISABLED": "true"}
_CONTROL = "/-/fault"
Environ = dict[str, Any]
Wsgi = Callable[[Environ, Callable[..., Any]], Iterable[bytes]]


@dataclass(frozen=True)
class Fault:
    """What goes wrong with each n-th request of a method whose path contains `of`, at most `times`.

    `drop`: it is carried out, and the answer is lost. `late_error`: it is carried out, and the answer is 500.
    `slow_down`: it is not, and the answer is 503. `forbidden`: likewise 403. `unconditional`: it is carried out without
    its condition. `slow`: it is carried out a second late.
    """

    kind: str
    every: int = 1
    method: str = "PUT"
    of: str = ""
    times: int = 1_000_000


@dataclass(frozen=True)
class LocalObjectStore:
    """The running server."""

    port: int

    @property
    def store(self) -> ObjectStore:
        """How to reach it."""
        return ObjectStore(f"http://127.0.0.1:{self.port}", "us-east-1", path_style=True)

    def inject(self, fault: Fault | None) -> None:
        """From now on this goes wrong; None: nothing."""
        self._control("PUT", json.dumps(fault and asdict(fault)))

    def reset(self) -> None:
        """Make it empty, with nothing that goes wrong."""
        self.inject(None)
        url = f"{self.store.endpoint}/moto-api/reset"
        httpx.post(url, trust_env=False, timeout=60).raise_for_status()
        _create_bucket(self.store)

    @property
    def variables(self) -> dict[str, str]:
        """Settings of a stack whose tables and checkpoints are here."""
        return {
            "GALATEA_MASTER_URI": f"{ROOT}/master",
            "GALATEA_CORRECTED_URI": f"{ROOT}/corrected",
            "GALATEA_CHECKPOINT_URI": f"{ROOT}/checkpoints",
            "GALATEA_S3_ENDPOINT": self.store.endpoint,
            "GALATEA_S3_REGION": self.store.region,
            "GALATEA_S3_PATH_STYLE": "true",
        }

    def lose_answers(self, every: int = 20) -> None:
        """From now on each n-th commit to a table is made, and its answer is lost."""
        self.inject(Fault("drop", every=every, of="_delta_log"))

    @property
    def faults(self) -> int:
        """How often something went wrong since `inject`."""
        return int(self._control("GET", ""))

    def _control(self, method: str, body: str) -> str:
        url = f"{self.store.endpoint}{_CONTROL}"
        return httpx.request(method, url, content=body, trust_env=False, timeout=60).raise_for_status().text


@contextmanager
def object_store_server() -> Iterator[LocalObjectStore]:
    """Serve an empty bucket at a free port. Clients need KEY and SECRET."""
    command = [sys.executable, "-m", "tests.support.object_stores"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            assert process.stdout is not None
            found = LocalObjectStore(int(process.stdout.readline()))
            _create_bucket(found.store)
            yield found
        finally:
            process.kill()


@contextmanager
def object_store_for_stacks() -> Iterator[LocalObjectStore]:
    """As `object_store_server`; this process and those that it starts have the credentials."""
    with object_store_server() as served, pytest.MonkeyPatch.context() as patch:
        for name, value in ACCESS.items():
            patch.setenv(name, value)
        try:
            yield served
        finally:
            use(ObjectStore())


def _create_bucket(store: ObjectStore) -> None:
    access = {"aws_access_key_id": KEY, "aws_secret_access_key": SECRET, "region_name": store.region}
    boto3.client("s3", endpoint_url=store.endpoint, **access).create_bucket(Bucket=BUCKET)


# The server's process

_XML = "<?xml version='1.0'?><Error><Code>{}</Code><Message>as asked</Message></Error>"
_REFUSALS = {
    "late_error": ("500 Internal Server Error", "InternalError"),
    "slow_down": ("503 Service Unavailable", "SlowDown"),
    "forbidden": ("403 Forbidden", "AccessDenied"),
}


class FaultyStore:
    """moto with faults, as a WSGI application."""

    def __init__(self) -> None:
        self._inner: Wsgi = DomainDispatcherApplication(create_backend_app)
        self._lock = threading.Lock()
        self._fault: Fault | None = None
        self._matching = self._failed = 0

    def __call__(self, environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
        with self._lock:
            if environ["PATH_INFO"] == _CONTROL:
                return self._controlled(environ, start_response)
            kind = self._chosen(environ["REQUEST_METHOD"], environ["PATH_INFO"])
            if kind == "unconditional":
                environ.pop("HTTP_IF_NONE_MATCH", None)
            if kind in {"slow_down", "forbidden"}:
                return _refused(kind, environ, start_response)
            if kind == "slow":
                time.sleep(1)
            said: list[Any] = []
            body = list(self._inner(environ, lambda *args: said.append(args)))
        if kind == "drop":
            environ["werkzeug.socket"].shutdown(SHUT_RDWR)
        if kind == "late_error":
            return _refused(kind, environ, start_response)
        start_response(*said[0])
        return body

    def _controlled(self, environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
        if environ["REQUEST_METHOD"] == "PUT":
            given = json.loads(environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"])))
            self._fault, self._matching, self._failed = given and Fault(**given), 0, 0
        return _answered("200 OK", str(self._failed), start_response)

    def _chosen(self, method: str, path: str) -> str:
        fault = self._fault
        if fault is None or method != fault.method or fault.of not in path:
            return ""
        self._matching += 1
        if self._matching % fault.every or self._failed >= fault.times:
            return ""
        self._failed += 1
        return fault.kind


def _refused(kind: str, environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
    if kind != "late_error":
        environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
    status, code = _REFUSALS[kind]
    return _answered(status, _XML.format(code), start_response)


def _answered(status: str, text: str, start_response: Callable[..., Any]) -> Iterable[bytes]:
    body = text.encode()
    start_response(status, [("Content-Type", "application/xml"), ("Content-Length", str(len(body)))])
    return [body]


def _serve() -> None:
    server = make_server("127.0.0.1", 0, FaultyStore(), threaded=True)
    sys.stdout.write(f"{server.server_port}\n")
    sys.stdout.flush()
    server.serve_forever()


if __name__ == "__main__":
    _serve()
