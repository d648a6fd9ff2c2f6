"""Values are written as PostgreSQL writes them, in text and in binary, and parameters are read back the same."""

import string
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serving_layer.sql.results import Column, SqlStateError, SqlType, SqlValue
from serving_layer.sql.types import BINARY_FORMAT, TEXT_FORMAT, decode, encoder, modifier, parameter_type

NAN = Decimal("NaN")
POSTGRESQL: list[tuple[SqlType, SqlValue, str, str]] = [
    # type, value, and what a PostgreSQL 18.4 wrote in text, and in binary (hex)
    (SqlType.BOOL, True, "t", "01"),
    (SqlType.BOOL, False, "f", "00"),
    (SqlType.INT2, 7, "7", "0007"),
    (SqlType.INT4, -8, "-8", "fffffff8"),
    (SqlType.INT8, 9000000000, "9000000000", "0000000218711a00"),
    (SqlType.OID, 26, "26", "0000001a"),
    (SqlType.FLOAT4, 1.5, "1.5", "3fc00000"),
    (SqlType.FLOAT4, 0.10000000149011612, "0.1", "3dcccccd"),
    (SqlType.FLOAT8, 100.0, "100", "4059000000000000"),
    (SqlType.FLOAT8, -0.1, "-0.1", "bfb999999999999a"),
    (SqlType.FLOAT8, 1e300, "1e+300", "7e37e43c8800759c"),
    (SqlType.FLOAT8, float("nan"), "NaN", "7ff8000000000000"),
    (SqlType.FLOAT8, float("-inf"), "-Infinity", "fff0000000000000"),
    (SqlType.NUMERIC, Decimal(0), "0", "0000000000000000"),
    (SqlType.NUMERIC, Decimal("0.00"), "0.00", "0000000000000002"),
    (SqlType.NUMERIC, Decimal("1.20"), "1.20", "0002000000000002000107d0"),
    (SqlType.NUMERIC, Decimal("-1234567890.123456"), "-1234567890.123456", "0005000240000006000c0d801ed204d215e0"),
    (SqlType.NUMERIC, Decimal(10000), "10000", "00010001000000000001"),
    (SqlType.NUMERIC, Decimal("0.00001234"), "0.00001234", "0001fffe0000000804d2"),
    (SqlType.NUMERIC, 100000000, "100000000", "00010002000000000001"),
    (SqlType.NUMERIC, NAN, "NaN", "00000000c0000000"),
    (
        SqlType.NUMERIC,
        Decimal(12345678901234567890123456789012345678),
        "12345678901234567890123456789012345678",
        "000a000900000000000c0d801ed204d2162e23340d801ed204d2162e",
    ),
    (SqlType.NUMERIC, Decimal("0.05"), "0.05", "0001ffff0000000201f4"),
    (SqlType.NUMERIC, Decimal("99999.99"), "99999.99", "00030001000000020009270f26ac"),
    (SqlType.TEXT, "x", "x", "78"),
    (SqlType.TEXT, 'Käse "x"', 'Käse "x"', "4bc3a4736520227822"),
    (SqlType.NAME, "n", "n", "6e"),
    (SqlType.CHAR, "r", "r", "72"),
    (SqlType.DATE, date(2026, 2, 28), "2026-02-28", "00002553"),
    (SqlType.DATE, date(1969, 12, 31), "1969-12-31", "ffffd532"),
    (SqlType.TIME, time(1, 2, 3), "01:02:03", "00000000dde878c0"),
    (SqlType.TIME, time(23, 59, 59, 120000), "23:59:59.12", "000000141dc9f280"),
    (SqlType.TIMESTAMP, datetime(2026, 1, 2, 3, 4, 5), "2026-01-02 03:04:05", "0002ea5dbb151340"),  # noqa: DTZ001
    (SqlType.TIMESTAMP, datetime(1999, 12, 31, 23, 59, 59, 500000), "1999-12-31 23:59:59.5", "fffffffffff85ee0"),  # noqa: DTZ001
    (SqlType.TIMESTAMPTZ, datetime(2026, 1, 2, 1, 4, 5, tzinfo=UTC), "2026-01-02 01:04:05+00", "0002ea5c0dedcb40"),
    (SqlType.INTERVAL, timedelta(days=1), "1 day", "00000000000000000000000100000000"),
    (SqlType.INTERVAL, "26:03:04.5", "26:03:04.5", "00000015d5fde7200000000000000000"),
    (SqlType.INTERVAL, "-1 days -02:00:00", "-1 days -02:00:00", "fffffffe52d8b800ffffffff00000000"),
    (
        SqlType.INTERVAL,
        "1 year 2 mons 3 days 04:05:06",
        "1 year 2 mons 3 days 04:05:06",
        "000000036c8bc080000000030000000e",
    ),
    (SqlType.INTERVAL, timedelta(0), "00:00:00", "00000000000000000000000000000000"),
    (SqlType.INTERVAL, timedelta(seconds=-5), "-00:00:05", "ffffffffffb3b4c00000000000000000"),
    (SqlType.BYTEA, b"\x00\xff\x10", "\\x00ff10", "00ff10"),
    (
        SqlType.TEXT_ARRAY,
        ["a", "b c", None, 'say "x"', "NULL", ""],
        '{a,"b c",NULL,"say \\"x\\"","NULL",""}',
        (
            "0000000100000001000000190000000600000001000000016100000003622063ffffffff"
            "0000000773617920227822000000044e554c4c00000000"
        ),
    ),
    (SqlType.TEXT_ARRAY, [], "{}", "000000000000000000000019"),
    (
        SqlType.INT8_ARRAY,
        [1, None, 3],
        "{1,NULL,3}",
        "0000000100000001000000140000000300000001000000080000000000000001ffffffff000000080000000000000003",
    ),
    (SqlType.INT8_ARRAY, [], "{}", "000000000000000000000014"),
]


