"""Which version of each rule and store holds for a record: the one in effect when the record was received.

Versions are only appended, and take effect some time after they are written. A reader waits until it has read the
history so late that no further version can be in effect for its record (`complete_before_ms`). So everyone who reads a
record applies the same rules to it, however late and however often.

    StoredVersion, StoredVersion, ... -> RuleHistory -> .at(received) -> RuleSet: the rules and stores of that moment
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

_CACHED_SETS = 64
_RuleName = tuple[str, str]
"""Tenant and id of a rule."""
Key = TypeVar("Key", bound=Hashable)
Parsed = TypeVar("Parsed")
log = structlog.get_logger()


class StoredVersion(msgspec.Struct, frozen=True, order=True):
    """A version of a rule or of a store's facts, as it is stored.

    Attributes:
        effective_ms: The receipt time (ms since 1970) of records from which on it holds.
        kind: Whether it is a version of a rule or of a store.
        id: Of the store, or `tenant/id` of the rule.
        number: Of the version.
        body: JSON of the rule or store; empty if the rule is deleted, with the tenant `OF_NOBODY` if the store is.
    """

    effective_ms: int
    kind: Literal["rule", "store"]
    id: str
    number: int
    body: str


def rule_version(rule: Rule, number: int, effective_ms: int) -> StoredVersion:
    """A version of a rule."""
    body = msgspec.json.encode(rule).decode()
    return StoredVersion(effective_ms, "rule", f"{rule.tenant}/{rule.id}", number, body)


def store_version(store: Store, number: int, effective_ms: int) -> StoredVersion:
    """A version of a store's facts."""
    return StoredVersion(effective_ms, "store", store.id, number, store.to_json())


def decode_rule(id_: str, number: int, body: str) -> Rule | None:
    """The rule of a stored version; None if it is deleted, or not a rule of this release (which is logged)."""
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
    """Log, once per process, that this release cannot evaluate a stored rule."""
    log.warning("alerts.rule_left_out", rule=key, error=why, left_out=unusable_rules() + 1)


def unusable_rules() -> int:
    """How many versions of rules this process could not evaluate."""
    return warn_unusable_rule.cache_info().currsize


@dataclass(frozen=True)
class VersionedRule:
    """A rule and the number of its version."""

    rule: Rule
    version: int

    @cached_property
    def key(self) -> str:
        """Tenant, id and version."""
        return f"{self.rule.tenant}/{self.rule.id}#{self.version}"


class _Timeline(Generic[Parsed]):
    """The versions of one rule or store, each with its position in the whole history. Parsed when first read."""

    def __init__(self, parse: Callable[[StoredVersion], Parsed | None]) -> None:
        self._parse = parse
        self._positions: list[int] = []
        self._versions: list[StoredVersion] = []
        self._parsed: dict[int, Parsed | None] = {}

    def append(self, position: int, version: StoredVersion) -> None:
        self._positions.append(position)
        self._versions.append(version)

    def before(self, position: int) -> Parsed | None:
        """The last version before that position; None if there is none, or it is a deletion."""
        index = bisect_left(self._positions, position) - 1
        if index < 0:
            return None
        if index not in self._parsed:
            self._parsed[index] = self._parse(self._versions[index])
        return self._parsed[index]


class _AsOf(Mapping[Key, Parsed]):
    """Rules or stores as of one position. A look-up into their timelines: nothing is copied."""

    def __init__(self, timelines: Mapping[Key, _Timeline[Parsed]], position: int) -> None:
        self._timelines, self._position = timelines, position

    def __getitem__(self, key: Key) -> Parsed:
        found = self._timelines[key].before(self._position)
        if found is None:
            raise KeyError(key)
        return found

    def __iter__(self) -> Iterator[Key]:
        return (key for key, timeline in self._timelines.items() if timeline.before(self._position) is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)


class _RulesAsOf(_AsOf[_RuleName, VersionedRule]):
    @cached_property
    def by_topic(self) -> Mapping[str, Sequence[VersionedRule]]:
        found: dict[str, list[VersionedRule]] = {}
        for _, each in sorted(self.items(), key=itemgetter(0)):
            topic = source_topic(each.rule)
            if each.rule.on and topic is None:
                warn_unusable_rule(each.key, "its metric or source does not exist")
            elif each.rule.on and topic is not None:
                found.setdefault(topic, []).append(each)
        return found


@dataclass(frozen=True)
class RuleSet:
    """The rules and stores in effect from one moment until the next version. `rules`: by tenant and id."""

    rules: _RulesAsOf
    shops: Mapping[str, ShopClock]

    @property
    def by_topic(self) -> Mapping[str, Sequence[VersionedRule]]:
        """The active rules of each source, in a fixed order, without those that this release cannot evaluate."""
        return self.rules.by_topic

    @cached_property
    def has_shops(self) -> bool:
        """Whether there is any store. Where there is none, no event counts."""
        return any(True for _ in self.shops)

    def rules_of(self, topic: str, shop: ShopClock) -> Sequence[VersionedRule]:
        """The rules on this source that watch this store."""
        store = shop.store
        return [each for each in self.by_topic.get(topic, ()) if each.rule.watches(store.id, store.tenant)]


class RuleHistory:
    """Every version that was stored when the history was read. Its memory grows with the versions alone."""

    def __init__(self, versions: Iterable[StoredVersion], complete_before_ms: int) -> None:
        """`complete_before_ms`: no version that is stored later is in effect for records received before that."""
        self.complete_before_ms = complete_before_ms
        ordered = sorted(set(versions))
        self._effective_ms = [version.effective_ms for version in ordered]
        self._rules: dict[_RuleName, _Timeline[VersionedRule]] = {}
        self._shops: dict[str, _Timeline[ShopClock]] = {}
        self._rule_positions: list[int] = []
        for position, version in enumerate(ordered):
            if version.kind == "store":
                self._shops.setdefault(version.id, _Timeline(_parse_shop)).append(position, version)
            else:
                tenant, _, name = version.id.rpartition("/")
                self._rules.setdefault((tenant, name), _Timeline(_parse_rule)).append(position, version)
                self._rule_positions.append(position)
        self._set_at = lru_cache(_CACHED_SETS)(self._rule_set)
        self._rules_at = lru_cache(_CACHED_SETS)(lambda position: _RulesAsOf(self._rules, position))

    def at(self, received_ms: int) -> RuleSet:
        """What holds for a record received then. The same object as long as nothing changes."""
        return self._set_at(bisect_right(self._effective_ms, received_ms))

    def _rule_set(self, position: int) -> RuleSet:
        # Positions between two versions of rules share one mapping of rules, so that they are sorted once.
        newest = bisect_left(self._rule_positions, position) - 1
        rules = self._rules_at(self._rule_positions[newest] + 1 if newest >= 0 else 0)
        return RuleSet(rules, _AsOf(self._shops, position))


class RuleStore(Protocol):
    """Where the history is stored."""

    def read(self) -> RuleHistory:
        """Read all current versions. DependencyUnavailableError."""


OF_NOBODY = ""
"""The tenant of a store that was removed. The former release reads such a store too, and no rule of it watches any."""


def _parse_shop(version: StoredVersion) -> ShopClock | None:
    store = Store.from_json(version.body)
    return None if store.tenant == OF_NOBODY else ShopClock(store)


def _parse_rule(version: StoredVersion) -> VersionedRule | None:
    rule = decode_rule(version.id, version.number, version.body)
    return None if rule is None else VersionedRule(rule, version.number)
