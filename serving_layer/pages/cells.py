"""Views, states and sources in words, and states in the units of people, from the whole numbers that are stored."""

import re
from decimal import Decimal
from typing import Literal

from master_dataset.registry.stores import currency
from serving_layer.pages.figures import SIGNS, duration, figure, plain_number, rounded
from serving_layer.pages.language import MINUS, UNKNOWN, noted
from serving_layer.pages.language import gettext as _

VIEW_NAMES = {
    "basket_pairs": noted("Products bought together"),
    "basket_sizes": noted("Basket sizes"),
    "coverage": noted("Sensor uptime"),
    "demographics": noted("Age and gender of visitors"),
    "discounts": noted("Discounts"),
    "labor": noted("Staff hours"),
    "payments": noted("Payments"),
    "queue": noted("Waiting times"),
    "queue_length": noted("Average queue"),
    "queue_peak": noted("Longest queue"),
    "returns_by_sku": noted("Returns by product"),
    "sales": noted("Sales"),
    "sales_by_sku": noted("Sales by product"),
    "sales_by_till": noted("Sales by till"),
    "traffic": noted("Visitors"),
    "weather": noted("Weather"),
    "wifi_devices": noted("Wi-Fi devices nearby"),
    "wifi_visits": noted("Visits, by Wi-Fi"),
    "zone_traffic": noted("Visitors by zone"),
}
SOURCE_NAMES = {
    "demographics": noted("Age and gender cameras"),
    "people_counts": noted("Door counters"),
    "pos_transactions": noted("Tills (receipts)"),
    "queue_events": noted("Queue sensors"),
    "sensor_heartbeats": noted("Sensor heartbeats"),
    "staff_hours": noted("Staff hours"),
    "weather_observations": noted("Weather"),
    "wifi_sightings": noted("Wi-Fi sensors"),
    "zone_presence": noted("Zone sensors"),
}
LACKING = {
    "demographics": noted("no age and gender camera"),
    "people_counts": noted("no door counter"),
    "queue_events": noted("no queue sensor"),
    "sensor_heartbeats": noted("no sensor with heartbeats"),
    "staff_hours": noted("no staff hours"),
    "weather_observations": noted("no weather"),
    "wifi_sightings": noted("no Wi-Fi sensor"),
    "zone_presence": noted("no zone sensor"),
}
"""What a store without that source lacks. Every store has tills."""
STATE_NAMES = {
    "abandoned": noted("People who gave up waiting"),
    "basket_value": noted("Value of baskets"),
    "baskets": noted("Baskets"),
    "bounced": noted("Visits that ended right away"),
    "covered_ms": noted("Time that sensors worked"),
    "discount_receipts": noted("Receipts that report discounts"),
    "discounted": noted("Receipts with a discount"),
    "discounts": noted("Discounts"),
    "discounts_returned": noted("Discounts returned"),
    "dwell_ms": noted("Time in the zone"),
    "dwells": noted("Visits to the zone"),
    "enters": noted("People who entered the zone"),
    "exchange_tx": noted("Exchanges"),
    "exits": noted("People who left the zone"),
    "gross_sales": noted("Gross sales"),
    "group_in": noted("Groups in"),
    "group_out": noted("Groups out"),
    "in_store": noted("Visits inside"),
    "joins": noted("People who joined the queue"),
    "labor_ms": noted("Hours worked"),
    "length_after": noted("Longest queue"),
    "lines": noted("Receipt lines"),
    "net_sales": noted("Net sales"),
    "net_units": noted("Items sold"),
    "outside": noted("Visits outside"),
    "pair_receipts": noted("Receipts with both products"),
    "payment_receipts": noted("Receipts paid this way"),
    "payments": noted("Payments"),
    "payments_count": noted("Number of payments"),
    "people": noted("People"),
    "people_in": noted("People in"),
    "people_out": noted("People out"),
    "person_ms": noted("Time spent in the queue"),
    "precipitation_um": noted("Rain"),
    "receipts": noted("Receipts"),
    "return_lines": noted("Return lines"),
    "return_tx": noted("Return receipts"),
    "returns_value": noted("Returns"),
    "sale_tx": noted("Sale receipts"),
    "served": noted("People served"),
    "service_ms": noted("Service time"),
    "services": noted("Services"),
    "sightings": noted("Wi-Fi sightings"),
    "sku_receipts": noted("Receipts with the product"),
    "staff_in": noted("Staff in"),
    "staff_out": noted("Staff out"),
    "stay_ms": noted("Length of stay"),
    "units_returned": noted("Items returned"),
    "units_sold": noted("Items sold"),
    "wait_ms": noted("Waiting time"),
    "within_target": noted("People served in time"),
    "zero_tx": noted("Receipts for zero"),
}
METRIC_NAMES = {
    "avg_items_per_transaction": noted("Items per receipt"),
    "avg_transaction_value": noted("Average receipt"),
    "count_drift": noted("People in minus people out"),
    "gross_sales": noted("Gross sales"),
    "group_traffic_in": noted("Groups in"),
    "net_items_count": noted("Items sold"),
    "net_sales": noted("Net sales"),
    "return_rate": noted("Return rate"),
    "return_transactions_count": noted("Return receipts"),
    "returns_value": noted("Returns"),
    "sales_transactions_count": noted("Sale receipts"),
    "total_transactions_count": noted("Receipts"),
    "traffic_in": noted("Visitors"),
    "traffic_out": noted("People out"),
}
"""Metrics that alert rules can watch."""
DIMENSION_NAMES = {
    "age_band": noted("age"),
    "currency": noted("currency"),
    "gender": noted("gender"),
    "kind": noted("kind"),
    "line": noted("door"),
    "payment_type": noted("paid by"),
    "provider": noted("provider"),
    "queue": noted("queue"),
    "role": noted("role"),
    "sensor_id": noted("sensor"),
    "sku": noted("product"),
    "source": noted("source"),
    "till": noted("till"),
    "with_sku": noted("bought with"),
    "zone": noted("zone"),
}
StateUnit = Literal["n", "money", "ms", "celsius", "mm", "text"]
_MONEY = frozenset(
    {"basket_value", "discounts", "discounts_returned", "gross_sales", "net_sales", "payments", "returns_value"}
    | {"value_min", "value_max"}
)
_BIN = re.compile(r"(?P<of>[a-z]+)_(?P<number>\d+)")
_OF_BINS = {
    "dwell": noted("Time in the zone"),
    "lines": noted("Receipt lines"),
    "stay": noted("Length of stay"),
    "units": noted("Items on a receipt"),
    "value": noted("Receipt value"),
    "wait": noted("Waiting time"),
}
_MILLI = Decimal("0.001")
MIN_SHOWN, MAX_SHOWN = Decimal("0.1"), 1000
"""Percent: a smaller change is no change to a reader, and of a greater one the numbers themselves say more."""


