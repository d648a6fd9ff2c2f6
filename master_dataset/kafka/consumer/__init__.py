"""Consuming a topic record by record: in order for each key, several keys side by side, bounded, at least once.

An error comes again with the same call: the record is put aside, and the stream goes on. A failure may pass: it is
tried again, and what follows it waits.
"""

from master_dataset.kafka.consumer.handler import Again, Behind, Blocked, Done, Limits, Refused, Taker, Verdict
from master_dataset.kafka.consumer.keyed_consumer import Consuming
from master_dataset.kafka.record import Record

__all__ = ["Again", "Behind", "Blocked", "Consuming", "Done", "Limits", "Record", "Refused", "Taker", "Verdict"]
