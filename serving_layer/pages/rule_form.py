"""Between a rule and the fields of its form."""

from collections.abc import Mapping
from typing import Any

from serving_layer.alerts.rule_entry import RuleEntry, fields_of
from serving_layer.pages.alert_line import MINUS, plain
from serving_layer.pages.forms import Fields, first

OF_ALL = ("kind", "id", "name")
OF_KIND = {
    "threshold": ("metric", "window", "hours", "versus"),
    "silence": ("source", "minutes", "per", "hours"),
    "level": ("of", "above", "minutes"),
}
SIDES = ("above", "below")


def rule_of(fields: Fields) -> dict[str, Any]:
    """A rule in the words of `POST /v1/alert-rules`, which knows what is allowed. What is empty is left out."""
    kind = first(fields, "kind")
    names = (*OF_ALL, *OF_KIND.get(kind, ()))
    said: dict[str, Any] = {name: value for name in names if (value := first(fields, name))}
    if kind == "threshold" and first(fields, "side") in SIDES and (bound := first(fields, "bound")):
        said[first(fields, "side")] = bound.replace(",", "").replace(MINUS, "-")
    stores = [store for text in fields.get("stores", []) for store in text.replace(",", " ").split()]
    return said | ({"stores": stores} if stores else {}) | {"on": first(fields, "on") == "yes"}


def filled(entry: RuleEntry) -> Mapping[str, str]:
    """The fields of a rule that is there."""
    rule = entry.rule
    said = fields_of(rule) if rule else {}
    told = {name: str(value) for name, value in said.items() if name not in ("stores", "on", *SIDES)}
    side = next((side for side in SIDES if said.get(side) is not None), "above")
    if told.get("kind") == "threshold":
        told |= {"side": side, "bound": plain(said[side])}
    elif "above" in said:
        told["above"] = str(said["above"])
    if entry.unreadable:
        told["unreadable"] = entry.in_words or ""
    return told | {
        "stores": " ".join(said.get("stores", ())),
        "on": "yes" if said.get("on") or entry.unreadable else "",
        "version": str(entry.version),
        "id": entry.id,
    }