def view_name(view: str) -> str:
    """A view in words; one without any as it is."""
    return _(VIEW_NAMES[view]) if view in VIEW_NAMES else view.replace("_", " ")


def source_name(source: str) -> str:
    """A source in words; one without any as it is."""
    return _(SOURCE_NAMES[source]) if source in SOURCE_NAMES else source.replace("_", " ")


def dimension_name(dimension: str) -> str:
    """A dimension in words; one without any as it is."""
    return _(DIMENSION_NAMES[dimension]) if dimension in DIMENSION_NAMES else dimension.replace("_", " ")


def state_name(state: str) -> str:
    """A state in words; one without any as it is."""
    if state in STATE_NAMES:
        return _(STATE_NAMES[state])
    if (found := _BIN.fullmatch(state)) and found["of"] in _OF_BINS:
        return _("{what}, range {number}").format(what=_(_OF_BINS[found["of"]]), number=int(found["number"]) + 1)
    return state.removeprefix("flag_").replace("_", " ").capitalize()


def metric_name(metric: str) -> str:
    """A metric that alert rules can watch, in words: one of the catalogue, or a state as `view.state`."""
    return _(METRIC_NAMES[metric]) if metric in METRIC_NAMES else state_name(metric.rpartition(".")[2])


def state_unit(state: str) -> StateUnit:
    """In which unit people read a state."""
    if state in _MONEY:
        return "money"
    if state.endswith("_ms") or state in {"wait_min", "wait_max", "stay_min", "stay_max", "dwell_min", "dwell_max"}:
        return "ms"
    if state.endswith(("_mc", "_mc_sum")):
        return "celsius"
    return "mm" if state == "precipitation_um" else "n"


def shown_state(state: str, value: int | str | None, code: str) -> str:
    """A state in its unit; a dash for None.

    Args:
        state: its name.
        value: as it is stored: money in minor units, durations in milliseconds; the text of a composite state.
        code: the currency of money.
    """
    if value is None:
        return UNKNOWN
    if isinstance(value, str):
        return _("estimate")
    unit = state_unit(state)
    if unit == "money":
        return str(figure(Decimal(value).scaleb(-currency(code).digits), "money", code))
    if unit == "ms":
        return f"{MINUS if value < 0 else ''}{duration(abs(value))}"
    if unit in ("celsius", "mm"):
        return f"{plain_number(value * _MILLI)} {'°C' if unit == 'celsius' else 'mm'}"
    return rounded(value, 0)


def shown_difference(state: str, difference: int | str | None, code: str) -> str:
    """By how much a state changed, with its sign."""
    text = shown_state(state, difference, code)
    return f"+{text}" if isinstance(difference, int) and difference > 0 else text


def percent_change(shown: int | str | None, corrected: int | str | None) -> str:
    """The change in percent; empty where there is none to speak of, or no number to compare with."""
    if not isinstance(shown, int) or not isinstance(corrected, int) or not shown:
        return ""
    change = Decimal(100) * (corrected - shown) / abs(shown)
    if not MIN_SHOWN <= abs(change) <= MAX_SHOWN:
        return ""
    return f"{SIGNS['up' if change > 0 else 'down']}{rounded(abs(change), 1)} %"
