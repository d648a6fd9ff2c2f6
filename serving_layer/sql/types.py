"""Values of SQL types as PostgreSQL writes them, in text and in binary, and parameters as clients write them."""

import re
import struct
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from decimal import Decimal, InvalidOperation
from functools import partial
from typing import Any, NamedTuple
from uuid import UUID

from serving_layer.sql.results import Column, SqlStateError, SqlType, SqlValue, require_few

TEXT_FORMAT, BINARY_FORMAT = 0, 1
Encoder = Callable[[Any], bytes]
Decoder = Callable[[bytes], SqlValue]


class WireType(NamedTuple):
    """How clients know a type: its OID, and its size in bytes (-1: varies; -2: ends with a zero)."""

    oid: int
    size: int


WIRE_TYPES: dict[SqlType, WireType] = {
    SqlType.BOOL: WireType(16, 1),
    SqlType.BYTEA: WireType(17, -1),
    SqlType.CHAR: WireType(18, 1),
    SqlType.NAME: WireType(19, 64),
    SqlType.INT8: WireType(20, 8),
    SqlType.INT2: WireType(21, 2),
    SqlType.INT4: WireType(23, 4),
    SqlType.TEXT: WireType(25, -1),
    SqlType.OID: WireType(26, 4),
    SqlType.FLOAT4: WireType(700, 4),
    SqlType.FLOAT8: WireType(701, 8),
    SqlType.UNKNOWN: WireType(705, -2),
    SqlType.TEXT_ARRAY: WireType(1009, -1),
    SqlType.INT8_ARRAY: WireType(1016, -1),
    SqlType.DATE: WireType(1082, 4),
    SqlType.TIME: WireType(1083, 8),
    SqlType.TIMESTAMP: WireType(1114, 8),
    SqlType.TIMESTAMPTZ: WireType(1184, 8),
    SqlType.INTERVAL: WireType(1186, 16),
    SqlType.NUMERIC: WireType(1700, -1),
    SqlType.BOOL_ARRAY: WireType(1000, -1),
    SqlType.FLOAT8_ARRAY: WireType(1022, -1),
    SqlType.TIMESTAMP_ARRAY: WireType(1115, -1),
    SqlType.DATE_ARRAY: WireType(1182, -1),
    SqlType.TIMESTAMPTZ_ARRAY: WireType(1185, -1),
    SqlType.NUMERIC_ARRAY: WireType(1231, -1),
    SqlType.UUID: WireType(2950, 16),
}
_UNSPECIFIED_OID = 0
_PARAMETER_TYPES: dict[int, SqlType] = {
    **{wire.oid: type_ for type_, wire in WIRE_TYPES.items()},
    _UNSPECIFIED_OID: SqlType.UNKNOWN,
    1042: SqlType.TEXT,  # character(n)
    1043: SqlType.TEXT,  # character varying
    114: SqlType.TEXT,  # json
    1005: SqlType.INT8_ARRAY,  # int2[]
    1007: SqlType.INT8_ARRAY,  # int4[]
    1002: SqlType.TEXT_ARRAY,  # char[]
    1003: SqlType.TEXT_ARRAY,  # name[]
    1014: SqlType.TEXT_ARRAY,  # character(n)[]
    1015: SqlType.TEXT_ARRAY,  # character varying[]
    1021: SqlType.FLOAT8_ARRAY,  # float4[]
}


def parameter_type(oid: int) -> SqlType:
    """The type of a parameter by the OID that a client gives. SqlStateError if there is no such type here."""
    found = _PARAMETER_TYPES.get(oid)
    if found is None:
        raise SqlStateError(
            "42704", f"There is no type with OID {oid} here.", "Send the parameter as text, and cast it in the query."
        )
    return found


def modifier(column: Column) -> int:
    """The type modifier of a column: digits of a numeric; -1 if there is none."""
    if column.type is not SqlType.NUMERIC or column.precision is None:
        return -1
    return (column.precision << 16 | (column.scale or 0)) + 4


def encoder(column: Column, format_: int, zone: tzinfo = UTC) -> Encoder:
    """What writes the values of a column, except None, in a format. `zone`: of instants as text."""
    if format_ == BINARY_FORMAT:
        return _BINARY[column.type]
    if column.type is SqlType.TIMESTAMPTZ:
        return partial(_timestamptz_text, zone)
    if column.type is SqlType.TIMESTAMPTZ_ARRAY:
        return _array_text(partial(_timestamptz_text, zone))
    return _TEXT[column.type]