@pytest.mark.parametrize(("type_", "value", "text", "binary"), POSTGRESQL)
def test_values_are_written_as_postgresql_writes_them(type_: SqlType, value: SqlValue, text: str, binary: str) -> None:
    column = Column("c", type_)

    assert encoder(column, TEXT_FORMAT)(value).decode() == text
    assert encoder(column, BINARY_FORMAT)(value).hex() == binary


@pytest.mark.parametrize(
    ("type_", "value", "text", "binary"),
    [case for case in POSTGRESQL if case[0] is not SqlType.INTERVAL and "NaN" not in case[2]],
)
def test_parameters_are_read_as_they_are_written(type_: SqlType, value: SqlValue, text: str, binary: str) -> None:
    read = decode(type_, TEXT_FORMAT, text.encode()), decode(type_, BINARY_FORMAT, bytes.fromhex(binary))

    if type_ is SqlType.FLOAT4:
        assert read[0] == pytest.approx(value)
        assert read[1] == value
    else:
        assert read == (value, value)


def test_an_interval_with_months_is_read_as_a_text_that_the_query_casts() -> None:
    assert decode(SqlType.INTERVAL, TEXT_FORMAT, b"1 mon") == "1 mon"
    binary = bytes.fromhex("000000036c8bc080000000030000000e")
    assert decode(SqlType.INTERVAL, BINARY_FORMAT, binary) == "14 months 3 days 14706000000 microseconds"


@given(st.decimals(allow_nan=False, allow_infinity=False, places=6, min_value=-(10**20), max_value=10**20))
def test_every_number_survives_binary(value: Decimal) -> None:
    column = Column("c", SqlType.NUMERIC)
    for format_ in (TEXT_FORMAT, BINARY_FORMAT):
        read = decode(SqlType.NUMERIC, format_, encoder(column, format_)(value))
        assert read == value
        assert str(read) == format(value or abs(value), "f")


@given(st.lists(st.none() | st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20)))
def test_every_array_survives(items: list[str | None]) -> None:
    column = Column("c", SqlType.TEXT_ARRAY)
    for format_ in (TEXT_FORMAT, BINARY_FORMAT):
        assert decode(SqlType.TEXT_ARRAY, format_, encoder(column, format_)(items)) == items


