"""`stores.yaml`: the file in which an operator lists the stores. Every error names the store and the field.

YAML scalars are read as text, because YAML's own types would turn the store `010` into 8 and `08:00` into a number. An
empty value counts as a missing one.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, time
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    StringConstraints,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_core import ErrorDetails, PydanticCustomError

from master_dataset.errors import BadFileError, RequestError
from master_dataset.fields import ID_BYTES, LABEL_BYTES
from master_dataset.registry.file_rows import plain_date
from master_dataset.registry.hidden_characters import Joiners, hidden_character, visible
from master_dataset.registry.stores import (
    DEFAULT_CURRENCY,
    FIRST_DAY,
    LAST_DAY,
    M2_DECIMALS,
    PERCENT_DECIMALS,
    WEEKDAYS,
    Currency,
    GroupVersion,
    Sensor,
    Store,
    Zone,
    currency,
    limited,
    within,
)
from master_dataset.registry.tenants import wrong_tenant
from master_dataset.registry.time_zones import FIRST_CHECKED, TIME_ZONES, first_misaligned_offset
from master_dataset.registry.yaml_text import read_text, read_yaml
from master_dataset.sources import registered_sources

MOST_STORES = 10_000
"""In one file."""
MOST_BYTES = 4 * 1024 * 1024
MOST_M2 = 10_000_000
MOST_LISTED = 1_000
"""Sensors, zones or closed days of one store."""
MOST_PERIODS = 8
"""Opening hours of one day."""
MOST_GROUPS = 20
"""Names of one version."""
MOST_GROUP_VERSIONS = 200
GROUP_NAME_LENGTH = 40
GROUP_VALUE_LENGTH = 100
_GROUP_NAME = re.compile(rf"[a-z][a-z0-9_]{{0,{GROUP_NAME_LENGTH - 1}}}\Z", re.ASCII)
_PERIOD = re.compile(r"(?:[01]\d|2[0-3]):(?:00|15|30|45)-(?:(?:[01]\d|2[0-3]):(?:00|15|30|45)|24:00)\Z", re.ASCII)


def load(file: Path) -> list[Store]:
    """Read a `stores.yaml`.

    Args:
        file: Path of the file.

    Returns:
        The stores in the order of the file.

    Raises:
        BadFileError: The file cannot be read or is wrong; the message names the first store and field that are.
    """
    too_long = "Split it; a load adds to what is there."
    return read(read_text(file, MOST_BYTES, if_too_long=too_long, if_unreadable="Name a stores.yaml."))


def read(text: str) -> list[Store]:
    """Read the text of a `stores.yaml`: a list `stores`, of which each entry needs `id` and `timezone`.

    Raises:
        BadFileError: The text is wrong.
    """
    document = read_yaml(text, most_characters=MOST_BYTES, surrogates=True)
    try:
        entries = StoresFile.model_validate(document).stores
    except ValidationError as error:
        raise _bad_file(error) from None
    stores: dict[str, Store] = {}
    for number, entry in enumerate(entries):
        if entry.id in stores:
            raise _bad(f"stores[{number}].id", f"repeats the store `{entry.id}`", "duplicate_store")
        stores[entry.id] = entry.to_store()
    return list(stores.values())


# Fields. A validator raises `_wrong(code, why)`: `why` completes the sentence that begins with the field.


def _wrong(code: str, why: str, field: str = "") -> PydanticCustomError:
    """`field`: where a whole entry is checked, the field of it that is wrong."""
    return PydanticCustomError("galatea", "{why}", {"code": code, "why": visible(why), "field": visible(field)})


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise _wrong("wrong_type", "must be a single value")
    return value


def _visible(text: str, joiners: Joiners = "none", field: str = "") -> str:
    if hidden := hidden_character(text, joiners):
        raise _wrong("bad_text", f"has a character that is not visible, {hidden}: leave it out", field)
    return text


def _plain(value: object) -> object:
    """Refuse hidden characters before pydantic does: it cannot even repeat a lone surrogate."""
    return _visible(value) if isinstance(value, str) else value


def _tenant(text: str) -> str:
    if wrong := wrong_tenant(text):
        raise _wrong("bad_text", wrong)
    return text


def _plain_name(value: object) -> object:
    return _visible(value, "in_scripts") if isinstance(value, str) else value


def _short(text: str) -> str:
    if len(text.encode()) > ID_BYTES:
        raise _wrong("out_of_range", f"is longer than {ID_BYTES} bytes")
    return text


def _label(text: str) -> str:
    if not 0 < len(text.encode()) <= LABEL_BYTES:
        raise _wrong("missing_field", f"must hold 1 to {LABEL_BYTES} bytes")
    return text


def _day(value: object) -> date:
    text = _text(value)
    try:
        day = plain_date(text)
    except ValueError:
        raise _wrong("bad_time", f"is no day: `{text}`; one is `2019-05-01`") from None
    if within(day) != day:
        raise _wrong("bad_time", f"must lie between {FIRST_DAY} and {LAST_DAY}; leave it out if there is no such day")
    return day


def _closed_day(value: object) -> date:
    if not isinstance(value, str) or not value:
        raise _wrong("bad_time", "must be a day such as `2026-12-25`")
    return _day(value)


def _number(value: object) -> Decimal:
    text = _text(value)
    try:
        return Decimal(text)
    except InvalidOperation:
        raise _wrong("bad_number", f"is no number: `{text}`") from None


def _at_most(most: int, decimals: int) -> AfterValidator:
    def check(number: Decimal) -> Decimal:
        if not (number.is_finite() and 0 < number <= most):
            raise _wrong("out_of_range", f"must lie above 0 and be at most {most:,}")
        rounded = limited(number, decimals)
        if rounded != number:
            raise _wrong("bad_number", f"must have at most {decimals} decimals")
        return rounded

    return AfterValidator(check)


def _timezone(name: str) -> str:
    if name not in TIME_ZONES:
        raise _wrong("unknown_timezone", f"names no time zone: `{name}`; one is `Europe/Bratislava`")
    return name


def _country(code: str) -> str:
    if not re.fullmatch(r"[A-Z]{2}", code):
        raise _wrong("unknown_value", "must be two capital letters of ISO 3166, such as `SK`")
    return code


def _currency(value: object) -> Currency:
    try:
        return currency(_text(value))
    except RequestError as error:
        context = {"code": "unknown_currency", "why": visible(error.message), "do": visible(error.do)}
        raise PydanticCustomError("galatea", "{why}", context) from None


def _day_start(text: str) -> str:
    try:
        start = time.fromisoformat(text)
    except ValueError:
        start = None
    if start is None or start.tzinfo or start.minute % 15 or start.second or start.microsecond:
        raise _wrong("bad_time", f"must be a quarter hour, such as `04:00`: `{text}`")
    return f"{start:%H:%M}"


def _weekday(text: str) -> str:
    if text not in WEEKDAYS:
        raise _wrong("unknown_value", f"must be one of {', '.join(WEEKDAYS)}")
    return text


def _source(text: str) -> str:
    if text not in registered_sources():
        raise _wrong("unknown_value", f"must be one of {', '.join(registered_sources())}")
    return text


_VALID_FROM = "valid_from"


def _group_versions(groups: object) -> tuple[GroupVersion, ...]:
    """Read `groups`: one mapping that is always valid, or a list of mappings, each with `valid_from`."""
    if isinstance(groups, dict):
        if _VALID_FROM in groups:
            raise _wrong(
                "wrong_type", "is for a list of versions; write `groups: [{valid_from: ..., ...}]`", _VALID_FROM
            )
        return (GroupVersion(None, dict(_groups(groups, ""))),) if groups else ()
    if not isinstance(groups, list) or len(groups) > MOST_GROUP_VERSIONS:
        raise _wrong("wrong_type", f"must be groups such as `region: West`, or a list of at most {MOST_GROUP_VERSIONS}")
    versions: dict[date, GroupVersion] = {}
    for number, entry in enumerate(groups):
        where = f"[{number}]"
        if not isinstance(entry, dict):
            raise _wrong("wrong_type", "must be groups such as `valid_from: 2026-01-01, region: West`", where)
        try:
            day = _closed_day(entry.get(_VALID_FROM))
        except PydanticCustomError as error:
            raise _wrong("bad_time", error.message(), f"{where}.{_VALID_FROM}") from None
        if day in versions:
            raise _wrong("duplicate_version", f"repeats the version of {day}", f"{where}.{_VALID_FROM}")
        values = {name: value for name, value in entry.items() if name != _VALID_FROM}
        versions[day] = GroupVersion(day, dict(_groups(values, where)))
    return tuple(versions[day] for day in sorted(versions))


def _groups(values: Mapping[object, object], where: str) -> Iterator[tuple[str, str]]:
    """The groups of one version that are not empty. `where`: index of the version."""
    if len(values) > MOST_GROUPS:
        raise _wrong("out_of_range", f"has more than {MOST_GROUPS} groups", where)
    for name, value in values.items():
        if not isinstance(name, str) or not _GROUP_NAME.match(name):
            why = f"has a wrong name of a group: `{name}`; one has lower-case letters, digits and `_`, at most"
            raise _wrong("bad_group", f"{why} {GROUP_NAME_LENGTH}", where)
        at = f"{where}.{name}"
        if not isinstance(value, str):
            raise _wrong("wrong_type", "must be a single value", at)
        if len(value) > GROUP_VALUE_LENGTH:
            raise _wrong("out_of_range", f"is longer than {GROUP_VALUE_LENGTH} characters", at)
        _visible(value, "in_scripts", at)
        if value:
            yield name, value


Plain = Annotated[str, BeforeValidator(_plain)]
Id = Annotated[Plain, AfterValidator(_short)]
Label = Annotated[Plain, AfterValidator(_label)]
Day = Annotated[date, BeforeValidator(_day)]
SquareMetres = Annotated[Decimal, PlainValidator(_number), _at_most(MOST_M2, M2_DECIMALS)]
Percent = Annotated[Decimal, PlainValidator(_number), _at_most(100, PERCENT_DECIMALS)]
Period = Annotated[Plain, StringConstraints(pattern=_PERIOD)]


class _Entry(BaseModel):
    """A mapping of the file, without its empty values."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    lists: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def known(cls) -> tuple[str, ...]:
        """The names of its fields, as they are written."""
        return tuple(field.alias or name for name, field in cls.model_fields.items())

    @classmethod
    def without_empty(cls, entry: Mapping[str, Any]) -> dict[str, Any]:
        """Leave out empty values of known fields: they count as missing."""
        for name in entry:
            if hidden_character(name):  # pydantic could not repeat a lone surrogate
                raise _wrong("unknown_field", f"is no field here; there is {', '.join(cls.known())}", name)
        return {
            name: value
            for name, value in entry.items()
            if name not in cls.known() or not (value == "" or (name in cls.lists and not value))
        }


