"""However a product master is split into buckets, every row is in exactly one, which its SKU names."""

from datetime import date

from hypothesis import given
from hypothesis import strategies as st

from master_dataset.registry.products import (
    Product,
    ProductSpool,
    bucket_of,
    decode_block,
    encode_block,
    valid_on,
)

DAYS = st.none() | st.dates(date(2020, 1, 1), date(2020, 1, 6))
PRODUCTS = st.lists(
    st.builds(
        Product,
        sku=st.text("ab1é", min_size=1, max_size=4),
        title=st.text(min_size=1, max_size=3),
        category=st.lists(st.sampled_from("xyz"), max_size=3).map(tuple),
        valid_from=DAYS,
    ),
    max_size=40,
    unique_by=lambda each: (each.sku, each.valid_from),
)


@given(products=PRODUCTS, buckets=st.sampled_from([1 << power for power in range(11)]))
def test_any_split_into_buckets_gives_back_each_row(products: list[Product], buckets: int) -> None:
    found: list[Product] = []
    seen: list[int] = []
    with ProductSpool() as spool:
        for line, product in enumerate(products, 1):
            spool.add(line, product)
        for bucket, rows in spool.by_bucket(buckets):
            seen.append(bucket)
            block = decode_block(encode_block(row for versions in rows.values() for row in versions))
            assert block == rows
            assert all(bucket_of(sku, buckets) == bucket for sku in block)
            found += [product for versions in block.values() for product in versions]
    assert sorted(seen) == list(range(buckets))
    assert sorted(found, key=repr) == sorted(products, key=repr)


@given(products=PRODUCTS, day=st.dates(date(2019, 12, 31), date(2020, 1, 7)))
def test_the_valid_version_is_the_last_one_that_began(products: list[Product], day: date) -> None:
    with ProductSpool() as spool:
        for line, product in enumerate(products, 1):
            spool.add(line, product)
        rows = {sku: versions for _, found in spool.by_bucket(1) for sku, versions in found.items()}
    for sku, versions in rows.items():
        begun = [each for each in products if each.sku == sku and (each.valid_from or date.min) <= day]
        assert valid_on(versions, day) == max(begun, key=lambda each: each.valid_from or date.min, default=None)
