"""No byte of a hardware address is kept or sent, however it is spelled; everything else is kept as it came."""

from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest

from master_dataset.parsing.masking import mask_value
from master_dataset.parsing.rows import HEADERS, INSTANT, rows
from master_dataset.sources import registered_sources
from master_dataset.sources.pos_transactions import POS_TRANSACTIONS
from master_dataset.sources.wifi_sightings import WIFI_SIGHTINGS
from tests.support.corpus.record import MISSING, record
from tests.support.terms import default_terms

SPELLINGS = [
    "3c:22:fb:9a:1d:e7",
    "3C:22:FB:9A:1D:E7",
    "3c-22-fb-9a-1d-e7",
    "3C-22-FB-9A-1D-E7",
    "3c22.fb9a.1de7",
    "3C22.FB9A.1DE7",
    "3c22fb9a1de7",
    "3C22FB9A1DE7",
    "3c 22 fb 9a 1d e7",
    "3c.22.fb.9a.1d.e7",
    "3c22fb-9a1de7",
]
OCTETS = (b"3c", b"22", b"fb", b"9a", b"1d", b"e7")
HASH = b"9f86d081884c7d659a2feaa0c55ad015"


def rowed(*values: bytes | None, key: bytes = b"1") -> list[dict[str, Any]]:
    count = len(values)
    columns = {
        "key": pa.array([key] * count, pa.binary()),
        "value": pa.array(values, pa.binary()),
        "topic": pa.array(["wifi_sightings"] * count, pa.string()),
        "partition": pa.array([0] * count, pa.int32()),
        "offset": pa.array(range(count), pa.int64()),
        "timestamp": pa.array([datetime(2026, 3, 7, 9, 6, tzinfo=UTC)] * count, INSTANT),
        "headers": pa.array([None] * count, HEADERS),
    }
    (out,) = rows(WIFI_SIGHTINGS, iter([pa.RecordBatch.from_pydict(columns)]), default_terms)
    listed: list[dict[str, Any]] = out.to_pylist()
    return listed


def kept(value: bytes) -> tuple[bytes, bytes]:
    """What a table keeps of a record, and what `galatea ingest` sends of it."""
    (row,) = rowed(value)
    return row["value"], mask_value(WIFI_SIGHTINGS, value)


def escaped(text: str) -> bytes:
    return "".join(f"\\u{ord(dead_letter):04X}" for dead_letter in text).encode()


def shows_address(value: bytes) -> bool:
    """Whether two neighbouring bytes of it can be read, with or without something between them."""
    bare = bytes(byte for byte in value.lower() if byte not in b":-. \0")
    return any(first + second in bare for first, second in pairwise(OCTETS))


def about(device: bytes) -> bytes:
    """A sighting in which no other text has an octet of the address."""
    return record(WIFI_SIGHTINGS, device="?", salt_id="s").replace(b"?", device)


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_hardware_address_is_refused_and_no_byte_of_it_is_kept_or_sent(spelling: str) -> None:
    for device in (spelling.encode(), escaped(spelling), spelling[:5].encode() + escaped(spelling[5:])):
        (row,) = rowed(about(device))

        assert (row["reason"], row["field"]) == ("raw_mac_address", "/device")
        assert spelling not in row["sentence"]
        assert not any(shows_address(value) for value in kept(about(device)))


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize(
    "damaged",
    [
        lambda value: value[:-1],  # no JSON
        lambda value: b"\xff" + value,  # no UTF-8
        lambda value: value.decode().encode("utf-16"),
        lambda value: value.decode().encode("utf-16-be"),
        lambda value: value[:-1] + b', "zone": "inside"}',  # a key twice
        lambda value: value.replace(b'"happened_at"', b'"at"'),
        lambda value: value.replace(b'"inside"', b'"at the door"'),
        lambda value: value.replace(b"-61", b"61"),
        lambda value: b"[" + value + b"]",
        lambda value: value.replace(b'"device": "', b'"device": "ap-2/'),
    ],
)
def test_a_record_that_is_refused_for_something_else_loses_its_address_too(spelling: str, damaged: Any) -> None:
    value = damaged(about(spelling.encode()))

    (row,) = rowed(value)

    assert row["kind"] == "dead_letter"
    assert not any(shows_address(each) for each in kept(value))


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_record_that_ends_within_an_address_loses_what_there_is_of_it(spelling: str) -> None:
    whole = about(spelling.encode())
    first = whole.index(spelling.encode())

    for end in range(first + 2, first + len(spelling) + 1):
        assert not any(shows_address(each) for each in kept(whole[:end]))


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_key_that_is_an_address_is_masked_and_the_key_of_a_store_is_not(spelling: str) -> None:
    (keyed,) = rowed(record(WIFI_SIGHTINGS), key=spelling.encode())
    (named,) = rowed(record(WIFI_SIGHTINGS, operation_id=spelling), key=spelling.encode())

    assert keyed["key"] == b"*" * len(spelling)
    assert named["key"] == spelling.encode()


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_an_unknown_field_of_an_event_loses_an_address_and_the_event_stays(spelling: str) -> None:
    plain = record(WIFI_SIGHTINGS)
    value = plain[:-1] + b', "mac": "?", "near": {"?": [1], "again ?": "?"}}'.replace(b"?", spelling.encode())

    (row,) = rowed(value)
    (expected,) = rowed(plain)

    assert {**row, "value": None} == {**expected, "value": None}
    assert not any(spelling.encode() in each for each in kept(value))
    assert rowed(*kept(value)) == [{**row, "offset": number} for number in (0, 1)]