class _FlatEntry(_Entry):
    """A mapping whose values are all single ones."""

    @model_validator(mode="before")
    @classmethod
    def _check_flat(cls, entry: object) -> object:
        if not isinstance(entry, dict) or not all(isinstance(value, str) for value in entry.values()):
            raise _wrong("wrong_type", f"must have single values: {', '.join(cls.known())}")
        return cls.without_empty(entry)


class SensorEntry(_FlatEntry):
    """A sensor. At most one of `line`, `zone` and `queue` says what it watches; `to` is the first day without it."""

    id: Label = Field("", validate_default=True)
    source: Annotated[Plain, AfterValidator(_source)] = Field("", validate_default=True)
    line: Plain = ""
    zone: Plain = ""
    queue: Plain = ""
    since: Day | None = Field(None, alias="from")
    until: Day | None = Field(None, alias="to")

    @field_validator("until")
    @classmethod
    def _check_order(cls, until: date | None, info: ValidationInfo) -> date | None:
        since = info.data.get("since")
        if since and until and until <= since:
            raise _wrong("out_of_range", "must lie after `from`: it is the first day without the sensor")
        return until

    def to_sensor(self) -> Sensor:
        """Convert it."""
        return Sensor(self.id, self.source, self.line or self.zone or self.queue, self.since, self.until)


