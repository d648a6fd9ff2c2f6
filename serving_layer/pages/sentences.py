"""Sentences that are made in English where they arise, as pages and reports show them in other languages.

What an error or an alert says is the same in logs, in commands and over REST, so it is written in English. The
catalogue has these sentences as patterns, `There is no store {name}.`, and what fits a pattern is shown in its
translation, with the same values. What fits none stays as it is.
"""

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from functools import cache
from types import MappingProxyType

from master_dataset.registry.stores import Store
from serving_layer.pages.cells import metric_name, source_name
from serving_layer.pages.figures import figure, plain_number
from serving_layer.pages.language import current, gettext_noop, ngettext
from serving_layer.pages.language import gettext as _
from views.alerts.rule import Rule, Silence, Threshold, WindowLength
from views.alerts.rule_metrics import alertable_metrics

MAX_CHARACTERS = 2_000
"""Longer sentences stay as they are."""
STORES_SHOWN = 5
"""Stores of a rule that are named."""

KEYS = (
    gettext_noop("The request has no key."),
    gettext_noop("The key of the request is unknown, expired or revoked."),
    gettext_noop("The key of the request is wrong, as were too many others from this address."),
    gettext_noop("The key of the request does not have the scope `{scope}`."),
    gettext_noop("This needs the scope `{scope}`, and the request has no key."),
    gettext_noop("The header `Authorization` has no bearer token."),
    gettext_noop("Send the header `Authorization: Bearer` with a key."),
    gettext_noop("Send a key with the scope `{scope}`: `galatea keys create --scope {scope}` makes one."),
    gettext_noop("Ask for another one."),
    gettext_noop("Wait a minute, then send a valid key."),
    gettext_noop("Sign in with a key."),
    gettext_noop("Sign in, or send a key."),
    gettext_noop("This needs a key, and the request has none."),
    gettext_noop("The saved view was made with another key."),
    gettext_noop("The share link was made with another key."),
    gettext_noop("Use that key, or one with the scope `configure`."),
    gettext_noop("`operate` changes what every tenant sees, so a key for one tenant cannot have it."),
    gettext_noop("Use the tenant `*`, or leave the scope out."),
    gettext_noop("Too many unknown sessions came from this address."),
    gettext_noop("Wait a minute, then try again."),
)
LOAD = (
    gettext_noop("{number} requests of this key are already in progress."),
    gettext_noop("{number} requests of this share link are already in progress."),
    gettext_noop("This key may send {number} requests per second with the scope `{scope}`."),
    gettext_noop("This share link may send {number} requests per second with the scope `{scope}`."),
    gettext_noop("Wait for a response, then try again."),
    gettext_noop("Wait a second, then try again."),
    gettext_noop("Cassandra did not answer: {why}."),
    gettext_noop("Try again; `galatea status` says what is wrong."),
    gettext_noop("Try again."),
    gettext_noop("Send it again; it is safe to repeat."),
    gettext_noop("The answer is longer than {number} MiB as JSON."),
    gettext_noop("No generation of the speed layer is published yet."),
    gettext_noop("The cells of publication `{number}` were collected at {time} UTC."),
    gettext_noop("Store `{store}` has amounts in {currencies}."),
    gettext_noop("Add `by=currency`, or leave the store out."),
    gettext_noop("A rollback is already in progress."),
)
NAMES = (
    gettext_noop("There is no alert `{name}`."),
    gettext_noop("There is no annotation `{name}`."),
    gettext_noop("There is no category `{name}`."),
    gettext_noop("There is no kind `{name}`."),
    gettext_noop("There is no metric `{name}`."),
    gettext_noop("There is no period `{name}`."),
    gettext_noop("There is no publication `{name}`."),
    gettext_noop("There is no recompute `{name}`."),
    gettext_noop("There is no rule `{name}`."),
    gettext_noop("There is no saved view `{name}`."),
    gettext_noop("There is no share link `{name}`."),
    gettext_noop("There is no source `{name}`."),
    gettext_noop("There is no state `{name}`."),
    gettext_noop("There is no store `{name}`."),
    gettext_noop("There is no tenant `{name}`."),
    gettext_noop("There is no view `{name}`."),
    gettext_noop("There is no floor plan of store `{name}`."),
    gettext_noop("There is no `{argument}={value}`."),
    gettext_noop("No store is registered yet."),
    gettext_noop("Did you mean `{name}`?"),
    gettext_noop("Use one of: {names}."),
    gettext_noop("Upload its image first."),
    gettext_noop("Register its stores first: galatea stores load FILE"),
    gettext_noop("Leave `tenant` out."),
    gettext_noop("Name one tenant."),
    gettext_noop("Leave it out."),
)
DAYS = (
    gettext_noop("A period needs a day."),
    gettext_noop("Choose the first and the last day."),
    gettext_noop("The first day, {first}, is after the last one, {last}."),
    gettext_noop("Swap `first` and `last`."),
    gettext_noop("There is no data from {first} to {last}."),
    gettext_noop("Choose days from {first} to {last}."),
    gettext_noop("{number} days are too many for one page."),
    gettext_noop("Choose at most {number} days: about ten years."),
    gettext_noop("`grain={grain}` needs {least} to {most} days, and the page is about {number}."),
    gettext_noop("Choose other days, or leave `grain` out."),
    gettext_noop("`{name}` is `{day}`, and the years {first} to {last} are kept."),
    gettext_noop("Name a day of these years, or leave `{name}` out."),
    gettext_noop("`day` is `{day}`, and reports are about days from {first} to {last}."),
    gettext_noop("Name one of these days, or leave `day` out."),
    gettext_noop("There is no time zone `{zone}`."),
    gettext_noop("The form names no first day."),
    gettext_noop("Go back and choose one."),
    gettext_noop("`{name}` is not a valid date."),
    gettext_noop("Write one such as `2026-11-21`."),
    gettext_noop("`from` is not a time with an offset."),
    gettext_noop("Open an hour from the chart of a store."),
    gettext_noop("`{argument}={text}` is before the years that Galatea keeps."),
    gettext_noop("Use a shorter time, such as `{argument}=-1y`."),
)
ARGUMENTS = (
    gettext_noop("{given} cannot be read."),
    gettext_noop("{given} is not a whole number."),
    gettext_noop("Send a whole number, such as {example}."),
    gettext_noop("{given} is not a number."),
    gettext_noop("Send a number, such as {example}."),
    gettext_noop("{given} is neither true nor false."),
    gettext_noop("{given} is not a date."),
    gettext_noop("{given} is not a date with a time and an offset."),
    gettext_noop("Send one such as {example}."),
    gettext_noop("{given} is out of range."),
    gettext_noop("Send at least {bound}, such as {example}."),
    gettext_noop("Send at most {bound}, such as {example}."),
    gettext_noop("Send at most {number}."),
    gettext_noop("`{name}` is too long."),
    gettext_noop("`{name}` is too short."),
    gettext_noop("At most {number} characters are read."),
    gettext_noop("Give it {number} character or more."),
    gettext_noop("Give it {number} characters or more."),
    gettext_noop("`{name}` has characters or a form that it cannot have."),
    gettext_noop("Leave out control characters, and write it as `/docs` describes it."),
    gettext_noop("`{name}` is empty."),
    gettext_noop("Send 1 to {number} characters."),
    gettext_noop("`{name}` has {number} characters."),
    gettext_noop("`{name}` has a character that is not visible, {character}."),
    gettext_noop("`after` is not a valid token."),
    gettext_noop("Use `next` of the page before, or leave it out."),
    gettext_noop("`after` belongs to another request."),
    gettext_noop("Repeat the arguments of the page before, or leave `after` out."),
    gettext_noop("`publication` and `recompute` cannot be combined."),
    gettext_noop("Leave one of them out."),
)
FORMS = (
    gettext_noop("This is not a browser form."),
    gettext_noop("The form cannot be read."),
    gettext_noop("The form is not from this session."),
    gettext_noop("The form was not sent by a page of this address."),
    gettext_noop("Open the page again, and send its form from there."),
    gettext_noop("Open the page again, and send its form."),
    gettext_noop("The form does not say what to do."),
    gettext_noop("Use one of its buttons."),
    gettext_noop("Go back and correct it."),
    gettext_noop("The body of the request is longer than {number} bytes."),
    gettext_noop("Choose a smaller file."),
    gettext_noop("Send less in a request."),
)
SAVED = (
    gettext_noop("This API process does not serve annotations, saved views or share links."),
    gettext_noop("Send the request to another API process."),
    gettext_noop("This cannot be shared."),
    gettext_noop("The page `{path}` cannot be shared."),
    gettext_noop("Share the overview or the page of a store."),
    gettext_noop("There is no page `{path}` to keep."),
    gettext_noop("The address is longer than {number} characters."),
    gettext_noop("This page shows no store."),
    gettext_noop("Choose at least one, and share it then."),
    gettext_noop("The form does not say when the link expires."),
    gettext_noop("Choose one of the times."),
    gettext_noop("There is no such share link."),
    gettext_noop("This share link has expired."),
    gettext_noop("This share link was revoked."),
    gettext_noop("Ask the sender for a new link."),
    gettext_noop("Too many unknown share links came from this address."),
    gettext_noop("This is not what the shared page shows."),
    gettext_noop("The tenant already has {number} saved views, the maximum."),
    gettext_noop("The tenant `{tenant}` already has {number} open share links, the maximum."),
    gettext_noop("This key has made {number} share links, most of which have ended."),
    gettext_noop("Revoke some that are no longer needed."),
    gettext_noop("Use another key, or wait: those that have ended are forgotten after {number} days."),
    gettext_noop("The tenant `{tenant}` would have {number} annotations, and may have {most}."),
    gettext_noop("Remove some that are no longer needed."),
    gettext_noop("`first_day` or `last_day` is out of range."),
    gettext_noop("`last_day` is before `first_day`."),
    gettext_noop("Swap them; `last_day` is included."),
    gettext_noop("The range has more than {number} days."),
    gettext_noop("Add several annotations."),
    gettext_noop("Use {first} to {last}."),
)
RULES = (
    gettext_noop("The form does not say which version it was made from."),
    gettext_noop("Open the rule again."),
    gettext_noop("The rule `{rule}` was changed since you read it."),
    gettext_noop("Read it again, and change what it says now."),
    gettext_noop("There is a rule `{rule}` already."),
    gettext_noop("Change that one, or choose another `id`."),
    gettext_noop("The tenant `{tenant}` would have {number} rules, and may have {most}."),
    gettext_noop("A bound needs exactly one of `above` and `below`."),
    gettext_noop("Write one of them, or two rules for both."),
    gettext_noop("`{field}` is {bound} percent, and must be 1 to {most}."),
    gettext_noop("Write how far the window may lie from the one a week before."),
    gettext_noop("`{field}` has too many decimals."),
    gettext_noop("Write at most {number}."),
    gettext_noop("Write a number in digits."),
    gettext_noop("Write {number} or more."),
    gettext_noop("Write {number} or less."),
    gettext_noop("Write less than {number}."),
    gettext_noop("Write a bound above {number}."),
    gettext_noop("Write 0 to {number}."),
    gettext_noop("Write a value of that type."),
    gettext_noop("Write a shorter one."),
    gettext_noop("`{field}` is missing."),
    gettext_noop("Add `{field}`."),
    gettext_noop("`{field}` cannot be read: {why}."),
    gettext_noop("`minutes` is {number}: every store is silent for that long from time to time."),
    gettext_noop("`minutes` is {number}, more than a day."),
    gettext_noop("`minutes` is {number}; a level is reset with each business day."),
    gettext_noop("`name` is longer than {number} bytes."),
    gettext_noop("`id` is `{id}`, which is not a valid id."),
    gettext_noop("`stores` is empty, so the rule can never fire."),
    gettext_noop("`stores` names `{store}`, which is not a store of the tenant `{tenant}`."),
    gettext_noop("None of its stores has opening hours, so the rule can never fire."),
    gettext_noop("Register `opening_hours`, or write `hours: always`."),
    gettext_noop("None of its stores is open for a whole `{window}`."),
    gettext_noop(
        "Watches nothing: this release cannot read it, as a newer one may have written it. Replace or remove it."
    ),
    gettext_noop("Write a shorter one, or `hours: always`."),
)
FLOOR_PLANS = (
    gettext_noop("The image is empty."),
    gettext_noop("Choose a PNG, JPEG or WebP file."),
    gettext_noop("The image is no PNG, JPEG or WebP."),
    gettext_noop("Export it as PNG, JPEG or WebP."),
    gettext_noop("The image is SVG, which can contain scripts, so it is not accepted."),
    gettext_noop("Export it as PNG."),
    gettext_noop("The image has {number} bytes, more than {most}."),
    gettext_noop("Save it smaller, as PNG with few colours or as WebP."),
    gettext_noop("The floor plan was changed in the meantime."),
    gettext_noop("Read it again, and change what it is now."),
    gettext_noop("Correct it; nothing was changed."),
    gettext_noop("`{field}` is no zone of the store: `{zone}`."),
)
ALARMS = (
    gettext_noop("The last publication found {number} repeated deliveries in a different partition from the first."),
    gettext_noop(
        "Publication `{number}` corrected {cells} cells, and nothing explains why they showed different values before."
    ),
    gettext_noop("The corrections of publication `{number}` have not been recorded yet."),
    gettext_noop("Nothing was published for half the lifetime of speed rows; answers end at {time}Z."),
    gettext_noop(
        "The published cut is nearly as old as the lifetime of speed rows: merged answers are rejected or miss sales."
    ),
    gettext_noop("The `{process}` process no longer reports its progress."),
    gettext_noop("The `{process}` process makes no progress, with {number} unread records in {place}."),
    gettext_noop("Queries read generation {number}, which is behind the speed layer in {place}."),
    gettext_noop("The last publication included records with timestamps before the previous cut: {days}."),
    gettext_noop(
        "Webhook endpoints failing for more than an hour: {number}. Later alerts wait until these calls succeed."
    ),
    gettext_noop("Webhook endpoints that have rejected every call for more than an hour: {number}."),
    gettext_noop("Webhook endpoints that failed for too long and are no longer called: {number}."),
    gettext_noop("The `dispatcher` process no longer reports the state of webhook endpoints."),
    gettext_noop("Alert rules have not evaluated the events received since then, or their alerts are not listed yet."),
    gettext_noop("Alerts ignore events of {places} that are in the wrong partition for their store."),
    gettext_noop("Alerts have not been compared with publication `{number}` yet."),
)
ERRORS = (*KEYS, *LOAD, *NAMES, *DAYS, *ARGUMENTS, *FORMS, *SAVED, *RULES, *FLOOR_PLANS, *ALARMS)
"""What the errors and alarms say that visitors of pages meet. A test finds each of them in the code that says it."""

