"""P13, order holds only within a partition, and adding partitions moves keys.

Records of one key keep their order because they share a partition: the hash of the key modulo the number of partitions.
A thousand keys are sent twice. With the same number of partitions, each key finds its own again; with three more, two
thirds do not, and their records are now in two partitions with no order between them. Therefore the key of Galatea's
topics is the store and the number of partitions is fixed; to change it, create a new topic.
"""

from collections.abc import Sequence

from confluent_kafka.admin import AdminClient, NewPartitions

from lab.guarantees.clients import flush, producer, read
from lab.guarantees.experiment import Experiment, ExperimentSetup, await_leaders
from lab.guarantees.results import Counts, Result, exactly

KEYS, PARTITIONS, MORE = 1000, 6, 3


def run(setup: ExperimentSetup) -> Sequence[Result]:
    """Send all keys, add partitions or not, and send them again."""
    moving = sum(murmur2(key) % PARTITIONS != murmur2(key) % (PARTITIONS + MORE) for key in keys())
    return [
        _line(setup, 0, "none", 0),
        _line(setup, MORE, f"{MORE} partitions added to {PARTITIONS}", moving),
    ]


def keys() -> Sequence[bytes]:
    """As stores are called."""
    return [f"store-{number}".encode() for number in range(KEYS)]


def _line(setup: ExperimentSetup, more: int, fault: str, moving: int) -> Result:
    topic = setup.topic(f"p13-{more}", PARTITIONS)
    _send(setup, topic, 0)
    if more:
        admin = AdminClient({**setup.kafka.client(), "log_level": 0})
        admin.create_partitions([NewPartitions(topic, PARTITIONS + more)], operation_timeout=30)[topic].result()
        await_leaders(admin, topic, PARTITIONS + more)
    _send(setup, topic, 1)
    partitions = read(setup.kafka, topic)
    homes: dict[bytes, list[int]] = {key: [] for key in keys()}
    for seen in (each for partition in partitions for each in partition):
        homes[seen.key].append(seen.partition)
    found = sum(map(len, homes.values()))
    moved = sum(len(set(places)) > 1 for places in homes.values())
    return Result(
        "one partition for each key",
        fault,
        2 * KEYS,
        Counts(2 * KEYS - found, 0, 0),
        {"keys in two partitions": exactly(moving)},
        {"keys in two partitions": moved},
    )


def _send(setup: ExperimentSetup, topic: str, round_: int) -> None:
    """Send every key once, by a producer that has just fetched the number of partitions."""
    sender = producer(setup.kafka, acks="all", enable_idempotence=True, batch_num_messages=1000)
    for key in keys():
        sender.produce(topic, str(round_).encode(), key)
        sender.poll(0)
    flush(sender)


def murmur2(key: bytes) -> int:
    """As Java's producer hashes keys, worked out here a second time: what is expected may not be what is measured."""
    scale, mask = 0x5BD1E995, 0xFFFFFFFF
    found = (0x9747B28C ^ len(key)) & mask
    whole = len(key) - len(key) % 4
    for at in range(0, whole, 4):
        word = int.from_bytes(key[at : at + 4], "little") * scale & mask
        found = (found * scale & mask) ^ ((word ^ word >> 24) * scale & mask)
    if rest := key[whole:]:
        found = (found ^ int.from_bytes(rest, "little")) * scale & mask
    found = (found ^ found >> 13) * scale & mask
    return (found ^ found >> 15) & 0x7FFFFFFF


EXPERIMENT = Experiment("P13", "a key has one partition, until there are more", run)
