"""Spark gives workers as many bytes at once as it likes while it reads narrow rows, and only then."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import pytest
from pyspark.sql.types import ArrayType, StringType, StructField, StructType

from batch_layer.blocks import batches_for
from views.sales import SALES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SETTING, USUAL = "spark.sql.execution.arrow.maxBytesPerBatch", "67108864"


class Conf(dict[str, str]):
    def set(self, name: str, value: str) -> None:
        self[name] = value


@dataclass
class Session:
    conf: Conf


class Frame:
    """As much of a DataFrame as says what is in it."""

    def __init__(self, *, has_lists: bool) -> None:
        kind = ArrayType(StringType()) if has_lists else StringType()
        self.schema = StructType([StructField(name, kind) for name in sorted(SALES.columns_read)])
        self.sparkSession = Session(Conf({SETTING: USUAL}))


@pytest.mark.parametrize(("has_lists", "within"), [(False, str(2**31 - 1)), (True, USUAL)])
def test_the_limit_is_lifted_for_narrow_rows_and_is_there_again_afterwards(*, has_lists: bool, within: str) -> None:
    frame = Frame(has_lists=has_lists)
    conf = frame.sparkSession.conf

    def run() -> None:
        with batches_for(SALES, cast("DataFrame", frame)):
            assert conf[SETTING] == within
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run()

    assert conf[SETTING] == USUAL
