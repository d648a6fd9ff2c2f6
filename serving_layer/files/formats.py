"""The forms that an answer can be asked for in."""

from collections.abc import Callable
from typing import Literal, NamedTuple

from serving_layer.files.as_arrow import as_arrow, as_parquet
from serving_layer.files.as_csv import as_csv
from serving_layer.files.table import Table

Format = Literal["json", "csv", "parquet", "arrow"]


class Form(NamedTuple):
    """How a table becomes a file. `ending`: of the file's name. `has_metadata`: whether it can say what is no row."""

    media_type: str
    ending: str
    write: Callable[[Table], bytes]
    has_metadata: bool


FORMS: dict[Format, Form] = {
    "csv": Form("text/csv; charset=utf-8", "csv", as_csv, has_metadata=False),
    "parquet": Form("application/vnd.apache.parquet", "parquet", as_parquet, has_metadata=True),
    "arrow": Form("application/vnd.apache.arrow.stream", "arrows", as_arrow, has_metadata=True),
}
"""All but JSON, which is no table."""
