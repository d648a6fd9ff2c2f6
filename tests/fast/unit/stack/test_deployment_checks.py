"""What `galatea doctor --deployment` says about Kafka, Cassandra, certificates and settings, finding by finding."""

import struct
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from deploy.checks import cassandra as cassandra_checks
from deploy.checks import kafka as kafka_checks
from deploy.checks.cassandra import Copies, NodeClock, copies_finding, same_release
from deploy.checks.certificates import OWN, file_finding, private_findings, server_finding
from deploy.checks.deployment import (
    EVERY_PROCESS,
    REBUILDS_OF_API,
    deployment_groups,
    setting_findings,
    users_of,
)
from deploy.checks.environment import webhook_findings
from deploy.checks.finding import Finding
from deploy.checks.kafka import TopicRules, options_finding, topic_finding, version_finding
from deploy.local.checkup import checkup
from deploy.local.ports import free_ports
from deploy.local.rights import RIGHTS, Rights, all_rights, kafka_rules, table_permissions
from deploy.services.dispatcher import warn_of_networks
from deploy.settings import Settings
from galatea.cli.doctor import doctor
from master_dataset.errors import BrokerUnavailableError, RequestError, UnknownNameError
from master_dataset.kafka.broker_versions import BrokerVersions, broker_versions, parse_versions
from master_dataset.kafka.client_settings import COMPRESSION, LARGEST_BATCH
from master_dataset.kafka.growth import Growth, Partitions
from master_dataset.kafka.inspection import Broker, ClockOffset, TopicFacts
from master_dataset.tls import Tls
from tests.support.secured_servers import HOST, Authority, rejecting, serving

DAY_MS = 86_400_000
RULES = TopicRules(2, needed=timedelta(days=8), wanted=timedelta(days=14), brokers=3)
OPTIONS: Mapping[str, str | None] = {
    "message.timestamp.type": "LogAppendTime",
    "retention.ms": str(14 * DAY_MS),
    "retention.bytes": "-1",
    "cleanup.policy": "delete",
    "unclean.leader.election.enable": "false",
    "min.insync.replicas": "2",
    "max.message.bytes": str(LARGEST_BATCH),
    "compression.type": COMPRESSION,
}
FACTS = TopicFacts(partitions=2, replication=3, leaderless=0, behind=0, options=OPTIONS)
BROKER = Broker(1, "kafka-1", 9093)
BROKER_OPTIONS = {
    "offsets.retention.minutes": "63360",
    "transaction.max.timeout.ms": "900000",
    "transaction.state.log.replication.factor": "3",
    "offsets.topic.replication.factor": "3",
    "auto.create.topics.enable": "false",
}
SKEW = timedelta(seconds=5)
NOW = datetime.now(UTC)


def topic(*, facts: TopicFacts = FACTS, **options: str) -> Finding:
    changed = {name.replace("_", "."): value for name, value in options.items()}
    return topic_finding("pos_transactions", replace(facts, options={**OPTIONS, **changed}), RULES)


def test_a_topic_that_follows_every_rule_is_good() -> None:
    finding = topic()

    assert (finding.ok, finding.do) == (True, "")
    assert finding.found == "partitions: 2, copies: 3, LogAppendTime, records kept 14 days"
    assert topic(retention_ms="-1").found.endswith("records kept for ever")


def test_topics_may_be_uncompressed_if_the_settings_say_so() -> None:
    facts = replace(FACTS, options={**OPTIONS, "compression.type": "uncompressed"})

    assert topic_finding("pos_transactions", facts, replace(RULES, compression="uncompressed")).ok
    assert not topic_finding("pos_transactions", facts, RULES).ok


