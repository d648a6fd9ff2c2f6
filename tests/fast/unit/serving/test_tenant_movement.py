"""What one tenant sends does not show in what another tenant is shown: not as a number, and not as movement."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from master_dataset.registry.stores import Store
from serving_layer.keys.key import OPERATOR, Caller
from serving_layer.live import Live
from serving_layer.query.resolve import MetricRequest, MetricsRequest
from serving_layer.query.stores import PageRequest
from serving_layer.store.readers import GenerationProgress, Position, StoreProgress
from tests.support import World, receipt
from tests.support.world_api import OPERATOR_KEY, Asking
from tests.support.world_clients import Browsing
from tests.support.world_tables import WorldTables

OURS, THEIRS = "1", "2"
DAY = {"from_": "2026-11-21", "to": "2026-11-22", "grain": "total", "timezone": "UTC"}
ASKED = [
    ("/v1/metrics/net_sales", DAY),
    ("/v1/metrics/net_sales", {**DAY, "grain": "15m", "compare": "previous_week"}),
    ("/v1/metrics/net_sales,total_transactions_count", {**DAY, "by": "total"}),
    ("/v1/metrics/net_sales", {**DAY, "format": "csv"}),
    ("/v1/views/sales/cells", {"from_": "2026-11-21", "to": "2026-11-22"}),
    ("/v1/sensors", {"from_": "2026-11-21", "to": "2026-11-22"}),
    ("/v1/freshness", {}),
    ("/readyz", {}),
]
FOR_OPERATORS = ("speed_lag_ms", "archive_as_of", "archive_lag_ms", "speed", "archive", "lag", "alarms")
ACME = Caller("a key", "acme", frozenset({"read"}))


def sell(world: World, store: str, at: str) -> None:
    world.receive(receipt(at, minor=100, store=store, number=world.sent), at)


@pytest.fixture
def world() -> World:
    world = World(
        Store(id=OURS, timezone="UTC", tenant="acme"),
        Store(id=THEIRS, timezone="UTC", tenant="other"),
    )
    sell(world, OURS, "2026-11-21T09:00:01Z")
    return world


def shown(asking: Asking, path: str, arguments: Mapping[str, object], key: str | None) -> tuple[bytes, str | None]:
    response = asking.response(path, key=key, **arguments)  # type: ignore[arg-type]
    assert response.status_code == 200, response.text
    return response.content, response.headers.get("etag")


@pytest.mark.parametrize(("path", "arguments"), ASKED)
def test_nothing_of_an_answer_moves_while_another_tenant_sends(
    world: World, path: str, arguments: dict[str, object]
) -> None:
    asking = Asking(world)
    key = asking.keys.make("acme")
    world.pass_time("2026-11-21T10:31:06Z")
    before = shown(asking, path, arguments, key)

    for second in range(7, 59):
        sell(world, THEIRS, f"2026-11-21T10:31:{second:02}Z")

    assert shown(asking, path, arguments, key) == before


@pytest.mark.parametrize(("path", "arguments"), [each for each in ASKED if each[0] != "/readyz"])
def test_it_moves_as_soon_as_the_tenant_itself_sends(world: World, path: str, arguments: dict[str, object]) -> None:
    asking = Asking(world)
    key = asking.keys.make("acme")
    before = shown(asking, path, arguments, key)
    sell(world, THEIRS, "2026-11-21T10:31:07Z")

    sell(world, OURS, "2026-11-21T10:31:08Z")

    assert shown(asking, path, arguments, key) != before


def test_a_tenant_is_told_of_its_own_newest_event(world: World) -> None:
    asking = Asking(world)
    key = asking.keys.make("acme")
    sell(world, THEIRS, "2026-11-21T09:00:30Z")

    fresh, answer = asking.body("/v1/freshness", key=key), asking.body("/v1/metrics/net_sales", key=key, **DAY)

    assert fresh["speed_as_of"] == answer["as_of"]["speed_as_of"] == "2026-11-21T09:00:01Z"


def test_time_goes_on_for_a_tenant_that_sends_nothing(world: World) -> None:
    asking, asked = Asking(world), {**DAY, "compare": "previous_week"}
    key = asking.keys.make("acme")
    before = asking.body("/v1/metrics/net_sales", key=key, **asked)["series"][0]["compared"]["until"]

    world.pass_time("2026-11-21T10:31:06Z")

    after = asking.body("/v1/metrics/net_sales", key=key, **asked)["series"][0]["compared"]["until"]
    assert (before, after) == ("2026-11-21T09:00:00Z", "2026-11-21T10:30:00Z")


def test_a_tenant_that_has_sent_nothing_yet_reads_both_layers_and_no_time(world: World) -> None:
    asking = Asking(World(*world.stores.values()))
    sell(asking.world, THEIRS, "2026-11-21T09:00:30Z")

    as_of = asking.body("/v1/metrics/net_sales", key=asking.keys.make("acme"), **DAY)["as_of"]

    assert (as_of["speed_as_of"], as_of["layers"]) == (None, ["speed"])


def test_the_events_of_a_store_that_changed_hands_show_at_once(world: World) -> None:
    asking = Asking(world)
    key = asking.keys.make("acme")
    sell(world, THEIRS, "2026-11-21T09:05:00Z")
    assert asking.body("/v1/metrics/net_sales", key=key, **DAY)["as_of"]["speed_as_of"] == "2026-11-21T09:00:01Z"

    world.stores[THEIRS] = Store(id=THEIRS, timezone="UTC", tenant="acme")
    world.stores["3"] = Store(id="3", timezone="UTC", tenant="third")  # the number of stores is the version here

    assert asking.body("/v1/metrics/net_sales", key=key, **DAY)["as_of"]["speed_as_of"] == "2026-11-21T09:05:00Z"


def test_where_there_is_one_tenant_the_time_of_every_record_is_its_own(world: World) -> None:
    alone = World(world.stores[OURS])
    sell(alone, OURS, "2026-11-21T09:00:01Z")
    alone.pass_time("2026-11-21T09:02:00Z")
    asking = Asking(alone)

    assert asking.body("/v1/freshness", key=asking.keys.make("acme"))["speed_as_of"] == "2026-11-21T09:02:00Z"


def test_rows_of_an_older_release_are_answered_by_positions(world: World) -> None:
    class Older(WorldTables):
        """The last micro-batch was written by a process that does not record the progress of stores."""

        async def progress(self, generation: int) -> GenerationProgress | None:
            found = await super().progress(generation)
            return found and found._replace(kept_through=found.kept_through - 1)

    asking = Asking(world, readers=Older(world).readers)
    sell(world, THEIRS, "2026-11-21T09:00:30Z")

    fresh = asking.body("/v1/freshness", key=asking.keys.make("acme"))

    assert fresh["speed_as_of"] == "2026-11-21T09:00:30Z"


def test_what_a_process_without_progress_has_counted_is_in_the_answers_of_those_after_it(world: World) -> None:
    class Gap(WorldTables):
        kept_from = 0

        async def progress(self, generation: int) -> GenerationProgress | None:
            found = await super().progress(generation)
            return found and found._replace(kept_from=self.kept_from)

    tables = Gap(world)
    asking = Asking(world, readers=tables.readers)
    key, (path, arguments) = asking.keys.make("acme"), ASKED[0]
    before = shown(asking, path, arguments, key)
    tables.kept_from = 5
    sell(world, THEIRS, "2026-11-21T09:00:30Z")

    assert shown(asking, path, arguments, key)[1] != before[1]


def test_an_answer_that_lacks_a_micro_batch_which_is_not_complete_is_not_kept_for_later(world: World) -> None:
    class Behind(WorldTables):
        """The positions of the last micro-batch are not recorded yet, while its rows and the progress of stores are."""

        is_behind = True

        async def positions(self, generation: int) -> Sequence[Position]:
            return [at._replace(position=at.position - self.is_behind) for at in await super().positions(generation)]

        async def progress(self, generation: int) -> GenerationProgress | None:
            found = await super().progress(generation)
            assert found is not None
            mark = 2 * self.world.micro_batch
            return found._replace(stores={id_: StoreProgress(mark, at.received_at) for id_, at in found.stores.items()})

    world.begin_micro_batch()
    line = {"title": "tea", "sku": "tea", "price": 1, "amount": 1}
    world.receive(receipt("2026-11-21T09:20:00Z", [line], store=OURS, number=7), "2026-11-21T09:20:01Z")
    tables = Behind(world)
    asking = Asking(world, readers=tables.readers)
    key = asking.keys.make("acme")

    def items() -> object:
        body = asking.body("/v1/metrics/sku_net_sales,net_sales", key=key, **DAY)
        return [[series["points"][0]["value"] for series in each["series"]] for each in body["answers"]]

    before, tables.is_behind = items(), False

    assert items() != before
    sell(world, THEIRS, "2026-11-21T09:20:05Z")
    tag = shown(asking, "/v1/metrics/net_sales", DAY, key)
    sell(world, THEIRS, "2026-11-21T09:20:06Z")
    assert shown(asking, "/v1/metrics/net_sales", DAY, key) == tag


@pytest.mark.parametrize("tenant", ["acme", "*"])
def test_what_counts_records_of_all_tenants_is_null_but_for_operators(world: World, tenant: str) -> None:
    asking = Asking(world)

    fresh, for_operators = (asking.body("/v1/freshness", key=key) for key in (asking.keys.make(tenant), OPERATOR_KEY))

    assert [fresh[name] for name in FOR_OPERATORS] == [None] * len(FOR_OPERATORS)
    assert for_operators["speed"][0]["position"] == world.sent
    assert for_operators["alarms"] == []


@pytest.mark.parametrize("path", ["/", "/stores", f"/stores/{OURS}", "/layers", "/stack", "/publications"])
def test_no_page_moves_while_another_tenant_sends(world: World, path: str) -> None:
    asking = Asking(world)
    tenant, operator = Browsing(asking), Browsing(asking)
    tenant.sign_in(asking.keys.make("acme"))
    operator.sign_in()
    world.pass_time(at := "2026-11-21T10:31:06Z")
    before, of_operator = tenant.words(path), operator.words(path)

    sell(world, THEIRS, at)

    assert tenant.words(path) == before
    assert (operator.words(path) != of_operator) == (path in {"/", "/stores", "/layers"})


def follow(world: World, caller: Caller, *senders: str) -> list[Any]:
    """What a follower of sales is sent when these stores sell, one after the other."""
    asked = MetricsRequest(
        (MetricRequest("net_sales", (), "2026-11-21", "2026-11-22", grain="total", timezone="UTC"),),
        PageRequest(None, None),
        is_table=False,
    )
    found: list[Any] = []
    world.pass_time("2026-11-21T10:01:00Z")

    async def run() -> None:
        async with Live(Asking(world).answers).follow(asked, caller) as follower:
            events = follower.events(None)
            found.append(await anext(events))
            for number, store in enumerate(senders):
                coming = asyncio.ensure_future(anext(events))
                sell(world, store, f"2026-11-21T10:01:0{number}Z")
                done, _ = await asyncio.wait([coming], timeout=1.5)
                found.append(coming.result() if done else None)
                coming.cancel()
                if not done:
                    events = follower.events(found[0].id)

    asyncio.run(run())
    return found


def test_a_follower_gets_no_event_when_only_another_tenant_sends(world: World) -> None:
    _, theirs, own = follow(world, ACME, THEIRS, OURS)

    assert theirs is None
    assert own is not None


def test_an_operator_follows_every_tenant(world: World) -> None:
    _, theirs = follow(world, OPERATOR, THEIRS)

    assert theirs is not None
