"""Keys, webhooks, alert rules and reports are for a tenant that there can be."""

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from deploy.reports.recipients import read_reports
from galatea.cli import keys
from master_dataset.errors import BadFileError, BadRuleError, RequestError
from serving_layer.keys.key import checked_name_of_key, checked_tenant_of_key
from serving_layer.webhooks.service import WebhookService
from views.alerts.rule_validation import parse_rule

WRONG = ["", "*", "a\u202eb", "a\x00", "\ud800", "x" * 257]


@pytest.mark.parametrize("tenant", WRONG)
def test_a_webhook_is_for_one_tenant(tenant: str) -> None:
    nothing: Any = None
    service = WebhookService(nothing, nothing, 3, lambda: datetime.now(UTC))

    with pytest.raises(RequestError, match="The tenant "):
        asyncio.run(service.make(tenant, "https://shop.example/hook", 1))


@pytest.mark.parametrize("tenant", WRONG)
def test_an_alert_rule_is_for_one_tenant(tenant: str) -> None:
    rule = {"kind": "silence", "id": "quiet", "source": "people_counts", "minutes": 30, "tenant": tenant}
    assert parse_rule(rule | {"tenant": "acme"}).tenant == "acme"

    with pytest.raises(BadRuleError, match="`tenant` ") as refused:
        parse_rule(rule)

    assert refused.value.field == "tenant"


@pytest.mark.parametrize("tenant", [each for each in WRONG if each != "*"])
def test_a_key_is_for_one_tenant_or_all(tenant: str) -> None:
    assert [checked_tenant_of_key(each) for each in ("*", "acme")] == ["*", "acme"]

    with pytest.raises(RequestError, match="The tenant "):
        checked_tenant_of_key(tenant)


def test_no_key_is_created_for_a_tenant_that_cannot_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keys, "_with", lambda _: pytest.fail("stored"))

    done = CliRunner().invoke(keys.app, ["create", "--tenant", "a\u202eb", "--scope", "read"])

    assert isinstance(done.exception, RequestError)


@pytest.mark.parametrize("name", ["a\x1b[2J", "a\nb", "a\u202eb", "\ud800", "x" * 201])
def test_a_name_that_lists_cannot_show_is_that_of_no_key(name: str) -> None:
    assert checked_name_of_key("Kasse 3 \U0001f6d2") == "Kasse 3 \U0001f6d2"

    with pytest.raises(RequestError, match="The name of the key"):
        checked_name_of_key(name)


def test_no_key_is_created_with_such_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keys, "_with", lambda _: pytest.fail("stored"))

    done = CliRunner().invoke(keys.app, ["create", "--tenant", "acme", "--scope", "read", "--name", "a\x1b[2J"])

    assert isinstance(done.exception, RequestError)


def test_a_report_is_for_one_tenant(tmp_path: Path) -> None:
    file = tmp_path / "reports.yaml"
    for tenant in ("", "*", r"a\u202eb", r"\ud800"):
        file.write_text(f'reports: [{{tenant: "{tenant}", period: daily, to: [a@b.example]}}]')
        with pytest.raises(BadFileError, match=r"reports\[0\].tenant"):
            read_reports(file)
