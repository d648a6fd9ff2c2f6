"""A refusal as the bytes that a connection sends before the app has seen a request."""

from http import HTTPStatus

from master_dataset.errors import GalateaError
from serving_layer.api.headers import HEADERS
from serving_layer.api.problems import problem


def written(error: GalateaError) -> bytes:
    """A whole response; the connection ends behind it."""
    said = problem(error.status, error.code, error.message, error.do)
    headers = dict(said.raw_headers) | dict(HEADERS) | {b"connection": b"close"}
    fields = b"".join(b"%b: %b\r\n" % field for field in headers.items())
    return b"HTTP/1.1 %d %b\r\n%b\r\n%b" % (
        error.status,
        HTTPStatus(error.status).phrase.encode(),
        fields,
        bytes(said.body),
    )