def decode(type_: SqlType, format_: int, data: bytes) -> SqlValue:
    """Read a parameter.

    Raises:
        SqlStateError: it is no value of the type (22P02, 22P03), or outside its range (22003).
    """
    if format_ == BINARY_FORMAT:
        read = _FROM_BINARY.get(type_)
        try:
            return _from_utf8(data) if read is None else read(data)
        except (struct.error, ValueError, OverflowError, IndexError) as error:
            message = f"A binary parameter of {len(data)} bytes is not a valid {type_.value}."
            raise SqlStateError("22P03", message, "Send it as text.") from error
    text = _from_utf8(data)
    try:
        return _FROM_TEXT[type_](text)
    except (ValueError, InvalidOperation, OverflowError) as error:
        shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
        raise SqlStateError("22P02", f'Invalid input syntax for type {type_.value}: "{shown}".') from error


_SHOWN = 100
"""Characters of a parameter in an error."""


def _from_utf8(data: bytes) -> str:
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise SqlStateError("22021", "A text is not valid UTF-8.", "Send UTF-8.") from error
    if "\0" in text:
        raise SqlStateError("22021", "A text contains a zero byte.", "Leave it out.")
    return text


# --- text -------------------------------------------------------------------------------------------------------------


def _utf8(value: object) -> bytes:
    return str(value).encode(errors="replace")


def _bool_text(value: object) -> bytes:
    return b"t" if value else b"f"


def _float_text(value: float) -> bytes:
    if value != value or value in (_INFINITY, -_INFINITY):  # noqa: PLR0124 - NaN
        return b"NaN" if value != value else b"Infinity" if value > 0 else b"-Infinity"  # noqa: PLR0124 - likewise
    return repr(float(value)).removesuffix(".0").encode()


_INFINITY = float("inf")


def _float4_text(value: float) -> bytes:
    """The shortest text that reads as the same number of 32 bits."""
    for digits in range(6, 9):
        text = f"{value:.{digits}g}"
        if struct.pack("!f", float(text)) == struct.pack("!f", value):
            return _float_text(float(text))
    return _float_text(float(f"{value:.9g}"))


def _numeric_text(value: Decimal | int) -> bytes:
    if isinstance(value, Decimal):
        return (format(value, "f") if value.is_finite() else str(value)).encode()
    return b"%d" % value


def _date_text(value: date) -> bytes:
    return value.isoformat().encode()


def _timestamp_text(value: datetime) -> bytes:
    return _shortened(value.replace(tzinfo=None).isoformat(" ")).encode()


def _timestamptz_text(zone: tzinfo, value: datetime) -> bytes:
    local = value.astimezone(zone)
    offset = local.isoformat()[len(local.replace(tzinfo=None).isoformat()) :]
    return _timestamp_text(local) + offset.removesuffix(":00").encode()


def _time_text(value: time) -> bytes:
    return _shortened(value.isoformat()).encode()


def _shortened(text: str) -> str:
    """Without zeros at the end of a fraction of a second, which PostgreSQL does not write."""
    return text.rstrip("0") if "." in text else text


def _interval_text(value: timedelta | str) -> bytes:
    if isinstance(value, str):
        return value.encode()
    micros = value // timedelta(microseconds=1)
    days, rest = divmod(abs(micros), _DAY_MICROS)
    sign = "-" if micros < 0 else ""
    hours, rest = divmod(rest, 3_600_000_000)
    minutes, rest = divmod(rest, 60_000_000)
    clock = _shortened(f"{sign}{hours:02}:{minutes:02}:{rest // 1_000_000:02}.{rest % 1_000_000:06}").rstrip(".")
    day = f"{sign}{days} day{'' if days == 1 and not sign else 's'}" if days else ""
    if not day:
        return clock.encode()
    return (f"{day} {clock}" if micros % _DAY_MICROS else day).encode()


_DAY_MICROS = 86_400_000_000


def _bytea_text(value: bytes) -> bytes:
    return b"\\x" + value.hex().encode()


_PLAIN_ITEM = re.compile(r"[^\s{}\",\\]+")


def _array_text(encode: Encoder) -> Encoder:
    def written(value: Sequence[object]) -> bytes:
        return _utf8("{" + ",".join("NULL" if item is None else _item_text(encode(item)) for item in value) + "}")

    return written


