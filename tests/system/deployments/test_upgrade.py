"""A home of the version before: this version starts in it, gives the same answers, and goes on with its work."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.fast.house.tree import ROOT
from tests.integration.conftest import PATIENCE_SECONDS, settings_of
from tests.system.deployments.test_wheel import uv

pytestmark = pytest.mark.nightly

BEFORE = "5451fbf"
"""The last commit of the version before, which has no tag."""
STORE = "sim-1"
FOR_OPERATORS = {"by", "why", "rows", "partitions", "days", "blocks", "seconds", "views"}
"""What the version before showed to everybody."""


def run(*words: str | Path, environment: Mapping[str, str], cwd: Path = ROOT) -> str:
    done = subprocess.run(
        words, cwd=cwd, env=environment, capture_output=True, text=True, check=False, timeout=PATIENCE_SECONDS
    )
    assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
    return done.stdout


@contextmanager
def installed(commit: str, clone: Path) -> Iterator[Path]:
    """The command of a commit, in an environment of its own lock."""
    known = subprocess.run(["git", "cat-file", "-e", commit], cwd=ROOT, check=False)  # noqa: S607 - git of the machine
    assert known.returncode == 0, f"{commit} is not in this clone. Next: git fetch --unshallow"
    own = {name: value for name, value in os.environ.items() if not name.startswith(("UV_", "VIRTUAL_ENV", "PYTHON"))}
    run("git", "worktree", "add", "--quiet", "--detach", clone, commit, environment=own)
    try:
        sync = (uv(), "sync", "--quiet", "--frozen", "--no-default-groups", "--group", "spark", "--group", "stack")
        if subprocess.run([*sync, "--offline"], cwd=clone, env=own, capture_output=True, check=False).returncode:
            run(*sync, environment=own, cwd=clone)  # the cache lacks a package
        yield clone / ".venv" / "bin" / "galatea"
    finally:
        run("git", "worktree", "remove", "--force", clone, environment=own)


@pytest.fixture
def old(tmp_path: Path) -> Iterator[Path]:
    """The command of the version before."""
    with installed(BEFORE, tmp_path / "before") as command:
        yield command


def answers(port: int) -> dict[str, Any]:
    """What readers see, without the times at which they ask."""
    today = datetime.now(UTC).date()
    range_ = {"from": str(today - timedelta(days=10)), "to": str(today + timedelta(days=1)), "grain": "day"}
    found = {}
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False, timeout=60) as client:
        for metric in ("net_sales", "total_transactions_count"):
            answer = client.get(f"/v1/metrics/{metric}", params={"store": STORE, **range_}).raise_for_status().json()
            found[metric] = answer["series"]
        listed = client.get("/v1/publications").raise_for_status().json()["publications"]
        found["publications"] = [
            {name: value for name, value in each.items() if name not in FOR_OPERATORS} for each in listed
        ]
    return found


def known_to(old: object, new: object) -> object:
    """`new` without the fields that a newer version added to those of `old`."""
    if isinstance(old, dict) and isinstance(new, dict):
        return {name: known_to(value, new[name]) for name, value in old.items() if name in new}
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        return [known_to(*pair) for pair in zip(old, new, strict=True)]
    return new


def rebuilt(*command: str, environment: Mapping[str, str]) -> Any:
    """What a rebuild says, as soon as the speed layer has caught up with the views of the newer version."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        words = (*command, "rebuild", "--wait", "--json")
        done = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return json.loads(done.stdout)
        assert "has not caught up" in done.stderr, done.stderr
        assert time.monotonic() < deadline, done.stderr
        time.sleep(2)


def test_a_home_of_the_version_before_answers_the_same_and_goes_on(tmp_path: Path, old: Path) -> None:
    settings, environment = settings_of(tmp_path / "home")
    new = (sys.executable, "-m", "galatea.cli.main")
    up = ("up", "--detach", "--without-airflow")
    days = [str(datetime.now(UTC).date() - timedelta(days=number)) for number in (4, 3)]
    simulate = ("simulate", "--stores", "1", "--sources", "pos_transactions", "--no-faults")
    for day in days:
        run(*new, *simulate, "--from", day, "--to", day, "--out", tmp_path / day, environment=environment)

    there = old.parents[2]  # components import what is in the working directory
    try:
        run(old, *up, environment=environment, cwd=there)
        for words in (
            ("stores", "load", tmp_path / days[0] / "stores.yaml"),
            ("ingest", "pos_transactions", tmp_path / days[0] / "pos_transactions.jsonl"),
            ("rebuild", "--wait"),
        ):
            run(old, *words, environment=environment, cwd=there)
        before = answers(settings.api.port)
    finally:
        run(old, "down", environment=environment, cwd=there)
    assert any(point["value"] for point in before["net_sales"][0]["points"])

    try:
        run(*new, *up, environment=environment)
        assert known_to(before, answers(settings.api.port)) == before

        run(*new, "ingest", "pos_transactions", tmp_path / days[1] / "pos_transactions.jsonl", environment=environment)
        assert rebuilt(*new, environment=environment)["state"] == "published"
        run(*new, "verify", environment=environment)
    finally:
        run(*new, "down", environment=environment)
