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
from serving_layer.pages.language import current, ngettext, noted
from serving_layer.pages.language import gettext as _
from views.alerts.rule import Rule, Silence, Threshold, WindowLength
from views.alerts.rule_metrics import alertable_metrics

MAX_CHARACTERS = 2_000
"""Longer sentences stay as they are."""
STORES_SHOWN = 5
"""Stores of a rule that are named."""

KEYS = (
    noted("The request has no key."),
    noted("The key of the request is unknown, expired or revoked."),
    noted("The key of the request is wrong, as were too many others from this address."),
    noted("The key of the request does not have the scope `{scope}`."),
    noted("This needs the scope `{scope}`, and the request has no key."),
    noted("The header `Authorization` has no bearer token."),
    noted("Send the header `Authorization: Bearer` with a key."),
    noted("Send a key with the scope `{scope}`: `galatea keys create --scope {scope}` makes one."),
    noted("Ask for another one."),
    noted("Wait a minute, then send a valid key."),
    noted("Sign in with a key."),
    noted("Sign in, or send a key."),
    noted("This needs a key, and the request has none."),
    noted("The saved view was made with another key."),
    noted("The share link was made with another key."),
    noted("Use that key, or one with the scope `configure`."),
    noted("`operate` changes what every tenant sees, so a key for one tenant cannot have it."),
    noted("Use the tenant `*`, or leave the scope out."),
    noted("Too many unknown sessions came from this address."),
    noted("Wait a minute, then try again."),
)
LOAD = (
    noted("{number} requests of this key are already in progress."),
    noted("{number} requests of this share link are already in progress."),
    noted("This key may send {number} requests per second with the scope `{scope}`."),
    noted("This share link may send {number} requests per second with the scope `{scope}`."),
    noted("Wait for a response, then try again."),
    noted("Wait a second, then try again."),
    noted("Cassandra did not answer: {why}."),
    noted("Ask again; `galatea status` says what is wrong."),
    noted("Ask again."),
    noted("Try again."),
    noted("Send it again; it is safe to repeat."),
    noted("The answer is longer than {number} MiB as JSON."),
    noted("No generation of the speed layer is published yet."),
    noted("The cells of publication `{number}` were collected at {time} UTC."),
    noted("Store `{store}` has amounts in {currencies}."),
    noted("Add `by=currency`, or leave the store out."),
    noted("A rollback is already in progress."),
)
NAMES = (
    noted("There is no alert `{name}`."),
    noted("There is no annotation `{name}`."),
    noted("There is no category `{name}`."),
    noted("There is no kind `{name}`."),
    noted("There is no metric `{name}`."),
    noted("There is no period `{name}`."),
    noted("There is no publication `{name}`."),
    noted("There is no recompute `{name}`."),
    noted("There is no rule `{name}`."),
    noted("There is no saved view `{name}`."),
    noted("There is no share link `{name}`."),
    noted("There is no source `{name}`."),
    noted("There is no state `{name}`."),
    noted("There is no store `{name}`."),
    noted("There is no tenant `{name}`."),
    noted("There is no view `{name}`."),
    noted("There is no floor plan of store `{name}`."),
    noted("There is no `{argument}={value}`."),
    noted("No store is registered yet."),
    noted("Did you mean `{name}`?"),
    noted("Use one of: {names}."),
    noted("Upload its image first."),
    noted("Register its stores first: galatea stores load FILE"),
    noted("Leave `tenant` out."),
    noted("Name one tenant."),
    noted("Leave it out."),
)
DAYS = (
    noted("A period needs a day."),
    noted("Choose the first and the last day."),
    noted("The first day, {first}, is after the last one, {last}."),
    noted("Swap `first` and `last`."),
    noted("There is no data from {first} to {last}."),
    noted("Choose days from {first} to {last}."),
    noted("{number} days are too many for one page."),
    noted("Choose at most {number} days: about ten years."),
    noted("`grain={grain}` needs {least} to {most} days, and the page is about {number}."),
    noted("Choose other days, or leave `grain` out."),
    noted("`day` is `{day}`, and the years {first} to {last} are kept."),
    noted("Name a day of these years, or leave `day` out."),
    noted("`day` is `{day}`, and reports are about days from {first} to {last}."),
    noted("Name one of these days, or leave `day` out."),
    noted("There is no time zone `{zone}`."),
    noted("The form names no first day."),
    noted("Go back and choose one."),
    noted("`{name}` is not a valid date."),
    noted("Write one such as `2026-11-21`."),
    noted("`from` is not a time with an offset."),
    noted("Open an hour from the chart of a store."),
    noted("`{argument}={text}` is before the years that Galatea keeps."),
    noted("Ask for less, such as `{argument}=-1y`."),
)
ARGUMENTS = (
    noted("{given} cannot be read."),
    noted("{given} is not a whole number."),
    noted("Send a whole number, such as {example}."),
    noted("{given} is not a number."),
    noted("Send a number, such as {example}."),
    noted("{given} is neither true nor false."),
    noted("{given} is not a date."),
    noted("{given} is not a date with a time and an offset."),
    noted("Send one such as {example}."),
    noted("{given} is out of range."),
    noted("Send at least {bound}, such as {example}."),
    noted("Send at most {bound}, such as {example}."),
    noted("Send at most {number}."),
    noted("`{name}` is too long."),
    noted("`{name}` is too short."),
    noted("At most {number} characters are read."),
    noted("Give it {number} character or more."),
    noted("Give it {number} characters or more."),
    noted("`{name}` has characters or a form that it cannot have."),
    noted("Leave out control characters, and write it as `/docs` describes it."),
    noted("`{name}` is empty."),
    noted("Send 1 to {number} characters."),
    noted("`{name}` has {number} characters."),
    noted("`{name}` has a character that is not visible, {character}."),
    noted("`after` is not a valid token."),
    noted("Use `next` of the page before, or leave it out."),
    noted("`after` belongs to another request."),
    noted("Repeat the arguments of the page before, or leave `after` out."),
    noted("`publication` and `recompute` cannot be combined."),
    noted("Leave one of them out."),
)
FORMS = (
    noted("This is not a browser form."),
    noted("The form cannot be read."),
    noted("The form is not from this session."),
    noted("The form was not sent by a page of this address."),
    noted("Open the page again, and send its form from there."),
    noted("Open the page again, and send its form."),
    noted("The form does not say what to do."),
    noted("Use one of its buttons."),
    noted("Go back and correct it."),
    noted("The body of the request is longer than {number} bytes."),
    noted("Choose a smaller file."),
    noted("Send less in a request."),
)
SAVED = (
    noted("This API process does not serve annotations, saved views or share links."),
    noted("Send the request to another API process."),
    noted("This cannot be shared."),
    noted("The page `{path}` cannot be shared."),
    noted("Share the overview or the page of a store."),
    noted("There is no page `{path}` to keep."),
    noted("The address is longer than {number} characters."),
    noted("This page shows no store."),
    noted("Choose at least one, and share it then."),
    noted("The form does not say when the link expires."),
    noted("Choose one of the times."),
    noted("There is no such share link."),
    noted("This share link has expired."),
    noted("This share link was revoked."),
    noted("Ask the sender for a new link."),
    noted("Too many unknown share links came from this address."),
    noted("This is not what the shared page shows."),
    noted("The tenant already has {number} saved views, the maximum."),
    noted("The tenant `{tenant}` already has {number} open share links, the maximum."),
    noted("This key has made {number} share links, most of which have ended."),
    noted("Revoke some that are no longer needed."),
    noted("Use another key, or wait: those that have ended are forgotten after {number} days."),
    noted("The tenant `{tenant}` would have {number} annotations, and may have {most}."),
    noted("Remove some that are no longer needed."),
    noted("`first_day` or `last_day` is out of range."),
    noted("`last_day` is before `first_day`."),
    noted("Swap them; `last_day` is included."),
    noted("The range has more than {number} days."),
    noted("Add several annotations."),
    noted("Use {first} to {last}."),
)
RULES = (
    noted("The form does not say which version it was made from."),
    noted("Open the rule again."),
    noted("The rule `{rule}` was changed since you read it."),
    noted("Read it again, and change what it says now."),
    noted("There is a rule `{rule}` already."),
    noted("Change that one, or choose another `id`."),
    noted("The tenant `{tenant}` would have {number} rules, and may have {most}."),
    noted("A bound needs exactly one of `above` and `below`."),
    noted("Write one of them, or two rules for both."),
    noted("`{field}` is {bound} percent, and must be 1 to {most}."),
    noted("Write how far the window may lie from the one a week before."),
    noted("`{field}` has too many decimals."),
    noted("Write at most {number}."),
    noted("Write a number in digits."),
    noted("Write {number} or more."),
    noted("Write {number} or less."),
    noted("Write less than {number}."),
    noted("Write a bound above {number}."),
    noted("Write 0 to {number}."),
    noted("Write a value of that type."),
    noted("Write a shorter one."),
    noted("`{field}` is missing."),
    noted("Add `{field}`."),
    noted("`{field}` cannot be read: {why}."),
    noted("`minutes` is {number}: every store is silent for that long from time to time."),
    noted("`minutes` is {number}, more than a day."),
    noted("`minutes` is {number}; a level is reset with each business day."),
    noted("`name` is longer than {number} bytes."),
    noted("`id` is `{id}`, which is not a valid id."),
    noted("`stores` is empty, so the rule can never fire."),
    noted("`stores` names `{store}`, which is not a store of the tenant `{tenant}`."),
    noted("None of its stores has opening hours, so the rule can never fire."),
    noted("Register `opening_hours`, or write `hours: always`."),
    noted("None of its stores is open for a whole `{window}`."),
    noted("Watches nothing: this release cannot read it, as a newer one may have written it. Replace or remove it."),
    noted("Write a shorter one, or `hours: always`."),
)
FLOOR_PLANS = (
    noted("The image is empty."),
    noted("Choose a PNG, JPEG or WebP file."),
    noted("The image is no PNG, JPEG or WebP."),
    noted("Export it as PNG, JPEG or WebP."),
    noted("The image is SVG, which can contain scripts, so it is not accepted."),
    noted("Export it as PNG."),
    noted("The image has {number} bytes, more than {most}."),
    noted("Save it smaller, as PNG with few colours or as WebP."),
    noted("The floor plan was changed in the meantime."),
    noted("Read it again, and change what it is now."),
    noted("Correct it; nothing was changed."),
    noted("`{field}` is no zone of the store: `{zone}`."),
)
ALARMS = (
    noted("The last publication found {number} repeated deliveries in a different partition from the first."),
    noted(
        "Publication `{number}` corrected {cells} cells, and nothing explains why they showed different values before."
    ),
    noted("The corrections of publication `{number}` have not been recorded yet."),
    noted("Nothing was published for half the lifetime of speed rows; answers end at {time}Z."),
    noted(
        "The published cut is nearly as old as the lifetime of speed rows: merged answers are rejected or miss sales."
    ),
    noted("The `{process}` process no longer reports its progress."),
    noted("The `{process}` process makes no progress, with {number} unread records in {place}."),
    noted("Queries read generation {number}, which is behind the speed layer in {place}."),
    noted("The last publication included records with timestamps before the previous cut: {days}."),
    noted("Webhook endpoints failing for more than an hour: {number}. Later alerts wait until these calls succeed."),
    noted("Webhook endpoints that have rejected every call for more than an hour: {number}."),
    noted("Webhook endpoints that failed for too long and are no longer called: {number}."),
    noted("The `dispatcher` process no longer reports the state of webhook endpoints."),
    noted("Alert rules have not evaluated the events received since then, or their alerts are not listed yet."),
    noted("Alerts ignore events of {places} that are in the wrong partition for their store."),
    noted("Alerts have not been compared with publication `{number}` yet."),
)
ERRORS = (*KEYS, *LOAD, *NAMES, *DAYS, *ARGUMENTS, *FORMS, *SAVED, *RULES, *FLOOR_PLANS, *ALARMS)
"""What the errors and alarms say that visitors of pages meet. A test finds each of them in the code that says it."""

SILENCES = (
    noted("The sensor {sensor} of store {store} has been silent for {minutes} minutes."),
    noted("The source {source} of store {store} has been silent for {minutes} minutes."),
)
"""What alerts say whose value is minutes."""

ALERTS = (
    noted("{metric} of store {store}: {value}, above {bound}."),
    noted("{metric} of store {store}: {value}, below {bound}."),
    noted(
        "{metric} of store {store}: {value}, more than {bound} % above the {baseline} of the same time a week before."
    ),
    noted(
        "{metric} of store {store}: {value}, more than {bound} % below the {baseline} of the same time a week before."
    ),
    noted("The queue {queue} of store {store} has been above {bound} for {minutes} minutes."),
    noted("The queue {queue} of store {store} has been above {bound}."),
    noted("The number of people inside of store {store} has been above {bound} for {minutes} minutes."),
    noted("The number of people inside of store {store} has been above {bound}."),
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
    "15m": noted("per quarter of an hour"),
    "hour": noted("per hour"),
    "day": noted("per business day"),
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
