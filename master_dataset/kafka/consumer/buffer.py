"""Who may wait in memory: keys that do not get on leave the room to those that do."""

from collections.abc import Collection
from typing import NamedTuple

from master_dataset.kafka.consumer.partition import Partition

_SHARE = 4
"""A quarter of the room is theirs together, beside what was handed over for them."""


class Room(NamedTuple):
    """`gone`: records that were let go. `held`: those that wait still, of keys that do not get on."""

    gone: int
    held: int


def made(partitions: Collection[Partition], most: int) -> Room:
    """Let go what waits of keys that do not get on. `most`: records that may wait in all."""
    stuck = [(each, key, lane) for each in partitions for key, lane in each.lanes.items() if lane.is_stuck]
    gone = sum(each.let_go(key, most // (_SHARE * len(stuck))) for each, key, _ in stuck)
    return Room(gone, sum(len(lane.waiting) for _, _, lane in stuck))
