"""Arguments and settings that are no text, or no JSON, are refused by name."""

import os
import subprocess
import sys

import pytest

from galatea.client.connection import path, query
from galatea.client.operations import _post


def galatea(*words: bytes, **variables: str) -> subprocess.CompletedProcess[bytes]:
    command = [os.fsencode(sys.executable), b"-m", b"galatea.cli.main", *words]
    environment = {**os.environ, "NO_COLOR": "1", "COLUMNS": "200", **variables}
    return subprocess.run(command, capture_output=True, check=False, env=environment)


@pytest.mark.parametrize(
    ("words", "field"),
    [
        ((b"keys", b"revoke", b"a\xff"), b"id"),
        ((b"keys", b"create", b"--tenant", b"\xe4", b"--scope", b"read"), b"tenant"),
        ((b"webhooks", b"show", b"\xed\xa0\x80"), b"id"),
    ],
)
def test_an_argument_that_is_not_utf_8_is_refused_by_name(words: tuple[bytes, ...], field: bytes) -> None:
    ended = galatea(*words)

    assert ended.returncode == 2
    assert field in ended.stderr
    assert b"not UTF-8" in ended.stderr
    assert b"Traceback" not in ended.stderr


def test_options_for_spark_that_are_no_json_are_refused_by_name_in_every_process() -> None:
    command = [sys.executable, "-m", "deploy.services.dispatcher"]
    environment = {**os.environ, "GALATEA_SPARK_CONF": "banana"}
    process = subprocess.run(command, capture_output=True, check=False, env=environment)
    ended = galatea(b"status", GALATEA_SPARK_CONF="banana")

    for said in (process.stdout + process.stderr, ended.stderr):
        assert b"`GALATEA_SPARK_CONF`: not a JSON object" in said
        assert b"Traceback" not in said
    assert (process.returncode, ended.returncode) == (3, 2)


def test_the_client_refuses_a_lone_surrogate_by_the_name_of_its_field() -> None:
    with pytest.raises(ValueError, match="name after `recomputes`"):
        path("recomputes", "a\udcff")
    with pytest.raises(ValueError, match="argument `store`"):
        query(store=["1", "\ud800"])
    with pytest.raises(ValueError, match="argument `why`"):
        _post({"why": "\udfff"})
    assert path("recomputes", "ä") == "/v1/recomputes/%C3%A4"
