"""Checks of a Kafka cluster: brokers, topics against the rules of the cut, options, clocks, and the rights of users."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING

from deploy.checks.finding import Finding, failed, fault, good, hint
from deploy.local.nodes import THREE
from deploy.local.rights import Rights, topic_operations
from deploy.partitions import partitions_of
from master_dataset.errors import BrokerAccessError, BrokerUnavailableError, CassandraUnavailableError, OperatorError
from master_dataset.kafka.broker_versions import LIST_OFFSETS, OLDEST_RELEASE, BrokerVersions, broker_versions
from master_dataset.kafka.client_settings import COMPRESSION, LARGEST_BATCH, majority
from master_dataset.kafka.growth import Partitions
from master_dataset.kafka.inspection import Broker, ClockOffset, Inspection, TopicFacts
from master_dataset.kafka.topics import BROKERS_TIME, TIMESTAMPS, Topics
from master_dataset.sources import registered_sources
from master_dataset.tls import GUIDE
from speed_layer.alerts.sender import TRANSACTION_MS

if TYPE_CHECKING:
    from deploy.settings import Settings
    from master_dataset.kafka.connection import KafkaConnection

KAFKA_RIGHTS = f"{GUIDE}#rights-in-kafka"
OFFSETS_OUTLIVE = timedelta(days=30)
"""How much longer brokers must keep the positions of groups than records: a webhook may be suspended that long."""
MIGRATE = "galatea migrate sets it"
ADD_PARTITIONS = "see docs/how-to/add-partitions.md"
Options = Mapping[str, str | None]
_DAY_MS = 86_400_000
_NEWEST_STAMP = 7
"""Version of ListOffsets that finds the newest timestamp."""


@dataclass(frozen=True)
class TopicRules:
    """What the topics have to be.

    Attributes:
        partitions: Of each topic, by the settings.
        recorded: Those that the topics have by the record of what was added; None if it is not known.
        needed: How long records must be kept: the lifetime of speed rows and D.
        wanted: How long the settings say that they are kept.
        brokers: How many the cluster has.
        compression: Of topics, by the settings.
    """

    partitions: int
    needed: timedelta
    wanted: timedelta
    brokers: int
    recorded: Partitions | None = None
    compression: str = COMPRESSION

    @classmethod
    def of(cls, settings: "Settings", brokers: int) -> "TopicRules":
        """Return those of a deployment."""
        needed = settings.speed.ttl + settings.speed.remembered
        try:
            recorded = partitions_of(settings, Topics(settings.kafka.connection))
        except (BrokerUnavailableError, CassandraUnavailableError, OperatorError):  # other checks name it
            recorded = None
        return cls(
            settings.kafka.partitions, needed, settings.kafka.retention, brokers, recorded, settings.kafka.compression
        )


def kafka_findings(
    settings: "Settings", users: Mapping[str, tuple["Settings", Rights]], topics_of: Rights
) -> Iterator[Finding]:
    """Check the cluster.

    Args:
        settings: The settings.
        users: Name of a process, or of all, to the settings with its login, and what it has to be able to do.
        topics_of: Its topics are checked. The options of one that it only writes to may be hidden from it.
    """
    try:
        kafka = settings.kafka.connection
    except OperatorError as error:
        yield failed("files of GALATEA_KAFKA", error)
        return
    servers = [server_finding(kafka, server.strip()) for server in kafka.bootstrap.split(",")]
    reached = any(each.ok for each in servers)
    yield from (each._replace(blocks=not (each.ok or reached)) for each in servers)
    if not reached:
        return
    try:
        yield from _cluster_findings(settings, Inspection(kafka), topics_of)
    except BrokerUnavailableError as error:
        yield failed("cluster", error)
    for name, (own, rights) in users.items():
        yield rights_finding(name, own, rights)


def server_finding(kafka: "KafkaConnection", server: str) -> Finding:
    """Check that one of the bootstrap servers lets this process in."""
    check = f"server {server}"
    try:
        Inspection(replace(kafka, bootstrap=server)).reach()
    except BrokerAccessError as error:
        return failed(check, error)
    except BrokerUnavailableError as error:
        do = "start the broker, or correct GALATEA_KAFKA_BOOTSTRAP or GALATEA_KAFKA_SECURITY_PROTOCOL"
        return failed(check, error, error.do if error.do != "galatea status" else do)
    return good(check, f"lets {kafka.identity} in ({kafka.protocol})")


def _cluster_findings(settings: "Settings", cluster: Inspection, rights: Rights) -> Iterator[Finding]:
    brokers = cluster.nodes()
    known = {}
    for broker in brokers:
        try:
            known[broker.number] = broker_versions(broker.host, broker.port, settings.kafka.connection.tls)
        except BrokerUnavailableError as error:
            yield failed(f"broker {broker.number}", error)
        else:
            yield version_finding(broker, known[broker.number])
    rules, operations = TopicRules.of(settings, len(brokers)), topic_operations(rights, list(registered_sources()))
    usable = []
    for topic, needed in operations.items():
        try:
            facts = cluster.topic(topic)
        except BrokerUnavailableError as error:
            yield failed(f"topic {topic}", error, "" if isinstance(error, BrokerAccessError) else _create(topic))
            continue
        if facts.options is None and "DESCRIBE_CONFIGS" not in needed:
            yield good(f"topic {topic}", f"partitions: {facts.partitions}; its options are not for this user to read")
        else:
            yield topic_finding(topic, facts, rules)
        if facts.options is not None and facts.options.get(TIMESTAMPS) == BROKERS_TIME:
            usable.append(topic)
    for broker in brokers:
        yield options_finding(broker, cluster.broker_options(broker.number), rules)
    if all(each.requests.get(LIST_OFFSETS, 0) >= _NEWEST_STAMP for each in known.values()):
        offsets = cluster.clock_offsets(usable)
        yield from (clock_finding(each, offsets.get(each.number), settings.layers.skew) for each in brokers)
    else:
        yield good("clocks", "not known: brokers before Kafka 3.0 do not say the newest timestamp of a topic")


def _create(topic: str) -> str:
    return f"galatea migrate creates `{topic}`; if it exists, grant DESCRIBE: {KAFKA_RIGHTS}"


def version_finding(broker: Broker, versions: BrokerVersions) -> Finding:
    """Check that a broker knows all requests that Galatea needs."""
    check, found = f"broker {broker.number}", f"Kafka {versions.release} at {broker.host}:{broker.port}"
    if not versions.is_enough:
        return fault(check, f"{found} is too old", f"upgrade the broker to Kafka {OLDEST_RELEASE} or newer")
    return good(check, found)


def topic_finding(topic: str, facts: TopicFacts, rules: TopicRules) -> Finding:
    """Check one topic against the rules of the cut. The first fault that blocks is shown, else the first other one."""
    check = f"topic {topic}"
    if facts.options is None:
        do = f"grant DESCRIBE_CONFIGS: {KAFKA_RIGHTS}"
        return fault(check, "its options are unknown: this user may not read them", do)
    named = list(_topic_faults(facts, facts.options, rules))
    if named:
        ok, blocks = all(each.ok for each in named), any(each.blocks for each in named)
        steps = dict.fromkeys(each.do for each in named)
        return Finding(check, ok, "; ".join(each.found for each in named), "; ".join(steps), blocks)
    days = int(facts.options["retention.ms"] or 0) / _DAY_MS
    kept = f"records kept {days:g} days" if days >= 0 else "records kept for ever"
    return good(check, f"partitions: {facts.partitions}, copies: {facts.replication}, {BROKERS_TIME}, {kept}")


def _topic_faults(facts: TopicFacts, options: Options, rules: TopicRules) -> Iterator[Finding]:
    """What is wrong for the cut, and for records that have been acknowledged; and hints."""
    topic = _Topic(facts, options, rules)
    yield from topic.partition_faults()
    yield from topic.retention_faults()
    yield from topic.size_faults()
    yield from topic.durability_faults()


@dataclass(frozen=True)
class _Topic:
    """One topic, and what it has to be."""

    facts: TopicFacts
    options: Options
    rules: TopicRules

    def number(self, name: str) -> int:
        return int(self.options.get(name) or 0)

    def partition_faults(self) -> Iterator[Finding]:
        yield from self.count_faults()
        if self.options.get(TIMESTAMPS) != BROKERS_TIME:
            found = f"{TIMESTAMPS}={self.options.get(TIMESTAMPS)}: the cut needs the broker's time ({BROKERS_TIME})"
            yield fault("", found, f"{MIGRATE} before the topic has records; else create a new topic")
        if self.facts.leaderless:
            found = f"partitions without a leader: {self.facts.leaderless}"
            yield fault("", found, "start the brokers that are down")
        elif self.facts.behind:
            found = f"partitions with a copy that is not in sync: {self.facts.behind}"
            yield fault("", found, "start the broker that is down, or wait until it has caught up", blocks=False)

    def count_faults(self) -> Iterator[Finding]:
        """As processes see it when they start: `deploy.partitions.checked_partitions`."""
        count, wanted, recorded = self.facts.partitions, self.rules.partitions, self.rules.recorded
        if recorded is not None and count not in {recorded.added, recorded.open}:
            found = f"{count} partitions instead of {recorded.open}: another tool added some, and nobody reads them"
            yield fault("", found, ADD_PARTITIONS)
        elif recorded is not None and recorded.unfinished is not None:
            found = f"{count} partitions, of which {recorded.open} are read until all are opened"
            yield hint("", found, "galatea migrate, unless one runs: it continues")
        elif count != wanted and wanted % count == 0:
            found = f"{count} partitions, and GALATEA_KAFKA_PARTITIONS={wanted}: they are not added yet"
            yield hint("", found, "galatea migrate adds them while events arrive")
        elif recorded is not None and recorded.growths and count != wanted and count % wanted == 0:
            found = f"{count} partitions; GALATEA_KAFKA_PARTITIONS={wanted} is from before some were added, and ignored"
            yield hint("", found, f"set GALATEA_KAFKA_PARTITIONS={count} when it suits")
        elif count != wanted:
            found = f"{count} partitions, and GALATEA_KAFKA_PARTITIONS={wanted}: keys would move"
            yield fault("", found, ADD_PARTITIONS)

    def retention_faults(self) -> Iterator[Finding]:
        kept, needed, wanted = self.number("retention.ms"), _ms(self.rules.needed), _ms(self.rules.wanted)
        if 0 <= kept < needed:
            found = f"retention.ms={kept}: less than GALATEA_SPEED_TTL_DAYS plus GALATEA_REMEMBERED_HOURS ({needed})"
            yield fault("", found, MIGRATE)
        elif 0 <= kept < wanted:
            found = f"retention.ms={kept}: less than GALATEA_KAFKA_RETENTION_DAYS ({wanted})"
            yield fault("", found, MIGRATE, blocks=False)
        if self.number("retention.bytes") > 0:
            found = f"retention.bytes={self.options['retention.bytes']}: records may be deleted before they are read"
            yield fault("", found, "set retention.bytes=-1 on the topic: its records are kept by time")
        if (policy := self.options.get("cleanup.policy", "delete")) != "delete":
            found = f"cleanup.policy={policy}: newer records of a store would replace older ones"
            yield fault("", found, "set cleanup.policy=delete on the topic")

    def size_faults(self) -> Iterator[Finding]:
        largest, codec = self.number("max.message.bytes"), self.options.get("compression.type")
        if largest < LARGEST_BATCH:
            yield fault("", f"max.message.bytes={largest}: less than {LARGEST_BATCH}", MIGRATE, blocks=False)
        if largest > LARGEST_BATCH or codec != self.rules.compression:
            found = (
                f"max.message.bytes={largest}, compression.type={codec}: one record can take more memory than there is"
            )
            yield fault("", found, MIGRATE, blocks=False)

    def durability_faults(self) -> Iterator[Finding]:
        copies, enough = self.facts.replication, self.number("min.insync.replicas")
        if self.options.get("unclean.leader.election.enable") == "true":
            found = "unclean.leader.election.enable=true: acknowledged records can be lost"
            yield fault("", found, "set unclean.leader.election.enable=false on the topic or on the brokers")
        if not majority(copies) <= enough <= copies:
            why = "no record can be written" if enough > copies else "an acknowledged record may have too few copies"
            yield fault("", f"min.insync.replicas={enough} of {copies} copies: {why}", MIGRATE)
        if copies < min(THREE, self.rules.brokers):
            found = f"{copies} copies on {self.rules.brokers} brokers: if one fails, writes stop or records are lost"
            yield fault("", found, "kafka-reassign-partitions.sh adds copies", blocks=False)


def _ms(span: timedelta) -> int:
    return int(span / timedelta(milliseconds=1))


def options_finding(broker: Broker, options: Options | None, rules: TopicRules) -> Finding:
    """Check the options of a broker, if this user may read them."""
    check = f"options of broker {broker.number}"
    if options is None:
        return good(check, "not known: this user may not read them (DESCRIBE_CONFIGS on the cluster)")
    kept = timedelta(minutes=int(options.get("offsets.retention.minutes") or 0))
    longest = int(options.get("transaction.max.timeout.ms") or 0)
    faults = []
    if kept < rules.wanted + OFFSETS_OUTLIVE:
        minutes = int((rules.wanted + OFFSETS_OUTLIVE) / timedelta(minutes=1))
        found = f"offsets.retention.minutes={kept / timedelta(minutes=1):g}: positions of webhooks can be lost"
        faults.append((found, f"set offsets.retention.minutes={minutes} or more on the brokers"))
    if longest < TRANSACTION_MS:
        found = f"transaction.max.timeout.ms={longest}: the alert processor asks for {TRANSACTION_MS}"
        faults.append((found, f"set transaction.max.timeout.ms={TRANSACTION_MS} or more on the brokers"))
    for name in ("transaction.state.log.replication.factor", "offsets.topic.replication.factor"):
        if int(options.get(name) or 0) < min(THREE, rules.brokers):
            found = f"{name}={options.get(name)} of {rules.brokers} brokers: the loss of one stops alerts and webhooks"
            faults.append((found, f"set {name}={min(THREE, rules.brokers)}, and add copies to the topic if it exists"))
    if options.get("auto.create.topics.enable") == "true":
        found = "auto.create.topics.enable=true: a mistyped topic would be created, with the sender's time"
        faults.append((found, "set auto.create.topics.enable=false on the brokers"))
    if faults:
        return fault(check, "; ".join(each for each, _ in faults), "; ".join(do for _, do in faults), blocks=False)
    return good(check, "as Galatea needs them")


def clock_finding(broker: Broker, offset: ClockOffset | None, skew: timedelta) -> Finding:
    """Check that the clock of a broker differs from this machine's by at most the skew."""
    check, allowed = f"clock of broker {broker.number}", f"GALATEA_SKEW_SECONDS={skew.total_seconds():g}"
    if offset is None:
        return good(check, "not known: it leads no partition with records")
    within = offset.is_within(skew)
    if within is None:
        found = f"not behind by more than {max(-offset.least, 0):.1f} s; no record arrived that would say more"
        return good(check, found)
    ahead = offset.least if offset.most is None else (offset.least + offset.most) / 2
    found = f"{abs(ahead):.1f} s {'ahead of' if ahead > 0 else 'behind'} this machine"
    if not within:
        do = f"synchronise the clocks (NTP) of the broker and this machine, or raise {allowed.partition('=')[0]}"
        return fault(check, f"{found}, and {allowed}", do)
    return good(check, found)


