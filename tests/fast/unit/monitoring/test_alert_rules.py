"""Prometheus alert rules: one per alarm, each with a runbook, and each seen to fire."""

import re
from pathlib import Path
from typing import Any

import yaml

from serving_layer.health.alarms import RULES

ROOT = Path(__file__).parents[4]
ALERTS = ROOT / "deploy" / "monitoring" / "alerts.yml"
FIRE = Path(__file__).with_name("alerts_fire.yml")
PAGE = ROOT / "docs" / "how-to" / "runbooks.md"
METRICS = ROOT / "docs" / "how-to" / "monitoring.md"


def rules() -> dict[str, dict[str, Any]]:
    groups = yaml.safe_load(ALERTS.read_text(encoding="utf-8"))["groups"]
    return {rule["alert"]: rule for group in groups for rule in group["rules"]}


def test_every_alarm_has_a_rule() -> None:
    named = [name for rule in rules().values() for name in re.findall(r'galatea_alarm\{name="(\w+)"\}', rule["expr"])]

    assert sorted(named) == sorted(RULES)


def test_every_rule_has_a_section_among_the_runbooks_and_every_section_a_rule() -> None:
    sections = re.findall(r"^### (\S+)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    urls = [rule["annotations"]["runbook_url"] for rule in rules().values()]

    assert sorted(urls) == sorted(f"docs/how-to/runbooks.md#{section}" for section in sections)
    assert {rule["labels"]["severity"] for rule in rules().values()} == {"critical", "warning"}


def test_rules_read_metrics_that_are_documented() -> None:
    documented = set(re.findall(r"^\| `(galatea_\w+)`", METRICS.read_text(encoding="utf-8"), re.MULTILINE))
    documented |= {f"{name}_count" for name in documented}

    for alert, rule in rules().items():
        assert set(re.findall(r"galatea_\w+", rule["expr"])) <= documented, alert


def test_every_rule_is_among_those_that_are_fired() -> None:
    cases = yaml.safe_load(FIRE.read_text(encoding="utf-8"))["tests"]
    fired = {test["alertname"] for case in cases for test in case["alert_rule_test"] if test["exp_alerts"]}

    assert fired == set(rules())