SILENCES = (
    gettext_noop("The sensor {sensor} of store {store} has been silent for {minutes} minutes."),
    gettext_noop("The source {source} of store {store} has been silent for {minutes} minutes."),
)
"""What alerts say whose value is minutes."""

ALERTS = (
    gettext_noop("{metric} of store {store}: {value}, above {bound}."),
    gettext_noop("{metric} of store {store}: {value}, below {bound}."),
    gettext_noop(
        "{metric} of store {store}: {value}, more than {bound} % above the {baseline} of the same time a week before."
    ),
    gettext_noop(
        "{metric} of store {store}: {value}, more than {bound} % below the {baseline} of the same time a week before."
    ),
    gettext_noop("The queue {queue} of store {store} has been above {bound} for {minutes} minutes."),
    gettext_noop("The queue {queue} of store {store} has been above {bound}."),
    gettext_noop("The number of people inside of store {store} has been above {bound} for {minutes} minutes."),
    gettext_noop("The number of people inside of store {store} has been above {bound}."),
    *SILENCES,
)
"""What alerts say when they are raised."""


def translated(sentence: str, store: Store | None = None) -> str:
    """What an error or an alert says in the language of this request: one sentence or several.

    A sentence that fits no pattern stays as it is. In English, metrics of alerts get the names that pages have.

    Args:
        sentence: As it was made, in English.
        store: That an alert is about: it is called by its name, and amounts have its currency. None if it is unknown.
    """
    if len(sentence) > MAX_CHARACTERS:
        return sentence
    texts = ALERTS if current() == "en" else (*ERRORS, *ALERTS)
    whole = _translated(sentence, texts, store)
    return whole or " ".join(_translated(each, texts, store) or each for each in _END.split(sentence))


