"""A rule that makes no sense is refused with the field, what is wrong, and what to write instead."""

from typing import Any

import pytest

from master_dataset.errors import BadRuleError
from master_dataset.registry.stores import Store
from views.alerts.rule_validation import parse_rule

BOUND = {"kind": "threshold", "id": "r", "metric": "net_sales", "window": "hour", "above": 1}
SILENT = {"kind": "silence", "id": "r", "source": "pos_transactions", "minutes": 20}
LEVEL = {"kind": "level", "id": "r", "of": "queue", "above": 4, "minutes": 3}
REFUSED: list[tuple[Any, str, str]] = [
    ([], "", "Kinds are: threshold, silence, level."),
    ({"id": "r"}, "kind", "Say `kind`: threshold, silence, level."),
    ({**BOUND, "kind": "bound"}, "kind", "Use one of: threshold, silence, level."),
    ({**BOUND, "metrics": 1}, "metrics", "Did you mean `metric`?"),
    ({**BOUND, "metric": "net_sale"}, "metric", "Did you mean `net_sales`?"),
    ({**BOUND, "metric": "conversion_rate"}, "metric", "Use one of: avg_items_per_transaction"),
    ({**BOUND, "window": "week"}, "window", "Write a value of that type."),
    ({**BOUND, "id": "No spaces"}, "id", "Use at most 64 lower-case letters"),
    ({**BOUND, "name": "x" * 300}, "name", "Write a shorter one."),
    ({**BOUND, "name": "a\u202eb"}, "name", "Leave it out."),
    ({**BOUND, "name": "a\nb"}, "name", "Leave it out."),
    ({**BOUND, "below": 1}, "above", "two rules for both"),
    ({**BOUND, "above": None}, "above", "Write one of them"),
    ({**BOUND, "above": "NaN"}, "above", "Write a number"),
    ({**BOUND, "above": 10**13}, "above", "Write less than 500,000,000,000."),
    ({**BOUND, "above": None, "below": 10**12 - 1}, "below", "Write 500,000,000,000 or less."),
    ({**BOUND, "metric": "traffic_in", "above": None, "below": 0}, "below", "Write a bound above zero."),
    ({**BOUND, "metric": "sales.zero_tx", "above": -1}, "above", "Write zero or more."),
    ({**BOUND, "versus": "previous_week", "above": 0}, "above", "Write how far"),
    ({**BOUND, "versus": "previous_week", "above": None, "below": 100}, "below", "Write how far"),
    ({**BOUND, "stores": []}, "stores", "Name a store"),
    ({**BOUND, "stores": ["1", "1"]}, "stores", "Name each store once"),
    ({**BOUND, "stores": ["2"]}, "stores", "Register it"),
    ({**BOUND, "stores": ["9"]}, "stores", "Register it"),
    ({**SILENT, "minutes": 1}, "minutes", "Write 2 or more."),
    ({**SILENT, "minutes": 1441}, "minutes", "Write 1440 or less."),
    ({**SILENT, "source": "receipts"}, "source", "Use one of"),
    ({**SILENT, "per": "sensor"}, "per", "Write `per: store`."),
    ({**SILENT, "stores": ["3"]}, "hours", "Register `opening_hours`"),
    ({**LEVEL, "above": 1000}, "above", "Write 0 to 999."),
    ({**LEVEL, "above": -1}, "above", "Write 0 to 999."),
    ({**LEVEL, "minutes": 1440}, "minutes", "Write 0 to 1439."),
]
STORES = {
    "1": Store(id="1", timezone="UTC", opening_hours={"mon": ("08:00-20:00",)}),
    "2": Store(id="2", timezone="UTC", tenant="another"),
    "3": Store(id="3", timezone="UTC"),
}


@pytest.mark.parametrize(("said", "field", "do"), REFUSED)
def test_an_invalid_rule_is_rejected_with_the_next_step(said: Any, field: str, do: str) -> None:
    with pytest.raises(BadRuleError) as refused:
        parse_rule(said, STORES)

    assert refused.value.field == field
    assert do in refused.value.do


@pytest.mark.parametrize("said", [BOUND, SILENT, LEVEL, {**BOUND, "above": "12.5", "stores": ["1"]}])
def test_a_valid_rule_is_read_from_text_as_well(said: Any) -> None:
    text = {name: str(each) if isinstance(each, int) else each for name, each in said.items()}

    assert parse_rule(text, STORES) == parse_rule(said, STORES)
