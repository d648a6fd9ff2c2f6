"""The cut: the receipt time that decides which layer answers for an event; the exclusive upper bound of batch.

    answer(cell) = batch(cell, events received before the cut)  (+)  speed(cell, events received at or after the cut)

A receipt epoch is `received_at` floored to the epoch length; a cut is always a multiple of it, so an epoch lies wholly
on one side. Epochs and cuts are instants in UTC. Nothing here reads a clock.
"""

from datetime import UTC, date, datetime, timedelta

from master_dataset.parsing import results

UNIX_EPOCH = results.UNIX_EPOCH
"""The cut of publication 0: batch covers nothing yet."""


def floor_to(instant: datetime, length: timedelta) -> datetime:
    """The greatest multiple of `length` since 1970 that is not after `instant`."""
    return instant - (instant - UNIX_EPOCH) % length


def ceil_to(instant: datetime, length: timedelta) -> datetime:
    """The least multiple of `length` since 1970 that is not before `instant`."""
    below = floor_to(instant, length)
    return below if below == instant else below + length


def epoch_of(received_at: datetime, length: timedelta) -> datetime:
    """The receipt epoch that an event received then belongs to."""
    return floor_to(received_at, length)


def is_fresh(epoch: datetime, cut: datetime) -> bool:
    """Whether rows of this epoch are answered by speed. Rows before the cut are already inside batch (R4)."""
    return epoch >= cut


def seconds(instant: datetime) -> int:
    """Whole seconds since 1970: how windows are written in rows and blocks."""
    return int((instant - UNIX_EPOCH).total_seconds())


def instant(seconds_since_1970: int) -> datetime:
    """The inverse of `seconds`."""
    return UNIX_EPOCH + timedelta(seconds=seconds_since_1970)


def month_of(day: date) -> date:
    """The first day of the month: batch blocks of one store and month lie together."""
    return day.replace(day=1)


def utc(naive: datetime) -> datetime:
    """An instant as Cassandra's driver gives it (naive, UTC), with its zone."""
    return naive.replace(tzinfo=UTC)
