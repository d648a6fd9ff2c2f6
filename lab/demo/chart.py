"""The first chart of the demo, in the terminal: what the chain has sold in each of the last hours."""

from collections.abc import Sequence
from datetime import datetime

from lab.demo.top_products import Ask

BLOCKS = " ▁▂▃▄▅▆▇█"
METRIC = "net_sales"


def sales_chart(ask: Ask, begins: datetime, ends: datetime) -> str:
    """Ask for the sales of all stores by hour, and draw them.

    Args:
        ask: Asks the REST API.
        begins: When the first hour begins.
        ends: When the last hour ends.
    """
    question = {"by": "total", "from": begins.isoformat(), "to": ends.isoformat(), "grain": "hour"}
    answer = ask(f"/v1/metrics/{METRIC}", question)
    [series] = answer["series"]
    values = [point["value"] for point in series["points"]]
    known = [value for value in values if value is not None]
    stores = series["stores"]["counted"]
    spark = sparkline(values)
    if not known:
        return f"  net sales of {stores} stores: no receipts in these hours"
    return (
        f"  net sales of {stores} stores by hour of local time, counted live:\n\n"
        f"    {spark}   USD {sum(known):,.2f}, at most {max(known):,.2f} an hour\n"
    )


def sparkline(values: Sequence[float | None]) -> str:
    """Draw one block per value, as high as the value is; a blank where it is not known, or nothing."""
    most = max((value for value in values if value is not None), default=0)
    if most <= 0:
        return BLOCKS[0] * len(values)
    top = len(BLOCKS) - 1
    return "".join(BLOCKS[0 if not value or value < 0 else max(1, round(top * value / most))] for value in values)
