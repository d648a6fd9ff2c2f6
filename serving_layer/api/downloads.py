"""Tables as responses: their media types, file names and provenance headers."""

import asyncio
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus

import msgspec
from fastapi import Response

from serving_layer.errors import NotAvailableError
from serving_layer.files.formats import FILE_FORMATS, FileFormat, Format
from serving_layer.files.tables import Body, Table, as_json, read
from serving_layer.query.answer import refuse_long
from serving_layer.responses.encoding import JSON
from serving_layer.responses.schemas import Responses, returns

UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
MAX_NAME = 120
"""Characters of a file name."""
WRITERS = ThreadPoolExecutor(max_workers=2, thread_name_prefix="tables")
"""A long table takes seconds and much memory, so only a few are written at once, and not on the event loop."""
_FILE = {"schema": {"type": "string", "format": "binary"}}


def returns_or_file(*models: type[msgspec.Struct]) -> Responses:
    """`responses=` of a route that responds with one of these models, or with a file of the same content."""
    responses = returns(*models)
    responses[HTTPStatus.OK]["content"] |= {form.media_type: _FILE for form in FILE_FORMATS.values()}
    return responses


async def formatted_response(
    format_: Format, body: bytes, to_table: Callable[[Body], Table], name: list[str]
) -> Response:
    """Respond with the JSON body, or with a file made from it.

    Args:
        format_: of the response.
        body: the response as JSON.
        to_table: makes the table of the decoded body.
        name: the parts of the file name.

    Raises:
        RangeTooLongError: the body is too large for a table.
    """
    if format_ == "json":
        return Response(body, media_type=JSON)
    refuse_long(len(body))
    file_format = FILE_FORMATS[format_]
    decoded, file = await asyncio.get_running_loop().run_in_executor(WRITERS, _write, file_format, body, to_table)
    headers = {
        "Content-Disposition": f'attachment; filename="{_file_name(name)}.{file_format.ending}"',
        "Galatea-As-Of": as_json(decoded["as_of"] if "as_of" in decoded else decoded["alerts_as_of"]),
    }
    headers |= {"Galatea-Next": decoded["next"]} if decoded.get("next") else {}
    return Response(file, headers=headers, media_type=file_format.media_type)


def refuse_beside_points(format_: Format, *, context: str | None, comp: bool) -> None:
    """Raise NotAvailableError if the format cannot hold what these parameters add to the points."""
    if format_ == "json" or FILE_FORMATS[format_].has_metadata:
        return
    for name, is_requested in (("context", context is not None), ("comp", comp)):
        if is_requested:
            message = f"`format={format_}` has no place for what `{name}` adds to the points."
            raise NotAvailableError(message, do=f"Use `format=parquet`, `arrow` or `json`, or leave `{name}` out.")


def _write(file_format: FileFormat, body: bytes, to_table: Callable[[Body], Table]) -> tuple[Body, bytes]:
    decoded = read(body)
    return decoded, file_format.write(to_table(decoded))


def _file_name(parts: list[str]) -> str:
    """Only letters, digits and a few signs: the name contains what a caller sent, and is saved on somebody's disk."""
    return UNSAFE.sub("-", "_".join(parts))[:MAX_NAME]
