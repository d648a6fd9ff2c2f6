"""Records of one batch, received before and after stores were registered in another way: each is read as if alone."""

import os
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from master_dataset.parsing.columnar.reader import WORTHWHILE
from master_dataset.parsing.parse import STAMPED_AT
from master_dataset.parsing.results import UNIX_EPOCH
from master_dataset.parsing.rows import INSTANT, read_singly, rows
from master_dataset.registry.stores import DEFAULT_TERMS
from master_dataset.registry.terms_history import FormerTerms, TermsHistory
from master_dataset.source import Source
from master_dataset.sources import registered_sources
from tests.support.corpus.fuzz import BEGIN_US, HOUR_US, TERMS, Fuzz

SOURCES = registered_sources()
SEED = os.environ.get("FUZZ_SEED", "1")
RECORDS = 4 * WORTHWHILE


def random_history(chance: Random) -> TermsHistory:
    """Up to four changes of stores 1 to 5, at times when records are received."""
    former: dict[tuple[str, int], FormerTerms] = {}
    for _ in range(chance.randrange(5)):
        store, us = str(chance.randint(1, 5)), BEGIN_US + chance.randrange(-4, 40) * HOUR_US // 4
        until = UNIX_EPOCH + us * UNIX_EPOCH.resolution
        former[store, us] = FormerTerms(store, until, chance.choice([DEFAULT_TERMS, *TERMS.values()]))
    return TermsHistory(TERMS, former.values())


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
def test_each_record_is_read_by_the_terms_of_its_time(source: Source[Any]) -> None:
    chance, fuzz = Random(f"{source.topic} {SEED}"), Fuzz(source, SEED)
    for sent in fuzz.batches(4 * RECORDS, RECORDS):
        batch = sent
        history = random_history(chance)
        if chance.random() < 0.5:  # of a partition that was added: it opened when the broker had stamped the records
            opened = pa.array([BEGIN_US + 9 * HOUR_US] * batch.num_rows).cast(INSTANT)
            stamped = batch["timestamp"]
            batch = batch.set_column(batch.schema.get_field_index("timestamp"), "timestamp", opened)
            batch = batch.append_column(STAMPED_AT, stamped)

        (together,) = rows(source, iter([batch]), lambda _us, history=history: history)  # type: ignore[misc]

        alone = [
            read_singly(source, batch.slice(at, 1), lambda us, history=history: TermsHistory(_read_then(history, us)))  # type: ignore[misc]
            for at in range(batch.num_rows)
        ]
        assert together.equals(pa.concat_batches(alone))


def _read_then(history: TermsHistory, received_us: int) -> dict[str, Any]:
    """The terms that count for a record, found in another way: the first change after it, else those of now."""
    found = dict(history.current)
    for store in {each.store for each in history.former}:
        later = [each for each in history.former if each.store == store and _us(each) > received_us]
        if later:
            found[store] = min(later, key=_us).terms
    return found


def _us(each: FormerTerms) -> int:
    return (each.until - UNIX_EPOCH) // UNIX_EPOCH.resolution