def _item_text(item: bytes) -> str:
    text = item.decode()
    if _PLAIN_ITEM.fullmatch(text) and text.upper() != "NULL":
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _integer_text(value: int) -> bytes:
    return b"%d" % value


_TEXT: dict[SqlType, Encoder] = {  # and TIMESTAMPTZ and its arrays, whose texts have a zone
    SqlType.BOOL: _bool_text,
    SqlType.INT2: _integer_text,
    SqlType.INT4: _integer_text,
    SqlType.INT8: _integer_text,
    SqlType.OID: _integer_text,
    SqlType.FLOAT4: _float4_text,
    SqlType.FLOAT8: _float_text,
    SqlType.NUMERIC: _numeric_text,
    SqlType.TEXT: _utf8,
    SqlType.NAME: _utf8,
    SqlType.CHAR: _utf8,
    SqlType.UNKNOWN: _utf8,
    SqlType.DATE: _date_text,
    SqlType.TIME: _time_text,
    SqlType.TIMESTAMP: _timestamp_text,
    SqlType.INTERVAL: _interval_text,
    SqlType.BYTEA: _bytea_text,
    SqlType.UUID: _utf8,
    SqlType.TEXT_ARRAY: _array_text(_utf8),
    SqlType.INT8_ARRAY: _array_text(_integer_text),
    SqlType.BOOL_ARRAY: _array_text(_bool_text),
    SqlType.FLOAT8_ARRAY: _array_text(_float_text),
    SqlType.NUMERIC_ARRAY: _array_text(_numeric_text),
    SqlType.DATE_ARRAY: _array_text(_date_text),
    SqlType.TIMESTAMP_ARRAY: _array_text(_timestamp_text),
}

# --- binary -----------------------------------------------------------------------------------------------------------

_INT2, _INT4, _INT8, _OID = struct.Struct("!h"), struct.Struct("!i"), struct.Struct("!q"), struct.Struct("!I")
_FLOAT4, _FLOAT8 = struct.Struct("!f"), struct.Struct("!d")
_NUMERIC_HEAD, _INTERVAL, _ARRAY_HEAD = struct.Struct("!hhHh"), struct.Struct("!qii"), struct.Struct("!iiIii")
_EPOCH_DAY = date(2000, 1, 1)
_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_POSITIVE, _NEGATIVE, _NAN, _PLUS_INFINITY, _MINUS_INFINITY = 0x0000, 0x4000, 0xC000, 0xD000, 0xF000
_BASE_DIGITS = 4
"""Decimal digits in one digit of a binary numeric."""


def _bool_binary(value: object) -> bytes:
    return b"\x01" if value else b"\x00"


