"""The rule history gives the same rule sets as one that stores every rule set in full."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import accumulate

from hypothesis import given
from hypothesis import strategies as st

from master_dataset.registry.stores import Store
from master_dataset.sources import registered_sources
from views.alerts.rule import Rule
from views.alerts.rule_history import RuleHistory, StoredVersion, decode_rule, rule_version, store_version
from views.alerts.rule_metrics import source_topic
from views.alerts.rule_validation import parse_rule

RULES = [
    {"kind": "level", "id": "a", "of": "queue", "above": 4, "minutes": 3},
    {"kind": "silence", "id": "a", "tenant": "x/y", "source": "pos_transactions", "minutes": 9, "hours": "always"},
    {"kind": "threshold", "id": "b", "metric": "net_sales", "window": "hour", "above": 9, "stores": ["1", "2"]},
    {"kind": "threshold", "id": "b", "metric": "net_sales", "window": "hour", "above": 9, "on": False},
]
STORES = [
    Store(id=id_, timezone=zone, tenant=tenant)
    for id_ in "12"
    for zone in ("UTC", "Asia/Tokyo")
    for tenant in ("default", "x/y")
]
TIMES, NUMBERS = st.integers(0, 5), st.integers(1, 3)
VERSIONS = st.lists(
    st.one_of(
        st.builds(
            lambda rule, number, at: rule_version(parse_rule(rule), number, at), st.sampled_from(RULES), NUMBERS, TIMES
        ),
        st.builds(
            lambda id_, number, at: StoredVersion(at, "rule", id_, number, ""),
            st.sampled_from(["default/a", "default/b"]),
            NUMBERS,
            TIMES,
        ),
        st.builds(
            lambda number, at: StoredVersion(at, "rule", "default/a", number, "of a newer release"), NUMBERS, TIMES
        ),
        st.builds(store_version, st.sampled_from(STORES), NUMBERS, TIMES),
    ),
    max_size=12,
)
Written = tuple[Mapping[tuple[str, str], tuple[Rule, int]], Mapping[str, Store]]


def with_version(page: Written, version: StoredVersion) -> Written:
    """The page behind it, whole."""
    rules, stores = page
    if version.kind == "store":
        return rules, {**stores, version.id: Store.from_json(version.body)}
    tenant, _, name = version.id.rpartition("/")
    rules = {key: rule for key, rule in rules.items() if key != (tenant, name)}
    rule = decode_rule(version.id, version.number, version.body)
    return (rules if rule is None else {**rules, (tenant, name): (rule, version.number)}), stores


def written_out(versions: Sequence[StoredVersion], at: int) -> Written:
    ordered = sorted(set(versions))
    nothing: Written = ({}, {})
    pages = list(accumulate(ordered, with_version, initial=nothing))
    return pages[bisect_right([version.effective_ms for version in ordered], at)]


@given(VERSIONS, st.lists(st.integers(-1, 6), min_size=1, max_size=8))
def test_every_page_says_the_same_as_one_that_is_written_out(versions: list[StoredVersion], moments: list[int]) -> None:
    history = RuleHistory(versions, 9)

    for at in moments:
        page, (rules, stores) = history.at(at), written_out(versions, at)
        assert {id_: shop.store for id_, shop in page.shops.items()} == stores
        assert [page.shops.get(id_) is not None for id_ in "123"] == [id_ in stores for id_ in "123"]
        assert {key: (each.rule, each.version) for key, each in page.rules.items()} == rules
        for topic in registered_sources():
            watching = [each for _, each in sorted(rules.items()) if each[0].on and source_topic(each[0]) == topic]
            assert [(each.rule, each.version) for each in page.by_topic.get(topic, ())] == watching
            for shop in page.shops.values():
                own = [each for each in watching if each[0].watches(shop.store.id, shop.store.tenant)]
                assert [(each.rule, each.version) for each in page.rules_of(topic, shop)] == own


@given(VERSIONS, st.lists(st.integers(-1, 6), min_size=2, max_size=8))
def test_as_long_as_nothing_changes_the_page_and_the_shops_are_the_same(
    versions: list[StoredVersion], moments: list[int]
) -> None:
    history = RuleHistory(versions, 9)
    shops = {at: dict(history.at(at).shops) for at in moments}

    for at in moments:
        page = history.at(at)
        assert history.at(at) is page
        for before in moments:
            for id_ in page.shops.keys() & shops[before].keys():
                first, last = sorted((before, at))
                is_changed = any(
                    each.kind == "store" and each.id == id_ and first < each.effective_ms <= last for each in versions
                )
                assert is_changed or page.shops[id_] is shops[before][id_]
