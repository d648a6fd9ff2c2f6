"""Products and targets, as an operator loads them from Python."""

import asyncio

import pytest

from galatea.client.errors import AccessDeniedError, ResponseError
from master_dataset.registry.stores import Store
from tests.support import World
from tests.support.world_api import OPERATOR_KEY, Asking
from tests.support.world_clients import async_client, client

PRODUCTS = b"sku,title\n1,Milk\n2,Bread\n"
TARGETS = b'\xef\xbb\xbf\n{"store": "1", "day": "2026-03-23", "metric": "net_sales", "value": 2.5}\n'


@pytest.fixture
def asking() -> Asking:
    return Asking(World(Store(id="1", timezone="UTC"), Store(id="2", timezone="UTC", tenant="acme")))


def test_files_are_loaded_for_a_tenant(asking: Asking) -> None:
    operator = client(asking, OPERATOR_KEY)

    products, targets = operator.load_products(PRODUCTS, tenant="acme"), operator.load_targets(TARGETS)

    assert (products.tenant, products.count) == ("acme", 2)
    assert (targets.tenant, targets.count, targets.loaded_at) == (
        "default",
        1,
        asking.targets.sets["default"].loaded_at,
    )
    again = operator.load_products(b"sku,title\n3,Tea\n", tenant="acme", replace=True)
    assert (again.count, again.version != products.version) == (1, True)


def test_files_are_loaded_from_coroutines(asking: Asking) -> None:
    async def load() -> int:
        async with async_client(asking, OPERATOR_KEY) as operator:
            return (await operator.load_targets(TARGETS)).count

    assert asyncio.run(load()) == 1


def test_a_mistake_names_its_line_and_other_keys_load_nothing(asking: Asking) -> None:
    with pytest.raises(ResponseError, match="`store` of line 2 is no store of the tenant: `9`"):
        client(asking, OPERATOR_KEY).load_targets(b"store,day,metric,value\n9,2026-03-23,net_sales,1\n")
    with pytest.raises(AccessDeniedError):
        client(asking, asking.keys.make("default", "read")).load_products(PRODUCTS)
    assert asking.products.masters == {}
