"""What events of any source contribute to the cells of each view, to visits, and to the events that wait for batch.

Events older than A (R5) on arrival may be duplicates of events that this generation never read, so they are left to
batch and counted as waiting. To a view of visits an event contributes itself, as a sighting, or waits: see
`master_dataset.visits`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from master_dataset.visits.visit import VisitRules
from views.arrow.contributions import EVENT_ROW, contributions
from views.arrow.expressions import Rows, evaluate, is_true
from views.core.cells import WAITING, WINDOW_KEY, Shape
from views.core.view import View, fresh_sql, window_sql

Contributed = Mapping[str, pa.Table]
"""By shape: a row per contribution, with the columns of `views.arrow.contributions.contributions`."""
_ONE = pa.scalar(1, pa.int64())


def shapes_of(views: Iterable[View]) -> Mapping[str, Shape]:
    """Everything that a single event can contribute to, by name: not the views of visits."""
    return {view.name: view for view in views if not view.counts_visits} | {WAITING.name: WAITING}


@dataclass(frozen=True)
class Contributions:
    """Of these views. `oldest`: the greatest age of events that count. `rules`: when sightings make a visit."""

    views: Sequence[View]
    oldest: timedelta
    rules: VisitRules

    @cached_property
    def shapes(self) -> Mapping[str, Shape]:
        """Those that events contribute to."""
        return shapes_of(self.views)

    def __call__(self, events: pa.Table) -> Contributed:
        """What these events contribute. `event` is the number of their row."""
        found: dict[str, pa.Table] = {}
        waiting: list[pa.Table] = []
        for topic, of_topic in self._by_topic(events).items():
            is_old = self._is_old(of_topic)
            old, own = of_topic.filter(is_old), of_topic.filter(pc.invert(is_old))
            waiting += [_waiting(old, name) for name in (topic, *self._of_visits(topic)) if old.num_rows]
            rows = Rows.of(own)
            for view in self.views:
                if view.source.topic != topic:
                    continue
                if view.counts_visits:
                    waiting.append(_waiting(own.filter(pc.invert(is_true(fresh_sql(self.rules), rows))), view.name))
                else:
                    found[view.name] = _renumbered(contributions(view, rows), own)
        return found | ({WAITING.name: pa.concat_tables(waiting)} if waiting else {})

    def sightings(self, events: pa.Table, view: View) -> pa.Table:
        """The events that contribute to a view of visits: young enough to be counted, and fresh."""
        own = events.filter(pc.equal(events["topic"], view.source.topic))
        own = own.filter(pc.invert(self._is_old(own)))
        return own.filter(is_true(fresh_sql(self.rules), Rows.of(own)))

    def _by_topic(self, events: pa.Table) -> Mapping[str, pa.Table]:
        """The events of each topic with their numbers."""
        numbered = events.append_column(EVENT_ROW, pa.array(range(events.num_rows), pa.int64()))
        topics = pc.unique(events["topic"]).to_pylist()
        return {topic: numbered.filter(pc.equal(numbered["topic"], topic)) for topic in sorted(topics)}

    def _of_visits(self, topic: str) -> list[str]:
        return [view.name for view in self.views if view.counts_visits and view.source.topic == topic]

    def _is_old(self, events: pa.Table) -> pa.ChunkedArray:
        received, happened = (events[name].cast(pa.int64()) for name in ("received_at", "happened_at"))
        return pc.greater(pc.subtract(received, happened), self.oldest // timedelta(microseconds=1))


def _waiting(events: pa.Table, name: str) -> pa.Table:
    """What numbered events add to those that wait under this name."""
    number = events.num_rows
    return pa.table(
        {
            EVENT_ROW: events[EVENT_ROW],
            WINDOW_KEY: evaluate(window_sql("happened_at"), Rows.of(events)),
            "d0": pa.repeat(pa.scalar(name), number),
            "s0": pa.repeat(_ONE, number),
        }
    )


def _renumbered(contributed: pa.Table, events: pa.Table) -> pa.Table:
    """With the numbers that events have, in place of their rows in this table."""
    numbers = events[EVENT_ROW].take(contributed[EVENT_ROW])
    return contributed.set_column(contributed.schema.get_field_index(EVENT_ROW), EVENT_ROW, numbers)