@pytest.mark.parametrize(
    ("options", "found", "do", "blocks"),
    [
        ({"message_timestamp_type": "CreateTime"}, "the cut needs the broker's time", "galatea migrate", True),
        ({"retention_ms": str(7 * DAY_MS)}, "GALATEA_SPEED_TTL_DAYS plus GALATEA_REMEMBERED_HOURS", "migrate", True),
        ({"retention_ms": str(9 * DAY_MS)}, "less than GALATEA_KAFKA_RETENTION_DAYS", "galatea migrate", False),
        ({"retention_bytes": "1000"}, "records may be deleted before they are read", "retention.bytes=-1", True),
        ({"cleanup_policy": "compact"}, "newer records of a store would replace", "cleanup.policy=delete", True),
        ({"unclean_leader_election_enable": "true"}, "records can be lost", "election.enable=false", True),
        ({"min_insync_replicas": "1"}, "too few copies", "galatea migrate", True),
        ({"min_insync_replicas": "4"}, "no record can be written", "galatea migrate", True),
        ({"max_message_bytes": "1048588"}, "max.message.bytes=1048588: less than 1310720", "galatea migrate", False),
        ({"max_message_bytes": "4194304"}, "one record can take more memory", "galatea migrate", False),
        ({"compression_type": "producer"}, "one record can take more memory", "galatea migrate", False),
    ],
)
def test_an_option_that_breaks_a_rule_is_named(options: dict[str, Any], found: str, do: str, *, blocks: bool) -> None:
    finding = topic(**options)

    assert not finding.ok
    assert found in finding.found
    assert do in finding.do
    assert finding.blocks is blocks


@pytest.mark.parametrize(
    ("facts", "found", "blocks"),
    [
        (replace(FACTS, partitions=3), "3 partitions, and GALATEA_KAFKA_PARTITIONS=2: keys would move", True),
        (replace(FACTS, leaderless=1), "partitions without a leader: 1", True),
        (replace(FACTS, behind=2), "partitions with a copy that is not in sync: 2", False),
        (replace(FACTS, replication=2), "2 copies on 3 brokers", False),
    ],
)
def test_partitions_and_copies_that_break_a_rule_are_named(facts: TopicFacts, found: str, *, blocks: bool) -> None:
    finding = topic(facts=facts)

    assert found in finding.found
    assert (finding.ok, finding.blocks) == (False, blocks)


GROWN = Partitions(2, (Growth(2, 4, NOW, NOW, is_open=True),))
GROWING = Partitions(2, (Growth(2, 4, NOW),))


@pytest.mark.parametrize(
    ("count", "wanted", "recorded", "found", "do"),
    [
        (4, 2, GROWN, "GALATEA_KAFKA_PARTITIONS=2 is from before some were added", "=4 when it suits"),
        (4, 8, GROWN, "GALATEA_KAFKA_PARTITIONS=8: they are not added yet", "galatea migrate"),
        (2, 4, Partitions(2), "GALATEA_KAFKA_PARTITIONS=4: they are not added yet", "galatea migrate"),
        (4, 4, GROWING, "4 partitions, of which 2 are read", "it continues"),
        (2, 4, GROWING, "2 partitions, of which 2 are read", "it continues"),
    ],
)
def test_an_old_or_a_coming_number_of_partitions_is_a_hint(
    count: int, wanted: int, recorded: Partitions, found: str, do: str
) -> None:
    finding = topic_finding(
        "pos_transactions", replace(FACTS, partitions=count), replace(RULES, partitions=wanted, recorded=recorded)
    )

    assert (finding.ok, finding.blocks) == (True, False)
    assert found in finding.found
    assert do in finding.do


@pytest.mark.parametrize(
    ("count", "wanted", "recorded", "found"),
    [
        (4, 2, Partitions(2), "another tool added some"),
        (4, 4, Partitions(2), "another tool added some"),
        (4, 2, None, "keys would move"),
        (4, 3, GROWN, "keys would move"),
        (6, 4, GROWN, "another tool added some"),
    ],
)
def test_a_number_of_partitions_with_which_processes_do_not_start_is_a_fault(
    count: int, wanted: int, recorded: Partitions | None, found: str
) -> None:
    finding = topic_finding(
        "pos_transactions", replace(FACTS, partitions=count), replace(RULES, partitions=wanted, recorded=recorded)
    )

    assert (finding.ok, finding.blocks) == (False, True)
    assert found in finding.found


