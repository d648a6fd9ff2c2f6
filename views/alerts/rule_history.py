"""Which version of a rule, and which facts of a store, hold for a record: those effective when it was received.

Versions are only ever added, each effective a while after it was written. Whoever reads a record uses the same ones,
however late or often, because nobody may go on to a record before the book was read after the moment at which the last
version that could be effective for it was written.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from operator import itemgetter
from typing import Generic, Literal, Protocol, TypeVar

import msgspec
import structlog

from master_dataset.registry.stores import Store
from views.alerts.rule import Rule
from views.alerts.rule_metrics import source_topic
from views.alerts.shop_clock import ShopClock

_PAGES = 64
"""How many of them are kept, with the rules that they sort by source."""
_Named = tuple[str, str]
"""Tenant and id of a rule."""
Key = TypeVar("Key", bound=Hashable)
Said = TypeVar("Said")
log = structlog.get_logger()


class StoredVersion(msgspec.Struct, frozen=True, order=True):
    """`effective_ms`: from which received time on. `body`: JSON of the rule or store; empty: it is no more."""

    effective_ms: int
    kind: Literal["rule", "store"]
    id: str
    number: int
    body: str


@dataclass(frozen=True)
class VersionedRule:
    """A rule and the number of its version."""

    rule: Rule
    version: int

    @cached_property
    def key(self) -> str:
        """Names both."""
        return f"{self.rule.tenant}/{self.rule.id}#{self.version}"


class _History(Generic[Said]):
    """What one rule or store was from version to version: each is read when it is asked for first."""

    def __init__(self, read: Callable[[StoredVersion], Said | None]) -> None:
        self._read = read
        self._places: list[int] = []
        self._versions: list[StoredVersion] = []
        self._said: dict[int, Said | None] = {}

    def add(self, place: int, version: StoredVersion) -> None:
        self._places.append(place)
        self._versions.append(version)

    def before(self, place: int) -> Said | None:
        """By the last version before that place in the book; None: by then it is not, or no more."""
        at = bisect_left(self._places, place) - 1
        if at < 0:
            return None
        if at not in self._said:
            self._said[at] = self._read(self._versions[at])
        return self._said[at]


class _Held(Mapping[Key, Said]):
    """What all versions before one place in the book say together, without a copy of it."""

    def __init__(self, histories: Mapping[Key, _History[Said]], place: int) -> None:
        self._histories, self._place = histories, place

    def __getitem__(self, key: Key) -> Said:
        said = self._histories[key].before(self._place)
        if said is None:
            raise KeyError(key)
        return said

    def __iter__(self) -> Iterator[Key]:
        return (key for key, history in self._histories.items() if history.before(self._place) is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)


class _Rules(_Held[_Named, VersionedRule]):
    @cached_property
    def by_topic(self) -> Mapping[str, Sequence[VersionedRule]]:
        found: dict[str, list[VersionedRule]] = {}
        for _, each in sorted(self.items(), key=itemgetter(0)):
            source = source_topic(each.rule)
            if source is None and each.rule.on:
                warn_unusable_rule(each.key, "its metric or source is not there")
            elif source is not None and each.rule.on:
                found.setdefault(source, []).append(each)
        return found


@dataclass(frozen=True)
class RuleSet:
    """What holds from one moment until the next version is effective. `rules`: by tenant and id; `shops`: by id."""

    rules: _Rules
    shops: Mapping[str, ShopClock]

    @property
    def by_topic(self) -> Mapping[str, Sequence[VersionedRule]]:
        """Source to the rules that watch it, in a fixed order. A rule that nobody can follow is said and left out."""
        return self.rules.by_topic

    def rules_of(self, topic: str, shop: ShopClock) -> Sequence[VersionedRule]:
        """Those that watch this store, by events of this source."""
        store = shop.store
        return [each for each in self.by_topic.get(topic, ()) if each.rule.watches(store.id, store.tenant)]


class RuleHistory:
    """Every version there was when it was read. It grows with their number, however many pages they make."""

    def __init__(self, versions: Iterable[StoredVersion], complete_before_ms: int) -> None:
        """`complete_before_ms`: no version that is added later is effective before that received time."""
        self.complete_before_ms = complete_before_ms
        ordered = sorted(set(versions))
        self._from = [version.effective_ms for version in ordered]
        self._rules: dict[_Named, _History[VersionedRule]] = {}
        self._shops: dict[str, _History[ShopClock]] = {}
        self._of_rules: list[int] = []
        for place, version in enumerate(ordered):
            if version.kind == "store":
                self._shops.setdefault(version.id, _History(_shop)).add(place, version)
            else:
                tenant, _, name = version.id.partition("/")
                self._rules.setdefault((tenant, name), _History(_numbered)).add(place, version)
                self._of_rules.append(place)
        self._page_of = lru_cache(_PAGES)(self._page)
        self._rules_of = lru_cache(_PAGES)(lambda place: _Rules(self._rules, place))

    def at(self, log_ms: int) -> RuleSet:
        """What holds for a record received then. The same object as long as nothing changes."""
        return self._page_of(bisect_right(self._from, log_ms))

    def _page(self, place: int) -> RuleSet:
        # Where only stores have changed, the rules are the same, and sorted once.
        newest = bisect_left(self._of_rules, place) - 1
        rules = self._rules_of(self._of_rules[newest] + 1 if newest >= 0 else 0)
        return RuleSet(rules, _Held(self._shops, place))


class RuleStore(Protocol):
    """Where the book is."""

    def read(self) -> RuleHistory:
        """As of now. Unavailable if nobody can tell."""


def _shop(version: StoredVersion) -> ShopClock:
    return ShopClock(Store.from_json(version.body))


def _numbered(version: StoredVersion) -> VersionedRule | None:
    rule = decode_rule(version.id, version.number, version.body)
    return None if rule is None else VersionedRule(rule, version.number)


def decode_rule(id_: str, number: int, body: str) -> Rule | None:
    """The rule that a version says; None if it is no more, or as no rule of this release is: then that is said."""
    if not body:
        return None
    try:
        rule: Rule = msgspec.json.decode(body, type=Rule)
    except msgspec.MsgspecError as error:
        warn_unusable_rule(f"{id_}#{number}", str(error))
        return None
    return rule


@cache
def warn_unusable_rule(key: str, why: str) -> None:
    """Once in a process: of a rule that is stored, and watches nothing here. `left_out`: how many were found by now."""
    log.warning("alerts.rule_left_out", rule=key, why=why, left_out=unusable_rules() + 1)


def unusable_rules() -> int:
    """How many versions of rules were found so by this process."""
    return warn_unusable_rule.cache_info().currsize


def rule_version(rule: Rule, number: int, effective_ms: int) -> StoredVersion:
    """A rule as the book keeps it."""
    body = msgspec.json.encode(rule).decode()
    return StoredVersion(effective_ms, "rule", f"{rule.tenant}/{rule.id}", number, body)


def store_version(store: Store, number: int, effective_ms: int) -> StoredVersion:
    """A store's facts as the book keeps them."""
    return StoredVersion(effective_ms, "store", store.id, number, store.to_json())
