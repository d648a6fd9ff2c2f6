"""Tables as responses: which type they have, what they are called, and what they rest on."""

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

NAME = re.compile(r"[^A-Za-z0-9._-]+")
MOST_NAME = 120
"""Characters of a file's name."""
WRITERS = ThreadPoolExecutor(max_workers=2, thread_name_prefix="tables")
"""A long table takes seconds and much memory: others are answered meanwhile, and few are written at once."""
_FILE = {"schema": {"type": "string", "format": "binary"}}


def returns_or_file(*models: type[msgspec.Struct]) -> Responses:
    """For `responses=` of a route whose answer is one of these models, or a file of the same."""
    responses = returns(*models)
    responses[HTTPStatus.OK]["content"] |= {form.media_type: _FILE for form in FILE_FORMATS.values()}
    return responses


async def formatted_response(asked: Format, body: bytes, made: Callable[[Body], Table], about: list[str]) -> Response:
    """The body itself, or the table made of it, which is a file called after `about`. RangeTooLongError."""
    if asked == "json":
        return Response(body, media_type=JSON)
    refuse_long(len(body))
    form = FILE_FORMATS[asked]
    told, written = await asyncio.get_running_loop().run_in_executor(WRITERS, _written, form, body, made)
    headers = {
        "Content-Disposition": f'attachment; filename="{_name(about)}.{form.ending}"',
        "Galatea-As-Of": as_json(told["as_of"] if "as_of" in told else told["alerts_as_of"]),
    }
    headers |= {"Galatea-Next": told["next"]} if told.get("next") else {}
    return Response(written, headers=headers, media_type=form.media_type)


def refuse_beside_points(asked: Format, *, context: str | None, comp: bool) -> None:
    """NotAvailableError for what stands beside the points, where the form has no place for it."""
    if asked == "json" or FILE_FORMATS[asked].has_metadata:
        return
    for name, is_asked in (("context", context is not None), ("comp", comp)):
        if is_asked:
            message = f"`format={asked}` has no place for what `{name}` adds beside the points."
            raise NotAvailableError(message, do=f"Ask with `format=parquet`, `arrow` or `json`, or leave `{name}` out.")


def _written(form: FileFormat, body: bytes, made: Callable[[Body], Table]) -> tuple[Body, bytes]:
    told = read(body)
    return told, form.write(made(told))


def _name(about: list[str]) -> str:
    """DeadLetterService, digits and a few signs alone: what was asked for is in it, and it ends up in a folder of somebody's."""
    return NAME.sub("-", "_".join(about))[:MOST_NAME]