def test_addresses_that_name_fields_are_masked_and_stay_different() -> None:
    value = record(WIFI_SIGHTINGS)[:-1] + b', "rssi": {"3c:22:fb:9a:1d:e7": -5, "3c:22:fb:9a:1d:e8": -6}}'

    (row,) = rowed(value)

    assert row["kind"] == "event"
    assert b"3c:22" not in row["value"]
    assert b'{"****************0": -5, "****************1": -6}' in row["value"]


def test_tens_of_thousands_of_addresses_are_masked_in_a_moment_and_what_a_field_says_stays() -> None:
    router = "3c:22:fb:9a:1d:e7"
    value = record(
        WIFI_SIGHTINGS, notes=[f"{number:012x}" for number in range(2**40, 2**40 + 20_000)], sensor_id=router
    )

    sent = mask_value(WIFI_SIGHTINGS, value)

    assert [row["kind"] for row in rowed(sent)] == ["event"]
    assert sent.count(router.encode()) == 1
    assert sent.count(b'"*') == 20_000


@pytest.mark.parametrize("device", [HASH.decode(), "0" * 32, "123456789012" * 2 + "abcdef01"])
def test_a_hash_of_an_event_is_never_masked(device: str) -> None:
    value = record(WIFI_SIGHTINGS, device=device)

    assert kept(value) == (value, value)


@pytest.mark.parametrize(
    "text",
    [
        "2026-03-07 10:00:00.123",
        "07-03-2026 10:00:00",
        "f81d4fae-7dec-41d0-a765-00a0c91e6bf6",
        "192.168.100.200",
        "20260307100000",
        "v1.2.3.4.5.6",
        "d8e8fca2dc0f896fd7cb4cb0031ba249",
        "1 2 3 4 5 6",
    ],
)
def test_a_time_an_id_or_a_version_in_an_unknown_field_is_no_address(text: str) -> None:
    value = record(WIFI_SIGHTINGS, note=text)

    assert kept(value) == (value, value)


@pytest.mark.parametrize("put", [{"sensor_id": "3c:22:fb:9a:1d:e7"}, {"operation_id": 123456789012}])
def test_a_name_of_a_router_or_a_store_is_no_address_of_a_device(put: dict[str, object]) -> None:
    value = record(WIFI_SIGHTINGS, **put)

    assert kept(value) == (value, value)


@pytest.mark.parametrize(
    "value",
    [
        record(WIFI_SIGHTINGS, device=HASH.decode().upper()),
        record(WIFI_SIGHTINGS, happened_at="2027-03-07T10:00:00Z"),
        record(WIFI_SIGHTINGS, happened_at="2026-03-07 10:00:00.123"),
        record(WIFI_SIGHTINGS, zone=MISSING),
        b'{"device": "' + escaped(HASH.decode()) + b'"}',  # kept as it was written
        b'{"note": "a \\u0022 and a \\\\u0041"}',
        b"{",
        b"\xff\xfe",
        b"\0",
    ],
)
def test_a_dead_letter_without_an_address_is_kept_byte_for_byte(value: bytes) -> None:
    assert kept(value)[0] == value
    assert kept(value)[1] == value


def test_an_event_among_dead_letters_is_kept_and_nothing_stays_nothing() -> None:
    value = record(WIFI_SIGHTINGS)

    out = rowed(value, about(b"3c22fb9a1de7"), None, value)

    assert [row["value"] == value for row in out] == [True, False, False, True]
    assert out[2]["value"] is None


def test_records_that_were_read_without_their_keys_are_masked_alike() -> None:
    batch = pa.RecordBatch.from_pydict(
        {
            "value": pa.array([about(b"3c22fb9a1de7")], pa.binary()),
            "topic": pa.array(["wifi_sightings"]),
            "partition": pa.array([0], pa.int32()),
            "offset": pa.array([0], pa.int64()),
            "timestamp": pa.array([datetime(2026, 3, 7, 9, 6, tzinfo=UTC)], INSTANT),
        }
    )

    (out,) = rows(WIFI_SIGHTINGS, iter([batch]), default_terms)

    assert (out.column("key").to_pylist(), out.column("reason").to_pylist()) == ([None], ["raw_mac_address"])
    assert not shows_address(out.column("value").to_pylist()[0])


def test_sources_that_hold_no_addresses_keep_every_byte() -> None:
    value = b'{"title": "3c:22:fb:9a:1d:e7"}'

    assert [topic for topic, source in registered_sources().items() if source.masked] == ["wifi_sightings"]
    assert mask_value(POS_TRANSACTIONS, value) == value
