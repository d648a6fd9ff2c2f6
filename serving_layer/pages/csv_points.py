"""`/csv/{metric}`: the points of an answer as a table, for a spreadsheet. The numbers are those of REST, as written."""

import csv
import io
from collections.abc import Iterator
from decimal import Decimal
from typing import Annotated, Any

import orjson
from fastapi import Query, Response
from pydantic import BaseModel, ConfigDict, Field

from serving_layer.pages.page_answers import Told
from serving_layer.pages.page_route import routes
from serving_layer.pages.question import Question
from serving_layer.pages.visit import ReaderVisit
from serving_layer.timeline import Grain

router = routes()
FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""What a spreadsheet would take for a formula at the beginning of a text."""


class CsvQuestion(BaseModel):
    """The arguments of a metric that pages use; stores have to be named."""

    model_config = ConfigDict(extra="forbid")

    store: list[str] = Field(min_length=1, max_length=100)
    start: str = Field(alias="from", max_length=40)
    end: str = Field(alias="to", max_length=40)
    grain: Grain = "day"
    by: list[str] = Field([])
    compare: str | None = Field(None, max_length=200)
    context: str | None = Field(None, max_length=100)
    partial: bool = False


@router.get("/csv/{metric}")
async def get_csv(visit: ReaderVisit, metric: str, asked: Annotated[CsvQuestion, Query()]) -> Response:
    """A line per point. What stands beside the points, `context`, does not fit into one table and is left out."""
    question = Question(
        metric, tuple(asked.store), asked.start, asked.end, asked.grain, tuple(asked.by), asked.compare,
        partial=asked.partial,
    )  # fmt: skip
    told = await visit.answers.told(question)
    written = io.StringIO()
    rows = list(_rows(told))
    columns = list(dict.fromkeys(name for row in rows for name in row))
    table = csv.DictWriter(written, columns, restval="")
    table.writeheader()
    table.writerows(rows)
    headers = {"Content-Disposition": 'attachment; filename="galatea.csv"'}
    return Response(written.getvalue(), media_type="text/csv; charset=utf-8", headers=headers)


def _rows(told: Told) -> Iterator[dict[str, object]]:
    for series in told["series"]:
        place = {"metric": told["metric"], "unit": told["unit"], "store": series["store"], **series["dimensions"]}
        for point in series["points"]:
            yield {name: _cell(value) for name, value in {**place, **point}.items()}


def _cell(value: Any) -> object:  # noqa: ANN401 - a value of JSON
    if isinstance(value, str):
        return f"'{value}" if value.startswith(FORMULA) else value
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | dict):
        return orjson.dumps(value, default=_exact).decode()
    return value


def _exact(value: object) -> orjson.Fragment:
    if not isinstance(value, Decimal):
        raise TypeError(type(value))
    return orjson.Fragment(str(value))
