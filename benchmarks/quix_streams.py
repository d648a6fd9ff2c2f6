"""Quix Streams doing what the speed layer does: `quix_streams.py BOOTSTRAP TOPIC EVENTS STATE_FOLDER`.

Run by itself, with the packages of quix_streams.txt: it imports nothing of ours. The first delivery of an identity
counts; the sums of the three views are kept per store, window and dimensions in its state store, with changelog topics
as it does by default. Each cell is a key of its own in the state of its store. Its own windows would hold a store's
items in one value that grows with each of them, or send every line through Kafka once more to be keyed by item.
Nothing is written out: what is measured ends in the state.
"""

import json
import sys
import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from quixstreams import Application, State

WINDOW_SECONDS = 900
GIVE_UP_SECONDS = 60.0
Lines = Sequence[Mapping[str, Any]]


class Sums:
    """Called with every receipt and the state of its store."""

    def __init__(self) -> None:
        """Nothing was read yet. `cells`: how many there are; `totals`: of all stores and windows, to be compared."""
        self.events = self.cells = 0
        self.began = self.ended = self.cpu_began = self.cpu_ended = 0.0
        self.totals = {"receipts": 0, "gross_sales": 0, "units_sold": 0, "net_units": 0}

    def __call__(self, receipt: dict[str, Any], state: State) -> None:
        """Count it, unless it was met before."""
        if not self.events:
            self.began, self.cpu_began = time.monotonic(), time.process_time()
        self.events += 1
        identity = f"{receipt['vendor_fiscal_module']}/{receipt['transaction_id']}/{receipt['happened_at']}"
        if not state.exists(identity):
            state.set(identity, 1)
            self._count(receipt, state)
        self.ended, self.cpu_ended = time.monotonic(), time.process_time()

    def _count(self, receipt: dict[str, Any], state: State) -> None:
        window = int(datetime.fromisoformat(receipt["happened_at"]).timestamp()) // WINDOW_SECONDS * WINDOW_SECONDS
        sales = _sales(receipt["transactions"])
        _, sale, _, _, _, gross, returned, units, *_ = sales
        self._add(state, f"sales/{window}", sales)
        self._add(state, f"till/{window}/{receipt['vendor_fiscal_module']}", (1, sale, gross - returned))
        for sku, added in _items(receipt["transactions"]).items():
            self._add(state, f"sku/{window}/{sku}", added)
            self.totals["net_units"] += added[1]
        self.totals["receipts"] += 1
        self.totals["gross_sales"] += gross
        self.totals["units_sold"] += units

    def _add(self, state: State, key: str, added: Sequence[int]) -> None:
        before = state.get(key)
        if before is None:
            self.cells += 1
        state.set(key, list(added) if before is None else [a + b for a, b in zip(before, added, strict=True)])


def _sales(lines: Lines) -> tuple[int, ...]:
    """The state columns of `sales`, in their order."""
    sold = [line for line in lines if line["amount"] > 0]
    back = [line for line in lines if line["amount"] < 0]
    kinds = (1, bool(sold), bool(back) and not sold, bool(sold and back), not sold and not back)
    gross, returned = sum(map(_minor, sold)), -sum(map(_minor, back))
    units = (sum(line["amount"] for line in sold), -sum(line["amount"] for line in back))
    return (*map(int, kinds), gross, returned, *units, len(lines))


def _items(lines: Lines) -> dict[str, list[int]]:
    """The state columns of `sales_by_sku` per item: a receipt counts once for an item that it names twice."""
    found: dict[str, list[int]] = {}
    for line in lines:
        own = found.setdefault(line["sku"], [0, 0, 0])
        own[0] += _minor(line)
        own[1] += line["amount"]
        own[2] = own[2] or int(line["amount"] > 0)
    return found


def _minor(line: Mapping[str, Any]) -> int:
    total: float = line["total"]
    return round(total * 100)


def main(bootstrap: str, topic: str, events: int, folder: str) -> None:
    """Read so many events from the beginning; one JSON object on stdout in the end."""
    application = Application(
        broker_address=bootstrap,
        consumer_group="bench-quix",
        auto_offset_reset="earliest",
        state_dir=folder,
        loglevel="WARNING",
    )
    sums = Sums()
    receipts = application.dataframe(application.topic(topic, key_deserializer="bytes", value_deserializer="json"))
    receipts.update(sums, stateful=True)
    application.run(count=events, timeout=GIVE_UP_SECONDS, collect=False)
    spent = {"seconds": sums.ended - sums.began, "cpu_seconds": sums.cpu_ended - sums.cpu_began}
    print(json.dumps({"events": sums.events, **spent, "totals": sums.totals | {"cells": sums.cells}}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4])
