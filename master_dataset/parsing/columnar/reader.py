"""Reads a batch of records of one source column by column: what `parse` would return, where that is sure.

The struct and the columns are made from the fields of the source. msgspec decodes each record, numpy and Arrow type and
check whole columns. A record that is not sure in any respect (it is broken, has a field that no source names, a number
of 16 digits, a lenient spelling of a time, ...) is left out, and `parse` decides what it is, as the single definition.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from hashlib import blake2b
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from master_dataset.fields import Lines
from master_dataset.parsing.arrow import array, arrow_fields, plain
from master_dataset.parsing.columnar import sensors
from master_dataset.parsing.columnar.columns import (
    UNSURE_NUMBER,
    ColumnType,
    Ints,
    Mask,
    all_sure,
    column_types,
    has_decimals,
    struct_of,
    typed,
)
from master_dataset.parsing.columnar.receipts import receipts
from master_dataset.parsing.columnar.records import Derived, TypedRecords
from master_dataset.parsing.json_bytes import MAX_BYTES
from master_dataset.parsing.parse import FUTURE_US, content_of, encode, unsaid_of
from master_dataset.parsing.readers import UNSURE, quotes_in
from master_dataset.parsing.results import InvalidRecordError
from master_dataset.registry.stores import DEFAULT_CURRENCY
from master_dataset.registry.terms_history import TermsOf
from master_dataset.source import Source
from master_dataset.sources.demographics import DEMOGRAPHICS
from master_dataset.sources.people_counts import PEOPLE_COUNTS
from master_dataset.sources.pos_transactions import POS_TRANSACTIONS
from master_dataset.sources.queue_events import QUEUE_EVENTS
from master_dataset.sources.sensor_heartbeats import SENSOR_HEARTBEATS
from master_dataset.sources.staff_hours import STAFF_HOURS
from master_dataset.sources.weather_observations import WEATHER_OBSERVATIONS
from master_dataset.sources.wifi_sightings import WIFI_SIGHTINGS
from master_dataset.sources.zone_presence import ZONE_PRESENCE

Derive = Callable[[TypedRecords, Mask], Derived]
"""Takes typed records, and which of them are sure."""
DERIVATIONS: Mapping[Source[Any], Derive] = {
    DEMOGRAPHICS: sensors.seen,
    PEOPLE_COUNTS: sensors.counts,
    POS_TRANSACTIONS: receipts,
    QUEUE_EVENTS: sensors.waiting,
    SENSOR_HEARTBEATS: sensors.beats,
    STAFF_HOURS: sensors.segments,
    WEATHER_OBSERVATIONS: sensors.observations,
    WIFI_SIGHTINGS: sensors.sightings,
    ZONE_PRESENCE: sensors.presences,
}
"""`Source.derive` for whole columns. Without one, the payloads of a source are derived one after the other."""
WORTHWHILE = 100
"""Fewer records take less time one by one: a column has a price, however short it is."""


class SureEvents(NamedTuple):
    """The records of a batch that are events for sure.

    Attributes:
        at: Their places in the batch, ascending.
        stores: The store of each.
        happened_ms: When each happened, milliseconds since 1970.
        identities: The identity of each, as text.
        identity_hashes: Their hashes.
        payload_hashes: Those of what the senders said.
        payload: The payload columns by name.
    """

    at: Ints
    stores: pa.Array
    happened_ms: Ints
    identities: pa.Array
    identity_hashes: Ints
    payload_hashes: Ints
    payload: Mapping[str, pa.Array]


class ColumnarReader:
    """The columnar reader of one source, made once per process: see `columnar_reader`."""

    def __init__(self, source: Source[Any], types: Mapping[str, ColumnType]) -> None:
        """`types`: of the fields of the source."""
        self._source, self._types = source, types
        self._decode = msgspec.json.Decoder(struct_of(source.topic, types)).decode
        self._derive = DERIVATIONS.get(source, self._derive_rows)
        self._content = content_of(source)
        self._has_decimals = has_decimals(types)

    def events(
        self, values: pa.Array, terms_of: TermsOf, received_us: Ints, keys: pa.Array | None = None
    ) -> SureEvents:
        """Return the events among the values of records.

        Args:
            values: The values, binary.
            terms_of: Returns the terms of a store.
            received_us: When each was received, as `parse` has it.
            keys: The keys, if only records with the key of their store shall be found.
        """
        at, records, derived = self._derived(values, terms_of, received_us)
        sure = derived.sure
        if keys is not None:
            expected = records.columns[self._source.store].cast(pa.binary())
            is_keyed = pc.is_in(pc.equal(keys.take(pa.array(at)), expected), pa.array([True]))
            sure = sure & is_keyed.to_numpy(zero_copy_only=False)
        kept = np.flatnonzero(sure)
        columns = derived.columns()
        contents = self._contents(columns) if derived.contents is None else derived.contents
        are_all, chosen = bool(sure.all()), pa.array(sure)

        def keep(column: pa.Array) -> pa.Array:
            return column if are_all else column.filter(chosen)

        names = self._source.identity
        identity = {name: keep(records.columns[name]) for name in names}
        identities = list(map(encode, zip(*map(plain, identity.values()), strict=True)))
        prefix = f"{self._source.topic}\0".encode()
        return SureEvents(
            at[kept],
            identity[self._source.store],
            identity[self._source.happened_at].to_numpy(),
            pa.array(identities, pa.string()),
            _hashes(prefix + each for each in identities),
            _hashes(encode(contents[each]) for each in kept.tolist()),
            {name: keep(column) for name, column in columns.items()},
        )

    def stores_and_times(
        self, values: Sequence[bytes], terms_of: TermsOf, received_us: int
    ) -> list[tuple[str, int] | None]:
        """Return store and `happened_ms` of each value that is surely an event; None for the others. See `events`."""
        column = pa.array(values, pa.binary())
        at, records, derived = self._derived(column, terms_of, np.full(len(values), received_us, np.int64))
        stores, times = (plain(records.columns[name]) for name in (self._source.store, self._source.happened_at))
        found: list[tuple[str, int] | None] = [None] * len(values)
        for place, event, is_sure in zip(at.tolist(), zip(stores, times, strict=True), derived.sure, strict=True):
            if is_sure:
                found[place] = event
        return found

    def _derived(self, values: pa.Array, terms_of: TermsOf, received_us: Ints) -> tuple[Ints, TypedRecords, Derived]:
        at, structs, quotes = self._decoded(values)
        if len(at) < len(values):
            values = values.take(pa.array(at))
        store = self._source.store
        digits: Ints = np.full(len(at), DEFAULT_CURRENCY.digits)
        stores = typed({store: self._types[store]}, structs, digits)[store].values.dictionary_encode()
        terms = [terms_of(each) for each in stores.dictionary.to_pylist()]
        records = TypedRecords({}, terms, stores.indices.to_numpy())
        digits = records.of_terms(lambda each: each.currency.digits)
        columns = typed(self._types, structs, digits)
        sure = all_sure(columns.values(), len(at))
        sure &= quotes == 2 * sum(each.quoted for each in columns.values())  # nothing else is in it
        if self._has_decimals:
            sure &= ~pc.match_substring_regex(values, UNSURE_NUMBER).to_numpy(zero_copy_only=False)
        records = records._replace(columns={name: column.values for name, column in columns.items()})
        happened_ms = columns[self._source.happened_at].values.to_numpy()
        sure &= happened_ms * 1000 <= received_us[at] + FUTURE_US
        return at, records, self._derive(records, sure)

    def _decoded(self, values: pa.Array) -> tuple[Ints, list[Any], Ints]:
        """Return the records that are JSON of these fields: their places, the records, and their quotes."""
        at, structs, quotes, decode = [], [], [], self._decode
        for place, value in enumerate(values.to_pylist()):
            if value and len(value) <= MAX_BYTES:
                try:
                    structs.append(decode(value))
                except UNSURE:
                    continue
                at.append(place)
                quotes.append(quotes_in(value))
        return np.array(at, np.int64), structs, np.array(quotes, np.int64)

    def _derive_rows(self, records: TypedRecords, sure: Mask) -> Derived:
        """Derive the payloads from one record after the other."""
        derive, names = self._source.derive, tuple(records.columns)
        payloads: list[Any] = [None] * records.number
        rows = zip(*map(plain, records.columns.values()), strict=True)
        for number, (row, terms, is_sure) in enumerate(zip(rows, records.term.tolist(), sure.tolist(), strict=True)):
            if is_sure:
                with suppress(InvalidRecordError):
                    payloads[number] = derive(dict(zip(names, row, strict=True)), records.terms[terms])
        columns = {
            field.name: array([None if each is None else getattr(each, field.name) for each in payloads], field.type)
            for field in arrow_fields(self._source.payload)
        }
        is_derived = np.array([each is not None for each in payloads], np.bool_)
        return Derived(lambda: columns, is_derived, [each and self._content(each) for each in payloads])

    def _contents(self, columns: Mapping[str, pa.Array]) -> Sequence[Any]:
        """What was sent, as `content_of` has it, but for structs: those of payload columns are `array_like`."""
        said, later = (
            _rows_of([columns[name] for name in names]) for names in (self._source.content, self._source.content_later)
        )
        if not self._source.content_later:
            return said
        unsaid = unsaid_of(self._source.content_later)
        return [each if more == unsaid else (each, more) for each, more in zip(said, later, strict=True)]


@cache
def columnar_reader(source: Source[Any]) -> ColumnarReader | None:
    """Return the columnar reader of a source; None if its fields cannot be read as columns, or not derived from."""
    types = column_types(source.fields)
    has_lines = any(isinstance(field, Lines) for field in source.fields.values())
    return ColumnarReader(source, types) if types and (source in DERIVATIONS or not has_lines) else None


def _rows_of(columns: Sequence[pa.Array]) -> list[Any]:
    """Return what `attrgetter` of these columns returns for each row."""
    listed = list(map(plain, columns))
    return listed[0] if len(listed) == 1 else list(zip(*listed, strict=True))


def _hashes(texts: Iterable[bytes]) -> Ints:
    digests = b"".join(blake2b(text, digest_size=8).digest() for text in texts)
    return np.frombuffer(digests, ">i8").astype(np.int64)