@given(
    st.sampled_from(list(SqlType)),
    st.sampled_from([TEXT_FORMAT, BINARY_FORMAT]),
    st.binary(max_size=60) | st.text(string.printable, max_size=40).map(str.encode),
)
def test_whatever_is_sent_as_a_parameter_is_read_or_refused(type_: SqlType, format_: int, data: bytes) -> None:
    code = "00000"
    try:
        decode(type_, format_, data)
    except SqlStateError as error:
        code = error.code
    assert code in {"00000", "22P02", "22P03", "22021", "22003"}


@pytest.mark.parametrize(
    ("type_", "text", "code"),
    [
        (SqlType.INT4, "3000000000", "22003"),
        (SqlType.INT8, "1.5", "22P02"),
        (SqlType.NUMERIC, "1e100000", "22P02"),
        (SqlType.NUMERIC, "ten", "22P02"),
        (SqlType.BOOL, "maybe", "22P02"),
        (SqlType.DATE, "yesterday-ish", "22P02"),
        (SqlType.TEXT_ARRAY, "a,b", "22P02"),
        (SqlType.TEXT, "a\0b", "22021"),
    ],
)
def test_a_parameter_that_is_no_value_of_its_type_is_refused_by_name(type_: SqlType, text: str, code: str) -> None:
    with pytest.raises(SqlStateError) as refused:
        decode(type_, TEXT_FORMAT, text.encode())

    assert refused.value.code == code
    assert type_ is SqlType.TEXT or type_.value in refused.value.message


@pytest.mark.parametrize("text", ["2026-02-28", "2026-02-28 +00", "2026-02-28 00:00:00+05:30"])
def test_a_date_is_read_with_the_time_and_offset_that_clients_add(text: str) -> None:
    assert decode(SqlType.DATE, TEXT_FORMAT, text.encode()) == date(2026, 2, 28)


def test_types_of_other_names_are_read_as_the_ones_that_there_are() -> None:
    assert parameter_type(1043) is SqlType.TEXT
    assert parameter_type(0) is SqlType.UNKNOWN
    assert parameter_type(1007) is SqlType.INT8_ARRAY
    with pytest.raises(SqlStateError, match="OID 600") as refused:
        parameter_type(600)  # a point
    assert refused.value.code == "42704"


def test_a_numeric_tells_its_digits_as_postgresql_does() -> None:
    assert modifier(Column("c", SqlType.NUMERIC, 10, 2)) == 655366
    assert modifier(Column("c", SqlType.NUMERIC)) == -1
    assert modifier(Column("c", SqlType.INT8)) == -1


@pytest.mark.parametrize(
    ("type_", "value", "text"),
    [
        (SqlType.BOOL_ARRAY, [True, None, False], "{t,NULL,f}"),
        (SqlType.FLOAT8_ARRAY, [1.5, 100.0], "{1.5,100}"),
        (SqlType.NUMERIC_ARRAY, [Decimal("1.50"), Decimal(7)], "{1.50,7}"),
        (SqlType.DATE_ARRAY, [date(2026, 3, 6)], "{2026-03-06}"),
        (SqlType.TIMESTAMP_ARRAY, [datetime(2026, 3, 6, 10)], '{"2026-03-06 10:00:00"}'),  # noqa: DTZ001 - has no zone
        (SqlType.TIMESTAMPTZ_ARRAY, [datetime(2026, 3, 6, 10, tzinfo=UTC)], '{"2026-03-06 10:00:00+00"}'),
    ],
)
def test_arrays_are_written_and_read_in_both_formats(type_: SqlType, value: SqlValue, text: str) -> None:
    column = Column("c", type_)

    assert encoder(column, TEXT_FORMAT)(value) == text.encode()
    assert decode(type_, TEXT_FORMAT, text.encode()) == value
    assert decode(type_, BINARY_FORMAT, encoder(column, BINARY_FORMAT)(value)) == value


def test_a_uuid_is_read_in_both_formats() -> None:
    text = "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"

    assert decode(SqlType.UUID, TEXT_FORMAT, text.upper().encode()) == text
    assert decode(SqlType.UUID, BINARY_FORMAT, bytes.fromhex(text.replace("-", ""))) == text
