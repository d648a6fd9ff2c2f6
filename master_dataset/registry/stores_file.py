"""A window is 15 minutes of UTC, so it is a window of local time only where the offset is a multiple of 15 minutes.

`stores.yaml`: where an operator says which shops there are. Read with an eye on every field.
"""

import re
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import yaml

from master_dataset.errors import BadFileError, RequestError
from master_dataset.fields import ID_BYTES, LABEL_BYTES
from master_dataset.registry.stores import (
    DEFAULT_CURRENCY,
    WEEKDAYS,
    Currency,
    Sensor,
    Store,
    Zone,
    currency,
    misaligned_period,
)
from master_dataset.sources import registered_sources

QUARTER = timedelta(minutes=15)
_NAMES = 1024  # names come with requests, and any text may be one
FIRST_CHECKED = date(2000, 1, 1)  # for a store that does not say since when it is open
FIRST_EVENT = date(1970, 1, 1)  # no event can be older
LAST_CHECKED = date(2041, 1, 1)  # the rules known today repeat after that


@lru_cache(_NAMES)
def zone(name: str) -> ZoneInfo | None:
    """Give the time zone of that name, if there is one."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):  # a folder of zones, a path, an empty name
        return None


@lru_cache(_NAMES)
def first_misaligned_offset(name: str, since: date) -> datetime | None:
    """Give the first noon (UTC) since then whose local offset is no multiple of 15 minutes; None if there is none.

    Days are enough: no zone ever had an offset for less.
    """
    there = ZoneInfo(name)
    day = max(since, FIRST_EVENT)
    while day < LAST_CHECKED:
        noon = datetime(day.year, day.month, day.day, 12, tzinfo=UTC).astimezone(there)
        if (noon.utcoffset() or QUARTER) % QUARTER:
            return noon
        day += timedelta(days=1)
    return None


MOST_STORES = 10_000  # in one file
MOST_BYTES = 4 * 1024 * 1024
MOST_M2 = 10_000_000
MOST_LISTED = 1_000  # sensors, zones or closed days of one store
KNOWN = (
    "id",
    "name",
    "tenant",
    "timezone",
    "currency",
    "opening_hours",
    "floor_m2",
    "open_since",
    "country",
    "subdivision",
    "day_starts_at",
    "closed_on",
    "week_starts_on",
    "comp_start_date",
    "conversion_target",
    "sensors",
    "zones",
)
LISTED = ("opening_hours", "closed_on", "sensors", "zones")
SENSOR = ("id", "source", "line", "zone", "queue", "from", "to")
ZONE = ("id", "m2")
COUNTRY = re.compile(r"[A-Z]{2}").fullmatch
Read = TypeVar("Read")


def load(file: Path) -> list[Store]:
    """Read a `stores.yaml`. BadFileError names the store and the field of the first thing that is wrong."""
    try:
        size = file.stat().st_size
        if size > MOST_BYTES:
            raise BadFileError(
                f"`{file}` is larger than {MOST_BYTES:,} bytes.", do="Split it; a load adds to what is there."
            )
        return read(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadFileError(f"`{file}` cannot be read: {error.strerror}.", do="Name a stores.yaml.") from error
    except UnicodeDecodeError as error:
        raise BadFileError(f"`{file}` is not UTF-8.", do="Save it as UTF-8.") from error


def read(text: str) -> list[Store]:
    """Read the text of a `stores.yaml`: a list `stores`, of which each entry needs `id` and `timezone`."""
    try:
        # Every scalar stays text: the default loader turns the store 010 into 8, and 08:00 into a number.
        document = yaml.load(text, Loader=yaml.BaseLoader)  # noqa: S506 - the base loader makes str, list and dict only
    except (yaml.YAMLError, RecursionError) as error:
        raise BadFileError(
            f"The file is no YAML: {' '.join(str(error).split())}.", do="Mend it and load it again."
        ) from error
    listed = document.get("stores") if isinstance(document, dict) else None
    if not isinstance(listed, list):
        raise _bad("stores", "must be a list", "missing_field")
    if len(listed) > MOST_STORES:
        raise _bad("stores", f"holds more than {MOST_STORES:,} entries", "out_of_range")
    stores: dict[str, Store] = {}
    for number, entry in enumerate(listed):
        store = _store(f"stores[{number}]", entry)
        if store.id in stores:
            raise _bad(f"stores[{number}].id", f"repeats the store `{store.id}`", "duplicate_store")
        stores[store.id] = store
    return list(stores.values())


def _store(where: str, entry: Any) -> Store:  # noqa: ANN401 - a parser is where Any ends
    if not isinstance(entry, dict):
        raise _bad(where, "must be a store: id, timezone, ...", "wrong_type")
    for name, value in entry.items():
        if name not in KNOWN:
            raise _bad(f"{where}.{name}", f"is no field of a store; there is {', '.join(KNOWN)}", "unknown_field")
        if name not in LISTED and not isinstance(value, str):
            raise _bad(f"{where}.{name}", "must be a single value", "wrong_type")
    for name in ("id", "timezone"):
        if not entry.get(name):
            raise _bad(f"{where}.{name}", "is missing", "missing_field")
    for name in ("id", "name", "tenant"):
        if len(entry.get(name, "").encode()) > ID_BYTES:
            raise _bad(f"{where}.{name}", f"is longer than {ID_BYTES} bytes", "out_of_range")
    since = _day(f"{where}.open_since", entry.get("open_since"))
    return Store(
        id=entry["id"],
        timezone=_timezone(f"{where}.timezone", entry["timezone"], since),
        name=entry.get("name") or entry["id"],
        tenant=entry.get("tenant") or "default",
        currency=_currency(f"{where}.currency", entry.get("currency")),
        opening_hours=_opening_hours(f"{where}.opening_hours", entry.get("opening_hours")),
        floor_m2=_number(f"{where}.floor_m2", entry.get("floor_m2"), MOST_M2),
        open_since=since,
        country=_country(f"{where}.country", entry),
        subdivision=entry.get("subdivision", ""),
        day_starts_at=_day_start(f"{where}.day_starts_at", entry.get("day_starts_at")),
        closed_on=_listed(f"{where}.closed_on", entry.get("closed_on"), _closed_day),
        week_starts_on=_weekday(f"{where}.week_starts_on", entry.get("week_starts_on")),
        comp_start_date=_day(f"{where}.comp_start_date", entry.get("comp_start_date")),
        conversion_target=_number(f"{where}.conversion_target", entry.get("conversion_target"), 100),
        sensors=_listed(f"{where}.sensors", entry.get("sensors"), _sensor),
        zones=_listed(f"{where}.zones", entry.get("zones"), _zone),
    )


def _timezone(where: str, name: str, since: date | None) -> str:
    if zone(name) is None:
        raise _bad(where, f"names no time zone: `{name}`; one is `Europe/Bratislava`", "unknown_timezone")
    odd = first_misaligned_offset(name, since or FIRST_CHECKED)
    if odd is not None:
        why = f"`{name}` has the offset of {odd.isoformat()}, no multiple of 15 minutes; a later `open_since` may help"
        raise _bad(where, why, "offset_not_15min")
    return name


def _day(where: str, text: str | None) -> date | None:
    try:
        return date.fromisoformat(text) if text else None
    except ValueError:
        raise _bad(where, f"is no day: `{text}`; one is `2019-05-01`", "bad_time") from None


def _currency(where: str, code: str | None) -> Currency:
    try:
        return currency(code) if code else DEFAULT_CURRENCY
    except RequestError as error:
        raise BadFileError(f"`{where}`: {error.message}", do=error.do, code="unknown_currency") from None


def _opening_hours(where: str, hours: Any) -> Mapping[str, tuple[str, ...]]:  # noqa: ANN401 - a parser is where Any ends
    if not hours:
        return {}
    wrong = misaligned_period(hours)
    if wrong:
        raise _bad(
            f"{where}{wrong}", "must be quarter hours of a weekday, such as `mon: [08:00-20:00]`", "bad_opening_hours"
        )
    return {day: tuple(periods) for day, periods in hours.items()}


def _number(where: str, text: str | None, most: int) -> Decimal | None:
    try:
        number = Decimal(text) if text else None
    except InvalidOperation:
        raise _bad(where, f"is no number: `{text}`", "bad_number") from None
    if number is not None and not (number.is_finite() and 0 < number <= most):
        raise _bad(where, f"must lie above 0 and be at most {most:,}", "out_of_range")
    return number


def _day_start(where: str, text: str | None) -> str:
    try:
        start = time.fromisoformat(text) if text else time(0)
    except ValueError:
        start = None
    if start is None or start.tzinfo or start.minute % 15 or start.second or start.microsecond:
        raise _bad(where, f"must be a quarter hour, such as `04:00`: `{text}`", "bad_time")
    return f"{start:%H:%M}"


def _country(where: str, entry: Mapping[str, str]) -> str:
    country = entry.get("country", "")
    if not country and entry.get("subdivision"):
        raise _bad(where, "is missing, and a subdivision is one of a country", "missing_field")
    if country and not COUNTRY(country):
        raise _bad(where, "must be two capital letters of ISO 3166, such as `SK`", "unknown_value")
    return country


def _weekday(where: str, text: str | None) -> str:
    if text and text not in WEEKDAYS:
        raise _bad(where, f"must be one of {', '.join(WEEKDAYS)}", "unknown_value")
    return text or WEEKDAYS[0]


def _listed(where: str, listed: Any, read: Callable[[str, Any], Read]) -> tuple[Read, ...]:  # noqa: ANN401 - likewise
    if not listed:
        return ()
    if not isinstance(listed, list) or len(listed) > MOST_LISTED:
        raise _bad(where, f"must be a list of at most {MOST_LISTED:,}", "wrong_type")
    return tuple(read(f"{where}[{number}]", each) for number, each in enumerate(listed))


def _closed_day(where: str, text: Any) -> date:  # noqa: ANN401 - likewise
    day = _day(where, text) if isinstance(text, str) else None
    if day is None:
        raise _bad(where, "must be a day such as `2026-12-25`", "bad_time")
    return day


def _sensor(where: str, entry: Any) -> Sensor:  # noqa: ANN401 - likewise
    said = _texts(where, entry, SENSOR)
    watched = registered_sources()
    if said.get("source") not in watched:
        raise _bad(f"{where}.source", f"must be one of {', '.join(watched)}", "unknown_value")
    place = next((said[name] for name in ("line", "zone", "queue") if said.get(name)), "")
    since, until = (_day(f"{where}.{name}", said.get(name)) for name in ("from", "to"))
    if since and until and until <= since:
        raise _bad(f"{where}.to", "must lie after `from`: it is the first day without the sensor", "out_of_range")
    return Sensor(said["id"], said["source"], place, since, until)


def _zone(where: str, entry: Any) -> Zone:  # noqa: ANN401 - likewise
    said = _texts(where, entry, ZONE)
    return Zone(said["id"], _number(f"{where}.m2", said.get("m2"), MOST_M2))


def _texts(where: str, entry: Any, known: tuple[str, ...]) -> Mapping[str, str]:  # noqa: ANN401 - likewise
    if not isinstance(entry, dict) or not all(isinstance(value, str) for value in entry.values()):
        raise _bad(where, f"must have single values: {', '.join(known)}", "wrong_type")
    for name in entry:
        if name not in known:
            raise _bad(f"{where}.{name}", f"is no field here; there is {', '.join(known)}", "unknown_field")
    if not 0 < len(entry.get("id", "").encode()) <= LABEL_BYTES:
        raise _bad(f"{where}.id", f"must hold 1 to {LABEL_BYTES} bytes", "missing_field")
    return entry


def _bad(where: str, why: str, code: str) -> BadFileError:
    return BadFileError(
        f"`{where}` {why}.", do="Correct the file and load it again; nothing of it was registered.", code=code
    )
