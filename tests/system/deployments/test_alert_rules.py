"""Prometheus itself accepts the alert rules, and fires each of them on purpose. Needs its tool `promtool`."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.fast.unit.monitoring.test_alert_rules import ALERTS, FIRE


@pytest.mark.nightly
def test_prometheus_accepts_the_rules_and_fires_each_on_purpose(tmp_path: Path) -> None:
    promtool = shutil.which("promtool")
    assert promtool, "install Prometheus, which brings promtool (Debian: apt install prometheus)"
    shutil.copy(ALERTS, tmp_path)
    shutil.copy(FIRE, tmp_path)

    for words in (["check", "rules", ALERTS.name], ["test", "rules", FIRE.name]):
        done = subprocess.run([promtool, *words], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
