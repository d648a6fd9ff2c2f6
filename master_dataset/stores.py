"""The shops: where they are, when they are open, what money they take. `stores.yaml` is where an operator says it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any, Self

import msgspec
import yaml

from master_dataset.currency import DEFAULT_CURRENCY, Currency, currency
from master_dataset.errors import BadFile, RequestError
from master_dataset.fields import ID_BYTES
from master_dataset.opening_hours import off_the_grid
from master_dataset.quarter_hours import FIRST_CHECKED, odd_moment, zone

MOST_STORES = 10_000  # in one file
MOST_BYTES = 4 * 1024 * 1024
MOST_M2 = 10_000_000
KNOWN = ("id", "name", "tenant", "timezone", "currency", "opening_hours", "floor_m2", "open_since")


@dataclass(frozen=True)
class Store:
    """One shop. `opening_hours`: weekday (`mon`) to periods of local time (`08:00-20:00`); a closing time at or before
    the opening time lies on the next day. None of floor area or opening day means: not said.
    """  # noqa: D205 - one sentence needs two lines

    id: str
    timezone: str
    name: str = ""
    tenant: str = "default"
    currency: Currency = DEFAULT_CURRENCY
    opening_hours: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    floor_m2: Decimal | int | None = None
    open_since: date | None = None

    def to_json(self) -> str:
        """Write it for the registry; `from_json` gives an equal store."""
        return msgspec.json.encode(msgspec.to_builtins(self)).decode()

    @classmethod
    def from_json(cls, body: str) -> Self:
        """Read what `to_json` wrote. Nothing is checked again: it was, when the file was loaded."""
        return msgspec.convert(msgspec.json.decode(body), cls, strict=False)


def load(file: Path) -> list[Store]:
    """Read a `stores.yaml`. BadFile names the store and the field of the first thing that is wrong."""
    try:
        size = file.stat().st_size
        if size > MOST_BYTES:
            raise BadFile(
                f"`{file}` is larger than {MOST_BYTES:,} bytes.", do="Split it; a load adds to what is there."
            )
        return read(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadFile(f"`{file}` cannot be read: {error.strerror}.", do="Name a stores.yaml.") from error
    except UnicodeDecodeError as error:
        raise BadFile(f"`{file}` is not UTF-8.", do="Save it as UTF-8.") from error


def read(text: str) -> list[Store]:
    """Read the text of a `stores.yaml`: a list `stores`, of which each entry needs `id` and `timezone`."""
    try:
        # Every scalar stays text: the default loader turns the store 010 into 8, and 08:00 into a number.
        document = yaml.load(text, Loader=yaml.BaseLoader)  # noqa: S506 - the base loader makes str, list and dict only
    except (yaml.YAMLError, RecursionError) as error:
        raise BadFile(
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
        if name != "opening_hours" and not isinstance(value, str):
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
        floor_m2=_floor(f"{where}.floor_m2", entry.get("floor_m2")),
        open_since=since,
    )


def _timezone(where: str, name: str, since: date | None) -> str:
    if zone(name) is None:
        raise _bad(where, f"names no time zone: `{name}`; one is `Europe/Bratislava`", "unknown_timezone")
    odd = odd_moment(name, since or FIRST_CHECKED)
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
        raise BadFile(f"`{where}`: {error.message}", do=error.do, code="unknown_currency") from None


def _opening_hours(where: str, hours: Any) -> Mapping[str, tuple[str, ...]]:  # noqa: ANN401 - a parser is where Any ends
    if not hours:
        return {}
    wrong = off_the_grid(hours)
    if wrong:
        raise _bad(
            f"{where}{wrong}", "must be quarter hours of a weekday, such as `mon: [08:00-20:00]`", "bad_opening_hours"
        )
    return {day: tuple(periods) for day, periods in hours.items()}


def _floor(where: str, text: str | None) -> Decimal | None:
    try:
        area = Decimal(text) if text else None
    except InvalidOperation:
        raise _bad(where, f"is no number: `{text}`", "bad_number") from None
    if area is not None and not (area.is_finite() and 0 < area <= MOST_M2):
        raise _bad(where, f"must lie above 0 and be at most {MOST_M2:,}", "out_of_range")
    return area


def _bad(where: str, why: str, code: str) -> BadFile:
    return BadFile(
        f"`{where}` {why}.", do="Correct the file and load it again; nothing of it was registered.", code=code
    )
