"""Consume topics record by record: in order per key, several keys in parallel, bounded in memory, at least once.

A rejected record would be rejected again: the handler stores it as a dead letter, and its key continues. A retry may
succeed later: the record is passed to the handler again, and later records of the same key wait.
"""

from master_dataset.kafka.consumer.handler import (
    Backlog,
    BlockedKey,
    ConsumerLimits,
    Done,
    Handler,
    HandlerResult,
    Reject,
    Retry,
)
from master_dataset.kafka.consumer.keyed_consumer import KeyedConsumer
from master_dataset.kafka.record import ConsumerRecord

__all__ = [
    "Backlog",
    "BlockedKey",
    "ConsumerLimits",
    "ConsumerRecord",
    "Done",
    "Handler",
    "HandlerResult",
    "KeyedConsumer",
    "Reject",
    "Retry",
]
