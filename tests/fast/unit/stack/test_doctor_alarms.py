"""`galatea doctor` asks for alarms with the operator's key, so that it can where every request needs one."""

from pathlib import Path
from typing import Any

import httpx
import pytest

from deploy.checks.environment import alarm_findings
from deploy.local.records import Records
from deploy.settings import Settings


def test_alarms_are_asked_for_with_the_key_of_the_operator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Settings(home=tmp_path)
    (tmp_path / "operator.key").write_text("a key")
    (tmp_path / "operator.key").chmod(0o600)

    def get(url: str, *, headers: dict[str, str], **_: Any) -> httpx.Response:
        status = 200 if headers["Authorization"] == "Bearer a key" else 401
        return httpx.Response(status, json={"alarms": []}, request=httpx.Request("GET", url))

    monkeypatch.setattr(httpx, "get", get)
    monkeypatch.setattr(Records, "pid", lambda *_: 1)

    [finding] = alarm_findings(settings)

    assert (finding.ok, finding.found) == (True, "none")
