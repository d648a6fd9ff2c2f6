"""Derives payloads of sensors, staff and weather column by column, as `derive` of their sources does one by one.

What `derive` refuses is not sure.
"""

from collections.abc import Iterable, Mapping

import msgspec
import numpy as np
import pyarrow as pa

from master_dataset.fields.times import WINDOW_MS
from master_dataset.parsing.arrow import plain
from master_dataset.parsing.columnar.columns import Ints, Mask
from master_dataset.parsing.columnar.records import Derived, TypedRecords, flag_lists
from master_dataset.sources import queue_events, staff_hours, zone_presence
from master_dataset.sources.demographics import DemographicCount
from master_dataset.sources.people_counts import MOST_PER_SECOND, Count
from master_dataset.sources.queue_events import Waiting
from master_dataset.sources.sensor_heartbeats import Beat
from master_dataset.sources.staff_hours import Segment
from master_dataset.sources.weather_observations import Observation
from master_dataset.sources.wifi_sightings import WEAK_DBM, Sighting
from master_dataset.sources.zone_presence import Presence


def counts(records: TypedRecords, sure: Mask) -> Derived:
    """As `people_counts.count`."""
    people_in, people_out = (records.numbers(name) for name in ("people_in", "people_out"))
    groups_in, groups_out = (
        records.numbers(name) for name in ("group_in", "group_out")
    )  # no group: no more than people
    flags = {
        "groups_above_people": (groups_in > people_in) | (groups_out > people_out),
        "no_staff_split": records.is_absent("staff_in") & records.is_absent("staff_out"),
        "implausible_rate": (people_in + people_out) * 1000 > MOST_PER_SECOND * records.numbers("interval_ms"),
        "unregistered_sensor": _unregistered(records, "people_counts"),
    }
    return _payloads(Count, records, {"flags": flag_lists(flags)}, sure & _in_one_window(records))


def seen(records: TypedRecords, sure: Mask) -> Derived:
    """As `demographics.count`."""
    flags = {"unregistered_sensor": _unregistered(records, "demographics")}
    return _payloads(DemographicCount, records, {"flags": flag_lists(flags)}, sure & _in_one_window(records))


def beats(records: TypedRecords, sure: Mask) -> Derived:
    """As `sensor_heartbeats.beat`."""
    flags = {"unregistered_sensor": _unregistered(records, *plain(records.columns["source"]))}
    return _payloads(Beat, records, {"flags": flag_lists(flags)}, sure & _in_one_window(records))


def observations(records: TypedRecords, sure: Mask) -> Derived:
    """As `weather_observations.observation`."""
    return _payloads(Observation, records, {}, sure & _in_one_window(records))


def waiting(records: TypedRecords, sure: Mask) -> Derived:
    """As `queue_events.waiting`."""
    at, started = records.numbers("happened_at"), records.numbers("service_started_at")
    is_join, is_leave = records.is_word("kind", "join"), records.is_word("kind", "leave")
    has_wait = ~is_join & ~is_leave
    joined = np.where(is_join, at, records.numbers("joined_at"))
    until = np.where(is_leave, started, at)  # how long it was waited
    longest = queue_events.LONGEST_MS
    sure = sure & (is_join | ~records.is_absent("joined_at")) & _lasted(joined, until, longest)
    sure &= ~is_leave | (~records.is_absent("service_started_at") & _lasted(started, at, longest))
    flags = {
        "instant_wait": has_wait & (at == joined),
        "unregistered_sensor": _unregistered(records, "queue_events"),
    }
    made = {
        "change": records.columns["kind"],
        "joined_us": pa.array(joined * 1000),
        "wait_ms": pa.array(at - joined, mask=~has_wait),
        "service_ms": pa.array(at - started, mask=~is_leave),
        "flags": flag_lists(flags),
    }
    return _payloads(Waiting, records, made, sure)


def presences(records: TypedRecords, sure: Mask) -> Derived:
    """As `zone_presence.presence`."""
    at, entered, is_exit = (
        records.numbers("happened_at"),
        records.numbers("entered_at"),
        records.is_word("kind", "exit"),
    )
    lasted = ~records.is_absent("entered_at") & _lasted(entered, at, zone_presence.LONGEST_MS)
    zones = plain(records.columns["zone"])
    known = [terms.zones for terms in records.terms]
    flags = {
        "unknown_zone": _each(
            bool(known[term]) and zone not in known[term] for term, zone in zip(records.term, zones, strict=True)
        ),
        "unregistered_sensor": _unregistered(records, "zone_presence"),
    }
    made = {
        "crossing": records.columns["kind"],
        "entered_us": pa.array(entered * 1000, mask=~is_exit),
        "dwell_ms": pa.array(at - entered, mask=~is_exit),
        "flags": flag_lists(flags),
    }
    return _payloads(Presence, records, made, sure & (lasted | ~is_exit))


def segments(records: TypedRecords, sure: Mask) -> Derived:
    """As `staff_hours.segment`."""
    started = records.numbers("started_at")
    made = {"basis": records.columns["kind"], "started_us": pa.array(started * 1000)}
    return _payloads(
        Segment, records, made, sure & _lasted(started, records.numbers("happened_at"), staff_hours.LONGEST_MS)
    )


def sightings(records: TypedRecords, sure: Mask) -> Derived:
    """As `wifi_sightings.sighting`."""
    flags = {
        "weak_signal": records.numbers("signal_dbm") < WEAK_DBM,
        "unregistered_sensor": _unregistered(records, "wifi_sightings"),
    }
    happened_ms = np.where(sure, records.numbers("happened_at"), 0).tolist()
    days = [records.terms[term].business_day(at) for term, at in zip(records.term, happened_ms, strict=True)]
    made = {
        "is_inside": pa.array(records.is_word("zone", "inside")),
        "is_randomized": records.columns["randomized"],
        "business_day": pa.array(days, pa.int64()),
        "flags": flag_lists(flags),
    }
    return _payloads(Sighting, records, made, sure)


def _payloads(
    payload: type[msgspec.Struct], records: TypedRecords, made: Mapping[str, pa.Array], sure: Mask
) -> Derived:
    """The columns that are made, and those that are fields as sent."""
    columns = {name: made.get(name, records.columns.get(name)) for name in payload.__struct_fields__}
    return Derived(lambda: columns, sure)


def _in_one_window(records: TypedRecords) -> Mask:
    mask: Mask = records.numbers("happened_at") % WINDOW_MS + records.numbers("interval_ms") <= WINDOW_MS
    return mask


def _lasted(start_ms: Ints, end_ms: Ints, most_ms: int) -> Mask:
    mask: Mask = (start_ms <= end_ms) & (end_ms - start_ms <= most_ms)
    return mask


def _unregistered(records: TypedRecords, *sources: str) -> Mask:
    """Which sensors a store does not know. `sources`: the one of all records, or that of each."""
    if not any(terms.sensors for terms in records.terms):
        return np.zeros(records.number, np.bool_)
    of_each = sources if len(sources) == records.number else sources * records.number
    who = zip(records.term, plain(records.columns["sensor_id"]), of_each, strict=True)
    return _each(not records.terms[term].knows_sensor(sensor, source) for term, sensor, source in who)


def _each(holds: Iterable[bool]) -> Mask:
    return np.fromiter(holds, np.bool_)
