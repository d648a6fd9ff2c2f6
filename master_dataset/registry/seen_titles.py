"""The titles that receipts have for SKUs, as the table `seen_titles` keeps them; `speed_layer/titles.py` writes it."""

from master_dataset.registry.products import bucket_of

MOST_TITLE = 200
"""Characters of a title that are kept: as many as a product master takes."""
SEEN_BUCKETS = 64
"""Partitions of a tenant."""


def bucket_of_seen(sku: str) -> int:
    """Return the partition of a SKU within its tenant."""
    return bucket_of(sku, SEEN_BUCKETS)