def test_a_hint_beside_a_fault_is_part_of_the_fault() -> None:
    facts = replace(FACTS, partitions=4, options={**OPTIONS, "retention.ms": str(9 * DAY_MS)})
    finding = topic_finding("pos_transactions", facts, replace(RULES, recorded=GROWN))

    assert (finding.ok, finding.blocks) == (False, False)
    assert "from before some were added" in finding.found
    assert "less than GALATEA_KAFKA_RETENTION_DAYS" in finding.found


def test_several_faults_of_a_topic_are_one_finding_with_each_step_once() -> None:
    finding = topic(
        message_timestamp_type="CreateTime", retention_ms="1", min_insync_replicas="1", max_message_bytes="1"
    )

    assert finding.found.count("; ") == 3
    assert finding.do == (
        "galatea migrate sets it before the topic has records; else create a new topic; galatea migrate sets it"
    )


def test_options_that_a_user_may_not_read_are_a_right_to_grant() -> None:
    finding = topic_finding("pos_transactions", replace(FACTS, options=None), RULES)

    assert "may not read them" in finding.found
    assert "DESCRIBE_CONFIGS" in finding.do


@pytest.mark.parametrize(
    ("name", "value", "found", "do"),
    [
        ("offsets.retention.minutes", "10080", "positions of webhooks can be lost", "offsets.retention.minutes=63360"),
        ("transaction.max.timeout.ms", "1000", "the alert processor asks for", "transaction.max.timeout.ms="),
        ("offsets.topic.replication.factor", "1", "the loss of one stops", "offsets.topic.replication.factor=3"),
        ("auto.create.topics.enable", "true", "with the sender's time", "auto.create.topics.enable=false"),
    ],
)
def test_an_option_of_a_broker_that_can_lose_something_is_named(name: str, value: str, found: str, do: str) -> None:
    finding = options_finding(BROKER, {**BROKER_OPTIONS, name: value}, RULES)

    assert (finding.ok, finding.blocks) == (False, False)
    assert found in finding.found
    assert do in finding.do


def test_options_of_a_broker_are_good_or_not_known() -> None:
    assert options_finding(BROKER, BROKER_OPTIONS, RULES).found == "as Galatea needs them"
    assert "may not read them" in options_finding(BROKER, None, RULES).found


def test_the_release_of_a_broker_is_that_of_its_newest_feature_level() -> None:
    supported = b"\x02" + b"\x11metadata.version" + struct.pack(">hh", 1, 30) + b"\0"
    requests = b"\x03" + struct.pack(">hhh", 9, 1, 10) + b"\0" + struct.pack(">hhh", 44, 0, 1) + b"\0"
    body = struct.pack(">ih", 1, 0) + requests + struct.pack(">i", 0) + b"\x01\0" + bytes([len(supported)]) + supported

    versions = parse_versions(body)

    assert versions == BrokerVersions({9: 10, 44: 1}, 30)
    assert version_finding(BROKER, versions).found == "Kafka 4.3 at kafka-1:9093"
    assert [BrokerVersions({9: 7, 44: 0}, level).release for level in (0, 1, 7, 21, 25, 99)] == [
        "at least 2.5",
        "3.0",
        "3.3",
        "3.9",
        "4.0",
        "4.4 or newer",
    ]


def test_a_broker_that_does_not_know_a_request_is_too_old() -> None:
    with serving(handler=rejecting()) as port:
        versions = broker_versions(HOST, port, None)

    finding = version_finding(BROKER, versions)
    assert "older than 2.5" in finding.found
    assert (finding.blocks, "upgrade the broker" in finding.do) == (True, True)


