"""P24, unclean leader election: the first broker back leads, although it lacks what was acknowledged.

A controller and two brokers with one partition: 3 leads, 2 follows, and one in-sync replica is enough. The follower is
killed and dropped from the replicas in sync; from then on the leader alone acknowledges, also with acks=all. Then the
leader is killed, too, and the follower is the first broker back. (a) With unclean elections it leads, with the records
that it has; when the old leader returns, it follows, and cuts off what the new one lacks. Acknowledged records are lost
for good, and no error says so. (b) Without them, which is the default, the partition has no leader until the old one is
back, and nothing is lost. Galatea's topics leave it at the default, and with three brokers need two replicas in sync.
"""

import os
import signal
from collections.abc import Sequence

from confluent_kafka.admin import AdminClient, NewTopic

from lab.guarantees.brokers import FOLLOWER, LEADER, Cluster
from lab.guarantees.clients import Sender, high_watermark, numbers
from lab.guarantees.experiment import Experiment, ExperimentSetup, Need, await_leaders, await_that, partition_of
from lab.guarantees.results import Result, count_numbers, exactly

BEFORE = AFTER = 100
SENT = BEFORE + AFTER
UNCLEAN, CLEAN = "unclean", "clean"
NOBODY = -1


def run(setup: ExperimentSetup) -> Sequence[Result]:
    """Both kinds of topics in one cluster, so that they meet the same fault."""
    with setup.required_cluster() as cluster:
        return _lines(cluster)


def _lines(cluster: Cluster) -> Sequence[Result]:
    admin = AdminClient({**cluster.kafka.client(), "log_level": 0})
    _create(admin)
    senders = {topic: Sender(cluster.kafka, topic, acks="all", enable_idempotence=True) for topic in (UNCLEAN, CLEAN)}
    for topic, sender in senders.items():
        sender.send_each(range(BEFORE))
        await_that(lambda topic=topic: high_watermark(cluster.kafka, topic) == BEFORE, "nobody follows")  # type: ignore[misc]
    _kill(cluster, FOLLOWER)
    await_that(
        lambda: all(partition_of(admin, topic).isrs == [LEADER] for topic in senders), "the dead follower is in sync"
    )
    for sender in senders.values():
        sender.send_each(range(BEFORE, SENT))
    _kill(cluster, LEADER)
    cluster.restart(FOLLOWER)
    await_that(lambda: partition_of(admin, UNCLEAN).leader == FOLLOWER, "the first broker back does not lead")
    leads_clean = partition_of(admin, CLEAN).leader
    await_that(lambda: high_watermark(cluster.kafka, UNCLEAN) == BEFORE, "the log of the first broker is not served")
    meanwhile = count_numbers(SENT, *numbers(cluster.kafka, UNCLEAN))
    cluster.restart(LEADER)
    await_that(lambda: partition_of(admin, CLEAN).leader == LEADER, "the old leader does not lead again")
    both = [FOLLOWER, LEADER]
    await_that(
        lambda: all(sorted(partition_of(admin, topic).isrs) == both for topic in senders), "they are not in sync"
    )
    await_that(lambda: high_watermark(cluster.kafka, CLEAN) == SENT, "the log of the old leader is not served")
    lost = count_numbers(SENT, *numbers(cluster.kafka, UNCLEAN))
    fault = "follower killed, then the leader; the follower is back first"
    return [
        Result(
            "acks=all, unclean elections",
            fault,
            SENT,
            lost,
            {"lost": exactly(AFTER), "ok": exactly(SENT), "lost while the old leader is away": exactly(AFTER)},
            {"ok": senders[UNCLEAN].ok, "lost while the old leader is away": meanwhile.lost},
        ),
        Result(
            "acks=all, the default",
            fault,
            SENT,
            count_numbers(SENT, *numbers(cluster.kafka, CLEAN)),
            {"ok": exactly(SENT), "without a leader meanwhile": exactly(1)},
            {"ok": senders[CLEAN].ok, "without a leader meanwhile": int(leads_clean == NOBODY)},
        ),
    ]


def _create(admin: AdminClient) -> None:
    topics = [
        NewTopic(
            name,
            1,
            replica_assignment=[[LEADER, FOLLOWER]],
            config={"min.insync.replicas": "1", "unclean.leader.election.enable": is_unclean},
        )
        for name, is_unclean in ((UNCLEAN, "true"), (CLEAN, "false"))
    ]
    for future in admin.create_topics(topics, operation_timeout=30).values():
        future.result()
    for topic in (UNCLEAN, CLEAN):
        await_leaders(admin, topic, 1)


def _kill(cluster: Cluster, number: int) -> None:
    os.kill(cluster.pid(number), signal.SIGKILL)


EXPERIMENT = Experiment("P24", "unclean leader election", run, Need.NODES)
