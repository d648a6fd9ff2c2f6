"""JSON files that say how a home was made: replaced as a whole, and on the disk before anything relies on them.

Without the flush, a power cut within half a minute could leave an empty file under the new name.
"""

from pathlib import Path
from typing import Any

import orjson

from deploy.secret_files import write_private
from master_dataset.errors import OperatorError


def write_json(file: Path, value: object) -> None:
    """Replace a file. OSError if the disk is full."""
    write_private(file, orjson.dumps(value).decode())


def read_json(file: Path, default: Any, do: str) -> Any:  # noqa: ANN401 - any JSON
    """Return the content of a file, or `default` if there is none.

    Args:
        file: The file.
        default: What stands for a file that does not exist.
        do: What the operator has to do about a damaged one.

    Raises:
        OperatorError: It is damaged.
    """
    try:
        return orjson.loads(file.read_bytes())
    except FileNotFoundError:
        return default
    except orjson.JSONDecodeError as error:
        raise OperatorError(f"`{file}` is damaged: {error}", do=do) from error