def unit_of(sentence: str) -> str:
    """The unit of the numbers of an alert: `money`, `percent`, `minutes`, or empty for a plain number."""
    for text, pattern in _patterns(ALERTS):
        if found := pattern.fullmatch(sentence):
            return "minutes" if text in SILENCES else _unit(found.groupdict())
    return ""


def _translated(sentence: str, texts: Sequence[str], store: Store | None) -> str | None:
    for text, pattern in _patterns(texts):
        if found := pattern.fullmatch(sentence):
            values = found.groupdict()
            unit = _unit(values) if store else ""
            written = {name: _value(name, value) for name, value in values.items()}
            if store and text in ALERTS:
                written["store"] = store.name or store.id
            for name in ("value", "baseline", "bound"):
                is_share = name == "bound" and "baseline" in values
                if store and unit and not is_share and _NUMBER.fullmatch(values.get(name, "")):
                    written[name] = str(figure(Decimal(values[name]), unit, store.currency.code))
            return _(text).format_map(written)
    return None


def _unit(values: Mapping[str, str]) -> str:
    """The unit of the metric that a sentence names: `money` or `percent`; empty for any other, or none."""
    name = values.get("metric")
    unit = next((metric.unit for metric in alertable_metrics().values() if metric.name == name), "")
    return unit if unit in {"money", "percent"} else ""