class ZoneEntry(_FlatEntry):
    """A part of the sales floor."""

    id: Label = Field("", validate_default=True)
    m2: SquareMetres | None = None


class StoreEntry(_Entry):
    """A store. See `Store` for what the fields mean."""

    lists: ClassVar[tuple[str, ...]] = ("opening_hours", "closed_on", "sensors", "zones", "groups")

    id: Id
    name: Annotated[str, BeforeValidator(_plain_name), AfterValidator(_short)] = ""
    tenant: Annotated[Plain, AfterValidator(_tenant)] = "default"
    timezone: Annotated[Plain, AfterValidator(_timezone)]
    currency: Annotated[Currency, PlainValidator(_currency)] = DEFAULT_CURRENCY
    opening_hours: dict[
        Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"],
        Annotated[list[Period], Field(max_length=MOST_PERIODS)],
    ] = Field(default_factory=dict)
    floor_m2: SquareMetres | None = None
    open_since: Day | None = None
    country: Annotated[Plain, AfterValidator(_country)] = ""
    subdivision: Plain = ""
    day_starts_at: Annotated[Plain, AfterValidator(_day_start)] = "00:00"
    closed_on: list[Annotated[date, PlainValidator(_closed_day)]] = Field(default_factory=list, max_length=MOST_LISTED)
    week_starts_on: Annotated[Plain, AfterValidator(_weekday)] = WEEKDAYS[0]
    comp_start_date: Day | None = None
    conversion_target: Percent | None = None
    sensors: list[SensorEntry] = Field(default_factory=list, max_length=MOST_LISTED)
    zones: list[ZoneEntry] = Field(default_factory=list, max_length=MOST_LISTED)
    groups: Annotated[tuple[GroupVersion, ...], PlainValidator(_group_versions)] = ()

    @model_validator(mode="before")
    @classmethod
    def _check_mapping(cls, entry: object) -> object:
        if not isinstance(entry, dict):
            raise _wrong("wrong_type", "must be a store with `id` and `timezone`")
        return cls.without_empty(entry)

    @model_validator(mode="after")
    def _check_together(self) -> Self:
        if moment := first_misaligned_offset(self.timezone, self.open_since or FIRST_CHECKED):
            offset = f"`{self.timezone}` has the offset of {moment.isoformat()}, no multiple of 15 minutes"
            raise _wrong("offset_not_15min", f"{offset}; a later `open_since` may help", "timezone")
        if self.subdivision and not self.country:
            raise _wrong("missing_field", "is missing, and a subdivision is one of a country", "country")
        return self

    def to_store(self) -> Store:
        """Convert it."""
        return Store(
            id=self.id,
            timezone=self.timezone,
            name=self.name or self.id,
            tenant=self.tenant,
            currency=self.currency,
            opening_hours={day: tuple(periods) for day, periods in self.opening_hours.items()},
            floor_m2=self.floor_m2,
            open_since=self.open_since,
            country=self.country,
            subdivision=self.subdivision,
            day_starts_at=self.day_starts_at,
            closed_on=tuple(self.closed_on),
            week_starts_on=self.week_starts_on,
            comp_start_date=self.comp_start_date,
            conversion_target=self.conversion_target,
            sensors=tuple(sensor.to_sensor() for sensor in self.sensors),
            zones=tuple(Zone(zone.id, zone.m2) for zone in self.zones),
            groups=self.groups,
        )


