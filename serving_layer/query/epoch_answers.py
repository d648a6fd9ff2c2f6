"""Answers as of the end of an epoch: of speed rows only those of earlier epochs count, so that they stand still.

A live answer may contain more than its `speed_as_of` says, because rows are written before positions. As soon as the
speed layer has read past the end of an epoch, the rows of epochs before it never change, and neither do published
cells. So any number of answers from one pointer and epoch rest on the same events, while others arrive and other
publications follow.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Self

from master_dataset.registry.stores import Store
from serving_layer.query.answer import answer_query, answer_totals
from serving_layer.query.catalogue import Catalogue
from serving_layer.query.resolve import MetricRequest, resolve
from serving_layer.responses.encoding import encode
from serving_layer.store.cells import MergedCells
from serving_layer.store.readers import Readers
from serving_layer.store.snapshot import ReadSnapshot
from views.control.publication import Pointer


class EpochAnswers:
    """Answers queries for metrics from one pointer, with the speed rows of epochs before an instant."""

    def __init__(self, catalogue: Catalogue, snapshot: ReadSnapshot, cells: MergedCells) -> None:
        """Use `at` instead, which reads the snapshot."""
        self._catalogue, self._snapshot, self._cells = catalogue, snapshot, cells

    @classmethod
    async def at(
        cls, readers: Readers, catalogue: Catalogue, speed_ttl: timedelta, pointer: Pointer, epoch: datetime
    ) -> Self:
        """The answers as of an epoch whose end the generation of the pointer has read past.

        Args:
            readers: what serving reads from.
            catalogue: the registered views and metrics.
            speed_ttl: how long speed rows live.
            pointer: the publication, and the generation of the speed layer.
            epoch: rows of it and of later epochs do not count; at or after the cut of the pointer.

        Raises:
            CassandraUnavailableError: the positions of the generation cannot be read.
        """
        positions = await readers.speed.positions(pointer.generation)
        cells = MergedCells(readers, speed_ttl).with_rows(lambda row: row.epoch < epoch)
        return cls(catalogue, ReadSnapshot(pointer, tuple(sorted(positions)), ()), cells)

    def with_rows_kept(self) -> Self:
        """The same answers, which read the speed rows of each view and store once and keep them."""
        return type(self)(self._catalogue, self._snapshot, self._cells.for_one_answer())

    async def ask(self, request: MetricRequest, stores: Mapping[str, Store]) -> bytes:
        """The JSON of an answer about the stores that the request names, or about all.

        Raises:
            GalateaError: see `serving_layer.query.answer.answer`. Categories of products are not known here.
        """
        chosen = [stores[store] for store in request.stores or sorted(stores)]
        query = resolve(request, chosen, self._catalogue)
        if not (query.merges_stores or query.ranking):
            return encode(await answer_query(query, self._snapshot, self._cells, is_limited=False))
        [response] = await answer_totals([query], self._snapshot, self._cells, is_limited=False)
        return encode(response)
