"""Views, states and sources in words, and states in the units of people, from the whole numbers that are stored."""

import re
from decimal import Decimal
from typing import Literal

from master_dataset.registry.stores import currency
from serving_layer.pages.figures import SIGNS, duration, figure, plain_number, rounded
from serving_layer.pages.language import MINUS, UNKNOWN, gettext_noop
from serving_layer.pages.language import gettext as _

VIEW_NAMES = {
    "basket_pairs": gettext_noop("Products bought together"),
    "basket_sizes": gettext_noop("Basket sizes"),
    "coverage": gettext_noop("Sensor uptime"),
    "demographics": gettext_noop("Age and gender of visitors"),
    "discounts": gettext_noop("Discounts"),
    "labor": gettext_noop("Staff hours"),
    "payments": gettext_noop("Payments"),
    "queue": gettext_noop("Waiting times"),
    "queue_length": gettext_noop("Average queue"),
    "queue_peak": gettext_noop("Longest queue"),
    "returns_by_sku": gettext_noop("Returns by product"),
    "sales": gettext_noop("Sales"),
    "sales_by_sku": gettext_noop("Sales by product"),
    "sales_by_till": gettext_noop("Sales by till"),
    "traffic": gettext_noop("Visitors"),
    "weather": gettext_noop("Weather"),
    "wifi_devices": gettext_noop("Wi-Fi devices nearby"),
    "wifi_visits": gettext_noop("Visits, by Wi-Fi"),
    "zone_traffic": gettext_noop("Visitors by zone"),
}
SOURCE_NAMES = {
    "demographics": gettext_noop("Age and gender cameras"),
    "people_counts": gettext_noop("Door counters"),
    "pos_transactions": gettext_noop("Tills (receipts)"),
    "queue_events": gettext_noop("Queue sensors"),
    "sensor_heartbeats": gettext_noop("Sensor heartbeats"),
    "staff_hours": gettext_noop("Staff hours"),
    "weather_observations": gettext_noop("Weather"),
    "wifi_sightings": gettext_noop("Wi-Fi sensors"),
    "zone_presence": gettext_noop("Zone sensors"),
}
LACKING = {
    "demographics": gettext_noop("no age and gender camera"),
    "people_counts": gettext_noop("no door counter"),
    "queue_events": gettext_noop("no queue sensor"),
    "sensor_heartbeats": gettext_noop("no sensor with heartbeats"),
    "staff_hours": gettext_noop("no staff hours"),
    "weather_observations": gettext_noop("no weather"),
    "wifi_sightings": gettext_noop("no Wi-Fi sensor"),
    "zone_presence": gettext_noop("no zone sensor"),
}
"""What a store without that source lacks. Every store has tills."""
STATE_NAMES = {
    "abandoned": gettext_noop("People who gave up waiting"),
    "basket_value": gettext_noop("Value of baskets"),
    "baskets": gettext_noop("Baskets"),
    "bounced": gettext_noop("Visits that ended right away"),
    "covered_ms": gettext_noop("Time that sensors worked"),
    "discount_receipts": gettext_noop("Receipts that report discounts"),
    "discounted": gettext_noop("Receipts with a discount"),
    "discounts": gettext_noop("Discounts"),
    "discounts_returned": gettext_noop("Discounts returned"),
    "dwell_ms": gettext_noop("Time in the zone"),
    "dwells": gettext_noop("Visits to the zone"),
    "enters": gettext_noop("People who entered the zone"),
    "exchange_tx": gettext_noop("Exchanges"),
    "exits": gettext_noop("People who left the zone"),
    "gross_sales": gettext_noop("Gross sales"),
    "group_in": gettext_noop("Groups in"),
    "group_out": gettext_noop("Groups out"),
    "in_store": gettext_noop("Visits inside"),
    "joins": gettext_noop("People who joined the queue"),
    "labor_ms": gettext_noop("Hours worked"),
    "length_after": gettext_noop("Longest queue"),
    "lines": gettext_noop("Receipt lines"),
    "net_sales": gettext_noop("Net sales"),
    "net_units": gettext_noop("Items sold"),
    "outside": gettext_noop("Visits outside"),
    "pair_receipts": gettext_noop("Receipts with both products"),
    "payment_receipts": gettext_noop("Receipts paid this way"),
    "payments": gettext_noop("Payments"),
    "payments_count": gettext_noop("Number of payments"),
    "people": gettext_noop("People"),
    "people_in": gettext_noop("People in"),
    "people_out": gettext_noop("People out"),
    "person_ms": gettext_noop("Time spent in the queue"),
    "precipitation_um": gettext_noop("Rain"),
    "receipts": gettext_noop("Receipts"),
    "return_lines": gettext_noop("Return lines"),
    "return_tx": gettext_noop("Return receipts"),
    "returns_value": gettext_noop("Returns"),
    "sale_tx": gettext_noop("Sale receipts"),
    "served": gettext_noop("People served"),
    "service_ms": gettext_noop("Service time"),
    "services": gettext_noop("Services"),
    "sightings": gettext_noop("Wi-Fi sightings"),
    "sku_receipts": gettext_noop("Receipts with the product"),
    "staff_in": gettext_noop("Staff in"),
    "staff_out": gettext_noop("Staff out"),
    "stay_ms": gettext_noop("Length of stay"),
    "units_returned": gettext_noop("Items returned"),
    "units_sold": gettext_noop("Items sold"),
    "wait_ms": gettext_noop("Waiting time"),
    "within_target": gettext_noop("People served in time"),
    "zero_tx": gettext_noop("Receipts for zero"),
}
METRIC_NAMES = {
    "avg_items_per_transaction": gettext_noop("Items per receipt"),
    "avg_transaction_value": gettext_noop("Average receipt"),
    "count_drift": gettext_noop("People in minus people out"),
    "gross_sales": gettext_noop("Gross sales"),
    "group_traffic_in": gettext_noop("Groups in"),
    "net_items_count": gettext_noop("Items sold"),
    "net_sales": gettext_noop("Net sales"),
    "return_rate": gettext_noop("Return rate"),
    "return_transactions_count": gettext_noop("Return receipts"),
    "returns_value": gettext_noop("Returns"),
    "sales_transactions_count": gettext_noop("Sale receipts"),
    "total_transactions_count": gettext_noop("Receipts"),
    "traffic_in": gettext_noop("Visitors"),
    "traffic_out": gettext_noop("People out"),
}
"""Metrics that alert rules can watch."""
DIMENSION_NAMES = {
    "age_band": gettext_noop("age"),
    "currency": gettext_noop("currency"),
    "gender": gettext_noop("gender"),
    "kind": gettext_noop("kind"),
    "line": gettext_noop("door"),
    "payment_type": gettext_noop("paid by"),
    "provider": gettext_noop("provider"),
    "queue": gettext_noop("queue"),
    "role": gettext_noop("role"),
    "sensor_id": gettext_noop("sensor"),
    "sku": gettext_noop("product"),
    "source": gettext_noop("source"),
    "till": gettext_noop("till"),
    "with_sku": gettext_noop("bought with"),
    "zone": gettext_noop("zone"),
}
StateUnit = Literal["n", "money", "ms", "celsius", "mm", "text"]
_MONEY = frozenset(
    {"basket_value", "discounts", "discounts_returned", "gross_sales", "net_sales", "payments", "returns_value"}
    | {"value_min", "value_max"}
)
_BIN = re.compile(r"(?P<of>[a-z]+)_(?P<number>\d+)")
_OF_BINS = {
    "dwell": gettext_noop("Time in the zone"),
    "lines": gettext_noop("Receipt lines"),
    "stay": gettext_noop("Length of stay"),
    "units": gettext_noop("Items on a receipt"),
    "value": gettext_noop("Receipt value"),
    "wait": gettext_noop("Waiting time"),
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