class StoresFile(BaseModel):
    """The whole file. Other keys beside `stores` are ignored."""

    stores: list[StoreEntry] = Field(max_length=MOST_STORES)


# Errors


def _bad_file(invalid: ValidationError) -> BadFileError:
    """The first error of the first wrong store, and of that an unknown field first: it may be a misspelt one."""
    errors = invalid.errors(include_url=False, include_input=False)
    first_store = errors[0]["loc"][:2]
    return _bad_field(min(errors, key=lambda each: (each["loc"][:2] != first_store, each["type"] != "extra_forbidden")))


def _bad_field(error: ErrorDetails) -> BadFileError:
    context = error.get("ctx", {})
    field = context.get("field")
    is_name = error["type"] == "extra_forbidden"  # else `[key]` says that the key before it is wrong
    names = [name for name in (*error["loc"], *([field] if field else ())) if is_name or name != "[key]"] or ["stores"]
    where = visible("".join(_step(name) for name in names).removeprefix("."))
    if error["type"] == "galatea":
        if "do" in context:
            return BadFileError(f"`{where}`: {context['why']}", do=context["do"], code=context["code"])
        return _bad(where, context["why"], context["code"])
    return _bad(where, *_reason(error["type"], names))


def _step(name: str | int) -> str:
    if isinstance(name, int):
        return f"[{name}]"
    if not name:
        return ".''"
    return name if name.startswith(("[", ".")) else f".{name}"


def _reason(kind: str, names: Sequence[str | int]) -> tuple[str, str]:
    """What is wrong with the field of these names by pydantic's kind of error, and the code for it."""
    if len(names) == 1:  # the list of stores itself
        too_many = f"holds more than {MOST_STORES:,} entries", "out_of_range"
        return too_many if kind == "too_long" else ("must be a list", "missing_field")
    if names[2:3] == ["opening_hours"]:
        return "must be quarter hours of a weekday, such as `mon: [08:00-20:00]`", "bad_opening_hours"
    if kind == "extra_forbidden":
        entries: dict[str, type[_Entry]] = {"sensors": SensorEntry, "zones": ZoneEntry}
        entry = entries.get(str(names[2]), StoreEntry)
        what = "of a store" if entry is StoreEntry else "here"
        return f"is no field {what}; there is {', '.join(entry.known())}", "unknown_field"
    if kind in {"list_type", "too_long"}:
        return f"must be a list of at most {MOST_LISTED:,}", "wrong_type"
    return ("is missing", "missing_field") if kind == "missing" else ("must be a single value", "wrong_type")


def _bad(where: str, why: str, code: str) -> BadFileError:
    do = "Correct the file and load it again; nothing of it was registered."
    return BadFileError(f"`{where}` {why}.", do=do, code=code)
