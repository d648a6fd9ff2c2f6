"""Whose an alert is, and under which id: read from the records that the alert processor writes."""

from speed_layer.webhooks.delivery import AlertHeader, read_header
from tests.support.alert_topic import alert
from views.alerts.alert import follow_up_id


def test_an_alert_as_the_processor_writes_it_belongs_to_its_tenant_and_has_its_own_id() -> None:
    raised = alert("acme", "1", 7)

    assert read_header(raised.to_json()) == AlertHeader(raised.alert_id, "acme")


def test_that_an_alert_is_over_or_taken_back_is_news_under_an_id_of_its_own() -> None:
    raised = alert("acme", "1", 7)
    following = [alert("acme", "1", 7, "resolved"), alert("acme", "1", 7, "retracted")]

    ids = [said.alert_id for each in (raised, *following) if (said := read_header(each.to_json()))]

    id_ = raised.alert_id
    assert ids == [id_, follow_up_id(id_, "resolved"), follow_up_id(id_, "retracted")]
    assert len(set(ids)) == 3


def test_what_is_no_alert_is_nobodys() -> None:
    assert [read_header(value) for value in (b"", b"no json", b"[]", b'{"id": "1", "tenant": "acme"}', b"\xff")] == [
        None
    ] * 5
