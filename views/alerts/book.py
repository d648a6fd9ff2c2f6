"""Which version of a rule, and which facts of a store, hold for a record: those effective when it was received.

Versions are only ever added, each effective a while after it was written. Whoever reads a record uses the same ones,
however late or often, because nobody may go on to a record before the book was read after the moment at which the last
version that could be effective for it was written.
"""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from itertools import accumulate
from typing import Literal, NamedTuple, Protocol

import msgspec
import structlog

from master_dataset.stores import Store
from views.alerts.followed import source_of
from views.alerts.rule import Rule
from views.alerts.shop_clock import ShopClock

log = structlog.get_logger()


class Version(msgspec.Struct, frozen=True, order=True):
    """`effective_ms`: from which received time on. `body`: JSON of the rule or store; empty: it is no more."""

    effective_ms: int
    kind: Literal["rule", "store"]
    id: str
    number: int
    body: str


class Numbered(NamedTuple):
    """A rule and the number of its version."""

    rule: Rule
    version: int

    @property
    def key(self) -> str:
        """Names both."""
        return f"{self.rule.tenant}/{self.rule.id}#{self.version}"


@dataclass(frozen=True)
class Page:
    """What holds from one moment until the next version is effective."""

    rules: Mapping[tuple[str, str], Numbered] = field(default_factory=dict)
    shops: Mapping[str, ShopClock] = field(default_factory=dict)

    def with_version(self, version: Version) -> "Page":
        """The page behind it."""
        if version.kind == "store":
            store = Store.from_json(version.body)
            return Page(self.rules, {**self.shops, version.id: ShopClock(store)})
        tenant, _, name = version.id.partition("/")
        rules = {key: rule for key, rule in self.rules.items() if key != (tenant, name)}
        if (rule := read_version(version.id, version.number, version.body)) is not None:
            rules[tenant, name] = Numbered(rule, version.number)
        return Page(rules, self.shops)

    @cached_property
    def by_topic(self) -> Mapping[str, Sequence[Numbered]]:
        """Source to the rules that watch it, in a fixed order. A rule that nobody can follow is said and left out."""
        found: dict[str, list[Numbered]] = {}
        for _, each in sorted(self.rules.items()):
            source = source_of(each.rule)
            if source is None and each.rule.on:
                say_left_out(each.key, "its metric or source is not there")
            elif source is not None and each.rule.on:
                found.setdefault(source, []).append(each)
        return found

    def rules_of(self, topic: str, shop: ShopClock) -> Sequence[Numbered]:
        """Those that watch this store, by events of this source."""
        store = shop.store
        return [each for each in self.by_topic.get(topic, ()) if each.rule.watches(store.id, store.tenant)]


class Book:
    """Every version there was when it was read."""

    def __init__(self, versions: Iterable[Version], complete_before_ms: int) -> None:
        """`complete_before_ms`: no version that is added later is effective before that received time."""
        ordered = sorted(set(versions))
        self.complete_before_ms = complete_before_ms
        self._from = [version.effective_ms for version in ordered]
        self._pages = list(accumulate(ordered, Page.with_version, initial=Page()))

    def at(self, log_ms: int) -> Page:
        """What holds for a record received then. The same object as long as nothing changes."""
        return self._pages[bisect_right(self._from, log_ms)]


class Shelf(Protocol):
    """Where the book is."""

    def read(self) -> Book:
        """As of now. Unavailable if nobody can tell."""


def read_version(id_: str, number: int, body: str) -> Rule | None:
    """The rule that a version says; None if it is no more, or as no rule of this release is: then that is said."""
    if not body:
        return None
    try:
        rule: Rule = msgspec.json.decode(body, type=Rule)
    except msgspec.MsgspecError as error:
        say_left_out(f"{id_}#{number}", str(error))
        return None
    return rule


@cache
def say_left_out(key: str, why: str) -> None:
    """Once in a process: of a rule that is stored, and watches nothing here. `left_out`: how many were found by now."""
    log.warning("alerts.rule_left_out", rule=key, why=why, left_out=say_left_out.cache_info().currsize + 1)


def rule_version(rule: Rule, number: int, effective_ms: int) -> Version:
    """A rule as the book keeps it."""
    body = msgspec.json.encode(rule).decode()
    return Version(effective_ms, "rule", f"{rule.tenant}/{rule.id}", number, body)


def store_version(store: Store, number: int, effective_ms: int) -> Version:
    """A store's facts as the book keeps them."""
    return Version(effective_ms, "store", store.id, number, store.to_json())
