"""P12, acks=1 and acks=all: the leader dies with records that only it had.

A controller and two brokers with one partition: 3 leads, 2 follows, and one in-sync replica is enough. The follower is
stopped (it seems alive for some seconds) while more records are sent. With acks=1, the leader alone acknowledges them.
It is killed, the follower continues and leads: acknowledged records are lost. With acks=all, the producer got no
acknowledgement, because the follower had not responded; it resends the rest to the new leader, and nothing is lost.
Galatea uses acks=all, and with three brokers two in-sync replicas.
"""

import os
import signal
import time
from collections.abc import Sequence

import psutil
from confluent_kafka.admin import AdminClient, NewTopic

from lab.guarantees.brokers import FOLLOWER, LEADER, SILENCE_MS, Cluster
from lab.guarantees.clients import Sender, flush, high_watermark, numbers
from lab.guarantees.experiment import Experiment, ExperimentSetup, Need, await_leaders, await_that, partition_of
from lab.guarantees.results import Result, at_least, count_numbers, exactly
from master_dataset.errors import OperatorError

BEFORE = AFTER = 100
SENT = BEFORE + AFTER
ONE, ALL = "acks-1", "acks-all"
THREADS_SECONDS = 0.2
"""Within it each thread of a process stops of which one has."""


def run(setup: ExperimentSetup) -> Sequence[Result]:
    """Both modes in one cluster, so that they meet the same fault."""
    with setup.required_cluster() as cluster:
        return _lines(cluster)


def _lines(cluster: Cluster) -> Sequence[Result]:
    admin = AdminClient({**cluster.kafka.client(), "log_level": 0})
    _create(admin)
    one = Sender(cluster.kafka, ONE, acks=1, enable_idempotence=False)
    all_ = Sender(cluster.kafka, ALL, acks="all", enable_idempotence=True)
    for sender in (one, all_):
        sender.send_each(range(BEFORE))
        await_that(lambda topic=sender.topic: high_watermark(cluster.kafka, topic) == BEFORE, "nobody follows")  # type: ignore[misc]
    acknowledged = _lose_leader(cluster, one, all_)
    await_that(lambda: _leaders(admin) == {FOLLOWER}, "the follower was not made leader")
    flush(all_.producer)
    seen = {topic: numbers(cluster.kafka, topic) for topic in (ONE, ALL)}
    fault = "follower stopped, leader killed"
    return [
        Result(
            "acks=1, two copies",
            fault,
            SENT,
            count_numbers(SENT, *seen[ONE]),
            # A fetch that was pending when it was stopped may still return the first of them.
            {"lost": at_least(AFTER // 2), "ok": exactly(SENT)},
            {"ok": one.ok},
        ),
        Result(
            "acks=all, two copies",
            fault,
            SENT,
            count_numbers(SENT, *seen[ALL]),
            {"ok before the election": exactly(BEFORE), "ok": exactly(SENT)},
            {"ok before the election": acknowledged, "ok": all_.ok},
        ),
    ]


def _create(admin: AdminClient) -> None:
    topics = [
        NewTopic(name, 1, replica_assignment=[[LEADER, FOLLOWER]], config={"min.insync.replicas": "1"})
        for name in (ONE, ALL)
    ]
    for future in admin.create_topics(topics, operation_timeout=30).values():
        future.result()
    for topic in (ONE, ALL):
        await_leaders(admin, topic, 1)


def _lose_leader(cluster: Cluster, one: Sender, all_: Sender) -> int:
    """Stop the follower, send, kill the leader, let the follower go on; how many acks=all had acknowledged by then.

    OperatorError if it took so long that the follower itself was given up: then the fault was another one.
    """
    follower, leader = cluster.pid(FOLLOWER), cluster.pid(LEADER)
    began = time.monotonic()
    try:
        _stop(follower)
        all_.send(range(BEFORE, SENT))
        one.send(range(BEFORE, SENT))
        flush(one.producer)
        all_.producer.poll(0)
        os.kill(leader, signal.SIGKILL)
    finally:
        os.kill(follower, signal.SIGCONT)
    if time.monotonic() - began > SILENCE_MS / 1000 - 2:
        raise OperatorError("the machine was so slow that the follower was given up too", do="galatea prove P12")
    return all_.ok


def _stop(pid: int) -> None:
    """The signal is on its way when `kill` returns: on a busy machine a thread may still answer the leader twice."""
    os.kill(pid, signal.SIGSTOP)
    process = psutil.Process(pid)
    await_that(lambda: process.status() == psutil.STATUS_STOPPED, "the follower does not stop")
    time.sleep(THREADS_SECONDS)


def _leaders(admin: AdminClient) -> set[int]:
    return {partition_of(admin, name).leader for name in (ONE, ALL)}


EXPERIMENT = Experiment("P12", "acks=1 and acks=all when the leader is lost", run, Need.NODES)