def test_a_broker_that_is_none_or_does_not_respond_or_is_not_trusted_is_named(tmp_path: Path) -> None:
    [closed] = free_ports(1)
    with pytest.raises(BrokerUnavailableError, match="does not respond"):
        broker_versions(HOST, closed, None)
    with (
        serving(handler=lambda connection: connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")) as port,
        pytest.raises(BrokerUnavailableError, match="does not answer as a Kafka broker"),
    ):
        broker_versions(HOST, port, None)
    authority, other = Authority(tmp_path), Authority(tmp_path, "other")
    with (
        serving(authority.issue("broker").server()) as port,
        pytest.raises(BrokerUnavailableError, match="not signed by an authority"),
    ):
        broker_versions(HOST, port, Tls(other.file))


@pytest.mark.parametrize(
    ("offset", "ok", "found"),
    [
        (ClockOffset(-0.1, 0.2), True, "0.1 s ahead of this machine"),
        (ClockOffset(6.0, 6.2), False, "6.1 s ahead of this machine, and GALATEA_SKEW_SECONDS=5"),
        (ClockOffset(-9.0, -8.0), False, "8.5 s behind this machine"),
        (ClockOffset(7.0), False, "7.0 s ahead"),
        (ClockOffset(-3600.0), True, "not behind by more than 3600.0 s"),
        (None, True, "not known"),
    ],
)
def test_the_clock_of_a_broker_may_differ_by_the_skew(offset: ClockOffset | None, found: str, *, ok: bool) -> None:
    finding = kafka_checks.clock_finding(BROKER, offset, SKEW)

    assert (finding.ok, finding.blocks) == (ok, not ok)
    assert found in finding.found
    assert ok or "NTP" in finding.do


@pytest.mark.parametrize(
    ("clock", "ok"),
    [
        (NodeClock(-0.1, 0.1), True),
        (NodeClock(4.9, 5.1), True),
        (NodeClock(5.1, 5.2), False),
        (NodeClock(-9, -8), False),
    ],
)
def test_the_clock_of_a_node_may_differ_by_the_skew(clock: NodeClock, *, ok: bool) -> None:
    finding = cassandra_checks.clock_finding("clock of node 10.0.0.1", clock, SKEW)

    assert finding.ok is ok
    assert ok or "GALATEA_SKEW_SECONDS" in finding.do


def copies(of_each: dict[str, int], nodes: dict[str, int], local_dc: str = "dc1", **more: object) -> Finding:
    wanted = more.get("wanted", {})
    assert isinstance(wanted, dict)
    return copies_finding(Copies(of_each, sum(of_each.values())), nodes, local_dc, "LOCAL_QUORUM", wanted)


def test_copies_of_rows_are_good_if_a_node_may_fail() -> None:
    assert copies({"dc1": 3, "dc2": 3}, {"dc1": 3, "dc2": 3}).found == (
        "copies: 3 in dc1, 3 in dc2; reads and writes with LOCAL_QUORUM"
    )
    assert copies_finding(Copies({}, 1), {"datacenter1": 1}, "", "QUORUM", {}).ok


@pytest.mark.parametrize(
    ("finding", "found", "do", "blocks"),
    [
        (copies({"dc1": 3}, {"dc2": 3}), "no node in `dc1`", "GALATEA_CASSANDRA_LOCAL_DC to one of dc2", True),
        (copies({"dc2": 3}, {"dc1": 3, "dc2": 3}), "no copy in `dc1`", "ALTER KEYSPACE galatea", True),
        (copies({"dc1": 3}, {"dc1": 2}), "3 copies in `dc1`, which has 2 nodes", "ALTER KEYSPACE", True),
        (copies({"dc1": 2}, {"dc1": 3}), "no node may fail", "three copies", False),
        (
            copies({"dc1": 3}, {"dc1": 3}, wanted={"dc1": 3, "dc2": 3}),
            "GALATEA_CASSANDRA_REPLICATION differs",
            "correct GALATEA_CASSANDRA_REPLICATION",
            False,
        ),
        (
            copies_finding(Copies({}, 3), {"dc1": 3, "dc2": 3}, "dc1", "LOCAL_QUORUM", {}),
            "SimpleStrategy",
            "NetworkTopologyStrategy",
            True,
        ),
    ],
)
def test_copies_that_do_not_give_a_quorum_are_named(finding: Finding, found: str, do: str, *, blocks: bool) -> None:
    assert found in finding.found
    assert do in finding.do
    assert (finding.ok, finding.blocks) == (False, blocks)


@pytest.mark.parametrize("release", ["4.1.0", "4.1-rc1", "4.10.2", "5.0.9", "5.0-beta1", "10.0.0"])
def test_a_node_that_knows_the_statements_of_the_migrations_is_good(release: str) -> None:
    assert cassandra_checks.version_finding("node a", release, "dc1").ok


@pytest.mark.parametrize("release", ["3.11.4", "4.0.17", "4.0-rc1"])
def test_a_node_that_is_too_old_is_named(release: str) -> None:
    """Cassandra 4.0 has no `ALTER TABLE ... ADD IF NOT EXISTS`: `galatea migrate` would end with a syntax error."""
    finding = cassandra_checks.version_finding("node a", release, "dc1")

    assert (finding.blocks, finding.do) == (True, "upgrade it to Cassandra 4.1 or newer")


def test_rights_that_a_role_lacks_are_named_by_table() -> None:
    rights = Rights(reads=("stores",), writes=("lag", "leases"))
    granted = {"<table galatea.stores>": frozenset({"SELECT"}), "<table galatea.lag>": frozenset({"SELECT", "MODIFY"})}

    finding = cassandra_checks.missing_rights("rights of archive", "archive", granted, rights)

    assert finding.found == "the role `archive` lacks MODIFY on `leases`; SELECT on `leases`"
    assert "rights-in-cassandra" in finding.do
    everywhere = {"<keyspace galatea>": frozenset({"SELECT"}), "<all keyspaces>": frozenset({"MODIFY"})}
    assert cassandra_checks.missing_rights("rights", "galatea", everywhere, all_rights()).ok


def test_rights_that_a_user_of_kafka_lacks_are_named() -> None:
    finding = kafka_checks.missing_rights("rights of api", "the user `api`", ["WRITE `a`", "READ groups"])

    assert finding.found == "the user `api` may not WRITE `a`; not READ groups"
    assert "rights-in-kafka" in finding.do
    assert kafka_checks.missing_rights("rights of api", "the user `api`", []).ok


def test_one_user_needs_what_every_process_needs() -> None:
    rules = {(str(rule.restype), rule.name, str(rule.operation)) for rule in kafka_rules(all_rights(), "x", ["a"])}
    each = [kafka_rules(rights, "x", ["a"]) for rights in RIGHTS.values()]

    assert rules == {(str(rule.restype), rule.name, str(rule.operation)) for own in each for rule in own}


def test_the_alert_processor_may_write_the_ticks_by_which_it_notices_silence() -> None:
    rules = kafka_rules(RIGHTS["alerts"], "x", ["pos_transactions"])

    assert ("pos_transactions", "AclOperation.WRITE") in {(rule.name, str(rule.operation)) for rule in rules}


def test_two_releases_at_once_are_named() -> None:
    assert same_release([("archive", "0.2.0"), ("speed", "0.2.0")], "0.2.0").ok
    assert "no process" in same_release([], "0.2.0").found
    finding = same_release([("archive", "0.1.0"), ("speed", "0.2.0")], "0.2.0")
    assert finding.found == "several at once: archive: 0.1.0, speed: 0.2.0; this command: 0.2.0"
    assert (finding.ok, finding.blocks) == (False, False)


def test_the_certificate_of_a_server_is_checked_by_its_end_its_name_and_its_authority(tmp_path: Path) -> None:
    authority, other = Authority(tmp_path), Authority(tmp_path, "other")
    trusted = Tls(authority.file)

    def shown(issued_days: int, tls: Tls, host: str = HOST) -> Finding:
        issued = authority.issue(f"server{issued_days}{host}", host, timedelta(days=issued_days))
        with serving(issued.server()) as port:
            return server_finding(tls, HOST, port, OWN, NOW)

    assert shown(60, trusted).ok
    assert ("expires in" in shown(9, trusted).found, shown(9, trusted).blocks) == (True, False)
    assert "has expired" in shown(-1, trusted).found
    assert "is for another name" in shown(60, trusted, "127.0.0.2").found
    assert "GALATEA_TLS_CA_FILE" in shown(60, Tls(other.file)).do


def test_a_server_that_is_down_or_without_tls_is_named(tmp_path: Path) -> None:
    trusted = Tls(Authority(tmp_path).file)
    [closed] = free_ports(1)

    assert "does not respond" in server_finding(trusted, HOST, closed, OWN, NOW).found
    with serving(handler=lambda connection: connection.sendall(b"plain text, not TLS")) as port:
        assert "does not use TLS" in server_finding(trusted, HOST, port, OWN, NOW).found


def test_a_certificate_in_a_file_is_checked_by_its_end_and_its_name(tmp_path: Path) -> None:
    authority = Authority(tmp_path)

    def file(days: int, host: str) -> Finding:
        issued = authority.issue(f"own{days}", HOST, timedelta(days=days))
        return file_finding("GALATEA_TLS_CERTIFICATE_FILE", Tls("", issued.certificate, issued.key), host, NOW)

    assert file(60, HOST).ok
    assert file(60, "").ok
    assert "expires in" in file(9, HOST).found
    assert "has expired" in file(-1, HOST).found
    assert "is not for `api.example`" in file(60, "api.example").found


def test_a_private_file_that_others_can_read_is_named(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path)
    key = tmp_path / "operator.key"
    key.write_text("a key")
    key.chmod(0o600)
    assert [each.ok for each in private_findings(settings)] == [True]

    key.chmod(0o644)
    [finding] = private_findings(settings)

    assert "can be read by others (mode 644)" in finding.found
    assert finding.do == f"chmod 600 {key}"


def test_settings_that_risk_something_are_named(tmp_path: Path) -> None:
    good = list(setting_findings(Settings(home=tmp_path)))
    risky = list(setting_findings(Settings(home=tmp_path, skew_seconds=0, kafka_retention_days=8)))

    assert [each.ok for each in good] == [True]
    assert good[0].found.startswith("A 23 h + F 1 h <= D 24 h; speed rows 7 days + D <= records 14 days")
    assert [each.check for each in risky if not each.ok] == ["skew"]
    [hint] = [each for each in risky if each.ok and each.do]
    assert (hint.check, hint.do) == ("retention", "GALATEA_KAFKA_RETENTION_DAYS=14 galatea migrate")


@pytest.mark.parametrize(
    ("networks", "ok", "found"),
    [
        ("0.0.0.0/0", False, "allows 0.0.0.0/0: webhooks can call link-local addresses"),
        ("10.20.0.0/16, 169.254.0.0/16", False, "allows 169.254.0.0/16: webhooks can call link-local addresses"),
        ("169.254.169.254/32", False, "allows 169.254.169.254/32: webhooks can call link-local addresses"),
        ("fe80::/10", False, "allows fe80::/10: webhooks can call link-local addresses"),
        ("10.0.0.0/8", True, "allows 10.0.0.0/8: webhooks can call most of a private network"),
        ("fc00::/7", True, "allows fc00::/7: webhooks can call most of a private network"),
    ],
)
def test_networks_of_webhooks_that_are_too_wide_are_named_and_logged(
    tmp_path: Path, networks: str, found: str, *, ok: bool
) -> None:
    settings = Settings(home=tmp_path, webhook_networks=networks)

    [finding] = [each for each in setting_findings(settings) if each.check == "webhooks"]
    with capture_logs() as logged:
        warn_of_networks(settings)

    assert (finding.ok, finding.blocks) == (ok, False)
    assert found in finding.found
    assert "GALATEA_WEBHOOK_NETWORKS" in finding.do
    assert finding in checkup(settings)
    assert [each["log_level"] for each in logged] == ["warning"]
    assert all(network in finding.found for network in logged[0]["networks"])


def test_networks_of_receivers_alone_are_good(tmp_path: Path) -> None:
    for networks in ("", "10.20.0.0/16,fd00:1::/48"):
        settings = Settings(home=tmp_path, webhook_networks=networks)
        with capture_logs() as logged:
            warn_of_networks(settings)

        assert (list(webhook_findings(settings)), logged) == ([], [])


def test_rights_are_checked_for_one_user_for_each_process_or_for_one_process(tmp_path: Path) -> None:
    own, secured = Settings(home=tmp_path), Settings(home=tmp_path / "secured", secure=True)

    assert list(users_of(own, "")) == [EVERY_PROCESS]
    assert list(users_of(own, "archive")) == ["archive"]
    assert {name: user.kafka.user for name, (user, _) in users_of(secured, "").items()} == {
        name: name for name in RIGHTS
    }
    with pytest.raises(UnknownNameError, match="no process `archiv`"):
        users_of(own, "archiv")


OWN_CLUSTERS: Mapping[str, object] = {
    "cassandra_contact_points": "cassandra-1",
    "cassandra_user": "galatea-api",
    "cassandra_password": "secret",
}


def test_on_clusters_of_your_own_the_login_of_the_api_needs_the_rights_of_the_rebuilds_that_it_starts(
    tmp_path: Path,
) -> None:
    settings = Settings(home=tmp_path, **OWN_CLUSTERS)
    login_of_child = settings.as_user("batch").environment()["GALATEA_CASSANDRA_USER"]  # as `runner_of` starts it

    users = users_of(settings, "api")

    assert {name: (user.cassandra.user, rights) for name, (user, rights) in users.items()} == {
        "api": ("galatea-api", RIGHTS["api"]),
        REBUILDS_OF_API: (login_of_child, RIGHTS["batch"]),
    }
    only_api = {f"<table galatea.{table}>": permissions for table, permissions in table_permissions(RIGHTS["api"])}
    finding = cassandra_checks.missing_rights("rights", login_of_child, only_api, users[REBUILDS_OF_API][1])
    assert "the role `galatea-api` lacks MODIFY on `alert_audits`, `batch_cells`" in finding.found


def test_an_api_that_starts_no_rebuilds_for_late_events_needs_only_its_own_rights(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path, prompt_correction=False, **OWN_CLUSTERS)

    assert list(users_of(settings, "api")) == ["api"]


def test_on_a_secured_local_stack_rebuilds_of_the_api_have_a_user_of_their_own(tmp_path: Path) -> None:
    users = users_of(Settings(home=tmp_path, secure=True), "api")

    assert {name: (user.kafka.user, user.cassandra.user) for name, (user, _) in users.items()} == {
        "api": ("api", "api"),
        REBUILDS_OF_API: ("batch", "batch"),
    }


def test_clusters_that_are_down_block_and_each_finding_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("master_dataset.kafka.topics._REACH_SECONDS", 1)
    kafka, cassandra = free_ports(2)
    settings = Settings(home=tmp_path, kafka_bootstrap=f"{HOST}:{kafka}", cassandra_port=cassandra)

    findings = [each for group in deployment_groups(settings) for each in group.findings]

    blocking = {each.check: each for each in findings if each.blocks}
    assert {f"server {HOST}:{kafka}", f"contact point {HOST}"} <= blocking.keys()
    assert "GALATEA_KAFKA_BOOTSTRAP" in blocking[f"server {HOST}:{kafka}"].do
    assert "GALATEA_CASSANDRA_CONTACT_POINTS" in blocking[f"contact point {HOST}"].do
    assert all(each.ok or each.do for each in findings)


def test_a_process_is_named_only_for_a_deployment() -> None:
    with pytest.raises(RequestError, match="--process"):
        doctor(process="archive")
