"""What Spark says when it cannot read a file of the master dataset, as an operator can use it."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import unquote

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from master_dataset.delta.lost_files import file_lost
from master_dataset.delta.tables import MasterTables

_CANNOT_READ = re.compile(
    r"\[(?:FAILED_READ_FILE|PATH_NOT_FOUND|CANNOT_READ_FILE_FOOTER)[^\]]*\].*?file:/*(/\S+\.parquet)"
)


@contextmanager
def naming_lost_files(tables: MasterTables) -> Iterator[None]:
    """MasterFileLost instead of what Spark raises inside, if it names a file of these tables that it cannot read."""
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        found = _CANNOT_READ.search(str(error))
        if found is None:
            raise
        file = unquote(found[1])
        table = next((part for part in file.removeprefix(f"{tables.root}/").split("/") if part), "")
        raise file_lost(tables.path(table), file, "cannot be read") from error
