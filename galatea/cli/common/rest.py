"""The client with which commands ask the REST interface of the running stack."""

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option

from deploy.settings import Settings
from master_dataset.errors import OperatorError, RequestError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from galatea.client import Client
    from galatea.client.errors import ClientError

KeyFile = Annotated[
    Path | None,
    Option(
        "--key-file",
        help="File with the API key that only its owner can read. Default: the operator's key in the home.",
    ),
]


@contextmanager
def rest_client(settings: Settings, key_file: Path | None) -> "Iterator[Client]":
    """Yield a client; what it raises says what to do next.

    Args:
        settings: say where the interface is.
        key_file: None for the operator's key in the home.

    Raises:
        RequestError: the request cannot be answered, or the key is not valid.
        OperatorError: there is no key, or others can read it, or there is no answer.
    """
    from deploy.secret_files import read_private
    from galatea.client import Client
    from galatea.client.errors import ClientError

    key_file = key_file or settings.home / "operator.key"
    if not key_file.is_file():
        raise OperatorError(f"there is no key in {key_file}", do="galatea up --detach, or pass one with --key-file")
    key = read_private("--key-file", key_file).strip()
    try:
        with Client(settings.api_url, key, ca_file=settings.api.ca_file or None) as galatea:
            yield galatea
    except ClientError as error:
        raise _as_error(error) from error
    except ValueError as error:
        raise RequestError(str(error), do=f"check {key_file}") from error


def _as_error(error: "ClientError") -> RequestError | OperatorError:
    from galatea.client.errors import AccessDeniedError, RateLimitedError, ResponseError, UnavailableError

    if not isinstance(error, ResponseError):
        return OperatorError(str(error), do="galatea status")
    is_operator = isinstance(error, AccessDeniedError | RateLimitedError | UnavailableError)
    found = (OperatorError if is_operator else RequestError)(error.title, do=error.detail)
    found.code = error.code
    return found
