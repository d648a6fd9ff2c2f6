from datetime import date

from batch_layer.run import requests


def test_blocks_of_one_store_and_month_go_together() -> None:
    rows = [
        {"store": "1", "day": date(2026, 10, 30), "block": "a"},
        {"store": "1", "day": date(2026, 10, 31), "block": "b"},
        {"store": "1", "day": date(2026, 11, 1), "block": "c"},
        {"store": "2", "day": date(2026, 11, 1), "block": "d"},
    ]

    found = [(month, [row["block"] for row in own]) for month, own in requests(rows)]

    october, november = date(2026, 10, 1), date(2026, 11, 1)
    assert found == [(october, ["a", "b"]), (november, ["c"]), (november, ["d"])]


def test_a_request_stays_below_what_cassandra_takes_and_a_large_block_goes_alone() -> None:
    sizes = [10_000, 10_000, 10_000, 90_000, 10]
    rows = [{"store": "1", "day": date(2026, 11, day), "block": "x" * size} for day, size in enumerate(sizes, 1)]

    found = [[len(row["block"]) for row in own] for _, own in requests(rows)]

    assert found == [[10_000, 10_000, 10_000], [90_000], [10]]
