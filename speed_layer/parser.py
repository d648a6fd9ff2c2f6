"""Parses records of all topics into typed rows of one width, within Spark's `mapInArrow`.

All sources share one stream, its Python workers and one plan: a separate stream per source would cost as much for each
micro-batch.
"""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from master_dataset.errors import DefinitionError
from master_dataset.kafka.trace_contexts import TraceContexts, trace_contexts_of
from master_dataset.parsing.arrow import arrow_fields
from master_dataset.parsing.rows import output_schema, rows
from speed_layer.arrow_tables import events_and_positions
from speed_layer.cassandra_batches import Wait
from views.core.view import View

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.accumulators import Accumulator

    from master_dataset.registry.terms_history import TermsUntil
    from master_dataset.source import Source

OF_SIGHTINGS = frozenset({"business_day", "device", "is_inside"})
"""The columns of a sighting that views of visits need."""
BEGUN = 4
"""Of how many calls of writers the acknowledgements may be waited for later: each may have some megabytes under way."""
ONLY_ARCHIVED = ("key", "value", "headers", "reason", "field", "sentence")
"""Columns of a parsed row that only the archive needs."""


class RecordWriter(Protocol):
    """Writes something of every parsed record of a topic, the same however often. Runs in Spark's workers."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of a parsed record that it needs, beside `kind`."""

    def __call__(self, parsed: pa.RecordBatch) -> Wait:
        """Begin to write what there is to write of parsed records."""


@dataclass(frozen=True)
class Parser:
    """The parser of a set of views.

    Attributes:
        sources: By topic.
        unread: Topic to the payload columns that need not be built.
        schema: Of the rows.
        terms: Creates the look-up of stores.
        writers: Topic to what writes its records while they are parsed.
        traces: Collects the traces of the records; None: nobody asks for them.
    """

    sources: "Mapping[str, Source[Any]]"
    unread: Mapping[str, frozenset[str]]
    schema: pa.Schema
    terms: "Callable[[], TermsUntil]"
    writers: Mapping[str, Sequence[RecordWriter]]
    traces: "Accumulator[TraceContexts] | None" = None

    @classmethod
    def of(
        cls,
        views: Sequence[View],
        terms: "Callable[[], TermsUntil]",
        writers: Mapping[str, Sequence[RecordWriter]],
        traces: "Accumulator[TraceContexts] | None" = None,
    ) -> "Parser":
        """The parser for these views."""
        sources = {source.topic: source for source in sources_of(views)}
        unread = {
            topic: unread_columns(source, views).difference(*(each.columns for each in writers.get(topic, ())))
            for topic, source in sources.items()
        }
        return cls(sources, unread, columns_read(views), terms, writers, traces)

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Events and positions, with the columns of `schema`; columns of other sources are NULL.

        When there are no more, everything that `writers` write is acknowledged. It is waited for as late as possible,
        because Cassandra works meanwhile.
        """
        terms = self.terms()
        begun = deque[Wait]()
        for batch in batches:
            if self.traces is not None and (found := trace_contexts_of(batch)):
                self.traces.add(found)
            for topic in pc.unique(batch["topic"]).to_pylist():
                own = batch.filter(pc.equal(batch["topic"], topic))
                for parsed in rows(self.sources[topic], iter([own]), terms, unread=self.unread[topic]):
                    begun += [write(parsed) for write in self.writers.get(topic, ())]
                    while len(begun) > BEGUN:
                        begun.popleft()()
                    yield from events_and_positions(self._widened(parsed), self.schema)
        for wait in begun:
            wait()

    def _widened(self, parsed: pa.RecordBatch) -> pa.RecordBatch:
        present = frozenset(parsed.schema.names)
        columns = [
            parsed[field.name] if field.name in present else pa.nulls(parsed.num_rows, field.type)
            for field in self.schema
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)


def sources_of(views: Sequence[View]) -> "list[Source[Any]]":
    """The sources that these views read, sorted by topic."""
    by_topic = {view.source.topic: view.source for view in views}
    return [by_topic[topic] for topic in sorted(by_topic)]


def columns_read(views: Sequence[View]) -> pa.Schema:
    """Kind, position, event columns, and every payload column of any source that a view reads.

    DefinitionError if two sources have a column of one name and different types.
    """
    sources = sources_of(views)
    found = {
        field.name: field
        for field in output_schema(sources[0])
        if field.name not in (*ONLY_ARCHIVED, *sources[0].columns)
    }
    for source in sources:
        unread = unread_columns(source, views)
        for field in arrow_fields(source.payload):
            if field.name in unread:
                continue
            if found.setdefault(field.name, field).type != field.type:
                message = f"the column `{field.name}` of `{source.topic}` has another type in another source"
                raise DefinitionError(message, do="rename it")
    return pa.schema(list(found.values()))


def unread_columns(source: "Source[Any]", views: Sequence[View]) -> frozenset[str]:
    """The payload columns that no expression of the source's views mentions."""
    own = [view for view in views if view.source.topic == source.topic]
    read = frozenset().union(*(view.columns_read for view in own))
    read |= OF_SIGHTINGS if any(view.counts_visits for view in own) else frozenset()
    return frozenset(name for name in source.columns if name not in read)
