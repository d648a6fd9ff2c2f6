"""Jars come from the lock, are fetched once, and nothing else is ever kept."""

import hashlib
import re
import threading
from base64 import b64encode
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from deploy.jars import FORMER_KAFKA, KAFKA, Jar, cache, ensure_jars, jar_paths, locked_jars, missing_jars
from deploy.settings import Settings
from master_dataset.errors import DependencyUnavailableError, OperatorError

BYTES = b"a jar, as the lock knows it"
JAR = Jar("org.example", "thing", "1.0", "", hashlib.sha256(BYTES).hexdigest())


class Repository:
    """A Maven repository on loopback with one jar, which counts what is asked of it."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / JAR.path
        self.file.parent.mkdir(parents=True)
        self.file.write_bytes(BYTES)
        self.requests: list[str] = []
        self.logins: list[str | None] = []
        repository = self

        class Handler(SimpleHTTPRequestHandler):
            def log_message(self, *_: object) -> None:
                repository.requests.append(self.path)
                repository.logins.append(self.headers["Authorization"])

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(folder)))
        self.url = f"http://127.0.0.1:{self.server.server_port}"


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Repository]:
    found = Repository(tmp_path / "repository")
    monkeypatch.setattr(cache, "locked_jars", lambda part: (JAR,) if part == "kafka" else ())
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    thread = threading.Thread(target=found.server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield found
    found.server.shutdown()
    thread.join()
    found.server.server_close()


@pytest.fixture
def settings(tmp_path: Path, repository: Repository) -> Settings:
    return Settings(home=tmp_path / "home", cache_dir=tmp_path / "cache", maven_url=repository.url)


def test_every_line_of_the_lock_is_a_jar_with_a_sha256() -> None:
    for part, jars in ((KAFKA, 46), (FORMER_KAFKA, 46), ("cassandra", 90), ("spark", 10), ("s3", 40)):
        found = locked_jars(part)
        assert len(found) == jars
        assert all(re.fullmatch("[0-9a-f]{64}", jar.sha256) for jar in found)


def test_a_classifier_is_part_of_the_file_name() -> None:
    native = next(jar for jar in locked_jars("cassandra") if jar.artifact == "jffi" and jar.classifier)
    assert native.path == "com/github/jnr/jffi/1.3.11/jffi-1.3.11-native.jar"


def test_a_jar_is_fetched_once(settings: Settings, repository: Repository) -> None:
    assert missing_jars(settings) == [JAR]
    assert ensure_jars(settings) == ensure_jars(settings) == 1
    assert [path.read_bytes() for path in jar_paths("kafka", settings)] == [BYTES]
    assert len(repository.requests) == 1


def test_a_damaged_jar_is_found_and_fetched_again(settings: Settings, repository: Repository) -> None:
    ensure_jars(settings)
    [place] = jar_paths("kafka", settings)
    place.write_bytes(BYTES.replace(b"lock", b"rock"))  # the length stays: only the bytes tell
    ensure_jars(settings)
    assert place.read_bytes() == BYTES
    assert len(repository.requests) == 2


def test_other_bytes_than_the_lock_names_are_refused_and_not_kept(settings: Settings, repository: Repository) -> None:
    repository.file.write_bytes(b"something else")
    with pytest.raises(OperatorError, match="not the file that the lock names"):
        ensure_jars(settings)
    assert [path for path in settings.jars.cache_dir.rglob("*") if path.is_file()] == []


def test_an_unreachable_repository_names_the_setting(settings: Settings, repository: Repository) -> None:
    repository.file.unlink()
    with pytest.raises(DependencyUnavailableError, match=re.escape(repository.url)) as refused:
        ensure_jars(settings)
    assert "GALATEA_MAVEN_URL" in refused.value.do


def test_a_password_in_the_url_is_sent_and_not_shown(settings: Settings, repository: Repository) -> None:
    settings = settings.replace(maven_url=repository.url.replace("://", "://user:canary%2F1f3a@"))
    repository.file.write_bytes(b"something else")
    with pytest.raises(OperatorError, match=re.escape(f"`{repository.url}`")) as differs:
        ensure_jars(settings)
    repository.file.unlink()
    with pytest.raises(DependencyUnavailableError, match=re.escape(f"`{repository.url}`")) as missing:
        ensure_jars(settings)

    assert repository.logins == [f"Basic {b64encode(b'user:canary/1f3a').decode()}"] * len(repository.logins) != []
    assert "canary" not in f"{differs.value} {missing.value}"