def _numeric_binary(value: Decimal | int) -> bytes:
    number = value if isinstance(value, Decimal) else Decimal(value)
    sign, digits, exponent = number.as_tuple()
    if not isinstance(exponent, int):
        kind = _NAN if number.is_nan() else _MINUS_INFINITY if sign else _PLUS_INFINITY
        return _NUMERIC_HEAD.pack(0, 0, kind, 0)
    scale = max(0, -exponent)
    text = ("".join(map(str, digits)) + "0" * max(0, exponent)).rjust(scale, "0")
    whole, fraction = text[: len(text) - scale], text[len(text) - scale :]
    whole = whole.rjust(-(-len(whole) // _BASE_DIGITS) * _BASE_DIGITS, "0")
    fraction = fraction.ljust(-(-len(fraction) // _BASE_DIGITS) * _BASE_DIGITS, "0")
    groups = [int((whole + fraction)[at : at + _BASE_DIGITS]) for at in range(0, len(whole + fraction), _BASE_DIGITS)]
    weight = len(whole) // _BASE_DIGITS - 1
    while groups and groups[0] == 0:
        groups.pop(0)
        weight -= 1
    while groups and groups[-1] == 0:
        groups.pop()
    if not groups:
        weight, sign = 0, 0
    head = _NUMERIC_HEAD.pack(len(groups), weight, _NEGATIVE if sign else _POSITIVE, scale)
    return head + struct.pack(f"!{len(groups)}h", *groups)


def _date_binary(value: date) -> bytes:
    return _INT4.pack((value - _EPOCH_DAY).days)


def _time_binary(value: time) -> bytes:
    seconds = (value.hour * 60 + value.minute) * 60 + value.second
    return _INT8.pack(seconds * 1_000_000 + value.microsecond)


def _timestamp_binary(value: datetime) -> bytes:
    return _INT8.pack((value.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND)


def _timestamptz_binary(value: datetime) -> bytes:
    return _INT8.pack((value - _EPOCH) // _MICROSECOND)


_INTERVAL_PART = re.compile(r"([+-]?\d+) (year|mon|day)s?")
_INTERVAL_CLOCK = re.compile(r"([+-]?)(\d+):(\d\d):(\d\d)(?:\.(\d{1,6}))?$")


def _interval_binary(value: timedelta | str) -> bytes:
    parts = {"year": 0, "mon": 0, "day": 0}
    micros = 0
    if isinstance(value, timedelta):
        value = _interval_text(value).decode()
    for number, unit in _INTERVAL_PART.findall(value):
        parts[unit] += int(number)
    if found := _INTERVAL_CLOCK.search(value):
        sign, hours, minutes, seconds, fraction = found.groups()
        micros = ((int(hours) * 60 + int(minutes)) * 60 + int(seconds)) * 1_000_000
        micros += int((fraction or "").ljust(6, "0"))
        micros = -micros if sign == "-" else micros
    return _INTERVAL.pack(micros, parts["day"], parts["year"] * 12 + parts["mon"])


def _array_binary(item_oid: int, encode: Encoder) -> Encoder:
    def written(value: Sequence[object]) -> bytes:
        if not value:
            return struct.pack("!iiI", 0, 0, item_oid)
        items = [b"\xff\xff\xff\xff" if item is None else _sized(encode(item)) for item in value]
        return _ARRAY_HEAD.pack(1, int(None in value), item_oid, len(value), 1) + b"".join(items)

    return written


def _sized(data: bytes) -> bytes:
    return _INT4.pack(len(data)) + data


_BINARY: dict[SqlType, Encoder] = {
    SqlType.BOOL: _bool_binary,
    SqlType.INT2: _INT2.pack,
    SqlType.INT4: _INT4.pack,
    SqlType.INT8: _INT8.pack,
    SqlType.OID: _OID.pack,
    SqlType.FLOAT4: _FLOAT4.pack,
    SqlType.FLOAT8: _FLOAT8.pack,
    SqlType.NUMERIC: _numeric_binary,
    SqlType.TEXT: _utf8,
    SqlType.NAME: _utf8,
    SqlType.CHAR: _utf8,
    SqlType.UNKNOWN: _utf8,
    SqlType.DATE: _date_binary,
    SqlType.TIME: _time_binary,
    SqlType.TIMESTAMP: _timestamp_binary,
    SqlType.TIMESTAMPTZ: _timestamptz_binary,
    SqlType.INTERVAL: _interval_binary,
    SqlType.BYTEA: bytes,
    SqlType.UUID: lambda value: UUID(str(value)).bytes,
    SqlType.TEXT_ARRAY: _array_binary(WIRE_TYPES[SqlType.TEXT].oid, _utf8),
    SqlType.INT8_ARRAY: _array_binary(WIRE_TYPES[SqlType.INT8].oid, _INT8.pack),
    SqlType.BOOL_ARRAY: _array_binary(WIRE_TYPES[SqlType.BOOL].oid, _bool_binary),
    SqlType.FLOAT8_ARRAY: _array_binary(WIRE_TYPES[SqlType.FLOAT8].oid, _FLOAT8.pack),
    SqlType.NUMERIC_ARRAY: _array_binary(WIRE_TYPES[SqlType.NUMERIC].oid, _numeric_binary),
    SqlType.DATE_ARRAY: _array_binary(WIRE_TYPES[SqlType.DATE].oid, _date_binary),
    SqlType.TIMESTAMP_ARRAY: _array_binary(WIRE_TYPES[SqlType.TIMESTAMP].oid, _timestamp_binary),
    SqlType.TIMESTAMPTZ_ARRAY: _array_binary(WIRE_TYPES[SqlType.TIMESTAMPTZ].oid, _timestamptz_binary),
}

# --- parameters -------------------------------------------------------------------------------------------------------

_TRUE, _FALSE = frozenset({"t", "true", "y", "yes", "on", "1"}), frozenset({"f", "false", "n", "no", "off", "0"})


def _read_bool(text: str) -> bool:
    word = text.strip().lower()
    if word not in _TRUE | _FALSE:
        raise ValueError(text)
    return word in _TRUE


_INTEGER = re.compile(r"\s*[+-]?[0-9]{1,40}\s*")


def _read_integer(name: str, least: int, most: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        if not _INTEGER.fullmatch(text):
            raise ValueError(text)
        if not least <= int(text) <= most:
            raise SqlStateError("22003", f'The value "{text.strip()}" is out of range for type {name}.')
        return int(text)

    return read


_MOST_DIGITS = 1000
"""Digits of a numeric parameter, and the greatest exponent."""


def _read_numeric(text: str) -> Decimal:
    if len(text) > _MOST_DIGITS:
        raise ValueError(text)
    number = Decimal(text.strip())
    if number.is_finite() and abs(number.adjusted()) > _MOST_DIGITS:
        raise ValueError(text)
    return number


def _read_timestamp(text: str) -> datetime:
    return datetime.fromisoformat(text.strip()).replace(tzinfo=None)


def _read_timestamptz(text: str) -> datetime:
    found = datetime.fromisoformat(text.strip())
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found


_DATE = re.compile(r"\s*([0-9]{4}-[0-9]{2}-[0-9]{2})(?:[ T][0-9:.+\- ]*)?")
"""With the time and offset that some clients write behind it."""


def _read_date(text: str) -> date:
    found = _DATE.fullmatch(text)
    if found is None:
        raise ValueError(text)
    return date.fromisoformat(found[1])


def _read_bytea(text: str) -> bytes:
    return bytes.fromhex(text[2:]) if text.startswith("\\x") else text.encode("latin-1")


_ITEM = re.compile(r'\s*+(?:"((?:[^"\\]|\\.)*+)"\s*+|([^",{}\\\s][^",{}\\]*+))(,|$)', re.DOTALL)


def _read_array(item: Callable[[str], object]) -> Callable[[str], list[object]]:
    def read(text: str) -> list[object]:
        inside = text.strip()
        if not (inside.startswith("{") and inside.endswith("}")):
            raise ValueError(text)
        inside, items, at = inside[1:-1], list[object](), 0
        has_more = bool(inside.strip())
        while has_more:
            require_few(items)
            found = _ITEM.match(inside, at)
            if found is None:
                raise ValueError(text)
            quoted, plain, has_more = found[1], found[2], bool(found[3])
            if quoted is not None:
                items.append(item(re.sub(r"\\(.)", r"\1", quoted, flags=re.DOTALL)))
            else:
                items.append(None if plain.strip().upper() == "NULL" else item(plain.strip()))
            at = found.end()
        return items

    return read


_read_int8 = _read_integer("int8", -(2**63), 2**63 - 1)
_FROM_TEXT: dict[SqlType, Callable[[str], SqlValue]] = {
    SqlType.BOOL: _read_bool,
    SqlType.INT2: _read_integer("int2", -(2**15), 2**15 - 1),
    SqlType.INT4: _read_integer("int4", -(2**31), 2**31 - 1),
    SqlType.INT8: _read_int8,
    SqlType.OID: _read_integer("oid", 0, 2**32 - 1),
    SqlType.FLOAT4: float,
    SqlType.FLOAT8: float,
    SqlType.NUMERIC: _read_numeric,
    SqlType.TEXT: str,
    SqlType.NAME: str,
    SqlType.CHAR: str,
    SqlType.UNKNOWN: str,
    SqlType.DATE: _read_date,
    SqlType.TIME: lambda text: time.fromisoformat(text.strip()),
    SqlType.TIMESTAMP: _read_timestamp,
    SqlType.TIMESTAMPTZ: _read_timestamptz,
    SqlType.INTERVAL: str,
    SqlType.BYTEA: _read_bytea,
    SqlType.TEXT_ARRAY: _read_array(str),
    SqlType.INT8_ARRAY: _read_array(_read_int8),
    SqlType.BOOL_ARRAY: _read_array(_read_bool),
    SqlType.FLOAT8_ARRAY: _read_array(float),
    SqlType.NUMERIC_ARRAY: _read_array(_read_numeric),
    SqlType.DATE_ARRAY: _read_array(_read_date),
    SqlType.TIMESTAMP_ARRAY: _read_array(_read_timestamp),
    SqlType.TIMESTAMPTZ_ARRAY: _read_array(_read_timestamptz),
    SqlType.UUID: lambda text: str(UUID(text.strip())),
}


def _bool_from(data: bytes) -> bool:
    if data not in (b"\0", b"\1"):
        raise ValueError(data)
    return data == b"\1"


def _numeric_from(data: bytes) -> Decimal:
    count, weight, sign, scale = _NUMERIC_HEAD.unpack_from(data)
    groups = struct.unpack(f"!{count}h", data[_NUMERIC_HEAD.size :])
    if sign in (_NAN, _PLUS_INFINITY, _MINUS_INFINITY):
        return Decimal({_NAN: "NaN", _PLUS_INFINITY: "Infinity", _MINUS_INFINITY: "-Infinity"}[sign])
    if abs(weight) * _BASE_DIGITS > _MOST_DIGITS or scale > _MOST_DIGITS or count * _BASE_DIGITS > 2 * _MOST_DIGITS:
        raise ValueError(weight)
    if sign not in (_POSITIVE, _NEGATIVE) or scale < 0 or not all(0 <= each < 10**_BASE_DIGITS for each in groups):
        raise ValueError(sign)
    text = "".join(f"{each:0{_BASE_DIGITS}}" for each in groups) or "0"
    exponent = (weight - count + 1) * _BASE_DIGITS if count else 0
    digits = [int(each) for each in text]
    while exponent < -scale and digits[-1:] == [0]:
        digits.pop()
        exponent += 1
    while exponent > -scale:
        digits.append(0)
        exponent -= 1
    return Decimal((int(sign == _NEGATIVE), tuple(digits or [0]), exponent))


def _timestamptz_from(data: bytes) -> datetime:
    (micros,) = _INT8.unpack(data)
    return _EPOCH + timedelta(microseconds=micros)


def _time_from(data: bytes) -> time:
    (micros,) = _INT8.unpack(data)
    if not 0 <= micros < _DAY_MICROS:
        raise ValueError(micros)
    return (_EPOCH + timedelta(microseconds=micros)).time()


def _interval_from(data: bytes) -> str:
    micros, days, months = _INTERVAL.unpack(data)
    return f"{months} months {days} days {micros} microseconds"


def _array_from(data: bytes) -> list[object]:
    dimensions, _, oid = struct.unpack_from("!iiI", data)
    if dimensions == 0:
        return []
    _, _, _, count, _ = _ARRAY_HEAD.unpack_from(data)
    item, at, items = _PARAMETER_TYPES.get(oid, SqlType.TEXT), _ARRAY_HEAD.size, list[object]()
    if dimensions != 1 or not 0 <= count <= len(data) or _FROM_BINARY.get(item) is _array_from:
        raise ValueError(dimensions)
    for _ in range(count):
        require_few(items)
        (size,) = _INT4.unpack_from(data, at)
        at += _INT4.size
        if size < 0:
            items.append(None)
            continue
        if at + size > len(data):
            raise ValueError(size)
        items.append(decode(item, BINARY_FORMAT, data[at : at + size]))
        at += size
    return items


_FROM_BINARY: dict[SqlType, Decoder] = {
    SqlType.BOOL: _bool_from,
    SqlType.INT2: lambda data: _INT2.unpack(data)[0],
    SqlType.INT4: lambda data: _INT4.unpack(data)[0],
    SqlType.INT8: lambda data: _INT8.unpack(data)[0],
    SqlType.OID: lambda data: _OID.unpack(data)[0],
    SqlType.FLOAT4: lambda data: _FLOAT4.unpack(data)[0],
    SqlType.FLOAT8: lambda data: _FLOAT8.unpack(data)[0],
    SqlType.NUMERIC: _numeric_from,
    SqlType.DATE: lambda data: _EPOCH_DAY + timedelta(days=_INT4.unpack(data)[0]),
    SqlType.TIME: _time_from,
    SqlType.TIMESTAMP: lambda data: _timestamptz_from(data).replace(tzinfo=None),
    SqlType.TIMESTAMPTZ: _timestamptz_from,
    SqlType.INTERVAL: _interval_from,
    SqlType.BYTEA: bytes,
    SqlType.TEXT_ARRAY: _array_from,
    SqlType.INT8_ARRAY: _array_from,
    SqlType.BOOL_ARRAY: _array_from,
    SqlType.FLOAT8_ARRAY: _array_from,
    SqlType.NUMERIC_ARRAY: _array_from,
    SqlType.DATE_ARRAY: _array_from,
    SqlType.TIMESTAMP_ARRAY: _array_from,
    SqlType.TIMESTAMPTZ_ARRAY: _array_from,
    SqlType.UUID: lambda data: str(UUID(bytes=data)),
}
"""Other types are text in binary too."""
