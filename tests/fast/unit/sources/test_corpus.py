"""Every case of the corpus becomes what it must, the sentence quotes nothing, and the next good record passes."""

import pytest

from master_dataset.parsing.parse import parse
from master_dataset.parsing.results import DeadLetter, Event
from master_dataset.registry.stores import DEFAULT_TERMS, Terms
from master_dataset.sources.pos_transactions import POS_TRANSACTIONS
from tests.support.corpus.case import Case, by_hand, receipt
from tests.support.corpus.generated import generated

CASES = [*by_hand(), *generated()]
MARK = "quoted-value"


def test_the_corpus_is_large_and_each_case_has_a_name_of_its_own() -> None:
    names = [case.name for case in CASES]

    assert len(names) == len(set(names)) >= 500


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name[:80].encode("unicode_escape").decode())
def test_a_case_becomes_an_event_or_a_dead_letter_with_the_right_reason(case: Case) -> None:
    value, received_us = case.value, case.received_us

    parsed = parse(POS_TRANSACTIONS, value, lambda _: Terms(case.store_currency), received_us=received_us)

    if isinstance(parsed, DeadLetter):
        assert (parsed.reason, parsed.field) == (case.expected, case.field)
    else:
        assert case.expected == "event"


@pytest.mark.parametrize(
    "put", ["operation_id", "happened_at", "title", "price", "amount", "total", "sku", "transactions"]
)
def test_the_sentence_of_a_dead_letter_never_quotes_the_value(put: str) -> None:
    value = receipt({put: f'[{{"{MARK}": "{MARK}"}}]'})

    dead_letter = parse(POS_TRANSACTIONS, value, lambda _: DEFAULT_TERMS)

    assert isinstance(dead_letter, DeadLetter)
    assert MARK not in dead_letter.sentence + dead_letter.field


def test_a_good_record_after_all_the_bad_ones_is_an_event() -> None:
    for case in CASES[:200]:
        parse(POS_TRANSACTIONS, case.value, lambda _: DEFAULT_TERMS)

    parsed = parse(POS_TRANSACTIONS, receipt(), lambda _: DEFAULT_TERMS)

    assert isinstance(parsed, Event)
