"""Experiments on a broker that is given: some run, those that would harm it are skipped, and nothing is left behind."""

from confluent_kafka.admin import AdminClient

from tests.integration.conftest import Stack


def topics(admin: AdminClient) -> set[str]:
    """Those that somebody made, not the broker's own."""
    return {name for name in admin.list_topics(timeout=30).topics if not name.startswith("__")}


def test_a_given_broker_is_proved_on_but_not_harmed(stack: Stack) -> None:
    admin = AdminClient(stack.settings.kafka.connection.client())
    before = topics(admin)

    proved = stack.galatea("prove", "P06", "P12", "P15", "P16", "--bootstrap", stack.settings.kafka.bootstrap)

    assert [each["verdict"] for each in proved["experiments"]] == ["skipped", "skipped", "as expected", "as expected"]
    assert proved["verdicts"] == {"as expected": 2, "DIFFERENT": 0, "FAILED": 0, "skipped": 2}
    assert topics(admin) == before