def rights_finding(name: str, settings: "Settings", rights: Rights) -> Finding:
    """Check what a process may do with its topics, groups and transactions. Nothing is written to a topic."""
    check = f"rights of {name}"
    try:
        kafka = settings.kafka.connection
        return missing_rights(check, kafka.identity, list(_lacking(Inspection(kafka), rights)))
    except (BrokerUnavailableError, OperatorError) as error:
        return failed(check, error)


def missing_rights(check: str, identity: str, lacking: Sequence[str]) -> Finding:
    """Return the finding: `lacking` are rights, with what they are for."""
    if lacking:
        return fault(check, f"{identity} may not {'; not '.join(lacking)}", f"grant the rights: {KAFKA_RIGHTS}")
    return good(check, f"{identity} may do what it has to")


def _lacking(cluster: Inspection, rights: Rights) -> Iterator[str]:
    wanted = topic_operations(rights, list(registered_sources()))
    found = cluster.operations(wanted) if wanted else {}
    for operation in ("READ", "DESCRIBE_CONFIGS", "WRITE"):
        without = [topic for topic, needed in wanted.items() if operation in needed and operation not in found[topic]]
        if without:
            yield f"{operation} {', '.join(f'`{topic}`' for topic in without)}"
    groups = cluster.group_operations(rights.groups) if rights.groups else {}
    hidden = [f"`{group}`" for group, operations in groups.items() if "READ" not in operations]
    if hidden:
        yield f"READ groups that begin with {', '.join(hidden)}"
    for prefix in rights.transactions:
        if not cluster.may_use_transactions(f"{prefix}doctor"):
            yield f"WRITE transactional ids that begin with `{prefix}`"