_END = re.compile(r"(?<=[.?]) ")


def rule_in_words(rule: Rule, names: Mapping[str, str] = MappingProxyType({})) -> str:
    """When a rule alerts, and for which stores. `names`: of stores by id; without one, the id is shown."""
    values = {"condition": _condition(rule), "stores": ""}
    is_open = rule.only_open if isinstance(rule, Threshold) else isinstance(rule, Silence) and rule.hours == "open"
    if rule.stores is None:
        everywhere = _("Alerts when {condition}, in every store.")
        return (_("Alerts when {condition}, in every store, in opening hours.") if is_open else everywhere).format(
            **values
        )
    values["stores"] = _listed([names.get(store, store) for store in rule.stores])
    there = _("Alerts when {condition}, in {stores}.")
    return (_("Alerts when {condition}, in {stores}, in opening hours.") if is_open else there).format(**values)


WINDOWS: Mapping[WindowLength, str] = {
    "15m": gettext_noop("per quarter of an hour"),
    "hour": gettext_noop("per hour"),
    "day": gettext_noop("per business day"),
}


def _condition(rule: Rule) -> str:
    if isinstance(rule, Threshold):
        is_above, bound = rule.above is not None, rule.above if rule.above is not None else rule.below
        if rule.versus:
            above = _("{metric} {window} is more than {bound} % above the same time a week before")
            below = _("{metric} {window} is more than {bound} % below the same time a week before")
        else:
            above, below = _("{metric} {window} is above {bound}"), _("{metric} {window} is below {bound}")
        text = above if is_above else below
        return text.format(metric=metric_name(rule.metric), window=_(WINDOWS[rule.window]), bound=plain_number(bound))
    if isinstance(rule, Silence):
        text = ngettext(
            "nothing arrives for {minutes} minute from: {source}",
            "nothing arrives for {minutes} minutes from: {source}",
            rule.minutes,
        )
        if rule.per == "sensor":
            text = ngettext(
                "nothing arrives for {minutes} minute from a sensor of: {source}",
                "nothing arrives for {minutes} minutes from a sensor of: {source}",
                rule.minutes,
            )
        return text.format(minutes=rule.minutes, source=source_name(rule.source))
    text = _("a queue is longer than {above}") if rule.of == "queue" else _("more than {above} people are inside")
    if rule.minutes and rule.of == "queue":
        text = ngettext(
            "a queue is longer than {above} for {minutes} minute",
            "a queue is longer than {above} for {minutes} minutes",
            rule.minutes,
        )
    elif rule.minutes:
        text = ngettext(
            "more than {above} people are inside for {minutes} minute",
            "more than {above} people are inside for {minutes} minutes",
            rule.minutes,
        )
    return text.format(above=rule.above, minutes=rule.minutes)


def _listed(stores: Sequence[str]) -> str:
    gap = "; " if any("," in store for store in stores[:STORES_SHOWN]) else ", "
    shown, more = gap.join(stores[:STORES_SHOWN]), len(stores) - STORES_SHOWN
    if more <= 0:
        return shown
    text = ngettext("{stores} and {number} more store", "{stores} and {number} more stores", more)
    return text.format(stores=shown, number=more)


@cache
def _patterns(texts: Sequence[str]) -> Sequence[tuple[str, re.Pattern[str]]]:
    """Those with most words of their own first: another one may fit too, with more left to its values."""
    ordered = sorted(texts, key=lambda text: len(_PLACE.sub("", text)), reverse=True)
    return [(text, _pattern(text)) for text in ordered]


_PLACE = re.compile(r"\{(\w+)\}")


def _pattern(text: str) -> re.Pattern[str]:
    written, seen = "", set[str]()
    for number, part in enumerate(_PLACE.split(text)):
        if number % 2 == 0:
            written += re.escape(part)
        else:
            written += f"(?P={part})" if part in seen else f"(?P<{part}>.+?)"
            seen.add(part)
    return re.compile(written, re.DOTALL)


def _value(name: str, value: str) -> str:
    """A value of a sentence as people read it."""
    if name == "metric":
        ids = {metric.name: id_ for id_, metric in alertable_metrics().items()}
        return metric_name(ids[value]) if value in ids else value
    if name == "source":
        return source_name(value)
    if name in {"value", "bound", "baseline"} and _NUMBER.fullmatch(value):
        return plain_number(Decimal(value))
    return value


_NUMBER = re.compile(r"-?[0-9]{1,40}(\.[0-9]{1,40})?")
